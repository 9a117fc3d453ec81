"""Server-sent events and POST over real sockets: places, comments, and clients that go away."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from arp import App, Turn, ui
from arp.protocol.framing.event_stream import SseParser
from tests.support.serving import Serving, serving
from tests.support.waiting import becomes

app = App(title="Streams")


@app.agent
async def agent(turn: Turn) -> None:
    """Says and shows a little, or goes on until it is stopped."""
    if turn.text == "forever":
        while True:
            await turn.say("x" * 1000)
            await asyncio.sleep(0)
    await turn.say("one ")
    turn.show(ui.table(["n"], [[1]], id=f"table-{turn.id}"))
    await turn.say(f"two\n{turn.text}")


@app.agent("other")
async def other(turn: Turn) -> None:
    """Another agent."""
    await turn.say("other")


@pytest.fixture(scope="module")
def server() -> Iterator[Serving]:
    with serving(app) as running:
        yield running


class Stream:
    """One event stream, as a browser reads it."""

    def __init__(self, response: httpx.Response) -> None:
        self.response = response
        self.events: list[Any] = []
        self.raw = b""
        self._parser = SseParser()
        self._chunks = response.aiter_bytes()

    async def until(self, type_name: str, **fields: Any) -> Any:
        """Reads until such a message has come."""
        seen = 0
        async with asyncio.timeout(10):
            while True:
                for event in self.events[seen:]:
                    seen += 1
                    message = json.loads(event.data)
                    if message["type"] == type_name and fields.items() <= message.items():
                        return message
                await self.more()

    async def more(self) -> None:
        """Reads what comes next."""
        chunk = await anext(self._chunks)
        self.raw += chunk
        self.events += self._parser.feed(chunk)

    def messages(self) -> list[Any]:
        """What has come so far."""
        return [json.loads(event.data) for event in self.events]


@asynccontextmanager
async def streaming(server: Serving, session_id: str, **more: Any) -> AsyncIterator[Stream]:
    headers = more.pop("headers", {})
    capabilities = {"components": ["text", "table"], "features": ["streaming"]}
    hello = base64.urlsafe_b64encode(json.dumps({"capabilities": capabilities, **more}).encode())
    query = {"session_id": session_id, "hello": hello.decode().rstrip("=")}
    async with (
        httpx.AsyncClient(base_url=server.http) as client,
        client.stream("GET", "/_arp/v1/events", params=query, headers=headers) as response,
    ):
        assert response.status_code == 200, (await response.aread()).decode()
        yield Stream(response)


async def said(server: Serving, session_id: str, text: str, query: str = "", **more: Any) -> Any:
    body = {"v": 1, "type": "input", "session_id": session_id, "input_type": "text", **more}
    async with httpx.AsyncClient(base_url=server.http) as client:
        body["data"] = {"text": text}
        return (await client.post(f"/_arp/v1/input{query}", json=body)).json()


async def test_stream_names_places_and_post_is_answered_when_durable(server: Serving) -> None:
    """protocol.md 6: `id:` = `epoch-seq`; what carries no place carries no id."""
    async with streaming(server, "ids") as stream:
        ready = await stream.until("session")
        (ack,) = await said(server, "ids", "x", id="i1")
        await stream.until("commit", final=True)
    assert (ack["type"], ack["id"], ack["turn_id"]) == ("ack", "i1", "t1")
    assert stream.response.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert stream.response.headers["cache-control"] == "no-store"
    named = {
        json.loads(event.data)["type"]: event.id
        for event in stream.events
        if json.loads(event.data).get("seq")
    }
    places = [int(event.id.rpartition("-")[2]) for event in stream.events if event.id]
    assert named["commit"].startswith(ready["epoch"] + "-")
    assert places == sorted(places)
    assert places[-1] == stream.messages()[-1]["seq"]


async def listed(server: Serving) -> list[str]:
    async with httpx.AsyncClient(base_url=server.http) as client:
        return [row["id"] for row in (await client.get("/_api/chats?limit=200")).json()]


@pytest.mark.parametrize("query", ["?session_id=only-watched", ""])
async def test_stream_makes_no_session(server: Serving, query: str) -> None:
    """Any page may let a browser send a GET; the first input makes the session."""
    before = await listed(server)
    async with (
        httpx.AsyncClient(base_url=server.http) as client,
        client.stream("GET", f"/_arp/v1/events{query}") as response,
    ):
        stream = Stream(response)
        name = (await stream.until("session"))["session_id"]
        chat = await client.get(f"/_api/chats/{name}")
        facts = await client.get(f"/_api/sessions/{name}/events")
        during = await listed(server)
    hub = server.application.state.running
    sessions = hub.sessions if hub is not None else {}
    await becomes(lambda: name not in sessions)
    assert (chat.status_code, facts.status_code) == (404, 404)
    assert during == before
    assert await listed(server) == before


async def test_first_input_keeps_what_a_stream_only_watched(server: Serving) -> None:
    """The draft's order: first the stream, then the input; nothing is told twice or left out."""
    async with streaming(server, "watched") as one, streaming(server, "watched") as two:
        places = [(await stream.until("session"))["epoch"] for stream in (one, two)]
        await said(server, "watched", "x")
        finals = [await stream.until("commit", final=True) for stream in (one, two)]
    async with httpx.AsyncClient(base_url=server.http) as client:
        facts = (await client.get("/_api/sessions/watched/events")).json()["events"]
    texts = [
        "".join(m["payload"]["delta"] for m in stream.messages() if m["type"] == "delta")
        for stream in (one, two)
    ]
    assert places[0] == places[1]
    assert texts == ["one two\nx"] * 2
    assert finals[0]["seq"] == finals[1]["seq"]
    assert [fact["sequence"] for fact in facts] == list(range(1, len(facts) + 1))
    assert facts[0]["type"] == "session.created"
    assert "watched" in await listed(server)


async def test_last_event_id_resumes_without_loss_or_repeat(server: Serving) -> None:
    """protocol.md 6: what a browser's EventSource does by itself."""
    async with streaming(server, "resume") as first:
        await first.until("session")
        await said(server, "resume", "a")
        await first.until("commit", final=True, turn_id="t1")
        last = first.events[-1].id
    await said(server, "resume", "b")
    async with streaming(server, "resume", headers={"Last-Event-ID": last}) as second:
        ready = await second.until("session")
        await second.until("commit", final=True, turn_id="t2")
    turns = [one["turn_id"] for one in second.messages() if "turn_id" in one]
    assert ready["resume"] == "replay"
    assert set(turns) == {"t2"}
    text = [one["payload"]["delta"] for one in second.messages() if one["type"] == "delta"]
    assert "".join(text) == "one two\nb"


async def test_stream_without_hello_gets_everything(server: Serving) -> None:
    """protocol.md 2.2: who never says `hello` is taken to support all that the server offered."""
    query = {"session_id": "plain"}
    async with (
        httpx.AsyncClient(base_url=server.http) as client,
        client.stream("GET", "/_arp/v1/events", params=query) as response,
    ):
        stream = Stream(response)
        ready = await stream.until("session")
        await said(server, "plain", "x")
        rendered = await stream.until("render")
        final = await stream.until("commit", final=True)
    assert (ready["session_id"], ready["resume"]) == ("plain", "new")
    assert rendered["components"] == [
        {"id": "table-t1", "type": "table", "props": {"headers": ["n"], "rows": [[1]]}}
    ]
    assert stream.events[-1].id == f"{ready['epoch']}-{final['seq']}"


@pytest.mark.parametrize("last", ["", "nonsense", "other-3", "e-99999999999999999999", "-", "é-1"])
async def test_strange_last_event_id_gets_a_snapshot(server: Serving, last: str) -> None:
    """T31: never silence, never somebody's data."""
    await said(server, "strange", "x")
    headers = {"Last-Event-ID": last.encode()} if last else {}
    async with streaming(server, "strange", headers=headers) as stream:
        ready = await stream.until("session")
    assert ready["resume"] == "snapshot"


async def test_silent_stream_keeps_proxies_awake(
    server: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    """protocol.md 6: a comment now and then."""
    monkeypatch.setattr("arp.transport.event_stream.KEEP_ALIVE_S", 0.05)
    async with streaming(server, "silent") as stream:
        await stream.until("session")
        async with asyncio.timeout(10):
            while stream.raw.count(b"\n: \n\n") + stream.raw.count(b"\n\n: \n\n") < 2:
                await stream.more()
    assert {one["type"] for one in stream.messages()} == {"hello", "session"}


async def test_client_that_goes_frees_everything(server: Serving) -> None:
    """No renderer, no stream, no task is left; what runs goes on."""
    before = server.call(lambda: len(asyncio.all_tasks()))
    async with streaming(server, "gone") as stream:
        await stream.until("session")
        await said(server, "gone", "forever")
        await stream.until("delta")
    hub = await asyncio.wrap_future(
        asyncio.run_coroutine_threadsafe(server.application.hub(), server.loop)
    )
    live = hub.sessions["gone"]
    await becomes(lambda: not live.viewers and not server.application.state.streams)
    running = live.session.running
    body = {"v": 1, "type": "input", "session_id": "gone", "input_type": "action"}
    async with httpx.AsyncClient(base_url=server.http) as client:
        await client.post("/_arp/v1/input", json={**body, "data": {"action": "arp.cancel"}})
    await becomes(lambda: live.session.running is None)
    await becomes(lambda: server.call(lambda: len(asyncio.all_tasks())) <= before)
    assert running == "t1"


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("hello=!!!", 400),
        ("hello=W10", 400),
        ("hello=bm90IGpzb24", 400),
        ("hello=eyJjYXBhYmlsaXRpZXMiOjN9", 400),
        ("session_id=" + "s" * 129, 400),
        ("session_id=%0a", 400),
        ("session_id=%00", 400),
        ("session_id=%ff", 400),
        ("workflow=nobody", 404),
    ],
)
async def test_stream_that_cannot_begin_is_refused_with_a_status(
    server: Serving, query: str, status: int
) -> None:
    """A browser's EventSource ends at a status, and tries again for ever without."""
    async with asyncio.timeout(10), httpx.AsyncClient(base_url=server.http) as client:
        response = await client.get(f"/_arp/v1/events?{query}")
    assert response.status_code == status
    assert response.json()["type"] == "error"


async def test_new_session_gets_the_agent_that_is_asked_for(server: Serving) -> None:
    """`?workflow=`, on the stream and on the post."""
    async with (
        httpx.AsyncClient(base_url=server.http) as client,
        client.stream("GET", "/_arp/v1/events?session_id=w1&workflow=other") as response,
    ):
        stream = Stream(response)
        await stream.until("session")
        await said(server, "w1", "x")
        delta = await stream.until("delta")
    await said(server, "w2", "x", "?workflow=other")
    async with streaming(server, "w2") as late:
        await late.until("commit")
        rendered = [part for one in late.messages() for part in one.get("components", [])]
    assert delta["payload"]["delta"] == "other"
    assert rendered == [] or rendered[0]["props"]["content"] == "other"


@pytest.mark.parametrize(
    ("message", "status", "code"),
    [
        ({"input_type": "text", "data": {"text": 1}}, 400, 11),
        ({"type": "ack", "seq": 1}, 400, 11),
        ({"type": "hello", "capabilities": {}}, 400, 11),
        ({"input_type": "selection", "data": {"selected": [1]}, "source_component": "x"}, 404, 1),
        ({"session_id": "a\nb", "input_type": "text", "data": {"text": "x"}}, 400, 11),
        ({"input_type": "text", "data": {"text": "x" * (1 << 20)}}, 413, 4),
    ],
)
async def test_posted_message_that_is_no_input_is_refused(
    server: Serving, message: dict[str, Any], status: int, code: int
) -> None:
    """With the same codes as everywhere."""
    body = {"v": 1, "type": "input", "session_id": "bad", **message}
    async with asyncio.timeout(10), httpx.AsyncClient(base_url=server.http) as client:
        response = await client.post("/_arp/v1/input", json=body)
    assert response.status_code == status
    assert response.json()[0]["payload"]["code"] == code


async def test_posted_batch_is_answered_one_by_one(server: Serving) -> None:
    """An array of inputs; each has its own answer."""
    body = {"v": 1, "type": "input", "session_id": "batch", "input_type": "text"}
    batch = [
        {**body, "data": {"text": "a"}, "id": "a"},
        {**body, "data": {"text": 1}, "id": "b"},
        {**body, "data": {"text": "a"}, "id": "a"},
    ]
    async with asyncio.timeout(10), httpx.AsyncClient(base_url=server.http) as client:
        response = await client.post("/_arp/v1/input", json=batch)
    answers = response.json()
    assert response.status_code == 200
    assert [one["type"] for one in answers] == ["ack", "error", "ack"]
    assert [answers[0]["turn_id"], answers[2]["turn_id"]] == ["t1", "t1"]
    assert answers[1]["payload"]["id"] == "b"


async def test_posted_input_joins_the_trace_in_its_header(server: Serving) -> None:
    """W3C Trace Context: the turn is a part of the caller's trace; a header that is none is not."""
    body = {"v": 1, "type": "input", "session_id": "traced", "input_type": "text"}
    told = []
    async with asyncio.timeout(10), httpx.AsyncClient(base_url=server.http) as client:
        for traceparent in ("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "00-x"):
            await client.post(
                "/_arp/v1/input",
                json={**body, "data": {"text": "a"}},
                headers={"traceparent": traceparent},
            )
        path = "/_api/sessions/traced/events?type=turn.submitted"
        told = (await client.get(path)).json()["events"]
    assert [fact.get("traceId") for fact in told] == ["4bf92f3577b34da6a3ce929d0e0e4736", None]
