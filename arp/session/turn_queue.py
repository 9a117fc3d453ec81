"""The queue of a session: turns join it, start, and are moved or edited while they wait.

Theory of operation. Each step records its facts together, so a turn that may start at once is never
shown as queued. `TurnQueue` (`turn_states`) knows whether a turn may start, and applies the facts.
"""

from __future__ import annotations

from collections.abc import Sequence

from arp.protocol.json_value import Json, JsonObject
from arp.session.effects import Effect, RunTurn
from arp.session.recording.recorded import RecordedFact
from arp.session.session import Session


def enqueue(session: Session, turn_id: str, submitted: RecordedFact, resume: bool) -> list[Effect]:
    """Append a new turn to the queue, and start the first queued turn if possible.

    Args:
        session: The session.
        turn_id: Id of the new turn.
        submitted: Its `turn.submitted`.
        resume: Whether to resume a paused queue.
    """
    waiting = [*session.turns.queue, turn_id]
    if session.turns.starts_with_next(resume):
        return _start(session, [submitted], waiting)
    session.record_step([submitted, _queue_changed(session, waiting)])
    return []


def begin_next(session: Session) -> list[Effect]:
    """Start the first queued turn if no turn is running and the queue is not paused."""
    if not session.turns.may("start"):
        return []
    return _start(session, [], session.turns.queue)


def _start(session: Session, facts: list[RecordedFact], queue: Sequence[str]) -> list[Effect]:
    """Record `facts` and then those that start the first turn of a queue, in one step.

    Args:
        session: The session.
        facts: Facts after which the turn may start.
        queue: The queue after these facts.
    """
    turn_id, *rest = queue
    thread = session.threads.of(turn_id)
    ids: dict[str, Json] = {"thread_id": thread, "turn_id": turn_id}
    facts.append(RecordedFact("turn.started", {}, ids, turn_id=turn_id))
    # Renderers must learn that the queue has changed. If the only turn in it starts at once, they
    # have never shown it as queued, and the fact would only cost a message.
    if rest or session.status_of(turn_id) == "queued":
        ids = {"thread_id": session.threads.of(rest[0]) if rest else thread}
        facts.append(RecordedFact("queue.changed", {"queued": rest}, ids))
    session.record_step(facts)
    session.log.assembler.begin_turn(turn_id)
    return [RunTurn(turn_id)]


def promote(session: Session, turn_id: str) -> None:
    """Move a queued turn to the front of the queue; ignore a turn that is not queued."""
    queue = session.turns.queue
    if turn_id in queue[1:]:
        record_queue(session, [turn_id, *(other for other in queue if other != turn_id)])


def edit_queued(session: Session, turn_id: str, submitted: JsonObject) -> None:
    """Replace the input of a queued turn."""
    turns = session.turns
    changed: JsonObject = {**turns.payload(turns.queue), "input": submitted}
    session.in_turn("queue.changed", turn_id, changed)


def record_queue(session: Session, queue: list[str] | None = None, pause: bool = False) -> None:
    """Record the queue, unchanged or in another order.

    Args:
        session: The session.
        queue: The new order; `None` means the current order.
        pause: Whether to pause the queue.
    """
    changed = _queue_changed(session, session.turns.queue if queue is None else queue, pause)
    session.record_step([changed])


def _queue_changed(session: Session, queue: list[str], pause: bool = False) -> RecordedFact:
    thread = session.threads.of(queue[0] if queue else session.turns.running)
    payload = session.turns.payload(queue, pause)
    return RecordedFact("queue.changed", payload, {"thread_id": thread})
