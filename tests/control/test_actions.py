"""Answers by action id: control-plane.md 2, `agentSession/action/respond`."""

from __future__ import annotations

import time
from hashlib import sha256
from typing import Any

import pytest

from arp import Turn, ui
from arp.control.actions import Respond, as_input
from arp.control.control import Control
from arp.control.turns import CancelTurn
from arp.hub.runner import Handler
from arp.protocol.components import Component
from arp.protocol.errors import InvalidAnswer, InvalidMessage, UnknownObject
from arp.session.approval import Grant
from arp.session.turn_end import end_turn
from arp.turn.approval.approval import Approval
from tests.control.control_rig import asking, controlled, said, types
from tests.support.waiting import becomes


async def asked(control: Control, text: str = "ask") -> str:
    """Begins a turn that asks, and gives the action's id."""
    await said(control, text)
    questions = control.context.hub.sessions["s"].session.questions
    await becomes(lambda: bool(questions))
    (question,) = questions.values()
    return question.action_id


def respond(action_id: str, response: Any) -> Respond:
    return Respond(session_id="s", action_id=action_id, response=response)


async def spoken(control: Control, turn_id: str = "t1") -> str:
    session = control.context.hub.sessions["s"].session
    await becomes(lambda: session.status_of(turn_id) == "completed")
    return session.screen.text(turn_id)


async def test_answer_reaches_the_agent_that_asked() -> None:
    async with controlled() as control:
        action_id = await asked(control)
        state = await control.actions.respond(respond(action_id, False))
        assert (state.turn_id, state.decision, state.repeated) == ("t1", "answered", False)
        assert await spoken(control) == "answered False"


@pytest.mark.parametrize(
    ("component", "response", "said_back"),
    [
        (ui.choices(["a", "b"], id="q"), "b", '"b"'),
        (ui.choices(["a", "b"], multi_select=True, id="q"), ["b", "a"], '["b", "a"]'),
        (ui.text_input(id="q"), "words", '"words"'),
        (ui.form([ui.field("n", field_type="number")], id="q"), {"n": 3}, '{"n": 3}'),
    ],
)
async def test_each_kind_of_question_takes_a_plain_value(
    component: Component, response: Any, said_back: str
) -> None:
    async with controlled(asking(component)) as control:
        action_id = await asked(control)
        await control.actions.respond(respond(action_id, response))
        assert await spoken(control) == said_back
        assert (await control.actions.respond(respond(action_id, response))).repeated


async def test_answer_of_the_wrong_kind_leaves_the_action_open() -> None:
    async with controlled() as control:
        action_id = await asked(control)
        with pytest.raises(InvalidMessage, match="expected true or false for a confirm"):
            await control.actions.respond(respond(action_id, "yes"))
        assert (await control.actions.respond(respond(action_id, True))).repeated is False


async def test_answer_that_does_not_fit_leaves_the_action_open() -> None:
    async with controlled(asking(ui.choices(["a", "b"], id="q"))) as control:
        action_id = await asked(control)
        with pytest.raises(InvalidAnswer, match="is not offered"):
            await control.actions.respond(respond(action_id, "c"))
        assert "action.resolved" not in await types(control)


async def test_same_answer_again_is_harmless_and_another_one_is_refused() -> None:
    async with controlled() as control:
        action_id = await asked(control)
        await control.actions.respond(respond(action_id, True))
        await spoken(control)
        before = await types(control)
        assert (await control.actions.respond(respond(action_id, True))).repeated
        with pytest.raises(UnknownObject, match="already has another answer"):
            await control.actions.respond(respond(action_id, False))
        assert await types(control) == before


async def test_password_is_not_compared_since_no_fact_has_it() -> None:
    secret = ui.form([ui.field("word", field_type="password")], id="q")
    async with controlled(asking(secret)) as control:
        action_id = await asked(control)
        await control.actions.respond(respond(action_id, {"word": "open sesame"}))
        assert (await control.actions.respond(respond(action_id, {"word": "x"}))).repeated


async def test_cancelled_action_takes_no_answer() -> None:
    async with controlled() as control:
        action_id = await asked(control)
        await control.turns.cancel(CancelTurn(session_id="s"))
        session = control.context.hub.sessions["s"].session
        await becomes(lambda: session.running is None)
        with pytest.raises(UnknownObject, match="is cancelled; it accepts no answer any more"):
            await control.actions.respond(respond(action_id, True))


@pytest.mark.parametrize("name", ["nothing", "t1.sure.", "t1.sure.1", "t1.sure.999", "t1.sure.x"])
async def test_action_that_never_was_is_not_known(name: str) -> None:
    async with controlled() as control:
        await asked(control)
        with pytest.raises(UnknownObject, match="no action"):
            await control.actions.respond(respond(name, True))


async def test_question_that_outlived_its_turn_is_answered_by_a_new_one() -> None:
    async with controlled() as control:
        action_id = await asked(control)
        live = control.context.hub.sessions["s"]
        effects = end_turn(live.session, "t1", "failed", None, "interrupted")
        control.context.carry_out(live, effects)
        state = await control.actions.respond(respond(action_id, True))
        assert state.turn_id == "t2"
        assert (await control.actions.respond(respond(action_id, True))).repeated


# -- permissions -----------------------------------------------------------------------------------


def permitting(told: list[Approval], **options: Any) -> Handler:
    """Return an agent that asks for permission, and keeps what came of it."""

    async def agent(turn: Turn) -> None:
        async with turn.tool("shell", {"command": "ls"}) as tool:
            told.append(await tool.ask_permission("Run?", rule="all", **options))

    return agent


def allow(action_id: str, **terms: Any) -> Respond:
    return Respond(session_id="s", action_id=action_id, response=True, **terms)


async def test_permission_takes_an_edited_input_once() -> None:
    """The same answer again changes nothing, another one is refused."""
    told: list[Approval] = []
    async with controlled(permitting(told, editable=True)) as control:
        action_id = await asked(control)
        session = control.context.hub.sessions["s"].session
        (permission,) = session.screen.turns["t1"].permissions.values()
        edit = {"updated_input": {"command": "pwd"}}
        await control.actions.respond(allow(action_id, digest=permission.digest, **edit))
        await spoken(control)
        assert (await control.actions.respond(allow(action_id, **edit))).repeated
        for other in ({}, {"updated_input": {"command": "rm"}}, {**edit, "scope": "session"}):
            with pytest.raises(UnknownObject, match="already has another answer"):
                await control.actions.respond(allow(action_id, **other))
    (approval,) = told
    assert (approval.updated_input, approval.digest) == (
        {"command": "pwd"},
        sha256(b'{"command":"pwd"}').hexdigest(),
    )


async def test_permission_for_the_session_and_a_reason_against_it() -> None:
    told: list[Approval] = []
    async with controlled(permitting(told, session_rule="ls")) as control:
        await control.actions.respond(allow(await asked(control), scope="session"))
        await spoken(control)
        assert told[0].scope == "session"
        assert control.context.hub.sessions["s"].session.settings.grants == {Grant("shell", "ls")}
    told.clear()
    async with controlled(permitting(told)) as control:
        no = Respond(
            session_id="s", action_id=await asked(control), response=False, reason="too late"
        )
        await control.actions.respond(no)
        await spoken(control)
        assert (await control.actions.respond(no)).repeated
    assert (told[0].allowed, told[0].reason) == (False, "too late")


@pytest.mark.parametrize(
    ("terms", "why"),
    [
        ({"digest": "0" * 64}, "payload.digest: the answer is for another input"),
        ({"updated_input": {"command": "rm"}}, "offers no change of the input"),
        ({"scope": "session"}, "offers once only"),
    ],
)
async def test_what_a_permission_did_not_offer_leaves_it_open(terms: Any, why: str) -> None:
    told: list[Approval] = []
    async with controlled(permitting(told)) as control:
        action_id = await asked(control)
        with pytest.raises(InvalidAnswer, match=why):
            await control.actions.respond(allow(action_id, **terms))
        assert (await control.actions.respond(allow(action_id))).repeated is False
        await spoken(control)
    assert told[0].allowed


async def test_answer_behind_the_deadline_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Approval] = []
    async with controlled(permitting(told, timeout_s=3600.0)) as control:
        action_id = await asked(control)
        later = time.time() + 3601
        monkeypatch.setattr(time, "time", lambda: later)
        with pytest.raises(UnknownObject, match="is expired; it accepts no answer any more"):
            await control.actions.respond(allow(action_id))
        await spoken(control)
    assert told[0].decision == "expired"


async def test_only_a_yes_or_no_takes_terms() -> None:
    async with controlled(asking(ui.choices(["a", "b"], id="q"))) as control:
        action_id = await asked(control)
        wrong = Respond(session_id="s", action_id=action_id, response="a", scope="once")
        with pytest.raises(InvalidMessage, match="scope: only with the answer to a permission"):
            await control.actions.respond(wrong)


def test_custom_component_takes_an_action_or_any_answer() -> None:
    component = Component("q", "x-acme-dial", {})
    assert as_input(component, {"action": "turn"}) == ("action", {"action": "turn"})
    for answer in (3, {"angle": 3}, None):
        assert as_input(component, answer) == ("action", {"action": "answer", "payload": answer})
