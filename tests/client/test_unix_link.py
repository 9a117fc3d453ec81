"""Unix sockets as the client sees them: what each end of a connection means."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from arp.client.address import parse_address
from arp.client.errors import InvalidAddress, LinkLost, ServerRefused, SessionDeleted
from arp.client.links.dial import dialer
from arp.client.links.unix_link import UnixLink, open_unix
from arp.protocol.errors import PermissionDenied
from arp.protocol.framing.length_prefix import farewell, prefixed
from arp.unix.socket_path import SocketListener


class Server:
    """Listens, and does what a test says with its one connection."""

    def __init__(self, path: Path) -> None:
        self.listener = SocketListener(path)
        self.address = parse_address(f"unix:{path}")

    async def link(self) -> tuple[UnixLink, socket.socket]:
        link = await open_unix(self.address, b"hello")
        own = self.listener.accept()
        own.setblocking(True)
        assert own.recv(100) == prefixed([b"hello"])
        return link, own


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    made = Server(tmp_path / "s")
    yield made
    made.listener.close()


async def lost(link: UnixLink) -> LinkLost:
    try:
        async with asyncio.timeout(5):
            while True:
                await link.receive()
    except LinkLost as found:
        await link.aclose()
        return found


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (1000, SessionDeleted),
        (1003, ServerRefused),
        (1008, PermissionDenied),
        (1009, ServerRefused),
        (1011, None),
        (1012, None),
        (1013, None),
    ],
)
async def test_what_the_server_says_at_its_end_decides_about_coming_back(
    server: Server, code: int, error: type[Exception] | None
) -> None:
    """As the close codes of a WebSocket do."""
    link, own = await server.link()
    own.sendall(prefixed([b"frame"]) + farewell(code, "why\x1b[2J"))
    own.close()
    assert await link.receive() == b"frame"
    found = await lost(link)
    assert type(found.error) is (error or type(None))
    assert "why" in found.reason
    assert "\x1b" not in found.reason


async def test_an_end_without_a_word_is_worth_coming_back(server: Server) -> None:
    link, own = await server.link()
    own.sendall(b"\0\0")
    own.close()
    found = await lost(link)
    assert found.error is None
    assert "ended within a frame" in found.reason
    with pytest.raises(LinkLost):
        await link.send(b"more")


async def test_a_frame_that_is_too_long_is_the_servers_fault(server: Server) -> None:
    link, own = await server.link()
    own.sendall(b"\x01\0\0\x01")
    found = await lost(link)
    own.close()
    assert isinstance(found.error, ServerRefused)
    assert "16777217 bytes" in found.reason


async def test_the_client_says_goodbye(server: Server) -> None:
    link, own = await server.link()
    await link.aclose()
    assert own.recv(100) == farewell(1001, "going away")
    assert own.recv(100) == b""
    own.close()


async def test_nobody_there_is_worth_another_try_and_a_wrong_path_is_not(tmp_path: Path) -> None:
    with pytest.raises(LinkLost, match="No such file") as found:
        await open_unix(parse_address(f"unix:{tmp_path}/s"), b"")
    assert found.value.error is None
    (tmp_path / "f").touch()
    with pytest.raises(LinkLost, match="a file, not a socket") as found:
        await open_unix(parse_address(f"unix:{tmp_path}/f"), b"")
    assert isinstance(found.value.error, ServerRefused)


def test_the_encoding_is_messagepack_unless_it_is_named() -> None:
    assert dialer("unix:/x", {}).access.encoding == "msgpack"
    assert dialer("unix:/x", {"encoding": "json"}).access.encoding == "json"
    with pytest.raises(InvalidAddress, match="msgpack or json, not cbor"):
        dialer("unix:/x", {"encoding": "cbor"})


def test_only_a_unix_socket_is_listened_on() -> None:
    with pytest.raises(InvalidAddress, match="write unix:PATH"):
        dialer("http://h", {"listen": True})
