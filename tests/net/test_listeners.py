"""Every listener has the same bounds: times, numbers, sizes, values, nesting, stalls."""

from __future__ import annotations

import asyncio
import json
import os
import socket as socket_module
from array import array
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from arp import Bounds
from arp.net import bounded_server
from arp.protocol.framing.length_prefix import prefixed
from arp.protocol.json_value import MAX_VALUES
from arp.runtime.contract import types as ari
from arp.runtime.contract.errors import InvalidArgument, Unavailable
from arp.runtime.remote.grpc_runtime import GrpcRuntime
from tests.net.listeners import (
    GRPC,
    HTTP,
    Client,
    Listener,
    ari_grpc,
    ari_http,
    arp_serve,
    arp_unix,
    body_of,
    client,
)
from tests.support.waiting import becomes

HEADER_S, BODY_S = 0.5, 0.8
SHORT = Bounds(header_s=HEADER_S, body_s=BODY_S)

every_http = pytest.mark.parametrize("name", HTTP)


async def posted(listener: Listener, body: bytes) -> bytes:
    """Return the whole answer to a POST."""
    async with client(listener) as one:
        length = {"Content-Length": str(len(body)), "Connection": "close"}
        await one.send(listener.head(**length) + "\r\n")
        await one.send(body)
        return await one.rest()


# -- times -----------------------------------------------------------------------------------------


@every_http
async def test_headers_and_bodies_that_do_not_come_close_the_connection(
    name: str, tmp_path: Path
) -> None:
    """T28. Silence, half a head, half a body, and a head that comes byte by byte."""
    async with HTTP[name](SHORT, tmp_path) as listener:
        half = listener.head(**{"Content-Length": "100"}) + '\r\n{"a": '
        shapes = {"": b"", listener.head()[:-10]: b" 408 ", half: b"HTTP/1.1 4"}
        async with AsyncExitStack() as stack:
            sent = {one: await stack.enter_async_context(client(listener)) for one in shapes}
            for text, one in sent.items():
                await one.send(text)
            answers = await asyncio.gather(*[one.rest() for one in sent.values()])
            assert min(one.age_s for one in sent.values()) > HEADER_S * 0.9
        for answer, expected in zip(answers, shapes.values(), strict=True):
            assert expected in answer[:20]
        async with client(listener) as one:
            await one.send(listener.head())
            reading = asyncio.ensure_future(one.rest())
            while not reading.done():
                await one.send("a")
                await asyncio.wait((reading,), timeout=HEADER_S / 6)
            assert b" 408 " in (await reading)[:20]


async def test_handshake_of_tls_that_does_not_come_closes_the_connection(tmp_path: Path) -> None:
    async with HTTP["arp ari serve --http, TLS"](SHORT, tmp_path) as listener:
        plain = Listener(listener.port)
        async with client(plain) as one:
            await one.send(b"\x16\x03\x01\x02\x00\x01\x00")
            await one.rest()
            assert HEADER_S * 0.9 < one.age_s < 10


@pytest.mark.parametrize("name", GRPC)
async def test_handshake_of_grpc_that_does_not_come_closes_the_connection(
    name: str, tmp_path: Path
) -> None:
    async with GRPC[name](SHORT, tmp_path) as listener, client(listener) as one:
        await one.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n")
        await one.rest()
        assert one.age_s < 10


async def test_message_of_a_websocket_that_does_not_come_whole_closes_it(tmp_path: Path) -> None:
    """Half a frame, and a message whose last fragment does not come. Silence is no fault."""
    half_frame = b"\x81\xfe\x04\x00" + bytes(4) + b"{" * 100
    fragment = b"\x01\x85" + bytes(4) + b'{"v":'
    async with arp_serve(SHORT, tmp_path) as listener, AsyncExitStack() as stack:
        sent = {
            data: await stack.enter_async_context(client(listener))
            for data in (b"", half_frame, fragment)
        }
        for data, one in sent.items():
            upgrade = {"Connection": "Upgrade", "Upgrade": "websocket"}
            keys = {"Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version": "13"}
            at = listener._replace(path="/_arp/v1", headers={})
            await one.send(at.head("GET", **upgrade, **keys) + "\r\n")
            assert b" 101 " in await one.reader.readuntil(b"\r\n\r\n")
            await one.send(data)
        for data in (half_frame, fragment):
            await sent[data].rest()
            assert sent[data].age_s > BODY_S * 0.9
        assert not sent[b""].reader.at_eof()


async def test_frame_of_a_unix_socket_that_does_not_come_whole_closes_it(tmp_path: Path) -> None:
    async with arp_unix(SHORT, tmp_path) as listener, AsyncExitStack() as stack:
        silent, half, slow = [await stack.enter_async_context(client(listener)) for _ in range(3)]
        await half.send(b"\0\0\1\0{")
        for byte in prefixed([b'{"v":1,"type":"ping","id":"p"}']):
            await slow.send(bytes([byte]))  # each byte gives more time
            await asyncio.sleep(BODY_S / 20)
        answer = await half.rest()
        assert b"the rest of a frame did not come in time" in answer
        assert slow.age_s > BODY_S
        assert not silent.reader.at_eof()
        assert not slow.reader.at_eof()


async def test_reader_that_takes_nothing_is_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An answer of megabytes, to a client that reads none of it; as tests/server/test_stalls.py."""
    monkeypatch.setattr(bounded_server, "STALL_S", 1.0)
    async with ari_http(Bounds(), tmp_path) as listener:
        narrow = socket_module.socket()
        narrow.setsockopt(socket_module.SOL_SOCKET, socket_module.SO_RCVBUF, 4096)
        narrow.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(narrow, ("127.0.0.1", listener.port))
        text = "x" * (8 << 20)
        body = json.dumps({"title": text, "cwd": "."}).encode()
        at = listener._replace(path="/ari/v1/create_session")
        await loop.sock_sendall(narrow, at.head(**{"Content-Length": str(len(body))}).encode())
        await loop.sock_sendall(narrow, b"\r\n" + body)
        server_side = listener.port
        await becomes(lambda: not _is_connected(server_side, narrow), within_s=15)
        narrow.close()


def _is_connected(port: int, own: socket_module.socket) -> bool:
    """Whether the other end of a connection of this machine still has it."""
    local = f"{own.getsockname()[1]:04X}"
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    pairs = [(line.split()[1], line.split()[2], line.split()[3]) for line in lines]
    return any(
        mine.endswith(f":{port:04X}") and theirs.endswith(f":{local}") and state == "01"
        for mine, theirs, state in pairs
    )


# -- numbers ---------------------------------------------------------------------------------------


@every_http
async def test_address_with_too_many_connections_is_told_and_others_are_served(
    name: str, tmp_path: Path
) -> None:
    """T29."""
    bounds = Bounds(max_connections_per_address=3)
    async with HTTP[name](bounds, tmp_path) as listener, AsyncExitStack() as stack:
        for _ in range(3):
            one = await stack.enter_async_context(client(listener))
            await one.send(listener.head()[:-10])
        async with client(listener) as extra:
            assert b" 429 " in (await extra.rest())[:20]
        async with client(listener, source="127.0.0.2") as other:
            await other.send(listener.head("GET") + "Connection: close\r\n\r\n")
            assert b" 429 " not in (await other.rest())[:20]


@every_http
async def test_unfinished_requests_of_an_address_are_bounded(name: str, tmp_path: Path) -> None:
    """T28: those that have waited longest are closed, long before they are late."""
    bounds = Bounds(header_s=60, body_s=60, max_unfinished_per_address=5)
    async with HTTP[name](bounds, tmp_path) as listener, AsyncExitStack() as stack:
        slow: list[Client] = []
        for _ in range(30):
            one = await stack.enter_async_context(client(listener))
            await one.send(listener.head()[:-10])
            slow.append(one)
        await becomes(lambda: sum(one.reader.at_eof() for one in slow) >= 25, within_s=10)


async def test_unix_connections_of_a_user_are_bounded(tmp_path: Path) -> None:
    bounds = Bounds(max_connections_per_address=3)
    async with arp_unix(bounds, tmp_path) as listener, AsyncExitStack() as stack:
        for _ in range(3):
            one = await stack.enter_async_context(client(listener))
            await one.reader.readexactly(4)  # it is served
        async with client(listener) as extra:
            refused = await extra.rest()
            assert b"\x03\xf5" in refused[:6]  # 1013
            assert b"of this user" in refused


async def test_calls_of_an_address_are_bounded(tmp_path: Path) -> None:
    async with ari_grpc(Bounds(max_connections_per_address=2), tmp_path) as listener:
        runtime = GrpcRuntime(f"127.0.0.1:{listener.port}")
        created = await runtime.create_session(ari.CreateSessionRequest(title="T"))
        request = ari.SessionEventsRequest(created.session.session_id)
        other = GrpcRuntime(f"127.0.0.1:{listener.port}")
        streams = [await runtime.session_events(request), await other.session_events(request)]
        third = GrpcRuntime(f"127.0.0.1:{listener.port}")
        with pytest.raises(Unavailable, match="up to the bound"):
            await third.version(ari.VersionRequest())
        for stream in streams:
            await stream.aclose()
        for one in (runtime, other, third):
            await one.close()


# -- sizes and shapes ------------------------------------------------------------------------------


@every_http
async def test_length_beyond_the_limit_is_refused_before_a_byte_has_come(
    name: str, tmp_path: Path
) -> None:
    async with HTTP[name](Bounds(), tmp_path) as listener, client(listener) as one:
        await one.send(listener.head(**{"Content-Length": "100000000"}) + "\r\n")
        async with asyncio.timeout(5):
            head = await one.reader.readuntil(b"\r\n\r\n")
    assert head.startswith((b"HTTP/1.1 413 ", b"HTTP/1.1 400 ")), head


@every_http
async def test_body_without_a_length_is_refused_when_it_is_too_long(
    name: str, tmp_path: Path
) -> None:
    async with HTTP[name](Bounds(), tmp_path) as listener, client(listener) as one:
        await one.send(listener.head(**{"Transfer-Encoding": "chunked"}) + "\r\n")
        reading = asyncio.ensure_future(one.reader.readuntil(b"\r\n\r\n"))
        sent = 0
        while not reading.done() and sent < 64 << 20:
            await one.send(b"100000\r\n" + b" " * 0x100000 + b"\r\n")
            sent += 0x100000
            await asyncio.sleep(0)
        head = await reading
    assert head.startswith((b"HTTP/1.1 413 ", b"HTTP/1.1 400 ")), head


@every_http
async def test_endless_headers_are_refused(name: str, tmp_path: Path) -> None:
    async with HTTP[name](Bounds(), tmp_path) as listener, client(listener) as one:
        await one.send(listener.head() + "A: ")
        reading = asyncio.ensure_future(one.rest())
        sent = 0
        while not reading.done() and sent < 16 << 20:
            await one.send(b"a" * 10_000)
            sent += 10_000
            await asyncio.sleep(0)
        await reading
    assert sent < 16 << 20


@every_http
@pytest.mark.parametrize("bomb", [[[]] * (10 * MAX_VALUES + 1), "deep"], ids=["arrays", "nesting"])
async def test_bomb_of_arrays_is_refused_by_name(name: str, bomb: Any, tmp_path: Path) -> None:
    async with HTTP[name](Bounds(), tmp_path) as listener:
        body = body_of(listener, bomb).replace(b'"deep"', b"[" * 100_000 + b"]" * 100_000)
        answer = await posted(listener, body)
        head, _, told = answer.partition(b"\r\n\r\n")
        assert head.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 413 ", b"HTTP/1.1 422 ")), answer
        assert b"values" in told or b"nested" in told or b"expected a JSON object" in told, told
        again = await posted(listener, body_of(listener, 1))
        assert again.startswith(b"HTTP/1.1 "), again  # it serves on


async def test_bodies_under_way_are_bounded_over_ari(tmp_path: Path) -> None:
    """One request always fits; what others send at once is refused."""
    bounds = Bounds(max_received_bytes=1, max_received_bytes_per_user=1)
    async with ari_http(bounds, tmp_path) as listener, AsyncExitStack() as stack:
        answers = []
        for _ in range(2):
            one, size = await stack.enter_async_context(client(listener)), 31 << 20
            await one.send(listener.head(**{"Content-Length": str(size)}) + "\r\n")
            one.writer.write(b" " * (size - 100))
            head = one.reader.readuntil(b"\r\n\r\n")
            answers.append(asyncio.ensure_future(head))
        done, _ = await asyncio.wait(answers, timeout=20, return_when="FIRST_COMPLETED")
        assert [b" 503 " in answer.result() for answer in done] == [True]
        for answer in answers:
            answer.cancel()


async def test_bombs_over_grpc_are_refused(tmp_path: Path) -> None:
    """Fields without number, and JSON in a field."""
    async with ari_grpc(Bounds(), tmp_path) as listener:
        runtime = GrpcRuntime(f"127.0.0.1:{listener.port}")
        many = tuple([ari.RuntimeMessage(content="a")] * (10 * MAX_VALUES))
        with pytest.raises(InvalidArgument, match="more than 200000 values"):
            await runtime.create_session(ari.CreateSessionRequest(history=many))
        assert (await runtime.version(ari.VersionRequest())).runtime_name == "fake"
        await runtime.close()


# -- descriptors -----------------------------------------------------------------------------------


async def test_descriptors_of_unfinished_frames_count_and_are_closed(tmp_path: Path) -> None:
    """Many connections with half a frame and twenty descriptors each: a user has a bound."""
    loop, half = asyncio.get_running_loop(), b"\0\0\1\0{"
    async with arp_unix(SHORT, tmp_path) as listener:
        at_start = open_descriptors()
        own = [socket_module.socket(socket_module.AF_UNIX) for _ in range(30)]
        reader, writer = os.pipe()
        rights = array("i", [reader] * 20)
        for one in own:
            one.connect(listener.unix)
            one.sendmsg([half], [(socket_module.SOL_SOCKET, socket_module.SCM_RIGHTS, rights)])
        readings = [loop.run_in_executor(None, _read_all, one) for one in own]
        most = 0
        while not all(reading.done() for reading in readings):
            most = max(most, open_descriptors())
            await asyncio.sleep(0.005)
        said = [reading.result() for reading in readings]
        for one in own:
            one.close()
        os.close(reader)
        os.close(writer)
        # Thirty sockets at both ends, the pipe, and at most 128 descriptors of one user.
        assert most - at_start <= 2 * 30 + 2 + 128 + 20, most - at_start
        assert sum(b"too many descriptors" in text for text in said) >= 20
        assert sum(b"did not come in time" in text for text in said) >= 1
        await becomes(lambda: open_descriptors() <= at_start)


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def _read_all(own: socket_module.socket) -> bytes:
    own.settimeout(15)
    got = b""
    with suppress(ConnectionError):
        while part := own.recv(1 << 16):
            got += part
    return got
