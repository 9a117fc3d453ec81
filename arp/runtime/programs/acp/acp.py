"""`AcpRuntime`: any agent of the Agent Client Protocol, such as OpenCode, Gemini CLI or Qwen Code.

    runtime = AcpRuntime(["opencode", "acp"], cwd=project, environment={"PATH": …, "HOME": …})

One process serves all sessions of a runtime object. It starts with the first session. If it dies,
its sessions have failed; it starts again with the next session, and `resume_session` opens the
failed ones.

Agents differ in their capabilities: `status` starts the agent and lists the capabilities that it
reports. An agent decides itself what it asks, so permissions are `advisory`. The protocol has no
fields for the reason of a denial and for a changed input.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Literal

from arp.protocol.json_value import JsonObject
from arp.runtime.contract import types as ari
from arp.runtime.contract.driven import DrivenRuntime, OpenSession, check_message, no_session
from arp.runtime.contract.errors import (
    AriError,
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    RuntimeInternal,
    Unavailable,
    Unimplemented,
)
from arp.runtime.contract.feed import SessionFeed
from arp.runtime.programs.acp import messages as acp
from arp.runtime.programs.acp.session import AcpConnection, AcpSession

MAX_PAGES = 100
"""Largest number of pages that are read of a list of sessions."""
MAX_LISTED = 1_000
CHOICES = {"choices": "those of each session, perhaps none"}
"""Details of the capabilities `model` and `mode`: an agent reports the choices with each new
session, not before."""
ENDED = (ari.SessionState.CLOSED, ari.SessionState.FAILED)


class AcpRuntime(DrivenRuntime):
    """An agent of the Agent Client Protocol.

    Args:
        command: The agent and its arguments. A name without a slash is searched in the `PATH` of
            the environment.
        cwd: Directory of the runtime. Sessions work in it by default, and always at or below it.
        environment: Complete environment of the agent.
        name: Name of the runtime; if empty, the name of the program.
    """

    name = "acp"
    permission: ClassVar[Literal["enforced", "advisory", "none"]] = "advisory"
    takes: ClassVar[frozenset[str]] = frozenset({"model", "mode", "mcp_servers"})

    def __init__(
        self,
        command: Sequence[str],
        *,
        cwd: str | Path = ".",
        environment: Mapping[str, str],
        name: str = "",
    ) -> None:
        super().__init__(cwd=cwd)
        if not command:
            raise InvalidArgument('command: it is empty; expected such as ["opencode", "acp"]')
        self.command = tuple(command)
        self.environment = dict(environment)
        self.name = name or os.path.basename(command[0])  # type: ignore[misc]  # of this object
        self._connection: AcpConnection | None = None
        self._starting = asyncio.Lock()

    # -- the agent -------------------------------------------------------------------------------

    async def connection(self) -> AcpConnection:
        """Return the process; start it if it does not run.

        Raises:
            Unavailable: It cannot be started.
        """
        async with self._starting:
            self._check_open()
            if self._connection is None or not self._connection.is_running:
                command = [self._program(), *self.command[1:]]
                connection = AcpConnection(self.name)
                await connection.start(command, self.environment, self.cwd)
                self._connection = connection
            return self._connection

    def _program(self) -> str:
        """Return the path of the program.

        Raises:
            Unavailable: It does not exist.
        """
        program = self.command[0]
        found = shutil.which(program, path=self.environment.get("PATH", ""))
        if found is None:
            where = "" if "/" in program else " in the PATH of its environment"
            raise Unavailable(f"there is no program {program}{where}: install it, or name its path")
        return os.path.abspath(found)

    async def _problem(self) -> str:
        try:
            await self.connection()
        except AriError as failed:
            return failed.message
        return ""

    async def _runtime_version(self) -> str:
        return self._connection.version if self._connection is not None else ""

    async def _info(self) -> Mapping[str, str]:
        connection = self._connection
        if connection is None or not connection.is_running:
            return {}
        return {"process_id": str(connection.process_id), "version": connection.version}

    def _capabilities(self) -> Sequence[ari.Capability]:
        can = self._abilities()
        rules = {"rules": "those that the agent offers; it does not say what they cover"}
        modes = {"asks": " ".join(acp.ASKING_MODES)}
        transports = "stdio, http" if can.mcp_capabilities.get("http") else "stdio"
        embeds = can.prompt_capabilities.embedded_context
        files = {"file": "data, or a link" if embeds else "a link"}
        return (
            ari.Capability("permission_rules", details=rules),
            ari.Capability("updated_input", enabled=False),
            ari.Capability("deny_message", enabled=False),
            ari.Capability("deny_interrupt", details={"deny_continues": "unknown"}),
            ari.Capability("resume_session", enabled=self._can_resume(can)),
            ari.Capability("list_sessions", enabled=can.has("list")),
            ari.Capability("delete_session", enabled=can.has("delete")),
            ari.Capability("cancel_turn"),
            ari.Capability("history", enabled=bool(can.load_session)),
            ari.Capability("model", applies_to="next_turn", details=CHOICES),
            ari.Capability("mode", applies_to="next_turn", details=CHOICES | modes),
            ari.Capability("commands"),
            ari.Capability("mcp_servers", details={"transports": transports}),
            ari.Capability("parts", details={"types": ", ".join(sorted(can.part_types)), **files}),
        )

    def _abilities(self) -> acp.AgentAbilities:
        return acp.AgentAbilities() if self._connection is None else self._connection.abilities

    def _can_resume(self, can: acp.AgentAbilities) -> bool:
        return can.has("resume") or bool(can.load_session)

    async def _begin(self) -> None:
        self._starting, self._connection = asyncio.Lock(), None

    async def _end(self) -> None:
        async with self._starting:
            if self._connection is not None:
                await self._connection.stop()

    # -- sessions --------------------------------------------------------------------------------

    async def _create(self, request: ari.CreateSessionRequest, feed: SessionFeed) -> AcpSession:
        connection = await self.connection()
        if request.session_id:
            # The session has had no turn. A new session would get another id, so the agent must
            # still have this one.
            return await self._reopen_session(connection, request, feed)
        place = self._place(connection, request)
        answer = await connection.call("session/new", place)
        if not isinstance(answer, dict) or not isinstance(answer.get("sessionId"), str):
            raise RuntimeInternal(f"{self.name} created a session without an id")
        session = AcpSession(connection, feed, answer["sessionId"], place)
        session.set_up(answer, is_new=True)
        connection.add(session.session_id, session)
        return await self._with_choices(session, request)

    async def _resume(self, request: ari.ResumeSessionRequest, feed: SessionFeed) -> AcpSession:
        connection = await self.connection()
        if request.session_id in connection.left:
            return await self._reopen_session(connection, request, feed)
        if not self._can_resume(connection.abilities):
            raise Unimplemented(f"resume_session: {self.name} cannot open sessions again")
        if connection.abilities.has("list") and await self._find(request.session_id) is None:
            # Some agents open any unknown id as a new session.
            raise no_session(request.session_id)
        return await self._reopen_session(connection, request, feed)

    async def _reopen_session(
        self,
        connection: AcpConnection,
        request: ari.CreateSessionRequest | ari.ResumeSessionRequest,
        feed: SessionFeed,
    ) -> AcpSession:
        place = self._place(connection, request)
        session = AcpSession(connection, feed, request.session_id, place)
        left = connection.left.pop(request.session_id, None)
        if left is not None and left.place == place:
            session.set_up_as(left)
            connection.add(session.session_id, session)
            return await self._with_choices(session, request)
        params = place | {"sessionId": request.session_id}
        session.is_replaying = True
        connection.add(session.session_id, session)
        try:
            session.set_up(await self._resume_or_load(session, params))
        except (FailedPrecondition, Unavailable, Unimplemented):
            connection.drop(session)
            raise
        except AriError as refused:
            connection.drop(session)
            raise self._not_opened_error(request.session_id, refused) from refused
        return await self._with_choices(session, request)

    def _not_opened_error(self, session_id: str, refused: AriError) -> NotFound:
        """Return the error for a session that the agent does not open.

        The protocol has no error code for an unknown session.
        """
        return NotFound(
            f"{self.name} does not open the session {session_id!r:.80}: {refused.message}"
        )

    async def _resume_or_load(self, session: AcpSession, params: JsonObject) -> JsonObject:
        """Resume a session, which repeats nothing, or load it, which repeats its history."""
        connection = session.connection
        can, answer = connection.abilities, None
        if can.has("resume"):
            try:
                answer = await connection.call("session/resume", params)
            except Unimplemented:
                # Some agents advertise the method without having it.
                if not can.load_session:
                    raise
        if answer is None and can.load_session:
            answer = await connection.call("session/load", params)
            await session.replayed()
        elif answer is None:
            raise Unimplemented(f"resume_session: {self.name} cannot open sessions again")
        session.is_replaying = False
        return answer if isinstance(answer, dict) else {}

    def _place(
        self,
        connection: AcpConnection,
        request: ari.CreateSessionRequest | ari.ResumeSessionRequest,
    ) -> JsonObject:
        servers = acp.mcp_servers_of(request.mcp_servers, connection.abilities)
        return {"cwd": request.cwd or str(self.cwd), "mcpServers": servers}

    async def _with_choices(
        self,
        session: AcpSession,
        request: ari.CreateSessionRequest | ari.ResumeSessionRequest,
    ) -> AcpSession:
        """Switch a session to the model and the mode of a request.

        If the request has no mode, the session gets a mode that is known to ask.
        """
        try:
            if request.model and request.model != session.model:
                self._check_switched("model", request.model, await session.set_model(request.model))
            if request.mode and request.mode != session.mode:
                self._check_switched("mode", request.mode, await session.set_mode(request.mode))
            elif not request.mode:
                await self._switch_to_asking_mode(session)
        except BaseException:
            await session.aclose()
            raise
        return session

    def _check_switched(self, field: str, wanted: str, took: str) -> None:
        if took != wanted:
            raise InvalidArgument(f"{field}: {self.name} took {took!r:.80} instead of {wanted!r}")

    async def _switch_to_asking_mode(self, session: AcpSession) -> None:
        """Switch to a mode that is known to ask, unless the agent began with one."""
        modes = session.modes
        if modes is None or modes.current in acp.ASKING_MODES:
            return
        wanted = next((mode for mode in acp.ASKING_MODES if modes.has(mode)), "")
        if not wanted:
            session.warnings.append(
                f"the mode {modes.current!r:.80} is not known to ask before it changes something"
            )
            return
        self._check_switched("mode", wanted, await session.set_mode(wanted))

    def _opened(self, session: OpenSession) -> None:
        assert isinstance(session.native, AcpSession)
        session.native.opened()

    async def _stored(self, cwd: str) -> Sequence[ari.RuntimeSession]:
        found: list[ari.RuntimeSession] = []
        async for one in self._listed(cwd):
            if self.is_inside(one):
                found.append(one)
            if len(found) >= MAX_LISTED:
                break
        return found

    async def _find(self, session_id: str) -> ari.RuntimeSession | None:
        async for one in self._listed(""):
            if one.session_id == session_id:
                return one
        return None

    async def _listed(self, cwd: str) -> AsyncIterator[ari.RuntimeSession]:
        connection = await self.connection()
        if not connection.abilities.has("list"):
            return
        params: JsonObject = {"cwd": cwd} if cwd else {}
        for _ in range(MAX_PAGES):
            page = acp.parse_answer(
                await connection.call("session/list", params), acp.AcpSessionPage
            )
            for one in page.sessions:
                yield one.value(self.name)
            if not page.next_cursor:
                return
            params["cursor"] = page.next_cursor

    async def delete_session(self, request: ari.DeleteSessionRequest) -> ari.DeleteSessionResponse:
        """Close and delete a session, if the agent can delete sessions."""
        connection = await self.connection()
        if not connection.abilities.has("delete"):
            raise Unimplemented(f"delete_session: {self.name} cannot delete sessions")
        return await super().delete_session(request)

    async def _forget(self, session_id: str) -> None:
        connection = await self.connection()
        connection.left.pop(session_id, None)
        try:
            await connection.call("session/delete", {"sessionId": session_id})
        except (NotFound, InvalidArgument, RuntimeInternal):
            # The protocol has no error code for a session that does not exist.
            if await self._find(session_id) is not None:
                raise

    async def get_session_history(
        self, request: ari.GetSessionHistoryRequest
    ) -> ari.GetSessionHistoryResponse:
        """Return the messages of a session, oldest first, as the agent repeats them.

        Raises:
            Unimplemented: The agent cannot load sessions.
            NotFound: The session does not exist.
            FailedPrecondition: A turn of the session is active.
        """
        self._check_open()
        if not 1 <= request.limit <= 10_000:
            raise InvalidArgument(f"limit: expected 1 to 10000, got {request.limit}")
        connection = await self.connection()
        if not connection.abilities.load_session:
            raise Unimplemented(f"history: {self.name} cannot load sessions")
        async with self._lock(request.session_id):
            messages = await self._read_repeated_history(connection, request.session_id)
        return ari.GetSessionHistoryResponse(messages[-request.limit :])

    async def _read_repeated_history(
        self, connection: AcpConnection, session_id: str
    ) -> tuple[ari.RuntimeMessage, ...]:
        """Return the messages of a session; open the session for this if it is not open."""
        known = self._sessions.get(session_id)
        if known is not None and known.feed.state not in ENDED:
            assert isinstance(known.native, AcpSession)
            return await known.native.read_history()
        cwd = known.request.cwd if known is not None else str(self.cwd)
        if connection.abilities.has("list"):
            stored = await self.find_inside(session_id)
            if stored is None:
                raise no_session(session_id)
            cwd = self._own_cwd(stored) if known is None else cwd
        temporary = OpenSession(self, ari.CreateSessionRequest(session_id=session_id, cwd=cwd))
        place = self._place(connection, temporary.request)
        session = AcpSession(connection, temporary.feed, session_id, place)
        connection.left.pop(session_id, None)
        connection.add(session.session_id, session)
        try:
            return await session.read_history()
        except (InvalidArgument, RuntimeInternal) as refused:
            raise self._not_opened_error(session_id, refused) from refused
        finally:
            await session.aclose()

    def _check_message(self, message: ari.RuntimeMessage) -> None:
        can = self._abilities()
        check_message(message, can.part_types)
        acp.prompt_of(message, can)

    async def respond_permission(
        self, request: ari.RespondPermissionRequest
    ) -> ari.RespondPermissionResponse:
        """Answer a permission request."""
        pending = self.session(request.session_id).feed.pending.get(request.request_id)
        if pending is not None and isinstance(pending.native, acp.AcpQuestion):
            pending.native.check(request.response)
        return await super().respond_permission(request)

    # -- switches --------------------------------------------------------------------------------

    async def get_model(self, request: ari.GetModelRequest) -> ari.GetModelResponse:
        """Return the model that the agent reports."""
        return ari.GetModelResponse(self._session(request.session_id).model)

    async def set_model(self, request: ari.SetModelRequest) -> ari.SetModelResponse:
        """Switch the model."""
        model = await self._session(request.session_id).set_model(request.model)
        return ari.SetModelResponse(model)

    async def list_models(self, request: ari.ListModelsRequest) -> ari.ListModelsResponse:
        """Return the models that the agent offers."""
        choices = self._session(request.session_id).models
        return ari.ListModelsResponse(choices.all if choices is not None else ())

    async def get_mode(self, request: ari.GetModeRequest) -> ari.GetModeResponse:
        """Return the mode that the agent reports."""
        return ari.GetModeResponse(self._session(request.session_id).mode)

    async def set_mode(self, request: ari.SetModeRequest) -> ari.SetModeResponse:
        """Switch the mode."""
        mode = await self._session(request.session_id).set_mode(request.mode)
        return ari.SetModeResponse(mode)

    async def list_modes(self, request: ari.ListModesRequest) -> ari.ListModesResponse:
        """Return the modes that the agent offers; `asks` is true if a mode is known to ask."""
        choices = self._session(request.session_id).modes
        return ari.ListModesResponse(choices.all if choices is not None else ())

    async def list_commands(self, request: ari.ListItemsRequest) -> ari.ListItemsResponse:
        """Return the commands that a message may begin with, after a slash."""
        return ari.ListItemsResponse(await self._session(request.session_id).listed_commands())

    def _session(self, session_id: str) -> AcpSession:
        session = self.native_session(session_id)
        assert isinstance(session, AcpSession)
        return session
