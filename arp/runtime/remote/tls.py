"""TLS between a runtime and its clients: the server's files, and the checks of a client.

A token that is sent without TLS can be read on the way. So clients send tokens without TLS only to
this machine, unless the caller allows it (`plaintext`).
"""

from __future__ import annotations

import ssl
from ipaddress import ip_address
from pathlib import Path

import msgspec

from arp.runtime.contract.errors import InvalidArgument


class TlsFiles(msgspec.Struct, frozen=True):
    """Certificate and key of a server, as PEM files."""

    certificate: str
    """Certificate of the server, with the intermediate certificates up to an authority that
    clients trust."""
    key: str
    """Key of the certificate, without a passphrase."""

    def check(self) -> None:
        """Raise if a server cannot use the files.

        Raises:
            InvalidArgument: The files cannot be used.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            # If the key is encrypted, the empty password fails at once. Without the argument,
            # OpenSSL would ask for the password at the terminal.
            context.load_cert_chain(self.certificate, self.key, password="")
        except OSError as failed:
            files = f"{self.certificate} and {self.key}"
            raise InvalidArgument(f"{files} are no certificate and its key: {failed}") from failed


class RemoteAddress(msgspec.Struct, frozen=True):
    """Address of a runtime, and how a client verifies it."""

    host: str
    is_tls: bool
    ca: str = ""
    """PEM file with the trusted certificate authorities; empty means those of the system."""
    plaintext: bool = False
    """Whether a token may be sent without TLS to another machine, because a tunnel protects it."""

    def check(self, token: str | None) -> None:
        """Raise if a client must not use the address.

        Raises:
            InvalidArgument: `ca` is set without TLS, or others could read the token; the message
                says what to do.
        """
        if self.ca and not self.is_tls:
            raise InvalidArgument(f"ca: {self.ca} is for TLS: write https:// or grpcs://")
        if token and not (self.is_tls or self.plaintext or is_loopback(self.host)):
            raise InvalidArgument(
                f"the token would be sent to {self.host} without TLS, where others can read it: "
                "write https:// or grpcs://, or say plaintext (ARP_RUNTIME_PLAINTEXT=1) if a "
                "tunnel protects it"
            )

    def context(self) -> ssl.SSLContext:
        """Return the context that verifies the server's certificate.

        Raises:
            InvalidArgument: The file of the authorities cannot be used.
        """
        try:
            return ssl.create_default_context(cafile=self.ca or None)
        except OSError as failed:
            raise InvalidArgument(f"ca: {self.ca} cannot be used: {failed}") from failed

    def authorities(self) -> bytes | None:
        """Return the trusted certificate authorities; `None` means those of the system.

        Raises:
            InvalidArgument: The file cannot be used.
        """
        self.context()
        return Path(self.ca).read_bytes() if self.ca else None


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"
