"""The address of a server, and the ways to reach it that follow from it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from ipaddress import ip_address
from typing import Literal, TypeAlias
from urllib.parse import SplitResult, urlsplit, urlunsplit

from msgspec import Struct

from arp.client.errors import InvalidAddress

Kind: TypeAlias = Literal["websocket", "sse", "stdio", "unix", "grpc"]

Transport: TypeAlias = Literal["auto", "websocket", "sse"]

ENDPOINT = "/_arp/v1"
"""The path of the WebSocket; SSE and POST are below it (protocol.md 6)."""

_SCHEMES: dict[str, tuple[str, tuple[Kind, ...]]] = {
    "ws": ("", ("websocket",)),
    "wss": ("s", ("websocket",)),
    "http": ("", ("websocket", "sse")),
    "https": ("s", ("websocket", "sse")),
    "http+sse": ("", ("sse",)),
    "https+sse": ("s", ("sse",)),
}

_HOW = (
    "write http://HOST:PORT (or https, ws, wss, http+sse, https+sse), grpc:HOST:PORT (or grpcs), "
    "unix:PATH, stdio:COMMAND, or stdio: with command=[…]"
)

_GRPC = {"grpc": False, "grpcs": True}
"""Schemes, and whether they are encrypted."""


class Address(Struct, frozen=True):
    """How a server can be reached."""

    kinds: tuple[Kind, ...]
    """Transports to try, in this order."""
    websocket_url: str = ""
    events_url: str = ""
    input_url: str = ""
    """Takes input over HTTP, and files whatever the transport."""
    is_loopback: bool = False
    """It is on this machine, where no proxy has a place."""
    command: tuple[str, ...] = ()
    """The child to start, for `stdio`."""
    socket_path: str = ""
    """Of a Unix socket."""
    grpc_target: str = ""
    """`HOST:PORT`, for gRPC."""
    is_encrypted: bool = False
    """Whether gRPC uses TLS."""


def parse_address(
    url: str, command: Sequence[str] | None = None, transport: Transport = "auto"
) -> Address:
    """Return the ways to reach a server.

    Args:
        url: `ws:` and `wss:` name the WebSocket itself, or a server's root; `http:` and `https:` a
            server's root or the prefix under which it is mounted; `http+sse:` and `https+sse:` the
            same without WebSocket; `unix:` the path of a socket; `grpc:` and `grpcs:` a host and
            a port; `stdio:` a child process, by a command line as in a shell, or by `command`.
        command: The child's program and arguments, with `stdio:` alone.
        transport: Takes this one, whatever the scheme says.

    Raises:
        InvalidAddress: Says what to write instead.
    """
    given: object = url
    if not isinstance(given, str):
        raise InvalidAddress(f"{type(given).__name__}: not an address of a server; {_HOW}")
    if url in ("stdio:", "stdio"):
        return _stdio(command)
    if command is None and url.startswith("stdio:"):
        return _stdio(_split_command(url.removeprefix("stdio:")))
    if command is not None:
        raise InvalidAddress(f"{url}: command=… goes with stdio: alone")
    if url.startswith("unix:"):
        return _unix(url)
    if url.partition(":")[0] in _GRPC:
        return _grpc(url)
    parts = _split(url)
    secure, kinds = _SCHEMES[parts.scheme]
    if transport != "auto":
        kinds = (transport,)
    path = _endpoint(parts)

    def made(scheme: str, tail: str = "") -> str:
        return urlunsplit((scheme + secure, parts.netloc, path + tail, parts.query, ""))

    return Address(
        kinds,
        made("ws"),
        made("http", "/events"),
        made("http", "/input"),
        _is_loopback(parts.hostname or ""),
    )


def _stdio(command: Sequence[str] | None) -> Address:
    if not command or isinstance(command, str):
        raise InvalidAddress(
            "stdio: needs a command: stdio:COMMAND, or command=[program, argument, …]"
        )
    return Address(("stdio",), command=tuple(command))


def _split_command(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError as error:
        raise InvalidAddress(
            f"stdio:{line}: {str(error).lower()}; write the command as in a shell"
        ) from None


def _unix(url: str) -> Address:
    path = url.removeprefix("unix:")
    if path.startswith("//"):  # as other programs write it
        path = path.removeprefix("//")
    if not path:
        raise InvalidAddress("unix: name the socket, as unix:/run/user/1000/arp.sock")
    return Address(("unix",), is_loopback=True, socket_path=path)


def _grpc(url: str) -> Address:
    scheme, _, target = url.partition(":")
    target = target.removeprefix("//").rstrip("/")
    try:
        parts = urlsplit(f"//{target}")
        port = parts.port
    except ValueError as error:
        raise InvalidAddress(f"{url}: {error}; {_HOW}") from None
    if not parts.hostname or not port or parts.path or parts.query or "@" in target:
        raise InvalidAddress(f"{url}: not a host and a port; write {scheme}:HOST:PORT")
    return Address(
        ("grpc",),
        is_loopback=_is_loopback(parts.hostname),
        grpc_target=parts.netloc,
        is_encrypted=_GRPC[scheme],
    )


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - reading it checks it
    except ValueError as error:
        raise InvalidAddress(f"{url}: {error}; {_HOW}") from None
    if parts.scheme not in _SCHEMES or not parts.hostname:
        raise InvalidAddress(f"{url}: not an address of a server; {_HOW}")
    if "@" in parts.netloc:
        raise InvalidAddress(
            f"{parts.scheme}://…@{parts.hostname}: give the secret as token=… instead"
        )
    return parts


def _endpoint(parts: SplitResult) -> str:
    prefix = parts.path.rstrip("/")
    if parts.scheme in ("ws", "wss") and prefix:
        return prefix
    return prefix.removesuffix(ENDPOINT) + ENDPOINT


def _is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
