"""A task goes on after a restart, in the chat where somebody waits for it."""

from __future__ import annotations

import shutil
import time
from decimal import Decimal
from pathlib import Path

import httpx
import pytest

from arp.control.sessions import ReadSession
from arp.protocol.json_value import JsonObject
from tests.tools.app.folding import folding
from tests.tools.app.smithy import WAIT_S, Smithy

pytestmark = pytest.mark.timeout(120)


def read(made: Smithy, session_id: str) -> JsonObject:
    async def work() -> JsonObject:
        control = await made.server.application.control()
        return dict(await control.sessions.read(ReadSession(session_id=session_id)))

    thread: JsonObject = made.run(work)["threads"][0]
    return thread


def statuses(made: Smithy, session_id: str) -> list[str]:
    return [turn["status"] for turn in read(made, session_id)["turns"]]


@pytest.mark.parametrize("end", ["stop", "crash"])
def test_task_that_waited_for_an_answer_goes_on_in_its_chat(tmp_path: Path, end: str) -> None:
    first, then = tmp_path / "first", tmp_path / "first"
    (first / "data").mkdir(parents=True)
    with folding(first) as (made, _):
        body = {"message": "fold paper"}
        begun = httpx.post(f"{made.url}/chat", json=body, timeout=WAIT_S).json()
        assert begun["status"] == "waiting"
        session_id = begun["run_id"].rpartition(".")[0]
        (task,) = made.agent.backend.book.tasks()
        if end == "crash":  # what a kill would leave on the disk
            then = shutil.copytree(first, tmp_path / "then")
    with folding(then) as (made, asked):
        waiting = made.becomes(task.task_id, "waiting_approval", "failed")
        assert waiting["session_id"] == session_id
        until = time.monotonic() + WAIT_S  # the status is stored a moment after the question
        while statuses(made, session_id) != ["cancelled", "waiting"]:
            assert time.monotonic() < until, statuses(made, session_id)
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
        assert "The server was restarted. The task continues: fold paper" in shown
        assert "folder is ready" in shown
        assert [task.attempts for task in made.agent.backend.book.tasks()] == [2]
        assert asked == []  # the author's agent is not asked again
