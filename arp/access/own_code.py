"""Prevent commands of a server's own agents and tools from using that server.

Theory of operation. A command that an agent runs can connect to the server like every program on
this machine, and could answer the permission question about itself. Two measures prevent that.

Each start of an app that runs commands creates a new token, unless the access to the app is
controlled in another way or the token was switched off. The token is shown once, in the output or
the log. A file next to the ledger has the hashes of the newest tokens, so that open pages stay
valid after a restart, but reading the file gives no access. The file is read only at the start, so
a hash added later has no effect until the next start.

If the server runs as root, tools run as separate users. The kernel reports the user of a connection
from this machine, and the users of tools are refused even with a token. A connection that its
program has already closed has no user and is refused too. Otherwise a program could send a request
and exit before the server looks up its user.
"""

from __future__ import annotations

import hmac
import logging
import os
import secrets
import socket
import stat
import sys
import time
from collections.abc import Iterator
from hashlib import sha256
from ipaddress import ip_address
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
from msgspec import Struct

from arp.access.client_address import Address
from arp.access.incoming import Scope

logger = logging.getLogger(__name__)

KEPT: Final = 16
"""Number of starts with valid tokens, including this one."""
KEPT_S: Final = 30 * 86_400.0
"""Time in seconds that a token stays valid after its start."""
MAX_FILE_BYTES: Final = 1 << 16
FIRST_TOOL_UID: Final = 61_184
LAST_TOOL_UID: Final = 65_519
"""Range of the user ids under which tools run, assigned by `arp.process.sandbox`."""
TABLES: Final = ("/proc/self/net/tcp", "/proc/self/net/tcp6")
LISTENING: Final = "0A"
"""State of a listening socket in the kernel's tables."""

_FLAGS: Final = os.O_RDONLY | sum(
    getattr(os, name, 0) for name in ("O_NONBLOCK", "O_NOFOLLOW", "O_CLOEXEC")
)
"""Flags to open the file: a link is refused, and a named pipe does not block."""


class StartToken(Struct, frozen=True):
    """The token of a start, as stored in the file."""

    sha256: str
    created_at: float
    """Time of the start in seconds since the epoch."""


class _Row(NamedTuple):
    """A connection in one of the kernel's tables."""

    address: Address
    port: int
    remote_port: int
    uid: int
    inode: int
    """Inode of the socket; 0 if no program holds the socket any more."""
    is_listening: bool


class OwnCodeDetector:
    """Recognises connections made by commands that the app itself runs.

    Args:
        path: File with the tokens of earlier starts; `None` if tokens are not kept.
        has_token: Whether this start has a token.
    """

    def __init__(self, path: Path | None = None, *, has_token: bool = True) -> None:
        self.token = secrets.token_urlsafe(32) if has_token else ""
        """Token of this start; empty if there is none."""
        self._path = path
        self._kept: list[StartToken] = []
        if has_token:
            now = time.time()
            earlier = [one for one in _read_tokens(path) if 0 <= now - one.created_at < KEPT_S]
            self._kept = [*earlier[1 - KEPT :], StartToken(_hash(self.token), now)]
        self._knows_tool_users = sys.platform == "linux" and os.geteuid() == 0

    def save(self) -> None:
        """Write the hashes of the newest tokens for the next start. A failure is only logged."""
        if self._path is None or not self.token:
            return
        beside = self._path.with_name(f"{self._path.name}.{secrets.token_hex(4)}")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(handle, "wb") as file:
                file.write(msgspec.json.encode(self._kept))
            beside.replace(self._path)
        except OSError as error:
            beside.unlink(missing_ok=True)
            logger.warning("pages have to be opened again after a restart: %s", error)

    def has_shown(self, text: str) -> bool:
        """Return whether a text is the token of this start or a valid token of an earlier one."""
        given = _hash(text)
        return any(hmac.compare_digest(given, one.sha256) for one in self._kept)

    def is_tool(self, scope: Scope) -> bool:
        """Return whether a connection belongs to a user of tools, or was closed by its program."""
        uid = scope.get("uid")
        if uid is None and self._knows_tool_users and scope.get("client"):
            own_port = (scope.get("server") or (None, None))[1]
            uid = uid_of(scope["client"][0], int(scope["client"][1]), own_port)
        return uid is not None and (uid < 0 or FIRST_TOOL_UID <= uid <= LAST_TOOL_UID)


def uid_of(host: str, port: int, own_port: int | None) -> int | None:
    """Return the id of the local user that made a TCP connection.

    Args:
        host: Source address of the connection.
        port: Source port; 0 if a proxy reported the address, so that the port is not known.
        own_port: Destination port; `None` if it is not known. It is compared because connections to
            other servers may have the same source address and port.

    Returns:
        `None` if the connection comes from another machine or is not a real connection; -1 if it
        comes from this machine and its program has closed it.
    """
    if not port:
        return None
    try:
        address = _unmapped(ip_address(host.partition("%")[0]))
    except ValueError:  # not an IP address, so this process has set it
        return None
    found: list[int] = []
    for table in TABLES:
        for row in _rows(table, f":{port:04X} "):
            is_source = row.address == address and row.port == port and not row.is_listening
            if is_source and own_port in (None, row.remote_port):
                found.append(row.uid if row.inode else -1)
    if found:
        # Several rows can match. A connection that is open takes precedence over a closed one (-1).
        return max(found)
    # Test clients call an application without a socket and invent both addresses. They must not be
    # refused as closed connections.
    is_real = own_port is not None and _listens(own_port)
    return -1 if is_real and _is_local(address) else None


def _listens(port: int) -> bool:
    """Return whether a socket on this machine listens on a port."""
    rows = (row for table in TABLES for row in _rows(table, f":{port:04X} "))
    return any(row.is_listening and row.port == port for row in rows)


def _rows(table: str, wanted: str) -> Iterator[_Row]:
    """Yield the rows of a table with a port in their line; the port is given as `:HEX `."""
    try:
        with open(table, encoding="ascii") as lines:
            next(lines, None)
            for line in lines:
                if wanted in line:
                    parts = line.split()
                    host, _, port = parts[1].partition(":")
                    remote_port = int(parts[2].partition(":")[2], 16)
                    who = (int(parts[7]), int(parts[9]))
                    ports = (int(port, 16), remote_port)
                    yield _Row(_address(host), *ports, *who, parts[3] == LISTENING)
    except OSError:
        return


def _address(text: str) -> Address:
    """Parse an address in the kernel's tables: 32-bit words in the byte order of this machine."""
    data = bytes.fromhex(text)
    if sys.byteorder == "little":
        data = b"".join(data[start : start + 4][::-1] for start in range(0, len(data), 4))
    return _unmapped(ip_address(data))


def _unmapped(address: Address) -> Address:
    """Return the IPv4 address of an IPv4-mapped IPv6 address such as `::ffff:127.0.0.1`.

    Other addresses are returned unchanged.
    """
    mapped = getattr(address, "ipv4_mapped", None)
    return address if mapped is None else mapped


def _is_local(address: Address) -> bool:
    """Return whether an address belongs to this machine."""
    if address.is_loopback:
        return True
    family = socket.AF_INET6 if address.version == 6 else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((str(address), 0))
    except OSError:
        return False
    return True


def _read_tokens(path: Path | None) -> list[StartToken]:
    """Return the tokens in the file, oldest first; none if another user can write the file."""
    if path is None:
        return []
    try:
        handle = os.open(path, _FLAGS)
    except FileNotFoundError:
        return []
    except OSError as error:
        logger.warning("%s cannot be read: %s", path, error.strerror)
        return []
    try:
        status = os.fstat(handle)
        is_ours = status.st_uid == os.geteuid() and not status.st_mode & 0o022
        if not stat.S_ISREG(status.st_mode) or not is_ours:
            logger.warning("%s is not used: others can write it", path)
            return []
        text = os.read(handle, MAX_FILE_BYTES)
    finally:
        os.close(handle)
    try:
        return msgspec.json.decode(text, type=list[StartToken])
    except (msgspec.DecodeError, UnicodeDecodeError):
        logger.warning("%s is damaged, so pages have to be opened again", path)
        return []


def _hash(text: str) -> str:
    return sha256(text.encode(errors="surrogatepass")).hexdigest()
