"""Many at one session at once: they make it once, and each of them is told everything."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack
from typing import Any

import pytest

from arp import App, Turn, ui
from arp.protocol.catalog import VERSIONS
from arp.protocol.connection.renderer_connection import RendererConnection
from arp.protocol.messages import RendererCapabilities, RendererHello
from tests.server.sockets import Raw, raw
from tests.support.serving import Serving, serving

CROWD = 200

app = App(title="Crowd")


@app.agent
async def agent(turn: Turn) -> None:
    """Streams words, with a chart that changes on the way and a tool."""
    turn.show(ui.chart("bar", labels=["a"], datasets=[ui.dataset("S", [0])], id="chart"))
    for number in range(60):
        await turn.say(f"{number} ")
        if number % 5 == 0:
            turn.patch("chart", "props.datasets.0.data.0", number)
        if number % 20 == 10:
            async with turn.tool("look", {"at": number}):
                await asyncio.sleep(0.01)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    path = tmp_path_factory.mktemp("ledger") / "ledger.db"
    with serving(app, ledger=f"sqlite:{path}") as running:
        yield running


async def test_two_hundred_hellos_for_a_new_session_make_it_once(server: Serving) -> None:
    """One session, one epoch, no hello lost; then each is told the same turn."""
    async with asyncio.timeout(18), AsyncExitStack() as opened:
        crowd = await asyncio.gather(
            *[opened.enter_async_context(raw(server)) for _ in range(CROWD)]
        )
        ready = await asyncio.gather(*[one.hello("new", ["text"], "input") for one in crowd])
        await crowd[0].say("new", "go")
        await asyncio.gather(*[one.until_final("t1") for one in crowd])
    assert len({one["epoch"] for one in ready}) == 1
    assert {one["session_id"] for one in ready} == {"new"}
    assert {one["resume"] for one in ready} <= {"new", "snapshot"}
    assert {said(one) for one in crowd} == {"".join(f"{number} " for number in range(60))}
    assert [len(one.of("error")) for one in crowd] == [0] * CROWD


def said(client: Raw) -> str:
    """Return the text of all deltas; nobody joined after the first."""
    return "".join(delta["payload"]["delta"] for delta in client.of("delta"))


FEATURES = ["patch-append", "thinking", "tool-detail"]

PROFILES: dict[str, RendererCapabilities] = {
    "everything": RendererCapabilities(dict(VERSIONS), FEATURES),
    "batch": RendererCapabilities(dict(VERSIONS), [*FEATURES, "batch"]),
    "tables": RendererCapabilities(["text", "table", "group"], []),
    "text": RendererCapabilities(["text", "group"], []),
}


async def test_renderers_of_every_kind_come_and_go_while_it_streams(server: Serving) -> None:
    """Each ends as one of its kind does that joins when all is over."""
    async with asyncio.timeout(18):
        async with raw(server) as first:
            await first.hello("kinds", ["text"], "input")
            await first.say("kinds", "go")
            await asyncio.gather(*[visit(server, one) for one in PROFILES for _ in range(10)])
            stayed = await asyncio.gather(*[watch(server, one) for one in PROFILES])
            await first.until_final("t1")
        late = await asyncio.gather(*[watch(server, one) for one in PROFILES])
    assert stayed == late
    story = stayed[0]["turns"]["t1"]["story"]
    assert [piece for piece in story if piece.startswith("tool")] == ["tool 0", "tool 1", "tool 2"]
    assert stayed[0]["turns"]["t1"]["output"][0]["props"]["datasets"][0]["data"] == [55]
    assert [piece for piece in stayed[2]["turns"]["t1"]["output"] if isinstance(piece, dict)] == [
        {"id": "chart", "type": "table", "props": {"headers": ["", "S"], "rows": [["a", 55]]}}
    ]


async def visit(server: Serving, profile: str) -> None:
    """Joins, and is gone as soon as something shows."""
    shown = renderer(profile)
    async with raw(server) as client:
        await client.send(shown.hello().decode())
        await client.until("session")
        client.socket.transport.abort()


async def watch(server: Serving, profile: str) -> Any:
    """Joins and reads to the end of the turn; gives what shows."""
    shown = renderer(profile)
    async with raw(server) as client:
        await client.send(shown.hello().decode())
        while not (turn := shown.screen.turns.get("t1")) or not turn.final:
            shown.receive(await client.socket.recv())
    return shown.screen.canonical()


def renderer(profile: str) -> RendererConnection:
    hello = RendererHello(session_id="kinds", capabilities=PROFILES[profile])
    return RendererConnection(hello)
