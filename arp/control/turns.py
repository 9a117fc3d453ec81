"""Turns: start and cancel them, and change the queue of a session."""

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
from arp.session.input.receive import InputSender, NewTurnOptions, receive, submit
from arp.session.tracking.threads import THREAD
from arp.session.turn_end import cancel_turn
from arp.session.turn_queue import promote
from arp.surface.draft_answer import understand_draft

MORE_S = 1.0
"""Time that `wait_until_over` waits beyond the grace period of a cancelled turn, in seconds."""

DONE = frozenset(("completed", "archived"))
"""Statuses of a task that allow no further attempt."""

NOT_KNOWN = "unavailable"
"""The value of a missing correlation (ledger.md 1)."""

_OWN_ID = re.compile(r"t[0-9]+")


class TurnInput(Struct, frozen=True, forbid_unknown_fields=True):
    """The input of a turn: `text` alone, or `input_type` with its `data` (protocol.md 2.2)."""

    text: str | None = None
    input_type: InputType = "text"
    data: Json = None
    """An object or `None`. The type is wider because msgspec would copy a typed object, and this
    must remain the object that was already searched for secrets in a thread."""

    def __post_init__(self) -> None:
        if self.data is not None and not isinstance(self.data, dict):
            raise ValueError("data: expected an object")

    def content(self) -> JsonObject:
        """Return the data of the input; `text` becomes `{"text": …}`.

        Raises:
            InvalidMessage: The input has both `text` and `data`, or neither.
        """
        if self.data is not None and self.text is None:
            content: JsonObject = self.data
            return content
        if self.data is None and self.text is not None and self.input_type == "text":
            return {"text": self.text}
        raise InvalidMessage("input: give text, or input_type and data; not both", detail="input")


class StartTurn(Params, frozen=True, kw_only=True):
    """Parameters of `agentSession/turn/start`."""

    input: TurnInput
    session_id: SessionId | None = None
    """Session of the turn; a new session if this is `None` or the session does not exist."""
    turn_id: TurnId | None = None
    """Id of the turn. A call with an existing id changes nothing. `None` makes an id."""
    thread_id: Id | None = None
    """Thread of the turn; `None` means the first thread of the session."""
    workflow: Id | None = None
    """Agent of a new session."""
    task_id: Id | None = None
    """Task that the turn works on."""
    run_id: Id | None = None
    """Id of the attempt at that task. The attempt begins with the turn unless it already began."""
    traceparent: Traceparent | None = None
    """Span of the caller in the format of W3C Trace Context; the turn joins its trace."""


class CancelTurn(SessionParams, frozen=True, kw_only=True):
    """Parameters of `agentSession/turn/cancel`."""

    turn_id: Id | None = None
    """Turn to cancel; `None` means the turn that runs."""
    queued: Literal["keep", "cancel"] = "keep"
    """Whether the turns in the queue are kept or cancelled."""


class QueuedTurn(SessionParams, frozen=True, kw_only=True):
    """Parameters of a method about a queued turn."""

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
    """Sequence number of the session's newest fact at the time of the answer."""
    queued: list[str]
    """Ids of the queued turns, in order."""
    repeated: bool = False
    """Whether the call changed nothing, because it was made before."""


class EvictedTurn(Struct, frozen=True):
    """An ended turn that is no longer in memory."""

    status: str
    thread_id: str


class Turns:
    """Turns in the sessions of one principal. When a method returns, its facts are durable."""

    def __init__(self, context: ControlContext) -> None:
        self._context = context

    @method("agentSession/turn/start")
    async def start(self, request: StartTurn) -> TurnState:
        """Start, queue or refuse a turn, according to the session's policy.

        With `taskId` and `runId`, an attempt at the task begins with the turn.

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
            Id of the turn, and whether the turn existed before.
        """
        async with self._context.plane.lock(live.id):
            # `find_task` reads durable facts; it would miss an attempt that is not yet written.
            await live.written()
            stored = await find_task(self._context, live.id, task_id) or unknown_task(task_id)
            exists = stored.task.has_run(run_id)
            # A repeated call must not be refused because its own attempt runs.
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
            Id of the turn, whether it existed before, and effects for `carry_out`.

        Raises:
            ArpError: See `start`.
        """
        data, named = request.input.content(), request.turn_id
        if named is not None and _exists(live, named):
            return named, True, []
        input_id = _input_id(named) if named is not None else None
        message = Input(input_type=request.input.input_type, data=data, id=input_id)
        ids = {"task_id": request.task_id, "run_id": request.run_id}
        given = {name: value for name, value in ids.items() if value is not None}
        options = NewTurnOptions(
            named, given, traceparent=request.traceparent, thread=request.thread_id
        )
        sender = InputSender(user=self._context.principal.known_as)
        effects = submit(live.session, message, options, sender)
        return named or next(reversed(live.session.screen.turns)), False, effects

    @method("agentSession/turn/cancel")
    async def cancel(self, request: CancelTurn) -> TurnState:
        """Record the request to cancel a turn, then stop it; do not wait until it has ended.

        Raises:
            UnknownObject: There is no such turn, or no turn runs; nothing has changed.

        Source: control-plane.md 2: intent first, then cleanup.
        """
        live = await self._context.to_change(request.session_id)
        session = live.session
        turn_id = request.turn_id or session.running
        if turn_id is None:
            raise UnknownObject("no turn runs in this session", detail=request.session_id)
        evicted = await self._evicted(live, turn_id)
        # Raises for an unknown turn, before anything is recorded.
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
        """Return an evicted turn; `None` if the turn is in memory or does not exist."""
        if live.session.turn(turn_id) is not None:
            return None
        past = await self._context.hub.history.turn(live, turn_id)
        if past is None or past.turn.status is None:
            return None
        return EvictedTurn(past.turn.status, await self._evicted_thread(live, turn_id))

    async def _evicted_thread(self, live: LiveSession, turn_id: str) -> str:
        """Return the thread of an evicted turn; `NOT_KNOWN` if the read model no longer has it."""
        if not live.session.threads.begun:
            return THREAD
        threads = (await self._context.model(live.id)).state.threads.threads
        found = (name for name, thread in threads.items() if thread.turns.get(turn_id) is not None)
        return next(found, NOT_KNOWN)

    @staticmethod
    def stop(live: LiveSession, turn_id: str | None) -> list[Effect]:
        """Record the request to cancel a turn unless it has ended; return the effects."""
        if turn_id is None or _is_over(live, turn_id):
            return []
        data = {"action": CANCEL, "payload": {"turn_id": turn_id}}
        message = Input(input_type="action", data=data, id=f"cancel:{turn_id}")
        return receive(live.session, message, understand_draft)

    @staticmethod
    async def wait_until_over(
        context: ControlContext, live: LiveSession, turn_id: str | None
    ) -> None:
        """Wait until a cancelled turn has ended, at most its grace period and `MORE_S`."""
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
            UnknownObject: There is no such turn.
            SessionBusy: The turn already runs; nothing has changed.
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
        """Move a turn to the front of the queue.

        Raises:
            UnknownObject: There is no such turn, or it has ended.
            SessionBusy: The turn already runs; nothing has changed.
        """
        live = await self._context.to_change(request.session_id)
        if _queued_status(live, request.turn_id) != "queued":
            raise UnknownObject(f"turn {request.turn_id} is over", detail=request.turn_id)
        first = live.session.queue[0] == request.turn_id
        promote(live.session, request.turn_id)
        self._context.carry_out(live, [])
        state = _state(live, request.turn_id, repeated=first)
        await live.written()
        return state


def _input_id(turn_id: str) -> str:
    return f"turn:{turn_id}"


def _exists(live: LiveSession, turn_id: str) -> bool:
    """Return whether a turn with that id exists.

    Raises:
        InvalidMessage: There is no such turn, and ids of this form are made by the server only.
    """
    session = live.session
    branches = session.branches
    # A recently evicted turn is no longer on the screen, but its id is still in the input log.
    exists = branches is not None and turn_id in branches
    if exists or session.turn(turn_id) is not None or _input_id(turn_id) in session.input_log:
        return True
    # The server will use these ids for later turns; a caller must not reserve one.
    if _OWN_ID.fullmatch(turn_id):
        if len(turn_id) < 16 and 0 < int(turn_id[1:]) <= session.turn_count:
            return True
        raise InvalidMessage(
            f"turnId {turn_id}: the server makes the ids t1, t2, …; use another id",
            detail="turnId",
        )
    return False


def _is_over(live: LiveSession, turn_id: str) -> bool:
    """Return whether a turn has ended. An evicted turn has ended."""
    turn = live.session.turn(turn_id)
    return turn is None or turn.status in FINAL_STATUSES


def _status(live: LiveSession, turn_id: str) -> str:
    turn = live.session.turn(turn_id)
    if turn is None:
        raise UnknownObject(f"no turn {turn_id!r:.80} in this session", detail=turn_id)
    return turn.status or "queued"


def _queued_status(live: LiveSession, turn_id: str) -> str:
    """Return the status of a turn that is queued or has ended.

    Raises:
        UnknownObject: There is no such turn.
        SessionBusy: The turn runs.
    """
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
