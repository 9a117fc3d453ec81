"""`AcpConnection`: the process of an agent. `AcpSession`: one session in it.

Theory of operation. The table `_UPDATES` maps each update about a session to a method of
`AcpSession`; `messages` parses the values. Agents often announce a tool call before its input is
known (`pending`, with an empty input). Such a call is held back until the agent continues: until
the call runs, asks or ends, or the model sends text.

A load repeats the history of a session as updates. While `is_replaying` is set, they go to the
history instead of the feed, because they are not new events.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Literal

import msgspec

from arp.protocol.json_value import Json, JsonObject
from arp.runtime.contract import types as ari
from arp.runtime.contract.cut_off import cut_off_of
from arp.runtime.contract.errors import (
    AriError,
    Canceled,
    FailedPrecondition,
    InvalidArgument,
    OperationDenied,
    Unavailable,
    status_of,
)
from arp.runtime.contract.feed import PendingPermission, SessionFeed
from arp.runtime.programs.acp import messages as acp
from arp.runtime.programs.acp.history import AcpHistory
from arp.runtime.programs.agent_server import STOP_S, AgentServer
from arp.runtime.programs.json_rpc_peer import (
    METHOD_NOT_FOUND,
    JsonRpcError,
    PeerClosed,
    RequestId,
)

logger = logging.getLogger(__name__)

QUIET_S = 0.5
"""Seconds without an update after which the repeated history counts as complete."""
MAX_QUIET_S = 10.0
"""Seconds after which the repeated history counts as complete in any case."""
COMMANDS_S = 2.0
"""Seconds to wait for an agent to report its commands."""

_STATE_UPDATES = frozenset(
    {"available_commands_update", "current_mode_update", "config_option_update", "usage_update"}
)
"""Updates about the state of a session; they are valid at any time."""


class AcpTurn:
    """State of the active turn."""

    def __init__(self) -> None:
        self.calls: dict[str, acp.AcpToolCall] = {}
        self.message_id = ""
        """Id of the message with the newest text; empty after a tool call."""
        self.is_cancelled = False
        self.over = asyncio.Event()


class AcpSession:
    """One session of an agent.

    Args:
        connection: Process of the session.
        feed: Feed of the session.
        session_id: The agent's id of the session.
        place: Parameters that opened the session: its directory and MCP servers.
    """

    provider = ""

    def __init__(
        self, connection: AcpConnection, feed: SessionFeed, session_id: str, place: JsonObject
    ) -> None:
        self.session_id = session_id
        self.connection = connection
        self.feed = feed
        self.place = place
        self.model = ""
        self.mode = ""
        self.modes: acp.SessionChoices | None = None
        self.models: acp.SessionChoices | None = None
        self.commands: tuple[ari.ListedItem, ...] = ()
        self._commands_came = asyncio.Event()
        self.warnings: list[str] = []
        """Warnings to emit when the session is open."""
        self.turn: AcpTurn | None = None
        self.is_replaying = False
        self.history: AcpHistory | None = None
        """Receiver of the repeated history while it is read."""
        self._reading = asyncio.Lock()
        self._last_replayed_s = 0.0
        self._is_open = False
        self._asked: dict[RequestId, acp.AcpQuestion] = {}
        self._cost: float | None = None
        """Cost of the whole session that the agent last reported; `None` before its first
        report."""
        self._turn_cost: float | None = None
        """Cost since the end of the last turn; `None` if the agent has not reported any."""
        self._currency = ""
        self._prompting: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None

    # -- opening ---------------------------------------------------------------------------------

    def set_up(self, answer: JsonObject, *, is_new: bool = False) -> None:
        """Record the choices that the agent sent when the session was opened.

        A new session has cost nothing yet.
        """
        if is_new and self._cost is None:
            self._cost = 0.0
        self.set_choices(acp.mode_choices(answer), acp.model_choices(answer))

    def set_up_as(self, left: AcpSession) -> None:
        """Copy the state of a session that the agent has kept open."""
        self.set_choices(left.modes, left.models)
        self.commands = left.commands
        self._cost, self._currency = left._cost, left._currency

    def set_choices(
        self, modes: acp.SessionChoices | None, models: acp.SessionChoices | None
    ) -> None:
        """Record the available modes and models; `None` means that there are none."""
        self.modes, self.models = modes, models
        self.mode = modes.current if modes is not None else ""
        self.model = models.current if models is not None else ""

    def opened(self) -> None:
        """Emit the initial state of the session; later changes are emitted as events."""
        self._is_open = True
        if self.commands:
            self._emit_commands()
        for warning in self.warnings:
            self.feed.tell(ari.Lifecycle.WARNING, warning)
        self.warnings.clear()

    async def replayed(self) -> None:
        """Wait until the repeated history is complete; some agents send it after the answer."""
        loop = asyncio.get_running_loop()
        start = self._last_replayed_s = loop.time()
        while True:
            now = loop.time()
            quiet_at = min(self._last_replayed_s + QUIET_S, start + MAX_QUIET_S)
            if now >= quiet_at:
                break
            await asyncio.sleep(quiet_at - now)
        self.is_replaying = False

    # -- calls of the runtime --------------------------------------------------------------------

    async def read_history(self) -> tuple[ari.RuntimeMessage, ...]:
        """Return the messages, oldest first; the agent loads the session again for this.

        Raises:
            FailedPrecondition: A turn is active; its updates could not be distinguished from
                history.
            AriError: The agent does not load the session.
        """
        async with self._reading:
            if self.turn is not None:
                raise FailedPrecondition("the history can be read when the turn has ended")
            model, mode, was_open = self.model, self.mode, self._is_open
            self.history, self.is_replaying, self._is_open = AcpHistory(), True, False
            try:
                params = self.place | {"sessionId": self.session_id}
                answer = await self.connection.call("session/load", params)
                await self.replayed()
                setup = answer if isinstance(answer, dict) else {}
                modes, models = acp.mode_choices(setup), acp.model_choices(setup)
                self.set_choices(modes or self.modes, models or self.models)
                # The load has reset what was switched since the last turn.
                if model and model != self.model:
                    await self.set_model(model)
                if mode and mode != self.mode:
                    await self.set_mode(mode)
                return self.history.messages()
            finally:
                self.history, self.is_replaying, self._is_open = None, False, was_open

    async def send(self, request: ari.SendMessageRequest) -> None:
        """Begin a turn; return when the agent has received the message."""
        async with self._reading:
            feed_turn = self.feed.turn
            if feed_turn is None or feed_turn.stopped_by is not None:
                raise Canceled("the turn was cancelled while the history was read")
            await self._send(request)

    async def _send(self, request: ari.SendMessageRequest) -> None:
        params: JsonObject = {
            "sessionId": self.session_id,
            "prompt": acp.prompt_of(request.message, self.connection.abilities),
        }
        turn = AcpTurn()
        # Sent here and not in the task, so that no later message can overtake it.
        answer = self.connection.peer.begin("session/prompt", params)
        self.turn = turn
        self._prompting = asyncio.get_running_loop().create_task(self._await_end(turn, answer))
        await self.connection.drain()

    async def _await_end(self, turn: AcpTurn, answer: asyncio.Future[Json]) -> None:
        """Wait for the answer to a prompt, which is the end of its turn."""
        ended: Json = None
        failed: AriError | None = None
        try:
            ended = await answer
        except JsonRpcError as refused:
            failed = self.connection.error_of(refused)
        except PeerClosed:
            return  # the session is already lost
        finally:
            turn.over.set()
        if self.turn is not turn:
            return
        self._emit_held_calls(turn)
        self.turn = None
        self._cancel_requests()
        # An agent may answer a cancelled prompt with an error, but the turn did not fail.
        if failed is not None:
            why = Canceled("the turn was cancelled") if turn.is_cancelled else failed
            self.feed.error(why.status())
            return
        try:
            self._end_turn(ended if isinstance(ended, dict) else {})
        except Exception as unknown:
            logger.warning("the end of a turn is not understood", exc_info=True)
            self.feed.error(status_of(unknown))

    def _end_turn(self, ended: JsonObject) -> None:
        usage = self._with_cost(acp.usage_of(ended.get("usage")))
        reason = str(ended.get("stopReason") or "end_turn")
        if reason == "cancelled":
            self.feed.error(Canceled("the agent cancelled the turn").status(), usage)
        elif reason == "refusal":
            refused = OperationDenied("the agent refuses to go on; it forgets this message")
            self.feed.error(refused.status(), usage)
        else:
            cut = cut_off_of(reason)
            if cut is not None:
                self.feed.cut_off(cut)
            self.feed.result(usage=usage, stop_reason=reason)

    def _with_cost(self, usage: ari.Usage) -> ari.Usage:
        """Return the usage with the cost of the turn added, if the agent has reported a cost."""
        turn_cost, self._turn_cost = self._turn_cost, None
        if turn_cost is None:
            return usage
        return msgspec.structs.replace(usage, cost=turn_cost, currency=self._currency)

    async def respond(self, pending: PendingPermission, response: ari.PermissionResponse) -> None:
        """Answer a permission request."""
        question = pending.native
        assert isinstance(question, acp.AcpQuestion)
        self._asked.pop(question.request_id, None)
        self.connection.peer.answer(question.request_id, question.answer(response))
        if response.interrupt:
            self._send_cancel()
            self._cancel_requests()

    async def cancel(self, open_requests: Sequence[PendingPermission]) -> None:
        """Ask the agent to stop.

        Its open requests are answered with `cancelled`, as the protocol requires.
        """
        self._send_cancel()
        self._cancel_requests()

    def _cancel_requests(self) -> None:
        """Answer all open requests with `cancelled`, or the agent may wait for ever."""
        for request_id, question in list(self._asked.items()):
            del self._asked[request_id]
            self.feed.withdraw(question)
            with suppress(Unavailable):
                self.connection.peer.answer(request_id, acp.CANCELLED)

    def _send_cancel(self) -> None:
        if self.turn is not None:
            self.turn.is_cancelled = True
        self.connection.peer.notify("session/cancel", {"sessionId": self.session_id})

    async def aclose(self) -> None:
        """Stop the turn and let the agent close the session; may be called again."""
        if self._closing is None:
            self._closing = asyncio.get_running_loop().create_task(self._close())
        await asyncio.shield(self._closing)

    async def abandon(self) -> None:
        """Make `stop` kill the agent, so that it does not record an end of the turn."""
        self.connection.is_killed_at_end = True

    async def _close(self) -> None:
        turn, connection = self.turn, self.connection
        try:
            with suppress(AriError):
                if turn is not None and self.feed.state is ari.SessionState.FAILED:
                    raise TimeoutError  # the agent has already had its time to stop
                if turn is not None and connection.is_running:
                    await self.cancel(())
                    await asyncio.wait_for(turn.over.wait(), STOP_S)
                if connection.is_running and connection.abilities.has("close"):
                    params: JsonObject = {"sessionId": self.session_id}
                    await asyncio.wait_for(connection.call("session/close", params), STOP_S)
                elif connection.is_running:
                    connection.left[self.session_id] = self
        except TimeoutError:
            # A turn that cannot be stopped must not continue unseen.
            await connection.stop("a session could not be stopped", 0)
        connection.drop(self)

    async def set_mode(self, mode: str) -> str:
        """Switch the mode and return the mode that is used now.

        Raises:
            InvalidArgument: The agent does not offer this mode, or has no modes.
        """
        await self._switch("mode", self.modes, mode)
        return self.mode

    async def set_model(self, model: str) -> str:
        """Switch the model and return the model that is used now.

        Raises:
            InvalidArgument: The agent does not offer this model, or has no choice of models.
        """
        await self._switch("model", self.models, model)
        return self.model

    async def _switch(
        self, category: Literal["mode", "model"], choices: acp.SessionChoices | None, wanted: str
    ) -> None:
        if choices is None or not choices.all:
            raise InvalidArgument(
                f"{category}: {self.connection.name} offers none to choose from in this session; "
                f"got {wanted!r:.80}"
            )
        if not choices.has(wanted):
            known = ", ".join(choice.id for choice in choices.all)
            raise InvalidArgument(f"{category}: expected one of {known}; got {wanted!r:.80}")
        params: JsonObject = {"sessionId": self.session_id}
        if choices.option_id:
            params |= {"configId": choices.option_id, "value": wanted}
            answer = await self.connection.call("session/set_config_option", params)
            self._config_options(answer if isinstance(answer, dict) else {})
        else:
            id_field = "modeId" if category == "mode" else "modelId"
            await self.connection.call(f"session/set_{category}", params | {id_field: wanted})
            now = self.modes if category == "mode" else self.models
            if now is choices:
                # Otherwise an update has already reported the agent's choice, which may be another
                # one.
                self._update_choice(category, choices.with_current(wanted))

    # -- messages of the agent -------------------------------------------------------------------

    def lost(self, reason: str) -> None:
        """Handle the end of the process."""
        if self.turn is not None:
            self._emit_held_calls(self.turn)
            self.turn = None
        self._asked.clear()
        self.feed.lost(reason)

    def receive(self, update: JsonObject) -> None:
        """Handle an update of this session."""
        kind = update.get("sessionUpdate")
        if self.is_replaying and kind not in _STATE_UPDATES:
            self._last_replayed_s = asyncio.get_running_loop().time()
            if self.history is not None:
                self.history.add(update)
            return
        handler = _UPDATES.get(str(kind))
        if handler is not None:
            handler(self, update)

    def ask(self, request_id: RequestId, params: JsonObject) -> bool:
        """Handle a permission request; return whether it will be answered later."""
        turn = self.turn
        if turn is None or turn.is_cancelled:
            return False
        fields = params["toolCall"]
        options = tuple(params.get("options") or ())
        call_id = str(fields["toolCallId"])
        call = turn.calls.get(call_id)
        is_known = call is not None
        if call is None:
            call = turn.calls[call_id] = acp.AcpToolCall(call_id)
        call.update(fields)
        # `feed.ask` emits a call that is not known yet.
        if is_known:
            self._emit_call(call)
        call.is_emitted = True
        turn.message_id = ""
        question = acp.AcpQuestion(request_id, call_id, options)
        about = ari.PermissionRequest(
            call.shown_name,
            call_id,
            call.permission_kind,
            tool_input_summary=call.summary,
            tool_input_raw=shown_input(call),
            message=call.title,
            rules=question.rules(),
            ways=question.ways(),
        )
        if self.feed.ask(question, about) is None:
            return False
        self._asked[request_id] = question
        return True

    def withdraw(self, request_id: RequestId) -> bool:
        """Withdraw a request that the agent no longer waits for; return whether it was open."""
        question = self._asked.pop(request_id, None)
        if question is not None:
            self.feed.withdraw(question)
        return question is not None

    def _message(self, update: JsonObject) -> None:
        text = acp.text_of(update.get("content"))
        turn = self.turn
        if turn is None or not text:
            return
        self._emit_held_calls(turn)
        message_id = str(update.get("messageId") or "")
        if turn.message_id not in ("", message_id):
            text = "\n\n" + text
        turn.message_id = message_id
        self.feed.text(text)

    def _thought(self, update: JsonObject) -> None:
        if self.turn is not None:
            self._emit_held_calls(self.turn)
            self.feed.thinking(acp.text_of(update.get("content")))

    def _tool(self, update: JsonObject) -> None:
        turn = self.turn
        if turn is None:
            return
        call_id = str(update["toolCallId"])
        call = turn.calls.get(call_id)
        if call is None:
            call = turn.calls[call_id] = acp.AcpToolCall(call_id)
        elif call.status in ("completed", "failed"):
            return  # an update after the end would emit the call and its result again
        turn.message_id = ""
        new = call.update(update, is_first=update["sessionUpdate"] == "tool_call")
        is_over = call.status in ("completed", "failed")
        if is_over or call.status == "in_progress":
            self._emit_call(call)
        if is_over:
            self._emit_result(call)
        elif call.is_emitted:
            self.feed.tool_progress(call.id, new)

    def _emit_held_calls(self, turn: AcpTurn) -> None:
        """Emit the calls that were held back; their input will not become more complete."""
        for call in turn.calls.values():
            if not call.is_emitted:
                self._emit_call(call)

    def _emit_call(self, call: acp.AcpToolCall) -> None:
        if call.is_emitted:
            return
        call.is_emitted = True
        details: JsonObject = {"diffs": list(call.diffs.values())} if call.diffs else {}
        parent = self.turn.calls.get(call.parent_id) if self.turn is not None else None
        if parent is not None:
            details["parent_tool_call_id"] = details["subagent_id"] = parent.id
            details["subagent"] = parent.subagent
        self.feed.tool_call(
            call.id,
            call.shown_name,
            call.input,
            summary=call.summary,
            kind=call.permission_kind,
            **details,
        )
        if name := call.subagent:
            known = {"name": name, "objective": call.objective, "tool_call_id": call.id}
            self._emit_subagent(call, "started", "", **known)
        if isinstance(call.input.get("todos"), list):
            # OpenCode reports its list only as the input of the tool that writes it.
            self.feed.tell(ari.Lifecycle.PLAN, todos=acp.todos_of(call.input["todos"]))

    def _emit_result(self, call: acp.AcpToolCall) -> None:
        details = call.result_details()
        self.feed.tool_result(
            call.id, call.result, name=call.shown_name, is_error=call.has_failed, **details
        )
        if call.subagent:
            self._emit_subagent(call, "failed" if call.has_failed else "completed", call.result)

    def _emit_subagent(
        self, call: acp.AcpToolCall, status: str, content: str, **details: Json
    ) -> None:
        """Emit an event of a sub-agent.

        The protocol has no sub-agents, but some agents start them with a tool.
        """
        about: JsonObject = {"subagent_id": call.id, "status": status, **details}
        self.feed.tell(ari.Lifecycle.SUBAGENT, content, **about)

    def _plan(self, update: JsonObject) -> None:
        if self._is_open:
            self.feed.tell(ari.Lifecycle.PLAN, todos=acp.todos_of(update.get("entries")))

    def _usage(self, update: JsonObject) -> None:
        if isinstance(cost := update.get("cost"), dict):
            self._update_cost(float(cost["amount"]), str(cost["currency"]))
        used, size = update.get("used"), update.get("size")
        if self.turn is not None and isinstance(used, int) and isinstance(size, int):
            self.feed.tell(ari.Lifecycle.USAGE, context_tokens=used, context_max=size)

    def _update_cost(self, amount: float, currency: str) -> None:
        """Record the total cost of the session, and add its increase to the cost of the turn.

        Nothing is added during a replay, after a change of currency, or for the first total of a
        resumed session if the earlier total is unknown.
        """
        if self._cost is not None and not self.is_replaying and self._currency in ("", currency):
            self._turn_cost = (self._turn_cost or 0.0) + max(amount - self._cost, 0.0)
        self._cost, self._currency = amount, currency

    async def listed_commands(self) -> tuple[ari.ListedItem, ...]:
        """Return the commands; agents report them shortly after a session was opened."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._commands_came.wait(), COMMANDS_S)
        self._commands_came.set()  # wait only once, even if the agent reports no commands
        return self.commands

    def _available_commands(self, update: JsonObject) -> None:
        self._commands_came.set()
        commands = acp.commands_of(update.get("availableCommands"))
        if commands != self.commands:
            self.commands = commands
            if self._is_open:
                self._emit_commands()

    def _emit_commands(self) -> None:
        listed = [
            {"name": one.name, "description": one.description, "hint": one.hint}
            for one in self.commands
        ]
        self.feed.tell(ari.Lifecycle.COMMANDS, commands=listed)

    def _current_mode(self, update: JsonObject) -> None:
        if self.modes is not None:
            self._update_choice("mode", self.modes.with_current(str(update["currentModeId"])))

    def _config_options(self, update: JsonObject) -> None:
        options = update.get("configOptions")
        for category in ("mode", "model"):
            choices = acp.option_choices(options, category)
            if choices is not None:
                self._update_choice(category, choices)

    def _update_choice(self, category: str, choices: acp.SessionChoices) -> None:
        before = self.mode, self.model
        if category == "mode":
            self.set_choices(choices, self.models)
        else:
            self.set_choices(self.modes, choices)
        if self._is_open and before != (self.mode, self.model):
            lifecycle = ari.Lifecycle.MODE if category == "mode" else ari.Lifecycle.MODEL
            self.feed.tell(lifecycle, choices.current)


_UPDATES: dict[str, Callable[[AcpSession, JsonObject], None]] = {
    "agent_message_chunk": AcpSession._message,
    "agent_thought_chunk": AcpSession._thought,
    "tool_call": AcpSession._tool,
    "tool_call_update": AcpSession._tool,
    "plan": AcpSession._plan,
    "usage_update": AcpSession._usage,
    "available_commands_update": AcpSession._available_commands,
    "current_mode_update": AcpSession._current_mode,
    "config_option_update": AcpSession._config_options,
}
"""Methods for the agent's updates; the others have no equivalent in ARI."""


def shown_input(call: acp.AcpToolCall) -> JsonObject:
    """Return the complete input to approve; some agents send only a title or a diff."""
    if call.input and not call.diffs:
        return call.input
    shown = dict(call.input)
    if call.diffs:
        shown.setdefault("diffs", list(call.diffs.values()))
    return shown or {"title": call.title}


class AcpConnection(AgentServer[AcpSession]):
    """The process of an agent, and its sessions."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.introduction = acp.AgentIntroduction(acp.PROTOCOL_VERSION)
        self.left: dict[str, AcpSession] = {}
        """Sessions that were closed here but are still open in the agent, because it cannot close
        them."""

    async def _introduce(self) -> None:
        params: JsonObject = {
            "protocolVersion": acp.PROTOCOL_VERSION,
            "clientCapabilities": {
                "fs": {"readTextFile": False, "writeTextFile": False},
                "terminal": False,
                "_meta": {"terminal_output": True},
            },
            "clientInfo": {
                "name": "arp",
                "title": "Agent Rendering Protocol",
                "version": ari.API_VERSION,
            },
        }
        answer = await self.call("initialize", params)
        introduction = self.introduction = acp.parse_answer(answer, acp.AgentIntroduction)
        self.version = str((introduction.agent_info or {}).get("version") or "")
        if introduction.protocol_version != acp.PROTOCOL_VERSION:
            is_old = introduction.protocol_version < acp.PROTOCOL_VERSION
            raise Unavailable(
                f"{self.name} {self.version} is too {'old' if is_old else 'new'}: it speaks "
                f"version {introduction.protocol_version} of ACP, and {acp.PROTOCOL_VERSION} is "
                f"needed; {'update it' if is_old else 'take an older version of it'}"
            )

    @property
    def abilities(self) -> acp.AgentAbilities:
        """Capabilities of the agent."""
        return self.introduction.agent_capabilities or acp.AgentAbilities()

    def error_of(self, refused: JsonRpcError) -> AriError:
        """Return the error for a call that the agent refused."""
        return acp.error_of_call(refused, self.name, self.introduction.how_to_log_in())

    async def drain(self) -> None:
        """Wait while the pipe to the agent is full."""
        with suppress(OSError):
            await self._started.process.input.drain()

    def notified(self, method: str, params: JsonObject) -> None:
        """Handle a notification of the agent."""
        if method == "$/cancel_request":
            request_id = params.get("requestId")
            for session in self.sessions():
                if isinstance(request_id, int | str) and session.withdraw(request_id):
                    self.peer.answer(request_id, acp.CANCELLED)
        if method != "session/update":
            return
        session_id, update = str(params["sessionId"]), params["update"]
        known = self.session(session_id)
        if known is not None:
            known.receive(update)
        elif update.get("sessionUpdate") in _STATE_UPDATES:
            self.keep_early(session_id, partial(self.notified, method, params))

    def requested(self, request_id: RequestId, method: str, params: JsonObject) -> None:
        """Handle a request of the agent: pass it to a user, or answer it at once."""
        if method != "session/request_permission":
            # Some agents try to write files through their client, although it does not offer that.
            self.peer.refuse(request_id, METHOD_NOT_FOUND, f"{method}: not supported")
            return
        session = self.session(str(params.get("sessionId")))
        if session is None or not session.ask(request_id, params):
            self.peer.answer(request_id, acp.CANCELLED)
