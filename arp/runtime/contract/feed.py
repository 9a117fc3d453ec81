"""`SessionFeed`: what an adapter feeds, and from which the events of one session come.

Theory of operation. An adapter calls a method for each thing that its runtime tells, in the order
in which it is told; out come events in the order of the contract (see `services`). What a runtime
leaves out is made up here and marked `synthetic`:

    state                 may happen
    created, idle         begin
    running, waiting      text, thinking, tool_call, tool_result, ask, answer, withdraw, stop, end
    failed, closed        reopened

A turn's terminal event is emitted by `_end` alone. It first cancels what is still asked and gives
each open tool call a result, so that no consumer waits for something that cannot come any more.
What a runtime tells while no turn is active belongs to none, and is dropped: the rest of a turn
that was given up must not become part of the next one.

A call that was denied ends as denied, whether the runtime tells of its end or not. A call of which
a runtime tells no end in a turn that is complete has not failed: nothing is known of it.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from arp.protocol.json_value import Json, JsonObject
from arp.runtime.contract.cut_off import CUT_OFF_WORDS, CutOff
from arp.runtime.contract.errors import (
    AriError,
    Canceled,
    ErrorStatus,
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    Unavailable,
)
from arp.runtime.contract.types import (
    Event,
    EventType,
    Lifecycle,
    PermissionKind,
    PermissionRequest,
    PermissionResponse,
    SessionState,
    Usage,
)

logger = logging.getLogger(__name__)

MAX_ANSWERED = 1_000
"""Answered requests that a session remembers, to tell a second answer from a wrong id."""
MAX_SUMMARY = 200
"""Characters of `tool_input_summary`."""

NO_RESULT = "The agent has told no result of this call."
TURN_ENDED = "the turn ended first"
"""The result of a call that was open when its turn was complete, or ended by an error."""
_REFUSED = {"denied": "denied", "expired": "not answered in time"}
"""What became of a permission request → the result of its call, if the runtime tells none."""

NativeRequest = object
"""What an adapter needs to answer its runtime: an id, a future."""


class PendingPermission(NamedTuple):
    """A permission request that is open."""

    request: PermissionRequest
    native: NativeRequest


class ActiveTurn:
    """What is known of the turn that runs."""

    __slots__ = ("answers", "calls", "id", "last_text", "spoke_since_tool", "stopped_by")

    def __init__(self, turn_id: str) -> None:
        self.id = turn_id
        self.calls: dict[str, str] = {}
        """Names of the tool calls without a result, by their id."""
        self.answers: dict[str, str] = {}
        """What became of the last permission request about a call, by the call's id."""
        self.last_text: list[str] = []
        """The text since the last tool call: what a result repeats."""
        self.spoke_since_tool = True
        self.stopped_by: AriError | None = None
        """Why it was stopped; the turn then ends with this, whatever the runtime says."""


class SessionFeed:
    """The events of one session, in order; an adapter feeds it, and consumers read its events.

    Args:
        emit: Gets each event, in order.
        clock: Return the time in nanoseconds since 1970.
        new_id: Return a new id that begins with what it gets.
    """

    def __init__(
        self,
        emit: Callable[[Event], None],
        clock: Callable[[], int],
        new_id: Callable[[str], str],
    ) -> None:
        self.session_id = ""
        self.state = SessionState.CREATED
        self.turn: ActiveTurn | None = None
        self.turn_count = 0
        self.sequence = 0
        self.pending: dict[str, PendingPermission] = {}
        self.permission_timeout_ns = 0
        self._answered: OrderedDict[str, str] = OrderedDict()
        """What became of earlier requests, by their id."""
        self._emit = emit
        self._clock = clock
        self._new_id = new_id

    # -- the session -----------------------------------------------------------------------------

    def opened(self, session_id: str, lifecycle: Lifecycle, **details: Json) -> None:
        """Record that the session is created or resumed; the next message begins a turn."""
        self.session_id = session_id
        is_new = lifecycle is Lifecycle.CREATED
        self.state = SessionState.CREATED if is_new else SessionState.IDLE
        self.tell(lifecycle, **details)

    def lost(self, reason: str) -> None:
        """Record that the runtime's process is gone; an active turn ends with `Unavailable`."""
        if self.state in (SessionState.FAILED, SessionState.CLOSED):
            return
        self._end(error=Unavailable(reason).status())
        self.state = SessionState.FAILED
        self.tell(Lifecycle.FAILED, reason)

    def close(self) -> None:
        """Record that the session is closed; an active turn ends with `Canceled`."""
        if self.state is SessionState.CLOSED:
            return
        self._end(error=Canceled("the session was closed").status())
        self.state = SessionState.CLOSED
        self.tell(Lifecycle.CLOSED)

    def tell(self, lifecycle: Lifecycle, content: str = "", **details: Json) -> None:
        """Emit a lifecycle event, of the active turn if there is one; nothing follows `closed`."""
        if self.state is SessionState.CLOSED and lifecycle is not Lifecycle.CLOSED:
            return
        self._event(EventType.LIFECYCLE, content=content, lifecycle=lifecycle, details=details)

    # -- what the caller does --------------------------------------------------------------------

    def check_can_begin(self) -> None:
        """Raise if a message would be refused now.

        Raises:
            FailedPrecondition: A turn is active, or the session is closed or failed.
        """
        if self.turn is not None:
            raise FailedPrecondition(
                f"turn {self.turn.id} is active: wait for its end, or cancel it",
                turn_id=self.turn.id,
            )
        if self.state in (SessionState.CLOSED, SessionState.FAILED):
            raise FailedPrecondition(f"the session is {self.state}: resume it first")

    def begin(self, **details: Json) -> str:
        """Begin a turn and return its id; for a turn that the runtime begins, `origin="runtime"`.

        Raises:
            FailedPrecondition: A turn is active, or the session is closed or failed.
        """
        self.check_can_begin()
        self.turn = ActiveTurn(self._new_id("turn"))
        self.turn_count += 1
        self.state = SessionState.RUNNING
        self.tell(Lifecycle.TURN_STARTED, **details)
        return self.turn.id

    def answer(self, request_id: str, response: PermissionResponse) -> PendingPermission:
        """Close a permission request, and return what the runtime must be told about it.

        Raises:
            NotFound: There is no such request.
            FailedPrecondition: It was answered, cancelled or expired.
            InvalidArgument: The answer has something that the request does not take.
        """
        found = self.pending.get(request_id)
        if found is None:
            outcome = self._answered.get(request_id)
            if outcome is None:
                raise NotFound(f"there is no permission request {request_id!r:.80}")
            raise FailedPrecondition(f"the permission request {request_id} is {outcome}")
        self._check_fits(found.request, response)
        outcome = "allowed" if response.decision == "allow" else "denied"
        self._resolve(request_id, outcome, message=response.message)
        return found

    def expire(self, request_id: str) -> PendingPermission | None:
        """Close a request that nobody answered in time, and return it if it was open."""
        found = self.pending.get(request_id)
        if found is not None:
            self._resolve(request_id, "expired")
        return found

    def stop(self, why: AriError, turn_id: str = "") -> list[PendingPermission]:
        """Cancel what is asked, and let the active turn end with `why`.

        Returns:
            The requests that were open: the runtime must be told that they are denied.

        Raises:
            FailedPrecondition: That turn is not active.
        """
        if self.turn is None or turn_id not in ("", self.turn.id):
            raise FailedPrecondition(f"turn {turn_id or '(none)'} is not active")
        self.turn.stopped_by = self.turn.stopped_by or why
        open_requests = list(self.pending.values())
        for pending in open_requests:
            self._resolve(pending.request.request_id, "cancelled")
        return open_requests

    # -- what the runtime tells ------------------------------------------------------------------

    def text(self, delta: str) -> None:
        """Take new text of the agent."""
        if self.turn is not None and delta:
            if not self.turn.spoke_since_tool:
                self.turn.last_text, self.turn.spoke_since_tool = [], True
            self.turn.last_text.append(delta)
            self._event(EventType.TEXT, content=delta)

    def thinking(self, delta: str) -> None:
        """Take new text that the agent thinks."""
        if self.turn is not None and delta:
            self._event(EventType.THINKING, content=delta)

    def cut_off(self, reason: CutOff) -> None:
        """Take that the text so far ends where it should not."""
        if self.turn is not None:
            self.tell(Lifecycle.WARNING, CUT_OFF_WORDS[reason], cut_off=reason.value)

    def tool_call(
        self,
        call_id: str,
        name: str,
        tool_input: JsonObject,
        *,
        summary: str = "",
        kind: PermissionKind = PermissionKind.TOOL,
        **details: Json,
    ) -> None:
        """Take a tool call; a call that is known already changes nothing."""
        self._tool_call(call_id, name, tool_input, summary, {"kind": kind.value, **details})

    def tool_progress(self, call_id: str, content: str) -> None:
        """Take output of a tool that runs."""
        if self.turn is not None and content:
            self._event(
                EventType.LIFECYCLE,
                lifecycle=Lifecycle.TOOL_PROGRESS,
                tool_call_id=call_id,
                content=content,
            )

    def tool_result(
        self,
        call_id: str,
        content: str = "",
        *,
        name: str = "",
        is_error: bool = False,
        synthetic: bool = False,
        **details: Json,
    ) -> None:
        """Take the result of a tool call; a call that is unknown is made up first.

        An error of a call that was denied is told as a denial.
        """
        if self.turn is None:
            return
        self._withdraw_of(call_id)
        refusal = _REFUSED.get(self.turn.answers.get(call_id, ""))
        if refusal is not None and is_error:
            content, details = content or refusal, {**details, "denied": True}
        if call_id not in self.turn.calls:
            self._tool_call(call_id, name or "tool", {}, "", {}, synthetic=True)
        known = self.turn.calls.pop(call_id)
        self._event(
            EventType.TOOL_RESULT,
            tool_call_id=call_id,
            tool_name=known,
            content=content,
            is_error=is_error,
            synthetic=synthetic,
            details=details,
        )

    def ask(self, native: NativeRequest, about: PermissionRequest) -> PermissionRequest | None:
        """Take a permission request; its tool call is made up if it is unknown.

        Args:
            native: What the adapter needs to answer the runtime.
            about: What is asked; ids and the deadline are filled in here.

        Returns:
            The request; `None` if no turn is active or it is being stopped: then the runtime is to
            be told no.
        """
        turn = self.turn
        if turn is None or turn.stopped_by is not None:
            return None
        call_id = about.tool_call_id or self._new_id("call")
        summary = one_line(about.tool_input_summary)
        details: JsonObject = {"kind": about.kind.value}
        self._tool_call(call_id, about.tool_name, about.tool_input_raw, summary, details, True)
        timeout = self.permission_timeout_ns
        request = msgspec.structs.replace(
            about,
            request_id=self._new_id("permission"),
            session_id=self.session_id,
            turn_id=turn.id,
            tool_call_id=call_id,
            tool_input_summary=summary,
            deadline_ns=self._clock() + timeout if timeout else 0,
        )
        self.pending[request.request_id] = PendingPermission(request, native)
        self.state = SessionState.WAITING
        self._asks(request)
        return request

    def ask_again(self) -> None:
        """Emit the open requests again, for a consumer that has not seen them."""
        for pending in list(self.pending.values()):
            self._asks(pending.request)

    def withdraw(self, native: NativeRequest) -> None:
        """Take that the runtime no longer waits for an answer."""
        for request_id, pending in list(self.pending.items()):
            if pending.native == native:
                self._resolve(request_id, "cancelled")

    def result(
        self, content: str | None = None, usage: Usage | None = None, **details: Json
    ) -> None:
        """Take that the turn is complete.

        Args:
            content: The last text; `None`: what came since the last tool call.
            usage: What the turn used; `None`, and each of its numbers that is `None`: not known.
            details: What the runtime says besides.
        """
        self._end(content=content, usage=usage, details=details)

    def error(self, error: ErrorStatus, usage: Usage | None = None) -> None:
        """Take that the turn failed, or was cancelled."""
        self._end(error=error, usage=usage)

    # -- inside ----------------------------------------------------------------------------------

    def _tool_call(
        self,
        call_id: str,
        name: str,
        tool_input: JsonObject,
        summary: str,
        details: JsonObject,
        synthetic: bool = False,
    ) -> None:
        turn = self.turn
        if turn is None or call_id in turn.calls:
            return
        turn.calls[call_id] = name
        turn.spoke_since_tool = False
        self._event(
            EventType.TOOL_CALL,
            tool_call_id=call_id,
            tool_name=name,
            tool_input_raw=tool_input,
            tool_input_summary=one_line(summary),
            synthetic=synthetic,
            details=details,
        )

    def _asks(self, request: PermissionRequest) -> None:
        self._event(
            EventType.PERMISSION_REQUEST,
            request_id=request.request_id,
            tool_call_id=request.tool_call_id,
            tool_name=request.tool_name,
            tool_input_raw=request.tool_input_raw,
            tool_input_summary=request.tool_input_summary,
            permission=request,
        )

    def _check_fits(self, request: PermissionRequest, response: PermissionResponse) -> None:
        allows = response.decision == "allow"
        if response.updated_input is not None and not (allows and request.takes_updated_input):
            raise InvalidArgument("response.updated_input: this request does not take one")
        if response.message and not allows and not request.takes_message:
            raise InvalidArgument("response.message: the agent cannot be told why")
        if response.interrupt and allows:
            raise InvalidArgument("response.interrupt: goes with a denial only")
        if response.rule_id and not (allows and response.rule_id in _offered_ids(request)):
            raise InvalidArgument(f"response.rule_id: {response.rule_id!r:.80} is not offered")

    def _resolve(self, request_id: str, outcome: str, **details: Json) -> None:
        request, _ = self.pending.pop(request_id)
        if self.turn is not None:
            self.turn.answers[request.tool_call_id] = outcome
        self._answered[request_id] = outcome
        if len(self._answered) > MAX_ANSWERED:
            self._answered.popitem(last=False)
        if not self.pending and self.state is SessionState.WAITING:
            self.state = SessionState.RUNNING
        self._event(
            EventType.LIFECYCLE,
            lifecycle=Lifecycle.PERMISSION_RESOLVED,
            request_id=request_id,
            tool_call_id=request.tool_call_id,
            details={"outcome": outcome, **details},
        )

    def _withdraw_of(self, call_id: str) -> None:
        """Close what is asked about a call that has its result already."""
        for request_id, pending in list(self.pending.items()):
            if pending.request.tool_call_id == call_id:
                self._resolve(request_id, "cancelled")

    def _end(
        self,
        *,
        content: str | None = None,
        usage: Usage | None = None,
        error: ErrorStatus | None = None,
        details: Mapping[str, Json] | None = None,
    ) -> None:
        turn = self.turn
        if turn is None:
            logger.debug("session %s: the end of a turn that is over", self.session_id)
            return
        if turn.stopped_by is not None:
            error = turn.stopped_by.status()
        for request_id in list(self.pending):
            self._resolve(request_id, "cancelled")
        for call_id in list(turn.calls):
            self._end_call(turn, call_id, is_complete=error is None)
        self.state = SessionState.IDLE
        usage = usage if usage is not None and usage.is_known else None
        if error is None:
            last = "".join(turn.last_text) if content is None else content
            self._event(
                EventType.RESULT, content=last, usage=usage, done=True, details=dict(details or {})
            )
        else:
            self._event(EventType.ERROR, content=error.message, error=error, usage=usage, done=True)
        self.turn = None

    def _end_call(self, turn: ActiveTurn, call_id: str, *, is_complete: bool) -> None:
        """Make up the result of a call that is open when its turn ends."""
        if turn.answers.get(call_id) in _REFUSED:
            self.tool_result(call_id, is_error=True, synthetic=True)
        elif is_complete:
            self.tool_result(call_id, NO_RESULT, synthetic=True, no_output=True)
        else:
            self.tool_result(call_id, TURN_ENDED, is_error=True, synthetic=True)

    def _event(self, event_type: EventType, **fields: Any) -> None:
        self.sequence += 1
        turn_id = self.turn.id if self.turn is not None else ""
        self._emit(
            Event(
                event_type, self.session_id, self.sequence, self._clock(), turn_id=turn_id, **fields
            )
        )


def _offered_ids(request: PermissionRequest) -> set[str]:
    return {rule.rule_id for rule in request.rules} | {way.id for way in request.ways}


def one_line(text: str) -> str:
    """Return a text as one line of at most `MAX_SUMMARY` characters."""
    line = " ".join(text.split())
    return line if len(line) <= MAX_SUMMARY else line[: MAX_SUMMARY - 1] + "…"
