"""Turns over the control plane: control-plane.md 2, turns and the queue."""

from __future__ import annotations

import json

import pytest

from arp.access.principal import Principal
from arp.control.control import Control
from arp.control.tasks import CompleteTask, CreateTask, TaskParams, UpdateTask
from arp.control.turns import CancelTurn, QueuedTurn, StartTurn, TurnInput
from arp.live.settings import HubSettings
from arp.protocol.errors import (
    InvalidMessage,
    SessionBusy,
    SessionNotFound,
    UnknownObject,
)
from tests.control.control_rig import controlled, facts, gate, said, types
from tests.support.waiting import becomes


async def test_started_turn_is_durable_when_the_answer_comes() -> None:
    async with controlled() as control:
        state = await said(control)
        assert (state.turn_id, state.status, state.repeated) == ("t1", "running", False)
        stored = await control.context.hub.store.read("s")
        assert [json.loads(fact)["type"] for _, fact in stored][:3] == [
            "session.created",
            "turn.submitted",
            "turn.started",
        ]


async def test_turn_without_a_session_makes_one() -> None:
    async with controlled() as control:
        state = await control.turns.start(StartTurn(input=TurnInput(text="hi")))
        assert (await control.context.live(state.session_id)).session.head.workflow == "agent"


async def test_session_is_made_for_the_agent_that_is_named() -> None:
    async with controlled(other=_silent) as control:
        asked = StartTurn(session_id="s", input=TurnInput(text="hi"), workflow="other")
        await control.turns.start(asked)
        assert (await control.context.live("s")).session.head.workflow == "other"
        with pytest.raises(UnknownObject, match="no agent 'third'; there are agent, other"):
            await control.turns.start(
                StartTurn(session_id="new", input=TurnInput(text="hi"), workflow="third")
            )
        assert "new" not in control.context.hub.sessions


async def _silent(_: object) -> None:
    return None


async def test_same_turn_id_is_one_turn() -> None:
    async with controlled() as control:
        first = await said(control, turn_id="mine-1")
        again = await said(control, "something else", turn_id="mine-1")
        assert (first.turn_id, first.repeated) == ("mine-1", False)
        assert (again.turn_id, again.repeated) == ("mine-1", True)
        assert (await types(control)).count("turn.submitted") == 1


async def test_turn_id_of_the_servers_own_kind_is_refused_unless_it_is_there() -> None:
    async with controlled() as control:
        with pytest.raises(InvalidMessage, match="the server makes the ids t1, t2"):
            await said(control, turn_id="t1")
        await said(control)
        assert (await said(control, turn_id="t1")).repeated


async def test_turn_says_which_task_and_run_it_is_for() -> None:
    async with controlled() as control:
        await said(control, task_id="build", run_id="build.2")
        submitted = json.loads((await facts(control))[1][1])
        assert (submitted["taskId"], submitted["runId"]) == ("build", "build.2")


async def ids_of(control: Control) -> list[tuple[str, str | None, str | None]]:
    """Give type, turn and run of each fact of a task."""
    told = [json.loads(fact) for _, fact in await facts(control)]
    return [(f["type"], f.get("turnId"), f.get("runId")) for f in told if "taskId" in f]


async def test_turn_for_a_run_of_a_task_begins_the_attempt() -> None:
    async with controlled() as control:
        await control.context.open("s", None)
        await control.tasks.create(CreateTask(session_id="s", objective="Build", task_id="build"))
        await said(control, "wait", task_id="build", run_id="first")
        begun = await ids_of(control)
        assert begun == [
            ("task.created", None, None),
            ("task.accepted", None, None),
            ("turn.submitted", "t1", "first"),
            ("task.started", "t1", "first"),
            ("task.attempt.started", "t1", "first"),
        ]
        task = (await control.tasks.get(TaskParams(session_id="s", task_id="build"))).task
        assert (task["status"], task["currentRunId"]) == ("running", "first")
        (attempt,) = task["attempts"]
        assert (attempt["runId"], attempt["turnId"], attempt["attempt"]) == ("first", "t1", 1)


async def test_another_turn_of_the_same_run_goes_on_with_the_attempt() -> None:
    async with controlled() as control:
        await said(control, "wait", task_id="build", run_id="first", turn_id="one")
        again = await said(control, task_id="build", run_id="first", turn_id="one")
        assert again.repeated
        two = await said(control, task_id="build", run_id="first")
        gate(control.context.hub).set()
        live = await control.context.live("s")
        await becomes(lambda: live.session.running is None)
        told = await ids_of(control)
        assert [name for name, _, _ in told].count("task.attempt.started") == 1
        assert [name for name, _, _ in told].count("turn.submitted") == 2
        assert told[-1] == ("task.attempt.completed", two.turn_id, "first")


ENDS = [
    ("hello", "completed", None),
    ("fail", "failed", "failed"),
    ("wait", "failed", "cancelled"),
    ("ask", "failed", "cancelled"),
]


@pytest.mark.parametrize(("text", "end", "reason"), ENDS)
async def test_an_attempt_that_began_with_a_turn_ends_with_it(
    text: str, end: str, reason: str | None
) -> None:
    async with controlled() as control:
        await control.context.open("s", None)
        await control.tasks.create(
            CreateTask(session_id="s", objective="Build", task_id="k", job_id="j", job_item_id="i")
        )
        await said(control, text, task_id="k", run_id="first")
        if reason == "cancelled":
            await control.turns.cancel(CancelTurn(session_id="s"))
        live = await control.context.live("s")
        await becomes(lambda: live.session.running is None)
        told = [json.loads(fact) for _, fact in await facts(control)]
        attempt, item = told[-2:]
        assert (attempt["type"], item["type"]) == (f"task.attempt.{end}", f"job.item.{end}")
        for fact in (attempt, item):
            assert fact["payload"] == {"attempt": 1} | ({"reason": reason} if reason else {})
            assert (fact["turnId"], fact["runId"], fact["jobItemId"]) == ("t1", "first", "i")
        task = (await control.tasks.get(TaskParams(session_id="s", task_id="k"))).task
        assert [one["status"] for one in task["attempts"]] == [end]
        assert "currentRunId" not in task
        await said(control, "again", task_id="k", run_id="second")
        await control.tasks.complete(CompleteTask(session_id="s", task_id="k"))


async def test_an_attempt_of_a_turn_that_leaves_the_queue_is_cancelled() -> None:
    async with controlled() as control:
        await said(control, "wait")
        queued = await said(control, "hello", task_id="k", run_id="first")
        await control.turns.remove(QueuedTurn(session_id="s", turn_id=queued.turn_id))
        task = (await control.tasks.get(TaskParams(session_id="s", task_id="k"))).task
        (attempt,) = task["attempts"]
        assert (attempt["status"], attempt["reason"]) == ("failed", "cancelled")


async def test_an_attempt_that_somebody_ended_is_left_as_it_is() -> None:
    async with controlled() as control:
        await said(control, "wait", task_id="k", run_id="first")
        await control.tasks.complete(CompleteTask(session_id="s", task_id="k"))
        gate(control.context.hub).set()
        live = await control.context.live("s")
        await becomes(lambda: live.session.running is None)
        told = [name for name, _, _ in await ids_of(control)]
        assert told.count("task.attempt.completed") == 1
        assert "task.attempt.failed" not in told


async def test_a_run_after_one_that_failed_is_a_retry() -> None:
    async with controlled() as control:
        await said(control, "wait", task_id="build", run_id="first")
        failed = UpdateTask(session_id="s", task_id="build", status="failed", reason="no luck")
        await control.tasks.update(failed)
        await said(control, task_id="build", run_id="second")
        assert (await ids_of(control))[3:] == [
            ("task.attempt.failed", None, "first"),
            ("task.failed", None, "first"),
            ("turn.submitted", "t2", "second"),
            ("task.retrying", "t2", "second"),
            ("task.attempt.started", "t2", "second"),
        ]
        await control.tasks.complete(CompleteTask(session_id="s", task_id="build"))
        assert (await ids_of(control))[-1] == ("task.completed", None, "second")


async def test_a_run_beside_one_that_runs_and_one_of_what_is_done_are_refused() -> None:
    async with controlled() as control:
        await said(control, "wait", task_id="build", run_id="first")
        before = await types(control)
        with pytest.raises(SessionBusy, match="attempt first of task build still runs"):
            await said(control, task_id="build", run_id="second")
        await control.tasks.complete(CompleteTask(session_id="s", task_id="build"))
        with pytest.raises(InvalidMessage, match="task build is completed: it has no more"):
            await said(control, task_id="build", run_id="second")
        told = await types(control)
        assert told.count("turn.submitted") == before.count("turn.submitted") == 1


async def test_typed_text_is_a_turn_also_while_a_question_is_open() -> None:
    async with controlled() as control:
        await said(control, "ask")
        await becomes(lambda: bool(control.context.hub.sessions["s"].session.questions))
        state = await said(control, "yes")
        assert (state.turn_id, state.status) == ("t2", "queued")


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (TurnInput(), "give text, or input_type and data"),
        (TurnInput(text="a", data={"text": "a"}), "give text, or input_type and data"),
        (TurnInput(text="a", input_type="voice"), "give text, or input_type and data"),
        (TurnInput(input_type="selection", data={"selected": []}), "begins no turn"),
        (TurnInput(input_type="text", data={}), r"data.text: missing"),
    ],
)
async def test_input_that_says_too_little_or_too_much_is_refused(
    asked: TurnInput, why: str
) -> None:
    async with controlled() as control:
        with pytest.raises(InvalidMessage, match=why):
            await control.turns.start(StartTurn(session_id="s", input=asked))
        assert await types(control) == ["session.created"]


async def test_input_of_another_type_has_its_data() -> None:
    async with controlled() as control:
        asked = TurnInput(input_type="navigate", data={"route": "/home"})
        await control.turns.start(StartTurn(session_id="s", input=asked))
        submitted = json.loads((await facts(control))[1][1])
        assert submitted["payload"]["input"] == {
            "input_type": "navigate",
            "data": {"route": "/home"},
        }


async def test_sessions_of_others_are_as_if_they_were_not_there() -> None:
    async with controlled() as control:
        await control.context.hub.open("hers", Principal("ada"), "agent")
        for call in (
            control.turns.start(StartTurn(session_id="hers", input=TurnInput(text="x"))),
            control.turns.cancel(CancelTurn(session_id="hers")),
            control.turns.remove(QueuedTurn(session_id="hers", turn_id="t1")),
            control.turns.promote(QueuedTurn(session_id="hers", turn_id="t1")),
        ):
            with pytest.raises(SessionNotFound):
                await call


# -- cancel ----------------------------------------------------------------------------------------


async def test_cancel_notes_the_intent_before_anything_stops() -> None:
    async with controlled() as control:
        await said(control, "wait")
        state = await control.turns.cancel(CancelTurn(session_id="s"))
        assert state.status == "cancelling"
        live = await control.context.live("s")
        await becomes(lambda: live.session.running is None)
        told = await types(control)
        assert told.index("run.status") < told.index("turn.failed")


async def test_cancel_leaves_the_line_alone_unless_it_is_told_otherwise() -> None:
    async with controlled() as control:
        await said(control, "wait")
        await said(control, "next", turn_id="next")
        kept = await control.turns.cancel(CancelTurn(session_id="s", turn_id="t1"))
        assert kept.queued == ["next"]
        live = await control.context.live("s")
        await becomes(lambda: live.session.status_of("next") == "completed")


async def test_cancel_may_empty_the_line() -> None:
    async with controlled() as control:
        await said(control, "wait")
        await said(control, "next", turn_id="next")
        asked = CancelTurn(session_id="s", queued="cancel")
        assert (await control.turns.cancel(asked)).queued == []
        assert (await control.context.live("s")).session.status_of("next") == "cancelled"


async def test_cancelling_twice_is_one_intent() -> None:
    async with controlled(settings=HubSettings(cancel_grace_s=0.05)) as control:
        await said(control, "wait")
        for _ in range(2):
            await control.turns.cancel(CancelTurn(session_id="s", turn_id="t1"))
        live = await control.context.live("s")
        await becomes(lambda: live.session.running is None)
        over = await control.turns.cancel(CancelTurn(session_id="s", turn_id="t1"))
        assert (over.status, over.repeated) == ("cancelled", True)
        assert (await types(control)).count("run.status") == 1


async def test_cancel_of_what_there_is_not_is_refused() -> None:
    async with controlled() as control:
        await said(control)
        live = await control.context.live("s")
        await becomes(lambda: live.session.running is None)
        with pytest.raises(UnknownObject, match="no turn runs in this session"):
            await control.turns.cancel(CancelTurn(session_id="s"))
        with pytest.raises(UnknownObject, match="no turn 'x'"):
            await control.turns.cancel(CancelTurn(session_id="s", turn_id="x"))


# -- the line --------------------------------------------------------------------------------------


async def test_removed_turn_never_runs() -> None:
    async with controlled() as control:
        await said(control, "wait")
        await said(control, "next", turn_id="next")
        asked = QueuedTurn(session_id="s", turn_id="next")
        state = await control.turns.remove(asked)
        assert (state.status, state.queued, state.repeated) == ("cancelled", [], False)
        assert (await control.turns.remove(asked)).repeated
        gate(control.context.hub).set()
        assert (await types(control)).count("turn.started") == 1


async def test_promoted_turn_is_first_in_line() -> None:
    async with controlled() as control:
        await said(control, "wait")
        for name in ("b", "c"):
            await said(control, name, turn_id=name)
        asked = QueuedTurn(session_id="s", turn_id="c")
        assert (await control.turns.promote(asked)).queued == ["c", "b"]
        assert (await control.turns.promote(asked)).repeated
        assert (await types(control)).count("queue.changed") == 3


async def test_turn_that_runs_is_neither_removed_nor_promoted() -> None:
    async with controlled() as control:
        await said(control, "wait")
        for call in (control.turns.remove, control.turns.promote):
            with pytest.raises(SessionBusy, match="turn t1 runs"):
                await call(QueuedTurn(session_id="s", turn_id="t1"))


async def test_turn_that_is_over_is_not_promoted() -> None:
    async with controlled() as control:
        await said(control)
        live = await control.context.live("s")
        await becomes(lambda: live.session.running is None)
        with pytest.raises(UnknownObject, match="turn t1 is over"):
            await control.turns.promote(QueuedTurn(session_id="s", turn_id="t1"))
