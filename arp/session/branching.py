"""Inputs that turn to another branch: another version of a turn, new or seen before.

What shows on a branch is made from the facts of its turns. So who carries such an input out looks
at all facts first (a `Survey`), makes a session of those of the branch (`branch_of` says which
turns these are), and then lets the input take effect in one step (`turn_back`).

A line that waits since a turn failed goes along to another version: what stands in it is taken out
where it stood, and is queued again behind that version, as turns of other names.
"""

from __future__ import annotations

from arp.protocol.errors import InvalidMessage, SessionBusy, UnknownObject
from arp.protocol.json_value import JsonObject
from arp.protocol.messages import BRANCH, REGENERATE, Input, RendererInfo
from arp.session.branches import Branches, Survey
from arp.session.effects import Effect
from arp.session.inputs import (
    BEGINNING,
    UNKNOWN,
    Particulars,
    acknowledge,
    check_beginning,
    first_fact,
    input_of,
    new_turn,
)
from arp.session.session import Session


def asks_to_turn(session: Session, message: Input) -> bool:
    """Return whether an input is for this file: others are for `inputs.receive`."""
    if message.id is not None and message.id in session.input_log:
        return False
    if message.edits is not None:
        return message.edits not in session.queue
    return message.input_type == "action" and message.data.get("action") in (REGENERATE, BRANCH)


def check_turning(session: Session, message: Input) -> None:
    """Refuse what can be refused without a look at all facts.

    Raises:
        SessionBusy: A turn runs or is about to; or one is queued, and a version is to show that
            has its own turns behind it.
        InvalidMessage: It is no input that may begin a turn.
        ReadOnly: Nothing is recorded any more.
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
        raise SessionBusy("a turn runs; stop it first, or edit one that is queued")


def branch_of(message: Input, survey: Survey) -> list[str]:
    """Return the turns that are to be made of their facts before the input takes effect.

    Raises:
        UnknownObject: The input names a turn that there is not.
    """
    target = _target(message, survey.branches)
    if _is_switch(message):
        return survey.branches.through(target)
    return survey.branches.before(target)


def turn_back(
    session: Session,
    message: Input,
    survey: Survey,
    branch: Session,
    renderer: RendererInfo = UNKNOWN,
    traceparent: str | None = None,
) -> list[Effect]:
    """Take an input for which `asks_to_turn`; then every renderer needs a snapshot.

    Args:
        session: Changed only if the input is accepted.
        message: The input.
        survey: Of all facts that the session has recorded.
        branch: Made of the facts of `branch_of`; it is used up.
        renderer: What the renderer that it came from said of itself.
        traceparent: As in `inputs.receive`.

    Returns:
        As `inputs.receive`.

    Raises:
        RemoteError, SessionBusy: As `check_turning` and `branch_of`; nothing has changed.
    """
    check_turning(session, message)
    target, before = _target(message, survey.branches), survey.branches.shown
    if _is_switch(message):
        return _show(session, message, survey, branch)
    reason, origin = "edit", None
    if message.edits is None:
        reason, message = "regenerate", input_of(survey.told[target], message.id)
        origin = survey.origins.get(target)
    kept = survey.branches.before(target)
    gone = [turn_id for turn_id in before if turn_id not in kept]
    line = _taken_out(session)
    session.switch_to(branch)
    thread = survey.threads.of(target)
    removed: JsonObject = {"removedTurns": gone}
    _rolled_back(session, survey.begun.get(target, 1) - 1, reason, removed, thread)
    version = Particulars(edits=target, traceparent=traceparent, thread=thread, origin=origin)
    effects = new_turn(session, message, renderer, version)
    for queued, sender, particulars in line:
        turn_id, submitted, ids = first_fact(session, queued, sender, particulars)
        session.in_turn("turn.submitted", turn_id, submitted, **ids)
    if line:
        session.record_queue()
    session.show_versions()
    return effects


def _taken_out(session: Session) -> list[tuple[Input, RendererInfo, Particulars]]:
    """Take all turns out of the line; return what began them, and from where, in order."""
    line: list[tuple[Input, RendererInfo, Particulars]] = []
    for turn_id in list(session.queue):
        echo, seen = session.screen.turns[turn_id].inputs[0], session.input_log
        message = input_of(
            {
                "input_type": echo.input_type,
                "data": seen.typed.get(turn_id, echo.data),
                "source_component": echo.source_component,
                "surface": echo.surface,
            }
        )
        particulars = Particulars(thread=session.threads.of(turn_id), origin=echo.origin)
        line.append((message, seen.renderers.get(turn_id, UNKNOWN), particulars))
        session.end_turn(turn_id, "cancelled")
    return line


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


def _show(session: Session, message: Input, survey: Survey, branch: Session) -> list[Effect]:
    target, before = _target(message, survey.branches), survey.branches.shown
    intent = {"inputId": message.id} if message.id is not None else {}
    session.record("run.status", intent, status="idle")
    if target not in before:
        shown = survey.branches.through(target)
        gone = [turn_id for turn_id in before if turn_id not in shown]
        back = [turn_id for turn_id in shown if turn_id not in before]
        session.switch_to(branch)
        session.record("session.updated", {"branch": target})
        removed: JsonObject = {"removedTurns": gone, "restoredTurns": back}
        to = survey.begun.get(gone[0], 1) - 1 if gone else 0
        _rolled_back(session, to, "branch", removed, survey.threads.of(target))
        session.show_versions()
    return acknowledge(message, None)


def _rolled_back(session: Session, to: int, reason: str, removed: JsonObject, thread: str) -> None:
    """Say in the words of the ledger what no longer counts."""
    ids = {"thread_id": thread, "request_id": f"rollback-{session.sequence + 1}"}
    place: JsonObject = {"toSequence": to}
    session.record("history.rollback.started", {**place, "reason": reason}, **ids)
    session.record("history.rollback.completed", {**place, **removed}, **ids)
