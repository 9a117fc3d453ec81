"""What a renderer shows: the conversation and the surfaces, kept from the messages alone.

Theory of operation. `delta`, tools, `turn` and `error` take effect on arrival; `render` and `patch`
wait for their `commit` and then apply whole or, if the agent side sent what does not fit, not at
all. Output stands in the order in which it was made: text parts and components of a turn share one
list of ids. The text parts of turn `t1` have the ids `t1/1`, `t1/2`, …; a new one counts on from
the last that stands in the output, so that every renderer, whenever it joined, finds the same id.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct, to_builtins

from arp.protocol.catalog import CATALOG
from arp.protocol.components import Component, as_object
from arp.protocol.errors import ErrorPayload, InvalidPatch, ResourceLimit
from arp.protocol.json_value import Json, JsonObject
from arp.protocol.mark import END, Behind, Mark, MarkKind, Piece, pieces_of
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
"""Errors without a turn that are kept; who draws them draws the newest."""

MAX_PENDING_BYTES = 64 << 20
"""That wait for their commit: 64 messages of the largest size, more than a catch-up has. A peer
that never commits must not fill the memory."""

REMEMBERED_CLOSINGS = 64
"""Closed surfaces that are remembered for renderers that are behind; older ones cost a snapshot."""

_MOST_DIGITS = 9
"""Of a text part's number; beyond that it is not one of ours."""


class ToolRun(Struct):
    """One use of a tool."""

    call_id: str
    tool: str
    args: str
    ok: bool | None = None
    """`None` while it runs."""
    error: str | None = None
    seq: int = 0
    """The place of its start."""
    ended: int = 0
    """The place of its end."""
    progress: ToolProgressPayload | None = None
    """How far it is, as it said last; `None` when it is done."""
    progressed: int = 0
    """The place where it said so."""
    result: str | None = None
    """The beginning of what it returned; `None` if nothing was said of it."""
    result_ref: str | None = None
    """Where the whole of it is, if that is longer."""
    duration_ms: int | None = None


class TurnScreen(Struct):
    """One turn of the conversation."""

    id: str
    status: TurnStatus | None = None
    position: int | None = None
    inputs: list[InputEcho] = []
    """What the user said or did: the input that began the turn, then answers to its questions."""
    tools: list[ToolRun] = []
    thinking: str = ""
    errors: list[ErrorPayload] = []
    marks: list[Mark] = []
    """Where inputs, tools, errors and the thinking stand among the output, as they came."""
    usage: JsonObject | None = None
    final: bool = False
    parts: int = 0
    """The number of the text part that was opened last."""
    seq: int = 0
    """The last place that changed anything of it but its output."""
    thought: int = 0
    """The last place that changed its thinking."""
    permissions: dict[str, Permission] = {}
    """The components by which its tools asked for permission."""
    paused: bool = False
    """While queued: the queue is paused until somebody resumes it."""
    ended: str | None = None
    """When, RFC 3339; `None` while it is not over, or of an agent side that does not say."""


class SurfaceEntry(Struct):
    """A surface besides `main` of which something is known beyond its name."""

    info: SurfaceInfo
    turn_id: str | None
    """The turn that created it; `None`: it came from another session."""
    born: int
    """The place where it was created."""
    seq: int
    """The place where `info` changed last."""


class ClosedSurface(Struct, frozen=True):
    """A surface that was closed."""

    seq: int
    """The place where it was closed."""
    reason: CloseReason
    info: SurfaceInfo


class Screen:
    """The state that a renderer draws."""

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
        """The session's own, which stand beside those of the app."""
        self.commands_seq = 0
        """The place where they changed last."""
        self.turns: dict[str, TurnScreen] = {}
        self.surfaces: dict[str, Tree] = {"main": Tree()}
        self.infos: dict[str, SurfaceEntry] = {}
        """Of surfaces, by name; one that was never described is a toplevel without a title."""
        self.closings: dict[str, ClosedSurface] = {}
        """The newest closed surfaces by name, oldest first; a name may be in use again."""
        self.closings_forgotten = 0
        """The place of the newest closing that is not remembered any more."""
        self.shared_state: JsonObject = {}
        """What agents share with renderers; replaced, never changed."""
        self.state_seq = 0
        """The place where it changed last."""
        self.errors: list[ErrorPayload] = []
        """Those that belong to no turn, the newest 100."""
        self._pending: list[Render | Patch] = []
        self._pending_bytes = 0
        self._spoiled = False

    # -- reading ---------------------------------------------------------------------------------

    def turn(self, turn_id: str) -> TurnScreen:
        """Return a turn, which is made if it is new."""
        found = self.turns.get(turn_id)
        if found is None:
            found = self.turns[turn_id] = TurnScreen(turn_id)
        return found

    def output(self, turn_id: str, surface: str = "main") -> list[Component]:
        """Return what a turn has shown, in order; its text parts as `text` components.

        On surfaces other than `main` there are no turns: all of it is given for every one.
        """
        tree = self.surfaces.get(surface)
        return tree.output(_output_of(turn_id, surface)) if tree else []

    def text(self, turn_id: str) -> str:
        """Return the text parts of a turn, joined."""
        return "".join(
            part.props["content"] for part in self.output(turn_id) if is_text_part(part, turn_id)
        )

    def info(self, surface: str) -> SurfaceInfo:
        """Return what a surface is."""
        entry = self.infos.get(surface)
        return entry.info if entry is not None else SurfaceInfo()

    def story(self, turn_id: str) -> list[Piece]:
        """Return all of a turn in the order in which it happened: its output and its marks."""
        output, turn = self.output(turn_id), self.turns.get(turn_id)
        parts = frozenset(part.id for part in output if is_text_part(part, turn_id))
        return list(pieces_of(output, parts, turn.marks if turn else ()))

    def canonical(self) -> Json:
        """Return all that shows as plain JSON, equal for equal screens however they came about."""
        own = {"commands": [_offered(one) for one in self.commands]} if self.commands else {}
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
        """Take one message of the agent side; what shows nothing is passed over.

        Args:
            message: Any message.
            seq: The place of the fact that it shows, where the message itself does not say it.

        Returns:
            Why a commit could not be applied, if so: then nothing of it is, and this screen is no
            longer what the agent side takes it to be.
        """
        apply = _APPLY.get(type(message))
        return None if apply is None else apply(self, message, seq or 0)

    def drop_pending(self) -> None:
        """Forget what has come without its commit: that will not come."""
        self._pending.clear()
        self._spoiled = False

    def spoil_pending(self) -> None:
        """Record that something is missing before the next commit: that shows nothing then."""
        self._pending.clear()
        self._spoiled = True

    def weigh_pending(self, size: int) -> ResourceLimit | None:
        """Count what waits for its commit, in bytes; of too much nothing is kept or shown.

        Args:
            size: Of the frame that was applied last.

        Returns:
            Why the next commit shows nothing, if so.
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
            if not turn.thinking:
                self._mark(turn, "thinking", 0, message.behind, seq)
            turn.thinking += payload.delta
            turn.thought = turn.seq = max(turn.seq, seq)
            return
        tree = self.surfaces.setdefault(message.surface, Tree())
        output = _output_of(turn.id, message.surface)
        items = tree.outputs.get(output)
        if payload.target is not None:
            _extend(tree, payload.target, payload.delta, seq)
        elif items and _part_number(items[-1], turn.id):
            _extend(tree, items[-1], payload.delta, seq)
        else:
            turn.parts = _next_part(tree, turn.id, items or ())
            props = {"content": payload.delta, "format": "markdown"}
            tree.begin(seq)
            tree.upsert(Component(f"{turn.id}/{turn.parts}", "text", props), output)
            tree.keep()

    def _commit(self, message: Commit, seq: int) -> InvalidPatch | ResourceLimit | None:
        seq, pending = message.seq or seq, self._pending
        self._pending, self._spoiled = [], False
        refused: InvalidPatch | ResourceLimit | None = None
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
                    del self.surfaces[name]
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
            turn.inputs[0] = message
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
        self._pending = [one for one in self._pending if one.surface != name]
        self.closings.pop(name, None)
        self.closings[name] = closing
        while len(self.closings) > REMEMBERED_CLOSINGS:
            forgotten = self.closings.pop(next(iter(self.closings)))
            self.closings_forgotten = max(self.closings_forgotten, forgotten.seq)

    def touch_place(self, name: str, seq: int) -> None:
        """Mark the place that a popup or an overlay has in the output of its turn as changed.

        A renderer without the feature `overlays` shows its components there.
        """
        entry, main = self.infos.get(name), self.surfaces["main"]
        if entry is not None and entry.info.is_transient and name in main.nodes:
            main.nodes[name].seq = max(seq, main.nodes[name].seq)

    def _state(self, message: StateMessage, seq: int) -> None:
        self.shared_state, self.state_seq = message.state, message.seq or seq

    def _mark(
        self, turn: TurnScreen, kind: MarkKind, number: int, behind: Behind | None, seq: int
    ) -> None:
        mark = Mark(kind, number, behind or END, seq)
        self.surfaces["main"].mark(mark, turn.id)
        turn.marks.append(mark)


def _offered(command: Command) -> JsonObject:
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
"""What a message does to a screen, and where it fails why; other messages show nothing."""


def is_text_part(component: Component, turn_id: str) -> bool:
    """Return whether a root component of a turn is text that was said, not a component."""
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
    while f"{turn_id}/{last + 1}" in tree.nodes:
        last += 1
    return last + 1


def _output_of(turn_id: str, surface: str) -> str:
    return turn_id if surface == "main" else ""


def _extend(tree: Tree, component_id: str, text: str, seq: int) -> None:
    """Add text to a component, if it is there and has text to add to."""
    node = tree.nodes.get(component_id)
    if node is None:
        return
    spec = CATALOG.get(node.type)
    path = "content" if spec is None else spec.text_path
    if path is not None and isinstance(node.own.get(path, ""), str):
        tree.append_text(component_id, path, text, seq)


def _end_tool(tools: list[ToolRun], end: ToolEndPayload, seq: int) -> None:
    for run in tools:
        if run.ok is None and (run.call_id == end.call_id if end.call_id else run.tool == end.tool):
            run.ok, run.error, run.ended, run.progress = end.ok, end.error, seq, None
            run.result, run.result_ref = end.result, end.result_ref
            run.duration_ms = end.duration_ms
            return


def _details(run: ToolRun) -> list[JsonObject]:
    """Return what renderers with the feature `tool-detail` show of a tool besides, if anything.

    How long it ran is not in it: that differs when the same turn runs again.
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
