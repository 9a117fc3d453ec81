"""TLS between a runtime and its clients: the server's files, the client's check, and tokens.

A token that is sent without TLS can be read on the way. So clients send theirs without TLS to this
machine alone, unless they are told to.
"""

from __future__ import annotations

import ssl
from ipaddress import ip_address
from pathlib import Path

import msgspec

from arp.runtime.contract.errors import InvalidArgument


class TlsFiles(msgspec.Struct, frozen=True):
    """What a server shows to its clients, as PEM files."""

    certificate: str
    """Its certificate, and those between it and the authority that the clients know."""
    key: str
    """The key of the certificate, without a passphrase."""

    def check(self) -> None:
        """Raise if a server cannot use them.

        Raises:
            InvalidArgument: It is so.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            # An empty passphrase fails; without one, a prompt would wait for somebody to type it.
            context.load_cert_chain(self.certificate, self.key, password="")
        except OSError as failed:
            files = f"{self.certificate} and {self.key}"
            raise InvalidArgument(f"{files} are no certificate and its key: {failed}") from failed


class RemoteAddress(msgspec.Struct, frozen=True):
    """Where a client finds a runtime, and how it knows that it is the right one."""

    host: str
    is_tls: bool
    ca: str = ""
    """A PEM file with the authorities that it trusts; empty: the usual ones."""
    plaintext: bool = False
    """Whether a token may be sent without TLS to another machine: a tunnel protects it."""

    def check(self, token: str | None) -> None:
        """Raise if a client must not use it.

        Raises:
            InvalidArgument: It is so; the message says what to do.
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
        """Return what checks the certificate of the server.

        Raises:
            InvalidArgument: The file of the authorities cannot be used.
        """
        try:
            return ssl.create_default_context(cafile=self.ca or None)
        except OSError as failed:
            raise InvalidArgument(f"ca: {self.ca} cannot be used: {failed}") from failed

    def authorities(self) -> bytes | None:
        """Return the authorities that it trusts; `None`: the usual ones.

        Raises:
            InvalidArgument: The file cannot be used.
        """
        self.context()
        return Path(self.ca).read_bytes() if self.ca else None


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches an address."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"
