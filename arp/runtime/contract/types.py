"""The objects of the Agent Runtime Interface: values that go in and out of a runtime.

Names are those of the interface in snake case. Times are nanoseconds since 1970 (`…_ns`). Each
object can be written as JSON by msgspec, and `schemas/ari/runtime/v1/api.proto` has the same
fields. Fields are added at the end with a default, never removed nor given another meaning.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal, TypeAlias

import msgspec

from arp.protocol.json_value import JsonObject
from arp.runtime.contract.errors import ErrorStatus

API_VERSION = "v1"
"""The version of this interface."""

Details: TypeAlias = dict[str, str]
"""What else is known, as names and texts; nothing in it changes what a field means."""
RECORD_MESSAGES = "record_messages"
"""In the metadata of `send_message`, with `true`: the app records what a model gets."""


class SessionState(StrEnum):
    """What a session does now."""

    CREATED = "created"
    """It has had no turn yet: a runtime may not have stored anything of it."""
    IDLE = "idle"
    """A message begins a turn."""
    RUNNING = "running"
    """A turn is active."""
    WAITING = "waiting"
    """A turn is active, and waits for an answer to a permission request."""
    FAILED = "failed"
    """The runtime's process is gone; `resume_session` starts it again."""
    CLOSED = "closed"
    """Nothing is sent nor received any more; `resume_session` opens it again."""


class RuntimeSession(msgspec.Struct, frozen=True, omit_defaults=True):
    """One long conversation with an agent (`Session` of the interface)."""

    session_id: str
    """The runtime's own id, so that any process finds it; some let the caller choose it."""
    state: SessionState
    runtime: str = ""
    """The name of the runtime, such as `claude-code`."""
    cwd: str = ""
    """The directory in which the agent works; absolute."""
    title: str = ""
    created_at_ns: int = 0
    """0: the runtime does not say."""
    updated_at_ns: int = 0
    turn_count: int = 0
    """Turns since the session was created or resumed by this runtime object."""
    active_turn_id: str = ""
    model: str = ""
    """As the runtime reports it; empty where it does not."""
    mode: str = ""
    provider: str = ""
    metadata: Details = msgspec.field(default_factory=dict)


PartType: TypeAlias = Literal["text", "image", "audio", "file"]


class ContentPart(msgspec.Struct, frozen=True, omit_defaults=True):
    """A part of a message: a text, or bytes (`data`) or where they are (`uri`)."""

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
    """What somebody said (`Message` of the interface): `content`, and `parts` after it."""

    role: Literal["user", "assistant", "tool", "system"] = "user"
    content: str = ""
    parts: tuple[ContentPart, ...] = ()
    tool_calls: tuple[PastToolCall, ...] = ()
    """In histories only."""
    thinking: str = ""
    """In histories only: what the model thought before it answered, where that is kept."""
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
    """What a lifecycle event tells. None of them is text of the agent."""

    CREATED = "created"
    RESUMED = "resumed"
    CLOSED = "closed"
    FAILED = "failed"
    """The runtime's process is gone."""
    HEARTBEAT = "heartbeat"
    """The turn is active, and nothing came for a while."""
    TURN_STARTED = "turn_started"
    """`origin` in `details` is `runtime` if no message began it."""
    RETRYING = "retrying"
    """The model did not answer; `attempt`, `delay_ms`, `http_status` in `details` where known."""
    TOOL_PROGRESS = "tool_progress"
    """`content` is new output of the tool `tool_call_id`."""
    PERMISSION_RESOLVED = "permission_resolved"
    """`outcome` in `details`: `allowed`, `denied`, `cancelled` or `expired`."""
    PLAN = "plan"
    """`todos` in `details`: the agent's list, `[{text, status: pending|active|done}]`."""
    COMMANDS = "commands"
    """`commands` in `details`: `[{name, description, hint}]`, all that the session has now."""
    MODEL = "model"
    """`content` is the model that answers from now on."""
    MODE = "mode"
    """`content` is the mode from now on."""
    MODEL_REQUEST = "model_request"
    """A request to a model begins or fails (`status`: `started` or `failed`, whose reason is
    `content`); `request_id` in `details`, and with its start `model`, `provider`, `parameters`, the
    names of `tools`, and `messages` if the turn's metadata has `record_messages`. `USAGE` with the
    same `request_id` ends it."""
    USAGE = "usage"
    """`details`: the fields of `Usage` for one request to a model, and `model`; `request_id` if its
    start was told; `subagent_id` if a sub-agent made it. `context_tokens` and `context_max` say how
    full the context is."""
    COMPACTION = "compaction"
    """The conversation was made shorter; `tokens_before`, `tokens_after`, `trigger` where known."""
    SUBAGENT = "subagent"
    """Another agent works for this one. `details`: `subagent_id`; `status`: started, running,
    input, completed, failed or closed; `name`, `objective` and `tool_call_id` when it is started.
    `content`: what it was told, what it does, or what came of it."""
    RATE_LIMIT = "rate_limit"
    """A limit of the model's provider is reached, or nearly (`status`: `reached` or `warning`).
    `limit`, `used` (0 to 1), `resets_at_s` (since 1970), `retry_after_s` where known."""
    WARNING = "warning"
    """`content` is for people. `cut_off` in `details`: the text so far ends where it should not,
    because of a limit of tokens (`length`) or of `requests`, a content `filter`, or a stream
    without its end (`unfinished`); or the model said nothing at all (`empty`)."""
    STDERR = "stderr"
    """`content` is a line that the runtime wrote to standard error."""
    HOOK = "hook"
    """A hook of the runtime runs: `hook_id`, `name`, `event` and `status` (started, completed or
    failed) in `details`; with its end `duration_ms` and `decision` where known, and the reason of a
    failure as `content`."""
    COMPONENT = "component"
    """Something to show that is no text: `component` in `details`, a component of ARP as JSON."""
    SPEAKER = "speaker"
    """`content` is the name of the agent that speaks from now on, after a hand-off."""


class Usage(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a turn used, as far as the runtime says.

    A number that the runtime does not tell is `None`, never 0. If it tells none of them, the event
    has no usage at all.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    """Of `input_tokens`: read from the provider's cache."""
    reasoning_tokens: int | None = None
    cost: float | None = None
    currency: str = ""

    @property
    def is_known(self) -> bool:
        """Whether any of its numbers is known."""
        numbers = (self.input_tokens, self.output_tokens, self.cached_tokens, self.reasoning_tokens)
        return any(one is not None for one in (*numbers, self.cost))

    def plus(self, other: Usage) -> Usage:
        """Return the tokens of both; of a number that only one of them has, that one."""
        return Usage(
            _added(self.input_tokens, other.input_tokens),
            _added(self.output_tokens, other.output_tokens),
            _added(self.cached_tokens, other.cached_tokens),
            _added(self.reasoning_tokens, other.reasoning_tokens),
        )


def _added(one: int | None, other: int | None) -> int | None:
    return other if one is None else one + (other or 0)


class PermissionKind(StrEnum):
    """What an agent wants to do, as far as the runtime says."""

    COMMAND = "command"
    EDIT = "edit"
    READ = "read"
    NETWORK = "network"
    TOOL = "tool"
    """A tool of another kind, such as one of an MCP server."""
    QUESTION = "question"
    """The agent asks the user something. Where the input has `questions`, `updated_input` has
    `answers`: a text, or several, by the question's text."""
    OTHER = "other"


class PermissionRule(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a runtime offers to allow besides this one call; its own suggestion."""

    rule_id: str
    label: str
    """For people: exactly what would be allowed without asking again."""
    scope: Literal["session", "always"] = "session"


class Choice(msgspec.Struct, frozen=True, omit_defaults=True):
    """A model, a mode, a provider or a way to allow something that can be taken."""

    id: str
    label: str = ""
    description: str = ""
    asks: bool = True
    """Of a mode: whether the agent asks before it changes anything."""


class PermissionRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """An agent asks before it does something; nothing happens until it is answered."""

    tool_name: str
    tool_call_id: str = ""
    """Of the `tool_call` event that came before."""
    kind: PermissionKind = PermissionKind.OTHER
    tool_input_summary: str = ""
    """One line for people, such as the command."""
    tool_input_raw: JsonObject = msgspec.field(default_factory=dict)
    """All of it: what runs if it is allowed."""
    message: str = ""
    """Why the agent, or the runtime's rules, ask."""
    deadline_ns: int = 0
    """When it counts as denied; 0: never."""
    takes_updated_input: bool = False
    """Whether an answer may carry `updated_input`."""
    takes_message: bool = False
    """Whether the agent is told the `message` of a denial."""
    deny_continues: bool = True
    """Whether the agent goes on after a denial; else the turn ends."""
    rules: tuple[PermissionRule, ...] = ()
    """What an answer may allow besides; empty: this call only."""
    request_id: str = ""
    session_id: str = ""
    turn_id: str = ""
    ways: tuple[Choice, ...] = ()
    """Different ways to allow this call alone, in the agent's words; an answer names the id of one
    as `rule_id`. Empty: there is one way only."""


class PermissionResponse(msgspec.Struct, frozen=True, omit_defaults=True):
    """The answer to a permission request."""

    decision: Literal["allow", "deny"]
    message: str = ""
    """Told to the agent with a denial; refused where the request does not take one."""
    updated_input: JsonObject | None = None
    """What is to run instead; refused where the request does not take one."""
    rule_id: str = ""
    """One of the request's `rules`: allow that too; or one of its `ways`: allow it so."""
    interrupt: bool = False
    """With a denial: end the turn."""


class Event(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something that happened in a session.

    Per session `sequence` counts from 1 without holes for as long as the runtime object lives. A
    turn has exactly one event with `done`: its `result` or its `error`, the last one of the turn.
    """

    type: EventType
    session_id: str
    sequence: int
    timestamp_ns: int
    turn_id: str = ""
    """Empty for events of the session."""
    content: str = ""
    """`text`, `thinking`: what is new. `tool_result`: what the tool returned. `result`: the last
    text of the turn."""
    tool_call_id: str = ""
    tool_name: str = ""
    tool_input_summary: str = ""
    tool_input_raw: JsonObject | None = None
    is_error: bool = False
    """`tool_result`: the tool failed, or was not allowed to run."""
    request_id: str = ""
    """`permission_request`, and the lifecycle event that says what became of it."""
    permission: PermissionRequest | None = None
    lifecycle: Lifecycle | None = None
    usage: Usage | None = None
    """`result` and `error`: what the whole turn used; `None`: the runtime does not tell."""
    error: ErrorStatus | None = None
    done: bool = False
    """Whether this ends the turn."""
    synthetic: bool = False
    """Made by the adapter because the runtime leaves it out."""
    details: JsonObject = msgspec.field(default_factory=dict)
    """What the runtime says besides. `tool_call`: `kind` (a `PermissionKind`); of a call that a
    sub-agent makes `subagent_id`, `subagent` (its name) and `parent_tool_call_id` where known.
    `tool_result`: `exit_code`, `diffs` (`[{path, before, after}]`), `denied`, `duration_ms` where
    known, and `no_output` of a command that wrote nothing, where `content` is the runtime's word
    for it."""


class Capability(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the adapter does, not what the runtime behind it advertises."""

    name: str
    """One of `CAPABILITIES` in `services`, or `VENDOR/NAME` for an adapter's own."""
    version: str = API_VERSION
    enabled: bool = True
    experimental: bool = False
    applies_to: Literal["", "now", "next_turn", "next_session"] = ""
    """For switches: from when on one counts."""
    details: Details = msgspec.field(default_factory=dict)


class McpServer(msgspec.Struct, frozen=True, omit_defaults=True):
    """A server of tools that the agent may use: a command, or an address (`url`)."""

    name: str
    command: str = ""
    args: tuple[str, ...] = ()
    env: Details = msgspec.field(default_factory=dict)
    url: str = ""
    headers: Details = msgspec.field(default_factory=dict)
    shared: bool = False
    """Of `App(mcp=…)` and `model_agent`: all sessions share one connection, and the answer to what
    the server asks is `cancel`. Agents that connect by themselves do not take it."""


# -- requests and responses, in the order of the services ----------------------------------------


class VersionRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """Of `version`."""

    api_version: str = API_VERSION


class VersionResponse(msgspec.Struct, frozen=True, omit_defaults=True):
    """Of `version`."""

    runtime_name: str
    runtime_version: str
    """Of the agent; empty as long as it has not been started."""
    api_version: str = API_VERSION
    adapter_version: str = ""


class StatusRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """Of `status`."""

    verbose: bool = False
    """Whether `info` is filled."""


class StatusResponse(msgspec.Struct, frozen=True, omit_defaults=True):
    """Of `status`."""

    healthy: bool
    """Whether what the runtime needs is there."""
    ready: bool
    """Whether a session can be created now."""
    message: str = ""
    """What is missing, and what to do."""
    capabilities: tuple[Capability, ...] = ()
    permission: Literal["enforced", "advisory", "none"] = "none"
    """Whether nothing runs without the answer (`enforced`), the runtime decides by itself what it
    asks (`advisory`), or never asks (`none`)."""
    info: Details = msgspec.field(default_factory=dict)


class CreateSessionRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """Of `create_session`."""

    session_id: str = ""
    """What the session shall be called; empty: the runtime chooses."""
    cwd: str = ""
    """Where the agent works; empty: where the runtime was told to."""
    model: str = ""
    mode: str = ""
    provider: str = ""
    instructions: str = ""
    """Added to the agent's own system prompt."""
    mcp_servers: tuple[McpServer, ...] = ()
    permission_timeout_s: float = 0.0
    """After how long a permission request counts as denied; 0: never."""
    title: str = ""
    metadata: Details = msgspec.field(default_factory=dict)
    history: tuple[RuntimeMessage, ...] = ()
    """What was said before: the session begins with it as its own conversation."""
    fork_session_id: str = ""
    """Begin as this session was after a turn; its conversation is the new one's then."""
    fork_after: str = ""
    """The `idempotency_key` of that turn."""


class CreateSessionResponse(msgspec.Struct, frozen=True, omit_defaults=True):
    """Of `create_session`."""

    session: RuntimeSession


class ResumeSessionRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """Of `resume_session`."""

    session_id: str
    cwd: str = ""
    """Where the agent works from now on; empty: where the session worked."""
    model: str = ""
    mode: str = ""
    provider: str = ""
    instructions: str = ""
    mcp_servers: tuple[McpServer, ...] = ()
    permission_timeout_s: float = 0.0


class ResumeSessionResponse(msgspec.Struct, frozen=True, omit_defaults=True):
    """Of `resume_session`."""

    session: RuntimeSession
    sequence: int = 0
    """The last event before it was resumed: `session_events` after it has all of a turn that the
    runtime takes up again."""


class GetSessionRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """Of `get_session`."""

    session_id: str


class GetSessionResponse(msgspec.Struct, frozen=True, omit_defaults=True):
    """Of `get_session`."""

    session: RuntimeSession


class SessionFilter(msgspec.Struct, frozen=True, omit_defaults=True):
    """Which sessions: those that fit every field that is given."""

    session_ids: tuple[str, ...] = ()
    states: tuple[SessionState, ...] = ()
    cwd: str = ""
    limit: int = 100
    """At most this many, the newest; 1 to 1,000."""


class ListSessionsRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """Of `list_sessions`."""

    filter: SessionFilter = SessionFilter()


class ListSessionsResponse(msgspec.Struct, frozen=True, omit_defaults=True):
    """Of `list_sessions`: newest first."""

    sessions: tuple[RuntimeSession, ...] = ()


class CloseSessionRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """Of `close_session`."""

    session_id: str


class CloseSessionResponse(msgspec.Struct, frozen=True, omit_defaults=True):
    """Of `close_session`."""


class DeleteSessionRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """Of `delete_session`."""

    session_id: str


class DeleteSessionResponse(msgspec.Struct, frozen=True, omit_defaults=True):
    """Of `delete_session`."""


class SendMessageRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """Of `send_message`."""

    session_id: str
    message: RuntimeMessage
    idempotency_key: str = ""
    """A second request with the same key begins no turn: it gets the answer of the first."""
    timeout_s: float = 0.0
    """After how long the turn is cancelled, with `DeadlineExceeded`; 0: never."""
    metadata: Details = msgspec.field(default_factory=dict)


class SendMessageResponse(msgspec.Struct, frozen=True, omit_defaults=True):
    """Of `send_message`: the turn has begun."""

    turn_id: str
    sequence: int = 0
    """The last event before the turn: `session_events` after it has all of the turn."""


class RespondPermissionRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """Of `respond_permission`."""

    session_id: str
    request_id: str
    response: PermissionResponse


class RespondPermissionResponse(msgspec.Struct, frozen=True, omit_defaults=True):
    """Of `respond_permission`: the runtime has the answer."""


class CancelTurnRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """Of `cancel_turn`."""

    session_id: str
    turn_id: str = ""
    """Empty: the active one."""


class CancelTurnResponse(msgspec.Struct, frozen=True, omit_defaults=True):
    """Of `cancel_turn`: the turn's terminal event follows."""

    turn_id: str


class SessionEventsRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """Of `session_events`."""

    session_id: str
    after: int | None = None
    """Begin behind this `sequence`; `None`: with what happens from now on."""


class GetSessionHistoryRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """Of `get_session_history`."""

    session_id: str
    limit: int = 100
    """At most this many messages, the newest; 1 to 10,000."""


class GetSessionHistoryResponse(msgspec.Struct, frozen=True, omit_defaults=True):
    """Of `get_session_history`: oldest first."""

    messages: tuple[RuntimeMessage, ...] = ()


class GetModelRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """Of `get_model`."""

    session_id: str


class GetModelResponse(msgspec.Struct, frozen=True, omit_defaults=True):
    """Of `get_model`: as the runtime reports it."""

    model: str


class SetModelRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """Of `set_model`."""

    session_id: str
    model: str


class SetModelResponse(msgspec.Struct, frozen=True, omit_defaults=True):
    """Of `set_model`: what the runtime took, which may be another one."""

    model: str


class ListModelsRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """Of `list_models`."""

    session_id: str


class ListModelsResponse(msgspec.Struct, frozen=True, omit_defaults=True):
    """Of `list_models`."""

    models: tuple[Choice, ...] = ()


class GetModeRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """Of `get_mode`."""

    session_id: str


class GetModeResponse(msgspec.Struct, frozen=True, omit_defaults=True):
    """Of `get_mode`."""

    mode: str


class SetModeRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """Of `set_mode`."""

    session_id: str
    mode: str


class SetModeResponse(msgspec.Struct, frozen=True, omit_defaults=True):
    """Of `set_mode`: what the runtime took."""

    mode: str


class ListModesRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """Of `list_modes`."""

    session_id: str


class ListModesResponse(msgspec.Struct, frozen=True, omit_defaults=True):
    """Of `list_modes`."""

    modes: tuple[Choice, ...] = ()


class GetActiveProviderRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """Of `get_active_provider`."""

    session_id: str


class GetActiveProviderResponse(msgspec.Struct, frozen=True, omit_defaults=True):
    """Of `get_active_provider`."""

    provider: str


class SetActiveProviderRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """Of `set_active_provider`."""

    session_id: str
    provider: str


class SetActiveProviderResponse(msgspec.Struct, frozen=True, omit_defaults=True):
    """Of `set_active_provider`."""

    provider: str


class ListProvidersRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """Of `list_providers`."""

    session_id: str


class ListProvidersResponse(msgspec.Struct, frozen=True, omit_defaults=True):
    """Of `list_providers`."""

    providers: tuple[Choice, ...] = ()


class ListedItem(msgspec.Struct, frozen=True, omit_defaults=True):
    """A memory file, a skill or a command of a session."""

    name: str
    description: str = ""
    path: str = ""
    hint: str = ""


class ListItemsRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """Of `list_memory_files`, `list_skills` and `list_commands`."""

    session_id: str


class ListItemsResponse(msgspec.Struct, frozen=True, omit_defaults=True):
    """Of `list_memory_files`, `list_skills` and `list_commands`."""

    items: tuple[ListedItem, ...] = ()


class CompactSessionRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """Of `compact_session`."""

    session_id: str
    instructions: str = ""


class CompactSessionResponse(msgspec.Struct, frozen=True, omit_defaults=True):
    """Of `compact_session`: a turn that makes the conversation shorter has begun."""

    turn_id: str


class CloseRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """Of `close`."""


class CloseResponse(msgspec.Struct, frozen=True, omit_defaults=True):
    """Of `close`."""
