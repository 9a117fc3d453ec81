"""The end of a turn: how it is recorded, and what is closed with it.

Theory of operation. `close_turn` records everything that ends with a turn, in this order: text that
was held back because it could begin a secret, open questions, open tool calls, the error, the turn
itself, its attempt at a task. `end_turn` does the same, and then starts the next turn. When the
server stops, it uses `close_turn`, so that the next turn stays in the queue.
"""

from __future__ import annotations

from typing import Literal

from arp.protocol.errors import error_payload
from arp.protocol.json_value import JsonObject
from arp.session.asking import cancel_question
from arp.session.effects import Effect, StopTurn
from arp.session.session import Session
from arp.session.turn_queue import begin_next, record_queue

TURN_ENDED_FIRST = "the turn ended first"
"""Error of a tool call that is still open when its turn ends."""


def end_turn(
    session: Session,
    turn_id: str,
    status: Literal["completed", "failed", "cancelled"],
    error: BaseException | None = None,
    reason: str | None = None,
    usage: JsonObject | None = None,
) -> list[Effect]:
    """End a turn as `close_turn` does, and start the next queued one.

    After a failed turn the queue is paused instead if a connected renderer can resume it.
    """
    is_closed = close_turn(session, turn_id, status, error, reason, usage)
    return begin_next(session) if is_closed else []


def close_turn(
    session: Session,
    turn_id: str,
    status: Literal["completed", "failed", "cancelled"],
    error: BaseException | None = None,
    reason: str | None = None,
    usage: JsonObject | None = None,
) -> bool:
    """Record the end of a turn: close its open questions and fail its open tool calls.

    An interrupted turn keeps both open, and readers show such a tool call as interrupted. If it has
    an open question, the turn is shown as waiting until that question is closed, and its error is
    not shown: nothing failed that the user has to repeat.

    Args:
        session: The session.
        turn_id: A running or queued turn; a turn in another state is left unchanged.
        status: Outcome of the turn.
        error: Error to show. An exception that is not an `ArpError` is shown without details.
        reason: `statusReason` of the fact. `interrupted` means that a crash ended the turn.
        usage: Usage of the turn, sent with the final commit.

    Returns:
        Whether the turn was running or queued.
    """
    # A turn ends exactly once: its agent may report the end after the user has cancelled it.
    if turn_id != session.turns.running and turn_id not in session.turns.queue:
        return False
    session.begin_end(turn_id)
    if reason != "interrupted":
        for question in session.questions.of_turn(turn_id):
            cancel_question(session, question)
        _close_tools(session, turn_id)
    waits = reason == "interrupted" and bool(session.questions.of_turn(turn_id))
    if error is not None and not waits:
        payload = error_payload(error)
        shown: JsonObject = {"error": payload.error, "code": payload.code}
        session.in_turn("runtime.error", turn_id, {**shown, "retryable": payload.retryable})
    type_name = "turn.completed" if status == "completed" else "turn.failed"
    ids = {"status_reason": reason or status} if status != "completed" else {}
    recorded = "waiting" if waits else status
    ended: JsonObject = {"status": recorded, "usage": usage} if usage else {"status": recorded}
    # Read before the fact is recorded, which removes both.
    was_queued, attempt = turn_id in session.turns.queue, session.attempts.get(turn_id)
    session.in_turn(type_name, turn_id, ended, status=recorded, **ids)
    if not waits:
        failed = None if status == "completed" else reason or status
        thread = session.threads.of(turn_id)
        session.record_step(session.attempts.end_facts(attempt, turn_id, thread, failed))
    session.evict()
    if was_queued:
        record_queue(session)
    # After a failure the queued turns may be pointless, so the user decides. Without a renderer
    # that can resume the queue, a paused queue would never run again.
    is_error = status == "failed" and reason != "interrupted"
    if is_error and session.turns.may("pause") and _can_be_resumed(session):
        record_queue(session, pause=True)
    return True


def _close_tools(session: Session, turn_id: str) -> None:
    """Record every open tool call of a turn as failed."""
    turn = session.screen.turns.get(turn_id)
    for run in [] if turn is None else [one for one in turn.tools if one.ok is None]:
        ids = {"step_id": run.call_id, "tool_call_id": run.call_id}
        session.in_turn(
            "tool.failed", turn_id, {"tool": run.tool, "error": TURN_ENDED_FIRST}, **ids
        )


def _can_be_resumed(session: Session) -> bool:
    """Return whether a connected renderer shows a paused queue and can resume it."""
    return any(watcher.resumes_queue for watcher in session.watchers)


def cancel_turn(session: Session, turn_id: str | None = None) -> list[Effect]:
    """Request the end of a turn; `None` means the running turn. A queued turn ends at once."""
    turn_id = turn_id or session.turns.running
    if turn_id is None:
        return []
    if turn_id in session.turns.queue:
        return end_turn(session, turn_id, "cancelled")
    return [StopTurn(turn_id)] if turn_id == session.turns.running else []
