"""A client that knows only the draft works unchanged (protocol.md, first paragraph and 2.2)."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from arp import App, Turn, ui
from tests.server.sockets import raw
from tests.serving import Serving, serving

app = App(title="Draft")


@app.agent
async def draft(turn: Turn) -> None:
    """Text, thinking, a tool, two components at once, an append, an answer, a failure."""
    turn.think("nobody of the draft sees this")
    await turn.say("Hello ")
    await turn.say(turn.text)
    async with turn.tool("query", {"sql": "select 1"}):
        pass
    async with turn.frame():
        turn.show(ui.table(["n"], [[1]], id="rows"), ui.text("under it", id="below"))
    turn.append("rows", "props.rows", [[2]])
    if turn.text == "fail":
        raise RuntimeError("inner workings")


@pytest.fixture(scope="module")
def server() -> Iterator[Serving]:
    with serving(app) as running:
        yield running


async def test_draft_client_gets_what_the_draft_says(server: Serving) -> None:
    """No `hello` from the client; `input` with session_id, input_type, data.text."""
    async with raw(server) as client:
        await client.say("draft-1", "world")
        final = await client.until("commit", final=True)
        types = {message["type"] for message in client.seen}
        deltas = "".join(message["payload"]["delta"] for message in client.of("delta"))
        starts, ends = client.of("tool_start"), client.of("tool_end")
        renders = client.of("render")
    assert client.seen[0]["capabilities"]["components"][0] == "text"
    assert deltas == "Hello world"
    assert starts[0]["payload"]["tool"] == "query"
    assert json.loads(starts[0]["payload"]["args"]) == {"sql": "select 1"}
    assert ends[0]["payload"]["ok"] is True
    assert [len(message["components"]) for message in renders] == [1, 1]
    assert [message["tool_name"] for message in renders] == ["query", "query"]
    assert [message["components"][0]["id"] for message in renders] == ["rows", "below"]
    assert final["session_id"] == "draft-1"
    assert "session" not in types
    assert "input" not in types


async def test_patch_append_reaches_a_draft_client_as_an_update(server: Serving) -> None:
    """The draft has no `append` op; the whole value is set."""
    async with raw(server) as client:
        await client.say("draft-2", "world")
        await client.until("commit", final=True)
        ops = [op for message in client.of("patch") for op in message["ops"]]
    update = {"op": "update", "target": "rows", "path": "props.rows", "value": [[1], [2]]}
    assert ops == [update]


async def test_failing_agent_ends_the_turn_with_one_final_commit(server: Serving) -> None:
    """protocol.md 2.1: every turn ends with exactly one final commit, also when it failed."""
    async with raw(server) as client:
        await client.say("draft-3", "fail")
        await client.until("commit", final=True)
        await client.say("draft-3", "again")
        await client.until("commit", final=True)
        errors = client.of("error")
        finals = [message for message in client.of("commit") if message["final"]]
    assert [message["payload"]["code"] for message in errors] == [18]
    assert "inner" not in json.dumps(client.seen)
    assert [message["turn_id"] for message in finals] == ["t1", "t2"]


async def test_draft_client_may_change_its_session_by_the_next_input(server: Serving) -> None:
    """The draft names the session in every input."""
    async with raw(server) as client:
        await client.say("draft-4", "a")
        await client.until("commit", final=True)
        await client.say("draft-5", "b")
        final = await client.until("commit", final=True)
    assert final["session_id"] == "draft-5"
    assert final["turn_id"] == "t1"
