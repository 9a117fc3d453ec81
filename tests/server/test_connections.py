"""Connections whose request does not come: closed in time, they keep nobody from being served."""

from __future__ import annotations

import asyncio
import json
import socket as socket_module
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from websockets.asyncio.client import connect

from arp import Access, App, Bounds, Turn
from arp.net import bounded_server
from arp.net.connections import watched_http
from tests.server.processes import start
from tests.server.sockets import raw
from tests.support.serving import Serving, serving
from tests.support.waiting import becomes

HEADER_S, BODY_S = 0.6, 1.2
BOUNDS = Bounds(header_s=HEADER_S, body_s=BODY_S, max_unfinished_per_address=50)

app = App(title="Slow", access=Access(bounds=BOUNDS))


def bounded(bounds: Bounds) -> App:
    """Return an app that does nothing, with these bounds."""
    made = App(title="Bounded", access=Access(bounds=bounds))
    made.agent("agent")(quiet)
    return made


async def quiet(_: Turn) -> None:
    """Does nothing."""


@app.agent
async def agent(turn: Turn) -> None:
    """Says what it was told, a while later if that is asked."""
    if turn.text == "wait":
        await asyncio.sleep(2 * (HEADER_S + BODY_S))
    if turn.text == "block":
        time.sleep(2 * HEADER_S)  # noqa: ASYNC251  # that is what this agent does wrong
    await turn.say(f"heard {turn.text}")


@pytest.fixture(scope="module", params=[H11Protocol, HttpToolsProtocol])
def server(request: pytest.FixtureRequest) -> Iterator[Serving]:
    """A server with each of uvicorn's two parsers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bounded_server, "watched_http", partial(watched_http, base=request.param))
        with serving(app) as running:
            yield running


class Client:
    """A connection that sends what a test says, and no more."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, opened_at: float
    ) -> None:
        self.reader, self.writer = reader, writer
        self.opened_at = opened_at
        """Before the server could accept it: its clock begins no earlier."""

    async def send(self, text: str | bytes) -> None:
        self.writer.write(text.encode() if isinstance(text, str) else text)
        await self.writer.drain()

    async def rest(self) -> bytes:
        """Reads until the server closes."""
        told = b""
        async with asyncio.timeout(15):
            with suppress(ConnectionError):
                while part := await self.reader.read(1 << 16):
                    told += part
        return told

    @property
    def age_s(self) -> float:
        return time.monotonic() - self.opened_at


@asynccontextmanager
async def client(server: Serving) -> AsyncIterator[Client]:
    opened_at = time.monotonic()
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    try:
        yield Client(reader, writer, opened_at)
    finally:
        writer.close()


HOST = "Host: 127.0.0.1\r\n"
POST = f"POST /agent HTTP/1.1\r\n{HOST}Content-Type: application/json\r\n"
HEALTH = f"GET /health HTTP/1.1\r\n{HOST}\r\n"
UPGRADE = f"GET /_arp/v1 HTTP/1.1\r\n{HOST}Connection: Upgrade\r\nUpgrade: websocket\r\n"

HEADERS = {
    "nothing": ("", b""),
    "half a request line": ("GET /hea", b"HTTP/1.1 408 "),
    "half the headers": (f"GET /health HTTP/1.1\r\n{HOST}Accept: te", b"HTTP/1.1 408 "),
    "half a handshake": (f"{UPGRADE}Sec-WebSocket-Key: dGhlIH", b"HTTP/1.1 408 "),
}
BODIES = {
    "half a body": POST + 'Content-Length: 100\r\n\r\n{"message": ',
    "no byte of a body": POST + "Content-Length: 100\r\n\r\n",
    "half a chunked body": POST + "Transfer-Encoding: chunked\r\n\r\n5\r\n{ ",
    "half a body behind a whole request": HEALTH + POST + "Content-Length: 100\r\n\r\n{",
}


@pytest.mark.parametrize("shape", HEADERS)
async def test_headers_that_do_not_come_whole_in_time_close_the_connection(
    server: Serving, shape: str
) -> None:
    """T28. Who began to speak is told why; who said nothing is not."""
    sent, expected = HEADERS[shape]
    async with client(server) as one:
        await one.send(sent)
        told = await one.rest()
        assert one.age_s > HEADER_S * 0.9
    assert told[: len(expected) or None] == expected


@pytest.mark.parametrize("shape", ["GET /", "GET / HTTP/1.1\r\nA: "])
async def test_a_byte_now_and_then_does_not_make_the_headers_wait_longer(
    server: Serving, shape: str
) -> None:
    async with client(server) as one:
        await one.send(shape)
        reading = asyncio.ensure_future(one.rest())
        while not reading.done():
            with suppress(ConnectionError):
                await one.send("a")
            await asyncio.wait((reading,), timeout=HEADER_S / 6)
        assert b" 408 " in (await reading)[:20]


@pytest.mark.parametrize("shape", BODIES)
async def test_body_that_stops_closes_the_connection(server: Serving, shape: str) -> None:
    async with client(server) as one:
        await one.send(BODIES[shape])
        told = await one.rest()
        assert one.age_s > BODY_S * 0.9
    assert told.rpartition(b"HTTP/1.1 ")[2][:4] in (b"408 ", b"400 ")


async def test_body_that_comes_slowly_is_taken(server: Serving) -> None:
    """Every byte of it gives more time."""
    body = b'{"message": "slowly"}'
    async with client(server) as one:
        await one.send(f"{POST}Connection: close\r\nContent-Length: {len(body)}\r\n\r\n")
        for at in range(0, len(body), 3):
            await asyncio.sleep(BODY_S / 4)
            await one.send(body[at : at + 3])
        assert one.age_s > BODY_S * 1.5
        told = await one.rest()
    assert b"HTTP/1.1 200 OK" in told
    assert b"heard slowly" in told


async def test_answer_may_take_longer_than_any_request(server: Serving) -> None:
    """What is waited for then is ours."""
    async with asyncio.timeout(30), httpx.AsyncClient(base_url=server.http) as one:
        answer = await one.post("/agent", json={"message": "wait"}, timeout=20)
    assert answer.json()["text"] == "heard wait"


async def test_request_that_comes_while_an_agent_blocks_the_loop_is_served(
    server: Serving,
) -> None:
    """It is not its fault that it is read late."""
    async with asyncio.timeout(30), client(server) as one, httpx.AsyncClient() as other:
        await one.send(HEALTH[:-5])
        url = f"{server.http}/agent"
        blocking = asyncio.ensure_future(other.post(url, json={"message": "block"}, timeout=20))
        await asyncio.sleep(HEADER_S / 3)
        await one.send(HEALTH[-5:])
        assert (await one.reader.readline()) == b"HTTP/1.1 200 OK\r\n"
        assert (await blocking).json()["text"] == "heard block"


async def test_streams_and_sockets_stay_open(server: Serving) -> None:
    """Their requests are whole; a silent renderer is no late one."""
    async with asyncio.timeout(30), raw(server) as socket, httpx.AsyncClient() as one:
        await socket.hello("silent", ["text"], "input")
        url = f"{server.http}/_arp/v1/events?session_id=silent"
        async with one.stream("GET", url, timeout=20) as stream:
            lines = stream.aiter_lines()
            assert (await anext(lines)).startswith("data: ")
            await asyncio.sleep(HEADER_S + BODY_S + 0.5)
            await socket.say("silent", "still here")
            await socket.until_final("t1")
            async for line in lines:
                if "still here" in line:
                    break


async def test_line_break_between_requests_does_not_keep_a_connection_open(
    server: Serving,
) -> None:
    """Parsers skip it, and uvicorn no longer waits for a request then."""
    async with client(server) as one:
        await one.send(HEALTH)
        await one.reader.readuntil(b'{"status":"ok"}')
        await one.send("\r\n")
        assert b"200 OK" not in await one.rest()
        assert one.age_s < 5


async def test_rest_of_a_refused_body_is_read_for_a_bounded_time(server: Serving) -> None:
    """However eagerly it comes: nobody reads it."""
    async with client(server) as one:
        await one.send(POST + "Content-Length: 100000000\r\n\r\n")
        head = await one.reader.readuntil(b"\r\n\r\n")
        reading = asyncio.ensure_future(one.rest())
        while not reading.done():
            with suppress(ConnectionError):
                await one.send(b"x" * 1000)
            await asyncio.wait((reading,), timeout=0.05)
        assert one.age_s > BODY_S * 0.9
    assert head.startswith(b"HTTP/1.1 413 ")


@pytest.mark.parametrize("begin", ["GET /", "GET / HTTP/1.1\r\nA: ", HEALTH + "GET /"])
async def test_endless_headers_are_refused_before_they_fill_the_memory(
    server: Serving, begin: str
) -> None:
    async with client(server) as one:
        await one.send(begin)
        reading = asyncio.ensure_future(one.rest())
        sent = 0
        while not reading.done() and sent < 64 << 20:
            with suppress(ConnectionError):
                await one.send(b"a" * 10_000)
            sent += 10_000
            await asyncio.sleep(0)
        await reading
    assert sent < 64 << 20


async def test_hello_of_tls_is_answered_at_once(server: Serving) -> None:
    """A browser that was told https: it learns that this is no TLS."""
    async with client(server) as one:
        await one.send(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(60))
        assert b" 400 " in await one.rest()


SHAPES = [*(sent for sent, _ in HEADERS.values()), *BODIES.values()]


async def test_five_hundred_half_open_connections_do_not_stop_service() -> None:
    """T28: from the address that is served; all but a few are closed before their time."""
    bounds = Bounds(max_unfinished_per_address=50)
    with serving(bounded(bounds)) as server:
        slow = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(500)]
        for number, (_, writer) in enumerate(slow):
            writer.write(SHAPES[number % (len(SHAPES) - 1)].encode())
        async with asyncio.timeout(30), httpx.AsyncClient(base_url=server.http) as one:
            for _ in range(20):
                assert (await one.get("/_api/chats")).status_code == 200
            async with raw(server) as socket:
                await socket.hello("s", ["text"], "input")
            await becomes(lambda: sum(reader.at_eof() for reader, _ in slow) >= 450, within_s=8)
            assert (await one.get("/_api/chats")).status_code == 200
        for _, writer in slow:
            writer.close()


async def test_many_that_come_at_once_and_speak_are_all_served() -> None:
    """Only who stays silent counts against the bound of an address."""
    with serving(bounded(Bounds(max_unfinished_per_address=5))) as server:
        async with asyncio.timeout(30):
            opened = await asyncio.gather(
                *[asyncio.open_connection("127.0.0.1", server.port) for _ in range(200)]
            )
            for _, writer in opened:
                writer.write(HEALTH.encode())
            heads = await asyncio.gather(*[reader.readline() for reader, _ in opened])
        for _, writer in opened:
            writer.close()
    assert heads == [b"HTTP/1.1 200 OK\r\n"] * 200


async def test_address_with_too_many_connections_is_told_and_others_are_served() -> None:
    with serving(bounded(Bounds(max_connections_per_address=3))) as server:
        async with asyncio.timeout(30), raw(server), raw(server) as second, raw(server):
            async with httpx.AsyncClient(base_url=server.http) as here:
                refused = await here.get("/health")
            elsewhere = httpx.AsyncHTTPTransport(local_address="127.0.0.2")
            async with httpx.AsyncClient(base_url=server.http, transport=elsewhere) as there:
                served = await there.get("/health")
            await second.socket.close()
            async with httpx.AsyncClient(base_url=server.http) as here:
                again = await until_served(here)
    assert (refused.status_code, refused.json()["payload"]["code"]) == (429, 16)
    assert (served.status_code, again.status_code) == (200, 200)


async def until_served(client: httpx.AsyncClient) -> httpx.Response:
    """Asks until there is room."""
    while True:
        answer = await client.get("/health")
        if answer.status_code not in (429, 503):
            return answer
        await asyncio.sleep(0.05)


FULL = """\
import os, resource

resource.setrlimit(resource.RLIMIT_NOFILE, (160, 160))

from arp import App, Turn

app = App()

@app.agent
async def keep(turn: Turn) -> None:
    await turn.save_file("kept.txt", os.urandom(100))
    await turn.say("kept")
"""


async def turn_of(socket: Any) -> str:
    """Lets the agent work once; gives what it said."""
    said = {"v": 1, "type": "input", "input_type": "text", "session_id": "s"}
    await socket.send(json.dumps({**said, "data": {"text": "go"}}))
    told = ""
    async with asyncio.timeout(15):
        async for frame in socket:
            message = json.loads(frame)
            if message["type"] == "delta":
                told += message["payload"]["delta"]
            if message["type"] == "commit" and message.get("final"):
                return told
    raise AssertionError("the connection ended early")


async def test_when_descriptors_run_out_sessions_go_on_and_who_comes_is_told(
    tmp_path: Path,
) -> None:
    """T29, F20: a reserve is kept for the ledger and for files."""
    file = tmp_path / "app.py"
    file.write_text(FULL)
    server = await start(file, tmp_path / "ledger.db")
    taken: list[socket_module.socket] = []
    try:
        async with connect(server.ws) as socket:
            first = await turn_of(socket)
            for number in range(200):
                one = socket_module.create_connection(
                    ("127.0.0.1", server.port), source_address=(f"127.0.0.{2 + number % 8}", 0)
                )
                taken.append(one)
            async with asyncio.timeout(15), httpx.AsyncClient(base_url=server.http) as newcomer:
                refused = await newcomer.get("/health")
                second = await turn_of(socket)
                for one in taken:
                    one.close()
                served = await until_served(newcomer)
    finally:
        for one in taken:
            one.close()
        code = await server.stop(15)
    assert (refused.status_code, refused.headers["retry-after"]) == (503, "5")
    assert (first, second, served.status_code, code) == ("kept", "kept", 200, 0)
