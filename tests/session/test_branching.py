"""Another version of a turn: one branch shows, and nothing of the others is lost.

Source: docs/protocol.md 2.4. The hub's tests have the same with renderers and a store.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from arp.protocol.errors import ArpError, InvalidMessage, SessionBusy, UnknownObject
from arp.protocol.limits import Limits
from arp.protocol.messages import BRANCH, REGENERATE, Input, RendererCapabilities
from arp.session.asking import ask_question
from arp.session.effects import Acknowledge, RunTurn
from arp.session.input.branching import asks_for_branch, check_branch_change
from arp.session.input.receive import push
from arp.session.recovery import apply_stored
from arp.session.session import Head, Session
from arp.session.state import decode_state, encode_state
from arp.session.tracking.branches import Branches, BranchNotLoaded, Survey
from arp.session.turn_end import end_turn
from arp.session.turn_queue import promote
from arp.surface.change import RenderChange
from arp.view.profile import profile_of
from tests.session.branched import Talk, acting
from tests.session.conversation import confirm, send, text, user, watched
from tests.support.examples import examples
from tests.support.restoring import restore

LETS_GO_ON = profile_of(RendererCapabilities(["text"], ["line-pause"]))
"""A renderer that shows a paused queue, and can let it go on."""


def talked(*texts: str) -> Talk:
    made = Talk()
    made.say(*texts)
    return made


def test_edited_turn_goes_on_from_what_stood_before_it() -> None:
    """Neither the old version nor what followed it shows; ids of turns go on."""
    talk = talked("a", "b", "c")
    assert talk.edit("t2", "B", id="edit") == [Acknowledge("edit", "t4"), RunTurn("t4")]
    talk.answer()
    assert talk.shown == {"t1": "a", "t4": "B"}
    assert talk.versions == {"t1": None, "t4": ["t2", "t4"]}
    assert talk.session.turn_count == 4
    assert talk.session.screen.text("t4") == "answer t4"
    started, completed = (one for one in talk.facts if one.type.startswith("history.rollback"))
    assert started.payload["reason"] == "edit"
    assert completed.payload["removedTurns"] == ["t2", "t3"]
    second = next(one for one in talk.facts if one.turn_id == "t2")
    assert started.payload["toSequence"] == second.sequence - 1


def test_turns_without_the_fact_that_began_them_have_no_versions() -> None:
    """As in a ledger that others wrote: the turns that are whole show theirs."""
    talk = talked("a", "b")
    talk.edit("t2", "B")
    talk.answer()
    screen = talk.session.screen
    screen.turn("lost")
    screen.turn("t1").inputs.clear()
    assert talk.session.branches is not None
    talk.session.branches.show_versions(talk.session.screen.turns.values())
    assert (screen.turn("lost").inputs, screen.turn("t1").inputs) == ([], [])
    assert screen.turn("t3").inputs[0].versions == ["t2", "t3"]


def test_other_version_comes_back_with_what_followed_it() -> None:
    """A version that shows already is chosen without an effect but the acknowledgement."""
    talk = talked("a", "b", "c")
    talk.edit("t2", "B")
    talk.answer()
    talk.say("d")
    assert talk.act(BRANCH, "t2", id="back") == [Acknowledge("back", None)]
    assert talk.shown == {"t1": "a", "t2": "b", "t3": "c"}
    assert talk.versions == {"t1": None, "t2": ["t2", "t4"], "t3": None}
    written = talk.recorded()
    assert [one.type for one in written] == [
        *("run.status", "session.updated"),
        *("history.rollback.started", "history.rollback.completed"),
    ]
    assert written[-1].payload["removedTurns"] == ["t4", "t5"]
    assert written[-1].payload["restoredTurns"] == ["t2", "t3"]
    assert talk.session.branched_at == written[1].sequence
    assert talk.act(BRANCH, "t3") == []
    assert [one.type for one in talk.recorded()] == ["run.status"]
    talk.act(BRANCH, "t4")
    assert talk.shown == {"t1": "a", "t4": "B", "t5": "d"}


def test_turn_in_the_middle_brings_back_the_newest_end_of_its_branch() -> None:
    talk = talked("a", "b")
    talk.edit("t2", "B")
    talk.answer()
    talk.edit("t1", "A")
    talk.answer()
    assert talk.shown == {"t4": "A"}
    talk.act(BRANCH, "t1")
    assert talk.shown == {"t1": "a", "t3": "B"}


def test_same_input_is_said_again_with_the_program_that_said_it() -> None:
    talk = talked("a")
    push(talk.session, "due", {"job": 7}, "calendar")
    talk.answer()
    talk.act(REGENERATE, "t2", id="again")
    talk.answer()
    assert talk.shown == {"t1": "a", "t3": "due"}
    (told,) = talk.session.screen.turns["t3"].inputs
    assert (told.data, told.origin, told.id) == ({"text": "due", "job": 7}, "calendar", "again")


def test_turns_that_wait_since_a_failure_go_along_to_another_version() -> None:
    """They are taken out where they stood, and wait behind it under other names."""
    talk = talked("a")
    watched(talk.session, LETS_GO_ON)
    user(talk.session, "b")
    user(talk.session, "c")
    talk.answer("failed")
    assert (talk.session.running, talk.session.queue) == (None, ["t3"])
    talk.edit("t2", "B")
    assert (talk.session.running, talk.session.queue) == ("t4", ["t5"])
    assert talk.shown == {"t1": "a", "t4": "B", "t5": "c"}
    talk.answer()
    assert talk.session.running == "t5"
    talk.answer()
    again = restore(talk.session.head, talk.facts, Limits())
    assert again.screen.canonical() == talk.session.screen.canonical()


def test_queued_turn_before_the_edited_one_is_cancelled_on_the_screen_too() -> None:
    """It moves behind the new version, and no screen shows it as queued any more."""
    talk = talked("a")
    watched(talk.session, LETS_GO_ON)
    for said in ("b", "c", "d"):
        user(talk.session, said)
    talk.answer("failed")
    end_turn(talk.session, "t4", "cancelled")
    assert list(talk.session.queue) == ["t3"]
    talk.edit("t4", "D")
    talk.recorded()
    assert talk.session.status_of("t3") == "cancelled"
    assert list(talk.session.queue) == ["t6"]
    read = restore(talk.session.head, talk.facts, Limits())
    assert encode_state(read) == encode_state(talk.session)
    assert read.screen.canonical() == talk.session.screen.canonical()


@pytest.mark.parametrize("action", ["edit", REGENERATE])
def test_new_version_of_a_hidden_turn_shows_its_branch(action: str) -> None:
    """Live and after a restart, the turns before it are shown again."""
    talk = talked("one", "two")
    talk.edit("t1", "uno")
    talk.answer()
    talk.say("more")
    assert list(talk.shown) == ["t3", "t4"]
    if action == "edit":
        talk.edit("t2", "dos")
    else:
        talk.act(REGENERATE, "t2")
    talk.answer()
    assert list(talk.shown) == ["t1", "t5"]
    *_, completed = (one for one in talk.facts if one.type == "history.rollback.completed")
    assert completed.payload["removedTurns"] == ["t3", "t4"]
    assert completed.payload["restoredTurns"] == ["t1"]
    read = restore(talk.session.head, talk.facts, Limits())
    assert read.screen.canonical() == talk.session.screen.canonical()


@settings(max_examples=examples(200))
@given(st.lists(st.tuples(st.sampled_from(["say", "edit", "switch"]), st.integers(0, 30))))
def test_shown_branch_is_the_path_of_chosen_versions(steps: list[tuple[str, int]]) -> None:
    """However turns are added, edited and switched, also on branches that are hidden."""
    branches = Branches()
    chosen: dict[str | None, str] = {}
    before: dict[str, str | None] = {}
    path: list[str] = []
    for number, (step, pick) in enumerate(steps):
        new_turn = f"t{number}"
        target = list(before)[pick % len(before)] if before and step != "say" else None
        if step == "switch" and target is not None:
            branches.follow("session.updated", None, {"branch": target}, number)
            turn: str | None = target
        else:
            payload = {} if target is None else {"edits": target}
            branches.follow("turn.submitted", new_turn, payload, number)
            before[new_turn] = (path[-1] if path else None) if target is None else before[target]
            turn = new_turn
        while turn is not None:
            chosen[before[turn]] = turn
            turn = before[turn]
        path, turn = [], chosen.get(None)
        while turn is not None:
            path.append(turn)
            turn = chosen.get(turn)
        assert branches.shown == path
        assert branches.last == (path[-1] if path else None)
        assert Branches.of(branches.kept).shown == path


def test_branches_come_back_from_a_state_and_from_the_log() -> None:
    talk = talked("a", "b", "c")
    talk.edit("t2", "B")
    talk.answer()
    session = talk.session
    kept = decode_state(encode_state(session), session.head, session.rules, None)
    read = restore(session.head, talk.facts, Limits())
    for again in (kept, read):
        assert again.screen.canonical() == session.screen.canonical()
        assert again.branches is not None
        assert again.branches.shown == ["t1", "t4"]
        assert again.branched_at == session.branched_at
        assert again.turn_count == 4


def test_log_with_other_branches_is_not_read_without_saying_which_one_shows() -> None:
    talk = talked("a")
    talk.edit("t1", "A")
    talk.answer()
    with pytest.raises(BranchNotLoaded, match="turns to another branch"):
        apply_stored(Session(Head("s", "e"), Limits()), talk.facts)


def test_what_changed_beside_a_turn_shows_on_the_branch_of_the_last_one_before_it() -> None:
    """Such as a queue in which turns of both branches have stood."""
    talk = talked("a")
    user(talk.session, "b")
    user(talk.session, "c")
    promote(talk.session, "t3")
    talk.answer()
    talk.answer()
    talk.edit("t1", "A")
    talk.answer()
    talk.session.record("session.updated", {"title": "Named", "pinned": True})
    talk.session.commit(None, "side", [RenderChange([text("x")])])
    talk.recorded()
    talk.act(BRANCH, "t1")
    assert set(talk.session.screen.surfaces) == {"main"}
    talk.act(BRANCH, "t4")
    assert set(talk.session.screen.surfaces) == {"main", "side"}
    talk.recorded()
    again = restore(talk.session.head, talk.facts, Limits())
    assert again.screen.canonical() == talk.session.screen.canonical()


def test_line_of_a_branch_that_does_not_show_is_left_out_when_the_log_is_read() -> None:
    """An input that was edited while another one stood behind it, which has a new version now."""
    talk = Talk()
    for said in ("a", "b", "c"):
        user(talk.session, said)
    send(talk.session, "text", {"text": "B"}, edits="t2")
    for _ in range(3):
        talk.answer()
    talk.edit("t3", "C")
    talk.answer()
    again = restore(talk.session.head, talk.facts, Limits())
    assert list(again.screen.turns) == ["t1", "t2", "t4"]
    assert again.screen.canonical() == talk.session.screen.canonical()


def test_question_of_a_branch_that_does_not_show_is_not_open() -> None:
    talk = talked("a")
    user(talk.session, "b")
    ask_question(talk.session, "t2", confirm())
    end_turn(talk.session, "t2", "failed", reason="interrupted")
    talk.recorded()
    assert list(talk.session.questions) == [("main", "q")]
    talk.edit("t1", "A")
    assert talk.session.questions == {}


@pytest.mark.parametrize(
    ("message", "error", "why"),
    [
        (acting(BRANCH, "t9"), UnknownObject, "no turn 't9' in this session"),
        (acting(REGENERATE, None), UnknownObject, "no turn None in this session"),
        (
            Input(input_type="action", data={"action": BRANCH}),
            UnknownObject,
            "no turn None in this session",
        ),
        (
            Input(input_type="text", data={"text": "x"}, edits="t9"),
            UnknownObject,
            "no turn 't9' in this session",
        ),
        (
            Input(input_type="resize", data={}, edits="t1"),
            InvalidMessage,
            "may take the place of an input",
        ),
    ],
)
def test_input_that_names_no_version_changes_nothing(
    message: Input, error: type[ArpError], why: str
) -> None:
    talk = talked("a")
    before = talk.session.screen.canonical()
    with pytest.raises(error, match=why):
        talk.turn(message)
    assert (talk.session.screen.canonical(), talk.recorded()) == (before, [])


def test_branch_is_not_changed_while_a_turn_runs() -> None:
    """An edit of a turn that is queued is no other version, nor is an input that came before."""
    talk = talked("a")
    user(talk.session, "b", "known")
    user(talk.session, "c")
    for message in (acting(BRANCH, "t1"), Input(input_type="text", data={"text": "x"}, edits="t1")):
        with pytest.raises(SessionBusy, match="a turn runs"):
            check_branch_change(talk.session, message)
    queued = Input(input_type="text", data={"text": "C"}, edits="t3")
    known = acting(REGENERATE, "t1", id="known")
    plain = Input(input_type="text", data={"text": "d"})
    assert not any(asks_for_branch(talk.session, one) for one in (queued, known, plain))


def test_facts_of_another_program_that_say_things_twice_or_not_at_all_are_read() -> None:
    """A turn that begins twice is one turn; one whose input is not told has none."""
    talk = talked("a", "b")
    begins = [fact for fact in talk.facts if fact.type == "turn.submitted"]
    survey = Survey()
    for fact in [*begins, *begins, replace(begins[0], turn_id="t9", payload={})]:
        survey.add(fact)
    assert survey.branches.shown == ["t1", "t2", "t9"]
    assert survey.branches.versions("t1") == ["t1"]
    assert list(survey.submitted) == ["t1", "t2"]
    assert survey.begun["t9"] == begins[0].sequence
