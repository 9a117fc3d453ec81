"""Inputs that change to another branch: they make a version of a turn, or show an existing one.

Theory of operation. The screen of a branch is built from the facts of its turns. So the caller
first reads all facts (`Survey`). Then it builds a session from the facts of the turns that
`branch_of` returns, and applies the input in one step (`change_branch`).

If a failed turn has paused the queue, a new version of a turn runs before the queued turns: each
queued turn is cancelled, and its input is queued again as a turn with a new id.
"""

from __future__ import annotations

from arp.protocol.errors import InvalidMessage, SessionBusy, UnknownObject
from arp.protocol.json_value import JsonObject
from arp.protocol.messages import BRANCH, REGENERATE, Input
from arp.session.effects import Effect
from arp.session.input.receive import (
    BEGINNING,
    NO_SENDER,
    UNKNOWN,
    InputSender,
    NewTurnOptions,
    acknowledge,
    check_beginning,
    input_of,
    new_turn,
    next_turn_id,
    turn_submitted,
)
from arp.session.session import Session
from arp.session.tracking.branches import Branches, Survey
from arp.session.turn_end import end_turn
from arp.session.turn_queue import record_queue


def asks_for_branch(session: Session, message: Input) -> bool:
    """Return whether an input that did not take effect before asks for another branch.

    `receive.receive` handles every other input.
    """
    if message.id is not None and message.id in session.input_log:
        return False
    if message.edits is not None:
        return message.edits not in session.queue
    return message.input_type == "action" and message.data.get("action") in (REGENERATE, BRANCH)


def check_branch_change(session: Session, message: Input) -> None:
    """Check everything that can be checked without reading all facts.

    Raises:
        SessionBusy: A turn is running or about to start; or turns are queued, and the input shows
            an existing version, which already has turns after it.
        InvalidMessage: An edit has an input that may not begin a turn.
        ReadOnly: The log is sealed.
    """
    session.log.check_open()
    if message.edits is not None:
        if message.input_type not in BEGINNING:
            raise InvalidMessage(
                f"edits: only {', '.join(BEGINNING)} may take the place of an input",
                detail="edits",
            )
        check_beginning(session, message)
    if not session.turns.may("switch" if _is_switch(message) else "edit"):
        raise SessionBusy("a turn runs; stop it first, or edit a queued turn")


def branch_of(message: Input, survey: Survey) -> list[str]:
    """Return the turns from which to build the session that `change_branch` needs.

    Raises:
        UnknownObject: The input names an unknown turn.
    """
    target = _target(message, survey.branches)
    if _is_switch(message):
        return survey.branches.through(target)
    return survey.branches.before(target)


def change_branch(
    session: Session,
    message: Input,
    survey: Survey,
    branch: Session,
    sender: InputSender = NO_SENDER,
    traceparent: str | None = None,
) -> list[Effect]:
    """Apply an input that changes the branch. Every renderer needs a snapshot afterwards.

    Args:
        session: Changed only if the input is accepted.
        message: An input for which `asks_for_branch` is true.
        survey: Survey of all facts that the session has recorded.
        branch: Session built from the turns of `branch_of`. The caller must not use it afterwards.
        sender: Who sent it.
        traceparent: External span that requests a turn, in W3C Trace Context format.

    Returns:
        Effects to carry out once the facts are durable, as `receive.receive` returns them.

    Raises:
        RemoteError, SessionBusy: The input is refused as in `check_branch_change` or `branch_of`;
            nothing has changed.
    """
    # Checked again: a turn may have started while the caller was reading the facts.
    check_branch_change(session, message)
    target, before = _target(message, survey.branches), survey.branches.shown
    if _is_switch(message):
        return _switch(session, message, survey, branch)
    reason, origin = "edit", None
    if message.edits is None:
        reason, message = "regenerate", input_of(survey.submitted[target], message.id)
        origin = survey.origins.get(target)
    kept = survey.branches.before(target)
    gone = [turn_id for turn_id in before if turn_id not in kept]
    back = [turn_id for turn_id in kept if turn_id not in before]
    moving = list(session.queue)
    queued = [_queued_input(session, turn_id) for turn_id in moving]
    # A queued turn ends while the branch that it is on is shown. Otherwise its end would be missing
    # on the screen: a turn before the edited one would stay queued there, beside its new copy.
    _cancel(session, [turn_id for turn_id in moving if turn_id not in kept])
    session.switch_to(branch)
    _cancel(session, [turn_id for turn_id in moving if turn_id in kept])
    thread = survey.threads.of(target)
    removed: JsonObject = {"removedTurns": gone}
    if back:  # the version belongs to a branch that was not shown
        removed["restoredTurns"] = back
    _record_rollback(session, survey.begun.get(target, 1) - 1, reason, removed, thread)
    version = NewTurnOptions(edits=target, traceparent=traceparent, thread=thread, origin=origin)
    effects = new_turn(session, message, sender, version)
    # The new version is running by now, so these turns only join the queue.
    for moved, its_sender, options in queued:
        turn_id = next_turn_id(session)
        session.record_step([turn_submitted(session, turn_id, moved, its_sender, options)])
    if queued:
        record_queue(session)
    _show_versions(session)
    return effects


def _queued_input(session: Session, turn_id: str) -> tuple[Input, InputSender, NewTurnOptions]:
    """Return the input of a queued turn, its sender, and the options of the turn."""
    # The echo on the screen is redacted; `typed` has the data with its secrets, for the agent.
    echo, seen = session.screen.turns[turn_id].inputs[0], session.input_log
    message = input_of(
        {
            "input_type": echo.input_type,
            "data": seen.typed.get(turn_id, echo.data),
            "source_component": echo.source_component,
            "surface": echo.surface,
        }
    )
    options = NewTurnOptions(thread=session.threads.of(turn_id), origin=echo.origin)
    sender = InputSender(seen.renderers.get(turn_id, UNKNOWN), seen.users.get(turn_id))
    return message, sender, options


def _cancel(session: Session, queued: list[str]) -> None:
    for turn_id in queued:
        end_turn(session, turn_id, "cancelled")


def _target(message: Input, branches: Branches) -> str:
    target: object = message.edits
    if target is None:
        payload = message.data.get("payload")
        target = payload.get("turn_id") if isinstance(payload, dict) else None
    if not isinstance(target, str) or target not in branches:
        raise UnknownObject(f"no turn {target!r:.80} in this session", detail=f"{target!s:.80}")
    return target


def _is_switch(message: Input) -> bool:
    return message.edits is None and message.data["action"] == BRANCH


def _switch(session: Session, message: Input, survey: Survey, branch: Session) -> list[Effect]:
    """Show the branch of an existing version; do nothing if it is shown already."""
    target, before = _target(message, survey.branches), survey.branches.shown
    id_field = {"inputId": message.id} if message.id is not None else {}
    # Records the id of the input even if nothing else happens. A repetition after a restart would
    # otherwise undo a later switch.
    session.record("run.status", id_field, status="idle")
    if target not in before:
        shown = survey.branches.through(target)
        gone = [turn_id for turn_id in before if turn_id not in shown]
        back = [turn_id for turn_id in shown if turn_id not in before]
        session.switch_to(branch)
        session.record("session.updated", {"branch": target})
        removed: JsonObject = {"removedTurns": gone, "restoredTurns": back}
        to = survey.begun.get(gone[0], 1) - 1 if gone else 0
        _record_rollback(session, to, "branch", removed, survey.threads.of(target))
        _show_versions(session)
    return acknowledge(message, None)


def _show_versions(session: Session) -> None:
    """Show the versions of each turn, after a change of branch."""
    if session.branches is not None:
        session.branches.show_versions(session.screen.turns.values())


def _record_rollback(
    session: Session, to: int, reason: str, removed: JsonObject, thread: str
) -> None:
    """Record which turns are removed from the screen or restored, as a rollback of the history.

    Args:
        session: The session.
        to: Sequence number of the newest fact that is still in effect.
        reason: `edit`, `regenerate` or `branch`.
        removed: Ids of the removed and restored turns, by payload field.
        thread: Thread of the fact.
    """
    ids = {"thread_id": thread, "request_id": f"rollback-{session.sequence + 1}"}
    target: JsonObject = {"toSequence": to}
    session.record("history.rollback.started", {**target, "reason": reason}, **ids)
    session.record("history.rollback.completed", {**target, **removed}, **ids)
