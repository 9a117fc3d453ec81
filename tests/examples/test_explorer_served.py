"""The explorer on a real server: what `make demo` shows, an upload, a cancel, a form, an error."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from app import app

from arp.client.client import ArpClient, connect
from tests.examples.conversation import WAIT_S, question, shown, tool_runs
from tests.support.serving import Serving, serving

ENDLESS = "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"


@pytest.fixture
def server() -> Iterator[Serving]:
    with serving(app, ledger="memory:") as running:
        yield running


def exported(directory: Path) -> list[str]:
    """The names of all exports."""
    return sorted(path.name for path in directory.glob("*"))


async def asked(client: ArpClient, text: str) -> str:
    """The turn that a text begins."""
    return await client.turn_of(await client.send_text(text))


async def test_the_demo(server: Serving, explorer_environment: Path) -> None:
    """Text streams, a tool runs, chart and table appear, and a yes writes a file."""
    async with connect(server.http) as client:
        turn_id = await asked(client, "Show the average temperature by month")
        confirm = await question(client, turn_id)
        assert shown(client, turn_id) == ["…", "chart", "table", "…", "confirm"]
        assert exported(explorer_environment) == []
        await client.send_action("confirm", source=confirm.id)
        turn = await client.turn_done(turn_id)
        assert turn.status == "completed"
        assert [(run.tool, run.ok) for run in turn.tools] == [("query", True), ("export", True)]
        assert shown(client, turn_id) == [
            "…",
            "chart",
            "table",
            "…",
            "confirm",
            "status-card",
            "markdown",
            "choices",
        ]
        assert exported(explorer_environment) == ["Average-daily-high-and-low-by-month.csv"]


async def test_the_answer_streams_and_its_chart_grows(
    server: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a screen shows at each moment is the beginning of what it shows at the end."""
    monkeypatch.setenv("EXPLORER_PACE_MS", "20")
    async with connect(server.http) as client:
        events = client.events()
        turn_id = await asked(client, "Show the average temperature by month")
        texts, points = {""}, {0}
        async with asyncio.timeout(WAIT_S):
            while not any(each.type == "confirm" for each in client.screen.output(turn_id)):
                await anext(events)
                texts.add(client.screen.text(turn_id))
                points.add(points_of(client, turn_id))
        whole = client.screen.text(turn_id)
        beginnings = [text for text in texts if whole.startswith(text)]
        assert len(beginnings) > 8
        assert len(points) > 4
        assert max(points) == 12


async def test_a_cancel_while_the_chart_grows_leaves_all_of_it(
    server: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXPLORER_PACE_MS", "200")
    async with connect(server.http) as client:
        events = client.events()
        turn_id = await asked(client, "Show the average temperature by month")
        async with asyncio.timeout(WAIT_S):
            while not points_of(client, turn_id):
                await anext(events)
        assert points_of(client, turn_id) < 12
        await client.cancel()
        turn = await client.turn_done(turn_id)
        assert turn.status == "cancelled"
        assert points_of(client, turn_id) == 12


def points_of(client: ArpClient, turn_id: str) -> int:
    """How many points the chart of a turn has now."""
    charts = [each for each in client.screen.output(turn_id) if each.type == "chart"]
    return len(charts[0].props["datasets"][0]["data"]) if charts else 0


async def test_help_is_a_command_that_renderers_can_list(server: Serving) -> None:
    async with connect(server.http) as client:
        await client.ready()
        assert client.agent is not None
        assert "help" in [command.name for command in client.agent.capabilities.commands]
        turn = await client.ask("/help")
        assert shown(client, turn.id) == ["markdown", "choices"]


async def test_a_suggestion_that_is_clicked_begins_a_turn(server: Serving) -> None:
    async with connect(server.http) as client:
        listed = await client.ask("tables")
        choices = client.screen.output(listed.id)[-1]
        assert choices.props["options"] == ["describe cars", "describe seattle_weather"]
        clicked = await client.send_selection(["describe cars"], source=choices.id)
        turn = await client.turn_done(await client.turn_of(clicked))
        assert shown(client, turn.id) == ["…", "table", "choices"]


async def test_a_form_is_asked_and_its_answer_used(server: Serving) -> None:
    async with connect(server.http) as client:
        turn_id = await asked(client, "SELECT count(*) AS n FROM cars WHERE Horsepower > :power")
        form = await question(client, turn_id)
        await client.send_form({"p0": "200"}, source=form.id)
        await client.turn_done(turn_id)
        assert "n is **10**." in client.screen.text(turn_id)


async def test_a_cancel_stops_a_query_that_would_never_end(server: Serving) -> None:
    async with connect(server.http) as client:
        turn_id = await asked(client, ENDLESS)
        await tool_runs(client, turn_id)
        await client.cancel()
        turn = await client.turn_done(turn_id)
        assert turn.status == "cancelled"
        assert [(run.tool, run.ok) for run in turn.tools] == [("query", False)]


async def test_a_new_question_takes_the_place_of_an_open_offer(server: Serving) -> None:
    async with connect(server.http) as client:
        first = await asked(client, "number of cars by origin")
        await question(client, first)
        second = await client.ask("describe cars")
        assert client.screen.turn(first).status == "cancelled"
        assert second.status == "completed"


async def test_an_uploaded_file_is_imported_and_its_progress_completes(server: Serving) -> None:
    rows = "".join(f"{number},{number % 7}\n" for number in range(12_000))
    async with connect(server.http) as client:
        await client.ready()
        sent = await client.send_files([("numbers.csv", f"n,rest\n{rows}".encode())])
        turn = await client.turn_done(await client.turn_of(sent))
        progress = client.screen.output(turn.id)[0]
        assert [step["status"] for step in progress.props["steps"]] == ["done"] * 4
        assert progress.props["steps"][2]["detail"] == "12,000 of 12,000 rows"
        answered = await client.ask("SELECT max(n) AS m FROM numbers")
        assert "m is **11,999**." in client.screen.text(answered.id)


async def test_a_refused_statement_is_a_card_and_the_session_lives_on(server: Serving) -> None:
    async with connect(server.http) as client:
        refused = await client.ask("DROP TABLE cars")
        card = client.screen.output(refused.id)[0]
        assert (card.type, card.props["title"]) == ("status-card", "I only read")
        counted = await client.ask("SELECT count(*) AS n FROM cars")
        assert "n is **406**." in client.screen.text(counted.id)


async def test_two_screens_see_one_conversation(server: Serving) -> None:
    async with connect(server.http) as first:
        await first.ready()
        async with connect(server.http, session_id=first.session_id) as second:
            await second.ready()
            turn = await first.ask("describe cars")
            async with asyncio.timeout(15):
                await second.turn_done(turn.id)
            assert second.screen.canonical() == first.screen.canonical()
