"""What docs/protocol.md requires of the core of the session dialect, read from the wire."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from websockets.asyncio.client import connect

from arp import App, Turn, ui
from arp.protocol.codec import agent_decoder
from tests.server.sockets import Raw, raw
from tests.support.serving import Serving, serving

app = App(title="Core")
TREE = ui.group([ui.table(["Item"], [["Lamp"]], id="t"), ui.text("under it", id="u")], id="g")


@app.agent
async def core(turn: Turn) -> None:
    """Text, components and changes of them; or text without end."""
    if turn.text == "stream":
        while True:
            await turn.say("la ")
            await asyncio.sleep(0)
    async with turn.tool("query", {"table": "sales"}):
        await turn.say("First. ")
    turn.show(TREE, ui.text("one", id="o"))
    if turn.text == "change":
        turn.patch("o", "props.content", "two")
    await turn.say("Last. ")
    turn.show(ui.confirm("Sure?", id="q"))


@pytest.fixture(scope="module")
def server() -> Iterator[Serving]:
    with serving(app) as running:
        yield running


def types_in(components: list[dict[str, Any]]) -> set[str]:
    """Return the types of components, nested ones included."""
    found = {one["type"] for one in components}
    for one in components:
        found |= types_in(one["props"].get("children", []))
    return found


def read(message: dict[str, Any]) -> Any:
    """Return a message with the values of what it leaves out."""
    return agent_decoder("json").decode(json.dumps(message).encode())


async def played(client: Raw, session_id: str, text: str = "go") -> list[Any]:
    """Return the messages of one turn."""
    before = len(client.seen)
    await client.say(session_id, text)
    await client.until("commit", final=True)
    return client.seen[before:]


async def test_agent_side_speaks_first(server: Serving) -> None:
    """Spec: S11."""
    async with connect(server.ws) as socket:
        assert json.loads(await socket.recv())["type"] == "hello"


async def test_numbers_never_fall_and_are_of_one_message_or_of_one_commit(server: Serving) -> None:
    """Spec: S10."""
    async with raw(server) as client:
        await client.hello("numbers", ["text", "table", "group"])
        heard = [one for one in await played(client, "numbers", "change") if "seq" in one]
    numbers = [one["seq"] for one in heard]
    assert numbers == sorted(numbers)
    alone = [one["seq"] for one in heard if one["type"] not in ("render", "patch")]
    assert len(alone) == len(set(alone)) > 5
    changes = {one["seq"] for one in heard if one["type"] in ("render", "patch")}
    assert changes == {one["seq"] for one in heard if one["type"] == "commit"} - {numbers[-1]}


async def test_replay_has_what_came_behind_each_place_once_and_in_order(server: Serving) -> None:
    """Spec: S17."""
    async with raw(server) as client:
        session = await client.hello("replay", ["text", "table", "group", "confirm"], "resume")
        heard = [one for one in await played(client, "replay") if "seq" in one]
    places = sorted({session["seq"], *(one["seq"] for one in heard)})
    for place in places[:-1]:
        async with raw(server) as again:
            resume = {"epoch": session["epoch"], "seq": place}
            ready = await again.hello(
                "replay", ["text", "table", "group", "confirm"], "resume", resume=resume
            )
            assert ready["resume"] == "replay", place
            start = len(again.seen)
            await again.until("commit", seq=places[-1])
            replayed = [read(one) for one in again.seen[start:] if "seq" in one]
            assert replayed == [read(one) for one in heard if one["seq"] > place], place


@pytest.mark.parametrize(
    "named", [None, [], ["text"], ["table"], {"text": 1, "group": 1}, ["table", "group", "confirm"]]
)
async def test_renderer_gets_the_components_that_it_names(server: Serving, named: Any) -> None:
    """Spec: S12."""
    session_id = f"components-{named}".replace(" ", "")
    async with raw(server) as client:
        capabilities = {} if named is None else {"components": named}
        hello = {"v": 1, "type": "hello", "session_id": session_id}
        await client.send({**hello, "capabilities": capabilities})
        await client.until("session")
        heard = await played(client, session_id)
    shown = [one["components"] for one in heard if one["type"] == "render"]
    assert shown
    assert {kind for one in shown for kind in types_in(one)} <= {"text", *(named or ())}


async def test_client_without_a_hello_gets_every_component(server: Serving) -> None:
    """Spec: S12."""
    async with raw(server) as client:
        heard = await played(client, "nothing-said")
    shown = [one["components"] for one in heard if one["type"] == "render"]
    assert {kind for one in shown for kind in types_in(one)} == {
        "group",
        "table",
        "text",
        "confirm",
    }


async def test_nothing_of_the_session_before_comes_behind_the_next(server: Serving) -> None:
    """The other session streams on, as its other renderer sees. Spec: S13, S15."""
    async with raw(server) as watching, raw(server) as moving:
        await moving.hello("noisy", ["text"], "ping")
        await watching.hello("noisy", ["text"])
        assert moving.seen[-1]["type"] == "session"
        await moving.say("noisy", "stream")
        await moving.until("delta")
        assert (await moving.hello("quiet", ["text"]))["session_id"] == "quiet"
        start = len(moving.seen)
        for _ in range(50):
            await watching.until("delta", session_id="noisy")
        await moving.send({"v": 1, "type": "ping", "id": "p"})
        await moving.until("pong")
        assert [one["type"] for one in moving.seen[start:]] == ["pong"]
        cancel = {"input_type": "action", "data": {"action": "arp.cancel"}}
        await watching.send({"v": 1, "type": "input", "session_id": "noisy", **cancel})
        await watching.until("commit", final=True)


async def test_each_hello_is_answered_before_anything_of_its_session(server: Serving) -> None:
    """Spec: S15."""
    hello = {"v": 1, "type": "hello", "capabilities": {"components": ["text"]}}
    async with raw(server) as client:
        await client.hello("answered", ["text"])
        await played(client, "answered")
    async with raw(server) as client:
        for name in ("answered", "other", "answered"):
            await client.send({**hello, "session_id": name})
            await client.until("session", session_id=name)
    messages = client.seen[1:]
    starts = [place for place, one in enumerate(messages) if one["type"] == "session"]
    assert starts[0] == 0
    assert len(starts) == 3
    for start, end in zip(starts, [*starts[1:], len(messages)], strict=True):
        names = {one["session_id"] for one in messages[start:end]}
        assert names == {messages[start]["session_id"]}


async def test_refused_hello_leaves_the_renderer_on_its_session(server: Serving) -> None:
    """Also where the two come at once. Spec: S15, E1."""
    hello = {"v": 1, "type": "hello", "capabilities": {"components": ["text"]}}
    async with raw(server) as client:
        await client.send({**hello, "session_id": "stays"})
        await client.send({**hello, "session_id": "unknown", "workflow": "nobody"})
        await client.until("session", session_id="stays")
        said = {"v": 1, "type": "input", "input_type": "text", "data": {"text": "go"}}
        await client.send(said)
        assert (await client.until("commit", final=True))["session_id"] == "stays"
    assert [one["payload"]["detail"] for one in client.of("error")] == ["workflow"]
    shown = [one["components"] for one in client.of("render")]
    assert {kind for one in shown for kind in types_in(one)} == {"text"}
