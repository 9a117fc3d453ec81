"""`RemoteRuntime`: base class of clients of a remote runtime, for any transport.

A client is a `RuntimeService` itself and has the methods of every optional service. If the remote
runtime cannot carry out a method, it answers with `Unimplemented`; its `status` lists its
capabilities. The contract of each method is in `services`.
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
    """Whether its agents may run commands on this machine."""

    @abstractmethod
    async def _call(self, method: str, request: msgspec.Struct, response: type[R]) -> R:
        """Call a method of the remote runtime.

        Raises:
            AriError: The method raised it; `Unavailable` if the runtime cannot be reached.
        """

    @abstractmethod
    async def session_events(self, request: ari.SessionEventsRequest) -> EventSubscription:
        """Subscribe to a session; a broken connection is restored."""

    @abstractmethod
    async def open(self) -> None:
        """Connect again after `close`, also in another event loop.

        A new runtime is open already.
        """

    @abstractmethod
    async def close(self, request: ari.CloseRequest | None = None) -> ari.CloseResponse:
        """Close the connection; the remote runtime keeps running. May be called again."""

    def threadsafe(self) -> ThreadsafeRuntime:
        """Return a handle for other threads; call this in the loop of the runtime."""
        return ThreadsafeRuntime(self, asyncio.get_running_loop())

    async def version(self, request: ari.VersionRequest) -> ari.VersionResponse:
        """Return names and versions."""
        return await self._call("version", request, ari.VersionResponse)

    async def status(self, request: ari.StatusRequest) -> ari.StatusResponse:
        """Return health, readiness and capabilities."""
        return await self._call("status", request, ari.StatusResponse)

    async def create_session(self, request: ari.CreateSessionRequest) -> ari.CreateSessionResponse:
        """Create a session."""
        return await self._call("create_session", request, ari.CreateSessionResponse)

    async def resume_session(self, request: ari.ResumeSessionRequest) -> ari.ResumeSessionResponse:
        """Open an existing session."""
        return await self._call("resume_session", request, ari.ResumeSessionResponse)

    async def get_session(self, request: ari.GetSessionRequest) -> ari.GetSessionResponse:
        """Return a session."""
        return await self._call("get_session", request, ari.GetSessionResponse)

    async def list_sessions(self, request: ari.ListSessionsRequest) -> ari.ListSessionsResponse:
        """Return the sessions that fit the filter, newest first."""
        return await self._call("list_sessions", request, ari.ListSessionsResponse)

    async def close_session(self, request: ari.CloseSessionRequest) -> ari.CloseSessionResponse:
        """Close a session."""
        return await self._call("close_session", request, ari.CloseSessionResponse)

    async def delete_session(self, request: ari.DeleteSessionRequest) -> ari.DeleteSessionResponse:
        """Close a session and remove everything that the runtime stored about it."""
        return await self._call("delete_session", request, ari.DeleteSessionResponse)

    async def send_message(self, request: ari.SendMessageRequest) -> ari.SendMessageResponse:
        """Begin a turn."""
        return await self._call("send_message", request, ari.SendMessageResponse)

    async def respond_permission(
        self, request: ari.RespondPermissionRequest
    ) -> ari.RespondPermissionResponse:
        """Answer a permission request."""
        return await self._call("respond_permission", request, ari.RespondPermissionResponse)

    async def cancel_turn(self, request: ari.CancelTurnRequest) -> ari.CancelTurnResponse:
        """Cancel the active turn."""
        return await self._call("cancel_turn", request, ari.CancelTurnResponse)

    async def get_session_history(
        self, request: ari.GetSessionHistoryRequest
    ) -> ari.GetSessionHistoryResponse:
        """Return the messages of a session, oldest first."""
        return await self._call("get_session_history", request, ari.GetSessionHistoryResponse)

    async def get_model(self, request: ari.GetModelRequest) -> ari.GetModelResponse:
        """Return the model that the runtime reports."""
        return await self._call("get_model", request, ari.GetModelResponse)

    async def set_model(self, request: ari.SetModelRequest) -> ari.SetModelResponse:
        """Switch the model."""
        return await self._call("set_model", request, ari.SetModelResponse)

    async def list_models(self, request: ari.ListModelsRequest) -> ari.ListModelsResponse:
        """Return the available models."""
        return await self._call("list_models", request, ari.ListModelsResponse)

    async def get_mode(self, request: ari.GetModeRequest) -> ari.GetModeResponse:
        """Return the mode."""
        return await self._call("get_mode", request, ari.GetModeResponse)

    async def set_mode(self, request: ari.SetModeRequest) -> ari.SetModeResponse:
        """Switch the mode."""
        return await self._call("set_mode", request, ari.SetModeResponse)

    async def list_modes(self, request: ari.ListModesRequest) -> ari.ListModesResponse:
        """Return the available modes, and which of them ask for permission."""
        return await self._call("list_modes", request, ari.ListModesResponse)

    async def get_active_provider(
        self, request: ari.GetActiveProviderRequest
    ) -> ari.GetActiveProviderResponse:
        """Return the provider."""
        return await self._call("get_active_provider", request, ari.GetActiveProviderResponse)

    async def set_active_provider(
        self, request: ari.SetActiveProviderRequest
    ) -> ari.SetActiveProviderResponse:
        """Switch the provider."""
        return await self._call("set_active_provider", request, ari.SetActiveProviderResponse)

    async def list_providers(self, request: ari.ListProvidersRequest) -> ari.ListProvidersResponse:
        """Return the available providers."""
        return await self._call("list_providers", request, ari.ListProvidersResponse)

    async def list_memory_files(self, request: ari.ListItemsRequest) -> ari.ListItemsResponse:
        """Return the memory files with their paths."""
        return await self._call("list_memory_files", request, ari.ListItemsResponse)

    async def list_skills(self, request: ari.ListItemsRequest) -> ari.ListItemsResponse:
        """Return the skills."""
        return await self._call("list_skills", request, ari.ListItemsResponse)

    async def list_commands(self, request: ari.ListItemsRequest) -> ari.ListItemsResponse:
        """Return the commands."""
        return await self._call("list_commands", request, ari.ListItemsResponse)

    async def compact_session(
        self, request: ari.CompactSessionRequest
    ) -> ari.CompactSessionResponse:
        """Make the conversation shorter, in a turn."""
        return await self._call("compact_session", request, ari.CompactSessionResponse)


def closed() -> FailedPrecondition:
    """Return the error for a call after `close`."""
    return FailedPrecondition("the connection to the runtime is closed")
