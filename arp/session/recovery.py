"""Rebuilds a session from its log, and recovers it after a crash.

Theory of operation. `apply_stored` applies stored facts to a session and gives it the state that it
had when they were recorded. `recover` then closes the turn that a crash interrupted. `seal` makes a
session read-only if its log continues with facts that cannot be read.

Source: ledger.md 2 ("after a crash the log is the truth").
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from arp.ledger.fact import Fact
from arp.ledger.tracing import traceparent_of
from arp.protocol.errors import ArpError, RemoteError, error_payload
from arp.protocol.json_value import JsonObject
from arp.protocol.messages import AgentMessage
from arp.session.attempts import ATTEMPT_IDS
from arp.session.effects import Effect
from arp.session.recording.log import ReadOnly
from arp.session.recording.projection import At, project
from arp.session.recording.recorded import RecordedFact
from arp.session.session import FACT_HANDLERS, TURN_FACTS, Session
from arp.session.turn_end import end_turn
from arp.session.turn_queue import begin_next

_CORRELATION = ("tool_call_id", "action_id", "step_id", "output_ref", "thread_id", *ATTEMPT_IDS)


class Interrupted(RemoteError):
    """The server stopped while the turn was running."""

    retryable = True


def messages_of(fact: Fact) -> list[AgentMessage]:
    """Return the messages that show a stored fact, as they were first sent."""
    at = At(fact.session_id, fact.sequence, fact.turn_id, fact.timestamp)
    return project(at, fact.type, _payload(fact), _ids(fact))


def apply_stored(session: Session, facts: Iterable[Fact]) -> None:
    """Apply stored facts to a session, in order.

    Args:
        session: Session built from the facts before these. Nothing was recorded in it since.
        facts: The next facts of its log. The session keeps their payloads, so the caller must not
            change them.

    Raises:
        BranchNotLoaded: A fact changes to another branch, and the session has no plan of the turns
            to show. The session cannot be used any more; a `Survey` of all facts gives the plan.
    """
    for fact in facts:
        turn_id = fact.turn_id
        if fact.type in TURN_FACTS:
            session.turns.follow(fact.type, turn_id, _payload(fact))
        if (apply := FACT_HANDLERS.get(fact.type)) is not None:
            apply(session, _recorded(fact))
        # Its handler gets only the ids in `_CORRELATION`, without the external span.
        if fact.type == "turn.submitted" and (outside := traceparent_of(fact)) is not None:
            session.input_log.traceparents[turn_id or ""] = outside
        if session.settings.shows(turn_id):
            _show(session, fact)
        session.log.sequence = fact.sequence


def end_plan(session: Session) -> None:
    """Finish building a session with a plan, after all its facts were applied."""
    settings = session.settings
    settings.plan = None
    if settings.branches is not None:
        settings.branches.show_versions(session.screen.turns.values())


def _show(session: Session, fact: Fact) -> None:
    """Apply the messages of a stored fact to the screen."""
    if fact.type == "turn.submitted":
        session.threads.join(fact.turn_id or "", fact.thread_id)
    for message in messages_of(fact):
        # The queue may contain turns of branches that are not shown.
        if fact.type == "queue.changed" and not session.settings.shows(
            getattr(message, "turn_id", None)
        ):
            continue
        session.screen.apply(message, fact.sequence)
    if fact.type in ("turn.completed", "turn.failed"):
        session.evict()


def seal(session: Session, reason: str) -> None:
    """Make a session read-only, because its log continues with facts that cannot be read.

    Running and queued turns are shown as failed with the given reason. This is not recorded.

    Args:
        session: The session, built from the facts that can be read.
        reason: Reason for people, without a full stop.
    """
    error = ReadOnly(f"{reason}; the session is read-only", detail=session.head.session_id)
    payload = error_payload(error)
    shown: JsonObject = {"error": payload.error, "code": payload.code, "retryable": False}
    for turn_id in [*filter(None, (session.running,)), *session.queue]:
        at = At(session.head.session_id, session.sequence, turn_id)
        for type_name, body in (("runtime.error", shown), ("turn.failed", {"status": "failed"})):
            for message in project(at, type_name, body, {"turn_id": turn_id}):
                session.screen.apply(message, session.sequence)
    session.turns.set(None, [], is_paused=False, is_waiting=False)
    session.log.sealed = error


def recover(session: Session, fault: ArpError | None = None) -> list[Effect]:
    """Close the turn that a crash interrupted, and continue with the queue.

    Open questions stay open, and the turn is shown as waiting while there is one. If there is
    anything to recover, the first new fact is `history.reconstructed`; otherwise nothing is
    recorded.

    Args:
        session: Session rebuilt from its log.
        fault: Error that removed the session from memory while the server kept running; `None`
            after a crash. The turn then failed with this error, and its questions are closed.
    """
    if session.turns.is_active:
        made_of: JsonObject = {"throughSequence": session.sequence, "source": "ledger"}
        session.record("history.reconstructed", made_of)
    if session.running is None:
        return begin_next(session)
    if fault is not None:
        return end_turn(session, session.running, "failed", fault)
    warning = "the server stopped while this turn ran; it was closed as interrupted"
    if session.questions.of_turn(session.running):
        warning = "the server stopped while this turn waited for an answer; its question stays open"
    session.in_turn("runtime.warning", session.running, {"message": warning})
    error = Interrupted("the server stopped while this turn ran; ask again to go on")
    return end_turn(session, session.running, "failed", error, reason="interrupted")


def _recorded(fact: Fact) -> RecordedFact:
    """Return a stored fact as it was recorded, without its messages."""
    recorded = RecordedFact(fact.type, _payload(fact), {**_ids(fact)}, turn_id=fact.turn_id)
    recorded.sequence = fact.sequence
    return recorded


def _payload(fact: Fact) -> JsonObject:
    payload = fact.payload
    assert isinstance(payload, dict)
    return payload


def _ids(fact: Fact) -> Mapping[str, Any]:
    return {name: getattr(fact, name) for name in _CORRELATION}
