"""`AcpConnection`: the process of an agent; `AcpSession`: one session in it.

What the agent tells of a session goes to a method of `AcpSession` by one table, `_UPDATES`; what it
means is in `acp_messages`.

A tool call is often announced before its input is known (`pending`, with an empty input). It is
held back until the agent goes on with it: until it runs, asks, ends, or the model says something.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
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
from arp.runtime.programs.agent_process import ProcessStart
from arp.runtime.programs.json_rpc_peer import (
    METHOD_NOT_FOUND,
    JsonRpcChild,
    JsonRpcError,
    PeerClosed,
    RequestId,
)

logger = logging.getLogger(__name__)

START_S = 60.0
"""How long an agent may take to start: those in JavaScript need seconds, more on a busy machine."""
CALL_S = 60.0
"""How long it may take to answer a call that is no turn."""
STOP_S = 5.0
"""How long it may take to stop the turn of a session that is closed, and to end by itself."""
QUIET_S = 0.5
"""After a load, its history has ended if nothing came for so long."""
MAX_QUIET_S = 10.0
"""When a session is taken as loaded in any case."""
COMMANDS_S = 2.0
"""How long after a session was opened an agent may tell its commands."""
MAX_EARLY_UPDATES = 100
"""That are kept for a session whose id is not known yet."""

_OF_THE_STATE = frozenset(
    {"available_commands_update", "current_mode_update", "config_option_update", "usage_update"}
)
"""Updates that say how a session is, whenever they come."""


class AcpTurn:
    """What is known of the turn that runs."""

    def __init__(self) -> None:
        self.calls: dict[str, acp.AcpToolCall] = {}
        self.message_id = ""
        """Of the message whose text came last; empty behind a tool call."""
        self.is_cancelled = False
        self.over = asyncio.Event()


class AcpSession:
    """One session of an agent.

    Args:
        connection: The process that it is in.
        feed: Gets what the agent tells.
        session_id: As the agent calls it.
        place: With what it was opened: its directory and MCP servers.
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
        """To be told when it is open."""
        self.turn: AcpTurn | None = None
        self.is_replaying = False
        self.history: AcpHistory | None = None
        """Takes what the agent repeats, while it is read."""
        self._reading = asyncio.Lock()
        self._last_replayed_s = 0.0
        self._is_open = False
        self._asked: dict[RequestId, acp.AcpQuestion] = {}
        self._cost: float | None = None
        """Of the whole session, as the agent said last; `None`: it has not said it yet."""
        self._turn_cost: float | None = None
        """How much of it is new since the last turn ended; `None`: it has said nothing."""
        self._currency = ""
        self._prompting: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None

    # -- its beginning ---------------------------------------------------------------------------

    def set_up(self, answer: JsonObject, *, is_new: bool = False) -> None:
        """Take what the session was opened with; a new one has cost nothing yet."""
        if is_new and self._cost is None:
            self._cost = 0.0
        self.take_choices(acp.mode_choices(answer), acp.model_choices(answer))

    def set_up_as(self, left: AcpSession) -> None:
        """Take what is known of the session that the agent had open all the time."""
        self.take_choices(left.modes, left.models)
        self.commands = left.commands
        self._cost, self._currency = left._cost, left._currency

    def take_choices(
        self, modes: acp.SessionChoices | None, models: acp.SessionChoices | None
    ) -> None:
        """Take the modes and the models that there are; `None`: there are none."""
        self.modes, self.models = modes, models
        self.mode = modes.current if modes is not None else ""
        self.model = models.current if models is not None else ""

    def opened(self) -> None:
        """Tell what the session has to begin with; from now on what it tells are events."""
        self._is_open = True
        if self.commands:
            self._tell_commands()
        for warning in self.warnings:
            self.feed.tell(ari.Lifecycle.WARNING, warning)
        self.warnings.clear()

    async def replayed(self) -> None:
        """Return when the history that a load repeats has come; some send it behind the answer."""
        loop = asyncio.get_running_loop()
        start = self._last_replayed_s = loop.time()
        while True:
            now = loop.time()
            quiet_at = min(self._last_replayed_s + QUIET_S, start + MAX_QUIET_S)
            if now >= quiet_at:
                break
            await asyncio.sleep(quiet_at - now)
        self.is_replaying = False

    # -- what the caller wants -------------------------------------------------------------------

    async def read_history(self) -> tuple[ari.RuntimeMessage, ...]:
        """Return what was said, oldest first; the agent loads the session once more for it.

        Raises:
            FailedPrecondition: A turn is active, whose updates could not be told apart.
            AriError: The agent does not load it.
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
                self.take_choices(modes or self.modes, models or self.models)
                # The agent has forgotten what was switched since the last turn.
                if model and model != self.model:
                    await self.set_model(model)
                if mode and mode != self.mode:
                    await self.set_mode(mode)
                return self.history.messages()
            finally:
                self.history, self.is_replaying, self._is_open = None, False, was_open

    async def send(self, request: ari.SendMessageRequest) -> None:
        """Begin a turn; return when the agent has the message."""
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
        # Written here and not in the task, so that nothing overtakes it.
        answer = self.connection.begin("session/prompt", params)
        self.turn = turn
        self._prompting = asyncio.get_running_loop().create_task(self._ends(turn, answer))
        await self.connection.drain()

    async def _ends(self, turn: AcpTurn, answer: asyncio.Future[Json]) -> None:
        """Wait for the answer to a prompt, which is the end of its turn."""
        ended: Json = None
        failed: AriError | None = None
        try:
            ended = await answer
        except JsonRpcError as refused:
            failed = self.connection.error_of(refused)
        except PeerClosed:
            return  # The session is lost already.
        finally:
            turn.over.set()
        if self.turn is not turn:
            return
        self._tell_held(turn)
        self.turn = None
        self._answer_none()
        if failed is not None:
            why = Canceled("the turn was cancelled") if turn.is_cancelled else failed
            self.feed.error(why.status())
            return
        try:
            self._take_end(ended if isinstance(ended, dict) else {})
        except Exception as unknown:
            logger.warning("the end of a turn is not understood", exc_info=True)
            self.feed.error(status_of(unknown))

    def _take_end(self, ended: JsonObject) -> None:
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
        """Add what the turn cost, if the agent has said it: the price of a session grows by it."""
        turn_cost, self._turn_cost = self._turn_cost, None
        if turn_cost is None:
            return usage
        return msgspec.structs.replace(usage, cost=turn_cost, currency=self._currency)

    async def respond(self, pending: PendingPermission, response: ari.PermissionResponse) -> None:
        """Answer a permission request."""
        question = pending.native
        assert isinstance(question, acp.AcpQuestion)
        self._asked.pop(question.request_id, None)
        self.connection.answer(question.request_id, question.answer(response))
        if response.interrupt:
            self._cancel()
            self._answer_none()

    async def cancel(self, open_requests: Sequence[PendingPermission]) -> None:
        """Ask the agent to stop; what it asks is answered with `cancelled`, as it must be."""
        self._cancel()
        self._answer_none()

    def _answer_none(self) -> None:
        """Answer with `cancelled` what is still asked; an agent may wait for it for ever."""
        for request_id, question in list(self._asked.items()):
            del self._asked[request_id]
            self.feed.withdraw(question)
            with suppress(Unavailable):
                self.connection.answer(request_id, acp.CANCELLED)

    def _cancel(self) -> None:
        if self.turn is not None:
            self.turn.is_cancelled = True
        self.connection.notify("session/cancel", {"sessionId": self.session_id})

    async def aclose(self) -> None:
        """Stop the turn and let the agent close the session; may be called again."""
        if self._closing is None:
            self._closing = asyncio.get_running_loop().create_task(self._close())
        await asyncio.shield(self._closing)

    async def abandon(self) -> None:
        """Leave the turn as it is: the agent is killed before it notes that the turn ended."""
        self.connection.is_killed_at_end = True

    async def _close(self) -> None:
        turn, connection = self.turn, self.connection
        try:
            with suppress(AriError):
                if turn is not None and self.feed.state is ari.SessionState.FAILED:
                    raise TimeoutError  # It had its time already.
                if turn is not None and connection.is_running:
                    await self.cancel(())
                    await asyncio.wait_for(turn.over.wait(), STOP_S)
                if connection.is_running and connection.abilities.has("close"):
                    params: JsonObject = {"sessionId": self.session_id}
                    await asyncio.wait_for(connection.call("session/close", params), STOP_S)
                elif connection.is_running:
                    connection.left[self.session_id] = self
        except TimeoutError:
            # A turn that cannot be stopped must not go on unseen.
            await connection.stop("a session could not be stopped")
        connection.drop(self)

    async def set_mode(self, mode: str) -> str:
        """Switch the mode and return the one that counts from now on.

        Raises:
            InvalidArgument: The agent offers no such mode, or none.
        """
        await self._switch("mode", self.modes, mode)
        return self.mode

    async def set_model(self, model: str) -> str:
        """Switch the model and return the one that counts from now on.

        Raises:
            InvalidArgument: The agent offers no such model, or none.
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
                # Else an update has said what the agent took.
                self._take_choice(category, choices.with_current(wanted))

    # -- what the agent tells --------------------------------------------------------------------

    def lost(self, reason: str) -> None:
        """Take that the process is gone."""
        if self.turn is not None:
            self._tell_held(self.turn)
            self.turn = None
        self._asked.clear()
        self.feed.lost(reason)

    def take(self, update: JsonObject) -> None:
        """Take an update of this session."""
        kind = update.get("sessionUpdate")
        if self.is_replaying and kind not in _OF_THE_STATE:
            self._last_replayed_s = asyncio.get_running_loop().time()
            if self.history is not None:
                self.history.take(update)
            return
        handler = _UPDATES.get(str(kind))
        if handler is not None:
            handler(self, update)

    def ask(self, request_id: RequestId, params: JsonObject) -> bool:
        """Take a permission request; return whether it will be answered later."""
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
        if is_known:
            self._tell_call(call)
        call.is_told = True
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
        """Take that the agent no longer waits for an answer; return whether it did."""
        question = self._asked.pop(request_id, None)
        if question is not None:
            self.feed.withdraw(question)
        return question is not None

    def _message(self, update: JsonObject) -> None:
        text = acp.text_of(update.get("content"))
        turn = self.turn
        if turn is None or not text:
            return
        self._tell_held(turn)
        message_id = str(update.get("messageId") or "")
        if turn.message_id not in ("", message_id):
            text = "\n\n" + text
        turn.message_id = message_id
        self.feed.text(text)

    def _thought(self, update: JsonObject) -> None:
        if self.turn is not None:
            self._tell_held(self.turn)
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
            return
        turn.message_id = ""
        new = call.update(update, is_first=update["sessionUpdate"] == "tool_call")
        is_over = call.status in ("completed", "failed")
        if is_over or call.status == "in_progress":
            self._tell_call(call)
        if is_over:
            self._tell_result(call)
        elif call.is_told:
            self.feed.tool_progress(call.id, new)

    def _tell_held(self, turn: AcpTurn) -> None:
        """Tell calls whose input will not get better."""
        for call in turn.calls.values():
            if not call.is_told:
                self._tell_call(call)

    def _tell_call(self, call: acp.AcpToolCall) -> None:
        if call.is_told:
            return
        call.is_told = True
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
            self._tell_subagent(call, "started", "", **known)
        if isinstance(call.input.get("todos"), list):
            # OpenCode tells its list by the tool that writes it alone.
            self.feed.tell(ari.Lifecycle.PLAN, todos=acp.todos_of(call.input["todos"]))

    def _tell_result(self, call: acp.AcpToolCall) -> None:
        details = call.result_details()
        self.feed.tool_result(
            call.id, call.result, name=call.shown_name, is_error=call.has_failed, **details
        )
        if call.subagent:
            self._tell_subagent(call, "failed" if call.has_failed else "completed", call.result)

    def _tell_subagent(
        self, call: acp.AcpToolCall, status: str, content: str, **details: Json
    ) -> None:
        """Tell of a sub-agent: the protocol has none, but some agents start one by a tool."""
        about: JsonObject = {"subagent_id": call.id, "status": status, **details}
        self.feed.tell(ari.Lifecycle.SUBAGENT, content, **about)

    def _plan(self, update: JsonObject) -> None:
        if self._is_open:
            self.feed.tell(ari.Lifecycle.PLAN, todos=acp.todos_of(update.get("entries")))

    def _usage(self, update: JsonObject) -> None:
        if isinstance(cost := update.get("cost"), dict):
            self._take_cost(float(cost["amount"]), str(cost["currency"]))
        used, size = update.get("used"), update.get("size")
        if self.turn is not None and isinstance(used, int) and isinstance(size, int):
            self.feed.tell(ari.Lifecycle.USAGE, context_tokens=used, context_max=size)

    def _take_cost(self, amount: float, currency: str) -> None:
        """Take what the session has cost so far; what it cost before it was opened is no turn's."""
        if self._cost is not None and not self.is_replaying and self._currency in ("", currency):
            self._turn_cost = (self._turn_cost or 0.0) + max(amount - self._cost, 0.0)
        self._cost, self._currency = amount, currency

    async def listed_commands(self) -> tuple[ari.ListedItem, ...]:
        """Return the commands; agents tell them a moment after a session was opened."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._commands_came.wait(), COMMANDS_S)
        self._commands_came.set()  # One that has not told any by now is not waited for again.
        return self.commands

    def _available_commands(self, update: JsonObject) -> None:
        self._commands_came.set()
        commands = acp.commands_of(update.get("availableCommands"))
        if commands != self.commands:
            self.commands = commands
            if self._is_open:
                self._tell_commands()

    def _tell_commands(self) -> None:
        listed = [
            {"name": one.name, "description": one.description, "hint": one.hint}
            for one in self.commands
        ]
        self.feed.tell(ari.Lifecycle.COMMANDS, commands=listed)

    def _current_mode(self, update: JsonObject) -> None:
        if self.modes is not None:
            self._take_choice("mode", self.modes.with_current(str(update["currentModeId"])))

    def _config_options(self, update: JsonObject) -> None:
        options = update.get("configOptions")
        for category in ("mode", "model"):
            choices = acp.option_choices(options, category)
            if choices is not None:
                self._take_choice(category, choices)

    def _take_choice(self, category: str, choices: acp.SessionChoices) -> None:
        before = self.mode, self.model
        if category == "mode":
            self.take_choices(choices, self.models)
        else:
            self.take_choices(self.modes, choices)
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
"""What each update does; all others tell nothing that ARI has a place for."""


def shown_input(call: acp.AcpToolCall) -> JsonObject:
    """Return what is asked for, whole: some agents say it as title or as diff alone."""
    if call.input and not call.diffs:
        return call.input
    shown = dict(call.input)
    if call.diffs:
        shown.setdefault("diffs", list(call.diffs.values()))
    return shown or {"title": call.title}


class AcpConnection:
    """The process of an agent, and the sessions in it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.introduction = acp.AgentIntroduction(acp.PROTOCOL_VERSION)
        self.left: dict[str, AcpSession] = {}
        """Sessions that were closed here, and that the agent has open because it cannot close."""
        self.is_killed_at_end = False
        """A session asks something that stays open: the agent must not note that its turn ended."""
        self._child: JsonRpcChild | None = None
        self._sessions: dict[str, AcpSession] = {}
        self._early: dict[str, list[JsonObject]] = {}
        """Updates of the state, for a session whose id has not been answered yet."""

    @classmethod
    async def start(
        cls, name: str, command: Sequence[str], environment: Mapping[str, str], cwd: Path
    ) -> AcpConnection:
        """Start the process, and wait until it is ready.

        Raises:
            Unavailable: It does not start; the message says what it wrote.
        """
        connection = cls(name)
        start = ProcessStart(command, environment, str(cwd), name)
        try:
            child = connection._child = await JsonRpcChild.start(start, connection)
        except OSError as failed:
            raise Unavailable(f"{name} cannot be started: {failed}") from failed
        try:
            async with asyncio.timeout(START_S):
                await connection._introduce()
        except BaseException as failed:
            await child.stop(0)
            if isinstance(failed, TimeoutError):
                raise Unavailable(f"{name} did not start within {START_S:g} s") from failed
            raise
        return connection

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
        introduction = self.introduction = acp.taken(answer, acp.AgentIntroduction)
        if introduction.protocol_version != acp.PROTOCOL_VERSION:
            is_old = introduction.protocol_version < acp.PROTOCOL_VERSION
            raise Unavailable(
                f"{self.name} {self.version} is too {'old' if is_old else 'new'}: it speaks "
                f"version {introduction.protocol_version} of ACP, and {acp.PROTOCOL_VERSION} is "
                f"needed; {'update it' if is_old else 'take an older version of it'}"
            )

    @property
    def abilities(self) -> acp.AgentAbilities:
        """What the agent can do."""
        return self.introduction.agent_capabilities or acp.AgentAbilities()

    @property
    def version(self) -> str:
        """The version of the agent."""
        return str((self.introduction.agent_info or {}).get("version") or "")

    @property
    def is_running(self) -> bool:
        """Whether it can be called."""
        return self._child is not None and self._child.is_running

    @property
    def process_id(self) -> int:
        """The id of the process of the agent; 0 if it has ended."""
        return self._open_child().process.program_id

    def _open_child(self) -> JsonRpcChild:
        assert self._child is not None
        return self._child

    # -- what the agent is sent --------------------------------------------------------------------

    async def call(self, method: str, params: JsonObject) -> Json:
        """Return the answer of the agent.

        Raises:
            AriError: It refused, or is gone, or did not answer in time.
        """
        try:
            async with asyncio.timeout(CALL_S):
                return await self.begin(method, params)
        except JsonRpcError as refused:
            raise self.error_of(refused) from refused
        except PeerClosed as closed:
            raise Unavailable(str(closed)) from closed
        except TimeoutError as late:
            raise Unavailable(f"{self.name} did not answer {method} in {CALL_S:g} s") from late

    def begin(self, method: str, params: JsonObject) -> asyncio.Future[Json]:
        """Send a call, and return its answer to come.

        Raises:
            Unavailable: The agent is gone.
        """
        try:
            return self._open_child().peer.begin(method, params)
        except PeerClosed as closed:
            raise Unavailable(str(closed)) from closed

    def notify(self, method: str, params: JsonObject) -> None:
        """Send a notification.

        Raises:
            Unavailable: The agent is gone.
        """
        try:
            self._open_child().peer.notify(method, params)
        except PeerClosed as closed:
            raise Unavailable(str(closed)) from closed

    def answer(self, request_id: RequestId, result: JsonObject) -> None:
        """Answer a request.

        Raises:
            Unavailable: The agent is gone.
        """
        try:
            self._open_child().peer.answer(request_id, result)
        except PeerClosed as closed:
            raise Unavailable(str(closed)) from closed

    async def drain(self) -> None:
        """Wait until the agent has read what it was sent."""
        with suppress(OSError):
            await self._open_child().process.input.drain()

    def error_of(self, refused: JsonRpcError) -> AriError:
        """Return why the agent refused a call."""
        return acp.error_of_call(refused, self.name, self.introduction.how_to_log_in())

    async def stop(self, reason: str = "") -> None:
        """End the process; sessions that are still in it are lost."""
        if reason:
            logger.warning("%s is ended: %s", self.name, reason)
        if self.is_killed_at_end:
            self._open_child().process.kill()
        await self._open_child().stop(STOP_S if not reason else 0)

    # -- its sessions ----------------------------------------------------------------------------

    def add(self, session: AcpSession) -> None:
        """Tell a session what the agent tells about it, and has told already."""
        self._sessions[session.session_id] = session
        for update in self._early.pop(session.session_id, ()):
            session.take(update)

    def drop(self, session: AcpSession) -> None:
        """Tell a session nothing any more."""
        if self._sessions.get(session.session_id) is session:
            del self._sessions[session.session_id]

    def notified(self, method: str, params: JsonObject) -> None:
        """Take a notification of the agent."""
        if method == "$/cancel_request":
            request_id = params.get("requestId")
            for session in self._sessions.values():
                if isinstance(request_id, int | str) and session.withdraw(request_id):
                    self.answer(request_id, acp.CANCELLED)
        if method != "session/update":
            return
        session_id, update = str(params["sessionId"]), params["update"]
        known = self._sessions.get(session_id)
        if known is not None:
            known.take(update)
        elif update.get("sessionUpdate") in _OF_THE_STATE and (
            sum(map(len, self._early.values())) < MAX_EARLY_UPDATES
        ):
            self._early.setdefault(session_id, []).append(update)

    def requested(self, request_id: RequestId, method: str, params: JsonObject) -> None:
        """Take a request of the agent: each is answered, by a user or at once."""
        peer = self._open_child().peer
        if method != "session/request_permission":
            # Some write files through their client although it has not offered that.
            peer.refuse(request_id, METHOD_NOT_FOUND, f"{method}: not supported")
            return
        session = self._sessions.get(str(params.get("sessionId")))
        if session is None or not session.ask(request_id, params):
            peer.answer(request_id, acp.CANCELLED)

    def closed(self, reason: str) -> None:
        """Take that the process is gone."""
        sessions = list(self._sessions.values())
        self._sessions.clear()
        for session in sessions:
            session.lost(reason)
