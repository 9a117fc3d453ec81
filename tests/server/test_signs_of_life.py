"""`ping` and `pong` over real sockets: answered at once on every transport, and nothing else."""

from __future__ import annotations

import asyncio
import base64
import gc
import json
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from arp import App, Turn
from arp.protocol.framing.event_stream import SseParser
from arp.transport.wire import WireBacklog
from tests.server.sockets import raw
from tests.support.serving import Serving, serving
from tests.support.waiting import becomes

app = App(title="Signs of life")


@app.agent
async def agent(turn: Turn) -> None:
    """Says much, for as long as it is let."""
    while True:
        await turn.say("x" * 1000)
        await asyncio.sleep(0)


@pytest.fixture(scope="module")
def server() -> Iterator[Serving]:
    with serving(app) as running:
        yield running


@asynccontextmanager
async def streaming(server: Serving, *features: str) -> AsyncIterator[AsyncIterator[Any]]:
    """Opens an event stream, and gives its events as they come."""
    hello = {"capabilities": {"components": ["text"], "features": features}}
    said = base64.urlsafe_b64encode(json.dumps(hello).encode()).decode().rstrip("=")

    async def events(response: httpx.Response) -> AsyncIterator[Any]:
        parser = SseParser()
        async for chunk in response.aiter_bytes():
            for event in parser.feed(chunk):
                yield event.name, json.loads(event.data)

    async with (
        httpx.AsyncClient(base_url=server.http) as client,
        client.stream("GET", "/_arp/v1/events", params={"hello": said}) as response,
    ):
        yield events(response)


async def posted(server: Serving, *messages: Any) -> tuple[int, Any]:
    async with httpx.AsyncClient(base_url=server.http) as client:
        answer = await client.post("/_arp/v1/input", json=list(messages))
        return answer.status_code, answer.json()


def in_backlogs() -> int:
    """What waits for all sockets of this process, in bytes."""
    return sum(one.size for one in gc.get_objects() if type(one) is WireBacklog)


def sessions(server: Serving) -> list[str]:
    """Those that are in memory."""
    hub = asyncio.run_coroutine_threadsafe(server.application.hub(), server.loop).result(10)
    return sorted(hub.sessions)


async def test_server_says_that_it_answers(server: Serving) -> None:
    """Who does not find the feature there sends no ping."""
    async with raw(server) as one:
        assert "ping" in one.seen[0]["capabilities"]["features"]


async def test_websocket_answers_before_a_hello_and_behind_it(server: Serving) -> None:
    """And nothing else comes of it."""
    async with raw(server) as one:
        await one.send({"v": 1, "type": "ping", "id": "early"})
        assert await one.next() == {"v": 1, "type": "pong", "id": "early"}
        before = sessions(server)
        for number in range(50):
            await one.send({"v": 1, "type": "ping", "id": str(number)})
        pongs = [await one.until("pong") for _ in range(50)]
        assert [pong["id"] for pong in pongs] == [str(number) for number in range(50)]
        assert sessions(server) == before


async def test_pong_overtakes_what_a_renderer_has_not_read(server: Serving) -> None:
    """While an agent says more than the connection takes, the answer is not behind all of it."""
    async with raw(server) as one:
        await one.hello("busy", ["text"], "streaming")
        await one.say("busy", "go")
        await one.until("delta")
        await asyncio.sleep(0.5)  # it does not read, and megabytes come
        await one.send({"v": 1, "type": "ping", "id": "p"})
        begin = len(one.seen)
        async with asyncio.timeout(5):
            await one.until("pong", id="p")
        came = sum(len(json.dumps(message)) for message in one.seen[begin:])
        assert came < 16 << 20
        await one.send(
            {
                "v": 1,
                "type": "input",
                "session_id": "busy",
                "input_type": "action",
                "data": {"action": "arp.cancel"},
            }
        )
        await one.until("turn", status="cancelled")


async def test_pings_whose_pongs_nobody_reads_fill_no_memory(server: Serving) -> None:
    """Fifty thousand of them, 8 MB of pongs: what waits in the server stays small."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=1024)
    key = base64.b64encode(b"0123456789abcdef").decode()
    writer.write(
        f"GET /_arp/v1 HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nUpgrade: websocket\r\n"
        f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Protocol: arp.session.v1.json\r\n\r\n".encode()
    )
    assert b"101" in await reader.readline()
    ping = json.dumps({"v": 1, "type": "ping", "id": "p" * 64}).encode()
    frame = bytes((0x81, 0x80 | len(ping), 0, 0, 0, 0)) + ping
    most = 0
    for _ in range(10):
        for _ in range(5):
            writer.write(frame * 1000)
            await writer.drain()
        most = max(
            most, server.call(lambda: server.application.state.in_transports() + in_backlogs())
        )
    writer.transport.abort()
    assert most < 1 << 20


async def test_ping_by_post_is_answered_in_the_same_breath(server: Serving) -> None:
    """It makes no session, and may stand beside an input that is wrong."""
    before = sessions(server)
    assert await posted(server, {"v": 1, "type": "ping", "id": "p"}) == (
        200,
        [{"type": "pong", "v": 1, "id": "p"}],
    )
    assert await posted(server, {"v": 1, "type": "pong", "id": "nobody asked"}) == (200, [])
    status, (error,) = await posted(server, {"v": 1, "type": "ping"})
    assert (status, error["payload"]["code"]) == (400, 11)
    assert sessions(server) == before


async def test_event_stream_asks_who_answers_pings_and_ends_when_nobody_does(
    server: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer comes by POST; the server forgets the stream with its end."""
    monkeypatch.setattr("arp.transport.event_stream.PING_S", 0.1)
    monkeypatch.setattr("arp.transport.event_stream.PONG_S", 2)
    asked: list[str] = []
    async with streaming(server, "streaming", "ping") as events, asyncio.timeout(20):
        async for name, message in events:
            if name == "close":
                assert message["code"] == 1001
                break
            if message["type"] == "ping":
                asked.append(message["id"])
                if len(asked) < 30:  # for longer than it would wait
                    await posted(server, {"v": 1, "type": "pong", "id": message["id"]})
    assert len(asked) >= 30
    assert len(set(asked)) == 1
    assert len(asked[0]) == 16  # of a stream: nobody else can guess it
    await becomes(lambda: not server.application.state.pulses)


async def test_event_stream_of_a_renderer_without_the_feature_is_not_asked(
    server: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Old renderers get comments, as before."""
    monkeypatch.setattr("arp.transport.event_stream.PING_S", 0.05)
    monkeypatch.setattr("arp.transport.event_stream.PONG_S", 0.05)
    types: list[str] = []
    async with streaming(server, "streaming") as events:
        with suppress(TimeoutError):
            async with asyncio.timeout(0.5):
                async for _, message in events:
                    types.append(message["type"])
    assert types == ["hello", "session"]


async def test_stdio_answers_too(tmp_path: Path) -> None:
    """A parent that wants to know whether its child works."""
    agent = tmp_path / "agent.py"
    agent.write_text(
        "from arp import App, Turn\n\napp = App()\n\n\n@app.agent\n"
        "async def agent(turn: Turn) -> None:\n    await turn.say(turn.text)\n"
    )
    command = (sys.executable, "-m", "arp.cli", "serve", str(agent), "--stdio")
    child = await asyncio.create_subprocess_exec(
        *command, cwd=tmp_path, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    out, _ = await asyncio.wait_for(child.communicate(b'{"v":1,"type":"ping","id":"p"}\n'), 30)
    told = [json.loads(line) for line in out.splitlines()]
    assert [message["type"] for message in told] == ["hello", "pong"]
    assert told[1]["id"] == "p"
