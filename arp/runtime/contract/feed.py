"""`SessionFeed`: turns the reports of an adapter into the ordered events of one session.

Theory of operation. An adapter calls one method for each report of its runtime, in the order of
arrival. The feed emits events in the order that the contract requires (see `services`). It adds the
events that a runtime does not send and marks them `synthetic`:

    state                 allowed calls
    created, idle         begin
    running, waiting      text, thinking, tool_call, tool_result, ask, answer, withdraw, stop,
                          result, error
    failed, closed        opened

Only `_end` emits a turn's terminal event. It first cancels the open permission requests and ends
the open tool calls, so that no consumer waits for an event that can no longer come. Text, tool
calls and results that arrive while no turn is active are dropped: the rest of an abandoned turn
must not become part of the next turn.

A denied call gets a result that says so, even if the runtime reports no result. If a turn completes
and the runtime has reported no result of another call, that call has not failed: its outcome is
unknown.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from arp.protocol.json_value import Json, JsonObject
from arp.runtime.contract.cut_off import CUT_OFF_WORDS, CutOffReason
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
"""Number of answered requests that a session remembers, so that it can distinguish a second answer
from a wrong id."""
MAX_SUMMARY = 200
"""Largest length of `tool_input_summary`, in characters."""

NO_RESULT = "The agent has reported no result of this call."
TURN_ENDED = "the turn ended first"
"""Results of a call that was open when its turn completed (`NO_RESULT`) or failed
(`TURN_ENDED`)."""
_REFUSAL_TEXTS = {"denied": "denied", "expired": "not answered in time"}
"""Result of a call if the runtime reports none, by the outcome of its permission request."""

NativeRequest = object
"""Value that an adapter needs to answer its runtime, such as an id or a future."""


class PendingPermission(NamedTuple):
    """An open permission request."""

    request: PermissionRequest
    native: NativeRequest


class ActiveTurn:
    """State of the active turn."""

    __slots__ = ("answers", "calls", "id", "last_text", "spoke_since_tool", "stopped_by")

    def __init__(self, turn_id: str) -> None:
        self.id = turn_id
        self.calls: dict[str, str] = {}
        """Names of the tool calls without a result, by call id."""
        self.answers: dict[str, str] = {}
        """Outcome of the last permission request about a call, by call id."""
        self.last_text: list[str] = []
        """Text since the last tool call; the `result` event repeats it."""
        self.spoke_since_tool = True
        self.stopped_by: AriError | None = None
        """Reason why the turn was stopped. The turn then ends with this error, whatever the runtime
        reports."""


class SessionFeed:
    """The event source of one session: an adapter reports to it, and it emits ordered events.

    Args:
        emit: Receives each event, in order.
        clock: Returns the time in nanoseconds since 1970.
        new_id: Returns a new id with the given prefix.
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
        """Outcomes of earlier permission requests, by request id."""
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
        """Record that the runtime's process has ended; an active turn ends with `Unavailable`."""
        # A closed session ends its process itself; that must not make it a failed session.
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
        """Emit a lifecycle event, as part of the active turn if there is one.

        Nothing is emitted after `closed`.
        """
        if self.state is SessionState.CLOSED and lifecycle is not Lifecycle.CLOSED:
            return
        self._event(EventType.LIFECYCLE, content=content, lifecycle=lifecycle, details=details)

    # -- requests of the caller ------------------------------------------------------------------

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
        """Begin a turn and return its id.

        Args:
            details: Details of the event; `origin="runtime"` if the runtime began the turn itself.

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
        """Close a permission request, and return it so that the adapter can answer the runtime.

        Raises:
            NotFound: The request does not exist.
            FailedPrecondition: The request was answered or cancelled, or it has expired.
            InvalidArgument: The answer has a part that the request does not accept.
        """
        found = self.pending.get(request_id)
        if found is None:
            outcome = self._answered.get(request_id)
            if outcome is None:
                raise NotFound(f"there is no permission request {request_id!r:.80}")
            raise FailedPrecondition(f"the permission request {request_id} is {outcome}")
        # Checked before the request is closed: after a refused answer it must still be open.
        self._check_response(found.request, response)
        outcome = "allowed" if response.decision == "allow" else "denied"
        self._resolve(request_id, outcome, message=response.message)
        return found

    def expire(self, request_id: str) -> PendingPermission | None:
        """Close a request after its deadline, and return it if it was open."""
        found = self.pending.get(request_id)
        if found is not None:
            self._resolve(request_id, "expired")
        return found

    def stop(self, why: AriError, turn_id: str = "") -> list[PendingPermission]:
        """Cancel the open permission requests; the active turn will end with the error `why`.

        Returns:
            The requests that were open: the adapter must deny them to the runtime.

        Raises:
            FailedPrecondition: The turn is not active.
        """
        if self.turn is None or turn_id not in ("", self.turn.id):
            raise FailedPrecondition(f"turn {turn_id or '(none)'} is not active")
        self.turn.stopped_by = self.turn.stopped_by or why
        open_requests = list(self.pending.values())
        for pending in open_requests:
            self._resolve(pending.request.request_id, "cancelled")
        return open_requests

    # -- reports of the runtime ------------------------------------------------------------------

    def text(self, delta: str) -> None:
        """Record new text of the agent."""
        if self.turn is not None and delta:
            if not self.turn.spoke_since_tool:
                self.turn.last_text, self.turn.spoke_since_tool = [], True
            self.turn.last_text.append(delta)
            self._event(EventType.TEXT, content=delta)

    def thinking(self, delta: str) -> None:
        """Record new thoughts of the agent."""
        if self.turn is not None and delta:
            self._event(EventType.THINKING, content=delta)

    def cut_off(self, reason: CutOffReason) -> None:
        """Record that the text so far is incomplete."""
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
        """Record a tool call; a known call is ignored."""
        self._tool_call(call_id, name, tool_input, summary, {"kind": kind.value, **details})

    def tool_progress(self, call_id: str, content: str) -> None:
        """Record output of a running tool."""
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
        """Record the result of a tool call; an unknown call is emitted first.

        If the permission for the call was denied or has expired, an error is marked as a denial.
        """
        if self.turn is None:
            return
        # Without this, a person could still answer a request about a call that has already ended.
        self._cancel_requests_of(call_id)
        refusal = _REFUSAL_TEXTS.get(self.turn.answers.get(call_id, ""))
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
        """Emit a permission request; an unknown tool call is emitted first.

        Args:
            native: Value that the adapter needs to answer the runtime.
            about: The request, without ids and deadline; the feed adds them.

        Returns:
            The request; `None` if no turn is active or the turn is being stopped. Then the adapter
            must deny the request to the runtime.
        """
        turn = self.turn
        # After a stop, no person may be asked: the open requests have just been cancelled.
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
        self._emit_request(request)
        return request

    def ask_again(self) -> None:
        """Emit the open requests again, for a consumer that has not seen them."""
        for pending in list(self.pending.values()):
            self._emit_request(pending.request)

    def withdraw(self, native: NativeRequest) -> None:
        """Cancel the permission request with this native value, if it is open.

        Called when the runtime no longer waits for the answer.
        """
        for request_id, pending in list(self.pending.items()):
            if pending.native == native:
                self._resolve(request_id, "cancelled")

    def result(
        self, content: str | None = None, usage: Usage | None = None, **details: Json
    ) -> None:
        """End the turn as complete.

        Args:
            content: The last text; `None` means the text since the last tool call.
            usage: Usage of the turn; `None` means unknown, also for a single number.
            details: Further details of the `result` event.
        """
        self._end(content=content, usage=usage, details=details)

    def error(self, error: ErrorStatus, usage: Usage | None = None) -> None:
        """End the turn with an error; after `stop`, the reason of the stop replaces it."""
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

    def _emit_request(self, request: PermissionRequest) -> None:
        self._event(
            EventType.PERMISSION_REQUEST,
            request_id=request.request_id,
            tool_call_id=request.tool_call_id,
            tool_name=request.tool_name,
            tool_input_raw=request.tool_input_raw,
            tool_input_summary=request.tool_input_summary,
            permission=request,
        )

    def _check_response(self, request: PermissionRequest, response: PermissionResponse) -> None:
        allows = response.decision == "allow"
        if response.updated_input is not None and not (allows and request.takes_updated_input):
            raise InvalidArgument("response.updated_input: this request does not take one")
        if response.message and not allows and not request.takes_message:
            raise InvalidArgument("response.message: the agent cannot receive a reason")
        if response.interrupt and allows:
            raise InvalidArgument("response.interrupt: goes with a denial only")
        if response.rule_id and not (allows and response.rule_id in _offered_ids(request)):
            raise InvalidArgument(f"response.rule_id: {response.rule_id!r:.80} is not offered")

    def _resolve(self, request_id: str, outcome: str, **details: Json) -> None:
        request, _ = self.pending.pop(request_id)
        if self.turn is not None:
            self.turn.answers[request.tool_call_id] = outcome
        self._answered[request_id] = outcome
        if len(self._answered) > MAX_ANSWERED:  # forget the oldest outcome
            self._answered.popitem(last=False)
        # The state changes before the event: a consumer may read the state when it gets the event.
        if not self.pending and self.state is SessionState.WAITING:
            self.state = SessionState.RUNNING
        self._event(
            EventType.LIFECYCLE,
            lifecycle=Lifecycle.PERMISSION_RESOLVED,
            request_id=request_id,
            tool_call_id=request.tool_call_id,
            details={"outcome": outcome, **details},
        )

    def _cancel_requests_of(self, call_id: str) -> None:
        """Cancel the open requests about a call that already has its result."""
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
        # After a stop, a runtime may still report success or another error. The caller expects the
        # reason of the stop.
        if turn.stopped_by is not None:
            error = turn.stopped_by.status()
        # A call's result must follow the outcome of its permission request, so the open requests
        # are cancelled first. Both carry the turn's id, so the turn is forgotten last.
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
        """Emit a synthetic result for a call that is open when its turn ends."""
        if turn.answers.get(call_id) in _REFUSAL_TEXTS:
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
