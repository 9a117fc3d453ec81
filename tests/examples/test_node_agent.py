"""An agent that was written from docs/protocol.md alone: our clients, and plain lines."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from arp.client.client import ArpClient, connect
from arp.protocol.connection.renderer_connection import RendererConnection
from arp.protocol.messages import RendererCapabilities, RendererHello
from tests.renderers.terminal.test_connect import command

AGENT = Path(__file__).parents[2] / "examples" / "node_agent" / "agent.mjs"
ALL = RendererCapabilities(["text", "table", "confirm"])
WAIT_S = 30.0


@pytest.fixture(autouse=True)
def needs_node(requires: Callable[[str], str]) -> None:
    requires("node")


def rows_of(client: ArpClient) -> Any:
    return client.screen.surfaces["main"].nodes["notes"].own["rows"]


async def asked(client: ArpClient, text: str) -> str:
    """Say something, and wait until the turn waits for an answer."""
    events = client.events()
    turn_id = await client.turn_of(await client.send_text(text))
    async for _ in events:
        if (turn := client.screen.turns.get(turn_id)) and turn.status == "waiting":
            return turn_id
    raise AssertionError("the client has ended")


async def test_python_client_talks_to_it() -> None:
    async with asyncio.timeout(WAIT_S), connect("stdio:", command=["node", str(AGENT)]) as client:
        assert client.workflow == "notes"
        first = await client.ask("milk")
        assert client.screen.text(first.id) == "That makes **1**."
        await client.ask("bread")
        assert rows_of(client) == [[1, "milk"], [2, "bread"]]
        failed = await client.ask("fail")
        assert (failed.status, [one.code for one in failed.errors]) == ("failed", [18])
        turn_id = await asked(client, "clear")
        (question,) = client.screen.output(turn_id)
        await client.send_action("confirm", source=question.id)
        assert (await client.turn_done(turn_id)).status == "completed"
        assert client.screen.text(turn_id) == "Removed."
        assert "notes" not in client.screen.surfaces["main"].nodes
        assert client.screen.surfaces["main"].nodes[question.id].own["answer"] is True
        assert client.screen.errors == []


async def test_python_client_cancels_its_question() -> None:
    async with asyncio.timeout(WAIT_S), connect("stdio:", command=["node", str(AGENT)]) as client:
        turn_id = await asked(client, "clear")
        await client.cancel()
        assert (await client.turn_done(turn_id)).status == "cancelled"
        assert client.screen.turns[turn_id].final


@pytest.mark.parametrize("level", ["minimal", "standard"])
def test_terminal_shows_it(level: str, requires: Callable[[str], str]) -> None:
    done = subprocess.run(
        [*command(f"stdio:node {AGENT}"), "--level", level],
        input="milk\nclear\nyes\n",
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "1  milk" in done.stdout
    assert "Remove 1 notes?" in done.stdout
    assert "Removed." in done.stdout


class Lines:
    """The agent as a child, spoken to line by line."""

    def __init__(self, child: asyncio.subprocess.Process) -> None:
        self._child = child

    def send(self, message: Any) -> None:
        assert self._child.stdin is not None
        text = message if isinstance(message, str) else json.dumps(message)
        self._child.stdin.write(text.encode() + b"\n")

    async def next(self) -> Any:
        assert self._child.stdout is not None
        return json.loads(await self._child.stdout.readline())

    async def until(self, type_name: str, **fields: Any) -> list[Any]:
        """Return all messages up to one of this type with these fields."""
        seen = [await self.next()]
        while seen[-1]["type"] != type_name or not fields.items() <= seen[-1].items():
            seen.append(await self.next())
        return seen


@asynccontextmanager
async def lines() -> AsyncIterator[Lines]:
    pipe = asyncio.subprocess.PIPE
    child = await asyncio.create_subprocess_exec("node", str(AGENT), stdin=pipe, stdout=pipe)
    try:
        async with asyncio.timeout(WAIT_S):
            yield Lines(child)
    finally:
        child.kill()
        await child.communicate()


def said(text: str, **more: Any) -> dict[str, Any]:
    return {"type": "input", "v": 1, "input_type": "text", "data": {"text": text}, **more}


async def hear(agent: Lines, hello: str | bytes, *messages: Any) -> tuple[Any, list[Any]]:
    """Say hello and something; return the session and what came before the last commit's end."""
    agent.send(hello if isinstance(hello, str) else hello.decode())
    *_, session = await agent.until("session")
    heard: list[Any] = []
    for message in messages:
        agent.send(message)
        heard += await agent.until("commit", final=True)
    return session, heard


async def test_numbers_rise_and_an_input_counts_once() -> None:
    """As docs/protocol.md requires of every agent side."""
    async with lines() as agent:
        first = await agent.next()
        assert (first["type"], "resume" in first["capabilities"]["features"]) == ("hello", True)
        hello = json.dumps({"type": "hello", "v": 1, "session_id": "s"})
        session, heard = await hear(agent, hello, said("milk", id="a1"), said("bread"))
        assert (session["resume"], session["seq"]) == ("new", 0)
        kinds = ["input", "turn", "ack", "delta", "render", "commit", "turn", "commit"]
        assert [one["type"] for one in heard[:8]] == kinds
        numbers = [one["seq"] for one in heard if "seq" in one and one["type"] != "render"]
        assert numbers == sorted(set(numbers))
        agent.send(said("milk", id="a1"))
        again = await agent.next()
        assert (again["type"], again["id"], again["turn_id"]) == ("ack", "a1", "t1")


async def test_replay_and_snapshot_end_in_the_screen_of_one_that_never_left() -> None:
    """Our own renderer reads them, from every place of the log."""
    async with lines() as agent:
        await agent.next()
        stays = RendererConnection(RendererHello(session_id="s", capabilities=ALL))
        session, heard = await hear(agent, stays.hello(), said("milk"), said("bread"))
        for one in (session, *heard):
            stays.receive(json.dumps(one))
        shown, last = stays.screen.canonical(), heard[-1]["seq"]
        for place in range(len(heard)):
            left = RendererConnection(RendererHello(session_id="s", capabilities=ALL))
            left.hello()
            for one in (session, *heard[:place]):
                left.receive(json.dumps(one))
            hello = json.loads(left.hello())
            assert hello["resume"]["epoch"] == session["epoch"]
            agent.send(json.dumps(hello))
            if hello["resume"]["seq"] == last:
                continue
            for one in await agent.until("commit", seq=last):
                assert one.get("resume") in (None, "replay")
                left.receive(json.dumps(one))
            assert left.screen.canonical() == shown, place
        late = RendererConnection(RendererHello(session_id="s", capabilities=ALL))
        agent.send(late.hello().decode())
        ready, *rest = await agent.until("commit", seq=last)
        assert (ready["resume"], late.seq) == ("snapshot", 0)
        assert [one["seq"] for one in rest if "seq" in one] == [last]
        for one in (ready, *rest):
            late.receive(json.dumps(one))
        assert late.screen.canonical() == shown
        assert json.loads(late.hello())["resume"] == {"epoch": session["epoch"], "seq": last}


async def test_client_of_the_draft_gets_the_end_of_every_stream() -> None:
    """No hello: everything is shown, and a question ends the stream (S6)."""
    async with lines() as agent:
        await agent.next()
        agent.send(said("milk", session_id="d"))
        heard = await agent.until("commit", final=True)
        assert [one["components"][0]["type"] for one in heard if "components" in one] == ["table"]
        agent.send(said("clear", session_id="d"))
        heard = await agent.until("commit", final=True)
        assert [one["components"][0]["type"] for one in heard if "components" in one] == ["confirm"]
        agent.send(said("[Confirmed] Confirm", session_id="d"))
        heard = await agent.until("commit", final=True)
        assert [one["payload"]["delta"] for one in heard if one["type"] == "delta"] == ["Removed."]


@pytest.mark.parametrize(
    "wrong",
    [
        "{",
        "[]x",
        "null",
        '{"type":"explode"}',
        '{"type":"input","input_type":"text","data":5}',
        '{"type":"input","input_type":"text","data":{"text":5}}',
        '{"type":"input","input_type":"gesture","data":{}}',
        '{"type":"hello","capabilities":{"components":null}}',
        json.dumps([said("x")] * 65),
    ],
)
async def test_what_it_does_not_take_changes_nothing(wrong: str) -> None:
    async with lines() as agent:
        await agent.next()
        agent.send(wrong)
        refused = await agent.next()
        assert (refused["type"], refused["payload"]["code"]) == ("error", 11)
        agent.send(said("constructor"))
        assert (await agent.until("commit", final=True))[0]["turn_id"] == "t1"
