"""An agent side of the object dialect without `ArpConversation`, read as one that has it.

Theory of operation. Such an agent has surfaces and inputs alone. `PlainAgent` takes its requests,
after the objects of the connection have accepted them, and returns the messages of the session
dialect that show the same. A surface without a role shows nothing: its content is shown, and its
commits are acknowledged, when it gets one. What a commit changes is read from the content of the
surface (`SurfaceContent.applied`), where the fallbacks are resolved.

The agent names no turns. `DraftTurns` makes them: each input begins one, once the agent
acknowledges it or answers it with a commit, and a final commit ends it. A commit that no input has
asked for makes a turn of its own, which it ends.

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
    """What one session with such an agent shows, over all its connections."""

    def __init__(self) -> None:
        self._turns = DraftTurns()
        self._infos: dict[str, SurfaceInfo] = {}
        """Of surfaces with a role, by name; `main` too."""
        self._titles: dict[str, str] = {}
        """Of surfaces, with a role or not."""
        self._waiting: dict[str, Input] = {}
        """Inputs that were sent and have begun no turn, by id, oldest first."""
        self._begun: dict[str, InputAck] = {}
        """Inputs that have begun or answered a turn and are not acknowledged."""

    # -- connections -----------------------------------------------------------------------------

    def connected(self) -> list[AgentMessage]:
        """Return what ends what the connection before has left: turns, and all that showed."""
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
        """Record an input that was sent."""
        self._waiting[input_id] = message

    def acknowledged(self, input_id: str) -> list[AgentMessage]:
        """Return what shows that the agent has an input."""
        shown = self._begin(input_id)
        return [*shown, self._begun.pop(input_id, InputAck(id=input_id, session_id=""))]

    def refused(self, input_id: str | None, payload: ErrorPayload) -> list[AgentMessage]:
        """Return what shows that the agent does not take an input, or what else it refuses."""
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
        """Return whether a surface shows."""
        return name in self._infos

    def described(self, name: str, request: Struct, name_of: NameOf) -> list[AgentMessage]:
        """Return what a request says of a surface besides what is in it.

        Args:
            name: The surface, or the one of the role that the request is for.
            request: Any request.
            name_of: Returns the names of other surfaces.
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
        """Return what removes a surface, if it shows."""
        info = self._infos.get(name)
        if info is None:
            return []
        if name != MAIN:
            closed = SurfaceMessage(session_id="", surface=name, payload=info, closed="agent")
            return [closed]
        return [Render(session_id="", components=[], replace=True), Commit(session_id="")]

    def destroyed(self, name: str) -> list[AgentMessage]:
        """Return what removes a surface that the agent has destroyed, and forget it."""
        out = self.removed(name)
        self._infos.pop(name, None)
        self._titles.pop(name, None)
        return out

    def committed(
        self, name: str, changes: Sequence[SurfaceChange], *, final: bool
    ) -> list[AgentMessage]:
        """Return what shows a commit of a surface with a role.

        Args:
            name: The surface.
            changes: What the commit changes, with the components as they show.
            final: Whether the turn ends with it.
        """
        out: list[AgentMessage] = []
        if not self._turns.is_open and self._waiting and (changes or final):
            out += self._begin(next(iter(self._waiting)))  # the agent answers without an `ack`
        shown = [_as_message(name, change) for change in changes]
        if not shown and not (final and self._turns.is_open):
            return out  # it only answers a `configure`
        commit = Commit(session_id="", surface=name, final=final)
        return [*out, *self._turns.committed(shown, commit)]


def takes_other_places(changes: Sequence[SurfaceChange]) -> bool:
    """Return whether components change their places: turns do not share one list as surfaces do."""
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
