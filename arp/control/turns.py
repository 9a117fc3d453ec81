"""Turns: begin one, stop one, and what waits in line."""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress
from typing import Literal

from msgspec import Struct

from arp.control.asked import Asked, Id, OfSession, SessionId, Traceparent, TurnId
from arp.control.desk import Desk
from arp.control.task_graph import find, not_known
from arp.control.task_steps import Steps
from arp.hub.live import LiveSession
from arp.protocol.errors import InvalidMessage, SessionBusy, UnknownObject
from arp.protocol.json_value import Json, JsonObject
from arp.protocol.messages import CANCEL, FINAL_STATUSES, Input, InputType
from arp.session.effects import Effect
from arp.session.inputs import receive, submit
from arp.session.threads import THREAD
from arp.surface.draft_answer import understand_draft

MORE_S = 1.0
"""How much longer than a turn's own grace its end is waited for."""

DONE = frozenset(("completed", "archived"))
"""Statuses of a task at which no attempt begins any more."""

NOT_KNOWN = "unavailable"
"""Stands for a correlation that there is none of (ledger.md 1)."""

_OWN_ID = re.compile(r"t[0-9]+")


class TurnInput(Struct, frozen=True, forbid_unknown_fields=True):
    """What a turn is about: `text` alone, or `input_type` with its `data` (protocol.md 2.2)."""

    text: str | None = None
    input_type: InputType = "text"
    data: Json = None
    """An object or `None`. Its type says less, so that it stays the very object that was looked
    through for secrets in a thread: a typed one would be copied."""

    def __post_init__(self) -> None:
        if self.data is not None and not isinstance(self.data, dict):
            raise ValueError("data: expected an object")

    def content(self) -> JsonObject:
        """Gives `data`.

        Raises:
            InvalidMessage: Both ways are taken, or neither.
        """
        if self.data is not None and self.text is None:
            content: JsonObject = self.data
            return content
        if self.data is None and self.text is not None and self.input_type == "text":
            return {"text": self.text}
        raise InvalidMessage(
            "input: give text, or input_type and data; not both, not neither", detail="input"
        )


class StartTurn(Asked, frozen=True, kw_only=True):
    """Asks for a turn."""

    input: TurnInput
    session_id: SessionId | None = None
    """`None` makes a new session; so does one that there is not."""
    turn_id: TurnId | None = None
    """What the turn is to be called. A call with an id that there is changes nothing."""
    thread_id: Id | None = None
    """The thread that it belongs to; `None` is the session's first."""
    workflow: Id | None = None
    """The agent of a new session."""
    task_id: Id | None = None
    """The task that it is for."""
    run_id: Id | None = None
    """The attempt at that task: it begins with the turn, unless it has begun already."""
    traceparent: Traceparent | None = None
    """The caller's span, as W3C Trace Context writes it: the turn is a part of its trace."""


class CancelTurn(OfSession, frozen=True, kw_only=True):
    """Asks a turn to stop."""

    turn_id: Id | None = None
    """`None` means the one that runs."""
    queued: Literal["keep", "cancel"] = "keep"
    """What becomes of the turns in line."""


class QueuedTurn(OfSession, frozen=True, kw_only=True):
    """Names a turn in line."""

    turn_id: Id


class TurnState(Struct, frozen=True, rename="camel"):
    """How a turn stands."""

    session_id: str
    epoch: str
    thread_id: str
    turn_id: str
    status: str
    """`queued running waiting cancelling completed failed cancelled`."""
    sequence: int
    """The session's newest fact when this was said."""
    queued: list[str]
    """Turns in line, in order."""
    repeated: bool = False
    """It was so before: the call changed nothing."""


class Turns:
    """Turns of sessions that belong to one principal. Answers are given when facts are durable."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def start(self, asked: StartTurn) -> TurnState:
        """Begins a turn, or puts it in line, or refuses it, as the session's policy says.

        With `taskId` and `runId` an attempt at the task begins, in which the turn is.

        Raises:
            SessionBusy: A turn runs and the policy is `reject`, or another attempt at the task
                runs; nothing has changed.
            ArpError: The input, the agent or the session is refused, or the task is completed;
                nothing has changed.

        Source: ledger.md 5, submit_turn.
        """
        live = await self._desk.open(asked.session_id, asked.workflow)
        if asked.task_id is not None and asked.run_id is not None:
            turn_id, repeated = await self._attempt(live, asked, asked.task_id, asked.run_id)
        else:
            turn_id, repeated, effects = self.submit(live, asked)
            self._desk.carry_out(live, effects)
        past = await self._status_of_left(live, turn_id)
        thread = await self._thread_of_left(live, turn_id) if past is not None else None
        state = _state(live, turn_id, past, thread, repeated=repeated)
        await live.written()
        return state

    async def _attempt(
        self, live: LiveSession, asked: StartTurn, task_id: str, run_id: str
    ) -> tuple[str, bool]:
        """Record a turn, and the attempt at a task that begins with it; give the turn's id."""
        async with self._desk.plane.lock(live.id):
            await live.written()
            model = await self._desk.model(live.id)
            known = await find(self._desk.hub.store, model, task_id) or not_known(task_id)
            is_there = known.has_run(run_id)
            if not is_there and not (asked.turn_id is not None and _exists(live, asked.turn_id)):
                known.check_idle()
                if known.task.status in DONE:
                    raise InvalidMessage(
                        f"task {task_id} is {known.task.status}: it has no more attempts",
                        detail="taskId",
                    )
            turn_id, repeated, effects = self.submit(live, asked)
            if not repeated and not is_there:
                recorder = self._desk.hub.recorder(live)
                thread_id = live.session.threads.of(turn_id)
                Steps(recorder, known, turn_id, thread_id).begin(run_id)
            self._desk.carry_out(live, effects)
            return turn_id, repeated

    def submit(self, live: LiveSession, asked: StartTurn) -> tuple[str, bool, list[Effect]]:
        """Records a turn that is asked for.

        Returns:
            Its id; whether it was there before; what to do when it is durable.

        Raises:
            ArpError: As `start`.
        """
        data, named = asked.input.content(), asked.turn_id
        if named is not None and _exists(live, named):
            return named, True, []
        input_id = _input_id(named) if named is not None else None
        message = Input(input_type=asked.input.input_type, data=data, id=input_id)
        ids = {"task_id": asked.task_id, "run_id": asked.run_id}
        given = {name: value for name, value in ids.items() if value is not None}
        count = live.session.turn_count
        effects = submit(live.session, message, named, asked.traceparent, asked.thread_id, **given)
        live.began(self._desk.principal.known_as, count)
        return named or next(reversed(live.session.screen.turns)), False, effects

    async def cancel(self, asked: CancelTurn) -> TurnState:
        """Record the request that a turn stop, then stop it; the answer does not wait for its end.

        Raises:
            UnknownObject: No such turn, or none runs; nothing has changed.

        Source: ledger.md 5, interrupt_turn: intent first, then cleanup.
        """
        live = await self._desk.to_change(asked.session_id)
        session = live.session
        turn_id = asked.turn_id or session.running
        if turn_id is None:
            raise UnknownObject("no turn runs in this session", detail=asked.session_id)
        past = await self._status_of_left(live, turn_id)
        status = past or _status(live, turn_id)
        effects = self.stop(live, turn_id) if past is None else []
        if asked.queued == "cancel":
            for waiting in list(session.queue):
                effects += session.cancel(waiting)
        self._desk.carry_out(live, effects)
        is_over = status in FINAL_STATUSES
        thread = await self._thread_of_left(live, turn_id) if past is not None else None
        state = _state(live, turn_id, past, thread, repeated=is_over, stopping=True)
        await live.written()
        return state

    async def _status_of_left(self, live: LiveSession, turn_id: str) -> str | None:
        """Gives the status of a turn that has left the memory; `None` of others, and of none."""
        if turn_id in live.session.screen.turns:
            return None
        past = await self._desk.hub.history.turn(live, turn_id)
        return past.turn.status if past is not None else None

    async def _thread_of_left(self, live: LiveSession, turn_id: str) -> str:
        """Gives the thread of a turn that has left the memory, as far as it is kept anywhere."""
        if not live.session.threads.begun:
            return THREAD
        threads = (await self._desk.model(live.id)).state.threads.threads
        found = (name for name, thread in threads.items() if thread.turns.get(turn_id) is not None)
        return next(found, NOT_KNOWN)

    @staticmethod
    def stop(live: LiveSession, turn_id: str | None) -> list[Effect]:
        """Records the wish that a turn stop, unless it is over; gives what to do about it."""
        if turn_id is None or _is_over(live, turn_id):
            return []
        data = {"action": CANCEL, "payload": {"turn_id": turn_id}}
        message = Input(input_type="action", data=data, id=f"cancel:{turn_id}")
        return receive(live.session, message, understand_draft)

    @staticmethod
    async def over(desk: Desk, live: LiveSession, turn_id: str | None) -> None:
        """Waits until a turn that was asked to stop is over; for a bounded time."""
        if turn_id is None:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(desk.hub.settings.cancel_grace_s + MORE_S):
                while not _is_over(live, turn_id):
                    await live.beyond(live.session.log.stored)

    async def remove(self, asked: QueuedTurn) -> TurnState:
        """Takes a turn out of the line: it ends as cancelled and never runs.

        Raises:
            UnknownObject: No such turn.
            SessionBusy: It runs already; nothing has changed.
        """
        live = await self._desk.to_change(asked.session_id)
        status = _waits(live, asked.turn_id)
        if status == "queued":
            self._desk.carry_out(live, live.session.cancel(asked.turn_id))
        state = _state(live, asked.turn_id, repeated=status != "queued")
        await live.written()
        return state

    async def promote(self, asked: QueuedTurn) -> TurnState:
        """Puts a turn first in line.

        Raises:
            UnknownObject: No such turn, or it is over.
            SessionBusy: It runs already; nothing has changed.
        """
        live = await self._desk.to_change(asked.session_id)
        if _waits(live, asked.turn_id) != "queued":
            raise UnknownObject(f"turn {asked.turn_id} is over", detail=asked.turn_id)
        first = live.session.queue[0] == asked.turn_id
        live.session.promote(asked.turn_id)
        self._desk.carry_out(live, [])
        state = _state(live, asked.turn_id, repeated=first)
        await live.written()
        return state


def _input_id(turn_id: str) -> str:
    return f"turn:{turn_id}"


def _exists(live: LiveSession, turn_id: str) -> bool:
    """Tells whether there is a turn of that id.

    Raises:
        InvalidMessage: There is none, and it is one of the ids that the server gives.
    """
    session = live.session
    branches = session.branches
    is_there = turn_id in session.screen.turns or (branches is not None and turn_id in branches)
    if is_there or _input_id(turn_id) in session.seen:
        return True
    if _OWN_ID.fullmatch(turn_id):
        if len(turn_id) < 16 and 0 < int(turn_id[1:]) <= session.turn_count:
            return True
        raise InvalidMessage(
            f"turnId {turn_id}: t and digits are names that the server gives; take another",
            detail="turnId",
        )
    return False


def _is_over(live: LiveSession, turn_id: str) -> bool:
    """Tells whether a turn has ended, or has left the memory, as only such turns do."""
    turn = live.session.screen.turns.get(turn_id)
    return turn is None or turn.status in FINAL_STATUSES


def _status(live: LiveSession, turn_id: str) -> str:
    turn = live.session.screen.turns.get(turn_id)
    if turn is None:
        raise UnknownObject(f"no turn {turn_id!r:.80} in this session", detail=turn_id)
    return turn.status or "queued"


def _waits(live: LiveSession, turn_id: str) -> str:
    """Gives the status of a turn that may still wait in line; refuses one that runs."""
    status = _status(live, turn_id)
    if turn_id in live.session.queue:
        return "queued"
    if status not in FINAL_STATUSES:
        raise SessionBusy(f"turn {turn_id} runs; stop it with agentSession/turn/cancel")
    return status


def _state(
    live: LiveSession,
    turn_id: str,
    past: str | None = None,
    thread: str | None = None,
    *,
    repeated: bool,
    stopping: bool = False,
) -> TurnState:
    """Tells how a turn stands; `past` and `thread` are of one that has left the memory."""
    session = live.session
    status = "queued" if turn_id in session.queue else past or _status(live, turn_id)
    if stopping and status not in FINAL_STATUSES:
        status = "cancelling"
    head = session.head
    return TurnState(
        head.session_id,
        head.epoch,
        thread or session.threads.of(turn_id),
        turn_id,
        status,
        session.sequence,
        list(session.queue),
        repeated,
    )
