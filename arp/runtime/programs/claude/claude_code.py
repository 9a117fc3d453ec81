"""`ClaudeCodeRuntime`: Claude Code behind the Agent Runtime Interface.

    runtime = ClaudeCodeRuntime(cwd="project", environment={"PATH": …, "HOME": …})

It needs the extra `claude`: claude-agent-sdk, which includes the program. The SDK is imported when
the first session is created, because the import takes a second.

A session is a process of Claude Code (`session`, `process`). Its messages become events
(`messages`). Stored sessions are read from Claude Code's files (`transcripts`).
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import tempfile
import uuid
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import msgspec

from arp.process.program import ProgramStart
from arp.runtime.contract import types as ari
from arp.runtime.contract.driven import DrivenRuntime, OpenSession, check_message
from arp.runtime.contract.errors import (
    AlreadyExists,
    AriError,
    InvalidArgument,
    NotFound,
    Unavailable,
)
from arp.runtime.contract.feed import SessionFeed
from arp.runtime.programs.claude.messages import NEW_SESSION_COMMANDS, commands_of
from arp.runtime.programs.claude.transcripts import Transcripts, is_uuid
from arp.runtime.programs.program_version import ProgramVersions

if TYPE_CHECKING:
    from arp.runtime.programs.claude.asking import AskPolicy
    from arp.runtime.programs.claude.session import ClaudeSession

EXTRA_MISSING = (
    "claude-agent-sdk is not installed; run: pip install 'agent-rendering-protocol[claude]'"
)
OLDEST = "2.0.0"
"""Oldest version with the protocol of claude-agent-sdk."""

MODES = {
    "default": ari.Choice("default", "Ask", "Asks before it changes anything"),
    "plan": ari.Choice("plan", "Plan", "Reads and plans, and changes nothing"),
    "dontAsk": ari.Choice("dontAsk", "Refuse", "Refuses what no rule allows, without asking"),
    "acceptEdits": ari.Choice(
        "acceptEdits", "Accept edits", "Edits files without asking; asks for the rest", asks=False
    ),
    "auto": ari.Choice("auto", "Auto", "A model decides what needs no question", asks=False),
    "bypassPermissions": ari.Choice(
        "bypassPermissions", "Never ask", "Does everything without asking", asks=False
    ),
}
"""Modes of Claude Code, by id."""
SETTING_SOURCES = ("user", "project", "local")
"""Settings that Claude Code can read."""
USUAL_MODES = ("default", "plan", "dontAsk")
"""Modes that change nothing without an answer; an operator may list the others."""

IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""Image types that the model's API accepts."""
FILE_TYPES = frozenset({"application/pdf"})
"""File types that the model's API accepts, in addition to any text."""

IN_PROCESS = "in-process:"
"""Prefix of the address of an MCP server in this process; see `offer_server`."""

_INHERITED = (
    "HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER",
    "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "https_proxy", "http_proxy", "no_proxy",
    "NODE_EXTRA_CA_CERTS", "SSL_CERT_DIR", "SSL_CERT_FILE",
)  # fmt: skip
_INHERITED_PREFIXES = ("ANTHROPIC_", "CLAUDE_")
_SET_BY_CLAUDE = (
    "CLAUDE_CODE_CHILD_", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_EXECPATH",
    "CLAUDE_CODE_MESSAGING_", "CLAUDE_CODE_SESSION_", "CLAUDE_EFFORT", "CLAUDE_PID",
)  # fmt: skip
"""Variables that Claude Code sets for the commands that it runs. They are not passed on, because
this process may be such a command."""


def usual_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that Claude Code needs to work and to log in, and no others."""
    return {
        name: value
        for name, value in environment.items()
        if name in _INHERITED
        or (name.startswith(_INHERITED_PREFIXES) and not name.startswith(_SET_BY_CLAUDE))
    }


class ClaudeCodeOptions(msgspec.Struct, frozen=True):
    """Operator's settings of Claude Code."""

    program: str = ""
    """Path of the program. If empty, the program of claude-agent-sdk is used, or else `claude` in
    the `PATH` of the environment."""
    setting_sources: tuple[Literal["user", "project", "local"], ...] = ()
    """Settings that Claude Code reads; `project` includes CLAUDE.md. Settings can have rules that
    allow tools without asking, so the default is none."""
    modes: tuple[str, ...] = USUAL_MODES
    """Modes that sessions may use; the first one is the default."""
    models: tuple[str, ...] = ()
    """Models that sessions may use; empty means any."""
    providers: dict[str, dict[str, str]] = msgspec.field(default_factory=dict)
    """Providers by name, each with variables to add to the environment, such as
    `ANTHROPIC_BASE_URL`."""
    ask_first: bool = True
    """Whether a person is asked before each tool, in the modes that ask. If it is false, or if
    `setting_sources` is not empty (rules in settings can allow tools), Claude Code decides what it
    asks, and permissions are `advisory`. It then reads files and runs commands that only read
    without asking."""
    own_tools: bool = True
    """Whether Claude Code has its own tools, such as its shell; if false, it has only the tools of
    `mcp_servers`."""
    max_turns: int = 0
    """Number of model answers after which a turn ends with an error; 0 means no limit."""
    max_budget_usd: float = 0.0
    """Cost of the session after which a turn ends with an error; 0 means no limit."""

    def __post_init__(self) -> None:
        unknown = sorted(set(self.modes) - set(MODES))
        if unknown or not self.modes:
            known, got = ", ".join(MODES), ", ".join(unknown) or "none"
            raise ValueError(f"modes: expected some of {known}; got {got}")
        if wrong := set(self.setting_sources) - set(SETTING_SOURCES):
            known, got = ", ".join(SETTING_SOURCES), ", ".join(sorted(wrong))
            raise ValueError(f"setting_sources: expected some of {known}; got {got}")
        for name, added in self.providers.items():
            if moved := {"HOME", "CLAUDE_CONFIG_DIR"} & added.keys():
                raise ValueError(f"providers[{name!r}]: {moved.pop()} moves the sessions away")


class ClaudeCodeRuntime(DrivenRuntime):
    """Sessions of Claude Code, each in a process of its own.

    Args:
        cwd: Directory of the runtime. Sessions work in it by default, and always at or below it.
        environment: Complete environment of Claude Code. `None` means the variables of this process
            that `usual_environment` selects, which include those that begin with `ANTHROPIC_` and
            `CLAUDE_`.
        options: Operator's settings.
    """

    name = "claude-code"
    part_types: ClassVar[frozenset[str]] = frozenset({"text", "image", "file"})
    takes: ClassVar[frozenset[str]] = frozenset(
        {"session_id", "model", "mode", "provider", "instructions", "mcp_servers"}
    )

    def __init__(
        self,
        *,
        cwd: str | Path = ".",
        environment: Mapping[str, str] | None = None,
        options: ClaudeCodeOptions | None = None,
    ) -> None:
        super().__init__(cwd=cwd)
        given = usual_environment(os.environ) if environment is None else environment
        self.environment = dict(given)
        self.options = options or ClaudeCodeOptions()
        asks_all = self.options.ask_first and not self.options.setting_sources
        self.permission = "enforced" if asks_all else "advisory"  # type: ignore[misc]  # of this object
        self._transcripts = Transcripts(self.environment, self.is_inside)
        self._versions = ProgramVersions("Claude Code", OLDEST)
        self._offered: dict[str, Any] = {}
        """MCP servers of this process, by the address that sessions use."""

    def offer_server(self, name: str, server: Any) -> ari.McpServer:
        """Make an MCP server of this process available to sessions; return it for `mcp_servers`.

        Claude Code talks to it over its own pipes, so the server needs no port.

        Args:
            name: Name of the server for the agent.
            server: A `mcp.server.Server`; it is available until `withdraw_server`.
        """
        address = f"{IN_PROCESS}{uuid.uuid4()}"
        self._offered[address] = server
        return ari.McpServer(name, url=address)

    def withdraw_server(self, offered: ari.McpServer) -> None:
        """Forget a server of this process. New sessions cannot use it. May be called again."""
        self._offered.pop(offered.url, None)

    def _own_servers(self, servers: Sequence[ari.McpServer]) -> dict[str, Any]:
        """Return the servers of a request that run in this process.

        Raises:
            InvalidArgument: A server was withdrawn, or was never offered.
        """
        own = [one for one in servers if one.url.startswith(IN_PROCESS)]
        for one in own:
            if one.url not in self._offered:
                raise InvalidArgument(f"mcp_servers: {one.name:.80} is not offered in this process")
        return {one.name: self._offered[one.url] for one in own}

    # -- the program -----------------------------------------------------------------------------

    def program(self) -> str:
        """Return the path of the program; empty if it is not found."""
        if self.options.program:
            return self.options.program if os.access(self.options.program, os.X_OK) else ""
        spec = find_spec("claude_agent_sdk")
        for place in (spec and spec.submodule_search_locations) or ():
            bundled = Path(place) / "_bundled" / "claude"
            if os.access(bundled, os.X_OK):
                return str(bundled)
        return shutil.which("claude", path=self.environment.get("PATH", "")) or ""

    async def _problem(self) -> str:
        if find_spec("claude_agent_sdk") is None:
            return EXTRA_MISSING
        if not self.program():
            where = (
                f"at {self.options.program}"
                if self.options.program
                else "in the PATH of its environment"
            )
            return f"there is no program of Claude Code {where}: install it, or name its path"
        return self._versions.problem(await self._runtime_version())

    async def _runtime_version(self) -> str:
        return await self._versions.of(self.program(), self.environment, self.cwd)

    async def _info(self) -> Mapping[str, str]:
        return {"program": self.program(), "version": await self._runtime_version()}

    def _capabilities(self) -> Sequence[ari.Capability]:
        return (
            ari.Capability(
                "permission_rules", details={"rules": "those that Claude Code suggests"}
            ),
            ari.Capability("updated_input"),
            ari.Capability("deny_message"),
            ari.Capability("deny_interrupt", details={"deny_continues": "yes"}),
            ari.Capability("session_id", details={"form": "uuid"}),
            ari.Capability("resume_session"),
            ari.Capability("list_sessions"),
            ari.Capability("delete_session"),
            ari.Capability("cancel_turn"),
            ari.Capability("history"),
            ari.Capability("model", applies_to="now"),
            ari.Capability("mode", applies_to="now"),
            ari.Capability("provider", enabled=bool(self.options.providers), applies_to="now"),
            ari.Capability("commands"),
            ari.Capability("compaction"),
            ari.Capability("instructions"),
            ari.Capability("mcp_servers", details={"transports": "stdio, http"}),
            ari.Capability("parts", details={"types": "text, image, file", "file": "PDF and text"}),
            ari.Capability("own_turns", details={"after": "work in the background"}),
        )

    # -- sessions --------------------------------------------------------------------------------

    async def _create(self, request: ari.CreateSessionRequest, feed: SessionFeed) -> ClaudeSession:
        session_id = request.session_id or str(uuid.uuid4())
        if not is_uuid(session_id):
            raise InvalidArgument(f"session_id: expected a UUID, got {session_id!r:.80}")
        return await self._start_session(session_id, f"--session-id={session_id}", request, feed)

    async def _resume(self, request: ari.ResumeSessionRequest, feed: SessionFeed) -> ClaudeSession:
        session_id = request.session_id
        if await asyncio.to_thread(self._transcripts.path_of, session_id) is not None:
            return await self._start_session(session_id, f"--resume={session_id}", request, feed)
        if not self._has_no_transcript_yet(session_id):
            raise NotFound(f"there is no session {session_id!r:.80}")
        return await self._start_session(session_id, f"--session-id={session_id}", request, feed)

    def _has_no_transcript_yet(self, session_id: str) -> bool:
        """Return whether a session of this object has not ended a turn, so it has no transcript."""
        known = self._sessions.get(session_id)
        native: Any = known.native if known is not None else None
        return native is not None and not native.has_ended_a_turn

    async def _start_session(
        self,
        session_id: str,
        which: str,
        request: ari.CreateSessionRequest | ari.ResumeSessionRequest,
        feed: SessionFeed,
    ) -> ClaudeSession:
        self._check_choices(request.model, request.mode, request.provider)
        if problem := await self._problem():
            raise Unavailable(problem)
        session_type = await asyncio.to_thread(_type_with_sdk)
        session = session_type(
            session_id,
            feed,
            provider=request.provider,
            modes=self.options.modes,
            keeps_rules="local" in self.options.setting_sources,
            ask_first=_ask_first() if self.permission == "enforced" else None,
        )
        own = self._own_servers(request.mcp_servers)
        servers = _mcp_file(request.mcp_servers)
        command = [self.program(), *self._arguments(request), which]
        if servers:
            command += ["--mcp-config", servers]
        environment = {**self.environment, **self.options.providers.get(request.provider, {})}
        start = ProgramStart(command, environment, request.cwd or str(self.cwd), "Claude Code")
        try:
            await session.start(start, request.model, own)
        except Unavailable as failed:
            raise _start_error(failed, session_id) from failed
        finally:
            # Claude Code has read the file by now: it answers only after it has loaded its servers.
            if servers:
                os.unlink(servers)
        return session

    def _opened(self, session: OpenSession) -> None:
        commands = msgspec.to_builtins(commands_of(self._claude(session.feed.session_id).info))
        session.feed.tell(ari.Lifecycle.COMMANDS, commands=commands)

    def _arguments(self, request: ari.CreateSessionRequest | ari.ResumeSessionRequest) -> list[str]:
        arguments = [
            *("--input-format", "stream-json", "--output-format", "stream-json", "--verbose"),
            *("--include-partial-messages", "--permission-prompt-tool", "stdio"),
            f"--permission-mode={request.mode or self.options.modes[0]}",
            f"--setting-sources={','.join(self.options.setting_sources)}",
        ]
        if request.model:
            arguments.append(f"--model={request.model}")
        if request.instructions:
            arguments.append(f"--append-system-prompt={request.instructions}")
        if not self.options.own_tools:
            arguments.append("--tools=")
        if self.options.max_turns:
            arguments.append(f"--max-turns={self.options.max_turns}")
        if self.options.max_budget_usd:
            arguments.append(f"--max-budget-usd={self.options.max_budget_usd}")
        # Only settings can define hooks and further MCP servers.
        arguments.append(
            "--include-hook-events" if self.options.setting_sources else "--strict-mcp-config"
        )
        return arguments

    def _check_choices(self, model: str, mode: str, provider: str) -> None:
        """Raise for a choice that the operator does not offer.

        Raises:
            InvalidArgument: It is not offered; the message names the field.
        """
        if model and self.options.models and model not in self.options.models:
            raise InvalidArgument(f"model: expected one of {', '.join(self.options.models)}")
        if mode and mode not in self.options.modes:
            raise InvalidArgument(f"mode: expected one of {', '.join(self.options.modes)}")
        if provider and provider not in self.options.providers:
            known = ", ".join(self.options.providers) or "(none is configured)"
            raise InvalidArgument(f"provider: expected one of {known}")

    async def _stored(self, cwd: str) -> Sequence[ari.RuntimeSession]:
        if await self._problem() == EXTRA_MISSING:
            return ()
        stored = await self._transcripts.all()
        return [one for one in stored if cwd in ("", one.cwd)]

    async def _find(self, session_id: str) -> ari.RuntimeSession | None:
        if await self._problem() == EXTRA_MISSING:
            return None
        return await self._transcripts.find(session_id)

    async def _forget(self, session_id: str) -> None:
        await self._transcripts.delete(session_id)

    def _check_message(self, message: ari.RuntimeMessage) -> None:
        check_message(message, self.part_types)
        first = message.content.split(maxsplit=1)[:1]
        if first and first[0] in NEW_SESSION_COMMANDS:
            raise InvalidArgument(
                f"message.content: {first[0]} begins another session; create one instead"
            )
        for number, part in enumerate(message.parts):
            check_part(part, f"message.parts[{number}]")

    # -- the optional services -------------------------------------------------------------------

    async def get_session_history(
        self, request: ari.GetSessionHistoryRequest
    ) -> ari.GetSessionHistoryResponse:
        """Return the messages of a session, oldest first."""
        if not 1 <= request.limit <= 10_000:
            raise InvalidArgument(f"limit: expected 1 to 10000, got {request.limit}")
        await self.get_session(ari.GetSessionRequest(request.session_id))
        history = await self._transcripts.history(request.session_id, request.limit)
        return ari.GetSessionHistoryResponse(history)

    async def get_model(self, request: ari.GetModelRequest) -> ari.GetModelResponse:
        """Return the model that Claude Code reports."""
        return ari.GetModelResponse(self._claude(request.session_id).model)

    async def set_model(self, request: ari.SetModelRequest) -> ari.SetModelResponse:
        """Switch the model; Claude Code may use another one, which the response names."""
        self._check_choices(request.model, "", "")
        if not request.model:
            raise InvalidArgument("model: it is empty")
        model = await self._claude(request.session_id).set_model(request.model)
        self._remember(request.session_id, model=request.model)
        return ari.SetModelResponse(model)

    async def list_models(self, request: ari.ListModelsRequest) -> ari.ListModelsResponse:
        """Return the models that Claude Code offers, limited to those that the operator lists."""
        offered = [
            ari.Choice(one["value"], one.get("displayName", ""), one.get("description", ""))
            for one in self._claude(request.session_id).info.get("models") or ()
        ]
        if not self.options.models:
            return ari.ListModelsResponse(tuple(offered))
        known = {one.id: one for one in offered}
        models = tuple(known.get(model, ari.Choice(model)) for model in self.options.models)
        return ari.ListModelsResponse(models)

    async def get_mode(self, request: ari.GetModeRequest) -> ari.GetModeResponse:
        """Return the mode that Claude Code reports."""
        return ari.GetModeResponse(self._claude(request.session_id).mode)

    async def set_mode(self, request: ari.SetModeRequest) -> ari.SetModeResponse:
        """Switch the mode."""
        session = self._claude(request.session_id)
        if not request.mode:
            raise InvalidArgument("mode: it is empty")
        self._check_choices("", request.mode, "")
        mode = await session.set_mode(request.mode)
        self._remember(request.session_id, mode=mode)
        return ari.SetModeResponse(mode)

    async def list_modes(self, request: ari.ListModesRequest) -> ari.ListModesResponse:
        """Return the modes that the operator lists."""
        self._claude(request.session_id)
        return ari.ListModesResponse(tuple(MODES[mode] for mode in self.options.modes))

    async def get_active_provider(
        self, request: ari.GetActiveProviderRequest
    ) -> ari.GetActiveProviderResponse:
        """Return the provider; empty if the environment determines it."""
        return ari.GetActiveProviderResponse(self._claude(request.session_id).provider)

    async def set_active_provider(
        self, request: ari.SetActiveProviderRequest
    ) -> ari.SetActiveProviderResponse:
        """Switch the provider: Claude Code is ended and started again for the same session.

        Raises:
            InvalidArgument: The provider does not exist.
            FailedPrecondition: A turn is active.
            Unavailable: Claude Code does not start again; the session has failed.
        """
        self._check_choices("", "", request.provider)
        async with self._lock(request.session_id):
            session = self.session(request.session_id)
            native = self._claude(request.session_id)
            session.feed.check_can_begin()
            if native.provider != request.provider:
                await native.aclose()
                self._remember(request.session_id, provider=request.provider)
                await self._restart(session)
        return ari.SetActiveProviderResponse(request.provider)

    async def _restart(self, session: OpenSession) -> None:
        feed, request = session.feed, session.request
        request = msgspec.structs.replace(request, session_id=feed.session_id)
        try:
            if await asyncio.to_thread(self._transcripts.path_of, feed.session_id) is None:
                session.native = await self._create(request, feed)
            else:
                fields = ari.ResumeSessionRequest.__struct_fields__
                given = {name: getattr(request, name) for name in fields}
                session.native = await self._resume(ari.ResumeSessionRequest(**given), feed)
        except AriError as failed:
            feed.lost(failed.message)
            raise

    async def list_providers(self, request: ari.ListProvidersRequest) -> ari.ListProvidersResponse:
        """Return the providers that the operator lists."""
        self._claude(request.session_id)
        return ari.ListProvidersResponse(tuple(map(ari.Choice, self.options.providers)))

    async def list_commands(self, request: ari.ListItemsRequest) -> ari.ListItemsResponse:
        """Return the commands that a message may begin with, after a slash."""
        return ari.ListItemsResponse(tuple(commands_of(self._claude(request.session_id).info)))

    async def compact_session(
        self, request: ari.CompactSessionRequest
    ) -> ari.CompactSessionResponse:
        """Make the conversation shorter, in a turn."""
        message = ari.RuntimeMessage(content=f"/compact {request.instructions}".strip())
        sent = await self.send_message(ari.SendMessageRequest(request.session_id, message))
        return ari.CompactSessionResponse(sent.turn_id)

    def process_id(self, session_id: str) -> int:
        """Return the id of an open session's process, for diagnosis; 0 if it has none."""
        process = self._claude(session_id).process
        return process.program_id if process is not None else 0

    # -- implementation --------------------------------------------------------------------------

    def _claude(self, session_id: str) -> ClaudeSession:
        native: Any = self.native_session(session_id)
        session: ClaudeSession = native
        return session

    def _remember(self, session_id: str, **chosen: str) -> None:
        """Store a choice, so that it is used when the session is opened again."""
        session = self.session(session_id)
        session.request = msgspec.structs.replace(session.request, **chosen)


def _type_with_sdk() -> type[ClaudeSession]:
    """Return the class that needs the SDK.

    Called in a thread, because the import takes a second.
    """
    from arp.runtime.programs.claude.session import ClaudeSession

    return ClaudeSession


def _ask_first() -> AskPolicy:
    """Return the rules about what Claude Code must ask. The SDK must have been imported."""
    from arp.runtime.programs.claude.asking import AskPolicy

    return AskPolicy()


def _start_error(failed: Unavailable, session_id: str) -> AriError:
    """Return the error for the text that Claude Code printed when it did not start."""
    if "No conversation found" in failed.message:
        return NotFound(f"there is no session {session_id!r:.80}")
    if "already in use" in failed.message:
        return AlreadyExists(f"session_id: {session_id!r:.80} is taken")
    return failed


def _mcp_file(servers: Sequence[ari.McpServer]) -> str:
    """Write the servers to a file that only this user can read; return its path.

    The path is empty if there are no servers. They are not an argument, because every user of the
    machine can read arguments, and the servers' settings have secrets.
    """
    if not servers:
        return ""
    handle, path = tempfile.mkstemp(prefix="arp-mcp-", suffix=".json")
    with os.fdopen(handle, "w") as file:
        json.dump({"mcpServers": {one.name: _mcp_server(one) for one in servers}}, file)
    return path


def _mcp_server(server: ari.McpServer) -> dict[str, Any]:
    if server.url.startswith(IN_PROCESS):
        return {"type": "sdk", "name": server.name}
    if server.url:
        return {"type": "http", "url": server.url, "headers": server.headers}
    return {
        "type": "stdio",
        "command": server.command,
        "args": list(server.args),
        "env": server.env,
    }


def check_part(part: ari.ContentPart, place: str) -> None:
    """Raise for a part of a supported type with an unsupported form.

    Raises:
        InvalidArgument: The form is not supported; the message names the part.
    """
    if part.type == "text":
        return
    if not part.data and not part.uri.startswith("https://"):
        raise InvalidArgument(f"{place}.uri: expected an address with https, or data")
    if part.type == "image":
        if part.data and part.mime_type not in IMAGE_TYPES:
            raise InvalidArgument(f"{place}.mime_type: expected {', '.join(sorted(IMAGE_TYPES))}")
    elif part.data and part.mime_type.startswith("text/"):
        try:
            part.data.decode()
        except UnicodeDecodeError:
            raise InvalidArgument(f"{place}.data: expected a text in UTF-8") from None
    elif part.data and part.mime_type not in FILE_TYPES:
        taken = ", ".join(sorted(FILE_TYPES))
        raise InvalidArgument(f"{place}.mime_type: expected {taken}, or text")
