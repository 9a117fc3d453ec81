"""The state of a renderer: the conversation and the surfaces, computed from messages alone.

Theory of operation. `delta`, tool messages, `turn` and `error` take effect on arrival. `render` and
`patch` wait for their `commit`. A commit applies all of them, or none if one does not fit. Text
parts and components of a turn share one ordered list of ids. The text parts of turn `t1` have the
ids `t1/1`, `t1/2`, …. The number of a new text part follows the last number in the output, so that
all renderers choose the same id, no matter when they joined.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct, to_builtins

from arp.protocol.catalog import CATALOG
from arp.protocol.components import Component, as_object
from arp.protocol.errors import ErrorPayload, InvalidPatch, ResourceLimit
from arp.protocol.json_value import Json, JsonObject
from arp.protocol.mark import END, Mark, MarkKind, OutputAnchor, Piece, pieces_of
from arp.protocol.messages import (
    CloseReason,
    Command,
    CommandsMessage,
    Commit,
    Delta,
    ErrorMessage,
    InputEcho,
    Patch,
    Permission,
    Render,
    StateMessage,
    SurfaceInfo,
    SurfaceMessage,
    ToolEnd,
    ToolEndPayload,
    ToolProgress,
    ToolProgressPayload,
    ToolStart,
    TurnMessage,
    TurnStatus,
)
from arp.protocol.tree import Tree

MAX_ERRORS = 100
"""Errors without a turn that are kept; the oldest are dropped first."""

MAX_PENDING_BYTES = 64 << 20
"""Largest total size of changes that wait for a commit: 64 messages of the largest size, more than
a catch-up sends. A peer that never commits must not fill the memory."""

REMEMBERED_CLOSINGS = 64
"""Closed surfaces that are remembered; a renderer lagging further behind needs a snapshot."""

_MOST_DIGITS = 9
"""Maximum number of digits in a text part's number; an id with more is not a text part."""


class ToolRun(Struct):
    """One tool call. `seq`, `ended` and `progressed` are sequence numbers of facts."""

    call_id: str
    tool: str
    args: str
    ok: bool | None = None
    """Whether it succeeded; `None` while it runs."""
    error: str | None = None
    seq: int = 0
    """Sequence number of its start."""
    ended: int = 0
    """Sequence number of its end."""
    progress: ToolProgressPayload | None = None
    """Last reported progress; `None` after the end."""
    progressed: int = 0
    """Sequence number of the last progress report."""
    result: str | None = None
    """Beginning of the result; `None` if no result was sent."""
    result_ref: str | None = None
    """Reference to the full result, if `result` is only its beginning."""
    duration_ms: int | None = None


class TurnScreen(Struct):
    """One turn of the conversation."""

    id: str
    status: TurnStatus | None = None
    position: int | None = None
    inputs: list[InputEcho] = []
    """Inputs of the user: first the input that started the turn, then answers to its questions."""
    tools: list[ToolRun] = []
    thinking: str = ""
    errors: list[ErrorPayload] = []
    marks: list[Mark] = []
    """Positions of inputs, tool calls, errors and the thinking in the output, oldest first."""
    usage: JsonObject | None = None
    final: bool = False
    parts: int = 0
    """Number of the newest text part."""
    seq: int = 0
    """Sequence number of the last change to anything but the output."""
    thought: int = 0
    """Sequence number of the last change to `thinking`."""
    permissions: dict[str, Permission] = {}
    """Permission requests of its tool calls, by the id of the component that asks."""
    paused: bool = False
    """Whether the queue is paused; set for a queued turn only."""
    ended: str | None = None
    """Time of its end (RFC 3339); `None` before the end, or if the agent side does not send it."""


class SurfaceEntry(Struct):
    """Metadata of a surface other than `main`."""

    info: SurfaceInfo
    turn_id: str | None
    """The turn that created it; `None`: it came from another session."""
    born: int
    """Sequence number of its creation."""
    seq: int
    """Sequence number of the last change to `info`."""


class ClosedSurface(Struct, frozen=True):
    """What a screen keeps of a closed surface, so that a catch-up can repeat the closing."""

    seq: int
    """Sequence number of the closing."""
    reason: CloseReason
    info: SurfaceInfo


class Screen:
    """Everything that a renderer draws. All `seq` values are sequence numbers of facts."""

    __slots__ = (
        "_pending",
        "_pending_bytes",
        "_spoiled",
        "closings",
        "closings_forgotten",
        "commands",
        "commands_seq",
        "errors",
        "infos",
        "shared_state",
        "state_seq",
        "surfaces",
        "turns",
    )

    def __init__(self) -> None:
        self.commands: tuple[Command, ...] = ()
        """Commands of the session, in addition to those of the app."""
        self.commands_seq = 0
        """Sequence number of the last change to `commands`."""
        self.turns: dict[str, TurnScreen] = {}
        self.surfaces: dict[str, Tree] = {"main": Tree()}
        self.infos: dict[str, SurfaceEntry] = {}
        """Metadata of surfaces, by name. A surface without an entry is a toplevel without title."""
        self.closings: dict[str, ClosedSurface] = {}
        """The newest closed surfaces by name, oldest first; the name may be in use again."""
        self.closings_forgotten = 0
        """Sequence number of the newest closing that is no longer remembered."""
        self.shared_state: JsonObject = {}
        """State that agents share with renderers; replaced as a whole, never modified."""
        self.state_seq = 0
        """Sequence number of the last change to `shared_state`."""
        self.errors: list[ErrorPayload] = []
        """Errors without a turn, the newest `MAX_ERRORS`."""
        self._pending: list[Render | Patch] = []
        self._pending_bytes = 0
        self._spoiled = False
        """Whether a change before the next commit was lost."""

    # -- reading ---------------------------------------------------------------------------------

    def turn(self, turn_id: str) -> TurnScreen:
        """Return a turn; create it if it is unknown."""
        found = self.turns.get(turn_id)
        if found is None:
            found = self.turns[turn_id] = TurnScreen(turn_id)
        return found

    def output(self, turn_id: str, surface: str = "main") -> list[Component]:
        """Return the output of a turn, in order, with its text parts as `text` components.

        Surfaces other than `main` have no turns: the whole surface is returned for every turn.
        """
        tree = self.surfaces.get(surface)
        return tree.output(_output_of(turn_id, surface)) if tree else []

    def text(self, turn_id: str) -> str:
        """Return the text parts of a turn, joined."""
        return "".join(
            part.props["content"] for part in self.output(turn_id) if is_text_part(part, turn_id)
        )

    def info(self, surface: str) -> SurfaceInfo:
        """Return the metadata of a surface; the default if it has none."""
        entry = self.infos.get(surface)
        return entry.info if entry is not None else SurfaceInfo()

    def story(self, turn_id: str) -> list[Piece]:
        """Return the output of a turn and its marks, in reading order."""
        output, turn = self.output(turn_id), self.turns.get(turn_id)
        parts = frozenset(part.id for part in output if is_text_part(part, turn_id))
        return list(pieces_of(output, parts, turn.marks if turn else ()))

    def canonical(self) -> Json:
        """Return the whole screen as plain JSON, for comparison.

        Equal screens give equal values, whether they were built live, by replay or by catch-up.
        """
        own = (
            {"commands": [_command_as_json(one) for one in self.commands]} if self.commands else {}
        )
        windows = {name: to_builtins(entry.info) for name, entry in sorted(self.infos.items())}
        return {
            **own,
            **({"windows": windows} if windows else {}),
            **({"state": self.shared_state} if self.shared_state else {}),
            "turns": {
                turn.id: {
                    "status": turn.status,
                    "inputs": [[echo.input_type, echo.data] for echo in turn.inputs],
                    "tools": [
                        [run.tool, run.args, run.ok, run.error, *_details(run)]
                        for run in turn.tools
                    ],
                    "thinking": turn.thinking,
                    "errors": [[error.code, error.error] for error in turn.errors],
                    "final": turn.final,
                    "output": [
                        item.props["content"] if is_text_part(item, turn.id) else as_object(item)
                        for item in self.output(turn.id)
                    ],
                    "story": [
                        piece.text or f"{piece.kind} {piece.number}"
                        for piece in self.story(turn.id)
                    ],
                }
                for turn in self.turns.values()
            },
            "surfaces": {
                name: [as_object(item) for item in tree.output()]
                for name, tree in sorted(self.surfaces.items())
                if name != "main" and tree.outputs.get("")
            },
        }

    # -- messages --------------------------------------------------------------------------------

    def apply(self, message: object, seq: int | None = None) -> InvalidPatch | ResourceLimit | None:
        """Apply one message of the agent side; ignore messages that show nothing.

        Args:
            message: Any message.
            seq: Sequence number of the fact, if the message itself does not carry it.

        Returns:
            Reason why a commit was refused, else `None`. A refused commit changes nothing, but this
            screen then differs from the agent side's.
        """
        apply = _APPLY.get(type(message))
        return None if apply is None else apply(self, message, seq or 0)

    def drop_pending(self) -> None:
        """Discard changes without a commit, because their commit will never arrive."""
        self._pending.clear()
        self._spoiled = False

    def spoil_pending(self) -> None:
        """Record that a change was lost: discard all changes up to the next commit.

        Showing the rest of the commit would show half of a change.
        """
        self._pending.clear()
        self._spoiled = True

    def weigh_pending(self, size: int) -> ResourceLimit | None:
        """Count the bytes that wait for a commit; discard the changes if there are too many.

        Args:
            size: Bytes of the frame that was applied last.

        Returns:
            Why the next commit will show nothing, else `None`.
        """
        self._pending_bytes = self._pending_bytes + size if self._pending else 0
        if self._pending_bytes <= MAX_PENDING_BYTES:
            return None
        self.spoil_pending()
        return ResourceLimit(
            f"more than {MAX_PENDING_BYTES} bytes came without a commit; they are not shown",
            detail="commit",
        )

    def _change(self, message: Render | Patch, _: int) -> None:
        if not self._spoiled:
            self._pending.append(message)

    def _delta(self, message: Delta, seq: int) -> None:
        turn, seq = self.turn(message.turn_id or ""), message.seq or seq
        payload = message.payload
        if payload.kind == "thinking":
            if not turn.thinking:  # one mark per turn, where the thinking began
                self._mark(turn, "thinking", 0, message.behind, seq)
            turn.thinking += payload.delta
            turn.thought = turn.seq = max(turn.seq, seq)
            return
        tree = self.surfaces.setdefault(message.surface, Tree())
        output = _output_of(turn.id, message.surface)
        items = tree.outputs.get(output)
        if payload.target is not None:
            _extend(tree, payload.target, payload.delta, seq)
        elif items and _part_number(items[-1], turn.id):  # the text part is still open
            _extend(tree, items[-1], payload.delta, seq)
        else:
            # A component after the last text part has closed it: the text must not move before it.
            turn.parts = _next_part(tree, turn.id, items or ())
            props = {"content": payload.delta, "format": "markdown"}
            tree.begin(seq)
            tree.upsert(Component(f"{turn.id}/{turn.parts}", "text", props), output)
            tree.keep()

    def _commit(self, message: Commit, seq: int) -> InvalidPatch | ResourceLimit | None:
        seq, pending = message.seq or seq, self._pending
        self._pending, self._spoiled = [], False
        refused: InvalidPatch | ResourceLimit | None = None
        # A commit may change several surfaces. All their trees stay open until every change is
        # applied: otherwise a late failure would leave a part of the commit on the screen.
        known = set(self.surfaces)
        opened: dict[str, Tree] = {}
        try:
            for change in pending:
                tree = opened.get(change.surface)
                if tree is None:
                    tree = self.surfaces.setdefault(change.surface, Tree())
                    opened[change.surface] = tree
                    tree.begin(seq)
                _apply(tree, change, _output_of(change.turn_id or "", change.surface))
        except (InvalidPatch, ResourceLimit) as error:
            refused = error
        for name, tree in opened.items():
            if refused is None:
                tree.keep()
                self.touch_place(name, seq)
            else:
                tree.rollback()
                if name not in known:
                    del self.surfaces[name]  # the refused commit had created it
        if message.turn_id is not None:
            turn = self.turn(message.turn_id)
            turn.final = turn.final or message.final
            turn.usage = message.usage or turn.usage
            turn.ended = message.at or turn.ended
            if message.final:
                turn.seq = max(turn.seq, seq)
        return refused

    def _changed_turn(self, turn_id: str | None, seq: int) -> TurnScreen:
        turn = self.turn(turn_id or "")
        turn.seq = max(turn.seq, seq)
        return turn

    def _status(self, message: TurnMessage, seq: int) -> None:
        turn = self._changed_turn(message.turn_id, message.seq or seq)
        turn.status, turn.position = message.status, message.position
        turn.paused = message.paused
        if message.permission is not None:
            turn.permissions[message.permission.component] = message.permission

    def _input(self, message: InputEcho, seq: int) -> None:
        seq = message.seq or seq
        turn = self._changed_turn(message.turn_id, seq)
        if message.edited and turn.inputs:
            turn.inputs[0] = message  # keeps the mark of the original input
            return
        self._mark(turn, "input", len(turn.inputs), message.behind, seq)
        turn.inputs.append(message)

    def _tool_start(self, message: ToolStart, seq: int) -> None:
        seq, start = message.seq or seq, message.payload
        turn = self._changed_turn(message.turn_id, seq)
        self._mark(turn, "tool", len(turn.tools), message.behind, seq)
        turn.tools.append(ToolRun(start.call_id, start.tool, start.args, seq=seq))

    def _tool_progress(self, message: ToolProgress, seq: int) -> None:
        seq = message.seq or seq
        _progress(self._changed_turn(message.turn_id, seq).tools, message.payload, seq)

    def _tool_end(self, message: ToolEnd, seq: int) -> None:
        seq = message.seq or seq
        _end_tool(self._changed_turn(message.turn_id, seq).tools, message.payload, seq)

    def _error(self, message: ErrorMessage, seq: int) -> None:
        if message.turn_id is None:
            self.errors = [*self.errors[1 - MAX_ERRORS :], message.payload]
            return
        seq = message.seq or seq
        turn = self._changed_turn(message.turn_id, seq)
        self._mark(turn, "error", len(turn.errors), message.behind, seq)
        turn.errors.append(message.payload)

    def _commands(self, message: CommandsMessage, seq: int) -> None:
        self.commands, self.commands_seq = message.commands, message.seq or seq

    def _surface(self, message: SurfaceMessage, seq: int) -> None:
        name, seq = message.surface, message.seq or seq
        if name == "main":
            return
        if message.closed is not None:
            self._close(name, ClosedSurface(seq, message.closed, message.payload))
            return
        self.surfaces.setdefault(name, Tree())
        entry = self.infos.get(name)
        if entry is None:
            self.infos[name] = SurfaceEntry(message.payload, message.turn_id, seq, seq)
        else:
            entry.info, entry.seq = message.payload, seq

    def _close(self, name: str, closing: ClosedSurface) -> None:
        self.surfaces.pop(name, None)
        self.infos.pop(name, None)
        # Changes without a commit would create the surface again.
        self._pending = [one for one in self._pending if one.surface != name]
        self.closings.pop(name, None)  # the newest closing of a reused name goes to the end
        self.closings[name] = closing
        while len(self.closings) > REMEMBERED_CLOSINGS:
            forgotten = self.closings.pop(next(iter(self.closings)))
            self.closings_forgotten = max(self.closings_forgotten, forgotten.seq)

    def touch_place(self, name: str, seq: int) -> None:
        """Mark the group on `main` that represents a popup or an overlay as changed.

        Renderers without the feature `overlays` show the components of the surface in that group.
        """
        entry, main = self.infos.get(name), self.surfaces["main"]
        if entry is not None and entry.info.is_transient and name in main.nodes:
            main.nodes[name].seq = max(seq, main.nodes[name].seq)

    def _state(self, message: StateMessage, seq: int) -> None:
        self.shared_state, self.state_seq = message.state, message.seq or seq

    def _mark(
        self, turn: TurnScreen, kind: MarkKind, number: int, behind: OutputAnchor | None, seq: int
    ) -> None:
        mark = Mark(kind, number, behind or END, seq)
        self.surfaces["main"].mark(mark, turn.id)
        turn.marks.append(mark)


def _command_as_json(command: Command) -> JsonObject:
    choices = {"choices": [to_builtins(one) for one in command.choices]} if command.choices else {}
    return {**to_builtins(command), **choices}


_APPLY: dict[type, Callable[[Screen, Any, int], InvalidPatch | ResourceLimit | None]] = {
    Delta: Screen._delta,
    Render: Screen._change,
    Patch: Screen._change,
    Commit: Screen._commit,
    TurnMessage: Screen._status,
    InputEcho: Screen._input,
    ToolStart: Screen._tool_start,
    ToolProgress: Screen._tool_progress,
    ToolEnd: Screen._tool_end,
    ErrorMessage: Screen._error,
    CommandsMessage: Screen._commands,
    SurfaceMessage: Screen._surface,
    StateMessage: Screen._state,
}
"""Handler of each message type. The handler of `Commit` returns why a commit was refused.

Messages of other types show nothing.
"""


def is_text_part(component: Component, turn_id: str) -> bool:
    """Return whether a root component is a text part of the turn: streamed text."""
    return (
        component.type == "text"
        and _part_number(component.id, turn_id) > 0
        and isinstance(component.props.get("content"), str)
    )


def _part_number(component_id: str, turn_id: str) -> int:
    """Return the number of a text part of this turn; 0 for any other component."""
    turn, _, number = component_id.rpartition("/")
    ours = turn == turn_id and number.isascii() and number.isdigit()
    return int(number) if ours and len(number) <= _MOST_DIGITS else 0


def _next_part(tree: Tree, turn_id: str, items: Sequence[str]) -> int:
    last = next(filter(None, (_part_number(item, turn_id) for item in reversed(items))), 0)
    # The id may be in use elsewhere on the surface: the text part would replace that component.
    while f"{turn_id}/{last + 1}" in tree.nodes:
        last += 1
    return last + 1


def _output_of(turn_id: str, surface: str) -> str:
    return turn_id if surface == "main" else ""


def _extend(tree: Tree, component_id: str, text: str, seq: int) -> None:
    """Append text to a component.

    Do nothing if the component does not exist, or if its prop for text is not a string.
    """
    node = tree.nodes.get(component_id)
    if node is None:
        return
    spec = CATALOG.get(node.type)
    path = "content" if spec is None else spec.text_path
    if path is not None and isinstance(node.own.get(path, ""), str):
        tree.append_text(component_id, path, text, seq)


def _end_tool(tools: list[ToolRun], end: ToolEndPayload, seq: int) -> None:
    # Without a call id, the oldest running call of this tool is meant.
    for run in tools:
        if run.ok is None and (run.call_id == end.call_id if end.call_id else run.tool == end.tool):
            run.ok, run.error, run.ended, run.progress = end.ok, end.error, seq, None
            run.result, run.result_ref = end.result, end.result_ref
            run.duration_ms = end.duration_ms
            return


def _details(run: ToolRun) -> list[JsonObject]:
    """Return the fields that only renderers with the feature `tool-detail` show.

    The list has one object, or none if no field is set. The duration is left out, because it
    differs each time the same turn runs.
    """
    fields: JsonObject = {
        "progress": None if run.progress is None else to_builtins(run.progress),
        "result": run.result,
        "result_ref": run.result_ref,
    }
    known = {name: value for name, value in fields.items() if value is not None}
    return [known] if known else []


def _progress(tools: list[ToolRun], progress: ToolProgressPayload, seq: int) -> None:
    for run in tools:
        if run.ok is None and run.call_id == progress.call_id:
            run.progress, run.progressed = progress, seq
            return


def _apply(tree: Tree, change: Render | Patch, output: str) -> None:
    if isinstance(change, Patch):
        for op in change.ops:
            tree.patch(op, output)
        return
    if change.replace:
        tree.clear()
    for component in change.components:
        tree.upsert(component, output)
