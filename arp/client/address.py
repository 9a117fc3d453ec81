"""The address of a server, and the transports that can reach it."""

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

FileChannel: TypeAlias = Literal["post", "descriptors", "call"]
"""How files are sent: in a POST request, as descriptors with their input, or in a gRPC call."""

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

_ADVICE = (
    "write http://HOST:PORT (or https, ws, wss, http+sse, https+sse), grpc:HOST:PORT (or grpcs), "
    "unix:PATH, stdio:COMMAND, or stdio: with command=[…]"
)

_GRPC = {"grpc": False, "grpcs": True}
"""Schemes of gRPC, and whether each is encrypted."""


class Address(Struct, frozen=True):
    """Transports to try for a server, and the URL, command, path or target of each."""

    kinds: tuple[Kind, ...]
    """Transports to try, in this order."""
    token_in_hello: bool = False
    """Whether the token is sent in `hello`, because the transport has no headers."""
    file_channel: FileChannel | None = None
    """How files are sent; `None` means that the transport carries no files."""
    websocket_url: str = ""
    events_url: str = ""
    input_url: str = ""
    """URL for inputs over SSE's POST requests, and for files over SSE and WebSocket."""
    is_loopback: bool = False
    """Whether the server is on this machine, so that no proxy is used."""
    command: tuple[str, ...] = ()
    """Command that starts the child process, for `stdio`."""
    socket_path: str = ""
    """Path of the Unix socket."""
    grpc_target: str = ""
    """`HOST:PORT`, for gRPC."""
    is_encrypted: bool = False
    """Whether gRPC uses TLS."""


def parse_address(
    url: str, command: Sequence[str] | None = None, transport: Transport = "auto"
) -> Address:
    """Return the transports that can reach a server.

    Args:
        url: Address of the server.

            - `ws:` and `wss:`: the URL of the WebSocket, or of the root of the server.
            - `http:` and `https:`: the URL of the root, or the prefix under which the server is
              mounted.
            - `http+sse:` and `https+sse:`: the same, without WebSocket.
            - `unix:`: the path of a socket.
            - `grpc:` and `grpcs:`: a host and a port.
            - `stdio:`: the command line of a child process, as in a shell; nothing if there is
              `command`.
        command: Program and arguments of the child process; only with `stdio:`.
        transport: Transport to use instead of those of the scheme.

    Raises:
        InvalidAddress: The address is not valid. The message says what to write instead.
    """
    given: object = url
    if not isinstance(given, str):
        raise InvalidAddress(f"{type(given).__name__}: not an address of a server; {_ADVICE}")
    if url in ("stdio:", "stdio"):
        return _stdio(command)
    if command is None and url.startswith("stdio:"):
        return _stdio(_split_command(url.removeprefix("stdio:")))
    if command is not None:
        raise InvalidAddress(f"{url}: command=… is only for stdio:")
    if url.startswith("unix:"):
        return _unix(url)
    if url.partition(":")[0] in _GRPC:
        return _grpc(url)
    parts = _split(url)
    secure, kinds = _SCHEMES[parts.scheme]
    if transport != "auto":
        kinds = (transport,)
    path = _endpoint(parts)

    def url_of(scheme: str, tail: str = "") -> str:
        return urlunsplit((scheme + secure, parts.netloc, path + tail, parts.query, ""))

    return Address(
        kinds,
        file_channel="post",
        websocket_url=url_of("ws"),
        events_url=url_of("http", "/events"),
        input_url=url_of("http", "/input"),
        is_loopback=_is_loopback(parts.hostname or ""),
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
    if path.startswith("//"):  # other programs write unix://PATH
        path = path.removeprefix("//")
    if not path:
        raise InvalidAddress("unix: needs a path, for example unix:/run/user/1000/arp.sock")
    return Address(
        ("unix",),
        token_in_hello=True,
        file_channel="descriptors",
        is_loopback=True,
        socket_path=path,
    )


def _grpc(url: str) -> Address:
    scheme, _, target = url.partition(":")
    target = target.removeprefix("//").rstrip("/")
    try:
        parts = urlsplit(f"//{target}")
        port = parts.port
    except ValueError as error:
        raise InvalidAddress(f"{url}: {error}; {_ADVICE}") from None
    if not parts.hostname or not port or parts.path or parts.query or "@" in target:
        raise InvalidAddress(f"{url}: not a host and a port; write {scheme}:HOST:PORT")
    return Address(
        ("grpc",),
        file_channel="call",
        is_loopback=_is_loopback(parts.hostname),
        grpc_target=parts.netloc,
        is_encrypted=_GRPC[scheme],
    )


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - the property raises if the port is not valid
    except ValueError as error:
        raise InvalidAddress(f"{url}: {error}; {_ADVICE}") from None
    if parts.scheme not in _SCHEMES or not parts.hostname:
        raise InvalidAddress(f"{url}: not an address of a server; {_ADVICE}")
    # A URL is part of errors and log lines, so it must not contain a secret. This message does not
    # repeat it either.
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
