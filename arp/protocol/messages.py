"""The messages of the session dialect, both directions, as values.

Source: protocol.md 2. Field order is wire order. A field that is `UNSET` or `None` is not sent.
Unknown fields of a newer peer are ignored.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated, Literal, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType, field

from arp.protocol.components import Component
from arp.protocol.errors import ErrorPayload
from arp.protocol.json_value import Json, JsonObject
from arp.protocol.limits import RendererLimits
from arp.protocol.mark import OutputAnchor
from arp.protocol.patch import PatchOp

VERSION = 1
"""Protocol version, the `v` of every message."""

MAX_ID_LENGTH = 128
"""Longest id that a peer may choose, in characters; a UUID has 36."""

Identifier = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=MAX_ID_LENGTH,
        pattern=r"^[!-~][ -~]*\Z",
        description=f"1…{MAX_ID_LENGTH} printable ASCII characters",
    ),
]
"""An id that a peer may choose: printable ASCII, at most 128 characters."""

Name = Annotated[str, Meta(max_length=256, description="at most 256 characters")]
"""Id of a component or turn, as a peer repeats it."""

SurfaceName = Annotated[str, Meta(max_length=128, description="at most 128 characters")]

Preference = Annotated[str, Meta(max_length=64, description="at most 64 characters")]
"""A locale, a time zone, a theme."""

Named = Annotated[str, Meta(max_length=128, description="at most 128 characters")]
"""Name of a component type or of a feature."""

_FEW = Meta(max_length=512, description="at most 512 names")
"""Bound on lists of names, because profiles are kept in memory and compared. A renderer needs some
dozens of names."""

Sequence = Annotated[int, Meta(ge=0, le=2**53, description="a number in 0…2⁵³")]
"""Position in a session's log."""

Length = Annotated[int, Meta(ge=0, le=100_000, description="a number in 0…100000")]
"""A width or a height."""

TurnStatus: TypeAlias = Literal["queued", "running", "waiting", "completed", "failed", "cancelled"]

InputType: TypeAlias = Literal[
    "text",
    "action",
    "form_submit",
    "selection",
    "file",
    "gesture",
    "voice",
    "navigate",
    "focus",
    "unfocus",
    "resize",
]

Presented: TypeAlias = Literal["native", "fallback", "failed"]
"""How a renderer displayed a component."""

SurfaceRole: TypeAlias = Literal["toplevel", "popup", "overlay"]
"""Role of a surface; it never changes."""

Anchor: TypeAlias = Literal[
    "top",
    "top-left",
    "top-right",
    "left",
    "center",
    "right",
    "bottom",
    "bottom-left",
    "bottom-right",
]
"""Position of an overlay on its parent."""

CloseReason: TypeAlias = Literal["user", "agent", "timeout", "parent", "transferred"]
"""Why a surface was closed: by a user, by the agent, after its timeout, together with its parent,
or because it was transferred to another session."""

CLOSE = "arp.close"
"""Reserved action: close the surface named in the input."""

CANCEL = "arp.cancel"
"""Reserved action: stop the running turn, or remove a turn from the queue."""

PROMOTE = "arp.promote"
"""Reserved action: move a turn to the front of the queue."""

REGENERATE = "arp.regenerate"
"""Reserved action: answer the input of a turn again."""

CONTINUE = "arp.continue"
"""Reserved action: resume a queue that was paused after a failed turn."""

BRANCH = "arp.branch"
"""Reserved action: show another version of a turn and the turns that followed it."""

FINAL_STATUSES = frozenset(("completed", "failed", "cancelled"))

_UNREPEATABLE = frozenset(("delta", "tool_start", "commit", "input", "surface"))


def is_unrepeatable(type_name: str, turn_id: str | None) -> bool:
    """Return whether applying a message twice would change the screen.

    After such a message without a `seq` the cursor of a renderer is invalid: resuming from it would
    send the message again.
    """
    return type_name in _UNREPEATABLE or (type_name == "error" and turn_id is not None)


class _ProtocolMessage(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type"):
    v: int = field(default_factory=partial(int, VERSION))  # a factory, so that it is not omitted


# -- both directions -------------------------------------------------------------------------------


class Ping(_ProtocolMessage, frozen=True, kw_only=True, tag="ping"):
    """Ask whether the peer still answers; it must have the feature `ping`.

    Not recorded as a fact.
    """

    id: Identifier


class Pong(_ProtocolMessage, frozen=True, kw_only=True, tag="pong"):
    """The answer to the `ping` with this id, sent at once. Not recorded as a fact."""

    id: Identifier


# -- agent side → renderer -------------------------------------------------------------------------


class CommandChoice(Struct, frozen=True, omit_defaults=True):
    """One possible argument of a command."""

    value: str
    """Text after the name of the command: `/name value`."""
    label: str = ""
    """Label to show; empty: the value."""
    description: str = ""
    current: bool = False
    """Whether this is the current setting."""


class Command(Struct, frozen=True, omit_defaults=True):
    """A command of the app or the session: a text that begins with a slash and its name."""

    name: str
    description: str = ""
    hint: str = ""
    """Description of the arguments."""
    choices: tuple[CommandChoice, ...] = ()
    """Possible arguments, if they are known; a renderer may show them as a menu."""


class Workflow(Struct, frozen=True, omit_defaults=True):
    """One agent of an app."""

    name: str
    """The `workflow` of a renderer's `hello`."""
    title: str
    description: str = ""
    suggestions: tuple[str, ...] = ()
    """Inputs to offer the user."""


class AgentCapabilities(Struct, frozen=True):
    """Capabilities of the agent side."""

    components: list[str]
    versions: dict[str, int] = {}
    features: list[str] = []
    limits: JsonObject = {}
    encodings: list[str] = []
    commands: list[Command] = []
    title: str = ""
    """The title of the app."""
    workflows: list[Workflow] = []
    """The agents of the app; the first one is the default of a session."""


class AgentHello(_ProtocolMessage, frozen=True, kw_only=True, tag="hello"):
    """The first message on every connection."""

    capabilities: AgentCapabilities


class SessionReady(_ProtocolMessage, frozen=True, kw_only=True, tag="session"):
    """The answer to a renderer's `hello`. The missed messages or a snapshot follow."""

    session_id: str
    epoch: str
    seq: int
    resume: Literal["new", "replay", "snapshot"]
    workflow: str | None = None
    """The name of the session's agent."""
    state: Json | UnsetType = UNSET
    """State that agents share with renderers; absent: none."""
    older: int | None = None
    """Snapshot only: number of turns before its first turn; `None` = not known."""
    gaps: dict[str, int] = {}
    """Snapshot only: number of turns left out before a turn, by its id."""


class _InSession(_ProtocolMessage, frozen=True, kw_only=True):
    session_id: str
    seq: int | None = None
    turn_id: str | None = None
    surface: str = "main"


class DeltaPayload(Struct, frozen=True, omit_defaults=True):
    """A piece of text."""

    delta: str
    target: str | None = None
    """Id of the component to extend; `None` = the open text part of the turn."""
    kind: str | None = None
    """`thinking` for reasoning."""


class Delta(_InSession, frozen=True, kw_only=True, tag="delta"):
    """Append text. Takes effect on arrival."""

    payload: DeltaPayload
    behind: OutputAnchor | None = None
    """Position of the beginning of the reasoning; see `ToolStart`."""


class ToolStartPayload(Struct, frozen=True):
    """The tool and its arguments."""

    tool: str
    args: str
    """The arguments as JSON text."""
    call_id: str = ""


class ToolStart(_InSession, frozen=True, kw_only=True, tag="tool_start"):
    """A tool begins. Takes effect on arrival."""

    payload: ToolStartPayload
    behind: OutputAnchor | None = None
    """Position in the output of the turn, in a catch-up; `None` = after all current output."""


class ToolProgressPayload(Struct, frozen=True, omit_defaults=True):
    """Progress of a tool call."""

    call_id: str
    text: str = ""
    done: int | None = None
    """Amount done, in the unit of `total`."""
    total: int | None = None
    """Total amount; `None` = not known."""


class ToolProgress(_InSession, frozen=True, kw_only=True, tag="tool_progress"):
    """Progress of a tool call (feature `tool-detail`). It replaces the previous progress."""

    payload: ToolProgressPayload


class ToolEndPayload(Struct, frozen=True, omit_defaults=True):
    """Outcome of a tool call. The last three fields need the feature `tool-detail`."""

    tool: str
    ok: bool
    call_id: str = ""
    error: str | None = None
    result: str | None = None
    """Result as text or JSON, at most 2 KiB; ends with `…` if it is truncated."""
    result_ref: str | None = None
    """Address of the full result, relative to the server; `None` = `result` is complete."""
    duration_ms: int | None = None
    """Duration of the tool call, in milliseconds."""


class ToolEnd(_InSession, frozen=True, kw_only=True, tag="tool_end"):
    """A tool ended. Takes effect on arrival."""

    payload: ToolEndPayload


class Render(_InSession, frozen=True, kw_only=True, tag="render"):
    """Show components with the next commit."""

    components: list[Component]
    tool_name: str | None = None
    replace: bool = False
    """Whether all components are removed from the surface first."""


class Patch(_InSession, frozen=True, kw_only=True, tag="patch"):
    """Change components with the next commit."""

    ops: list[PatchOp]


class Commit(_InSession, frozen=True, kw_only=True, tag="commit"):
    """Apply every `render` and `patch` since the last commit, all at once."""

    final: bool = field(default_factory=bool)  # a factory, so that it is not omitted
    """Whether the turn ends."""
    usage: JsonObject | None = None
    """Usage of the turn, in a format that the agent chooses."""
    at: str | None = None
    """Time of the end of the turn (RFC 3339)."""


class ErrorMessage(_ProtocolMessage, frozen=True, kw_only=True, tag="error"):
    """An error. Takes effect on arrival."""

    payload: ErrorPayload
    session_id: str | None = None
    seq: int | None = None
    turn_id: str | None = None
    behind: OutputAnchor | None = None
    """Position in the output; see `ToolStart`."""


class InputAck(_ProtocolMessage, frozen=True, kw_only=True, tag="ack"):
    """The input with this id is accepted and durable."""

    id: str
    session_id: str | None = None
    turn_id: str | None = None
    serial: int | None = None


class InputEcho(_InSession, frozen=True, kw_only=True, tag="input"):
    """An accepted input, for every renderer of the session."""

    input_type: str
    data: JsonObject
    source_component: str | None = None
    id: str | None = None
    behind: OutputAnchor | None = None
    """Position in the output; see `ToolStart`."""
    versions: list[str] | None = None
    """Ids of all versions of the turn, if there are several; only on the input that started the
    turn."""
    edited: bool = field(default_factory=bool)  # a factory, so that it is not omitted
    """Whether it replaces the input that started its turn."""
    at: str | None = None
    """Time of acceptance (RFC 3339)."""
    origin: str | None = None
    """Name of the program that started the turn, if no user did."""


class Permission(Struct, frozen=True, omit_defaults=True):
    """A tool call waits for permission. Only the server sets this."""

    component: str
    """Id of the `confirm` component that asks for it."""
    tool: str
    call_id: str = ""
    surface: str = "main"
    scopes: list[str] = []
    """Scopes that can be granted: `once`, `session`."""
    digest: str | None = None
    """Digest of the input to be approved, including its hidden parts. An answer may repeat it; an
    answer with another digest is refused."""
    input: str | None = None
    """Input to be approved, as JSON; absent: the `args` of the tool's `tool_start`."""
    session_rule: str | None = None
    """Description of what a grant for the session allows."""
    editable: bool = False
    """Whether an answer may have an `updated_input`."""
    expires_at: str | None = None
    """Deadline for the answer (RFC 3339)."""


class TurnMessage(_InSession, frozen=True, kw_only=True, tag="turn"):
    """The status of a turn."""

    status: TurnStatus
    position: int | None = None
    """Position in the queue; 1 = next."""
    permission: Permission | None = None
    """Permission that a tool call waits for."""
    paused: bool = False
    """Whether the queue is paused until a user resumes it."""


class SurfaceInfo(Struct, frozen=True, omit_defaults=True):
    """Metadata of a surface other than `main`: its role and its position."""

    role: SurfaceRole = "toplevel"
    title: str = ""
    parent: str | None = None
    """Popups and overlays: the surface below."""
    component: str | None = None
    """Popups: component of the parent at which the popup is shown."""
    row: int | None = None
    """Popups: row of that component, if it is a table; 0 is the first."""
    anchor: Anchor | None = None
    """Overlays: position on the parent."""
    timeout_ms: int | None = None
    """Overlays: time after which the agent side closes the surface, in milliseconds."""
    expires_at: str | None = None
    """Overlays: time at which the agent side closes the surface (RFC 3339)."""
    fullscreen: bool = False
    """Whether it fills the whole display."""
    serial: int | None = None
    """Popups and overlays: position in the log of the input that opened the surface."""

    @property
    def is_transient(self) -> bool:
        """Whether it is a popup or an overlay."""
        return self.role != "toplevel"


class SurfaceMessage(_InSession, frozen=True, kw_only=True, tag="surface"):
    """A surface is created, changed or closed. Takes effect on arrival."""

    payload: SurfaceInfo = field(default_factory=SurfaceInfo)
    """The complete metadata, not only the changed fields."""
    closed: CloseReason | None = None
    """Why it is closed; absent: it is open. A closed surface is removed with its components."""


class StateMessage(_InSession, frozen=True, kw_only=True, tag="state"):
    """The complete state that agents share with renderers. Takes effect on arrival."""

    state: JsonObject


class CommandsMessage(_InSession, frozen=True, kw_only=True, tag="commands"):
    """All slash commands of the session. Takes effect on arrival."""

    commands: tuple[Command, ...]
    """They are added to the commands of the app in `hello`; a command of the session replaces one
    of the app with the same name."""


AgentMessage: TypeAlias = (
    AgentHello
    | SessionReady
    | Delta
    | ToolStart
    | ToolProgress
    | ToolEnd
    | Render
    | Patch
    | Commit
    | ErrorMessage
    | InputAck
    | InputEcho
    | TurnMessage
    | CommandsMessage
    | SurfaceMessage
    | StateMessage
    | Ping
    | Pong
)

# -- renderer → agent side -------------------------------------------------------------------------


class RendererCapabilities(Struct, frozen=True):
    """Capabilities of a renderer."""

    components: Annotated[dict[Named, int], _FEW] | Annotated[list[Named], _FEW] = field(
        default_factory=lambda: ["text"]
    )
    """Names with versions, or names alone (version 1)."""
    features: Annotated[list[Named], _FEW] = []
    limits: RendererLimits = RendererLimits()

    def versions(self) -> dict[str, int]:
        """Return the components with their versions."""
        if isinstance(self.components, dict):
            return dict(self.components)
        return dict.fromkeys(self.components, 1)


class Resume(Struct, frozen=True):
    """The last position that a renderer applied."""

    epoch: str
    seq: Sequence


class Viewport(Struct, frozen=True):
    """Size in CSS pixels, or in cells of a terminal."""

    width: Length
    height: Length


class RendererInfo(Struct, frozen=True, omit_defaults=True):
    """Preferences and size that a renderer sent; `None` = not sent."""

    locale: Preference | None = None
    """Language tag (BCP 47), for example `de-CH`."""
    time_zone: Preference | None = None
    """IANA time zone, for example `Europe/Zurich`."""
    theme: Preference | None = None
    """Colour theme, for example `dark`."""
    viewport: Viewport | None = None
    """Size that was last sent with `hello` or `resize`."""


class RendererHello(_ProtocolMessage, frozen=True, kw_only=True, tag="hello"):
    """Capabilities and preferences of a renderer, and the session that it joins."""

    capabilities: RendererCapabilities = field(default_factory=RendererCapabilities)
    session_id: Identifier | None = None
    workflow: Name | None = None
    """The agent of a new session; an existing session keeps its own."""
    resume: Resume | None = None
    viewport: Viewport | None = None
    locale: Preference | None = None
    time_zone: Preference | None = None
    theme: Preference | None = None
    token: str | None = None

    @property
    def info(self) -> RendererInfo:
        """The information about the renderer that agents may read."""
        return RendererInfo(self.locale, self.time_zone, self.theme, self.viewport)


class Input(_ProtocolMessage, frozen=True, kw_only=True, tag="input"):
    """An input of the user."""

    input_type: InputType
    data: JsonObject
    session_id: Identifier | None = None
    source_component: Name | None = None
    surface: SurfaceName = "main"
    id: Identifier | None = None
    """Idempotency key: inputs with the same id count as one input."""
    edits: Name | None = None
    """Id of the turn with the input that it replaces."""


class RendererAck(_ProtocolMessage, frozen=True, kw_only=True, tag="ack"):
    """The last commit that a renderer has drawn (feature `frame-ack`)."""

    seq: Sequence
    presented: dict[str, Presented] = {}


RendererMessage: TypeAlias = RendererHello | Input | RendererAck | Ping | Pong


class FileRef(Struct, frozen=True):
    """An uploaded or saved file, as in `data.files`."""

    id: str
    name: str
    size: int
    mime: str
    sha256: str
