"""Keeps a server's own agents and tools from using it: the token of a start, and users of tools.

Theory of operation. What an agent runs reaches the server that asks whether it may run, as every
program of this machine does. So an app that runs commands has a token even if its author gave it
none: a new one at each start, which is printed once, in the address. The file beside the ledger has
the hashes of the newest ones, so that pages which are open survive a restart, while nobody who
reads the file can come in. It is read once, at the start: what is written into it later lets nobody
in before the next one.

Where we are root, tools run as users of their own. The kernel says which user made a connection
from this machine; the tools' users are refused, whatever they know. A connection that its program
has closed already belongs to nobody and is refused too: else a program could send a request and be
gone before we ask.
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
"""Starts whose tokens stay valid."""
KEPT_S: Final = 30 * 86_400.0
"""How long a token stays valid after its start."""
MAX_FILE_BYTES: Final = 1 << 16
FIRST_TOOL_UID: Final = 61_184
LAST_TOOL_UID: Final = 65_519
"""Users as which tools run; `arp.process.sandbox` gives them out."""
TABLES: Final = ("/proc/self/net/tcp", "/proc/self/net/tcp6")
LISTENING: Final = "0A"
"""How the tables write the state of a socket that accepts connections."""

_FLAGS: Final = os.O_RDONLY | sum(
    getattr(os, name, 0) for name in ("O_NONBLOCK", "O_NOFOLLOW", "O_CLOEXEC")
)


class StartToken(Struct, frozen=True):
    """The token of a start, as the file has it."""

    sha256: str
    created_at: float
    """Seconds since 1970."""


class _Row(NamedTuple):
    """A connection in one of the kernel's tables."""

    address: Address
    port: int
    remote_port: int
    uid: int
    inode: int
    """0: no program holds it any more."""
    is_listening: bool


class OwnCode:
    """The code that an app runs, as far as it must not use the app's own server.

    Args:
        path: The file with the tokens of earlier starts; `None`: they are forgotten.
        has_token: Whether this start has a token.
    """

    def __init__(self, path: Path | None = None, *, has_token: bool = True) -> None:
        self.token = secrets.token_urlsafe(32) if has_token else ""
        """The token of this start; empty: there is none."""
        self._path = path
        self._kept: list[StartToken] = []
        if has_token:
            now = time.time()
            earlier = [one for one in _read(path) if 0 <= now - one.created_at < KEPT_S]
            self._kept = [*earlier[1 - KEPT :], StartToken(_hash(self.token), now)]
        self._has_users = sys.platform == "linux" and os.geteuid() == 0

    def save(self) -> None:
        """Write the tokens of the newest starts, for the next one; a failure is logged."""
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
        """Return whether a text is the token of this start, or of one of those before."""
        given = _hash(text)
        return any(hmac.compare_digest(given, one.sha256) for one in self._kept)

    def is_tool(self, scope: Scope) -> bool:
        """Return whether a connection is of a user as whom tools run, or of nobody any more."""
        uid = scope.get("uid")
        if uid is None and self._has_users and scope.get("client"):
            own_port = (scope.get("server") or (None, None))[1]
            uid = uid_of(scope["client"][0], int(scope["client"][1]), own_port)
        return uid is not None and (uid < 0 or FIRST_TOOL_UID <= uid <= LAST_TOOL_UID)


def uid_of(host: str, port: int, own_port: int | None) -> int | None:
    """Return which user of this machine made a TCP connection.

    Args:
        host: The address from which it was made.
        port: The port there; 0: a proxy has said where it comes from, so that nobody knows.
        own_port: The port that it was made to. Connections to other servers may have the same
            address and port. `None`: it is not known.

    Returns:
        `None`: it comes from another machine, or is no connection at all. -1: it comes from this
        machine, and its program has closed it.
    """
    if not port:
        return None
    try:
        address = _plain(ip_address(host.partition("%")[0]))
    except ValueError:  # it was put there by this process
        return None
    found: list[int] = []
    for table in TABLES:
        for row in _rows(table, f":{port:04X} "):
            is_its_own = row.address == address and row.port == port and not row.is_listening
            if is_its_own and own_port in (None, row.remote_port):
                found.append(row.uid if row.inode else -1)
    if found:
        return max(found)
    # Test clients call an application without a socket and make up both addresses.
    is_real = own_port is not None and _listens(own_port)
    return -1 if is_real and _is_here(address) else None


def _listens(port: int) -> bool:
    """Return whether a socket of this machine accepts connections at a port."""
    rows = (row for table in TABLES for row in _rows(table, f":{port:04X} "))
    return any(row.is_listening and row.port == port for row in rows)


def _rows(table: str, wanted: str) -> Iterator[_Row]:
    """Yield the connections in a table that have a port."""
    try:
        with open(table, encoding="ascii") as lines:
            next(lines, None)
            for line in lines:
                if wanted in line:
                    parts = line.split()
                    place, _, port = parts[1].partition(":")
                    remote_port = int(parts[2].partition(":")[2], 16)
                    who = (int(parts[7]), int(parts[9]))
                    ports = (int(port, 16), remote_port)
                    yield _Row(_address(place), *ports, *who, parts[3] == LISTENING)
    except OSError:
        return


def _address(text: str) -> Address:
    """Read an address of the kernel's tables: words of 32 bits in the order of this machine."""
    data = bytes.fromhex(text)
    if sys.byteorder == "little":
        data = b"".join(data[start : start + 4][::-1] for start in range(0, len(data), 4))
    return _plain(ip_address(data))


def _plain(address: Address) -> Address:
    """Return the IPv4 address that an IPv6 address such as `::ffff:127.0.0.1` contains, if any."""
    mapped = getattr(address, "ipv4_mapped", None)
    return address if mapped is None else mapped


def _is_here(address: Address) -> bool:
    """Return whether an address is one of this machine."""
    if address.is_loopback:
        return True
    family = socket.AF_INET6 if address.version == 6 else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((str(address), 0))
    except OSError:
        return False
    return True


def _read(path: Path | None) -> list[StartToken]:
    """Return the tokens in a file of ours that nobody else can write, the oldest first."""
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
