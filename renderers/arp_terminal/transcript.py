"""What has been told, in the order in which it happened, and how much of it is on paper.

Theory of operation. A terminal is paper: what has been printed stays. Each turn is a list of items: the
user's words, thinking, uses of tools, pieces of text, components, errors, the end. From the front, items that
can no longer change are handed out to be printed, once; the others are *live* and are drawn anew. Text
is cut into pieces where a block of markdown is over. A component stays live while its turn runs, as long as
there is room for it; if it changes after it was printed, it is printed again, marked as an update.

The screen itself is the client's. Messages are seen here after they were applied to it, perhaps several later;
so the place of a tool between two pieces of text is found from how much text was told before it (`told`).
"""

from __future__ import annotations

from collections.abc import Iterator

from arp.protocol.component import Component
from arp.protocol.messages import (
    Commit,
    Delta,
    ErrorMessage,
    InputEcho,
    Patch,
    Render,
    ToolEnd,
    ToolStart,
    TurnMessage,
)
from arp.protocol.patch import Insert, Replace
from arp.protocol.screen import Screen
from arp_terminal.items import Entry, Item
from arp_terminal.turn_log import TurnLog


class Transcript:
    """All turns of a session as a terminal tells them."""

    def __init__(self, screen: Screen, *, hold: bool = True) -> None:
        """Begins with nothing printed.

        Args:
            screen: What shows; kept up to date by somebody else.
            hold: Whether components of a running turn stay live, for a terminal that can redraw; without it
                they are printed when they are committed.
        """
        self.screen = screen
        self._hold = hold
        self._logs: dict[str, TurnLog] = {}
        self._open: dict[str, TurnLog] = {}
        self._touched: set[str] = set()

    def adopt(self, screen: Screen) -> None:
        """Goes on with a screen that was made anew: prints what is missing or has changed."""
        self.screen = screen
        for turn_id in screen.turns:
            self._log(turn_id).told_all = True
        for log in self._logs.values():
            self._open[log.turn_id] = log
            log.adopt(screen)

    def hear(self, message: object) -> None:
        """Takes note of a message that was applied to the screen."""
        match message:
            case Delta(payload=payload, turn_id=turn_id, surface="main"):
                if payload.kind != "thinking" and (payload.target is None or "/" in payload.target):
                    self._log(turn_id or "").told += len(payload.delta)
                elif payload.target is not None:
                    self._touch(turn_id, [payload.target])
            case ToolStart(turn_id=turn_id):
                log = self._log(turn_id or "")
                log.start_tool(self.screen)
            case Render(surface="main"):
                self._touch(message.turn_id, [component.id for component in message.components])
            case Patch(surface="main", ops=ops):
                for op in ops:
                    added = [op.component.id] if isinstance(op, Insert | Replace) else []
                    target = [] if isinstance(op, Insert) else [op.target]
                    self._touch(message.turn_id, [*added, *target])
            case Commit(surface="main", turn_id=turn_id):
                self._commit(turn_id or "")
            case ToolEnd() | InputEcho() | TurnMessage() | ErrorMessage(turn_id=str()):
                self._log(message.turn_id or "")

    def entries(self) -> Iterator[Entry]:
        """Gives what is not yet printed, in order; the first ones that are `settled` may be printed."""
        turns = list(self.screen.turns)
        newest = turns[-1] if turns else None
        for turn_id in sorted(self._open, key=_order(turns)):
            log = self._open[turn_id]
            log.sync(self.screen)
            yield from log.entries(self.screen, hold=self._hold, newest=turn_id == newest)

    def printed(self, entry: Entry) -> None:
        """Takes note that the first of the entries is on paper."""
        log = self._open[entry.turn_id]
        log.printed(entry, self.screen)
        if log.is_done(self.screen):
            del self._open[entry.turn_id]

    def _log(self, turn_id: str) -> TurnLog:
        log = self._logs.get(turn_id)
        if log is None:
            log = self._logs[turn_id] = TurnLog(turn_id)
        self._open[turn_id] = log
        return log

    def _touch(self, turn_id: str | None, ids: list[str]) -> None:
        self._log(turn_id or "").announced.update(ids)
        self._touched.update(ids)

    def _commit(self, turn_id: str) -> None:
        """Marks the components that a commit changed, whichever turn they stand in."""
        log = self._log(turn_id)
        log.version += 1
        tree = self.screen.surfaces["main"]
        for component_id in self._touched:
            if component_id in tree.nodes:
                root = tree.root_of(component_id)
                self._log(root.turn).change(root.id)
        self._touched.clear()
