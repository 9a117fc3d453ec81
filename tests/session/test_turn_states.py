"""What may happen to a turn, and to the queue, stands in two tables (`turn_states.py`)."""

from __future__ import annotations

from itertools import product
from typing import Any, get_args

import pytest

from arp.protocol.errors import LocalError
from arp.session.turn_states import (
    QUEUE_STEPS,
    TURN_EVENTS,
    IllegalTransition,
    QueueState,
    Step,
    TurnPhase,
    TurnQueue,
)
from tests.session.conversation import begun, facts, new

EVENTS = sorted({name for events in TURN_EVENTS.values() for name in events})

PATHS: dict[TurnPhase, list[str]] = {
    TurnPhase.OUT: [],
    TurnPhase.QUEUED: ["turn.submitted"],
    TurnPhase.RUNNING: ["turn.submitted", "turn.started"],
    TurnPhase.WAITING: ["turn.submitted", "turn.started", "action.required"],
}
"""How a turn comes into each state."""


def turns_in(state: TurnPhase, turn_id: str = "t1") -> TurnQueue:
    """The turns of a session in which one turn is in a state."""
    turns = TurnQueue()
    for type_name in PATHS[state]:
        turns.follow(type_name, turn_id, {})
    assert turns.state_of(turn_id) is state
    return turns


@pytest.mark.parametrize(("state", "event"), list(product(TurnPhase, EVENTS)))
def test_turn_has_the_facts_of_its_state_and_no_others(state: TurnPhase, event: str) -> None:
    turns = turns_in(state)
    payload: dict[str, Any] = {"queued": turns.queue} if event == "queue.changed" else {}
    if event in TURN_EVENTS[state]:
        turns.follow(event, "t1", payload)
        assert turns.state_of("t1") is TURN_EVENTS[state][event]
    else:
        with pytest.raises(
            IllegalTransition, match=rf"{event} of turn 't1', which is {state.name}"
        ):
            turns.follow(event, "t1", payload)
        assert turns.state_of("t1") is state


def test_every_state_can_be_reached_and_left() -> None:
    assert set(TURN_EVENTS) == set(PATHS) == set(TurnPhase)
    assert set(QUEUE_STEPS) == set(QueueState)
    assert set().union(*QUEUE_STEPS.values()) == set(get_args(Step))


def test_second_turn_does_not_start_while_one_runs() -> None:
    turns = turns_in(TurnPhase.WAITING)
    turns.follow("turn.submitted", "t2", {})
    with pytest.raises(IllegalTransition, match="the queue is BUSY"):
        turns.follow("turn.started", "t2", {})
    assert (turns.running, turns.queue) == ("t1", ["t2"])
    assert turns.state_of("t1") is TurnPhase.WAITING


def test_turn_that_ends_in_the_queue_leaves_the_running_one_alone() -> None:
    turns = turns_in(TurnPhase.WAITING)
    turns.follow("turn.submitted", "t2", {})
    turns.follow("turn.failed", "t2", {})
    assert (turns.running, turns.queue, turns.state) == ("t1", [], QueueState.BUSY)
    assert turns.state_of("t1") is TurnPhase.WAITING


def test_queue_is_in_one_of_four_states() -> None:
    turns = TurnQueue()
    states = [turns.state]
    for type_name, turn_id, payload in STORY:
        turns.follow(type_name, turn_id, payload)
        states.append(turns.state)
    assert [state.name for state in states] == ["IDLE", "READY", "PAUSED", "PAUSED", "BUSY"]
    assert not turns.is_paused


STORY: list[tuple[str, str | None, dict[str, Any]]] = [
    ("turn.submitted", "t1", {}),
    ("queue.changed", None, {"queued": ["t1"], "paused": True}),
    ("turn.submitted", "t2", {}),
    ("turn.started", "t2", {}),
]
"""A queue that is paused, and goes on with another turn."""


def test_fact_of_a_turn_that_cannot_have_it_is_not_recorded() -> None:
    """An illegal transition is our own mistake: a local error, and nothing has changed."""
    session = begun()
    before = session.sequence
    with pytest.raises(LocalError, match=r"turn\.started of turn 't1', which is RUNNING"):
        session.in_turn("turn.started", "t1", {})
    with pytest.raises(IllegalTransition):
        new().in_turn("turn.completed", "t1", {"status": "completed"})
    assert session.sequence == before
    assert facts(session) == []
