"""What a renderer shows: the conversation and the surfaces, kept from the messages alone.

Theory of operation. `delta`, tools, `turn` and `error` take effect on arrival; `render` and `patch` wait for
their `commit` and then apply whole or, if the agent side sent what does not fit, not at all. Output stands
in the order in which it was made: text parts and components of a turn share one list of ids, in which
text parts have ids with a `/` (no component has one).
"""

from __future__ import annotations

from msgspec import Struct

from arp.protocol.component import Component
from arp.protocol.errors import ErrorPayload, InvalidPatch, ResourceLimit
from arp.protocol.json_value import Json, JsonObject
from arp.protocol.messages import (
    Commit,
    Delta,
    ErrorMessage,
    InputEcho,
    Patch,
    Render,
    ToolEnd,
    ToolEndPayload,
    ToolStart,
    TurnMessage,
    TurnStatus,
)
from arp.protocol.tree import Tree, as_object

TEXT_PATHS = {"text": "content", "markdown": "content", "code-block": "code"}
"""Which prop a `delta` with a `target` extends."""


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
    error_seqs: list[int] = []
    """The place of each error."""
    usage: JsonObject | None = None
    final: bool = False
    parts: int = 0
    """Text parts opened so far."""
    seq: int = 0
    """The last place that changed anything of it but its output."""


class Screen:
    """The state that a renderer draws."""

    def __init__(self) -> None:
        self.turns: dict[str, TurnScreen] = {}
        self.surfaces: dict[str, Tree] = {"main": Tree()}
        self.errors: list[ErrorPayload] = []
        """Errors that belong to no turn; the newest 100."""
        self._pending: list[Render | Patch] = []

    # -- reading ---------------------------------------------------------------------------------

    def turn(self, turn_id: str) -> TurnScreen:
        """Gives a turn, which is made if it is new."""
        found = self.turns.get(turn_id)
        if found is None:
            found = self.turns[turn_id] = TurnScreen(turn_id)
        return found

    def output(self, turn_id: str, surface: str = "main") -> list[Component]:
        """Gives what a turn has shown, in order; text parts as `text` components with a `/` in the id."""
        tree = self.surfaces.get(surface)
        return tree.output(turn_id if surface == "main" else "") if tree else []

    def text(self, turn_id: str) -> str:
        """Gives the text parts of a turn, joined."""
        return "".join(part.props["content"] for part in self.output(turn_id) if "/" in part.id)

    def canonical(self) -> Json:
        """Gives all that shows as plain JSON, equal for equal screens however they came about."""
        return {
            "turns": {
                turn.id: {
                    "status": turn.status,
                    "inputs": [[echo.input_type, echo.data] for echo in turn.inputs],
                    "tools": [[run.tool, run.args, run.ok, run.error] for run in turn.tools],
                    "thinking": turn.thinking,
                    "errors": [[error.code, error.error] for error in turn.errors],
                    "final": turn.final,
                    "output": [
                        as_object(item) if "/" not in item.id else item.props["content"]
                        for item in self.output(turn.id)
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

    def apply(self, message: object) -> None:
        """Takes one message of the agent side; what shows nothing is passed over."""
        match message:
            case Delta():
                self._delta(message)
            case Render() | Patch():
                self._pending.append(message)
            case Commit():
                self._commit(message)
            case ErrorMessage(turn_id=None):
                self.errors = [*self.errors[-99:], message.payload]
            case ToolStart() | ToolEnd() | InputEcho() | TurnMessage() | ErrorMessage():
                self._turn(message)

    def drop_pending(self) -> None:
        """Forgets what has come without its commit: the connection is gone."""
        self._pending.clear()

    def _delta(self, message: Delta) -> None:
        turn = self.turn(message.turn_id or "")
        payload = message.payload
        seq = message.seq or 0
        if payload.kind == "thinking":
            turn.thinking += payload.delta
            turn.seq = seq or turn.seq
            return
        tree = self.surfaces.setdefault(message.surface, Tree())
        if payload.target is not None:
            node = tree.nodes.get(payload.target)
            if node is not None:
                path = TEXT_PATHS.get(node.type, "content")
                tree.append_text(node.id, path, payload.delta, seq)
            return
        items = tree.outputs.get(turn.id)
        if items and "/" in items[-1]:
            tree.append_text(items[-1], "content", payload.delta, seq)
            return
        part_id = next_part(tree, turn)
        props = {"content": payload.delta, "format": "markdown"}
        tree.begin(seq)
        tree.upsert(Component(part_id, "text", props), turn.id)
        tree.keep()

    def _commit(self, message: Commit) -> None:
        pending, self._pending = self._pending, []
        opened: list[Tree] = []
        try:
            for change in pending:
                tree = self.surfaces.setdefault(change.surface, Tree())
                if tree not in opened:
                    tree.begin(message.seq or 0)
                    opened.append(tree)
                turn = (change.turn_id or "") if change.surface == "main" else ""
                _apply(tree, change, turn)
        except (InvalidPatch, ResourceLimit):
            for tree in opened:
                tree.rollback()
        for tree in opened:
            tree.keep()
        if message.turn_id is not None:
            turn_screen = self.turn(message.turn_id)
            turn_screen.final = turn_screen.final or message.final
            turn_screen.usage = message.usage or turn_screen.usage
            if message.final:
                turn_screen.seq = message.seq or turn_screen.seq

    def _turn(self, message: ToolStart | ToolEnd | InputEcho | TurnMessage | ErrorMessage) -> None:
        turn = self.turn(message.turn_id or "")
        turn.seq = message.seq or turn.seq
        match message:
            case ToolStart(payload=start):
                turn.tools.append(
                    ToolRun(start.call_id, start.tool, start.args, seq=message.seq or 0)
                )
            case ToolEnd(payload=end):
                _end_tool(turn.tools, end, message.seq or 0)
            case InputEcho():
                turn.inputs.append(message)
            case TurnMessage():
                turn.status, turn.position = message.status, message.position
            case ErrorMessage():
                turn.errors.append(message.payload)
                turn.error_seqs.append(message.seq or 0)


def next_part(tree: Tree, turn: TurnScreen) -> str:
    """Gives the id of a turn's next text part, and counts it."""
    while True:
        turn.parts += 1
        part_id = f"{turn.id}/{turn.parts}"
        if part_id not in tree.nodes:
            return part_id


def _end_tool(tools: list[ToolRun], end: ToolEndPayload, seq: int) -> None:
    for run in tools:
        if run.ok is None and (run.call_id == end.call_id if end.call_id else run.tool == end.tool):
            run.ok, run.error, run.ended = end.ok, end.error, seq
            return


def _apply(tree: Tree, change: Render | Patch, turn: str) -> None:
    if isinstance(change, Patch):
        for op in change.ops:
            tree.patch(op, turn)
        return
    if change.replace:
        for output in list(tree.outputs):
            tree.clear(output)
    for component in change.components:
        tree.upsert(component, turn)
