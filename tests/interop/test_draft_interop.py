"""Programs that were written from the v0.1 draft alone, against this project's programs."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from arp import App, Turn, ui
from arp.client.client import ArpClient, connect
from arp.protocol.messages import ErrorMessage
from arp.server.page import STATIC
from tests.support.serving import Serving, serving

HERE = Path(__file__).parent

app = App(title="Offers")


@app.agent
async def offers(turn: Turn) -> None:
    """Shows a selectable table; asks before it deletes."""
    if turn.text == "delete":
        sure = await turn.confirm("Delete the offers?")
        form = await turn.ask(ui.form([ui.field("reason")], submit_action="why"))
        await turn.say(f"{sure}: {form['reason']}")
        return
    if turn.text == "fail":
        raise RuntimeError("inner workings")
    rows = ui.table(["Item", "Cost"], [["Lamp", "12"], ["Desk", "80"]], selectable="one", id="t1")
    chosen = await turn.ask(rows)
    turn.show(ui.status_card("success", "Ordered", f"row {chosen}"))


@pytest.fixture(scope="module")
def server() -> Iterator[Serving]:
    with serving(app) as running:
        yield running


@contextmanager
def draft_server(*options: str) -> Iterator[int]:
    """Run the draft's server; yields its port."""
    command = ["node", str(HERE / "draft_server.mjs"), str(STATIC), *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        try:
            yield int(child.stdout.readline())
        finally:
            child.kill()


async def node(program: str, *arguments: str) -> list[Any]:
    """Run a program to its end; return the lines of JSON that it printed."""
    child = await asyncio.create_subprocess_exec(
        "node", str(HERE / program), *arguments, stdout=asyncio.subprocess.PIPE
    )
    try:
        async with asyncio.timeout(30):
            printed, _ = await child.communicate()
    except TimeoutError:
        child.kill()
        raise
    assert child.returncode == 0
    return [json.loads(line) for line in printed.decode().splitlines()]


@pytest.fixture(autouse=True)
def needs_node(requires: Callable[[str], str]) -> None:
    requires("node")


async def talk(client: ArpClient) -> None:
    """Text, a table of a tool, an error, and a question that the next stream answers."""
    events = client.events()
    turn = await client.ask("Hello")
    assert client.screen.text(turn.id) == "You said: Hello"
    turn = await client.ask("offers")
    assert [part.type for part in client.screen.output(turn.id)] == ["text", "table"]
    assert [(run.tool, run.ok) for run in turn.tools] == [("query", True)]
    turn = await client.ask("fail")
    assert (turn.status, [error.error for error in turn.errors]) == (
        "failed",
        ["the model is away"],
    )
    asked = await client.turn_of(await client.send_text("delete"))
    async for event in events:
        shown = client.screen.turns.get(asked)
        if shown is not None and shown.final:
            break
        assert not (isinstance(event, ErrorMessage) and "hello" in event.payload.error)
    assert client.screen.turns[asked].status == "waiting"
    answer = await client.turn_of(await client.send_action("confirm", source="sure"))
    await client.turn_done(answer)
    assert client.screen.text(answer) == "Deleted."
    assert client.screen.turns[asked].status == "completed"
    node = client.screen.surfaces["main"].nodes["sure"]
    assert (node.own["state"], node.own["answer"]) == ("answered", True)
    assert client.screen.errors == []


@pytest.mark.parametrize("options", [(), ("no-hello",)], ids=["hello", "no hello"])
async def test_python_client_talks_to_the_drafts_server(options: tuple[str, ...]) -> None:
    """Differences from the draft: no subprotocol, no session_id, errors without a code."""
    with draft_server(*options) as port:
        async with asyncio.timeout(30):
            async with connect(f"ws://127.0.0.1:{port}/_arp/v1") as client:
                assert client.session_id
                await talk(client)


async def test_python_client_comes_back_to_the_drafts_server() -> None:
    """What shows stays: a server of the draft repeats nothing."""
    with draft_server() as port:
        async with asyncio.timeout(30):
            async with connect(f"ws://127.0.0.1:{port}/_arp/v1") as client:
                first = await client.ask("Hello")
                lost = await client.ask("cut")
                second = await client.ask("again")
    assert client.screen.text(first.id) == "You said: Hello"
    assert (lost.status, len(lost.errors)) == ("failed", 1)
    assert client.screen.text(second.id) == "You said: again"


async def test_hook_of_the_draft_gets_through_questions(server: Serving) -> None:
    """S6: it sends nothing while a stream is open, and every stream ends."""
    texts = ["delete", "[Confirmed] Confirm", '[Form: why] {"reason":"old"}', "fail", "delete"]
    streams = await node("draft_hook.mjs", server.ws, "hook-1", *texts)
    assert [one["text"] for one in streams] == ["", "", "True: old", "", ""]
    assert [one["components"] for one in streams] == [["confirm"], ["form"], [], [], ["confirm"]]
    assert [len(one["errors"]) for one in streams] == [0, 0, 0, 1, 0]


async def test_renderer_of_the_draft_selects_a_row(server: Serving) -> None:
    """Object dialect: an empty `done`, version 1 of `ArpInput`, no conversation."""
    (shown,) = await node("draft_renderer.mjs", server.ws)
    assert ["status-card", "Ordered"] in shown
