"""A task goes on after a restart, in the chat where somebody waits for it."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path

import httpx
import pytest

from arp import App, Turn
from arp.control.sessions import ReadSession
from arp.protocol.json_value import JsonObject
from arp.tool_agent.agent import ToolAgent
from arp.tools.coding_job import CodingJob, CodingOutcome
from arp.tools.models import RuntimeType
from arp.tools.service import ToolService
from tests.serving import serving
from tests.tool_agent.smithy import WAIT_S, Smithy
from tests.tools.house import FunctionTools, settings_in
from tests.tools.test_coding_agent import folder

pytestmark = pytest.mark.timeout(120)


class FolderCoder:
    """Registers the tool `folder`, for $0.50."""

    name = "folder-coder"

    async def work(self, job: CodingJob) -> CodingOutcome:
        await job.say("I fold. ")
        await job.call("register_tool", folder())
        return CodingOutcome("It is registered.", 0.5)


@contextmanager
def served(place: Path) -> Iterator[tuple[Smithy, list[str]]]:
    """Serve an agent of the author that has a tool built whatever somebody says."""
    settings = settings_in(place / "data", coding_task_usd=12.5)
    service = ToolService(settings, runtimes={RuntimeType.API: FunctionTools()})
    tools = ToolAgent(FolderCoder(), service=service)
    app, asked = App("Folder", tools=tools), []

    @app.agent
    async def chat(turn: Turn) -> None:
        asked.append(turn.text)
        await tools.build(turn, turn.text)

    with serving(app, ledger=f"sqlite:{place / 'ledger.db'}") as server:
        yield Smithy(server, tools, []), asked


def read(made: Smithy, session_id: str) -> JsonObject:
    async def work() -> JsonObject:
        control = await made.server.application.control()
        return dict(await control.sessions.read(ReadSession(session_id=session_id)))

    thread: JsonObject = made.run(work)["threads"][0]
    return thread


@pytest.mark.parametrize("end", ["stop", "crash"])
def test_task_that_waited_for_an_answer_goes_on_in_its_chat(tmp_path: Path, end: str) -> None:
    first, then = tmp_path / "first", tmp_path / "first"
    (first / "data").mkdir(parents=True)
    with served(first) as (made, _):
        body = {"message": "fold paper"}
        begun = httpx.post(f"{made.url}/chat", json=body, timeout=WAIT_S).json()
        assert begun["status"] == "waiting"
        session_id = begun["run_id"].rpartition(".")[0]
        (task,) = made.agent.backend.book.tasks()
        if end == "crash":  # what a kill would leave on the disk
            then = shutil.copytree(first, tmp_path / "then")
    with served(then) as (made, asked):
        waiting = made.becomes(task.task_id, "waiting_approval", "failed")
        assert waiting["session_id"] == session_id
        thread = read(made, session_id)
        assert [turn["status"] for turn in thread["turns"]] == ["cancelled", "waiting"]
        # The question of before is withdrawn: there is one to answer.
        question = made.answer(session_id, allow=True)
        assert question["turnId"] == "t2"
        done = made.becomes(task.task_id, "completed", "failed")
        assert done["status"] == "completed", done
        service = made.agent.service
        assert [tool.tool_id for tool in service.registry.tools()] == ["folder"]
        assert [one.amount_usd for one in service.budget.transactions()] == [Decimal("0.5")]
        assert service.budget.reservations() == []
        until = time.monotonic() + WAIT_S
        while read(made, session_id)["status"] != "completed":
            assert time.monotonic() < until
            time.sleep(0.02)
        shown = str([fact["payload"] for fact in made.facts(session_id)])
        assert "The server was restarted. The task goes on: fold paper" in shown
        assert "folder is ready" in shown
        assert [task.attempts for task in made.agent.backend.book.tasks()] == [2]
        assert asked == []  # the author's agent is not asked again
