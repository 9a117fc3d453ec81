"""The table in server.md says what becomes of a turn that runs, or asks, for each way to end."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest

from arp import App, connect
from arp.client.client import ArpClient
from arp.live.settings import HubSettings
from arp.protocol.connection.screen import TurnScreen
from arp.runtime.contract.task_runtime import TaskRuntime, TaskTurn
from tests.runtime.answering import until
from tests.support.serving import Serving, serving
from tests.support.waiting import becomes

PAGE = Path(__file__).parents[2] / "docs" / "server.md"
HEADING = "| the turn | the end | turn | question | tool | runtime's turn |"


class Ending(NamedTuple):
    """A row of the table."""

    does: str
    end: str
    turn: str
    question: str
    tool: str
    runtime: str


def table() -> list[Ending]:
    """Return the rows of the table."""
    lines = PAGE.read_text().partition(HEADING)[2].splitlines()[2:]
    rows = []
    for line in lines:
        if not line.startswith("|"):
            break
        rows.append(Ending(*(cell.strip(" `") for cell in line.strip("|").split("|"))))
    return rows


class Recording(TaskRuntime):
    """Works, or asks; it notes what becomes of its turn."""

    name = "recording"

    def __init__(self, cwd: Path) -> None:
        super().__init__(cwd=cwd)
        self.became = "lost"
        self.finish = asyncio.Event()

    async def run_turn(self, turn: TaskTurn) -> None:
        turn.start_call("call", "work", {"n": 1})
        if turn.text == "asks":
            self.became = "kept"
            await turn.allowed("call", "work", {"n": 1})
        else:
            await self.finish.wait()
        turn.end_call("call", "done")
        self.became = "completed"

    async def cut_off(self, turn: TaskTurn) -> None:
        self.became = "cancelled"


def seen(turn: TurnScreen, client: ArpClient) -> tuple[str, str, str]:
    """Return the status of a turn, the state of its question, and how its tool ended."""
    asked = [one.props["state"] for one in client.screen.output(turn.id) if one.type == "confirm"]
    (tool,) = turn.tools
    ended = {None: "open", True: "done", False: "failed"}[tool.ok]
    return str(turn.status), "".join(asked), ended


def test_the_table_has_every_way_to_end() -> None:
    assert [(row.does, row.end.partition(",")[0]) for row in table()] == [
        *(("runs", end) for end in ("cancel", "stop", "stop", "crash")),
        *(("asks", end) for end in ("cancel", "stop", "crash")),
    ]


def app_of(runtime: Recording, stop_grace_s: float) -> App:
    app = App(settings=HubSettings(stop_grace_s=stop_grace_s))
    app.runtime(runtime)
    return app


def copy_durable(source: Path, target: Path) -> None:
    """Copy a ledger as a crash would leave it now."""
    target.parent.mkdir()
    with closing(sqlite3.connect(source)) as before, closing(sqlite3.connect(target)) as after:
        before.backup(after)


async def finish_when_it_stops(server: Serving, runtime: Recording) -> None:
    """Let the runtime finish its turn while the server waits for it."""
    await becomes(lambda: server.application.state.running is None)
    runtime.finish.set()


@pytest.mark.parametrize("row", table(), ids=lambda row: f"{row.does}-{row.end}")
async def test_a_turn_ends_as_the_table_says(row: Ending, tmp_path: Path) -> None:
    ledger, survivor = tmp_path / "ledger.db", tmp_path / "after" / "ledger.db"
    is_patient = "within" in row.end
    runtime = Recording(tmp_path)
    app = app_of(runtime, 20.0 if is_patient else 0.05)
    async with asyncio.timeout(60):
        with serving(app, ledger=f"sqlite:{ledger}") as server:
            async with connect(server.http, session_id="s") as client:
                await client.send_text(row.does)
                await until(client, lambda: has_begun(client, row.does))
                became = runtime.became
                if row.end == "cancel":
                    await client.cancel()
                    await client.turn_done("t1")
                elif row.end == "crash":
                    copy_durable(ledger, survivor)
                elif is_patient:
                    finishing = finish_when_it_stops(server, runtime)
                    asyncio.run_coroutine_threadsafe(finishing, server.loop)
        if row.end != "crash":
            became, survivor = runtime.became, ledger
        with serving(app_of(Recording(tmp_path), 1.0), ledger=f"sqlite:{survivor}") as server:
            async with connect(server.http, session_id="s") as client:
                await until(client, lambda: has_ended(client))
                assert (*seen(client.screen.turn("t1"), client), became) == row[2:]


def has_begun(client: ArpClient, does: str) -> bool:
    """Return whether the turn works, or asks."""
    turn = client.screen.turns.get("t1")
    return (
        turn is not None
        and bool(turn.tools)
        and turn.status == ("waiting" if does == "asks" else "running")
    )


def has_ended(client: ArpClient) -> bool:
    turn = client.screen.turns.get("t1")
    return turn is not None and turn.final
