"""`ClaudeSession`: one session of Claude Code, with its process, its messages and its requests.

Theory of operation. The SDK's client writes to the process and answers its control requests. Each
message of the process reaches the `MessageReader` before the SDK parses it, because the SDK drops
fields that events need. A request for permission waits in `_can_use_tool` for a future that
`respond` resolves. A request of a background sub-agent can outlive its turn; it is then asked again
in a new turn.
"""

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

from arp.process.program import ProgramStart
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
from arp.runtime.programs.claude.asking import AskPolicy, offered_rules
from arp.runtime.programs.claude.messages import MessageReader, commands_of, kind_of, summary_of
from arp.runtime.programs.claude.process import ClaudeProcess

CONTROL_S = 10.0
"""Seconds that an interrupt or a switch may take."""
INTERRUPT_S = 2.0
"""Seconds that an interrupt may take if a session is closed during a turn."""
DENIED = "The user does not allow this."
"""Message of a denial without a reason, because Claude Code requires a reason."""


class AskedPermission:
    """A permission request of Claude Code that waits for its answer."""

    def __init__(self, request: ari.PermissionRequest, updates: Mapping[str, object]) -> None:
        self.request = request
        self.updates = updates
        """Offered changes of Claude Code's rules, by rule id."""
        self.answer: asyncio.Future[sdk.PermissionResult] = (
            asyncio.get_running_loop().create_future()
        )


class ClaudeSession:
    """A native session: one process of Claude Code, and the SDK's client for it.

    Args:
        session_id: Id of the session in Claude Code.
        feed: Feed of the session.
        provider: Name of the provider that the environment was chosen for.
        modes: Modes that a rule may switch to.
        keeps_rules: Whether Claude Code reads the rules that it has written into the project.
        ask_first: Rules about what Claude Code must ask; `None` means that it decides itself.
    """

    def __init__(
        self,
        session_id: str,
        feed: SessionFeed,
        *,
        provider: str,
        modes: Sequence[str],
        keeps_rules: bool,
        ask_first: AskPolicy | None = None,
    ) -> None:
        self.session_id = session_id
        self.model = ""
        self.mode = ""
        """Model and mode that Claude Code reports."""
        self.provider = provider
        self.info: dict[str, Any] = {}
        """Information that Claude Code sent at its start: commands and models."""
        self._command_names: list[str] | None = None
        """Command names that the last turn reported; `None` before the first turn."""
        self.process: ClaudeProcess | None = None
        self.has_ended_a_turn = False
        self._feed = feed
        self._modes = modes
        self._keeps_rules = keeps_rules
        self._ask_first = ask_first
        self._reader = MessageReader(feed, self._turn_ended)
        self._client: sdk.ClaudeSDKClient | None = None
        self._asked: set[AskedPermission] = set()
        self._reading: asyncio.Task[None] | None = None
        self._is_closing = False
        self._is_cancelling = False
        self._closed = asyncio.Event()
        self._tasks: set[asyncio.Task[object]] = set()

    async def start(self, start: ProgramStart, model: str, servers: Mapping[str, Any]) -> None:
        """Start the process and wait until it is ready.

        Args:
            start: Program, environment and directory.
            model: Requested model.
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
        self._reader.reported(self._resolved_model(model), self.info.get("current_permission_mode"))
        self.model, self.mode = self._reader.model, self._reader.mode
        self._reading = asyncio.get_running_loop().create_task(self._read_messages(self._client))

    def _resolved_model(self, model: str) -> str:
        """Return the model behind a name such as `default`, if Claude Code has reported it."""
        for one in self.info.get("models") or ():
            if one.get("value") == (model or "default"):
                return str(one.get("resolvedModel") or one["value"])
        return model

    # -- calls -----------------------------------------------------------------------------------

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
        await client.query(_single_message(line))

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
        """Interrupt the turn; Claude Code withdraws its open requests itself."""
        client = self._open_client()
        was_busy = self._reader.is_busy
        self._is_cancelling = True
        try:
            async with asyncio.timeout(CONTROL_S):
                await client.interrupt()
                # If no turn runs, the interrupt has no effect: a background sub-agent has asked.
                for task_id in [] if was_busy else list(self._reader.background_agents):
                    await client.stop_task(task_id)
        except AriError:
            raise
        except Exception as failed:
            raise RuntimeInternal(f"Claude Code does not stop: {failed}") from failed
        for pending in open_requests:
            await self.respond(pending, ari.PermissionResponse("deny", "The turn was cancelled."))
        if not was_busy:
            # Only a background sub-agent had asked, so no message will report the end of this turn.
            self._feed.error(Canceled("the turn was cancelled").status())

    async def set_model(self, model: str) -> str:
        """Switch the model and return the model that is used now.

        Raises:
            InvalidArgument: Claude Code refuses the model.
        """
        await self._switch(lambda client: client.set_model(model), "model")
        return self.model

    async def set_mode(self, mode: str) -> str:
        """Switch the mode and return the mode that is used now.

        Raises:
            InvalidArgument: Claude Code refuses the mode.
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
            # The SDK has no exception class for a refusal of Claude Code.
            raise InvalidArgument(f"{field}: {failed}") from failed

    def _open_client(self) -> sdk.ClaudeSDKClient:
        if self._client is None or self._is_closing:
            raise FailedPrecondition("Claude Code is not running: resume the session")
        return self._client

    async def aclose(self) -> None:
        """End the process; a command that it runs ends with the turn."""
        await self._close(is_killed=False)

    async def abandon(self) -> None:
        """Kill the process; if it ended by itself, it would record that its question failed."""
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
            # The interrupt ends the turn, and with it the commands that Claude Code runs.
            if not is_killed and self._reader.is_busy and process.is_ready():
                with suppress(Exception):
                    async with asyncio.timeout(INTERRUPT_S):
                        await client.interrupt()
            with suppress(Exception):
                await client.disconnect()
            await process.close()
        if self._reading is not None and self._reading is not asyncio.current_task():
            self._reading.cancel()
            await asyncio.wait([self._reading])
        self._closed.set()

    # -- messages of Claude Code -----------------------------------------------------------------

    def _on_line(self, line: dict[str, Any]) -> None:
        """Parse a message before the SDK does, because the SDK drops fields that are needed."""
        if self._is_closing:
            return
        self._reader.read(line)
        self.model, self.mode = self._reader.model, self._reader.mode
        if line.get("subtype") == "init":
            self._update_commands(line.get("slash_commands"))
        if self._is_cancelling and line.get("subtype") == "init":
            # The interrupt came before the turn began, and had no effect on it.
            self._run(self._interrupt_again())

    def _update_commands(self, names: object) -> None:
        """Update the commands from the names that a turn reports; emit them if they changed."""
        if not isinstance(names, list):
            return
        before, self._command_names = self._command_names, names
        if before is None or set(before) == set(names):
            return
        # Turns do not report all commands of the start. A command is removed only if the last turn
        # reported it and this one does not.
        kept = [
            one
            for one in self.info.get("commands") or ()
            if one["name"] in names or one["name"] not in before
        ]
        self.info["commands"] = kept + [{"name": one} for one in names if one not in before]
        commands = msgspec.to_builtins(commands_of(self.info))
        self._feed.tell(ari.Lifecycle.COMMANDS, commands=commands)

    async def _interrupt_again(self) -> None:
        with suppress(AriError):  # the process has ended, which is reported elsewhere
            await self.cancel(())

    def _run(self, work: Coroutine[Any, Any, object]) -> None:
        task: asyncio.Task[object] = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _on_error_line(self, text: str) -> None:
        if self._feed.session_id and not self._is_closing:
            self._feed.tell(ari.Lifecycle.STDERR, text)

    async def _read_messages(self, client: sdk.ClaudeSDKClient) -> None:
        """Read the SDK's messages to their end.

        The SDK stops answering requests if its messages are not read.
        """
        reason = "Claude Code has ended its output"
        while True:
            try:
                async for _ in client.receive_messages():
                    pass
            except MessageParseError:
                continue  # unknown to this SDK; the reader has already handled the message
            except Exception as failed:  # noqa: BLE001 - after any error there are no more messages
                reason = getattr(failed, "message", "") or str(failed) or type(failed).__name__
            break
        if not self._is_closing:
            self._feed.lost(reason)
            if self.process is not None:
                self.process.terminate()

    def _turn_ended(self) -> None:
        """Ask the open requests of sub-agents again; they remain open after the end of the turn."""
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


async def _single_message(line: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
    yield line


def _with_answers(changed: JsonObject | None) -> JsonObject | None:
    """Return an input in the form of Claude Code: several answers become one text."""
    answers = None if changed is None else changed.get("answers")
    if changed is None or not isinstance(answers, dict):
        return changed
    texts = {
        question: ", ".join(map(str, answer)) if isinstance(answer, list) else answer
        for question, answer in answers.items()
    }
    return {**changed, "answers": texts}


def content_of(message: ari.RuntimeMessage) -> str | list[dict[str, Any]]:
    """Return the content of a message in the form of Claude Code."""
    if not message.parts:
        return message.content
    texts = [{"type": "text", "text": message.content}] if message.content else []
    return [*texts, *map(block_of, message.parts)]


def block_of(part: ari.ContentPart) -> dict[str, Any]:
    """Return a part as a content block; `check_part` must have accepted the part."""
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
    """Return the rules to offer in addition to one call, made from suggestions.

    Each suggestion is offered for the session. If Claude Code would write it into a file that it
    reads, it is also offered permanently.
    """
    offers: list[Offer] = []
    for number, update in enumerate(suggestions):
        what = _allowed_text(update, modes)
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


def _allowed_text(update: sdk.PermissionUpdate, modes: Sequence[str]) -> str:
    """Return what a suggestion allows; empty if it is unknown or its mode is not offered."""
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
