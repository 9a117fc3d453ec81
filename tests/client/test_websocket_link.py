from __future__ import annotations

import asyncio
import ssl
from http import HTTPStatus
from typing import Any

import pytest
from websockets.asyncio.server import ServerConnection
from websockets.http11 import Request, Response

from arp.client.address import parse_address
from arp.client.errors import LinkLost, ServerRefused
from arp.client.links.websocket_link import _not_opened, open_websocket
from arp.client.options import LinkSettings
from arp.protocol.errors import PermissionDenied, Unauthenticated
from tests.client.loopback import Peer, websocket_server

HELLO = b'{"v":1,"type":"hello"}'


async def echo(peer: Peer) -> None:
    async for frame in peer.socket:
        await peer.socket.send(frame)


async def lost_when(talk: Any, **settings: Any) -> LinkLost:
    """How the client sees a connection end that the server ends so, in whatever it is doing."""
    async with websocket_server(talk, **settings) as url, asyncio.timeout(30):
        with pytest.raises(LinkLost) as lost:
            await read_to_the_end(url)
    return lost.value


async def read_to_the_end(url: str) -> None:
    link = await open_websocket(parse_address(url), LinkSettings(), HELLO)
    try:
        while True:
            await link.receive()
    finally:
        await link.aclose()
        await link.aclose()


async def test_sending_on_a_closed_connection_is_a_lost_link() -> None:
    async with websocket_server(echo) as url:
        link = await open_websocket(parse_address(url), LinkSettings(), HELLO)
        await link.aclose()
        with pytest.raises(LinkLost, match="closed with 1000"):
            await link.send(b"{}")


@pytest.mark.parametrize(("encoding", "kind"), [("json", str), ("msgpack", bytes), ("cbor", bytes)])
async def test_json_travels_as_text_and_the_others_as_binary(encoding: Any, kind: type) -> None:
    """JSON needs no subprotocol, which a server of the draft does not select (protocol.md 1)."""
    kinds: list[tuple[str | None, type]] = []

    async def talk(peer: Peer) -> None:
        async for frame in peer.socket:
            kinds.append((peer.socket.subprotocol, type(frame)))
            await peer.socket.send(frame)

    async with websocket_server(talk) as url:
        link = await open_websocket(parse_address(url), LinkSettings(encoding), HELLO)
        assert await link.receive() == HELLO
        await link.send(b"two")
        assert await link.receive() == b"two"
        await link.aclose()
    offered = None if encoding == "json" else f"arp.session.v1.{encoding}"
    assert kinds == [(offered, kind)] * 2


async def test_handshake_carries_the_token_in_a_header_and_offers_no_compression() -> None:
    seen: list[Request] = []

    def look(_: ServerConnection, request: Request) -> None:
        seen.append(request)

    async with websocket_server(echo, process_request=look) as url:
        link = await open_websocket(parse_address(url), LinkSettings(token="tok"), HELLO)
        await link.aclose()
    (request,) = seen
    assert request.headers["Authorization"] == "Bearer tok"
    assert "tok" not in request.path
    assert "Sec-WebSocket-Extensions" not in request.headers


async def test_message_of_several_mebibytes_arrives() -> None:
    async with websocket_server(echo, max_size=None) as url:
        link = await open_websocket(parse_address(url), LinkSettings(), HELLO)
        await link.receive()
        await link.send(b" " * (4 << 20))
        assert len(await link.receive()) == 4 << 20
        await link.aclose()


@pytest.mark.parametrize(
    ("code", "ends"), [(1000, True), (1012, False), (1013, False), (1003, True)]
)
async def test_close_code_says_whether_to_come_back(code: int, ends: bool) -> None:
    """Source: protocol.md 6."""

    async def talk(peer: Peer) -> None:
        await peer.socket.close(code, "because")

    lost = await lost_when(talk)
    assert lost.reason == f"closed with {code}: because"
    assert (lost.error is not None) is ends


async def test_1008_is_a_refusal() -> None:
    async def talk(peer: Peer) -> None:
        await peer.socket.close(1008, "no such token")

    lost = await lost_when(talk)
    assert isinstance(lost.error, PermissionDenied)
    assert "no such token" in str(lost.error)


async def test_broken_connection_is_worth_coming_back_for() -> None:
    async def talk(peer: Peer) -> None:
        peer.cut()

    lost = await lost_when(talk)
    assert (lost.reason, lost.error) == ("the connection broke off", None)


async def test_message_beyond_all_bounds_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arp.client.links.websocket_link.MAX_FRAME_BYTES", 1000)

    async def talk(peer: Peer) -> None:
        await peer.socket.send("x" * 1001)
        await peer.socket.wait_closed()

    lost = await lost_when(talk)
    assert isinstance(lost.error, ServerRefused)
    assert lost.reason == "the server sent a message of more than 1000 bytes"


async def test_peer_that_answers_no_ping_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arp.client.links.websocket_link.PING_INTERVAL_S", 0.01)
    monkeypatch.setattr("arp.client.links.websocket_link.PING_TIMEOUT_S", 0.01)
    monkeypatch.setattr("arp.client.links.websocket_link.CLOSE_TIMEOUT_S", 0.01)
    left = asyncio.Event()

    async def talk(peer: Peer) -> None:
        peer.socket.transport.pause_reading()
        await left.wait()
        peer.cut()

    async with websocket_server(talk) as url:
        link = await open_websocket(parse_address(url), LinkSettings(), HELLO)
        with pytest.raises(LinkLost, match="keepalive ping timeout") as lost:
            async with asyncio.timeout(30):
                await link.receive()
        left.set()
        await link.aclose()
    assert lost.value.error is None


@pytest.mark.parametrize(
    ("status", "error", "unavailable"),
    [
        (401, Unauthenticated, False),
        (403, PermissionDenied, True),
        (404, ServerRefused, True),
        (503, type(None), True),
    ],
)
async def test_refused_handshake_says_why(status: int, error: type, unavailable: bool) -> None:
    def refuse(socket: ServerConnection, _: Request) -> Response:
        return socket.respond(HTTPStatus(status), "not you\n")

    async with websocket_server(echo, process_request=refuse) as url:
        with pytest.raises(LinkLost, match=f"HTTP {status} from .*: not you") as lost:
            await open_websocket(parse_address(url), LinkSettings(), HELLO)
    assert type(lost.value.error) is error
    assert lost.value.unavailable is unavailable


async def test_server_that_is_down_is_worth_coming_back_for(unused_tcp_port: int) -> None:
    address = parse_address(f"ws://127.0.0.1:{unused_tcp_port}")
    with pytest.raises(LinkLost) as lost:
        await open_websocket(address, LinkSettings(), HELLO)
    assert (lost.value.error, lost.value.unavailable) == (None, False)


async def raw_server_answers(answer: bytes) -> LinkLost:
    """What the client makes of a server that says only these bytes."""

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        writer.close()

    server = await asyncio.start_server(handler, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(LinkLost) as lost:
            await open_websocket(parse_address(f"ws://127.0.0.1:{port}"), LinkSettings(), HELLO)
    return lost.value


async def test_server_that_hangs_up_in_the_handshake_may_do_over_another_transport() -> None:
    lost = await raw_server_answers(b"")
    assert (lost.error, lost.unavailable) == (None, True)


async def test_what_is_no_websocket_may_do_over_another_transport() -> None:
    lost = await raw_server_answers(b"SSH-2.0-OpenSSH_9.2\r\n\r\n")
    assert isinstance(lost.error, ServerRefused)
    assert lost.unavailable


async def test_silent_handshake_may_do_over_another_transport(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("arp.client.links.websocket_link.OPEN_TIMEOUT_S", 0.01)
    release = asyncio.Event()

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await release.wait()
        writer.close()

    server = await asyncio.start_server(handler, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(LinkLost, match=r"no answer within 0\.01 s") as lost:
            await open_websocket(parse_address(f"ws://127.0.0.1:{port}"), LinkSettings(), HELLO)
        release.set()
    assert (lost.value.error, lost.value.unavailable) == (None, True)


async def test_server_without_our_encoding_is_refused_with_the_way_out() -> None:
    async with websocket_server(echo, select_subprotocol=None) as url:
        with pytest.raises(LinkLost, match=r"does not speak arp\.session\.v1\.cbor") as lost:
            await open_websocket(parse_address(url), LinkSettings("cbor"), HELLO)
        assert 'encoding="json"' in str(lost.value.error)
        link = await open_websocket(parse_address(url), LinkSettings("json"), HELLO)
        await link.aclose()


def test_certificate_that_is_not_trusted_ends_it() -> None:
    error = ssl.SSLCertVerificationError("x")
    error.verify_message = "self-signed certificate"
    lost = _not_opened(error, "wss://h")
    assert isinstance(lost.error, ServerRefused)
    assert lost.reason == "wss://h: self-signed certificate"


def test_other_failures_of_the_network_are_worth_coming_back_for() -> None:
    lost = _not_opened(OSError("name not known"), "wss://h")
    assert (lost.reason, lost.error) == ("wss://h: name not known", None)
