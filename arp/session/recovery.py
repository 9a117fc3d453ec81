"""A session from its log: the same state as the one that wrote it, and what a crash left is mended.

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
from arp.session.log import ReadOnly
from arp.session.projection import At, project
from arp.session.session import TURN_FACTS, Session

_CORRELATION = ("tool_call_id", "action_id", "step_id", "output_ref", "thread_id", *ATTEMPT_IDS)


class Interrupted(RemoteError):
    """The server ended while this turn ran."""

    retryable = True


def messages_of(fact: Fact) -> list[AgentMessage]:
    """Return the messages that show a stored fact, as they were first sent."""
    at = At(fact.session_id, fact.sequence, fact.turn_id, fact.timestamp)
    return project(at, fact.type, _payload(fact), _ids(fact))


def go_on(session: Session, facts: Iterable[Fact]) -> None:
    """Take facts that the log has behind those that a session was made of, in order.

    Args:
        session: Nothing was recorded in it since.
        facts: The session goes on with what they hold: nobody else may.

    Raises:
        Forked: One of them turns to another branch, and nobody said which is to show: the session
            is good for nothing then. A `Survey` of all facts tells it.
    """
    for fact in facts:
        turn_id = fact.turn_id
        if fact.type in TURN_FACTS:
            session.turns.follow(fact.type, turn_id, _payload(fact))
        session.follow(fact.type, turn_id, _payload(fact), _ids(fact), fact.sequence)
        if fact.type == "turn.submitted" and (outside := traceparent_of(fact)) is not None:
            session.input_log.traceparents[turn_id or ""] = outside
        if session.settings.shows(turn_id):
            _show(session, fact)
        session.log.sequence = fact.sequence


def end_plan(session: Session) -> None:
    """Record that a session has come to the end of the facts of which it is made."""
    session.settings.plan = None
    session.show_versions()


def _show(session: Session, fact: Fact) -> None:
    if fact.type == "turn.submitted":
        session.threads.join(fact.turn_id or "", fact.thread_id)
    messages = messages_of(fact)
    session.screen.begin_turn(fact.turn_id, messages)
    for message in messages:
        if fact.type == "queue.changed" and not session.settings.shows(
            getattr(message, "turn_id", None)
        ):
            continue
        session.screen.apply(message, fact.sequence)
    if fact.type in ("turn.completed", "turn.failed"):
        session.evict()


def seal(session: Session, reason: str) -> None:
    """Let a session be read and nothing more: the log goes on with what cannot be read.

    Turns that go on at its end are shown as failed, for this reason; that is not recorded.
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
    """Close the turn that a crash interrupted and go on with the queue.

    Open questions stay open, and the turn reads as waiting while there is one. That the session was
    made again from its log is a fact before all others; where nothing is to be mended there is
    none.

    Args:
        session: As its log leaves it.
        fault: Why it left the memory, if the server went on: its turn failed by that, and nobody
            can answer its questions any more.
    """
    if session.active:
        made_of: JsonObject = {"throughSequence": session.sequence, "source": "ledger"}
        session.record("history.reconstructed", made_of)
    if session.running is None:
        return session.begin_next()
    if fault is not None:
        return session.end_turn(session.running, "failed", fault)
    warning = "the server stopped while this turn ran; it was closed as interrupted"
    if session.asks(session.running):
        warning = "the server stopped while this turn waited for an answer; its question stays open"
    session.in_turn("runtime.warning", session.running, {"message": warning})
    error = Interrupted("the server stopped while this turn ran; ask again to go on")
    return session.end_turn(session.running, "failed", error, reason="interrupted")


def _payload(fact: Fact) -> JsonObject:
    payload = fact.payload
    assert isinstance(payload, dict)
    return payload


def _ids(fact: Fact) -> Mapping[str, Any]:
    return {name: getattr(fact, name) for name in _CORRELATION}
