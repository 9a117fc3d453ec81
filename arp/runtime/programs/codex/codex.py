"""`CodexRuntime`: Codex (`codex app-server`) as an agent runtime; needs the extra `codex`.

    runtime = CodexRuntime(cwd=project, environment={"PATH": …, "HOME": …, "CODEX_HOME": …})

One process serves all sessions of a runtime object; a session is a thread of Codex. The process
starts with the first session. If it dies, its sessions have failed; it starts again with the next
session, and `resume_session` opens the failed ones.

Only the user answers the requests of Codex: the reviewer of approvals is always set to `user`,
regardless of the configuration. Inside its sandbox Codex runs commands without asking, except in
the mode `ask`, so its permissions are `advisory`.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import ClassVar, Literal

from arp.process.program import TIMED_OUT, ProgramStart, run_program
from arp.protocol.json_value import JsonObject
from arp.runtime.contract import types as ari
from arp.runtime.contract.driven import DrivenRuntime, no_session
from arp.runtime.contract.errors import (
    AriError,
    InvalidArgument,
    NotFound,
    Unavailable,
    Unimplemented,
    status_of,
)
from arp.runtime.contract.feed import SessionFeed, one_line
from arp.runtime.programs.codex import messages as codex
from arp.runtime.programs.codex.server import UNNAMED, CodexServer, CodexThread
from arp.runtime.programs.program_version import ProgramVersions

OLDEST = "0.163.0"
"""Oldest tested version; the protocol of older versions has other methods."""
SANDBOX_S = 10.0
"""Seconds that the check of the sandbox may take."""
THREADS_OF_A_PAGE = 100


class CodexRuntime(DrivenRuntime):
    """Codex as an agent runtime.

    Args:
        cwd: Directory of the runtime. Sessions work in it by default, and always at or below it.
        environment: Complete environment of Codex; `CODEX_HOME` or `HOME` determines the directory
            of its configuration, its login and its sessions.
        mode: Default mode of sessions, one of `MODES` in `messages`.
        program: Path of `codex`; `None` means the program of the extra `codex`, or else on the
            `PATH`.
        own_tools: Whether models get Codex's own tools. If false, they get the tools of MCP
            servers, and `apply_patch`, which Codex cannot leave out. It changes files, and asks
            first in modes that ask.
    """

    name = "codex"
    permission: ClassVar[Literal["enforced", "advisory", "none"]] = "advisory"
    part_types: ClassVar[frozenset[str]] = frozenset({"text", "image"})
    takes: ClassVar[frozenset[str]] = frozenset(
        {"model", "mode", "provider", "instructions", "mcp_servers"}
    )

    def __init__(
        self,
        *,
        environment: Mapping[str, str],
        cwd: str | Path = ".",
        mode: str = codex.DEFAULT_MODE,
        program: str | None = None,
        own_tools: bool = True,
    ) -> None:
        super().__init__(cwd=cwd)
        codex.check_mode(mode)
        self.own_tools = own_tools
        self.environment = dict(environment)
        self.mode = mode
        self._program = program
        self._server: CodexServer | None = None
        self._starting = asyncio.Lock()
        self._sandbox_problem: str | None = None
        self._versions = ProgramVersions("Codex", OLDEST)

    # -- sessions --------------------------------------------------------------------------------

    async def _create(self, request: ari.CreateSessionRequest, feed: SessionFeed) -> CodexThread:
        params = self._params(request)
        server = await self.server()
        opened = await server.open("thread/start", params)
        thread = self._register(CodexThread(server, feed, opened, params), request.mode)
        # Codex writes a thread to disk when it gets a name. Without a name, a process that dies
        # before the first turn would lose the session.
        name = one_line(request.title) or UNNAMED
        await server.call("thread/name/set", {"threadId": thread.session_id, "name": name})
        thread.needs_name = not request.title
        return thread

    async def _resume(self, request: ari.ResumeSessionRequest, feed: SessionFeed) -> CodexThread:
        params = self._params(request)
        server = await self.server()
        stored = await self._read(request.session_id)
        if stored is None:
            raise no_session(request.session_id)
        which = {"threadId": request.session_id, "excludeTurns": True}
        opened = await server.open("thread/resume", params | which)
        thread = self._register(CodexThread(server, feed, opened, params), request.mode)
        thread.needs_name = stored.name == UNNAMED
        return thread

    def _params(self, request: ari.CreateSessionRequest | ari.ResumeSessionRequest) -> JsonObject:
        """Return the parameters that start or resume a thread.

        Raises:
            InvalidArgument: A field has a value that Codex does not support.
        """
        params = codex.thread_params(mode=request.mode or self.mode)
        params |= {
            "cwd": request.cwd,
            "model": request.model,
            "modelProvider": request.provider,
            "developerInstructions": request.instructions,
            "config": codex.mcp_config(request.mcp_servers)
            | ({} if self.own_tools else codex.NO_OWN_TOOLS),
        }
        return {name: value for name, value in params.items() if value}

    def _register(self, thread: CodexThread, mode: str) -> CodexThread:
        """Register a thread, so that it receives its messages from Codex; return the thread.

        Raises:
            InvalidArgument: The requested mode asks for permission, but Codex uses another mode.
        """
        wanted = mode or self.mode
        if thread.mode != wanted and codex.MODES[wanted].choice.asks:
            # The configuration of a machine can override the request.
            raise InvalidArgument(f"mode: Codex took {thread.mode!r} instead of {wanted!r}")
        thread.server.add(thread.session_id, thread)
        return thread

    async def _stored(self, cwd: str) -> Sequence[ari.RuntimeSession]:
        server = await self.server()
        params: JsonObject = {"modelProviders": [], "archived": False, "limit": THREADS_OF_A_PAGE}
        if cwd:
            params["cwd"] = cwd
        found: list[ari.RuntimeSession] = []
        while len(found) < 1_000:
            page = await server.call("thread/list", params)
            threads = codex.parse_answer(page["data"], list[codex.StoredThread])
            listed = [codex.session_of(thread, self.name) for thread in threads]
            found += [one for one in listed if self.is_inside(one)]
            if not page.get("nextCursor"):
                break
            params["cursor"] = page["nextCursor"]
        return found

    async def _find(self, session_id: str) -> ari.RuntimeSession | None:
        stored = await self._read(session_id)
        return codex.session_of(stored, self.name) if stored is not None else None

    async def _read(self, session_id: str, *, turns: bool = False) -> codex.StoredThread | None:
        server = await self.server()
        params = {"threadId": session_id, "includeTurns": turns}
        try:
            answer = await server.call("thread/read", params)
        except NotFound:
            return None
        except Unimplemented:
            # Codex cannot list the turns of a thread that has none.
            return await self._read(session_id) if turns else None
        return codex.parse_answer(answer["thread"], codex.StoredThread)

    async def _forget(self, session_id: str) -> None:
        server = await self.server()
        with suppress(NotFound):
            await server.call("thread/delete", {"threadId": session_id})

    async def get_session_history(
        self, request: ari.GetSessionHistoryRequest
    ) -> ari.GetSessionHistoryResponse:
        """Return the messages of a session, oldest first."""
        self._check_open()
        if not 1 <= request.limit <= 10_000:
            raise InvalidArgument(f"limit: expected 1 to 10000, got {request.limit}")
        stored = await self._read(request.session_id, turns=True)
        if stored is None or not self.is_inside(codex.session_of(stored, self.name)):
            raise no_session(request.session_id)
        return ari.GetSessionHistoryResponse(
            tuple(codex.messages_of(stored.turns)[-request.limit :])
        )

    def _check_message(self, message: ari.RuntimeMessage) -> None:
        super()._check_message(message)
        codex.input_of(message)

    # -- switches --------------------------------------------------------------------------------

    async def get_model(self, request: ari.GetModelRequest) -> ari.GetModelResponse:
        """Return the model that Codex reports."""
        return ari.GetModelResponse(self._thread(request.session_id).model)

    async def set_model(self, request: ari.SetModelRequest) -> ari.SetModelResponse:
        """Set the model for the next turn and all later ones; Codex accepts any name."""
        if not request.model.strip():
            raise InvalidArgument("model: it is empty")
        thread = self._thread(request.session_id)
        thread.switch_model(request.model)
        return ari.SetModelResponse(thread.model)

    async def list_models(self, request: ari.ListModelsRequest) -> ari.ListModelsResponse:
        """Return the models that Codex knows; another provider may serve others."""
        thread = self._thread(request.session_id)
        answer = await thread.server.call("model/list", {})
        return ari.ListModelsResponse(
            tuple(
                ari.Choice(one["model"], one.get("displayName", ""), one.get("description", ""))
                for one in answer["data"]
                if not one.get("hidden")
            )
        )

    async def get_mode(self, request: ari.GetModeRequest) -> ari.GetModeResponse:
        """Return the mode that Codex reports."""
        return ari.GetModeResponse(self._thread(request.session_id).mode)

    async def set_mode(self, request: ari.SetModeRequest) -> ari.SetModeResponse:
        """Set the mode for the next turn and all later ones."""
        thread = self._thread(request.session_id)
        codex.check_mode(request.mode)
        thread.switch_mode(request.mode)
        return ari.SetModeResponse(thread.mode)

    async def list_modes(self, request: ari.ListModesRequest) -> ari.ListModesResponse:
        """Return the modes, and which of them ask for permission."""
        self._thread(request.session_id)
        return ari.ListModesResponse(tuple(mode.choice for mode in codex.MODES.values()))

    async def get_active_provider(
        self, request: ari.GetActiveProviderRequest
    ) -> ari.GetActiveProviderResponse:
        """Return the provider that Codex reports."""
        return ari.GetActiveProviderResponse(self._thread(request.session_id).provider)

    async def set_active_provider(
        self, request: ari.SetActiveProviderRequest
    ) -> ari.SetActiveProviderResponse:
        """Set the provider for the next turn and all later ones.

        Raises:
            FailedPrecondition: A turn is active.
            InvalidArgument: The provider does not exist.
        """
        thread = self._thread(request.session_id)
        thread.feed.check_can_begin()
        if not request.provider:
            raise InvalidArgument("provider: it is empty")
        await thread.switch_provider(request.provider)
        return ari.SetActiveProviderResponse(thread.provider)

    async def list_providers(self, request: ari.ListProvidersRequest) -> ari.ListProvidersResponse:
        """Return the provider that Codex includes, and those of its configuration."""
        thread = self._thread(request.session_id)
        answer = await thread.server.call("config/read", {"cwd": thread.cwd})
        configured = answer["config"].get("model_providers") or {}
        choices = {"openai": ari.Choice("openai", "OpenAI")}
        for provider, config in configured.items():
            choices[provider] = ari.Choice(provider, str(config.get("name") or provider))
        return ari.ListProvidersResponse(tuple(choices.values()))

    async def list_memory_files(self, request: ari.ListItemsRequest) -> ari.ListItemsResponse:
        """Return the files with instructions that Codex has read, such as `AGENTS.md`."""
        thread = self._thread(request.session_id)
        files = [Path(path) for path in thread.instruction_sources]
        return ari.ListItemsResponse(
            tuple(ari.ListedItem(path.name, path=str(path)) for path in files)
        )

    async def list_skills(self, request: ari.ListItemsRequest) -> ari.ListItemsResponse:
        """Return the skills that Codex finds for the directory of a session."""
        thread = self._thread(request.session_id)
        answer = await thread.server.call("skills/list", {"cwds": [thread.cwd]})
        return ari.ListItemsResponse(
            tuple(
                ari.ListedItem(
                    skill["name"], skill.get("description") or "", skill.get("path") or ""
                )
                for one in answer["data"]
                for skill in one["skills"]
                if skill.get("enabled", True)
            )
        )

    async def compact_session(
        self, request: ari.CompactSessionRequest
    ) -> ari.CompactSessionResponse:
        """Make the conversation shorter, in a turn."""
        if request.instructions:
            raise Unimplemented("instructions: codex cannot take any for this")
        thread = self._thread(request.session_id)
        turn_id = thread.feed.begin()
        try:
            await thread.compact()
        except Exception as failed:  # noqa: BLE001 - the turn has begun: it ends with the error
            thread.feed.error(status_of(failed))
        return ari.CompactSessionResponse(turn_id)

    def _thread(self, session_id: str) -> CodexThread:
        thread = self.native_session(session_id)
        assert isinstance(thread, CodexThread)
        return thread

    # -- the runtime -----------------------------------------------------------------------------

    async def server(self) -> CodexServer:
        """Return the process; start it if it does not run.

        Raises:
            Unavailable: It cannot be started.
        """
        async with self._starting:
            self._check_open()
            if self._server is None or not self._server.is_running:
                self._server = await self._start_server()
            return self._server

    def _path(self) -> str:
        """Return the path of the program.

        Raises:
            Unavailable: It is not installed.
        """
        if self._program is not None:
            return self._program
        try:
            from codex_cli_bin import bundled_codex_path

            return str(bundled_codex_path())
        except (ImportError, FileNotFoundError):
            found = shutil.which("codex", path=self.environment.get("PATH", ""))
        if found is None:
            raise Unavailable(
                "codex is not installed: pip install 'agent-rendering-protocol[codex]', "
                "or put codex on the PATH of its environment"
            )
        return found

    async def _start_server(self) -> CodexServer:
        """Start a process.

        Raises:
            Unavailable: It does not start; if it is too old, the message says so.
        """
        path = self._path()
        server = CodexServer()
        try:
            await server.start([path, "app-server"], self.environment, self.cwd)
        except Unavailable:
            version = await self._versions.of(path, self.environment, self.cwd)
            if too_old := self._versions.problem(version):
                raise Unavailable(too_old) from None
            raise
        return server

    async def _runtime_version(self) -> str:
        return self._server.version if self._server is not None else ""

    async def _problem(self) -> str:
        try:
            server = await self.server()
            account = await server.call("account/read", {})
        except AriError as failed:
            return failed.message
        if account.get("requiresOpenaiAuth") and not account.get("account"):
            return (
                "Codex is not logged in: run `codex login` with the same CODEX_HOME, or set "
                "a model_provider in its config.toml"
            )
        return ""

    async def _shortcoming(self) -> str:
        if too_old := self._versions.problem(await self._runtime_version()):
            return too_old
        if self._sandbox_problem is None:
            self._sandbox_problem = await self._check_sandbox()
        return self._sandbox_problem

    async def _check_sandbox(self) -> str:
        """Return what is wrong with the sandbox of Codex, and what to do; empty if it works."""
        command = [self._path(), "sandbox", "--", "/bin/sh", "-c", "exit 0"]
        start = ProgramStart(command, self.environment, str(self.cwd))
        result = await run_program(start, SANDBOX_S)
        if result.exit_code == 0:
            return ""
        timed_out = result.exit_code == TIMED_OUT
        reason = "it did not end" if timed_out else one_line(result.cause())
        return (
            "the sandbox of Codex does not work here, so commands in it fail and Codex asks for "
            "each: allow user namespaces; or, where the machine is a sandbox itself, take the "
            f"mode full-access, which never asks ({reason})"
        )

    def _capabilities(self) -> Sequence[ari.Capability]:
        names = (
            *("instructions", "mcp_servers", "resume_session", "list_sessions", "delete_session"),
            *("cancel_turn", "history", "memory", "skills", "compaction"),
        )
        asks = [mode_id for mode_id, mode in codex.MODES.items() if mode.choice.asks]
        return (
            *map(ari.Capability, names),
            ari.Capability("parts", details={"types": ", ".join(sorted(self.part_types))}),
            ari.Capability("permission_rules", details={"rules": "those that Codex offers"}),
            ari.Capability("updated_input", details={"kinds": "question"}),
            ari.Capability("deny_message"),
            ari.Capability("deny_interrupt", details={"deny_continues": "yes"}),
            ari.Capability("model", applies_to="next_turn"),
            ari.Capability("mode", applies_to="next_turn", details={"asks": " ".join(asks)}),
            ari.Capability("provider", applies_to="next_turn"),
        )

    async def _info(self) -> Mapping[str, str]:
        server = self._server
        if server is None or not server.is_running:
            return {}
        return {"process_id": str(server.process_id), "program": self._path()}

    async def _begin(self) -> None:
        self._starting = asyncio.Lock()

    async def _end(self) -> None:
        async with self._starting:
            if self._server is not None:
                await self._server.stop()
