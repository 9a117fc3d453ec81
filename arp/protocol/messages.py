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
from arp.protocol.mark import Behind
from arp.protocol.patch import PatchOp

VERSION = 1
"""`v` of every message."""

MAX_ID_LENGTH = 128
"""Of an id that a peer chooses, in characters: a UUID has 36."""

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
"""The id of a component, as a peer repeats it."""

SurfaceName = Annotated[str, Meta(max_length=128, description="at most 128 characters")]

Preference = Annotated[str, Meta(max_length=64, description="at most 64 characters")]
"""A locale, a time zone, a theme."""

Named = Annotated[str, Meta(max_length=128, description="at most 128 characters")]
"""The name of a type of components, or of a feature."""

_FEW = Meta(max_length=512, description="at most 512 names")
"""A renderer knows some dozens; profiles are kept and compared."""

Sequence = Annotated[int, Meta(ge=0, le=2**53, description="a number in 0…2⁵³")]
"""A place in a session's log."""

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
"""How a renderer has displayed a component."""

SurfaceRole: TypeAlias = Literal["toplevel", "popup", "overlay"]
"""What a surface is used as; it never changes."""

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
"""Where on its parent an overlay is placed."""

CloseReason: TypeAlias = Literal["user", "agent", "timeout", "parent", "transferred"]
"""Why a surface was closed: by a user, by the agent, because its time was over, together with its
parent, or because another session has it now."""

CLOSE = "arp.close"
"""The reserved action that closes the surface which its input names."""

CANCEL = "arp.cancel"
"""The reserved action that stops the running turn, or takes one out of the queue."""

PROMOTE = "arp.promote"
"""The reserved action that puts a turn first in the queue."""

REGENERATE = "arp.regenerate"
"""The reserved action that answers the input of a turn again."""

CONTINUE = "arp.continue"
"""The reserved action that resumes a queue which is paused since a turn failed."""

BRANCH = "arp.branch"
"""The reserved action that shows another version of a turn, and what followed it."""

FINAL_STATUSES = frozenset(("completed", "failed", "cancelled"))

_UNREPEATABLE = frozenset(("delta", "tool_start", "commit", "input", "surface"))


def is_unrepeatable(type_name: str, turn_id: str | None) -> bool:
    """Return whether applying a message a second time would change what shows.

    After such a message without a `seq` of its own, no cursor says where a renderer is in the log.
    """
    return type_name in _UNREPEATABLE or (type_name == "error" and turn_id is not None)


class _Versioned(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type"):
    v: int = field(default_factory=partial(int, VERSION))  # a factory, so that it is not omitted


# -- both directions -------------------------------------------------------------------------------


class Ping(_Versioned, frozen=True, kw_only=True, tag="ping"):
    """Ask whether the peer, which has the feature `ping`, still answers. Never a fact."""

    id: Identifier


class Pong(_Versioned, frozen=True, kw_only=True, tag="pong"):
    """The answer to the `ping` with this id, sent at once. Never a fact."""

    id: Identifier


# -- agent side → renderer -------------------------------------------------------------------------


class CommandChoice(Struct, frozen=True, omit_defaults=True):
    """One of the arguments that a command has."""

    value: str
    """What follows the name of the command: `/name value`."""
    label: str = ""
    """What people read; empty: the value."""
    description: str = ""
    current: bool = False
    """Whether this is what holds now."""


class Command(Struct, frozen=True, omit_defaults=True):
    """A command of the app or the session: a text that begins with a slash and its name."""

    name: str
    description: str = ""
    hint: str = ""
    """The arguments that it accepts."""
    choices: tuple[CommandChoice, ...] = ()
    """Its possible arguments, where they are known: a renderer may show them as a menu."""


class Workflow(Struct, frozen=True, omit_defaults=True):
    """One agent of an app."""

    name: str
    """The `workflow` of a renderer's `hello`."""
    title: str
    description: str = ""
    suggestions: tuple[str, ...] = ()
    """Inputs to offer the user."""


class AgentCapabilities(Struct, frozen=True):
    """What the agent side supports."""

    components: list[str]
    versions: dict[str, int] = {}
    features: list[str] = []
    limits: JsonObject = {}
    encodings: list[str] = []
    commands: list[Command] = []
    title: str = ""
    """The title of the app."""
    workflows: list[Workflow] = []
    """The agents of the app; a session that names none gets the first one."""


class AgentHello(_Versioned, frozen=True, kw_only=True, tag="hello"):
    """The first message on every connection."""

    capabilities: AgentCapabilities


class SessionReady(_Versioned, frozen=True, kw_only=True, tag="session"):
    """The answer to a renderer's `hello`. The missed messages or a snapshot follow."""

    session_id: str
    epoch: str
    seq: int
    resume: Literal["new", "replay", "snapshot"]
    workflow: str | None = None
    """The name of the session's agent."""
    state: Json | UnsetType = UNSET
    """What agents share with renderers; absent: nothing."""
    older: int | None = None
    """With a snapshot: how many turns come before its first turn; `None` = not known."""
    gaps: dict[str, int] = {}
    """With a snapshot: the id of a turn → how many turns are left out before it."""


class _InSession(_Versioned, frozen=True, kw_only=True):
    session_id: str
    seq: int | None = None
    turn_id: str | None = None
    surface: str = "main"


class DeltaPayload(Struct, frozen=True, omit_defaults=True):
    """A piece of text."""

    delta: str
    target: str | None = None
    """The component whose text it extends; `None` = the open text part of the turn."""
    kind: str | None = None
    """`thinking` for reasoning."""


class Delta(_InSession, frozen=True, kw_only=True, tag="delta"):
    """Append text. Takes effect on arrival."""

    payload: DeltaPayload
    behind: Behind | None = None
    """Where reasoning begins; as in `ToolStart`."""


class ToolStartPayload(Struct, frozen=True):
    """The tool and its arguments."""

    tool: str
    args: str
    """JSON, as a string."""
    call_id: str = ""


class ToolStart(_InSession, frozen=True, kw_only=True, tag="tool_start"):
    """A tool begins. Takes effect on arrival."""

    payload: ToolStartPayload
    behind: Behind | None = None
    """In a catch-up: its place in the output of the turn; `None` = after all that is shown."""


class ToolProgressPayload(Struct, frozen=True, omit_defaults=True):
    """What a tool is doing."""

    call_id: str
    text: str = ""
    done: int | None = None
    """How much is done, in the unit of `total`."""
    total: int | None = None
    """How much there is to do; `None` = not known."""


class ToolProgress(_InSession, frozen=True, kw_only=True, tag="tool_progress"):
    """What a tool is doing (feature `tool-detail`). Replaces the one before."""

    payload: ToolProgressPayload


class ToolEndPayload(Struct, frozen=True, omit_defaults=True):
    """How a tool ended. The last three fields need the feature `tool-detail`."""

    tool: str
    ok: bool
    call_id: str = ""
    error: str | None = None
    result: str | None = None
    """At most 2 KiB of what the tool returned, a text or JSON; ends with `…` if it is cut off."""
    result_ref: str | None = None
    """Address of the whole result, relative to the server; `None` = `result` is all."""
    duration_ms: int | None = None
    """How long the tool ran."""


class ToolEnd(_InSession, frozen=True, kw_only=True, tag="tool_end"):
    """A tool ended. Takes effect on arrival."""

    payload: ToolEndPayload


class Render(_InSession, frozen=True, kw_only=True, tag="render"):
    """Show components with the next commit."""

    components: list[Component]
    tool_name: str | None = None
    replace: bool = False
    """Whether everything is removed from the surface first."""


class Patch(_InSession, frozen=True, kw_only=True, tag="patch"):
    """Change components with the next commit."""

    ops: list[PatchOp]


class Commit(_InSession, frozen=True, kw_only=True, tag="commit"):
    """Apply every `render` and `patch` since the last commit, all at once."""

    final: bool = field(default_factory=bool)  # as `v`
    """Whether the turn ends."""
    usage: JsonObject | None = None
    """What the turn used, in the agent's words."""
    at: str | None = None
    """When the turn ended (RFC 3339)."""


class ErrorMessage(_Versioned, frozen=True, kw_only=True, tag="error"):
    """An error. Takes effect on arrival."""

    payload: ErrorPayload
    session_id: str | None = None
    seq: int | None = None
    turn_id: str | None = None
    behind: Behind | None = None
    """As in `ToolStart`."""


class InputAck(_Versioned, frozen=True, kw_only=True, tag="ack"):
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
    behind: Behind | None = None
    """As in `ToolStart`."""
    versions: list[str] | None = None
    """The turns that are versions of this one, if there are several; only on the input that began
    the turn."""
    edited: bool = field(default_factory=bool)  # as `v`
    """Whether it replaces the input that began its turn."""
    at: str | None = None
    """When it was accepted (RFC 3339)."""
    origin: str | None = None
    """The name of the program that began the turn, if no user did."""


class Permission(Struct, frozen=True, omit_defaults=True):
    """A tool waits for permission. Only the server sets this."""

    component: str
    """The `confirm` that asks."""
    tool: str
    call_id: str = ""
    surface: str = "main"
    scopes: list[str] = []
    """The possible grants: `once`, `session`."""
    digest: str | None = None
    """Names the input to be approved, with what is hidden of it. An answer may repeat it; one with
    another digest is refused."""
    input: str | None = None
    """The input to be approved, as JSON; absent: the `args` of the tool's `tool_start`."""
    session_rule: str | None = None
    """What a grant for the session allows."""
    editable: bool = False
    """Whether an answer may have an `updated_input`."""
    expires_at: str | None = None
    """From when on no answer counts (RFC 3339)."""


class TurnMessage(_InSession, frozen=True, kw_only=True, tag="turn"):
    """The status of a turn."""

    status: TurnStatus
    position: int | None = None
    """Position in the queue; 1 = next."""
    permission: Permission | None = None
    """The permission that a tool waits for."""
    paused: bool = False
    """Whether the queue is paused until somebody resumes it."""


class SurfaceInfo(Struct, frozen=True, omit_defaults=True):
    """What a surface besides `main` is, and where it belongs."""

    role: SurfaceRole = "toplevel"
    title: str = ""
    parent: str | None = None
    """Of a popup or an overlay: the surface that it is placed on."""
    component: str | None = None
    """Of a popup: the component of its parent that it is placed over."""
    row: int | None = None
    """Of a popup: the row of that component, if it is a table; 0 is the first."""
    anchor: Anchor | None = None
    """Of an overlay: its place on its parent."""
    timeout_ms: int | None = None
    """Of an overlay: the agent side closes it after this time."""
    expires_at: str | None = None
    """When that is (RFC 3339)."""
    fullscreen: bool = False
    """Whether it fills the whole display."""
    serial: int | None = None
    """Of a popup or an overlay: the place in the log of the input that opened it."""

    @property
    def is_transient(self) -> bool:
        """Whether it is a popup or an overlay."""
        return self.role != "toplevel"


class SurfaceMessage(_InSession, frozen=True, kw_only=True, tag="surface"):
    """A surface is created, has another title, or is closed. Takes effect on arrival."""

    payload: SurfaceInfo = field(default_factory=SurfaceInfo)
    """All of it, not only what has changed."""
    closed: CloseReason | None = None
    """Why it is closed; absent: it is there. A closed surface is removed with its components."""


class StateMessage(_InSession, frozen=True, kw_only=True, tag="state"):
    """What agents share with renderers, all of it. Takes effect on arrival."""

    state: JsonObject


class CommandsMessage(_InSession, frozen=True, kw_only=True, tag="commands"):
    """The session's own slash commands, all of them. Takes effect on arrival."""

    commands: tuple[Command, ...]
    """They stand beside those of the app in `hello`, and take the place of one with the same
    name."""


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
    """What a renderer supports."""

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
    """What a renderer sent about itself; `None` = not sent."""

    locale: Preference | None = None
    """For instance `de-CH` (BCP 47)."""
    time_zone: Preference | None = None
    """For instance `Europe/Zurich` (IANA)."""
    theme: Preference | None = None
    """For instance `dark`."""
    viewport: Viewport | None = None
    """As last sent, by `hello` or `resize`."""


class RendererHello(_Versioned, frozen=True, kw_only=True, tag="hello"):
    """What a renderer supports, and which session it joins."""

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
        """What agents may know of the renderer."""
        return RendererInfo(self.locale, self.time_zone, self.theme, self.viewport)


class Input(_Versioned, frozen=True, kw_only=True, tag="input"):
    """What the user did."""

    input_type: InputType
    data: JsonObject
    session_id: Identifier | None = None
    source_component: Name | None = None
    surface: SurfaceName = "main"
    id: Identifier | None = None
    """Idempotency key: the same id twice is one input."""
    edits: Name | None = None
    """The turn whose input it replaces."""


class RendererAck(_Versioned, frozen=True, kw_only=True, tag="ack"):
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
