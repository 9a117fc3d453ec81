"""`RemoteRuntime`: what clients of a remote runtime share, however the bytes travel.

A client is a `RuntimeService` itself. It has the methods of every optional service; what the
runtime at the other end cannot do is `Unimplemented` there, and its `status` lists what it can.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from typing import TypeVar

import msgspec

from arp.runtime.contract import types as ari
from arp.runtime.contract.errors import FailedPrecondition
from arp.runtime.contract.services import EventSubscription
from arp.runtime.contract.threads import ThreadsafeRuntime

R = TypeVar("R", bound=msgspec.Struct)


class RemoteRuntime(ABC):
    """A runtime in another process or on another machine."""

    name = "remote"
    runs_commands = True
    """Whether its agents may run commands, and may do so on this machine."""

    @abstractmethod
    async def _call(self, method: str, request: msgspec.Struct, response: type[R]) -> R:
        """Call a method at the other end.

        Raises:
            AriError: As the method does; `Unavailable` if the other end cannot be reached.
        """

    @abstractmethod
    async def session_events(self, request: ari.SessionEventsRequest) -> EventSubscription:
        """As `EventManager.session_events`; a connection that breaks is made again."""

    @abstractmethod
    async def open(self) -> None:
        """Connect again after `close`, also in another event loop; a new runtime is open."""

    @abstractmethod
    async def close(self, request: ari.CloseRequest | None = None) -> ari.CloseResponse:
        """Close the connection; the runtime at the other end goes on. May be called again."""

    def threadsafe(self) -> ThreadsafeRuntime:
        """Return a handle for other threads; called in the loop of the runtime."""
        return ThreadsafeRuntime(self, asyncio.get_running_loop())

    async def version(self, request: ari.VersionRequest) -> ari.VersionResponse:
        """As `RuntimeVersioner.version`."""
        return await self._call("version", request, ari.VersionResponse)

    async def status(self, request: ari.StatusRequest) -> ari.StatusResponse:
        """As `RuntimeStatuser.status`."""
        return await self._call("status", request, ari.StatusResponse)

    async def create_session(self, request: ari.CreateSessionRequest) -> ari.CreateSessionResponse:
        """As `SessionManager.create_session`."""
        return await self._call("create_session", request, ari.CreateSessionResponse)

    async def resume_session(self, request: ari.ResumeSessionRequest) -> ari.ResumeSessionResponse:
        """As `SessionManager.resume_session`."""
        return await self._call("resume_session", request, ari.ResumeSessionResponse)

    async def get_session(self, request: ari.GetSessionRequest) -> ari.GetSessionResponse:
        """As `SessionManager.get_session`."""
        return await self._call("get_session", request, ari.GetSessionResponse)

    async def list_sessions(self, request: ari.ListSessionsRequest) -> ari.ListSessionsResponse:
        """As `SessionManager.list_sessions`."""
        return await self._call("list_sessions", request, ari.ListSessionsResponse)

    async def close_session(self, request: ari.CloseSessionRequest) -> ari.CloseSessionResponse:
        """As `SessionManager.close_session`."""
        return await self._call("close_session", request, ari.CloseSessionResponse)

    async def delete_session(self, request: ari.DeleteSessionRequest) -> ari.DeleteSessionResponse:
        """As `SessionManager.delete_session`."""
        return await self._call("delete_session", request, ari.DeleteSessionResponse)

    async def send_message(self, request: ari.SendMessageRequest) -> ari.SendMessageResponse:
        """As `InteractionManager.send_message`."""
        return await self._call("send_message", request, ari.SendMessageResponse)

    async def respond_permission(
        self, request: ari.RespondPermissionRequest
    ) -> ari.RespondPermissionResponse:
        """As `InteractionManager.respond_permission`."""
        return await self._call("respond_permission", request, ari.RespondPermissionResponse)

    async def cancel_turn(self, request: ari.CancelTurnRequest) -> ari.CancelTurnResponse:
        """As `InteractionManager.cancel_turn`."""
        return await self._call("cancel_turn", request, ari.CancelTurnResponse)

    async def get_session_history(
        self, request: ari.GetSessionHistoryRequest
    ) -> ari.GetSessionHistoryResponse:
        """As `HistoryManager.get_session_history`."""
        return await self._call("get_session_history", request, ari.GetSessionHistoryResponse)

    async def get_model(self, request: ari.GetModelRequest) -> ari.GetModelResponse:
        """As `ModelManager.get_model`."""
        return await self._call("get_model", request, ari.GetModelResponse)

    async def set_model(self, request: ari.SetModelRequest) -> ari.SetModelResponse:
        """As `ModelManager.set_model`."""
        return await self._call("set_model", request, ari.SetModelResponse)

    async def list_models(self, request: ari.ListModelsRequest) -> ari.ListModelsResponse:
        """As `ModelManager.list_models`."""
        return await self._call("list_models", request, ari.ListModelsResponse)

    async def get_mode(self, request: ari.GetModeRequest) -> ari.GetModeResponse:
        """As `ModeManager.get_mode`."""
        return await self._call("get_mode", request, ari.GetModeResponse)

    async def set_mode(self, request: ari.SetModeRequest) -> ari.SetModeResponse:
        """As `ModeManager.set_mode`."""
        return await self._call("set_mode", request, ari.SetModeResponse)

    async def list_modes(self, request: ari.ListModesRequest) -> ari.ListModesResponse:
        """As `ModeManager.list_modes`."""
        return await self._call("list_modes", request, ari.ListModesResponse)

    async def get_active_provider(
        self, request: ari.GetActiveProviderRequest
    ) -> ari.GetActiveProviderResponse:
        """As `ProviderManager.get_active_provider`."""
        return await self._call("get_active_provider", request, ari.GetActiveProviderResponse)

    async def set_active_provider(
        self, request: ari.SetActiveProviderRequest
    ) -> ari.SetActiveProviderResponse:
        """As `ProviderManager.set_active_provider`."""
        return await self._call("set_active_provider", request, ari.SetActiveProviderResponse)

    async def list_providers(self, request: ari.ListProvidersRequest) -> ari.ListProvidersResponse:
        """As `ProviderManager.list_providers`."""
        return await self._call("list_providers", request, ari.ListProvidersResponse)

    async def list_memory_files(self, request: ari.ListItemsRequest) -> ari.ListItemsResponse:
        """As `MemoryManager.list_memory_files`."""
        return await self._call("list_memory_files", request, ari.ListItemsResponse)

    async def list_skills(self, request: ari.ListItemsRequest) -> ari.ListItemsResponse:
        """As `SkillManager.list_skills`."""
        return await self._call("list_skills", request, ari.ListItemsResponse)

    async def list_commands(self, request: ari.ListItemsRequest) -> ari.ListItemsResponse:
        """As `CommandManager.list_commands`."""
        return await self._call("list_commands", request, ari.ListItemsResponse)

    async def compact_session(
        self, request: ari.CompactSessionRequest
    ) -> ari.CompactSessionResponse:
        """As `SessionUtilityManager.compact_session`."""
        return await self._call("compact_session", request, ari.CompactSessionResponse)


def closed() -> FailedPrecondition:
    """Return the error for a call after `close`."""
    return FailedPrecondition("the connection to the runtime is closed")
