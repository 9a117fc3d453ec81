"""One session of Claude Code: its process, what it is sent, and what it asks."""

from __future__ import annotations

import asyncio
import base64
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import Any, cast

import claude_agent_sdk as sdk
import msgspec
from claude_agent_sdk._errors import MessageParseError

from arp.protocol.json_value import JsonObject
from arp.runtime.contract import types as ari
from arp.runtime.contract.errors import (
    AriError,
    Canceled,
    DeadlineExceeded,
    FailedPrecondition,
    InvalidArgument,
    RuntimeInternal,
    Unavailable,
)
from arp.runtime.contract.feed import PendingPermission, SessionFeed
from arp.runtime.programs.agent_process import ProcessStart
from arp.runtime.programs.claude.asking import AskFirst, offered_rules
from arp.runtime.programs.claude.messages import MessageReader, commands_of, kind_of, summary_of
from arp.runtime.programs.claude.process import ClaudeProcess

CONTROL_S = 10.0
"""How long an interrupt or a switch may take."""
INTERRUPT_S = 2.0
"""How long an interrupt may take when a session is closed in the middle of a turn."""
DENIED = "The user does not allow this."
"""The message of a denial that has none: Claude Code requires one."""


class AskedPermission:
    """A question of Claude Code that waits for its answer."""

    def __init__(self, request: ari.PermissionRequest, updates: Mapping[str, object]) -> None:
        self.request = request
        self.updates = updates
        """What each rule that is offered changes, by its id."""
        self.answer: asyncio.Future[sdk.PermissionResult] = (
            asyncio.get_running_loop().create_future()
        )


class ClaudeSession:
    """A native session: one process of Claude Code, and the SDK's client for it.

    Args:
        session_id: Of Claude Code.
        feed: Where its events go.
        provider: Its name; the environment was chosen for it.
        modes: Those that a rule may switch to.
        keeps_rules: Whether Claude Code reads the rules again that it writes into the project.
        ask_first: What it has to ask; `None`: as it decides by itself.
    """

    def __init__(
        self,
        session_id: str,
        feed: SessionFeed,
        *,
        provider: str,
        modes: Sequence[str],
        keeps_rules: bool,
        ask_first: AskFirst | None = None,
    ) -> None:
        self.session_id = session_id
        self.model = ""
        self.mode = ""
        """As Claude Code reports them."""
        self.provider = provider
        self.info: dict[str, Any] = {}
        """What Claude Code said of itself when it was started: commands, models."""
        self._command_names: list[str] | None = None
        """What the last turn said; `None`: there was none."""
        self.process: ClaudeProcess | None = None
        self.has_ended_a_turn = False
        self._feed = feed
        self._modes = modes
        self._keeps_rules = keeps_rules
        self._ask_first = ask_first
        self._reader = MessageReader(feed, self._turn_ended)
        self._client: sdk.ClaudeSDKClient | None = None
        self._asked: set[AskedPermission] = set()
        self._drain: asyncio.Task[None] | None = None
        self._is_closing = False
        self._is_cancelling = False
        self._closed = asyncio.Event()
        self._tasks: set[asyncio.Task[object]] = set()

    async def start(self, start: ProcessStart, model: str, servers: Mapping[str, Any]) -> None:
        """Start the process and wait until it is ready.

        Args:
            start: How it is started.
            model: That was asked for.
            servers: MCP servers of this process, by name.

        Raises:
            Unavailable: It cannot be started.
        """
        own: dict[str, Any] = {
            name: {"type": "sdk", "name": name, "instance": server}
            for name, server in servers.items()
        }
        options = sdk.ClaudeAgentOptions(
            can_use_tool=self._can_use_tool,
            mcp_servers=own,
            hooks=self._ask_first.hooks() if self._ask_first is not None else None,
        )
        process = ClaudeProcess(start, self._on_line, self._on_error_line)
        self.process = process
        self._client = sdk.ClaudeSDKClient(options, process)
        try:
            await self._client.connect()
        except BaseException as failed:
            await process.close()
            if isinstance(failed, AriError) or not isinstance(failed, Exception):
                raise
            raise Unavailable(f"Claude Code does not start: {failed}") from failed
        self.info = await self._client.get_server_info() or {}
        self._reader.reported(self._resolved(model), self.info.get("current_permission_mode"))
        self.model, self.mode = self._reader.model, self._reader.mode
        self._drain = asyncio.get_running_loop().create_task(self._drained(self._client))

    def _resolved(self, model: str) -> str:
        """Return the model behind a name, as far as Claude Code has reported it."""
        for one in self.info.get("models") or ():
            if one.get("value") == (model or "default"):
                return str(one.get("resolvedModel") or one["value"])
        return model

    # -- what the caller wants -------------------------------------------------------------------

    async def send(self, request: ari.SendMessageRequest) -> None:
        """Begin a turn."""
        client = self._open_client()
        message_id = str(uuid.uuid4())
        line = {
            "type": "user",
            "uuid": message_id,
            "message": {"role": "user", "content": content_of(request.message)},
            "parent_tool_use_id": None,
        }
        self._is_cancelling = False
        self._reader.sent(message_id, request.message.content)
        await client.query(_only(line))

    async def respond(self, pending: PendingPermission, response: ari.PermissionResponse) -> None:
        """Answer a permission request."""
        asked = pending.native
        assert isinstance(asked, AskedPermission)
        if asked.answer.done():
            return
        if response.decision == "deny":
            message = response.message or DENIED
            asked.answer.set_result(sdk.PermissionResultDeny("deny", message, response.interrupt))
            return
        update = asked.updates.get(response.rule_id)
        if update is not None and self._ask_first is not None:
            self._ask_first.allowed(cast("sdk.PermissionUpdate", update))
        updates = [cast("sdk.PermissionUpdate", update)] if update is not None else None
        changed = _with_answers(response.updated_input)
        asked.answer.set_result(sdk.PermissionResultAllow("allow", changed, updates))

    async def cancel(self, open_requests: Sequence[PendingPermission]) -> None:
        """Interrupt the turn; what is still asked is taken back by Claude Code itself."""
        client = self._open_client()
        was_busy = self._reader.is_busy
        self._is_cancelling = True
        try:
            async with asyncio.timeout(CONTROL_S):
                await client.interrupt()
                for task_id in [] if was_busy else list(self._reader.background_agents):
                    await client.stop_task(task_id)
        except AriError:
            raise
        except Exception as failed:
            raise RuntimeInternal(f"Claude Code does not stop: {failed}") from failed
        for pending in open_requests:
            await self.respond(pending, ari.PermissionResponse("deny", "The turn was cancelled."))
        if not was_busy:
            # A sub-agent in the background had asked: no end of a turn will come.
            self._feed.error(Canceled("the turn was cancelled").status())

    async def set_model(self, model: str) -> str:
        """Switch the model and return the one that answers from now on.

        Raises:
            InvalidArgument: Claude Code refuses it.
        """
        await self._switch(lambda client: client.set_model(model), "model")
        return self.model

    async def set_mode(self, mode: str) -> str:
        """Switch the mode and return the one that counts from now on.

        Raises:
            InvalidArgument: Claude Code refuses it.
        """
        wanted = cast("sdk.PermissionMode", mode)
        await self._switch(lambda client: client.set_permission_mode(wanted), "mode")
        return self.mode

    async def _switch(
        self, call: Callable[[sdk.ClaudeSDKClient], Awaitable[None]], field: str
    ) -> None:
        try:
            async with asyncio.timeout(CONTROL_S):
                await call(self._open_client())
        except AriError:
            raise
        except TimeoutError:
            raise DeadlineExceeded(f"{field}: Claude Code does not answer") from None
        except Exception as failed:
            # The SDK has no class of its own for what Claude Code refuses.
            raise InvalidArgument(f"{field}: {failed}") from failed

    def _open_client(self) -> sdk.ClaudeSDKClient:
        if self._client is None or self._is_closing:
            raise FailedPrecondition("Claude Code is not running: resume the session")
        return self._client

    async def aclose(self) -> None:
        """End the process; a command that it runs ends with the turn."""
        await self._close(is_killed=False)

    async def abandon(self) -> None:
        """Kill the process: at the end of its input it would write that its question failed."""
        await self._close(is_killed=True)

    async def _close(self, *, is_killed: bool) -> None:
        if self._is_closing:
            await self._closed.wait()
            return
        self._is_closing = True
        client, process = self._client, self.process
        if is_killed and process is not None:
            process.kill()
        for asked in self._asked:
            asked.answer.cancel()
        if client is not None and process is not None:
            if not is_killed and self._reader.is_busy and process.is_ready():
                with suppress(Exception):
                    async with asyncio.timeout(INTERRUPT_S):
                        await client.interrupt()
            with suppress(Exception):
                await client.disconnect()
            await process.close()
        if self._drain is not None and self._drain is not asyncio.current_task():
            self._drain.cancel()
            await asyncio.wait([self._drain])
        self._closed.set()

    # -- what Claude Code tells ------------------------------------------------------------------

    def _on_line(self, line: dict[str, Any]) -> None:
        """Take a message before the SDK has it: the SDK leaves fields out that are needed."""
        if self._is_closing:
            return
        self._reader.read(line)
        self.model, self.mode = self._reader.model, self._reader.mode
        if line.get("subtype") == "init":
            self._has_commands(line.get("slash_commands"))
        if self._is_cancelling and line.get("subtype") == "init":
            # The interrupt came before the message was begun, and did not count for it.
            self._run(self._interrupt_again())

    def _has_commands(self, names: object) -> None:
        """Take the names of the commands that there are now; Claude Code says them each turn."""
        if not isinstance(names, list):
            return
        before, self._command_names = self._command_names, names
        if before is None or set(before) == set(names):
            return
        kept = [
            one
            for one in self.info.get("commands") or ()
            if one["name"] in names or one["name"] not in before
        ]
        self.info["commands"] = kept + [{"name": one} for one in names if one not in before]
        commands = msgspec.to_builtins(commands_of(self.info))
        self._feed.tell(ari.Lifecycle.COMMANDS, commands=commands)

    async def _interrupt_again(self) -> None:
        with suppress(AriError):  # The process is gone; its end is reported elsewhere.
            await self.cancel(())

    def _run(self, work: Coroutine[Any, Any, object]) -> None:
        task: asyncio.Task[object] = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _on_error_line(self, text: str) -> None:
        if self._feed.session_id and not self._is_closing:
            self._feed.tell(ari.Lifecycle.STDERR, text)

    async def _drained(self, client: sdk.ClaudeSDKClient) -> None:
        """Read the SDK's messages to their end: it stops answering when nobody takes them."""
        reason = "Claude Code has ended its output"
        while True:
            try:
                async for _ in client.receive_messages():
                    pass
            except MessageParseError:
                continue  # Unknown to this SDK; the reader has taken of it what it knows.
            except Exception as failed:  # noqa: BLE001 - whatever it is, nothing comes any more
                reason = getattr(failed, "message", "") or str(failed) or type(failed).__name__
            break
        if not self._is_closing:
            self._feed.lost(reason)
            if self.process is not None:
                self.process.terminate()

    def _turn_ended(self) -> None:
        """Ask again what sub-agents still want to know: they go on when the turn has ended."""
        self._is_cancelling = False
        self.has_ended_a_turn = True
        for asked in list(self._asked):
            if not asked.answer.done():
                self._ask(asked)

    # -- permissions -----------------------------------------------------------------------------

    async def _can_use_tool(
        self, tool_name: str, tool_input: dict[str, Any], context: sdk.ToolPermissionContext
    ) -> sdk.PermissionResult:
        suggested = context.suggestions
        if self._ask_first is not None:
            suggested = list(offered_rules(tool_name, tool_input, suggested))
        offers = offers_of(suggested, self._modes, keeps_rules=self._keeps_rules)
        request = ari.PermissionRequest(
            tool_name,
            tool_call_id=context.tool_use_id or "",
            kind=kind_of(tool_name),
            tool_input_summary=summary_of(tool_name, tool_input),
            tool_input_raw=tool_input,
            message=context.decision_reason or context.title or context.description or "",
            takes_updated_input=True,
            takes_message=True,
            deny_continues=True,
            rules=tuple(rule for rule, _ in offers),
        )
        asked = AskedPermission(request, {rule.rule_id: update for rule, update in offers})
        self._asked.add(asked)
        try:
            self._ask(asked)
            return await asked.answer
        except asyncio.CancelledError:
            self._feed.withdraw(asked)
            raise
        finally:
            self._asked.discard(asked)

    def _ask(self, asked: AskedPermission) -> None:
        self._reader.begin_own_turn()
        if self._feed.ask(asked, asked.request) is None:
            asked.answer.set_result(sdk.PermissionResultDeny("deny", "The turn was cancelled."))


async def _only(line: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
    yield line


def _with_answers(changed: JsonObject | None) -> JsonObject | None:
    """Return a changed input as Claude Code takes it: several answers are one text."""
    answers = None if changed is None else changed.get("answers")
    if changed is None or not isinstance(answers, dict):
        return changed
    texts = {
        question: ", ".join(map(str, answer)) if isinstance(answer, list) else answer
        for question, answer in answers.items()
    }
    return {**changed, "answers": texts}


def content_of(message: ari.RuntimeMessage) -> str | list[dict[str, Any]]:
    """Return a message as Claude Code takes it."""
    if not message.parts:
        return message.content
    texts = [{"type": "text", "text": message.content}] if message.content else []
    return [*texts, *map(block_of, message.parts)]


def block_of(part: ari.ContentPart) -> dict[str, Any]:
    """Return a part as a block; `check_part` has looked at it before."""
    if part.type == "text":
        return {"type": "text", "text": part.text}
    kind = "image" if part.type == "image" else "document"
    title = {"title": part.name} if kind == "document" and part.name else {}
    if not part.data:
        return {"type": kind, "source": {"type": "url", "url": part.uri}, **title}
    if part.mime_type.startswith("text/"):
        text = part.data.decode()
        return {
            "type": kind,
            "source": {"type": "text", "media_type": "text/plain", "data": text},
            **title,
        }
    data = base64.b64encode(part.data).decode()
    source = {"type": "base64", "media_type": part.mime_type, "data": data}
    return {"type": kind, "source": source, **title}


Offer = tuple[ari.PermissionRule, sdk.PermissionUpdate]


def offers_of(
    suggestions: Sequence[sdk.PermissionUpdate], modes: Sequence[str], *, keeps_rules: bool
) -> list[Offer]:
    """Return what can be allowed besides one call: suggestions of Claude Code, and no others.

    One that it would write into a file is offered for the session as well, which is less.
    """
    offers: list[Offer] = []
    for number, update in enumerate(suggestions):
        what = _what_is_allowed(update, modes)
        if not what:
            continue
        session = sdk.PermissionUpdate(
            update.type,
            update.rules,
            update.behavior,
            update.mode,
            update.directories,
            "session",
        )
        label = f"{what}, until this session ends"
        offers.append((ari.PermissionRule(f"{number}-session", label), session))
        if keeps_rules and update.destination not in (None, "session"):
            label = f"{what}, always (written to {update.destination})"
            offers.append((ari.PermissionRule(f"{number}-always", label, "always"), update))
    return offers


def _what_is_allowed(update: sdk.PermissionUpdate, modes: Sequence[str]) -> str:
    """Return what a suggestion allows; empty for one that is not known, or not for the caller."""
    if update.type == "addRules" and update.behavior == "allow" and update.rules:
        rules = [
            f"{rule.tool_name}({rule.rule_content})" if rule.rule_content else rule.tool_name
            for rule in update.rules
        ]
        return f"Allow {', '.join(rules)} without asking"
    if update.type == "addDirectories" and update.directories:
        return f"Count {', '.join(update.directories)} as a directory of this work"
    if update.type == "setMode" and update.mode in modes:
        return f"Switch to the mode {update.mode}"
    return ""
