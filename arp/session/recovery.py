"""A session from its log: the same state as the one that wrote it, and what a crash left is mended.

Source: ledger.md 2 ("after a crash the log is the truth").
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from arp.ledger.fact import Fact
from arp.protocol.errors import RemoteError
from arp.protocol.json_value import JsonObject
from arp.protocol.limits import Limits
from arp.protocol.messages import AgentMessage, RendererInfo
from arp.session.effects import Effect
from arp.session.policy import Policy
from arp.session.projection import At, project
from arp.session.seen import files_named
from arp.session.session import Head, Question, Session

_CORRELATION = ("tool_call_id", "action_id", "step_id")


class Interrupted(RemoteError):
    """The server ended while this turn ran."""

    retryable = True


def messages_of(fact: Fact) -> list[AgentMessage]:
    """Gives the messages that show a stored fact, as they were first sent."""
    at = At(fact.session_id, fact.sequence, fact.turn_id)
    return project(at, fact.type, _payload(fact), _ids(fact))


def restore(head: Head, facts: Iterable[Fact], limits: Limits, policy: Policy = "queue") -> Session:
    """Rebuilds a session from all of its facts, in order, and leaves it as the log does.

    Args:
        head: As it was made.
        facts: From the first. The session goes on with what they hold: nobody else may.
        limits: For what comes.
        policy: For what comes.
    """
    session = Session(head, limits, policy)
    for fact in facts:
        for message in messages_of(fact):
            session.screen.apply(message, fact.sequence)
        _follow(session, fact)
        session.log.sequence = session.log.stored = fact.sequence
    return session


def recover(session: Session) -> list[Effect]:
    """Closes the turn that a crash interrupted and goes on with the queue.

    Open questions stay open.
    """
    if session.running is None:
        return session.begin_next()
    error = Interrupted("the server stopped while this turn ran; ask again to go on")
    return session.end_turn(session.running, "failed", error, reason="interrupted")


def _follow(session: Session, fact: Fact) -> None:
    payload, turn_id = _payload(fact), fact.turn_id or ""
    match fact.type:
        case "turn.submitted":
            session.queue.append(turn_id)
            _seen(session, payload.get("input"), turn_id)
            _told_by(session, payload, turn_id)
        case "turn.started":
            session.queue.remove(turn_id)
            session.running = turn_id
        case "turn.completed" | "turn.failed":
            session.running = None if session.running == turn_id else session.running
            session.seen.renderers.pop(turn_id, None)
            if turn_id in session.queue:
                session.queue.remove(turn_id)
        case "action.required":
            component_id, surface = payload["component"]["id"], payload["surface"]
            question = Question(fact.action_id or "", component_id, surface, turn_id)
            session.questions[surface, component_id] = question
        case "action.resolved":
            for place, question in list(session.questions.items()):
                if question.action_id == fact.action_id:
                    del session.questions[place]
            _seen(session, payload.get("input"), turn_id)
        case "output.spilled" if "file" in payload:  # what a tool wrote is no file of a user's
            session.seen.remember_files([payload["file"]["sha256"]])
        case "artifact.changed" | "run.status":
            if "inputId" in payload:
                session.seen.remember(payload["inputId"], fact.turn_id)
        case _:
            pass


def _told_by(session: Session, payload: JsonObject, turn_id: str) -> None:
    if "renderer" in payload:
        session.seen.renderers[turn_id] = msgspec.convert(payload["renderer"], RendererInfo)


def _seen(session: Session, told: JsonObject | None, turn_id: str) -> None:
    if told is None:
        return
    if told.get("id") is not None:
        session.seen.remember(told["id"], turn_id)
    session.seen.remember_files(files_named(told["data"]))


def _payload(fact: Fact) -> JsonObject:
    payload = fact.payload
    assert isinstance(payload, dict)
    return payload


def _ids(fact: Fact) -> Mapping[str, Any]:
    return {name: getattr(fact, name) for name in _CORRELATION}
