"""Turns: start one, stop one, and change the queue."""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress
from typing import Literal

from msgspec import Struct

from arp.control.context import ControlContext
from arp.control.method import Id, Params, SessionId, SessionParams, Traceparent, TurnId, method
from arp.control.task_facts import TaskRecorder, check_idle, find_task, unknown_task
from arp.live.live_session import LiveSession
from arp.protocol.errors import InvalidMessage, SessionBusy, UnknownObject
from arp.protocol.json_value import Json, JsonObject
from arp.protocol.messages import CANCEL, FINAL_STATUSES, Input, InputType
from arp.session.effects import Effect
from arp.session.inputs import receive, submit
from arp.session.threads import THREAD
from arp.session.turn_end import cancel_turn
from arp.surface.draft_answer import understand_draft

MORE_S = 1.0
"""How much longer than a turn's own grace period `wait_until_over` waits for its end."""

DONE = frozenset(("completed", "archived"))
"""Statuses of a task at which no attempt begins any more."""

NOT_KNOWN = "unavailable"
"""The value of a missing correlation (ledger.md 1)."""

_OWN_ID = re.compile(r"t[0-9]+")


class TurnInput(Struct, frozen=True, forbid_unknown_fields=True):
    """The input of a turn: `text` alone, or `input_type` with its `data` (protocol.md 2.2)."""

    text: str | None = None
    input_type: InputType = "text"
    data: Json = None
    """An object or `None`. Its type is wider than that, since msgspec would copy a typed one, and
    this must stay the object in which a thread looked for secrets."""

    def __post_init__(self) -> None:
        if self.data is not None and not isinstance(self.data, dict):
            raise ValueError("data: expected an object")

    def content(self) -> JsonObject:
        """Return `data`, also of an input that is given as `text`.

        Raises:
            InvalidMessage: Both are given, or neither.
        """
        if self.data is not None and self.text is None:
            content: JsonObject = self.data
            return content
        if self.data is None and self.text is not None and self.input_type == "text":
            return {"text": self.text}
        raise InvalidMessage(
            "input: give text, or input_type and data; not both, not neither", detail="input"
        )


class StartTurn(Params, frozen=True, kw_only=True):
    """Asks for a turn."""

    input: TurnInput
    session_id: SessionId | None = None
    """`None` makes a new session; so does the id of none."""
    turn_id: TurnId | None = None
    """The id of the turn; a call with an id that exists changes nothing."""
    thread_id: Id | None = None
    """The thread that it belongs to; `None` is the session's first."""
    workflow: Id | None = None
    """The agent of a new session."""
    task_id: Id | None = None
    """The task that it is for."""
    run_id: Id | None = None
    """The attempt at that task: it begins with the turn, unless it has begun already."""
    traceparent: Traceparent | None = None
    """The caller's span, in the form of W3C Trace Context: the turn is a part of its trace."""


class CancelTurn(SessionParams, frozen=True, kw_only=True):
    """Asks a turn to stop."""

    turn_id: Id | None = None
    """`None` means the one that runs."""
    queued: Literal["keep", "cancel"] = "keep"
    """Whether the turns in the queue are kept or cancelled."""


class QueuedTurn(SessionParams, frozen=True, kw_only=True):
    """Names a turn in the queue."""

    turn_id: Id


class TurnState(Struct, frozen=True, rename="camel"):
    """The state of a turn."""

    session_id: str
    epoch: str
    thread_id: str
    turn_id: str
    status: str
    """`queued running waiting cancelling completed failed cancelled`."""
    sequence: int
    """The session's newest fact at the time of the answer."""
    queued: list[str]
    """The queue of turns, in order."""
    repeated: bool = False
    """The call changed nothing."""


class EvictedTurn(Struct, frozen=True):
    """A turn that has ended and is no longer in memory."""

    status: str
    thread_id: str


class Turns:
    """Turns of sessions that belong to one principal. An answer means that facts are durable."""

    def __init__(self, context: ControlContext) -> None:
        self._context = context

    @method("agentSession/turn/start")
    async def start(self, request: StartTurn) -> TurnState:
        """Start a turn, or queue it, or refuse it, as the session's policy says.

        With `taskId` and `runId` an attempt at the task begins, in which the turn is.

        Raises:
            SessionBusy: A turn runs and the policy is `reject`, or another attempt at the task
                runs; nothing has changed.
            ArpError: The input, the agent or the session is refused, or the task is completed;
                nothing has changed.

        Source: control-plane.md 2.
        """
        live = await self._context.open(request.session_id, request.workflow)
        if request.task_id is not None and request.run_id is not None:
            turn_id, repeated = await self._attempt(live, request, request.task_id, request.run_id)
        else:
            turn_id, repeated, effects = self.submit(live, request)
            self._context.carry_out(live, effects)
        evicted = await self._evicted(live, turn_id)
        state = _state(live, turn_id, evicted, repeated=repeated)
        await live.written()
        return state

    async def _attempt(
        self, live: LiveSession, request: StartTurn, task_id: str, run_id: str
    ) -> tuple[str, bool]:
        """Record a turn, and the attempt at a task that begins with it.

        Returns:
            The id of the turn; whether it existed before.
        """
        async with self._context.plane.lock(live.id):
            await live.written()
            stored = await find_task(self._context, live.id, task_id) or unknown_task(task_id)
            exists = stored.task.has_run(run_id)
            if not exists and not (request.turn_id is not None and _exists(live, request.turn_id)):
                check_idle(stored.task)
                if stored.task.status in DONE:
                    raise InvalidMessage(
                        f"task {task_id} is {stored.task.status}: it has no more attempts",
                        detail="taskId",
                    )
            turn_id, repeated, effects = self.submit(live, request)
            if not repeated and not exists:
                TaskRecorder(self._context, live, stored, turn_id).begin(run_id)
            self._context.carry_out(live, effects)
            return turn_id, repeated

    def submit(self, live: LiveSession, request: StartTurn) -> tuple[str, bool, list[Effect]]:
        """Record a turn that a client requests.

        Returns:
            Its id; whether it existed before; the effects to carry out when it is durable.

        Raises:
            ArpError: As `start`.
        """
        data, named = request.input.content(), request.turn_id
        if named is not None and _exists(live, named):
            return named, True, []
        input_id = _input_id(named) if named is not None else None
        message = Input(input_type=request.input.input_type, data=data, id=input_id)
        ids = {"task_id": request.task_id, "run_id": request.run_id}
        given = {name: value for name, value in ids.items() if value is not None}
        count = live.session.turn_count
        effects = submit(
            live.session, message, named, request.traceparent, request.thread_id, **given
        )
        live.began(self._context.principal.known_as, count)
        return named or next(reversed(live.session.screen.turns)), False, effects

    @method("agentSession/turn/cancel")
    async def cancel(self, request: CancelTurn) -> TurnState:
        """Record the request that a turn stop, then stop it; the answer does not wait for its end.

        Raises:
            UnknownObject: No such turn, or none runs; nothing has changed.

        Source: control-plane.md 2: intent first, then cleanup.
        """
        live = await self._context.to_change(request.session_id)
        session = live.session
        turn_id = request.turn_id or session.running
        if turn_id is None:
            raise UnknownObject("no turn runs in this session", detail=request.session_id)
        evicted = await self._evicted(live, turn_id)
        status = evicted.status if evicted is not None else _status(live, turn_id)
        effects = self.stop(live, turn_id) if evicted is None else []
        if request.queued == "cancel":
            for waiting in list(session.queue):
                effects += cancel_turn(session, waiting)
        self._context.carry_out(live, effects)
        is_over = status in FINAL_STATUSES
        state = _state(live, turn_id, evicted, repeated=is_over, stopping=True)
        await live.written()
        return state

    async def _evicted(self, live: LiveSession, turn_id: str) -> EvictedTurn | None:
        """Return a turn that was evicted; `None` for one in memory, and if there is none."""
        if turn_id in live.session.screen.turns:
            return None
        past = await self._context.hub.history.turn(live, turn_id)
        if past is None or past.turn.status is None:
            return None
        return EvictedTurn(past.turn.status, await self._evicted_thread(live, turn_id))

    async def _evicted_thread(self, live: LiveSession, turn_id: str) -> str:
        """Return the thread of a turn that was evicted, if it is still stored."""
        if not live.session.threads.begun:
            return THREAD
        threads = (await self._context.model(live.id)).state.threads.threads
        found = (name for name, thread in threads.items() if thread.turns.get(turn_id) is not None)
        return next(found, NOT_KNOWN)

    @staticmethod
    def stop(live: LiveSession, turn_id: str | None) -> list[Effect]:
        """Record the request that a turn stop, unless it is over; return the effects."""
        if turn_id is None or _is_over(live, turn_id):
            return []
        data = {"action": CANCEL, "payload": {"turn_id": turn_id}}
        message = Input(input_type="action", data=data, id=f"cancel:{turn_id}")
        return receive(live.session, message, understand_draft)

    @staticmethod
    async def wait_until_over(
        context: ControlContext, live: LiveSession, turn_id: str | None
    ) -> None:
        """Wait until a turn that is to stop is over; for a bounded time."""
        if turn_id is None:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(context.hub.settings.cancel_grace_s + MORE_S):
                while not _is_over(live, turn_id):
                    await live.beyond(live.stored)

    @method("agentSession/queue/remove")
    async def remove(self, request: QueuedTurn) -> TurnState:
        """Remove a turn from the queue: it ends as cancelled and never runs.

        Raises:
            UnknownObject: No such turn.
            SessionBusy: It runs already; nothing has changed.
        """
        live = await self._context.to_change(request.session_id)
        status = _queued_status(live, request.turn_id)
        if status == "queued":
            self._context.carry_out(live, cancel_turn(live.session, request.turn_id))
        state = _state(live, request.turn_id, repeated=status != "queued")
        await live.written()
        return state

    @method("agentSession/queue/promote")
    async def promote(self, request: QueuedTurn) -> TurnState:
        """Make a turn the first in the queue.

        Raises:
            UnknownObject: No such turn, or it is over.
            SessionBusy: It runs already; nothing has changed.
        """
        live = await self._context.to_change(request.session_id)
        if _queued_status(live, request.turn_id) != "queued":
            raise UnknownObject(f"turn {request.turn_id} is over", detail=request.turn_id)
        first = live.session.queue[0] == request.turn_id
        live.session.promote(request.turn_id)
        self._context.carry_out(live, [])
        state = _state(live, request.turn_id, repeated=first)
        await live.written()
        return state


def _input_id(turn_id: str) -> str:
    return f"turn:{turn_id}"


def _exists(live: LiveSession, turn_id: str) -> bool:
    """Return whether a turn of that id exists.

    Raises:
        InvalidMessage: None does, and the id has the form of those that the server makes.
    """
    session = live.session
    branches = session.branches
    exists = turn_id in session.screen.turns or (branches is not None and turn_id in branches)
    if exists or _input_id(turn_id) in session.input_log:
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
    """Return whether a turn has ended; only such turns are evicted."""
    turn = live.session.turn(turn_id)
    return turn is None or turn.status in FINAL_STATUSES


def _status(live: LiveSession, turn_id: str) -> str:
    turn = live.session.turn(turn_id)
    if turn is None:
        raise UnknownObject(f"no turn {turn_id!r:.80} in this session", detail=turn_id)
    return turn.status or "queued"


def _queued_status(live: LiveSession, turn_id: str) -> str:
    """Return the status of a turn that may be in the queue; refuse one that runs."""
    status = _status(live, turn_id)
    if turn_id in live.session.queue:
        return "queued"
    if status not in FINAL_STATUSES:
        raise SessionBusy(f"turn {turn_id} runs; stop it with agentSession/turn/cancel")
    return status


def _state(
    live: LiveSession,
    turn_id: str,
    evicted: EvictedTurn | None = None,
    *,
    repeated: bool,
    stopping: bool = False,
) -> TurnState:
    session = live.session
    if turn_id in session.queue:
        status = "queued"
    else:
        status = evicted.status if evicted is not None else _status(live, turn_id)
    if stopping and status not in FINAL_STATUSES:
        status = "cancelling"
    head = session.head
    return TurnState(
        head.session_id,
        head.epoch,
        evicted.thread_id if evicted is not None else session.threads.of(turn_id),
        turn_id,
        status,
        session.sequence,
        list(session.queue),
        repeated,
    )
