"""A case is run again over the control plane: inputs, answers and cancels as they were."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest

from arp.audit.evidence.replay_case import Case, TurnCase, decode_case
from arp.commands.replay.rerun import Rerun
from arp.control.actions import Respond
from arp.control.control import Control
from arp.control.exports import ExportReplay
from arp.control.sessions import StartThread
from arp.control.tasks import CompleteTask, CreateTask, RetryTask, UpdateTask
from arp.control.turns import CancelTurn, TurnInput
from arp.hub.runner import Handler
from arp.live.live_session import LiveSession
from arp.store.memory import MemoryStore
from arp.store.store import SessionWrite
from arp.turn.turn import Turn
from arp.ui import confirm
from tests.control.control_rig import controlled, said
from tests.hub.rig import Renderer
from tests.support.waiting import becomes


async def talker(turn: Turn) -> None:
    """Asks, waits, or says what it was told."""
    match turn.text:
        case "ask":
            first = await turn.ask(confirm("Sure?"))
            second = await turn.confirm("Really?", id="really")
            await turn.say(f"{first} {second}")
        case "wait":
            await turn.say("I wait")
            await asyncio.Event().wait()
        case _:
            await turn.say(turn.text)


async def otherwise(turn: Turn) -> None:
    """Does not ask what the other one asks."""
    if turn.text == "ask":
        turn.show(confirm("Sure?", id="aside"))
        await turn.confirm("Sure?")
    await turn.say(turn.text)


def _open(live: LiveSession) -> set[str]:
    return {question.action_id for question in live.session.questions.values()}


def _is_closed(live: LiveSession, action_id: str) -> bool:
    return action_id not in _open(live)


async def recorded() -> Case:
    """Return the case of a conversation with answers and a cancel."""
    async with controlled(talker) as control:
        live = (await said(control, "hello"), await control.context.live("s"))[1]
        await said(control, "ask")
        answered: set[str] = set()
        for answer in (True, False):
            await becomes(lambda: _open(live) - answered != set())
            (question,) = live.session.questions.values()
            answered.add(question.action_id)
            asked = Respond(session_id="s", action_id=question.action_id, response=answer)
            await control.actions.respond(asked)
        await said(control, "wait")
        await becomes(lambda: live.session.screen.text("t3") == "I wait")
        await control.turns.cancel(CancelTurn(session_id="s"))
        await becomes(lambda: live.session.running is None)
        made = await control.exports.replay(ExportReplay(session_id="s"))
        assert made.document is not None
        return decode_case(made.document.encode())


async def test_answers_and_a_cancel_come_again_at_their_places() -> None:
    case = await recorded()
    actions = [[one.input["data"]["action"] for one in turn.responses] for turn in case.turns]
    assert actions == [[], ["confirm", "deny"], []]
    assert [turn.is_cancelled for turn in case.turns] == [False, False, True]
    seen: list[str] = []
    async with controlled(talker) as control:
        again = Rerun(control, case)
        assert await again.first_difference(lambda turn: seen.append(turn.turn_id)) is None
        assert again.session_id is not None
        live = await control.context.live(again.session_id)
        assert live.session.screen.text("t2") == "True False"
        assert live.session.status_of("t3") == "cancelled"
    assert seen == ["t1", "t2", "t3"]


async def test_an_agent_that_does_otherwise_is_left_at_the_first_difference() -> None:
    case, seen = await recorded(), list[TurnCase]()
    async with controlled(otherwise) as control:
        difference = await Rerun(control, case, turn_s=1).first_difference(seen.append)
    assert difference is not None
    assert difference.turn_id == "t2"
    assert [turn.turn_id for turn in seen] == ["t1"]


async def test_an_agent_that_does_not_stop_for_a_cancel_differs() -> None:
    case = await recorded()

    async def hasty(turn: Turn) -> None:
        if turn.text == "wait":
            await turn.say("I wait")
        else:
            await talker(turn)

    async with controlled(hasty) as control:
        difference = await Rerun(control, case).first_difference()
    assert difference is not None
    assert (difference.turn_id, difference.where) == ("t3", "type")
    assert difference.expected == "turn.failed"


async def test_a_workflow_that_is_not_there_is_run_with_the_first() -> None:
    async with controlled(talker, gone=talker) as control:
        await said(control, "hello", workflow="gone")
        live = await control.context.live("s")
        await becomes(lambda: live.session.running is None)
        made = await control.exports.replay(ExportReplay(session_id="s"))
    assert made.document is not None
    case = decode_case(made.document.encode())
    assert case.workflow == "gone"
    async with controlled(talker) as control:
        assert await Rerun(control, case).first_difference() is None


async def test_a_turn_that_takes_too_long_is_stopped() -> None:
    case = await recorded()

    async def stuck(turn: Turn) -> None:
        await asyncio.Event().wait()

    async with controlled(stuck) as control:
        again = Rerun(control, case, turn_s=0.2)
        difference = await again.first_difference()
        assert difference is not None
        assert (difference.where, difference.expected) == ("missing", "model.delta")
        assert again.session_id is not None
        live = await control.context.live(again.session_id)
        await becomes(lambda: live.session.status_of("t1") == "cancelled")


# -- retries, and turns that did not end by themselves ---------------------------------------------


async def case_of(control: Control) -> Case:
    made = await control.exports.replay(ExportReplay(session_id="s"))
    assert made.document is not None, made.reason
    return decode_case(made.document.encode())


async def same_again(case: Case) -> list[str]:
    """Run a case with the same agent, at once; give the turns that were the same."""
    seen: list[str] = []
    async with asyncio.timeout(10), controlled(talker) as control:
        again = Rerun(control, case)
        difference = await again.first_difference(lambda turn: seen.append(turn.turn_id))
        assert difference is None
    return seen


@pytest.mark.parametrize("way", ["task/retry", "turn/start"])
async def test_a_case_with_an_attempt_at_a_task_passes(way: str) -> None:
    async with controlled(talker) as control:
        live = (await said(control, "hello"), await control.context.live("s"))[1]
        await control.tasks.create(
            CreateTask(session_id="s", objective="Say it", task_id="k", job_id="j", job_item_id="a")
        )
        if way == "task/retry":
            failed = UpdateTask(session_id="s", task_id="k", status="failed", reason="no luck")
            await control.tasks.update(failed)
            await control.tasks.retry(
                RetryTask(session_id="s", task_id="k", input=TurnInput(text="again"))
            )
        else:
            await said(control, "again", task_id="k", run_id="first")
        await becomes(lambda: live.session.running is None)
        await control.tasks.complete(CompleteTask(session_id="s", task_id="k"))
        await said(control, "behind")
        await becomes(lambda: live.session.running is None)
        case = await case_of(control)
        of_task = await control.exports.replay(ExportReplay(session_id="s", task_id="k"))
    assert await same_again(case) == ["t1", "t2", "t3"]
    assert of_task.document is not None
    assert await same_again(decode_case(of_task.document.encode())) == ["t2"]


@pytest.mark.parametrize("text", ["wait", "ask"])
async def test_a_case_with_an_unfinished_turn_and_a_line_passes_at_once(text: str) -> None:
    async with controlled(talker) as control:
        await said(control, "hello")
        live = await control.context.live("s")
        await becomes(lambda: live.session.running is None)
        await said(control, text)
        await said(control, "in line")
        await becomes(lambda: live.session.screen.text("t2") == "I wait" or _open(live) != set())
        case = await case_of(control)
    assert [turn.is_unfinished for turn in case.turns] == [False, True, True]
    assert await same_again(case) == ["t1", "t2", "t3"]


async def test_a_turn_that_was_cancelled_at_a_question_passes_at_once() -> None:
    async with controlled(talker) as control:
        await said(control, "ask")
        live = await control.context.live("s")
        await becomes(lambda: _open(live) != set())
        await control.turns.cancel(CancelTurn(session_id="s"))
        await becomes(lambda: live.session.running is None)
        case = await case_of(control)
    assert [turn.is_cancelled for turn in case.turns] == [True]
    assert await same_again(case) == ["t1"]


async def test_turns_behind_one_that_a_crash_interrupted_pass() -> None:
    store = MemoryStore()
    async with controlled(talker, store=store) as control:
        await said(control, "ask")
        live = await control.context.live("s")
        await becomes(lambda: _open(live) != set())
        await live.written()
        entries = await store.read("s")
        meta = await store.session("s")
    crashed = MemoryStore()
    await crashed.open()
    await crashed.append([SessionWrite("s", 0, [fact for _, fact in entries], meta)])
    async with controlled(talker, store=crashed) as control:
        await said(control, "hello")
        live = await control.context.live("s")
        await becomes(lambda: live.session.status_of("t2") == "completed")
        case = await case_of(control)
    assert [turn.is_unfinished for turn in case.turns] == [True, False]
    assert await same_again(case) == ["t1", "t2"]


async def test_an_agent_that_does_less_than_the_unfinished_turn_differs() -> None:
    async with controlled(talker) as control:
        await said(control, "wait")
        live = await control.context.live("s")
        await becomes(lambda: live.session.screen.text("t1") == "I wait")
        case = await case_of(control)

    async def silent(turn: Turn) -> None:
        """Says nothing."""

    async with controlled(silent) as control:
        difference = await Rerun(control, case).first_difference()
    assert difference is not None
    assert (difference.where, difference.expected) == ("type", "model.delta")


async def recalling(turn: Turn) -> None:
    """Says what was said before in its thread."""
    await turn.say(", ".join(words for who, words in turn.history() if who == "user") or "nothing")


async def test_turns_of_two_threads_are_run_again_in_two_threads() -> None:
    async with controlled(recalling) as control:
        live = (await said(control, "one"), await control.context.live("s"))[1]
        await control.sessions.start_thread(StartThread(session_id="s", thread_id="side"))
        for words, thread in (("two", "side"), ("three", None), ("four", "side")):
            await said(control, words, thread_id=thread)
            await becomes(lambda: live.session.running is None)
        made = await control.exports.replay(ExportReplay(session_id="s"))
        assert made.document is not None
        case = decode_case(made.document.encode())
    assert [turn.thread_id for turn in case.turns] == [None, "side", None, "side"]
    async with controlled(recalling) as control:
        assert await Rerun(control, case).first_difference() is None


# -- answers as screens send them ------------------------------------------------------------------

KEY = "sk-ant-" + "a1B2c3D4" * 5
"""A text that the rules of redaction take for a secret."""


async def guarded(turn: Turn) -> None:
    """Asks for permission to use a secret of its own and the text of the user."""
    for words in (KEY, turn.text):
        async with turn.tool("shell", {"command": f"login {words}"}) as tool:
            allowed = await tool.approve(
                "Log in?", rule="commands", session_rule="any login", editable=True
            )
            tool.result(f"{words}: {allowed} {tool.denial}")
    await turn.say("done")


async def answered_on_a_screen(agent: Handler, text: str, *answers: dict[str, Any]) -> Case:
    """Return the case of a turn whose questions a screen answers: with no `id`."""
    async with controlled(agent) as control:
        screen = await Renderer(control.context.hub).join()
        await screen.say(text)
        live = await control.context.live("s")
        for answer in answers:
            await becomes(lambda: _open(live) != set())
            (question,) = live.session.questions.values()
            await screen.send(
                answer.pop("input_type", "action"),
                answer,
                source_component=question.component_id,
                surface=question.surface,
            )
            await becomes(partial(_is_closed, live, question.action_id))
        await becomes(lambda: live.session.running is None)
        return await case_of(control)


async def assert_same(agent: Handler, case: Case) -> None:
    async with asyncio.timeout(10), controlled(agent) as control:
        assert await Rerun(control, case).first_difference() is None


async def test_answers_without_an_id_come_again() -> None:
    case = await answered_on_a_screen(talker, "ask", {"action": "confirm"}, {"action": "deny"})
    await assert_same(talker, case)


@pytest.mark.parametrize("text", ["ls", KEY])
@pytest.mark.parametrize(
    "first",
    [
        {"action": "confirm"},
        {"action": "deny", "payload": {"reason": "not now"}},
        {"action": "confirm", "payload": {"scope": "once"}},
    ],
    ids=str,
)
async def test_permissions_with_a_secret_pass_with_the_same_agent(
    first: dict[str, Any], text: str
) -> None:
    """Their digests are salted; a secret that the user typed is in no case."""
    case = await answered_on_a_screen(guarded, text, dict(first), {"action": "confirm"})
    assert KEY not in str(case)
    await assert_same(guarded, case)


async def test_a_permission_for_the_session_and_an_edited_input_come_again() -> None:
    async def agent(turn: Turn) -> None:
        async with turn.tool("shell", {"command": turn.text}) as tool:
            await tool.approve("Run?", rule="commands", session_rule="any", editable=True)
            assert tool.approval is not None
            await turn.say(tool.approval.input)

    payload = {"scope": "session", "updated_input": {"command": "pwd"}}
    case = await answered_on_a_screen(agent, "ls", {"action": "confirm", "payload": payload})
    await assert_same(agent, case)


async def test_a_declined_question_is_declined_again() -> None:
    async def agent(turn: Turn) -> None:
        answer = await turn.ask(confirm("Sure?"), can_decline=True)
        await turn.say(repr(answer))

    case = await answered_on_a_screen(agent, "go", {"action": "decline"})
    await assert_same(agent, case)


async def test_two_open_questions_are_answered_in_the_order_of_the_case() -> None:
    async def agent(turn: Turn) -> None:
        first, second = (
            asyncio.ensure_future(turn.confirm(f"{name}?", id=name)) for name in ("one", "two")
        )
        await turn.say(f"{await first} {await second}")

    async with controlled(agent) as control:
        await said(control, "go")
        live = await control.context.live("s")
        await becomes(lambda: len(_open(live)) == 2)
        for question, response in zip(
            reversed(list(live.session.questions.values())), (True, False), strict=True
        ):
            await control.actions.respond(
                Respond(session_id="s", action_id=question.action_id, response=response)
            )
        await becomes(lambda: live.session.running is None)
        assert live.session.screen.text("t1") == "False True"
        case = await case_of(control)
    await assert_same(agent, case)


async def test_an_agent_that_asks_otherwise_is_stopped_at_once() -> None:
    """Not after the time limit of the turn: no answer of the case is for its question."""
    case = await answered_on_a_screen(talker, "ask", {"action": "confirm"}, {"action": "confirm"})
    async with asyncio.timeout(10), controlled(otherwise) as control:
        difference = await Rerun(control, case).first_difference()
    assert difference is not None
