"""Translation of a plain agent, without `ArpConversation`, into the session dialect.

Theory of operation. A plain agent has only surfaces and inputs. `PlainAgent` receives its requests
after the objects of the connection have accepted them, and returns equivalent messages of the
session dialect. A surface without a role is invisible: its content is shown, and its commits are
acknowledged, when it gets a role. The changes of a commit are read from the content of the surface
(`SurfaceContent.applied`), where fallbacks are resolved.

A plain agent does not name turns. `DraftTurns` creates them: an input starts a turn when the agent
acknowledges it or answers it with a commit, and a final commit ends the turn. A commit without an
input creates a turn and ends it at once.

Source: protocol.md, "Object dialect" and "Differences from the v0.1 draft".
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from arp.protocol.draft_agent import DraftTurns
from arp.protocol.errors import ErrorPayload
from arp.protocol.messages import (
    AgentMessage,
    Commit,
    ErrorMessage,
    Input,
    InputAck,
    Patch,
    Render,
    SurfaceInfo,
    SurfaceMessage,
)
from arp.protocol.objects.content import SurfaceChange
from arp.protocol.objects.conversation import MAIN, NameOf
from arp.protocol.objects.messages import (
    OverlaySetAnchorRequest,
    OverlaySetTimeoutRequest,
    ShellGetOverlayRequest,
    ShellGetPopupRequest,
    ShellGetToplevelRequest,
    SurfaceRenderRequest,
    SurfaceSetTitleRequest,
    ToplevelSetTitleRequest,
)
from arp.protocol.patch import Reorder


class PlainAgent:
    """One session with a plain agent, over all its connections."""

    def __init__(self) -> None:
        self._turns = DraftTurns()
        self._infos: dict[str, SurfaceInfo] = {}
        """Metadata of surfaces with a role, by name; includes `main`."""
        self._titles: dict[str, str] = {}
        """Titles of all surfaces, by name."""
        self._waiting: dict[str, Input] = {}
        """Sent inputs that have not started a turn, by id, oldest first."""
        self._begun: dict[str, InputAck] = {}
        """Acknowledgements to emit later, by the id of the input; it already belongs to a turn."""

    # -- connections -----------------------------------------------------------------------------

    def connected(self) -> list[AgentMessage]:
        """Return messages that end the open turns and surfaces of the previous connection."""
        out = self._turns.connected()
        for name in self._infos:
            out += self.removed(name)
        self._infos.clear()
        self._titles.clear()
        self._waiting.clear()
        self._begun.clear()
        return out

    # -- inputs ----------------------------------------------------------------------------------

    def sent(self, message: Input, input_id: str) -> None:
        """Record a sent input."""
        self._waiting[input_id] = message

    def acknowledged(self, input_id: str) -> list[AgentMessage]:
        """Return the messages for an input that the agent acknowledged."""
        shown = self._begin(input_id)
        return [*shown, self._begun.pop(input_id, InputAck(id=input_id, session_id=""))]

    def refused(self, input_id: str | None, payload: ErrorPayload) -> list[AgentMessage]:
        """Return the messages for a refused input, or for another refused message."""
        self._waiting.pop(input_id or "", None)
        self._begun.pop(input_id or "", None)
        return [ErrorMessage(payload=replace(payload, id=input_id), session_id="")]

    def _begin(self, input_id: str) -> list[AgentMessage]:
        message = self._waiting.pop(input_id, None)
        if message is None:
            return []
        *shown, ack = self._turns.begin(message, input_id)
        assert isinstance(ack, InputAck)
        self._begun[input_id] = ack
        return shown

    # -- surfaces --------------------------------------------------------------------------------

    def has_role(self, name: str) -> bool:
        """Return whether a surface has a role and is therefore shown."""
        return name in self._infos

    def described(self, name: str, request: Struct, name_of: NameOf) -> list[AgentMessage]:
        """Return the messages for a request that changes the metadata of a surface.

        Args:
            name: Name of the surface that the request changes, directly or through its role.
            request: Any request; requests that do not change metadata return nothing.
            name_of: Function that returns the name of a surface.
        """
        info = self._infos.get(name, SurfaceInfo(title=self._titles.get(name, "")))
        match request:
            case ShellGetToplevelRequest():
                info = replace(info, role="toplevel")
            case ShellGetPopupRequest(parent_id=parent, source_component=source):
                info = replace(info, role="popup", parent=name_of(parent), component=source)
            case ShellGetOverlayRequest():
                info = replace(info, role="overlay")
            case OverlaySetAnchorRequest(surface_id=parent):
                info = replace(info, parent=name_of(parent))
            case OverlaySetTimeoutRequest(timeout_ms):
                info = replace(info, timeout_ms=timeout_ms or None)
            case SurfaceSetTitleRequest(title) | ToplevelSetTitleRequest(title):
                self._titles[name] = title
                info = replace(info, title=title)
                if name not in self._infos:
                    return []
            case _:
                return []
        self._infos[name] = info
        return [] if name == MAIN else [SurfaceMessage(session_id="", surface=name, payload=info)]

    def removed(self, name: str) -> list[AgentMessage]:
        """Return the messages that remove a surface, if it is shown."""
        info = self._infos.get(name)
        if info is None:
            return []
        if name != MAIN:
            closed = SurfaceMessage(session_id="", surface=name, payload=info, closed="agent")
            return [closed]
        return [Render(session_id="", components=[], replace=True), Commit(session_id="")]

    def destroyed(self, name: str) -> list[AgentMessage]:
        """Forget a surface that the agent has destroyed; return the messages that remove it."""
        out = self.removed(name)
        self._infos.pop(name, None)
        self._titles.pop(name, None)
        return out

    def committed(
        self, name: str, changes: Sequence[SurfaceChange], *, final: bool
    ) -> list[AgentMessage]:
        """Return the messages for a commit of a surface with a role.

        Args:
            name: The surface.
            changes: The changes of the commit, with fallbacks resolved.
            final: Whether the commit ends the turn.
        """
        out: list[AgentMessage] = []
        if not self._turns.is_open and self._waiting and (changes or final):
            # An agent may answer an input without an `ack`; its answer must not become a turn
            # without input.
            out += self._begin(next(iter(self._waiting)))
        shown = [_as_message(name, change) for change in changes]
        if not shown and not (final and self._turns.is_open):
            return out  # this commit only answers a `configure`
        commit = Commit(session_id="", surface=name, final=final)
        return [*out, *self._turns.committed(shown, commit)]


def moves_components(changes: Sequence[SurfaceChange]) -> bool:
    """Return whether changes reorder components.

    The components of a surface are one list for the agent, but one list per turn on the screen. A
    `reorder` that moves a component from one turn to another cannot be translated.
    """
    return any(
        isinstance(op, Reorder)
        for change in changes
        if not isinstance(change, SurfaceRenderRequest)
        for op in change.ops
    )


def _as_message(name: str, change: SurfaceChange) -> Render | Patch:
    if isinstance(change, SurfaceRenderRequest):
        return Render(
            session_id="",
            surface=name,
            components=change.components,
            tool_name=change.tool_name,
            replace=change.replace,
        )
    return Patch(session_id="", surface=name, ops=change.ops)
