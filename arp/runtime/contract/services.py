"""The services of the Agent Runtime Interface; `RuntimeService` combines the required ones.

Each service or method belongs to a level. Level 1 is needed to run turns. Level 2 lists and
deletes sessions, cancels turns and reads histories. Level 3 is optional: settings, lists of
commands and files, compaction.

The contract, for every runtime:

- **Calls.** Methods may be called from any task of the event loop that the runtime was created in,
  also concurrently. `threadsafe()` of a runtime returns a handle for other threads. A call that
  raises an error (`arp.runtime.contract.errors`) has changed nothing.
- **Sessions.** After its first turn, a session can be found by its id from any process of the same
  runtime. Closing or deleting a session again, or with an unknown id, is not an error. A closed
  session accepts no messages and no subscriptions until it is resumed.
- **Turns.** A message begins a turn. A session has at most one active turn: a second message is
  refused with `FailedPrecondition` and does not reach the runtime. Each turn ends with exactly one
  event that has `done`, also after a kill, the end of a pipe or a cancel.
- **Events.** Any number of consumers can subscribe; each receives every event in the same order. A
  `tool_call` precedes its `permission_request`, and that precedes its `tool_result`. Every
  `tool_call` gets a `tool_result`. The adapter adds events that a runtime does not send, and marks
  them `synthetic`.
- **Permissions.** Several requests can be open at a time. Each is answered once: a second answer,
  or an answer after a cancel or the deadline, is refused with `FailedPrecondition`. An answer with
  a part that the runtime cannot use is refused with `InvalidArgument`, and the request stays open.
- **What a runtime cannot do** is refused with `Unimplemented`, never ignored silently. `status`
  lists the capabilities of the adapter, by the names in `CAPABILITIES`; a capability that only one
  adapter has is named `VENDOR/NAME`. A capability that is listed and enabled is never answered with
  `Unimplemented`. In the same process, `isinstance(runtime, ModelManager)` checks whether a runtime
  has the methods of an optional service.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import (
    Literal,
    NamedTuple,
    Protocol,
    TypeAlias,
    get_type_hints,
    runtime_checkable,
)

import msgspec

from arp.runtime.contract import types as ari


class EventSubscription(Protocol):
    """Stream of a session's events; ends when the session is closed."""

    @property
    def cursor(self) -> int:
        """Sequence number of the last event that was returned.

        Before the first event, it is the number after which the subscription began.
        """

    def __aiter__(self) -> AsyncIterator[ari.Event]: ...

    async def __anext__(self) -> ari.Event: ...

    async def aclose(self) -> None:
        """Unsubscribe."""


@runtime_checkable
class RuntimeVersioner(Protocol):
    """Name and versions of a runtime. Level 1."""

    async def version(self, request: ari.VersionRequest) -> ari.VersionResponse:
        """Return names and versions.

        Raises:
            InvalidArgument: The request asks for another version of the interface.
        """


@runtime_checkable
class RuntimeStatuser(Protocol):
    """Health of a runtime. Level 1."""

    async def status(self, request: ari.StatusRequest) -> ari.StatusResponse:
        """Return health, readiness and capabilities."""


@runtime_checkable
class SessionManager(Protocol):
    """Sessions. To create, resume and close them is level 1; the other methods are level 2."""

    async def create_session(self, request: ari.CreateSessionRequest) -> ari.CreateSessionResponse:
        """Create a session; its first event is `created`.

        Raises:
            AlreadyExists: The id is taken.
            InvalidArgument: The directory, the model or the mode does not exist.
            Unimplemented: The runtime does not support a field that is set.
            Unavailable: The runtime cannot be started.
        """

    async def resume_session(self, request: ari.ResumeSessionRequest) -> ari.ResumeSessionResponse:
        """Open an existing session: closed, failed, or created by an earlier process.

        An open session does not change, but its open permission requests are emitted again for a
        caller that has not seen them. The session works in its previous directory, unless the
        request names another one or the previous one no longer exists. A session that has had no
        turn exists only in the runtime object that created it.

        Raises:
            NotFound: The session does not exist.
            Unavailable: The runtime cannot be started.
        """

    async def get_session(self, request: ari.GetSessionRequest) -> ari.GetSessionResponse:
        """Return a session.

        Raises:
            NotFound: The session does not exist.
        """

    async def list_sessions(self, request: ari.ListSessionsRequest) -> ari.ListSessionsResponse:
        """Return the sessions that fit the filter, newest first."""

    async def close_session(self, request: ari.CloseSessionRequest) -> ari.CloseSessionResponse:
        """Close a session: its active turn is cancelled, and the agent's process ends.

        The last event is `closed`. The runtime keeps the conversation.
        """

    async def delete_session(self, request: ari.DeleteSessionRequest) -> ari.DeleteSessionResponse:
        """Close a session and remove everything that the runtime stored about it."""


@runtime_checkable
class InteractionManager(Protocol):
    """Turns. Level 1; `cancel_turn` is level 2."""

    async def send_message(self, request: ari.SendMessageRequest) -> ari.SendMessageResponse:
        """Begin a turn; its results are events.

        Raises:
            NotFound: The session does not exist.
            FailedPrecondition: A turn is active, or the session is closed or failed.
            InvalidArgument: The message is empty, or has a part that the runtime cannot take.
        """

    async def respond_permission(
        self, request: ari.RespondPermissionRequest
    ) -> ari.RespondPermissionResponse:
        """Answer a permission request.

        Raises:
            NotFound: The session or the request does not exist.
            FailedPrecondition: The request was answered or cancelled, or it has expired.
            InvalidArgument: The answer has a part that the request does not accept.
        """

    async def cancel_turn(self, request: ari.CancelTurnRequest) -> ari.CancelTurnResponse:
        """Cancel the active turn; open permission requests are cancelled first.

        The turn's terminal event has `Canceled`. If the runtime does not stop, its process is
        ended.

        Raises:
            NotFound: The session does not exist.
            FailedPrecondition: The turn is not active.
        """


@runtime_checkable
class EventManager(Protocol):
    """Events. Level 1."""

    async def session_events(self, request: ari.SessionEventsRequest) -> EventSubscription:
        """Subscribe to a session; no event after the return of this call is missed.

        Raises:
            NotFound: The session does not exist.
            FailedPrecondition: The session is closed.
            InvalidArgument: The events after `after` have been dropped, or do not exist yet.
        """


class RuntimeService(
    RuntimeVersioner,
    RuntimeStatuser,
    SessionManager,
    InteractionManager,
    EventManager,
    Protocol,
):
    """The services that every runtime has."""

    async def close(self, request: ari.CloseRequest) -> ari.CloseResponse:
        """Close all sessions and end everything that the runtime started; may be called again.

        The agent gets no answer to a permission request that is open at that time. When its session
        is resumed, the state is the same as after a crash.

        Afterwards every other method raises `FailedPrecondition`.
        """


@runtime_checkable
class HistoryManager(Protocol):
    """Earlier messages. Level 2."""

    async def get_session_history(
        self, request: ari.GetSessionHistoryRequest
    ) -> ari.GetSessionHistoryResponse:
        """Return the messages of a session, oldest first.

        Raises:
            NotFound: The session does not exist.
        """


@runtime_checkable
class ModelManager(Protocol):
    """Choice of the model. Level 3."""

    async def get_model(self, request: ari.GetModelRequest) -> ari.GetModelResponse:
        """Return the model that the runtime reports."""

    async def set_model(self, request: ari.SetModelRequest) -> ari.SetModelResponse:
        """Switch the model; the capability `model` says when the switch takes effect.

        Raises:
            InvalidArgument: The runtime refuses the model.
        """

    async def list_models(self, request: ari.ListModelsRequest) -> ari.ListModelsResponse:
        """Return the available models."""


@runtime_checkable
class ModeManager(Protocol):
    """Choice of the mode: how often the agent asks for permission. Level 3."""

    async def get_mode(self, request: ari.GetModeRequest) -> ari.GetModeResponse:
        """Return the mode."""

    async def set_mode(self, request: ari.SetModeRequest) -> ari.SetModeResponse:
        """Switch the mode.

        Raises:
            InvalidArgument: The mode does not exist.
        """

    async def list_modes(self, request: ari.ListModesRequest) -> ari.ListModesResponse:
        """Return the available modes, and which of them ask for permission."""


@runtime_checkable
class ProviderManager(Protocol):
    """Choice of the provider that serves the model. Level 3."""

    async def get_active_provider(
        self, request: ari.GetActiveProviderRequest
    ) -> ari.GetActiveProviderResponse:
        """Return the provider."""

    async def set_active_provider(
        self, request: ari.SetActiveProviderRequest
    ) -> ari.SetActiveProviderResponse:
        """Switch the provider.

        Raises:
            InvalidArgument: The provider does not exist.
        """

    async def list_providers(self, request: ari.ListProvidersRequest) -> ari.ListProvidersResponse:
        """Return the available providers."""


@runtime_checkable
class MemoryManager(Protocol):
    """Files that the agent reads when it starts. Level 3."""

    async def list_memory_files(self, request: ari.ListItemsRequest) -> ari.ListItemsResponse:
        """Return the files with their paths."""


@runtime_checkable
class SkillManager(Protocol):
    """Skills of the agent. Level 3."""

    async def list_skills(self, request: ari.ListItemsRequest) -> ari.ListItemsResponse:
        """Return the skills."""


@runtime_checkable
class CommandManager(Protocol):
    """Commands that a message may begin with. Level 3."""

    async def list_commands(self, request: ari.ListItemsRequest) -> ari.ListItemsResponse:
        """Return the commands; the lifecycle event `commands` reports changes."""


@runtime_checkable
class SessionUtilityManager(Protocol):
    """Other operations on a session. Level 3."""

    async def compact_session(
        self, request: ari.CompactSessionRequest
    ) -> ari.CompactSessionResponse:
        """Make the conversation shorter, in a turn."""


Level: TypeAlias = Literal[1, 2, 3]


class AriMethod(NamedTuple):
    """A method of the interface, for remote runtimes and conformance."""

    name: str
    request: type[msgspec.Struct]
    response: type[msgspec.Struct]
    """Type of the response; for `session_events` the type of each item."""
    level: Level
    service: type


def _method(
    name: str, level: Level, service: type, item: type[msgspec.Struct] | None = None
) -> AriMethod:
    """Return a method of a service, with the types of its annotations.

    Args:
        name: Name of the method.
        level: Level of the method.
        service: Protocol that defines the method.
        item: Type of each item, for a method that returns a stream.
    """
    types = get_type_hints(getattr(service, name))
    return AriMethod(name, types["request"], item or types["return"], level, service)


METHODS: tuple[AriMethod, ...] = (
    _method("version", 1, RuntimeVersioner),
    _method("status", 1, RuntimeStatuser),
    _method("create_session", 1, SessionManager),
    _method("resume_session", 1, SessionManager),
    _method("get_session", 2, SessionManager),
    _method("list_sessions", 2, SessionManager),
    _method("close_session", 1, SessionManager),
    _method("delete_session", 2, SessionManager),
    _method("send_message", 1, InteractionManager),
    _method("respond_permission", 1, InteractionManager),
    _method("cancel_turn", 2, InteractionManager),
    _method("session_events", 1, EventManager, ari.Event),
    _method("get_session_history", 2, HistoryManager),
    _method("get_model", 3, ModelManager),
    _method("set_model", 3, ModelManager),
    _method("list_models", 3, ModelManager),
    _method("get_mode", 3, ModeManager),
    _method("set_mode", 3, ModeManager),
    _method("list_modes", 3, ModeManager),
    _method("get_active_provider", 3, ProviderManager),
    _method("set_active_provider", 3, ProviderManager),
    _method("list_providers", 3, ProviderManager),
    _method("list_memory_files", 3, MemoryManager),
    _method("list_skills", 3, SkillManager),
    _method("list_commands", 3, CommandManager),
    _method("compact_session", 3, SessionUtilityManager),
    _method("close", 1, RuntimeService),
)
"""All methods of the interface. On a remote runtime, `close` closes only the connection."""


class KnownCapability(NamedTuple):
    """A capability that has the same name in every runtime."""

    name: str
    meaning: str
    """Meaning of the capability, and the names of its `details`."""
    service: type | None = None
    """Optional service of the capability. A runtime lists the capability if and only if it has the
    service."""


CAPABILITIES = (
    KnownCapability("session_id", "the caller may choose the id of a new session (`form`)"),
    KnownCapability("history_seed", "a new session can begin with earlier messages"),
    KnownCapability("fork_session", "a new session can begin as a copy of another one"),
    KnownCapability("instructions", "a session takes additions to the system prompt"),
    KnownCapability("mcp_servers", "a session takes servers of tools (`transports`)"),
    KnownCapability("parts", "what a message takes besides text (`types`)"),
    KnownCapability("resume_session", "closed sessions, and those of earlier processes, continue"),
    KnownCapability("list_sessions", "sessions of earlier processes are listed"),
    KnownCapability("delete_session", "the stored data of a session can be removed"),
    KnownCapability("cancel_turn", "a turn can be cancelled"),
    KnownCapability("own_turns", "the agent begins turns by itself (`after`)"),
    KnownCapability("permission_rules", "an answer may allow more than one call (`rules`)"),
    KnownCapability("updated_input", "an answer may change what runs (`kinds`)"),
    KnownCapability("deny_message", "the model receives the reason of a denial"),
    KnownCapability("deny_interrupt", "a denial may end the turn (`deny_continues`: without it)"),
    KnownCapability("history", "the messages of a session can be read", HistoryManager),
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
_VENDOR_CAPABILITY = re.compile(r"[a-z0-9][a-z0-9.-]*/[A-Za-z0-9_.-]+")


def is_capability_name(name: str) -> bool:
    """Return whether a name is in `CAPABILITIES` or has the form `VENDOR/NAME`."""
    return name in CAPABILITY_NAMES or _VENDOR_CAPABILITY.fullmatch(name) is not None
