"""The services of the Agent Runtime Interface: small protocols, and one that joins them.

The contract, for every runtime:

- **Calls.** Methods may be called from any task of the loop in which the runtime was made, also at
  the same time. `threadsafe()` of a runtime gives a handle for other threads. A call that raises
  (`arp.runtime.contract.errors`) has changed nothing.
- **Sessions.** A session is found by its id in any process of the same runtime, once it has had a
  turn. `close_session` and `delete_session` may be called again, and for an id that does not exist.
  A closed session takes no messages and no subscriptions until it is resumed.
- **Turns.** A message begins a turn. A session has at most one active turn: a second message is
  refused with `FailedPrecondition` before the runtime hears of it. Each turn ends with exactly one
  event that has `done`, whatever happens: a kill, the end of a pipe, a cancel.
- **Events.** Any number of consumers can subscribe; each gets every event in the same order. A
  `tool_call` comes before its `permission_request`, and that before its `tool_result`; every
  `tool_call` gets a `tool_result`. What a runtime leaves out is made up and marked `synthetic`.
- **Permissions.** Several can be open at a time. Each is answered once: a second answer, and an
  answer after a cancel or the deadline, is `FailedPrecondition`. What the answer carries and the
  runtime cannot take is refused with `InvalidArgument`, and the request stays open.
- **What a runtime cannot do** is `Unimplemented`, never dropped in silence. `status` lists as
  capabilities what the adapter does, by the names in `CAPABILITIES`; a name of an adapter's own is
  `VENDOR/NAME`. What is listed and enabled is never answered with `Unimplemented`. In the same
  process `isinstance(runtime, ModelManager)` says whether a runtime has the methods of an optional
  service.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Literal, NamedTuple, Protocol, runtime_checkable

import msgspec

from arp.runtime.contract import types as ari


class EventSubscription(Protocol):
    """Events of a session, as they come; ends when the session is closed."""

    @property
    def cursor(self) -> int:
        """The sequence of the last event that was returned, or behind which it began."""

    def __aiter__(self) -> AsyncIterator[ari.Event]: ...

    async def __anext__(self) -> ari.Event: ...

    async def aclose(self) -> None:
        """Unsubscribe."""


@runtime_checkable
class RuntimeVersioner(Protocol):
    """Which runtime this is. Level 1."""

    async def version(self, request: ari.VersionRequest) -> ari.VersionResponse:
        """Return names and versions.

        Raises:
            InvalidArgument: Another version of the interface is asked for.
        """


@runtime_checkable
class RuntimeStatuser(Protocol):
    """How the runtime is. Level 1."""

    async def status(self, request: ari.StatusRequest) -> ari.StatusResponse:
        """Return health, readiness and capabilities."""


@runtime_checkable
class SessionManager(Protocol):
    """Sessions: create, resume and close are level 1, the others level 2."""

    async def create_session(self, request: ari.CreateSessionRequest) -> ari.CreateSessionResponse:
        """Create a session; its first event is `created`.

        Raises:
            AlreadyExists: The id is taken.
            InvalidArgument: A field cannot be met: no such directory, model or mode.
            Unimplemented: A field is given that this runtime cannot take.
            Unavailable: The runtime cannot be started.
        """

    async def resume_session(self, request: ari.ResumeSessionRequest) -> ari.ResumeSessionResponse:
        """Open a session that exists: closed, failed, or of an earlier process.

        An open one stays as it is; the permission requests that are open are emitted again, for a
        caller that has not seen them. It works where it worked, unless the request says another
        directory, or its own is gone. A session without any turn exists only in the runtime object
        that created it.

        Raises:
            NotFound: There is none.
            Unavailable: The runtime cannot be started.
        """

    async def get_session(self, request: ari.GetSessionRequest) -> ari.GetSessionResponse:
        """Return a session.

        Raises:
            NotFound: There is none.
        """

    async def list_sessions(self, request: ari.ListSessionsRequest) -> ari.ListSessionsResponse:
        """Return the sessions that fit the filter, newest first."""

    async def close_session(self, request: ari.CloseSessionRequest) -> ari.CloseSessionResponse:
        """Close a session: an active turn is cancelled, the agent's process ends.

        Its last event is `closed`. The conversation stays where the runtime keeps it.
        """

    async def delete_session(self, request: ari.DeleteSessionRequest) -> ari.DeleteSessionResponse:
        """Close a session and remove what the runtime keeps of it."""


@runtime_checkable
class InteractionManager(Protocol):
    """Turns. Level 1; `cancel_turn` is level 2."""

    async def send_message(self, request: ari.SendMessageRequest) -> ari.SendMessageResponse:
        """Begin a turn; all that comes of it are events.

        Raises:
            NotFound: There is no such session.
            FailedPrecondition: A turn is active, or the session is closed or failed.
            InvalidArgument: The message is empty, or has a part that the runtime cannot take.
        """

    async def respond_permission(
        self, request: ari.RespondPermissionRequest
    ) -> ari.RespondPermissionResponse:
        """Answer a permission request.

        Raises:
            NotFound: There is no such session or request.
            FailedPrecondition: It was answered, cancelled or expired.
            InvalidArgument: The answer has something that the request does not take.
        """

    async def cancel_turn(self, request: ari.CancelTurnRequest) -> ari.CancelTurnResponse:
        """Cancel the active turn; open permission requests are cancelled first.

        Its terminal event has `Canceled`. A runtime that does not stop is ended.

        Raises:
            NotFound: There is no such session.
            FailedPrecondition: That turn is not active.
        """


@runtime_checkable
class EventManager(Protocol):
    """Events. Level 1."""

    async def session_events(self, request: ari.SessionEventsRequest) -> EventSubscription:
        """Subscribe to a session: no event is missed from when this returns.

        Raises:
            NotFound: There is no such session.
            FailedPrecondition: It is closed.
            InvalidArgument: The events behind `after` are no longer kept, or not there yet.
        """


class RuntimeService(
    RuntimeVersioner,
    RuntimeStatuser,
    SessionManager,
    InteractionManager,
    EventManager,
    Protocol,
):
    """What every runtime is."""

    async def close(self, request: ari.CloseRequest) -> ari.CloseResponse:
        """Close all sessions and end what the runtime started; may be called again.

        What a session asks then is neither denied nor cancelled for the agent: whoever resumes the
        session finds it as after a crash.

        Afterwards every other method raises `FailedPrecondition`.
        """


@runtime_checkable
class HistoryManager(Protocol):
    """What was said before. Level 2."""

    async def get_session_history(
        self, request: ari.GetSessionHistoryRequest
    ) -> ari.GetSessionHistoryResponse:
        """Return the messages of a session, oldest first.

        Raises:
            NotFound: There is no such session.
        """


@runtime_checkable
class ModelManager(Protocol):
    """Which model answers. Level 3."""

    async def get_model(self, request: ari.GetModelRequest) -> ari.GetModelResponse:
        """Return the model, as the runtime reports it."""

    async def set_model(self, request: ari.SetModelRequest) -> ari.SetModelResponse:
        """Switch the model; from when on is in the capability `model`.

        Raises:
            InvalidArgument: The runtime refuses it.
        """

    async def list_models(self, request: ari.ListModelsRequest) -> ari.ListModelsResponse:
        """Return what can be taken."""


@runtime_checkable
class ModeManager(Protocol):
    """How much the agent asks. Level 3."""

    async def get_mode(self, request: ari.GetModeRequest) -> ari.GetModeResponse:
        """Return the mode."""

    async def set_mode(self, request: ari.SetModeRequest) -> ari.SetModeResponse:
        """Switch the mode.

        Raises:
            InvalidArgument: There is no such mode.
        """

    async def list_modes(self, request: ari.ListModesRequest) -> ari.ListModesResponse:
        """Return what can be taken, and which of them ask."""


@runtime_checkable
class ProviderManager(Protocol):
    """Who serves the model. Level 3."""

    async def get_active_provider(
        self, request: ari.GetActiveProviderRequest
    ) -> ari.GetActiveProviderResponse:
        """Return the provider."""

    async def set_active_provider(
        self, request: ari.SetActiveProviderRequest
    ) -> ari.SetActiveProviderResponse:
        """Switch the provider.

        Raises:
            InvalidArgument: There is no such provider.
        """

    async def list_providers(self, request: ari.ListProvidersRequest) -> ari.ListProvidersResponse:
        """Return what can be taken."""


@runtime_checkable
class MemoryManager(Protocol):
    """Files that the agent reads at the beginning. Level 3."""

    async def list_memory_files(self, request: ari.ListItemsRequest) -> ari.ListItemsResponse:
        """Return them with their paths."""


@runtime_checkable
class SkillManager(Protocol):
    """What the agent has learned to do. Level 3."""

    async def list_skills(self, request: ari.ListItemsRequest) -> ari.ListItemsResponse:
        """Return the skills."""


@runtime_checkable
class CommandManager(Protocol):
    """Commands that a message may begin with. Level 3."""

    async def list_commands(self, request: ari.ListItemsRequest) -> ari.ListItemsResponse:
        """Return the commands; the lifecycle event `commands` says when they change."""


@runtime_checkable
class SessionUtilityManager(Protocol):
    """What else can be done with a session. Level 3."""

    async def compact_session(
        self, request: ari.CompactSessionRequest
    ) -> ari.CompactSessionResponse:
        """Make the conversation shorter, as a turn."""


class AriMethod(NamedTuple):
    """A method of the interface, for remote runtimes and conformance."""

    name: str
    request: type[msgspec.Struct]
    response: type[msgspec.Struct]
    """Of `session_events`: what each item is."""
    level: Literal[1, 2, 3]
    service: type


METHODS: tuple[AriMethod, ...] = (
    AriMethod("version", ari.VersionRequest, ari.VersionResponse, 1, RuntimeVersioner),
    AriMethod("status", ari.StatusRequest, ari.StatusResponse, 1, RuntimeStatuser),
    AriMethod(
        "create_session", ari.CreateSessionRequest, ari.CreateSessionResponse, 1, SessionManager
    ),
    AriMethod(
        "resume_session", ari.ResumeSessionRequest, ari.ResumeSessionResponse, 1, SessionManager
    ),
    AriMethod("get_session", ari.GetSessionRequest, ari.GetSessionResponse, 2, SessionManager),
    AriMethod(
        "list_sessions", ari.ListSessionsRequest, ari.ListSessionsResponse, 2, SessionManager
    ),
    AriMethod(
        "close_session", ari.CloseSessionRequest, ari.CloseSessionResponse, 1, SessionManager
    ),
    AriMethod(
        "delete_session", ari.DeleteSessionRequest, ari.DeleteSessionResponse, 2, SessionManager
    ),
    AriMethod(
        "send_message", ari.SendMessageRequest, ari.SendMessageResponse, 1, InteractionManager
    ),
    AriMethod(
        "respond_permission",
        ari.RespondPermissionRequest,
        ari.RespondPermissionResponse,
        1,
        InteractionManager,
    ),
    AriMethod("cancel_turn", ari.CancelTurnRequest, ari.CancelTurnResponse, 2, InteractionManager),
    AriMethod("session_events", ari.SessionEventsRequest, ari.Event, 1, EventManager),
    AriMethod(
        "get_session_history",
        ari.GetSessionHistoryRequest,
        ari.GetSessionHistoryResponse,
        2,
        HistoryManager,
    ),
    AriMethod("get_model", ari.GetModelRequest, ari.GetModelResponse, 3, ModelManager),
    AriMethod("set_model", ari.SetModelRequest, ari.SetModelResponse, 3, ModelManager),
    AriMethod("list_models", ari.ListModelsRequest, ari.ListModelsResponse, 3, ModelManager),
    AriMethod("get_mode", ari.GetModeRequest, ari.GetModeResponse, 3, ModeManager),
    AriMethod("set_mode", ari.SetModeRequest, ari.SetModeResponse, 3, ModeManager),
    AriMethod("list_modes", ari.ListModesRequest, ari.ListModesResponse, 3, ModeManager),
    AriMethod(
        "get_active_provider",
        ari.GetActiveProviderRequest,
        ari.GetActiveProviderResponse,
        3,
        ProviderManager,
    ),
    AriMethod(
        "set_active_provider",
        ari.SetActiveProviderRequest,
        ari.SetActiveProviderResponse,
        3,
        ProviderManager,
    ),
    AriMethod(
        "list_providers", ari.ListProvidersRequest, ari.ListProvidersResponse, 3, ProviderManager
    ),
    AriMethod("list_memory_files", ari.ListItemsRequest, ari.ListItemsResponse, 3, MemoryManager),
    AriMethod("list_skills", ari.ListItemsRequest, ari.ListItemsResponse, 3, SkillManager),
    AriMethod("list_commands", ari.ListItemsRequest, ari.ListItemsResponse, 3, CommandManager),
    AriMethod(
        "compact_session",
        ari.CompactSessionRequest,
        ari.CompactSessionResponse,
        3,
        SessionUtilityManager,
    ),
    AriMethod("close", ari.CloseRequest, ari.CloseResponse, 1, RuntimeService),
)
"""All methods of the interface; `close` of a remote runtime closes the connection alone."""


class KnownCapability(NamedTuple):
    """A capability that has the same name in every runtime."""

    name: str
    meaning: str
    """What it tells, and in which `details`."""
    service: type | None = None
    """The optional service that belongs to it: a runtime lists it if, and only if, it has that."""


CAPABILITIES = (
    KnownCapability("session_id", "the caller may choose the id of a new session (`form`)"),
    KnownCapability("history_seed", "a new session can begin with what was said before"),
    KnownCapability("fork_session", "a new session can begin as another was after a turn"),
    KnownCapability("instructions", "a session takes additions to the system prompt"),
    KnownCapability("mcp_servers", "a session takes servers of tools (`transports`)"),
    KnownCapability("parts", "what a message takes besides text (`types`)"),
    KnownCapability("resume_session", "sessions that are closed, or of earlier processes, go on"),
    KnownCapability("list_sessions", "sessions of earlier processes are listed"),
    KnownCapability("delete_session", "what is stored of a session can be removed"),
    KnownCapability("cancel_turn", "a turn can be cancelled"),
    KnownCapability("own_turns", "the agent begins turns by itself (`after`)"),
    KnownCapability("permission_rules", "an answer may allow more than one call (`rules`)"),
    KnownCapability("updated_input", "an answer may change what runs (`kinds`)"),
    KnownCapability("deny_message", "the model is told why something is denied"),
    KnownCapability("deny_interrupt", "a denial may end the turn (`deny_continues`: without it)"),
    KnownCapability("history", "what was said in a session can be read", HistoryManager),
    KnownCapability("model", "the model can be switched", ModelManager),
    KnownCapability("mode", "the mode can be switched (`asks`: in which it asks)", ModeManager),
    KnownCapability("provider", "the provider can be switched", ProviderManager),
    KnownCapability("memory", "the memory files are listed", MemoryManager),
    KnownCapability("skills", "the skills are listed", SkillManager),
    KnownCapability("commands", "the commands are listed", CommandManager),
    KnownCapability("compaction", "a conversation can be made shorter", SessionUtilityManager),
)
"""All capabilities that adapters share."""

CAPABILITY_NAMES = frozenset(known.name for known in CAPABILITIES)
_OF_A_VENDOR = re.compile(r"[a-z0-9][a-z0-9.-]*/[A-Za-z0-9_.-]+")


def is_capability_name(name: str) -> bool:
    """Return whether a capability may have a name: one of ours, or `VENDOR/NAME`."""
    return name in CAPABILITY_NAMES or _OF_A_VENDOR.fullmatch(name) is not None
