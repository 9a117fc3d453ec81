"""The examples of frameworks run without a key, and need three lines for ARP."""

from __future__ import annotations

import asyncio
import importlib
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response

from arp import App, Component
from arp.client.client import ArpClient, connect
from arp.server.serve import bind
from tests.examples.conversation import WAIT_S, question, shown
from tests.support.serving import serving

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = (
    "langgraph_approval", "openai_agents", "pydantic_ai", "ag_ui", "model_agent", "mcp_tools",
)  # fmt: skip
GLUE = re.compile(r"\b(?:from arp\b|import arp\b|App\(|app\.)")
"""What is there for ARP alone; `ui`, `Component` and `tool` say what is shown and asked."""


def app_of(name: str) -> App:
    """Return the app of an example, whose sessions are new."""
    app: App = importlib.reload(importlib.import_module(f"examples.{name}.app")).app
    return app


async def open_choices(client: ArpClient, turn_id: str) -> Component:
    """Return the open choices of a turn, as soon as they show."""
    events = client.events()
    async with asyncio.timeout(WAIT_S):
        while True:
            for component in client.screen.output(turn_id):
                if component.type == "choices" and component.props.get("state") == "open":
                    return component
            await anext(events)


@pytest.mark.parametrize("name", NAMES)
def test_an_example_is_short_and_has_three_lines_for_arp(name: str) -> None:
    lines = (EXAMPLES / name / "app.py").read_text(encoding="utf-8").splitlines()
    code = [line for line in lines if not line.startswith(("#", '"""'))]
    glue = [line for line in code if GLUE.search(line) and "arp serve" not in line]
    assert len(lines) < 60
    assert len(glue) <= 3, glue


async def test_a_graph_asks_and_goes_on_with_the_answer() -> None:
    with serving(app_of("langgraph_approval"), ledger="memory:") as server:
        async with connect(server.http) as client:
            turn_id = await client.turn_of(await client.send_text("A refund for order 7"))
            choices = await open_choices(client, turn_id)
            await client.send_selection(["send"], source=choices.id)
            turn = await client.turn_done(turn_id)
            assert turn.status == "completed"
            assert client.screen.text(turn_id).endswith("It is sent.")


async def test_a_hand_off_says_who_speaks_and_a_refund_is_approved() -> None:
    with serving(app_of("openai_agents"), ledger="memory:") as server:
        async with connect(server.http) as client:
            turn_id = await client.turn_of(await client.send_text("My money back for order 7"))
            confirm = await question(client, turn_id)
            permission = client.screen.turns[turn_id].permissions[confirm.id]
            await client.send_permission(permission, True)
            turn = await client.turn_done(turn_id)
            output = client.screen.output(turn_id)
            said = [one.props["content"] for one in output if one.type == "text"]
            assert turn.status == "completed"
            assert said == ["**Refunds**", "Done: 12.50 paid back for order 7."]


async def test_a_typed_output_is_a_chart() -> None:
    with serving(app_of("pydantic_ai"), ledger="memory:") as server:
        async with connect(server.http) as client:
            turn = await client.ask("Show the sales")
            assert turn.status == "completed"
            assert "chart" in shown(client, turn.id)
            assert [run.tool for run in turn.tools] == ["orders"]


async def approved(app: App) -> str:
    """Let the agent of orders cancel one, and return what it says; the table was shown before."""
    with serving(app, ledger="memory:") as server:
        async with connect(server.http) as client:
            turn_id = await client.turn_of(await client.send_text("Cancel the jam"))
            confirm = await question(client, turn_id)
            await client.send_permission(client.screen.turns[turn_id].permissions[confirm.id], True)
            turn = await client.turn_done(turn_id)
            assert turn.status == "completed"
            assert [(run.tool, run.ok) for run in turn.tools] == [
                ("orders", True),
                ("cancel", True),
            ]
            table = client.screen.output(turn_id)[0]
            assert table.props["rows"] == [["tea", 3], ["jam", 1]]
            return client.screen.text(turn_id)


async def test_an_interrupt_of_ag_ui_is_an_approval_and_an_event_shows_a_table() -> None:
    assert await approved(app_of("ag_ui")) == "That is all."


@asynccontextmanager
async def served_by_ag_ui() -> AsyncIterator[str]:
    """Serve the agent of the example as any other program would, and yield its address."""
    from pydantic_ai.ui.ag_ui import AGUIAdapter

    agent = importlib.import_module("examples.ag_ui.app").agent

    async def run(request: Request) -> Response:
        answer: Response = await AGUIAdapter.dispatch_request(request, agent=agent)
        return answer

    there = Starlette()
    there.add_route("/agent", run, methods=["POST"])
    listener = bind("127.0.0.1", 0)
    server = uvicorn.Server(uvicorn.Config(there, log_level="warning", lifespan="off"))
    running = asyncio.create_task(server.serve([listener]))
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/agent"
    finally:
        server.should_exit = server.force_exit = True
        await running
        listener.close()


async def test_an_agent_at_an_address_does_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    app_of("ag_ui")  # loads the agent, with its orders
    async with served_by_ag_ui() as address:
        monkeypatch.setenv("AGENT_URL", address)
        assert await approved(app_of("ag_ui")) == "That is all."
