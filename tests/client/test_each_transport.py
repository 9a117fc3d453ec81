"""The whole client over SSE, uploads and a child process; the other tests are over WebSocket."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import pytest
from msgspec.structs import replace

from arp.client.client import ArpClient, connect
from arp.client.errors import (
    UploadUnavailable,
)
from arp.client.events import Disconnected
from tests.client import agent_messages as say
from tests.client.loopback import Answer, Request, http_server, websocket_server
from tests.client.talks import (
    AT_ONCE,
    is_final,
    seen,
    shout,
)


class SseAgent:
    """Answers texts with their capitals, over SSE and POST; cuts streams after some messages."""

    def __init__(self, *cuts: int) -> None:
        self.cuts = list(cuts)
        self.log: list[Any] = []
        self.posts: dict[str, list[Any]] = {}
        self.last_event_ids: list[str | None] = []
        self.upgrades = 0
        self.news = asyncio.Condition()

    async def serve(self, request: Request, answer: Answer) -> None:
        if request.headers.get("Upgrade"):
            self.upgrades += 1
            await answer.send(400, b"no upgrades here")
        elif request.method == "GET":
            await self.stream(request, answer)
        else:
            await self.take(json.loads(request.body), answer)

    async def stream(self, request: Request, answer: Answer) -> None:
        last = request.headers.get("Last-Event-ID")
        self.last_event_ids.append(last)
        await answer.stream()
        await answer.event(say.HELLO)
        await answer.event(say.session("replay" if last else "new", len(self.log)))
        place = int(last.rpartition("-")[2]) if last else 0
        left = self.cuts.pop(0) if self.cuts else None
        while left != 0:
            await answer.event(await self.message(place))
            place += 1
            left = left and left - 1
        answer.cut()

    async def message(self, place: int) -> Any:
        async with self.news:
            await self.news.wait_for(lambda: len(self.log) > place)
        return self.log[place]

    async def take(self, heard: Any, answer: Answer) -> None:
        first = heard["id"] not in self.posts
        self.posts.setdefault(heard["id"], []).append(heard)
        turn = f"t{list(self.posts).index(heard['id'])}"
        if first:
            seq, said = len(self.log), heard["data"]["text"]
            self.log += [
                say.echo(said, seq + 1, turn, heard["id"]),
                say.delta(said.upper(), seq + 2, turn),
                say.commit(seq + 3, turn, final=True),
            ]
            async with self.news:
                self.news.notify_all()
        await answer.send(200, json.dumps([say.ack(heard["id"], turn)]).encode())


async def test_sse_takes_over_where_websocket_is_refused() -> None:
    agent = SseAgent()
    async with http_server(agent.serve) as url, asyncio.timeout(30), connect(url) as client:
        await client.ask("one")
        await client.ask("two")
        assert client.screen.text("t0") == "ONE"
        assert client.screen.text("t1") == "TWO"
    assert agent.upgrades == 1


async def test_sse_stream_that_is_cut_anywhere_goes_on_where_it_was() -> None:
    agent = SseAgent(0, 1, 1, 2)
    async with (
        http_server(agent.serve) as url,
        asyncio.timeout(10),
        ArpClient(url.replace("http:", "http+sse:"), backoff=AT_ONCE) as client,
    ):
        await client.ask("one")
        await client.ask("two")
        assert client.screen.text("t0") == "ONE"
        assert client.screen.text("t1") == "TWO"
    assert agent.upgrades == 0
    assert agent.last_event_ids == [None, "e1-0", "e1-1", "e1-2", "e1-4"]
    assert [len({m["id"] for m in posts}) for posts in agent.posts.values()] == [1, 1]


async def test_files_go_by_http_beside_the_websocket() -> None:
    requests: list[Request] = []

    async def serve(request: Request, answer: Answer) -> None:
        requests.append(request)
        message = json.loads(request.parts()[0][3])
        await answer.send(200, json.dumps([say.ack(message["id"], "t5")]).encode())

    async with http_server(serve) as http, websocket_server(shout) as url, asyncio.timeout(30):
        client = ArpClient(url, token="tok", encoding="cbor")
        dialer = client._uploads._dialer
        dialer.address = replace(
            dialer.address, websocket_url=url, input_url=f"{http}/_arp/v1/input"
        )
        input_id = await client.send_files([("a.txt", b"A")], text="read this")
        async with client:
            assert (await client.acknowledged(input_id)).turn_id == "t5"
            assert (await client.ask("hi")).status == "completed"
    (request,) = requests
    message, file = request.parts()
    assert json.loads(message[3])["data"] == {"text": "read this"}
    assert json.loads(message[3])["session_id"] == "s1"
    assert file[1:] == ("a.txt", "text/plain", b"A")


CHILD = """
import json, sys

def say(**message):
    print(json.dumps({"v": 1, **message}), flush=True)

say(type="hello", capabilities={"components": ["text"]})
hello = json.loads(sys.stdin.readline())
resume = "replay" if "resume" in hello else "new"
say(type="session", session_id="s1", epoch="e1", seq=0, resume=resume)
for line in sys.stdin:
    heard = json.loads(line)
    if heard["data"]["text"] == "die" and resume == "new":
        raise SystemExit(3)
    where = {"session_id": "s1", "turn_id": heard["id"]}
    say(type="ack", id=heard["id"], **where)
    say(type="delta", seq=1, payload={"delta": heard["data"]["text"].upper()}, **where)
    say(type="commit", seq=2, final=True, **where)
"""


async def test_child_process_is_spoken_to_and_ends_with_the_client() -> None:
    async with asyncio.timeout(10):
        async with connect("stdio:", command=[sys.executable, "-c", CHILD]) as client:
            turn = await client.ask("hi")
            assert client.screen.text(turn.id) == "HI"
            with pytest.raises(UploadUnavailable):
                await client.send_files([("a", b"")])


async def test_child_that_dies_is_started_again_and_gets_the_input() -> None:
    async with asyncio.timeout(10):
        client = ArpClient("stdio:", command=[sys.executable, "-c", CHILD], backoff=AT_ONCE)
        events = client.events()
        async with client:
            turn = await client.ask("die")
            assert client.screen.text(turn.id) == "DIE"
            told = await seen(events, is_final)
    (lost,) = [event for event in told if isinstance(event, Disconnected)]
    assert lost.reason.endswith("ended with exit code 3")
