"""Facts are numbered without holes, shown at once, and handed over in order."""

from __future__ import annotations

from typing import Any

import pytest

from arp.ledger.fact import decode
from arp.protocol.connection.screen import Screen
from arp.protocol.messages import Commit, InputEcho, TurnMessage
from arp.redact.redactor import known_shapes
from arp.session.recording.log import Log
from arp.session.recording.recorded import (
    OUTPUT_TEXT,
    REASONING_TEXT,
    Batch,
    Cursor,
    RecordedFact,
    SessionName,
    TextBatch,
)
from arp.view.snapshot import catch_up, snapshot
from tests.session.conversation import AT, FULL

TURN = {"thread_id": "main", "turn_id": "t1"}


def log(screen: Screen | None = None) -> Log:
    out = Log("arp", "s", screen or Screen(), known_shapes())
    out.assembler.begin_turn("t1")
    return out


def add(
    of: Log, screen: Screen, type_name: str, payload: dict[str, Any], **ids: str
) -> RecordedFact:
    """Record a fact and show it, as a session does."""
    fact = RecordedFact(type_name, payload, {**ids})
    of.add([fact])
    for message in fact.messages:
        screen.apply(message, fact.sequence)
    return fact


def drained(of: Log) -> list[tuple[int, str, object]]:
    return [(fact.sequence, fact.type, fact.payload) for fact in map(decode, of.drain(AT).facts)]


def test_fact_is_numbered_and_says_what_shows_it() -> None:
    screen = Screen()
    of = log(screen)
    emission = add(of, screen, "turn.started", {}, **TURN)
    running = TurnMessage(session_id="s", seq=1, turn_id="t1", status="running")
    assert (of.sequence, emission.sequence, emission.messages) == (1, 1, [running])
    assert screen.turns["t1"].status == "running"


def test_fact_that_shows_already_is_not_shown_again() -> None:
    screen = Screen()
    of = log(screen)
    message = TurnMessage(session_id="s", turn_id="t1", status="running")
    fact = RecordedFact("turn.started", {}, {**TURN}, [message])
    of.add_shown(fact)
    assert (fact.messages, fact.sequence, screen.turns) == ([message], 1, {})


def test_each_text_is_a_fact_of_its_kind_and_turn() -> None:
    of = log()
    of.say("t1", "a", OUTPUT_TEXT)
    of.say("t1", "hm", REASONING_TEXT)
    of.say("t1", "b", OUTPUT_TEXT)
    of.say("t2", "c", OUTPUT_TEXT)
    assert drained(of) == [
        (1, "model.delta", {"text": "a"}),
        (2, "reasoning.delta", {"text": "hm"}),
        (3, "model.delta", {"text": "b"}),
        (4, "model.delta", {"text": "c"}),
    ]


def test_text_that_no_encoder_takes_leaves_no_hole() -> None:
    of = log()
    with pytest.raises(TypeError):
        of.say("t1", type("Odd", (str,), {})("x"), OUTPUT_TEXT)
    of.say("t1", "on", OUTPUT_TEXT)
    assert drained(of) == [(1, "model.delta", {"text": "on"})]


def test_texts_and_other_facts_are_in_the_order_in_which_they_came() -> None:
    screen = Screen()
    of = log(screen)
    of.say("t1", "a", OUTPUT_TEXT)
    of.add([RecordedFact("run.status", {}, {})])
    of.say("t1", "b", OUTPUT_TEXT)
    assert [number for number, _, _ in drained(of)] == [1, 2, 3]
    assert screen.text("t1") == "ab"


def test_drained_fact_has_its_place_its_ids_and_the_time() -> None:
    of = log()
    of.add([RecordedFact("run.status", {"n": 1}, {"status": "idle"})])
    fact = decode(of.drain(AT).facts[0])
    assert (fact.sequence, fact.type, fact.payload) == (1, "run.status", {"n": 1})
    assert (fact.status, fact.timestamp) == ("idle", AT)


def test_draining_takes_everything_once() -> None:
    of = log()
    assert of.is_empty
    of.say("t1", "a", OUTPUT_TEXT)
    assert not of.is_empty
    assert len(drained(of)) == 1
    assert of.is_empty
    assert drained(of) == []


def test_text_after_draining_is_a_new_fact() -> None:
    """What is on its way to the ledger is not changed any more."""
    of = log()
    of.say("t1", "a", OUTPUT_TEXT)
    of.drain(AT)
    of.say("t1", "b", OUTPUT_TEXT)
    assert drained(of) == [(2, "model.delta", {"text": "b"})]


def test_place_is_where_one_stands_who_was_told_all() -> None:
    of = log()
    of.say("t1", "one", OUTPUT_TEXT)
    assert of.cursor() == Cursor(1, "t1/1", 3, "t1", 0)
    assert of.drain(AT).cursor == Cursor(1, "t1/1", 3, "t1", 0)


def test_lone_text_is_known_as_such() -> None:
    """There is no commit in it, and nothing that a list of sessions shows."""
    of = log()
    of.say("t1", "one", OUTPUT_TEXT)
    said = of.drain(AT)
    assert isinstance(said, TextBatch)
    assert (said.sequence, said.cursor) == (1, Cursor(1, "t1/1", 3, "t1", 0))
    assert [fact.payload for fact in map(decode, said.facts)] == [{"text": "one"}]
    assert said.recorded == [said.text]


@pytest.mark.parametrize("kinds", [[], ["run"], ["text", "run"], ["text", "think"]])
def test_anything_else_is_not_taken_for_a_lone_text(kinds: list[str]) -> None:
    of = log()
    for kind in kinds:
        if kind == "run":
            of.add([RecordedFact("run.status", {}, {})])
        else:
            of.say("t1", "a", OUTPUT_TEXT if kind == "text" else REASONING_TEXT)
    drained = of.drain(AT)
    assert isinstance(drained, Batch)
    assert (drained.sequence, len(drained.facts)) == (len(kinds), len(kinds))
    assert drained.cursor == of.cursor()


def test_input_has_its_time_once_it_is_drained_on_the_screen_and_in_what_is_told() -> None:
    """Until then nobody is told of it: the time is that of its fact."""
    screen = Screen()
    of = log(screen)
    said = {"input_type": "text", "data": {"text": "hi"}}
    submitted = add(of, screen, "turn.submitted", {"input": said}, **TURN)
    add(of, screen, "turn.started", {}, **TURN)
    assert (of.is_timed, screen.turns["t1"].inputs[0].at) == (False, None)
    of.drain(AT)
    echo = InputEcho(
        session_id="s", seq=1, turn_id="t1", input_type="text", data={"text": "hi"}, at=AT
    )
    assert (of.is_timed, screen.turns["t1"].inputs, submitted.messages) == (True, [echo], [echo])


@pytest.mark.parametrize("status", ["completed", "failed"])
def test_end_of_a_turn_has_its_time_once_it_is_drained(status: str) -> None:
    """On the screen, in what is told then, and in what is told to whoever comes later."""
    screen = Screen()
    of = log(screen)
    add(of, screen, "turn.submitted", {"input": {"input_type": "text", "data": {}}}, **TURN)
    of.drain("2026-11-21T07:00:00Z")
    ended = add(of, screen, f"turn.{status}", {"status": status}, **TURN)
    assert (of.is_timed, screen.turns["t1"].ended) == (False, None)
    of.drain(AT)
    final = Commit(session_id="s", seq=2, turn_id="t1", final=True, at=AT)
    assert (of.is_timed, screen.turns["t1"].ended, ended.messages[-1]) == (True, AT, final)
    late = snapshot(screen, SessionName("s", "e", 2), FULL)
    told = [one.at for one in late if isinstance(one, Commit) and one.final]
    missed = catch_up(screen, SessionName("s", "e", 2), FULL, Cursor(seq=1)) or []
    assert (told, [one.at for one in missed if isinstance(one, Commit)]) == ([AT], [AT])


def test_each_input_of_a_turn_has_its_own_time() -> None:
    screen = Screen()
    of = log(screen)
    for number, at in enumerate(("2026-11-21T09:00:00Z", "2026-11-21T10:00:00Z")):
        said = {"input_type": "text", "data": {"text": str(number)}}
        kind = "action.resolved" if number else "turn.submitted"
        add(of, screen, kind, {"input": said, "resumes": True}, **TURN, action_id="a")
        of.drain(at)
    assert [(one.data["text"], one.at) for one in screen.turns["t1"].inputs] == [
        ("0", "2026-11-21T09:00:00Z"),
        ("1", "2026-11-21T10:00:00Z"),
    ]
