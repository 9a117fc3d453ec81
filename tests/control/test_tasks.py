"""Tasks over the control plane: control-plane.md 5, `task/*`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from arp.access.principal import Principal
from arp.audit.models import tasks as task_models
from arp.control.control import Control
from arp.control.tasks import (
    CancelTask,
    CompleteTask,
    CreateTask,
    LinkTask,
    ListTasks,
    RetryTask,
    TaskParams,
    TaskProgress,
    TaskState,
    UpdateTask,
)
from arp.control.turns import TurnInput
from arp.protocol.errors import InvalidMessage, SessionBusy, SessionNotFound, UnknownObject
from tests.control.control_rig import controlled, facts, gate, said
from tests.support.waiting import becomes


@pytest.fixture
async def control() -> AsyncIterator[Control]:
    async with controlled() as made:
        await made.context.open("s", None)
        yield made


async def create(control: Control, task_id: str | None = "t", **more: Any) -> TaskState:
    return await control.tasks.create(
        CreateTask(session_id="s", task_id=task_id, objective="do it", **more)
    )


async def update(control: Control, task_id: str = "t", **more: Any) -> TaskState:
    return await control.tasks.update(UpdateTask(session_id="s", task_id=task_id, **more))


async def failed(control: Control, task_id: str = "t") -> None:
    """Makes a task whose first attempt failed."""
    await create(control, task_id)
    await update(control, task_id, status="running")
    await update(control, task_id, status="failed", reason="no luck")


async def told(control: Control, task_id: str = "t") -> list[str]:
    """Return the types of the facts of a task."""
    found = [json.loads(fact) for _, fact in await facts(control)]
    return [fact["type"] for fact in found if fact.get("taskId") == task_id]


# -- create ----------------------------------------------------------------------------------------


async def test_created_task_has_what_was_said_of_it(control: Control) -> None:
    await create(control, "parent")
    await create(control, "first")
    state = await create(control, parent_task_id="parent", depends_on=("first",))
    assert (state.task["taskId"], state.task["objective"]) == ("t", "do it")
    assert (state.task["status"], state.repeated) == ("accepted", False)
    assert state.task["edges"] == {
        "parentTaskId": "parent",
        "rootTaskId": "parent",
        "dependsOn": ["first"],
    }


async def test_same_task_id_is_one_task(control: Control) -> None:
    first, second = await asyncio.gather(create(control), create(control))
    assert sorted((first.repeated, second.repeated)) == [False, True]
    assert await told(control) == ["task.created", "task.accepted"]


async def test_task_without_an_id_gets_one(control: Control) -> None:
    one, two = await create(control, None), await create(control, None)
    assert one.task["taskId"] != two.task["taskId"]


@pytest.mark.parametrize("more", [{"depends_on": ("none",)}, {"parent_task_id": "none"}])
async def test_task_after_one_that_there_is_not_is_refused(
    control: Control, more: dict[str, Any]
) -> None:
    with pytest.raises(UnknownObject, match="no task 'none'"):
        await create(control, **more)
    assert await told(control) == []


async def test_tasks_of_others_are_not_there(control: Control) -> None:
    other = Control(control.context.plane, Principal("ada"))
    await create(control)
    named: Any = {"session_id": "s", "task_id": "t"}
    for call in (
        other.tasks.create(CreateTask(**named, objective="x")),
        other.tasks.get(TaskParams(**named)),
        other.tasks.page(ListTasks(session_id="s")),
        other.tasks.retry(RetryTask(**named)),
    ):
        with pytest.raises(SessionNotFound):
            await call


# -- update ----------------------------------------------------------------------------------------


async def test_running_begins_an_attempt_and_only_one(control: Control) -> None:
    await create(control)
    state = await update(control, status="running", run_id="r")
    assert (state.task["status"], state.task["currentRunId"]) == ("running", "r")
    await update(control, status="paused", reason="lunch")
    resumed = await update(control, status="running")
    assert (resumed.task["status"], len(resumed.task["attempts"])) == ("running", 1)
    await update(control, status="running")
    assert await told(control) == [
        "task.created",
        "task.accepted",
        "task.started",
        "task.attempt.started",
        "task.paused",
        "task.resumed",
        "task.started",
    ]


@pytest.mark.parametrize(
    ("status", "type_name"),
    [
        ("accepted", "task.accepted"),
        ("queued", "task.queued"),
        ("waiting_input", "task.waiting"),
        ("waiting_permission", "task.waiting"),
        ("waiting_resource", "task.waiting"),
        ("blocked", "task.blocked"),
        ("paused", "task.paused"),
        ("failed", "task.failed"),
        ("timed_out", "task.timed_out"),
        ("lost", "task.lost"),
        ("archived", "task.archived"),
    ],
)
async def test_each_status_has_its_fact(control: Control, status: Any, type_name: str) -> None:
    await create(control)
    state = await update(control, status=status, reason="because")
    assert state.task["status"] == status
    assert (await told(control))[-1] == type_name


@pytest.mark.parametrize("status", ["failed", "lost", "blocked"])
async def test_what_needs_a_reason_is_refused_without(control: Control, status: Any) -> None:
    await create(control)
    with pytest.raises(InvalidMessage, match=f"reason: say why the task is {status}"):
        await update(control, status=status, objective="another")
    assert await told(control) == ["task.created", "task.accepted"]


async def test_progress_and_objective_are_noted(control: Control) -> None:
    await create(control)
    progress = TaskProgress(done=2, total=5, message="two of five")
    state = await update(control, objective="do more", progress=progress)
    assert state.task["objective"] == "do more"
    assert state.task["progress"] == {"done": 2, "total": 5, "message": "two of five"}


async def test_task_that_has_ended_is_not_updated(control: Control) -> None:
    await failed(control)
    again = await update(control, status="failed", reason="no luck")
    assert again.repeated
    with pytest.raises(InvalidMessage, match="task t is failed; task/retry starts another attempt"):
        await update(control, status="running")
    assert (await update(control, status="archived")).task["status"] == "archived"


async def test_update_of_what_there_is_not_is_refused(control: Control) -> None:
    with pytest.raises(UnknownObject, match="no task 't'"):
        await update(control, status="running")


# -- retry -----------------------------------------------------------------------------------------


async def test_retry_is_a_new_run_and_the_history_stays(control: Control) -> None:
    await failed(control)
    asked = RetryTask(session_id="s", task_id="t", run_id="again", reason="new luck")
    state = await control.tasks.retry(asked)
    assert [(a["runId"], a["attempt"], a["status"]) for a in state.task["attempts"]] == [
        ("t.1", 1, "failed"),
        ("again", 2, "running"),
    ]
    assert (await control.tasks.retry(asked)).repeated
    assert (await told(control)).count("task.retrying") == 1


async def test_retry_begins_a_turn_if_it_has_an_input(control: Control) -> None:
    await failed(control)
    state = await control.tasks.retry(
        RetryTask(session_id="s", task_id="t", input=TurnInput(text="again"), turn_id="second")
    )
    assert state.turn_id == "second"
    attempt = state.task["attempts"][-1]
    assert (attempt["turnId"], attempt["runId"]) == ("second", "t.2")


async def test_retry_whose_turn_is_refused_records_nothing(control: Control) -> None:
    await failed(control)
    before = await told(control)
    with pytest.raises(InvalidMessage):
        await control.tasks.retry(RetryTask(session_id="s", task_id="t", input=TurnInput()))
    assert await told(control) == before


async def test_only_what_failed_is_tried_again(control: Control) -> None:
    await create(control)
    retry = RetryTask(session_id="s", task_id="t")
    with pytest.raises(InvalidMessage, match="only a task that failed can be retried"):
        await control.tasks.retry(retry)
    await update(control, status="running")
    with pytest.raises(SessionBusy, match=r"attempt t\.1 of task t still runs"):
        await control.tasks.retry(retry)
    await control.tasks.complete(CompleteTask(session_id="s", task_id="t"))
    with pytest.raises(InvalidMessage, match="task t is completed"):
        await control.tasks.retry(retry)


async def test_item_of_a_job_is_told_of_too(control: Control) -> None:
    await create(control, job_id="import", job_item_id="b")
    await update(control, status="running")
    await update(control, status="failed", reason="no luck")
    await control.tasks.retry(RetryTask(session_id="s", task_id="t"))
    await control.tasks.complete(CompleteTask(session_id="s", task_id="t"))
    items = [json.loads(fact) for _, fact in await facts(control)]
    assert [
        (one["type"], one["jobItemId"], one["payload"]["attempt"])
        for one in items
        if one["type"].startswith("job.")
    ] == [
        ("job.item.started", "b", 1),
        ("job.item.failed", "b", 1),
        ("job.item.started", "b", 2),
        ("job.item.completed", "b", 2),
    ]


# -- complete, cancel ------------------------------------------------------------------------------


async def test_completed_task_has_its_outputs(control: Control) -> None:
    await create(control)
    asked = CompleteTask(session_id="s", task_id="t", outputs=("a",), artifacts=("main",))
    state = await control.tasks.complete(asked)
    assert (state.task["status"], state.task["outputs"]) == ("completed", ["a"])
    assert state.task["artifacts"] == ["main"]
    assert (await control.tasks.complete(asked)).repeated


async def test_cancel_notes_the_wish_before_the_end(control: Control) -> None:
    await create(control)
    await update(control, status="running")
    asked = CancelTask(session_id="s", task_id="t", reason="not needed")
    state = await control.tasks.cancel(asked)
    assert state.task["status"] == "cancelled"
    assert (await told(control))[-3:] == [
        "task.cancel_requested",
        "task.attempt.failed",
        "task.cancelled",
    ]
    assert (await control.tasks.cancel(asked)).repeated
    with pytest.raises(InvalidMessage, match="task t is cancelled already"):
        await control.tasks.complete(CompleteTask(session_id="s", task_id="t"))


async def test_cancel_stops_the_turn_of_the_attempt(control: Control) -> None:
    await failed(control)
    await control.tasks.retry(RetryTask(session_id="s", task_id="t", input=TurnInput(text="wait")))
    live = await control.context.live("s")
    await becomes(lambda: bool(control.context.hub.runner.tasks))
    state = await control.tasks.cancel(CancelTask(session_id="s", task_id="t"))
    assert state.task["status"] == "cancelled"
    assert live.session.status_of("t1") == "cancelled"


# -- edges -----------------------------------------------------------------------------------------


async def test_edges_are_set_and_taken_away(control: Control) -> None:
    for name in ("a", "b", "c"):
        await create(control, name)
    linked = await control.tasks.link(
        LinkTask(session_id="s", task_id="c", depends_on=("a", "b"), parent_task_id="a")
    )
    assert linked.task["edges"]["dependsOn"] == ["a", "b"]
    assert linked.task["edges"]["parentTaskId"] == "a"
    freed = await control.tasks.link(LinkTask(session_id="s", task_id="c", depends_on=()))
    assert "dependsOn" not in freed.task["edges"]


async def test_task_never_comes_before_itself(control: Control) -> None:
    for name in ("a", "b", "c"):
        await create(control, name)
    await control.tasks.link(LinkTask(session_id="s", task_id="b", depends_on=("a",)))
    await control.tasks.link(LinkTask(session_id="s", task_id="c", depends_on=("b",)))
    for before in ("a", "c"):
        with pytest.raises(InvalidMessage, match="task 'a' would depend on itself"):
            await control.tasks.link(LinkTask(session_id="s", task_id="a", depends_on=(before,)))


# -- reading ---------------------------------------------------------------------------------------


async def test_list_has_tasks_by_status(control: Control) -> None:
    await create(control, "open")
    await failed(control, "bad")
    page = await control.tasks.page(ListTasks(session_id="s"))
    assert [task["taskId"] for task in page.tasks] == ["open", "bad"]
    assert (page.counts, page.total, page.older) == ({"accepted": 1, "failed": 1}, 2, 0)
    (only,) = (await control.tasks.page(ListTasks(session_id="s", status="failed"))).tasks
    assert only["taskId"] == "bad"
    (last,) = (await control.tasks.page(ListTasks(session_id="s", limit=1))).tasks
    assert last["taskId"] == "bad"


async def test_task_that_the_read_model_let_go_is_read_from_the_log(
    control: Control, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_models, "MOST_ENDED", 1)
    await failed(control, "old")
    for name in ("newer", "newest"):
        await failed(control, name)
    page = await control.tasks.page(ListTasks(session_id="s"))
    assert "old" not in [task["taskId"] for task in page.tasks]
    assert page.older == 2
    state = await control.tasks.get(TaskParams(session_id="s", task_id="old"))
    assert (state.task["status"], state.task["statusReason"]) == ("failed", "no luck")
    assert (await create(control, "old")).repeated
    retried = await control.tasks.retry(RetryTask(session_id="s", task_id="old"))
    assert [one["attempt"] for one in retried.task["attempts"]] == [1, 2]
    with pytest.raises(UnknownObject, match="no task 'never'"):
        await control.tasks.get(TaskParams(session_id="s", task_id="never"))


async def test_tasks_and_turns_of_an_agent_go_on_beside(control: Control) -> None:
    await said(control, "wait")
    await create(control)
    gate(control.context.hub).set()
    live = await control.context.live("s")
    await becomes(lambda: live.session.running is None)
    assert (await control.tasks.get(TaskParams(session_id="s", task_id="t"))).task["status"]
