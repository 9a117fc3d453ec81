"""The code of `docs/data.md` and `docs/app.md` does what the pages say."""

from __future__ import annotations

from typing import Any

import pytest

from arp import App, Turn
from arp.testing import serve, session
from tests.docs.pages import blocks

FRAME, COLUMNS, OWN = blocks("python", page="data.md")
LIFESPAN, SETTINGS, FEEDBACK, THREADS = blocks("python", page="app.md")


def run(block: Any) -> dict[str, Any]:
    """Run a block as a module of its own, which classes need."""
    names: dict[str, Any] = {"__name__": "docs"}
    exec(compile(block.code, str(block), "exec", dont_inherit=True), names)
    return names


async def test_data_shows_as_tables_and_charts() -> None:
    async with session(run(FRAME)["app"]) as user:
        turn = await user.say("go")
    table, chart, sums = turn.components()
    assert table.props["rows"][3] == ["Feb", "South", None]
    assert chart.props["datasets"] == [
        {"label": "North", "data": [3.5, 5.5]},
        {"label": "South", "data": [4.0, None]},
    ]
    assert sums.props == {"headers": ["region", "sales"], "rows": [["North", 9.0], ["South", 4.0]]}


async def test_charts_and_converters_run() -> None:
    run(COLUMNS)
    invoice = run(OWN)["Invoice"]
    app = App()

    @app.agent
    async def shows(turn: Turn) -> Any:
        return invoice("7", 12.5)

    async with session(app) as user:
        card = (await user.say("go")).component("status-card")
    assert (card.props["title"], card.props["message"]) == ("Invoice 7", "12.50 EUR")


async def test_lifespan_is_open_while_the_app_is_served() -> None:
    async with session(run(LIFESPAN)["app"]) as user:
        assert (await user.say("go")).text == "The client is open: True"


async def test_greeting_and_settings() -> None:
    async with session(run(SETTINGS)["app"]) as user:
        assert (await user.say("go")).text == "I use the small model."
        assert user.turns[0].text == "Hello! What do you want to know?"


async def test_feedback_reaches_the_function(capsys: pytest.CaptureFixture[str]) -> None:
    app: App = run(FEEDBACK)["app"]

    @app.agent
    async def agent(turn: Turn) -> str:
        return "42"

    async with serve(app) as served, served.session(session_id="one") as user:
        await user.say("The answer?")
        async with served.http() as http:
            given = {"turn_id": "t1", "rating": "down", "comment": "too short"}
            await http.post("/_api/feedback/one", json=given)
    assert capsys.readouterr().out == "down too short The answer? 42\n"


async def test_function_without_async() -> None:
    async with session(run(THREADS)["app"]) as user:
        turn = await (await user.say("go")).answer(True)
        assert turn.text == "Done."
        assert turn.component("table").props["rows"] == [[1]]
        assert turn.tool_names == ["query"]
