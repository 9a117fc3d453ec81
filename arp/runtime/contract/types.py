"""Data types of the Agent Runtime Interface: the arguments and results of a runtime.

Names are those of the interface in snake case. Times are nanoseconds since 1970 (`…_ns`). msgspec
can encode each type as JSON, and `schemas/ari/runtime/v1/api.proto` has the same fields. New fields
are added at the end with a default. A field is never removed, and its meaning never changes.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal, TypeAlias

import msgspec

from arp.protocol.json_value import JsonObject
from arp.runtime.contract.errors import ErrorStatus

API_VERSION = "v1"
"""Version of this interface."""

Details: TypeAlias = dict[str, str]
"""Additional information, as names and texts. It never changes the meaning of a field."""
RECORD_MESSAGES = "record_messages"
"""Key in the metadata of `send_message`; with the value `true`, the app records model messages."""


class SessionState(StrEnum):
    """State of a session."""

    CREATED = "created"
    """No turn has run yet; a runtime may not have stored anything about the session."""
    IDLE = "idle"
    """No turn is active; a message begins one."""
    RUNNING = "running"
    """A turn is active."""
    WAITING = "waiting"
    """A turn is active and waits for an answer to a permission request."""
    FAILED = "failed"
    """The runtime's process has ended; `resume_session` starts it again."""
    CLOSED = "closed"
    """The session sends and receives nothing; `resume_session` opens it again."""


class RuntimeSession(msgspec.Struct, frozen=True, omit_defaults=True):
    """A conversation of many turns with an agent (`Session` of the interface)."""

    session_id: str
    """Id of the session in all processes of the runtime. Some runtimes let the caller choose it."""
    state: SessionState
    runtime: str = ""
    """Name of the runtime, such as `claude-code`."""
    cwd: str = ""
    """Absolute path of the directory that the agent works in."""
    title: str = ""
    created_at_ns: int = 0
    """Time of creation; 0 if the runtime does not report it."""
    updated_at_ns: int = 0
    turn_count: int = 0
    """Number of turns since this runtime object created or resumed the session."""
    active_turn_id: str = ""
    model: str = ""
    """Model that the runtime reports; empty if it reports none."""
    mode: str = ""
    provider: str = ""
    metadata: Details = msgspec.field(default_factory=dict)


PartType: TypeAlias = Literal["text", "image", "audio", "file"]


class ContentPart(msgspec.Struct, frozen=True, omit_defaults=True):
    """Part of a message: a text (`text`), bytes (`data`), or the address of the content (`uri`)."""

    type: PartType
    text: str = ""
    mime_type: str = ""
    uri: str = ""
    data: bytes = b""
    name: str = ""


class PastToolCall(msgspec.Struct, frozen=True, omit_defaults=True):
    """A tool call in the history of a session."""

    tool_call_id: str
    name: str
    input: JsonObject = msgspec.field(default_factory=dict)
    result: str = ""
    is_error: bool = False


class RuntimeMessage(msgspec.Struct, frozen=True, omit_defaults=True):
    """A message of a user or an agent (`Message` of the interface): `content`, then `parts`."""

    role: Literal["user", "assistant", "tool", "system"] = "user"
    content: str = ""
    parts: tuple[ContentPart, ...] = ()
    tool_calls: tuple[PastToolCall, ...] = ()
    """Tool calls of the message; used in histories only."""
    thinking: str = ""
    """Thoughts of the model before the answer, if the runtime keeps them; used in histories
    only."""
    timestamp_ns: int = 0


class EventType(StrEnum):
    """The eight families of events."""

    TEXT = "text"
    THINKING = "thinking"
    TOOL_CALL = "tool_call"
    TOOL_RESULT = "tool_result"
    PERMISSION_REQUEST = "permission_request"
    RESULT = "result"
    ERROR = "error"
    LIFECYCLE = "lifecycle"


class Lifecycle(StrEnum):
    """Kinds of lifecycle events. None of them is text of the agent."""

    CREATED = "created"
    RESUMED = "resumed"
    CLOSED = "closed"
    FAILED = "failed"
    """The runtime's process has ended."""
    HEARTBEAT = "heartbeat"
    """The turn is active, and no event came for a while."""
    TURN_STARTED = "turn_started"
    """A turn has begun. `origin` in `details` is `runtime` if no message began it."""
    RETRYING = "retrying"
    """The request to the model failed and is repeated. `details`: `attempt`, `delay_ms` and
    `http_status` where known."""
    TOOL_PROGRESS = "tool_progress"
    """`content` is new output of the tool call `tool_call_id`."""
    PERMISSION_RESOLVED = "permission_resolved"
    """`outcome` in `details` is `allowed`, `denied`, `cancelled` or `expired`."""
    PLAN = "plan"
    """`todos` in `details` is the agent's list: `[{text, status: pending|active|done}]`."""
    COMMANDS = "commands"
    """`commands` in `details` is the complete list of the session's commands: `[{name, description,
    hint}]`."""
    MODEL = "model"
    """`content` is the new model."""
    MODE = "mode"
    """`content` is the new mode."""
    MODEL_REQUEST = "model_request"
    """A request to a model begins or fails. `details`: `status` (`started` or `failed`) and
    `request_id`; at the start also `model`, `provider`, `parameters`, the names of `tools`, and
    `messages` if the turn's metadata has `record_messages`. If the request fails, `content` is the
    reason. `USAGE` with the same `request_id` ends the request."""
    USAGE = "usage"
    """`details`: the fields of `Usage` for one request to a model, and `model`; `request_id` if the
    start of the request was reported; `subagent_id` if a sub-agent made it; `context_tokens` and
    `context_max`: how full the context is."""
    COMPACTION = "compaction"
    """The conversation was made shorter. `details`: `tokens_before`, `tokens_after` and `trigger`
    where known."""
    SUBAGENT = "subagent"
    """Another agent works for this one. `details`: `subagent_id`; `status` (started, running,
    input, completed, failed or closed); at the start also `name`, `objective` and `tool_call_id`.
    `content` is the sub-agent's input, its current activity, or its result."""
    RATE_LIMIT = "rate_limit"
    """A limit of the model's provider is reached or nearly reached. `details`: `status` (`reached`
    or `warning`); `limit`, `used` (0 to 1), `resets_at_s` (since 1970) and `retry_after_s` where
    known."""
    WARNING = "warning"
    """`content` is a warning for people. `cut_off` in `details` says why the text so far is
    incomplete: a limit of tokens (`length`) or `requests`, a content `filter`, a stream that ended
    early (`unfinished`), or an answer without any text (`empty`)."""
    STDERR = "stderr"
    """`content` is a line that the runtime wrote to standard error."""
    HOOK = "hook"
    """A hook of the runtime runs. `details`: `hook_id`, `name`, `event` and `status` (started,
    completed or failed); at the end also `duration_ms` and `decision` where known. If the hook
    failed, `content` is the reason."""
    COMPONENT = "component"
    """A component to show. `component` in `details` is a component of ARP as JSON."""
    SPEAKER = "speaker"
    """`content` is the name of the agent that speaks from now on, after a hand-off."""


class Usage(msgspec.Struct, frozen=True, omit_defaults=True):
    """Tokens and cost of a turn or a request, as far as the runtime reports them.

    A number that the runtime does not report is `None`, never 0. If it reports no number at all,
    the event has no usage.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    """Part of `input_tokens` that was read from the provider's cache."""
    reasoning_tokens: int | None = None
    cost: float | None = None
    currency: str = ""

    @property
    def is_known(self) -> bool:
        """Whether at least one number is known."""
        numbers = (self.input_tokens, self.output_tokens, self.cached_tokens, self.reasoning_tokens)
        return any(one is not None for one in (*numbers, self.cost))

    def plus(self, other: Usage) -> Usage:
        """Return the sum of the tokens, without costs; a number that one side lacks counts as 0.

        A number that both sides lack remains `None`.
        """
        return Usage(
            _added(self.input_tokens, other.input_tokens),
            _added(self.output_tokens, other.output_tokens),
            _added(self.cached_tokens, other.cached_tokens),
            _added(self.reasoning_tokens, other.reasoning_tokens),
        )


def _added(one: int | None, other: int | None) -> int | None:
    return other if one is None else one + (other or 0)


class PermissionKind(StrEnum):
    """Kind of action that an agent wants to take, as far as the runtime reports it."""

    COMMAND = "command"
    EDIT = "edit"
    READ = "read"
    NETWORK = "network"
    TOOL = "tool"
    """A tool of another kind, such as a tool of an MCP server."""
    QUESTION = "question"
    """The agent asks the user something. If the input has `questions`, then `updated_input` has
    `answers`: the text of each question with its answer, a text or a list of texts."""
    OTHER = "other"


class PermissionRule(msgspec.Struct, frozen=True, omit_defaults=True):
    """Rule that a runtime suggests to allow in addition to this one call."""

    rule_id: str
    label: str
    """Text for people: exactly what would be allowed without asking again."""
    scope: Literal["session", "always"] = "session"


class Choice(msgspec.Struct, frozen=True, omit_defaults=True):
    """A model, a mode, a provider, or a way to allow a call, that the user can choose."""

    id: str
    label: str = ""
    description: str = ""
    asks: bool = True
    """Whether the agent asks before it changes anything; used for modes only."""


class PermissionRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """Request of an agent for permission. The call does not run before the answer."""

    tool_name: str
    tool_call_id: str = ""
    """Id of the preceding `tool_call` event."""
    kind: PermissionKind = PermissionKind.OTHER
    tool_input_summary: str = ""
    """One line for people, such as the command."""
    tool_input_raw: JsonObject = msgspec.field(default_factory=dict)
    """Complete input of the tool: this runs if it is allowed."""
    message: str = ""
    """Reason why the agent, or a rule of the runtime, asks."""
    deadline_ns: int = 0
    """Time at which the request counts as denied; 0 means never."""
    takes_updated_input: bool = False
    """Whether an answer may have `updated_input`."""
    takes_message: bool = False
    """Whether the agent receives the `message` of a denial."""
    deny_continues: bool = True
    """Whether the agent continues after a denial; otherwise the turn ends."""
    rules: tuple[PermissionRule, ...] = ()
    """Rules that an answer may allow in addition; empty means that only this call can be
    allowed."""
    request_id: str = ""
    session_id: str = ""
    turn_id: str = ""
    ways: tuple[Choice, ...] = ()
    """Alternative ways to allow this one call, in the agent's words; an answer has the id of one of
    them as `rule_id`. Empty means that there is only one way."""


class PermissionResponse(msgspec.Struct, frozen=True, omit_defaults=True):
    """Answer to a permission request."""

    decision: Literal["allow", "deny"]
    message: str = ""
    """Reason of a denial, for the agent; refused if `takes_message` of the request is false."""
    updated_input: JsonObject | None = None
    """Input to run instead; refused if `takes_updated_input` of the request is false."""
    rule_id: str = ""
    """Id of one of the request's `rules`, which is then allowed too, or of one of its `ways`."""
    interrupt: bool = False
    """Whether a denial also ends the turn."""


class Event(msgspec.Struct, frozen=True, omit_defaults=True):
    """An event of a session.

    `sequence` counts the events of a session from 1 without gaps as long as the runtime object
    lives. Each turn has exactly one event with `done`: its `result` or its `error`, which is the
    turn's last event.
    """

    type: EventType
    session_id: str
    sequence: int
    timestamp_ns: int
    turn_id: str = ""
    """Id of the turn; empty for events that belong to no turn."""
    content: str = ""
    """`text` and `thinking`: the new text. `tool_result`: the output of the tool. `result`: the
    last text of the turn."""
    tool_call_id: str = ""
    tool_name: str = ""
    tool_input_summary: str = ""
    tool_input_raw: JsonObject | None = None
    is_error: bool = False
    """`tool_result`: whether the tool failed or was not allowed to run."""
    request_id: str = ""
    """Id of the request, in `permission_request` and in the lifecycle event with its outcome."""
    permission: PermissionRequest | None = None
    lifecycle: Lifecycle | None = None
    usage: Usage | None = None
    """`result` and `error`: usage of the whole turn; `None` if the runtime does not report it."""
    error: ErrorStatus | None = None
    done: bool = False
    """Whether this event ends the turn."""
    synthetic: bool = False
    """Whether the adapter made this event because the runtime does not send it."""
    details: JsonObject = msgspec.field(default_factory=dict)
    """Further data of the runtime. `tool_call`: `kind` (a `PermissionKind`); for calls of a
    sub-agent also `subagent_id`, `subagent` (its name) and `parent_tool_call_id` where known.
    `tool_result`: `exit_code`, `diffs` (`[{path, before, after}]`), `denied` and `duration_ms`
    where known; `no_output` if a command wrote nothing: `content` is then a text of the runtime
    that says so."""


class Capability(msgspec.Struct, frozen=True, omit_defaults=True):
    """A capability of the adapter; the runtime behind it may advertise others."""

    name: str
    """A name in `CAPABILITIES` of `services`, or `VENDOR/NAME` for a capability that only this
    adapter has."""
    version: str = API_VERSION
    enabled: bool = True
    experimental: bool = False
    applies_to: Literal["", "now", "next_turn", "next_session"] = ""
    """When a switch takes effect; used for switches only."""
    details: Details = msgspec.field(default_factory=dict)


class McpServer(msgspec.Struct, frozen=True, omit_defaults=True):
    """Server of tools that the agent may use, given by a command or an address (`url`)."""

    name: str
    command: str = ""
    args: tuple[str, ...] = ()
    env: Details = msgspec.field(default_factory=dict)
    url: str = ""
    headers: Details = msgspec.field(default_factory=dict)
    shared: bool = False
    """Whether all sessions share one connection; used by `App(mcp=…)` and `model_agent`. Requests
    of the server to the user are then answered with `cancel`. Agents that connect to servers
    themselves refuse it."""


# -- requests and responses, in the order of the services ----------------------------------------


class VersionRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """Request of `version`."""

    api_version: str = API_VERSION


class VersionResponse(msgspec.Struct, frozen=True, omit_defaults=True):
    """Response of `version`."""

    runtime_name: str
    runtime_version: str
    """Version of the agent; empty before the agent is started."""
    api_version: str = API_VERSION
    adapter_version: str = ""


class StatusRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """Request of `status`."""

    verbose: bool = False
    """Whether the response has `info`."""


class StatusResponse(msgspec.Struct, frozen=True, omit_defaults=True):
    """Response of `status`."""

    healthy: bool
    """Whether everything that the runtime needs is available and works."""
    ready: bool
    """Whether a session can be created now."""
    message: str = ""
    """The problem and what to do about it."""
    capabilities: tuple[Capability, ...] = ()
    permission: Literal["enforced", "advisory", "none"] = "none"
    """Whether nothing runs without an answer (`enforced`), the runtime decides what it asks
    (`advisory`), or it never asks (`none`)."""
    info: Details = msgspec.field(default_factory=dict)


class CreateSessionRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """Request of `create_session`."""

    session_id: str = ""
    """Id of the new session; if empty, the runtime chooses it."""
    cwd: str = ""
    """Directory that the agent works in; if empty, the directory of the runtime."""
    model: str = ""
    mode: str = ""
    provider: str = ""
    instructions: str = ""
    """Text that is added to the agent's own system prompt."""
    mcp_servers: tuple[McpServer, ...] = ()
    permission_timeout_s: float = 0.0
    """Seconds until a permission request counts as denied; 0 means never."""
    title: str = ""
    metadata: Details = msgspec.field(default_factory=dict)
    history: tuple[RuntimeMessage, ...] = ()
    """Earlier messages, which become the beginning of the session's conversation."""
    fork_session_id: str = ""
    """Id of a session to copy. The new session begins with that session's conversation."""
    fork_after: str = ""
    """`idempotency_key` of the last turn that is copied from `fork_session_id`."""


class CreateSessionResponse(msgspec.Struct, frozen=True, omit_defaults=True):
    """Response of `create_session`."""

    session: RuntimeSession


class ResumeSessionRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """Request of `resume_session`."""

    session_id: str
    cwd: str = ""
    """New directory of the agent; if empty, the session's previous directory."""
    model: str = ""
    mode: str = ""
    provider: str = ""
    instructions: str = ""
    mcp_servers: tuple[McpServer, ...] = ()
    permission_timeout_s: float = 0.0


class ResumeSessionResponse(msgspec.Struct, frozen=True, omit_defaults=True):
    """Response of `resume_session`."""

    session: RuntimeSession
    sequence: int = 0
    """Sequence number of the last event before the session was resumed. If the runtime continues a
    turn, `session_events` after this number returns all events of it."""


class GetSessionRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """Request of `get_session`."""

    session_id: str


class GetSessionResponse(msgspec.Struct, frozen=True, omit_defaults=True):
    """Response of `get_session`."""

    session: RuntimeSession


class SessionFilter(msgspec.Struct, frozen=True, omit_defaults=True):
    """Filter of sessions: a session must fit every field that is set."""

    session_ids: tuple[str, ...] = ()
    states: tuple[SessionState, ...] = ()
    cwd: str = ""
    limit: int = 100
    """Largest number of sessions to return, the newest first; 1 to 1,000."""


class ListSessionsRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """Request of `list_sessions`."""

    filter: SessionFilter = SessionFilter()


class ListSessionsResponse(msgspec.Struct, frozen=True, omit_defaults=True):
    """Response of `list_sessions`: newest first."""

    sessions: tuple[RuntimeSession, ...] = ()


class CloseSessionRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """Request of `close_session`."""

    session_id: str


class CloseSessionResponse(msgspec.Struct, frozen=True, omit_defaults=True):
    """Response of `close_session`."""


class DeleteSessionRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """Request of `delete_session`."""

    session_id: str


class DeleteSessionResponse(msgspec.Struct, frozen=True, omit_defaults=True):
    """Response of `delete_session`."""


class SendMessageRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """Request of `send_message`."""

    session_id: str
    message: RuntimeMessage
    idempotency_key: str = ""
    """Key of the request. A second request with the same key begins no turn and gets the first
    response."""
    timeout_s: float = 0.0
    """Seconds until the turn is cancelled with `DeadlineExceeded`; 0 means never."""
    metadata: Details = msgspec.field(default_factory=dict)


class SendMessageResponse(msgspec.Struct, frozen=True, omit_defaults=True):
    """Response of `send_message`: the turn has begun."""

    turn_id: str
    sequence: int = 0
    """Sequence number of the last event before the turn; `session_events` after it returns the
    whole turn."""


class RespondPermissionRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """Request of `respond_permission`."""

    session_id: str
    request_id: str
    response: PermissionResponse


class RespondPermissionResponse(msgspec.Struct, frozen=True, omit_defaults=True):
    """Response of `respond_permission`: the runtime has received the answer."""


class CancelTurnRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """Request of `cancel_turn`."""

    session_id: str
    turn_id: str = ""
    """Id of the turn; empty means the active turn."""


class CancelTurnResponse(msgspec.Struct, frozen=True, omit_defaults=True):
    """Response of `cancel_turn`: the turn's terminal event follows."""

    turn_id: str


class SessionEventsRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """Request of `session_events`."""

    session_id: str
    after: int | None = None
    """`sequence` of the event to begin after; `None` means only new events."""


class GetSessionHistoryRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """Request of `get_session_history`."""

    session_id: str
    limit: int = 100
    """Largest number of messages to return, the newest; 1 to 10,000."""


class GetSessionHistoryResponse(msgspec.Struct, frozen=True, omit_defaults=True):
    """Response of `get_session_history`: oldest first."""

    messages: tuple[RuntimeMessage, ...] = ()


class GetModelRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """Request of `get_model`."""

    session_id: str


class GetModelResponse(msgspec.Struct, frozen=True, omit_defaults=True):
    """Response of `get_model`: the model that the runtime reports."""

    model: str


class SetModelRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """Request of `set_model`."""

    session_id: str
    model: str


class SetModelResponse(msgspec.Struct, frozen=True, omit_defaults=True):
    """Response of `set_model`: the model that the runtime uses now; it may be another one."""

    model: str


class ListModelsRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """Request of `list_models`."""

    session_id: str


class ListModelsResponse(msgspec.Struct, frozen=True, omit_defaults=True):
    """Response of `list_models`."""

    models: tuple[Choice, ...] = ()


class GetModeRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """Request of `get_mode`."""

    session_id: str


class GetModeResponse(msgspec.Struct, frozen=True, omit_defaults=True):
    """Response of `get_mode`."""

    mode: str


class SetModeRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """Request of `set_mode`."""

    session_id: str
    mode: str


class SetModeResponse(msgspec.Struct, frozen=True, omit_defaults=True):
    """Response of `set_mode`: the mode that the runtime uses now."""

    mode: str


class ListModesRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """Request of `list_modes`."""

    session_id: str


class ListModesResponse(msgspec.Struct, frozen=True, omit_defaults=True):
    """Response of `list_modes`."""

    modes: tuple[Choice, ...] = ()


class GetActiveProviderRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """Request of `get_active_provider`."""

    session_id: str


class GetActiveProviderResponse(msgspec.Struct, frozen=True, omit_defaults=True):
    """Response of `get_active_provider`."""

    provider: str


class SetActiveProviderRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """Request of `set_active_provider`."""

    session_id: str
    provider: str


class SetActiveProviderResponse(msgspec.Struct, frozen=True, omit_defaults=True):
    """Response of `set_active_provider`."""

    provider: str


class ListProvidersRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """Request of `list_providers`."""

    session_id: str


class ListProvidersResponse(msgspec.Struct, frozen=True, omit_defaults=True):
    """Response of `list_providers`."""

    providers: tuple[Choice, ...] = ()


class ListedItem(msgspec.Struct, frozen=True, omit_defaults=True):
    """A memory file, a skill or a command of a session."""

    name: str
    description: str = ""
    path: str = ""
    hint: str = ""


class ListItemsRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """Request of `list_memory_files`, `list_skills` and `list_commands`."""

    session_id: str


class ListItemsResponse(msgspec.Struct, frozen=True, omit_defaults=True):
    """Response of `list_memory_files`, `list_skills` and `list_commands`."""

    items: tuple[ListedItem, ...] = ()


class CompactSessionRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """Request of `compact_session`."""

    session_id: str
    instructions: str = ""


class CompactSessionResponse(msgspec.Struct, frozen=True, omit_defaults=True):
    """Response of `compact_session`: the turn that makes the conversation shorter has begun."""

    turn_id: str


class CloseRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """Request of `close`."""


class CloseResponse(msgspec.Struct, frozen=True, omit_defaults=True):
    """Response of `close`."""
