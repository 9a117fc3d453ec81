"""`CodexServer`: one `codex app-server` process. `CodexThread`: one thread in it, a session of ARI.

Theory of operation. The table `_HANDLERS` maps each notification about a thread to a method of
`CodexThread`; `messages` parses the values. Agents that a thread starts have threads of their own.
The server delivers messages about those to the thread that started the agent. While an agent is
being started, its thread id is not known yet: messages about unknown threads are kept until then.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import msgspec

from arp.protocol.json_value import Json, JsonObject
from arp.runtime.contract import types as ari
from arp.runtime.contract.errors import (
    AriError,
    Canceled,
    FailedPrecondition,
    Unavailable,
    Unimplemented,
)
from arp.runtime.contract.feed import PendingPermission, SessionFeed, one_line
from arp.runtime.programs.agent_server import CALL_S, STOP_S, AgentServer
from arp.runtime.programs.codex import messages as codex
from arp.runtime.programs.codex.questions import CodexQuestion, question_of
from arp.runtime.programs.json_rpc_peer import (
    METHOD_NOT_FOUND,
    JsonRpcError,
    PeerClosed,
    RequestId,
)

logger = logging.getLogger(__name__)

POLL_S = 0.05
"""Seconds between checks whether commands still run, because Codex does not report their end."""
SPAWN = "spawnAgent"
"""Tool that starts another agent."""
UNNAMED = "New session"
"""Name of a thread until its first message."""

_DEFAULT_ANSWERS: dict[str, JsonObject] = {
    "item/tool/call": {"contentItems": [], "success": False},
    "applyPatchApproval": {"decision": "denied"},
    "execCommandApproval": {"decision": "denied"},
    "mcpServer/elicitation/request": {"action": "decline"},
    "item/permissions/requestApproval": {"permissions": {}},
    "item/tool/requestUserInput": {"answers": {}},
    "item/commandExecution/requestApproval": {"decision": "decline"},
    "item/fileChange/requestApproval": {"decision": "decline"},
}
"""Answers to requests that no user sees, because no turn is active or a user cannot answer
them."""


class NativeTurn:
    """State of the active turn."""

    __slots__ = ("id", "interrupted", "items", "known", "over", "said", "speaker", "used")

    def __init__(self) -> None:
        self.id = ""
        """Codex's id of the turn; empty until Codex has reported it."""
        self.known = asyncio.Event()
        self.over = asyncio.Event()
        self.items: dict[str, codex.CodexItem] = {}
        """Tool calls that are not complete, by id."""
        self.said: dict[str, int] = {}
        """Number of emitted characters of each message or thought, by item id."""
        self.speaker = ""
        """Id of the message with the newest text; empty after a tool call."""
        self.used = ari.Usage()
        self.interrupted = False

    def adopt(self, turn_id: str) -> None:
        """Record the id of the turn."""
        self.id = turn_id
        self.known.set()


class CodexThread:
    """One session: a thread of Codex."""

    def __init__(
        self,
        server: CodexServer,
        feed: SessionFeed,
        opened: codex.OpenThread,
        params: JsonObject,
    ) -> None:
        self.session_id = opened.thread.id
        self.params = params
        """Parameters that started or resumed the thread."""
        self.feed = feed
        self.server = server
        self.model = opened.model
        self.mode = codex.mode_of(opened.approval_policy, opened.sandbox)
        self.provider = opened.model_provider
        self.cwd = opened.cwd
        self.instruction_sources = opened.instruction_sources
        self.turn: NativeTurn | None = None
        self.asked: dict[RequestId, CodexQuestion] = {}
        self.needs_name = False
        self._sandboxes: dict[str, JsonObject] = {str(opened.sandbox.get("type")): opened.sandbox}
        """Sandbox policies that Codex has reported, by type; they include what the configuration
        allows."""
        self._switched: JsonObject = {}
        """Settings to send with the next turn; Codex keeps them afterwards."""
        self._totals: dict[str, codex.TokenCounts] = {}
        """Total usage that was last reported, by the thread id of the session or of an agent."""
        self._unexplained: set[str] = set()
        """Thread ids of agents that were started at the same time as others. The task of such an
        agent is known only when the call that started it ends."""
        self._agents: dict[str, str] = {}
        """Names of the thread's agents, by the ids of their threads."""
        self._limits: dict[str, int] = {}
        """Step of each account limit that was last reported; see `LimitState.step`."""
        self._is_closed = False
        self._tasks: set[asyncio.Task[None]] = set()

    # -- calls of the runtime --------------------------------------------------------------------

    async def send(self, request: ari.SendMessageRequest) -> None:
        """Begin a turn; return when Codex has received the message."""
        taken = codex.input_of(request.message)
        turn = self.turn = NativeTurn()
        params = {"threadId": self.session_id, "input": taken, "approvalsReviewer": "user"}
        switched, self._switched = self._switched, {}
        try:
            answer = await self.server.call("turn/start", params | switched)
        except BaseException:
            self._switched = switched | self._switched
            self._forget_turn(turn)
            raise
        # `_interrupt` waits for `turn.known`, which the notification `turn/started` sets: until
        # then, Codex has no turn to interrupt.
        turn.id = answer["turn"]["id"]
        if self.needs_name:
            self.needs_name = False
            name = one_line(request.message.content) or UNNAMED
            self._run(self._name(name))

    async def respond(self, pending: PendingPermission, response: ari.PermissionResponse) -> None:
        """Answer a request of Codex; the reason of a denial is first sent to the model as input."""
        question = pending.native
        assert isinstance(question, CodexQuestion)
        self.asked.pop(question.request_id, None)
        turn = self.turn
        if response.decision == "deny" and response.message and not response.interrupt:
            await self._steer(turn, response.message)
        answer = question.answer(response)
        self.server.peer.answer(question.request_id, answer)
        call_id = pending.request.tool_call_id
        # Codex reports no end of a call without an item, so the answer becomes its result.
        if not question.has_item:
            self._emit_answer(call_id, response, answer)
        if response.decision == "deny" and response.interrupt:
            if turn is not None:
                turn.interrupted = True
            if question.interrupt is None:
                await self._interrupt(turn)

    def _emit_answer(
        self, call_id: str, response: ari.PermissionResponse, answer: JsonObject
    ) -> None:
        if response.decision == "deny":
            self.feed.tool_result(call_id, is_error=True, synthetic=True)
        else:
            content = msgspec.json.encode(answer).decode()
            self.feed.tool_result(call_id, content, synthetic=True)

    async def cancel(self, open_requests: Sequence[PendingPermission]) -> None:
        """Interrupt the turn; Codex then drops its open requests."""
        for pending in open_requests:
            if isinstance(pending.native, CodexQuestion):
                self.asked.pop(pending.native.request_id, None)
        await self._interrupt(self.turn)

    async def aclose(self) -> None:
        """Stop the turn and unsubscribe from the thread; may be called again."""
        if self._is_closed:
            return
        self._is_closed = True
        if self.server.is_running:
            try:
                async with asyncio.timeout(STOP_S):
                    await self._unsubscribe()
            except TimeoutError:
                # A turn that cannot be stopped must not continue unseen.
                await self.server.stop("a turn did not stop when its session was closed", STOP_S)
        self.server.drop(self)
        for task in self._tasks:
            task.cancel()

    async def abandon(self) -> None:
        """Make `stop` kill the process, so that Codex does not record an end of the turn."""
        self._is_closed = True
        self.server.is_killed_at_end = True
        for task in self._tasks:
            task.cancel()

    async def _unsubscribe(self) -> None:
        turn = self.turn
        with suppress(AriError):
            if turn is not None:
                await self._interrupt(turn)
                await turn.over.wait()
            await self._stop_commands()
        with suppress(AriError):
            await self.server.call("thread/unsubscribe", {"threadId": self.session_id})

    async def compact(self) -> None:
        """Begin a turn that makes the conversation shorter."""
        turn = self.turn = NativeTurn()
        try:
            await self.server.call("thread/compact/start", {"threadId": self.session_id})
        except BaseException:
            self._forget_turn(turn)
            raise

    def _forget_turn(self, turn: NativeTurn) -> None:
        """Forget a turn that did not begin, or that was lost with the process."""
        self.turn = None
        turn.known.set()
        turn.over.set()

    def switch_model(self, model: str) -> None:
        """Use another model from the next turn."""
        self.model = self._switched["model"] = model
        self.feed.tell(ari.Lifecycle.MODEL, model)

    def switch_mode(self, mode_id: str) -> None:
        """Use another mode from the next turn."""
        mode = codex.MODES[mode_id]
        self._switched["approvalPolicy"] = mode.approval_policy
        self._switched["sandboxPolicy"] = self._sandboxes.get(
            mode.policy_type, {"type": mode.policy_type}
        )
        self.mode = mode_id
        self.feed.tell(ari.Lifecycle.MODE, mode_id)

    async def switch_provider(self, provider: str) -> None:
        """Resume the thread with another provider and otherwise the same settings."""
        await self.server.call("thread/unsubscribe", {"threadId": self.session_id})
        mode = codex.thread_params(mode=self.mode if self.mode in codex.MODES else "")
        params = self.params | mode | {"model": self.model, "threadId": self.session_id}
        params["excludeTurns"] = True
        try:
            opened = await self.server.open("thread/resume", params | {"modelProvider": provider})
        except AriError:
            # The session continues with its previous provider.
            await self.server.open("thread/resume", params)
            raise
        self.params["modelProvider"] = opened.model_provider
        self.provider = opened.model_provider

    async def _name(self, name: str) -> None:
        with suppress(AriError):
            await self.server.call("thread/name/set", {"threadId": self.session_id, "name": name})

    async def _steer(self, turn: NativeTurn | None, text: str) -> None:
        """Add input to the active turn; the model receives it with its next request."""
        if turn is None:
            return
        params: JsonObject = {
            "threadId": self.session_id,
            "expectedTurnId": turn.id,
            "input": [{"type": "text", "text": text}],
        }
        try:
            await self.server.call("turn/steer", params)
        except AriError as failed:
            warning = f"the model did not receive the reason: {failed.message}"
            self.feed.tell(ari.Lifecycle.WARNING, warning)

    async def _interrupt(self, turn: NativeTurn | None) -> None:
        if turn is None:
            return
        turn.interrupted = True
        try:
            async with asyncio.timeout(CALL_S):
                await turn.known.wait()
        except TimeoutError as late:
            raise Unavailable("Codex did not begin the turn that is to be stopped") from late
        if not turn.id:
            return
        with suppress(FailedPrecondition):
            params = {"threadId": self.session_id, "turnId": turn.id}
            await self.server.call("turn/interrupt", params)

    async def _stop_commands(self) -> None:
        """Kill running commands, because an interrupt lets them continue in the background."""
        params = {"threadId": self.session_id}
        with suppress(Unimplemented):
            while True:
                await self.server.call("thread/backgroundTerminals/clean", params)
                left = await self.server.call("thread/backgroundTerminals/list", params)
                if not left.get("data"):
                    return
                await asyncio.sleep(POLL_S)

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # -- messages of Codex -----------------------------------------------------------------------

    def lost(self, reason: str) -> None:
        """Handle the end of the process."""
        if self.turn is not None:
            self._forget_turn(self.turn)
        self.asked.clear()
        self._is_closed = True
        self.feed.lost(reason)

    def receive(self, method: str, params: JsonObject) -> None:
        """Handle a notification about this thread, or about one of its agents."""
        handler = _HANDLERS.get(method)
        if handler is None:
            return
        if params.get("threadId") != self.session_id:
            if method == "turn/completed":
                self._emit_agent_end(params)
            elif is_of_agent(method, params):
                handler(self, params)
            return
        # A late message of an earlier turn must not become part of the active one.
        turn_id = params.get("turnId")
        if turn_id is not None and (self.turn is None or self.turn.id != turn_id):
            return
        handler(self, params)

    def ask(self, request_id: RequestId, method: str, params: JsonObject) -> bool:
        """Handle a request of Codex; return whether it will be answered later."""
        items = self.turn.items if self.turn is not None else {}
        question = question_of(request_id, method, params, items)
        if question is None:
            return False
        about = question.about
        if params.get("threadId") != self.session_id:
            # An agent that this thread has started does not receive input of the thread's turn.
            about = msgspec.structs.replace(about, takes_message=False)
        if self.feed.ask(question, about) is None:
            return False
        self.asked[request_id] = question
        return True

    def _turn_started(self, params: JsonObject) -> None:
        turn_id = params["turn"]["id"]
        if self.turn is None:
            # Codex begins turns by itself, for a goal or for an input in its own queue. While an
            # earlier turn is still ending, or the session is over, `feed.begin` would raise.
            if self.feed.turn is not None or self.feed.state in (
                ari.SessionState.FAILED,
                ari.SessionState.CLOSED,
            ):
                return
            self.turn = NativeTurn()
            self.feed.begin(origin="runtime")
        if self.turn.id in ("", turn_id):
            self.turn.adopt(turn_id)

    def _turn_completed(self, params: JsonObject) -> None:
        ended = msgspec.convert(params["turn"], codex.CodexTurn)
        turn = self.turn
        if turn is None or turn.id != ended.id:
            return
        self.turn = None
        self.asked.clear()
        turn.over.set()
        if ended.status == "interrupted":
            self._run(self._end_interrupted(turn))
        elif ended.status == "failed":
            failure = ended.error or codex.TurnFailure("the turn failed")
            self.feed.error(codex.status_of_failure(failure), turn.used)
        else:
            self.feed.result(usage=turn.used)

    async def _end_interrupted(self, turn: NativeTurn) -> None:
        """Stop the commands of an interrupted turn, then end it: nothing may run after its end."""
        active = self.feed.turn
        try:
            async with asyncio.timeout(STOP_S):
                await self._stop_commands()
        except (AriError, TimeoutError) as failed:
            logger.warning("commands of an interrupted turn may run on: %s", failed)
        if self.feed.turn is active:
            why = "the turn was cancelled" if turn.interrupted else "Codex interrupted the turn"
            self.feed.error(Canceled(why).status(), turn.used)

    def _item_started(self, params: JsonObject) -> None:
        item = msgspec.convert(params["item"], codex.CodexItem)
        turn = self.turn
        if turn is None:
            return
        tool = codex.tool_of(item)
        if tool is not None:
            turn.items[item.id] = item
            turn.speaker = ""
            details = tool.details | self._caller_details(params)
            self.feed.tool_call(
                item.id, tool.name, tool.input, summary=tool.summary, kind=tool.kind, **details
            )

    def _caller_details(self, params: JsonObject) -> JsonObject:
        """Return the details that name the agent that makes a call; empty for the thread itself."""
        thread_id = params.get("threadId")
        if thread_id == self.session_id:
            return {}
        return {"subagent_id": thread_id, "subagent": self._agents.get(str(thread_id), "")}

    def _item_completed(self, params: JsonObject) -> None:
        item = msgspec.convert(params["item"], codex.CodexItem)
        turn = self.turn
        if turn is None:
            return
        if item.type in ("agentMessage", "plan"):
            self._emit_new_text(turn, item.id, self.feed.text, rest_of=item.text or "")
        elif item.type == "reasoning":
            self._emit_new_text(turn, item.id, self.feed.thinking, rest_of=codex.thought_of(item))
        elif item.type == "contextCompaction":
            self.feed.tell(ari.Lifecycle.COMPACTION)
        elif (tool := codex.tool_of(item)) is not None:
            if item.id not in turn.items:
                self._item_started(params)
            if item.tool == SPAWN:
                turn.items[item.id] = item  # the completed item has the ids of the agents
                for agent_id in item.receiver_thread_ids:
                    self.agent_started(agent_id)
                    if agent_id in self._unexplained:
                        self._unexplained.discard(agent_id)
                        self._emit_agent(agent_id, "input", item.prompt or "")
            turn.items.pop(item.id, None)
            result = codex.result_of(item)
            self.feed.tool_result(
                item.id, result.content, name=tool.name, is_error=result.is_error, **result.details
            )
            self._emit_agent_call(item)

    # -- agents of the thread --------------------------------------------------------------------

    @property
    def is_spawning(self) -> bool:
        """Whether an agent is being started, so that its thread is not known yet."""
        items = self.turn.items.values() if self.turn is not None else ()
        return any(item.tool == SPAWN for item in items)

    def agent_started(self, agent_id: str, nickname: str = "") -> None:
        """Record an agent that works for this thread in a thread of its own.

        A known agent is ignored.
        """
        if agent_id in self._agents:
            return
        name = self._agents[agent_id] = nickname or f"agent {len(self._agents) + 1}"
        self.server.add(agent_id, self)
        items = self.turn.items.values() if self.turn is not None else ()
        spawning = [item for item in items if item.tool == SPAWN]
        named = [item for item in spawning if agent_id in item.receiver_thread_ids]
        known: JsonObject = {"name": name}
        # If several agents start at once, the call of this one is unknown. Its task must not be
        # taken from another agent's call.
        if len(named or spawning) == 1:
            (call,) = named or spawning
            known |= {"objective": call.prompt, "tool_call_id": call.id}
        elif spawning:
            self._unexplained.add(agent_id)
        self._emit_agent(agent_id, "started", **known)

    def _emit_agent_end(self, params: JsonObject) -> None:
        """Emit that an agent has completed its task; it may receive another one."""
        ended = msgspec.convert(params["turn"], codex.CodexTurn)
        states = {"failed": "failed", "interrupted": "closed"}
        texts = [item.text for item in ended.items if item.type == "agentMessage" and item.text]
        result = ended.error.message if ended.error is not None else "".join(texts[-1:])
        self._emit_agent(params["threadId"], states.get(ended.status, "completed"), result)

    def _emit_agent_call(self, item: codex.CodexItem) -> None:
        """Emit the effect of a call on agents: new input, or their end."""
        state = {"sendInput": "input", "closeAgent": "closed"}.get(item.tool or "")
        if state is not None and item.status == "completed":
            for agent_id in item.receiver_thread_ids:
                self._emit_agent(agent_id, state, item.prompt or "")

    def _emit_agent(self, agent_id: str, status: str, content: str = "", **details: Json) -> None:
        about: JsonObject = {"subagent_id": agent_id, "status": status, **details}
        self.feed.tell(ari.Lifecycle.SUBAGENT, content, **about)

    # -- other notifications ---------------------------------------------------------------------

    def _text_delta(self, params: JsonObject) -> None:
        if self.turn is not None:
            self._emit_new_text(self.turn, params["itemId"], self.feed.text, params["delta"])

    def _thought_delta(self, params: JsonObject) -> None:
        if self.turn is not None:
            self._emit_new_text(self.turn, params["itemId"], self.feed.thinking, params["delta"])

    def _thought_part(self, params: JsonObject) -> None:
        if self.turn is not None and params.get("summaryIndex"):
            self._emit_new_text(self.turn, params["itemId"], self.feed.thinking, "\n\n")

    def _emit_new_text(
        self,
        turn: NativeTurn,
        item_id: str,
        say: Callable[[str], None],
        delta: str = "",
        *,
        rest_of: str = "",
    ) -> None:
        """Emit the new part of a message or a thought.

        Args:
            turn: Turn of the item.
            item_id: Id of the item.
            say: Method of the feed: `text` or `thinking`.
            delta: New text.
            rest_of: Complete text, if there is no delta; only the part that was not emitted yet is
                emitted.
        """
        known = turn.said.get(item_id, 0)
        new = delta or rest_of[known:]
        if not new:
            return
        if not known and turn.speaker and turn.speaker != item_id and say == self.feed.text:
            # The two line breaks are not part of the item, so they must not be counted.
            new, known = "\n\n" + new, known - 2
        turn.said[item_id] = known + len(new)
        if say == self.feed.text:
            turn.speaker = item_id
        say(new)

    def _output_delta(self, params: JsonObject) -> None:
        self.feed.tool_progress(params["itemId"], params["delta"])

    def _tool_message(self, params: JsonObject) -> None:
        self.feed.tool_progress(params["itemId"], str(params.get("message", "")))

    def _resolved(self, params: JsonObject) -> None:
        question = self.asked.pop(params["requestId"], None)
        if question is not None:
            self.feed.withdraw(question)

    def _error(self, params: JsonObject) -> None:
        """Emit a `RETRYING` event if Codex will repeat a failed request to the model.

        An error that Codex does not retry is reported at the end of the turn instead.
        """
        if params.get("willRetry"):
            failure = msgspec.convert(params["error"], codex.TurnFailure)
            text = failure.additional_details or failure.message
            self.feed.tell(ari.Lifecycle.RETRYING, text, **codex.retry_details(failure))

    def _plan(self, params: JsonObject) -> None:
        self.feed.tell(
            ari.Lifecycle.PLAN,
            str(params.get("explanation") or ""),
            todos=codex.todos_of(params.get("plan")),
        )

    def _usage(self, params: JsonObject) -> None:
        usage = msgspec.convert(params["tokenUsage"], codex.TokenUsage)
        turn = self.turn
        thread_id = params["threadId"]
        # Codex repeats the total if nothing was used, for example after a compaction.
        if turn is None or usage.total == self._totals.get(thread_id):
            return
        self._totals[thread_id] = usage.total
        last = usage.last.usage()
        turn.used = turn.used.plus(last)
        details: JsonObject = msgspec.to_builtins(last)
        if thread_id != self.session_id:
            details["subagent_id"] = thread_id
        elif usage.last.total_tokens:
            details["context_tokens"] = usage.last.total_tokens
            details["context_max"] = usage.model_context_window
        self.feed.tell(ari.Lifecycle.USAGE, model=self.model, **details)

    def limits_changed(self, limits: codex.AccountLimits) -> None:
        """Emit each limit of the account that has reached a new step; see `LimitState.step`."""
        for limit in codex.limits_of(limits):
            reported = self._limits.get(limit.name, 0)
            if self.turn is None and limit.step > reported:
                continue  # the next turn reports it, where a person sees it
            self._limits[limit.name] = limit.step
            if limit.step > reported:
                self.feed.tell(ari.Lifecycle.RATE_LIMIT, **limit.details)

    def _hook(self, params: JsonObject) -> None:
        run = msgspec.convert(params["run"], codex.HookRun)
        self.feed.tell(ari.Lifecycle.HOOK, run.text(), **run.details())

    def _settings(self, params: JsonObject) -> None:
        """Record the settings that Codex uses now; they may differ from the request."""
        settings = params["threadSettings"]
        sandbox = settings["sandboxPolicy"]
        self._sandboxes[str(sandbox.get("type"))] = sandbox
        self._update_model(settings["model"])
        # A switch that waits for the next turn is newer than what Codex reports now.
        mode = codex.mode_of(settings["approvalPolicy"], sandbox)
        if mode != self.mode and "approvalPolicy" not in self._switched:
            self.mode = mode
            self.feed.tell(ari.Lifecycle.MODE, mode)

    def _rerouted(self, params: JsonObject) -> None:
        self._update_model(params["toModel"])

    def _update_model(self, model: str) -> None:
        if model != self.model and "model" not in self._switched:
            self.model = model
            self.feed.tell(ari.Lifecycle.MODEL, model)

    def _warning(self, params: JsonObject) -> None:
        self.feed.tell(ari.Lifecycle.WARNING, str(params.get("message", "")))

    def _mcp_status(self, params: JsonObject) -> None:
        if params.get("status") == "failed":
            text = f"the MCP server {params.get('name')!s:.80} did not start: {params.get('error')}"
            self.feed.tell(ari.Lifecycle.WARNING, text)


_HANDLERS: dict[str, Callable[[CodexThread, JsonObject], None]] = {
    "turn/started": CodexThread._turn_started,
    "turn/completed": CodexThread._turn_completed,
    "turn/plan/updated": CodexThread._plan,
    "item/started": CodexThread._item_started,
    "item/completed": CodexThread._item_completed,
    "item/agentMessage/delta": CodexThread._text_delta,
    "item/plan/delta": CodexThread._text_delta,
    "item/reasoning/summaryTextDelta": CodexThread._thought_delta,
    "item/reasoning/summaryPartAdded": CodexThread._thought_part,
    "item/reasoning/textDelta": CodexThread._thought_delta,
    "item/commandExecution/outputDelta": CodexThread._output_delta,
    "item/mcpToolCall/progress": CodexThread._tool_message,
    "serverRequest/resolved": CodexThread._resolved,
    "error": CodexThread._error,
    "thread/tokenUsage/updated": CodexThread._usage,
    "thread/settings/updated": CodexThread._settings,
    "model/rerouted": CodexThread._rerouted,
    "warning": CodexThread._warning,
    "guardianWarning": CodexThread._warning,
    "mcpServer/startupStatus/updated": CodexThread._mcp_status,
    "hook/started": CodexThread._hook,
    "hook/completed": CodexThread._hook,
}
"""Methods for Codex's notifications; the others have no equivalent in ARI."""


def is_of_agent(method: str, params: JsonObject) -> bool:
    """Return whether a session handles a message about the thread of one of its agents.

    It handles the tool calls, closed requests and usage of an agent. An agent's text is not shown,
    because it is for the agent that started this one.
    """
    if method not in ("item/started", "item/completed"):
        return method in ("serverRequest/resolved", "thread/tokenUsage/updated")
    return codex.tool_of(msgspec.convert(params["item"], codex.CodexItem)) is not None


class CodexServer(AgentServer[CodexThread]):
    """One `codex app-server` process, and its threads.

    A thread receives the messages about its own id, and about the ids of its agents' threads.
    """

    start_s = 30.0
    has_version = False

    def __init__(self) -> None:
        super().__init__("codex")

    async def _introduce(self) -> None:
        # An error in the configuration ends the process, which also ends this call.
        client = {"name": "arp", "title": "Agent Rendering Protocol", "version": ari.API_VERSION}
        params = {"clientInfo": client, "capabilities": {"experimentalApi": True}}
        answer = await self.call("initialize", params)
        with suppress(PeerClosed):
            self.peer.notify("initialized")
        agent = str(answer.get("userAgent", "")).partition("/")[2]
        self.version = agent.partition(" ")[0]

    def error_of(self, refused: JsonRpcError) -> AriError:
        """Return the error for a call that Codex refused."""
        return codex.error_of_call(refused)

    async def open(self, method: str, params: JsonObject) -> codex.OpenThread:
        """Start or resume a thread, and return the settings that Codex uses.

        Raises:
            AriError: Codex refused it.
        """
        return codex.parse_answer(await self.call(method, params), codex.OpenThread)

    def notified(self, method: str, params: JsonObject) -> None:
        """Handle a notification of Codex."""
        if method == "thread/started":
            started = msgspec.convert(params["thread"], codex.StoredThread)
            parent = self.session(started.parent_thread_id)
            if parent is not None:
                nickname = started.agent_nickname or started.agent_role or ""
                parent.agent_started(started.id, nickname)
            return
        if method == "account/rateLimits/updated":
            limits = msgspec.convert(params["rateLimits"], codex.AccountLimits)
            for one in self.sessions():
                one.limits_changed(limits)
            return
        thread = self.session(params.get("threadId"))
        if thread is not None:
            thread.receive(method, params)
        else:
            self._keep_if_spawning(params, partial(self.notified, method, params))

    def _keep_if_spawning(self, params: JsonObject, handle: Callable[[], None]) -> bool:
        """Keep a message about an unknown thread while an agent is being started.

        The thread may be the agent's.
        """
        thread_id = params.get("threadId")
        if not isinstance(thread_id, str):
            return False
        is_spawning = any(thread.is_spawning for thread in self.sessions())
        return is_spawning and self.keep_early(thread_id, handle)

    def requested(self, request_id: RequestId, method: str, params: JsonObject) -> None:
        """Handle a request of Codex: pass it to a user, or answer it at once."""
        thread = self.session(params.get("threadId"))
        if thread is not None and thread.ask(request_id, method, params):
            return
        handle_later = partial(self.requested, request_id, method, params)
        if thread is None and self._keep_if_spawning(params, handle_later):
            return
        if method == "currentTime/read":
            self.peer.answer(request_id, {"currentTimeAt": int(time.time())})
        elif method in _DEFAULT_ANSWERS:
            self.peer.answer(request_id, _DEFAULT_ANSWERS[method])
        else:
            self.peer.refuse(request_id, METHOD_NOT_FOUND, f"{method}: not supported")
