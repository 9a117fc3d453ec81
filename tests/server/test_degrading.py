"""One agent, renderers of every kind: each gets what it can show, with the same content."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from arp import App, Turn, ui
from arp.client.client import ArpClient
from arp.protocol.messages import RendererCapabilities, TurnMessage
from tests.server.sockets import raw
from tests.support.serving import Serving, serving

app = App(title="Degrading")


@app.agent
async def degrading(turn: Turn) -> None:
    """A chart, then a patch of it; or questions for those who can only type."""
    if turn.text == "ask":
        sure = await turn.confirm("Export?", id="sure")
        pick = await turn.ask(ui.choices(["red", "green"], title="Colour", id="pick"))
        fields = [ui.field("name", required=True), ui.field("age", field_type="number")]
        form = await turn.ask(ui.form(fields, id="who"))
        await turn.say(f"{sure} {pick} {form}")
        return
    turn.show(
        ui.chart(
            "line",
            labels=["Jan", "Feb"],
            datasets=[ui.dataset("Rain", [12.5, 7]), ui.dataset("Sun", [3, 41])],
            id="chart",
        )
    )
    await turn.say("Now more. ")
    turn.patch("chart", "props.datasets.0.data.1", 99.25)
    await turn.say("Done.")


@pytest.fixture(scope="module")
def server() -> Iterator[Serving]:
    with serving(app) as running:
        yield running


def client_of(server: Serving, session_id: str, *components: str) -> ArpClient:
    capabilities = RendererCapabilities(list(components), ["streaming", "input", "resume"])
    return ArpClient(server.ws, session_id=session_id, capabilities=capabilities)


def numbers(text: str) -> list[float]:
    return [float(number) for number in re.findall(r"\d+(?:\.\d+)?", text)]


async def test_chart_reaches_every_renderer_of_one_session_its_own_way(server: Serving) -> None:
    """Text with every number, a table, the chart itself; a later patch reaches all three."""
    async with (
        client_of(server, "all", "text") as plain,
        client_of(server, "all", "text", "table") as tables,
        client_of(server, "all", "text", "table", "chart") as charts,
    ):
        for client in (plain, tables):
            await client.ready()
        turn = await charts.ask("draw")
        for client in (plain, tables):
            await client.turn_done(turn.id)
        shown = [client.screen.output(turn.id)[0] for client in (plain, tables, charts)]
    assert [component.type for component in shown] == ["text", "table", "chart"]
    assert [component.id for component in shown] == ["chart", "chart", "chart"]
    assert sorted(numbers(shown[0].props["content"])) == [3, 12.5, 41, 99.25]
    assert "Rain" in shown[0].props["content"]
    assert "Feb" in shown[0].props["content"]
    assert shown[1].props["headers"][1:] == ["Rain", "Sun"]
    assert shown[1].props["rows"] == [["Jan", 12.5, 3], ["Feb", 99.25, 41]]
    assert shown[2].props["datasets"][0]["data"] == [12.5, 99.25]


async def test_typed_answers_are_understood_where_questions_are_text(server: Serving) -> None:
    """protocol.md 3: the answer as text is understood."""
    answers = iter(["yes", "2", "name: Ada\nage: 36"])
    async with client_of(server, "typed", "text") as client:
        await client.send_text("ask")
        async for event in client.events():
            if isinstance(event, TurnMessage) and event.status == "waiting":
                await client.send_text(next(answers))
            if isinstance(event, TurnMessage) and event.status == "completed":
                break
        said = client.screen.text("t1")
    assert said == "True green {'name': 'Ada', 'age': 36}"


async def test_text_that_is_no_answer_is_a_turn_of_its_own(server: Serving) -> None:
    """A renderer that shows the question itself answers by the component, not by talking."""
    async with raw(server) as client:
        await client.hello("native", ["text", "confirm"], "input")
        await client.say("native", "ask")
        await client.until("turn", status="waiting")
        await client.say("native", "yes")
        queued = await client.until("turn", status="queued")
    assert queued["turn_id"] == "t2"
    assert queued["position"] == 1


async def test_table_rows_of_a_renderer_are_honoured(server: Serving) -> None:
    """protocol.md 2.2: the rest is cut with a mark that says so."""
    async with raw(server) as client:
        limits: dict[str, Any] = {"max_table_rows": 1}
        await client.hello("rows", ["text", "table"], "input", limits=limits)
        await client.say("rows", "draw")
        await client.until("commit", final=True)
        table = client.of("render")[-1]["components"][0]
    assert table["type"] == "table"
    assert table["props"]["rows"][0] == ["Jan", 12.5, 3]
    assert len(table["props"]["rows"]) == 2
    assert "1 more" in str(table["props"]["rows"][1])
