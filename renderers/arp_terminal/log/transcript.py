"""The turns of a session in order, and how much of each is printed.

Theory of operation. A terminal cannot change what it has printed. Each turn is a list of items:
inputs, reasoning, tool calls, pieces of text, components, errors, the end. From the front, items
that can no longer change are printed, once. The other items are *live* and are redrawn. Text is cut
into pieces at the end of each block of markdown. A component stays live while its turn runs and
there is room for it. If it changes after it was printed, it is printed again, marked as an update.

The client owns the screen. A message arrives here after it was applied to the screen, which may be
several messages ahead by then. So a message only says what changed. The content and its order are
read from the screen (`Screen.story`), which is complete at any moment.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from arp.protocol.connection.screen import Screen, ToolRun
from arp.protocol.messages import (
    Commit,
    Delta,
    ErrorMessage,
    InputEcho,
    Patch,
    Render,
    SurfaceMessage,
    ToolEnd,
    ToolProgress,
    ToolStart,
    TurnMessage,
)
from arp.protocol.patch import Insert, Replace
from arp_terminal.log.entries import Entry
from arp_terminal.log.turn_log import TurnLog


class Transcript:
    """All turns and surfaces of a session, as a terminal shows them."""

    def __init__(self, screen: Screen, *, hold: bool = True, numbered: bool = False) -> None:
        """Begin with nothing printed.

        Args:
            screen: The screen; the client keeps it up to date.
            hold: Whether components of a running turn stay live, for a terminal that can redraw.
                Otherwise components are printed when they are committed, and text line by line.
            numbered: Whether tool calls have numbers, for `tool`.
        """
        self.screen = screen
        self._hold = hold
        self._logs: dict[str, TurnLog] = {}
        self._open: dict[str, TurnLog] = {}
        self._touched: set[tuple[str, str]] = set()
        self._numbered = numbered
        self._tools: list[tuple[str, int]] = []
        """Turn and place of each numbered tool call, in the order of the numbers."""

    def adopt(self, screen: Screen) -> None:
        """Continue with a new screen: print what is missing or has changed."""
        self.screen = screen
        surfaces = {f"@{name}": name for name in screen.surfaces if name != "main"}
        wanted = dict.fromkeys(screen.turns, "main") | surfaces
        self._logs = {key: log for key, log in self._logs.items() if key in wanted}
        self._open.clear()
        self._touched.clear()
        for key, surface in wanted.items():
            self._log(key, surface).adopt(screen)

    def receive(self, message: object) -> None:
        """Record a message that was applied to the screen."""
        match message:
            case Delta():
                self._delta(message)
            case Render():
                self._touch(message, [component.id for component in message.components])
            case Patch():
                for op in message.ops:
                    added = [op.component.id] if isinstance(op, Insert | Replace) else []
                    self._touch(message, added if isinstance(op, Insert) else [*added, op.target])
            case Commit():
                self._commit(message)
            case SurfaceMessage():
                log = self._log(f"@{message.surface}", message.surface)
                if message.closed is not None:
                    log.close()
            case (
                ToolStart()
                | ToolProgress()
                | ToolEnd()
                | InputEcho()
                | TurnMessage()
                | ErrorMessage(turn_id=str())
            ):
                self._log(message.turn_id or "")

    def entries(self, spinner: str = "") -> list[Entry]:
        """Return the entries that are not printed yet, in order.

        The entries at the front that are `is_fixed` may be printed.
        """
        order = {turn_id: place for place, turn_id in enumerate(self.screen.turns)}
        found: list[Entry] = []
        for key in sorted(self._open, key=lambda key: order.get(key, len(order))):
            log = self._open[key]
            log.sync(self.screen)
            if log.is_done(self.screen):
                del self._open[key]
            else:
                found.extend(log.entries(self.screen, hold=self._hold, spinner=spinner))
        return found

    def printed(self, entry: Entry) -> None:
        """Record that the first of the entries is printed."""
        self._open[entry.log].printed(entry)

    @property
    def tool_count(self) -> int:
        """The number of the last tool call; 0 if there was none."""
        return len(self._tools)

    def tool(self, number: int) -> ToolRun | None:
        """Return the tool call with a number; `None` if there is none on the screen."""
        if not 1 <= number <= len(self._tools):
            return None
        turn_id, place = self._tools[number - 1]
        turn = self.screen.turns.get(turn_id)
        return turn.tools[place] if turn is not None and place < len(turn.tools) else None

    def _number_tool(self, turn_id: str, place: int) -> int | None:
        """Return the number of a new tool call.

        A number is never used again: what is printed cannot be changed, and `/tool 3` must mean the
        call that is printed with it.
        """
        if not self._numbered:
            return None
        self._tools.append((turn_id, place))
        return len(self._tools)

    def _log(self, key: str, surface: str = "main") -> TurnLog:
        log = self._logs.get(key)
        if log is None:
            number_tool = partial(self._number_tool, key)
            log = self._logs[key] = TurnLog(
                key, surface, by_line=not self._hold, number_tool=number_tool
            )
        self._open[key] = log
        return log

    def _log_of(self, message: Delta | Render | Patch | Commit) -> TurnLog:
        if message.surface != "main":
            return self._log(f"@{message.surface}", message.surface)
        return self._log(message.turn_id or "")

    def _delta(self, message: Delta) -> None:
        target = message.payload.target
        self._log_of(message)
        if target is not None:
            self._changed([(message.surface, target)])

    def _touch(self, message: Render | Patch, ids: list[str]) -> None:
        self._log_of(message)
        self._touched.update((message.surface, component_id) for component_id in ids)

    def _commit(self, message: Commit) -> None:
        self._log_of(message)
        self._changed(self._touched)
        self._touched.clear()

    def _changed(self, places: Iterable[tuple[str, str]]) -> None:
        """Mark components as changed; each may be in any turn."""
        for surface, component_id in places:
            tree = self.screen.surfaces.get(surface)
            if tree is not None and component_id in tree.nodes:
                root = tree.root_of(component_id)
                key = root.turn if surface == "main" else f"@{surface}"
                self._log(key, surface).change(root.id, self.screen)
