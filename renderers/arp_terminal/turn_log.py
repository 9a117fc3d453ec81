"""One turn (or another surface) as it is told: items in order, and how many are on paper."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from arp.protocol.component import Component
from arp.protocol.mark import Piece
from arp.protocol.messages import FINAL_STATUSES
from arp.protocol.screen import Screen, TurnScreen
from arp_terminal.entries import Telling, entry_of, fingerprint, update_of
from arp_terminal.items import Entry, Item
from arp_terminal.open_questions import QUESTION_TYPES
from arp_terminal.options import Options
from arp_terminal.pieces import Cut, finished, is_open_fence, lines_over
from arp_terminal.questions import is_open
from arp_terminal.turn import draw_end, is_said

OUTPUT_KINDS = ("text", "component")
"""Kinds that follow the order of the output."""


class TurnLog:
    """The items of one turn: `sync` takes in what shows, `entries` gives what is not printed."""

    def __init__(self, key: str, surface: str = "main", *, by_line: bool = False) -> None:
        """Begins with nothing told.

        Args:
            key: The turn's id, or `@` and the surface's name.
            surface: Where it shows.
            by_line: Whether lines of unfinished text are handed out, for who cannot redraw them.
        """
        self.key = key
        self.surface = surface
        self._by_line = by_line
        self.items: list[Item] = []
        self.front = 0
        """Items that are printed."""
        self.told = 0
        """Characters of text that messages have told so far."""
        self.announced: set[str] = set()
        """Components that messages have named so far."""
        self._changed: set[str] = set()
        self._printed: dict[str, object] = {}
        """What was drawn of each component, as its fingerprint."""
        self._taken: Counter[str] = Counter()

    # -- what happened ---------------------------------------------------------------------------

    def start_tool(self, screen: Screen) -> None:
        """Puts the next tool behind what was told before it."""
        self._take_inputs(self.turn(screen))
        self._place(Item("tool", self._taken["tool"]), screen)
        self._taken["tool"] += 1

    def change(self, component_id: str, screen: Screen) -> None:
        """Takes note that a commit changed a component; an answer stands where it was given."""
        if component_id not in self._printed:
            return
        component = next(one for one in self.output(screen) if one.id == component_id)
        if component.type not in QUESTION_TYPES:
            self._changed.add(component_id)
        elif not is_open(component.props) and self._is_answered_inside(component_id, screen):
            self._take_inputs(self.turn(screen))
            self._place(Item("answer", component_id), screen)

    def adopt(self, screen: Screen) -> None:
        """Takes in all of a screen that was made anew, in the order in which it happened."""
        turn, output, told = self.turn(screen), self.output(screen), 0
        for piece in screen.story(self.key) if self.surface == "main" else ():
            match piece.kind:
                case "text":
                    told += len(piece.text)
                    self.told = max(self.told, told)
                case "component":
                    self.announced.add(output[piece.number].id)
                case "thinking" | "input" | "tool":
                    self._adopt(piece, turn, screen)
        self._changed.update(self._printed)
        self.sync(screen)

    def sync(self, screen: Screen) -> None:
        """Takes in all that the screen shows of it."""
        turn, output = self.turn(screen), self.output(screen)
        self._take_inputs(turn)
        self._sync_output(output, limited=False)
        if self.is_over(screen):
            self._close(screen)
        self._drop_and_sort(turn, [component.id for component in output])
        for place in range(self._taken["error"], len(turn.errors)):
            if turn.errors[place].id is None:
                self.items.append(Item("error", place))
        self._taken["error"] = len(turn.errors)
        if not self._taken["end"] and draw_end(turn, Options()) is not None:
            self._taken["end"] = 1
            self.items.append(Item("end"))

    # -- what to print ---------------------------------------------------------------------------

    def entries(self, screen: Screen, *, hold: bool, spinner: str = "") -> Iterator[Entry]:
        """Gives what is not printed, in order, then what was printed and has changed since."""
        telling = Telling(
            key=self.key,
            turn=self.turn(screen),
            components={component.id: component for component in self.output(screen)},
            over=self.is_over(screen),
            hold=hold,
            spinner=spinner,
        )
        for place in range(self.front, len(self.items)):
            yield entry_of(self.items[place], telling, last=place == len(self.items) - 1)
        for component_id in sorted(self._changed):
            component = telling.components.get(component_id)
            if component is None or fingerprint(component) == self._printed[component_id]:
                self._changed.discard(component_id)
            elif telling.over or telling.turn.status == "waiting":
                yield update_of(component, telling)

    def printed(self, entry: Entry) -> None:
        """Takes note that the first of the entries is on paper."""
        if entry.kind != "update":
            self.front += 1
        if entry.kind in ("component", "update", "answer"):
            self._changed.discard(str(entry.ref))
            self._printed[str(entry.ref)] = entry.version

    def is_over(self, screen: Screen) -> bool:
        """Tells whether the agent is done with it."""
        turn = self.turn(screen)
        return turn.final or turn.status in FINAL_STATUSES

    def is_done(self, screen: Screen) -> bool:
        """Tells whether it is over and all of it is on paper."""
        return self.is_over(screen) and self.front == len(self.items) and not self._changed

    def turn(self, screen: Screen) -> TurnScreen:
        """Gives the turn; another surface is a turn that is over at any time."""
        if self.surface != "main":
            return TurnScreen(self.key, final=True)
        return screen.turns.get(self.key) or TurnScreen(self.key)

    def output(self, screen: Screen) -> list[Component]:
        """Gives what it shows."""
        return screen.output(self.key, self.surface)

    # -- taking in -------------------------------------------------------------------------------

    def _adopt(self, piece: Piece, turn: TurnScreen, screen: Screen) -> None:
        """Puts what is new of the thinking, the inputs and the tools where it happened."""
        kind = "thought" if piece.kind == "thinking" else piece.kind
        if piece.number < self._taken[kind]:
            return
        self._taken[kind] = piece.number + 1
        if kind != "input" or is_said(turn, piece.number):
            self._place(Item(kind, piece.number), screen)

    def _place(self, new: Item, screen: Screen) -> None:
        """Puts an item behind what messages have told so far, which may be less than what shows."""
        reached = self._sync_output(self.output(screen), limited=True)
        last = self.items[-1] if self.items else None
        place = len(self.items)
        if last is not None and last.kind == "text" and last.end is None:
            text = self._content(screen, last)[last.start : reached]
            if not text.strip():
                self.items.pop()
                place -= 1
            elif is_open_fence(last.fence + text):
                place -= 1
            else:
                last.end = reached
        self.items.insert(max(place, self.front), new)

    def _take_inputs(self, turn: TurnScreen) -> None:
        for place in range(self._taken["input"], len(turn.inputs)):
            if is_said(turn, place):
                self.items.append(Item("input", place))
        self._taken["input"] = len(turn.inputs)
        if turn.thinking and not self._taken["thought"]:
            self._taken["thought"] = 1
            self.items.append(Item("thought"))

    def _sync_output(self, output: Sequence[Component], *, limited: bool) -> int:
        """Takes in text parts and components in order; if limited, only what messages have told.

        Returns:
            How many characters of the last text part were taken in.
        """
        known = {item.ref for item in self.items if item.kind == "component"}
        budget, reached = self.told, 0
        for place, component in enumerate(output):
            if "/" in component.id:
                content = component.props["content"]
                reached = min(len(content), budget) if limited else len(content)
                budget -= reached
                if reached:
                    self._sync_text(component.id, content, reached, last=place == len(output) - 1)
                if reached < len(content):
                    break
            elif limited and component.id not in self.announced:
                break
            elif component.id not in known:
                self.items.append(Item("component", component.id))
        if not limited:
            self.told -= budget
            self.announced.update(component.id for component in output)
        return reached

    def _sync_text(self, part_id: str, content: str, reached: int, *, last: bool) -> None:
        item = next((one for one in reversed(self.items) if one.ref == part_id), None)
        if item is None or (item.end is not None and item.end < reached):
            item = Item("text", part_id, item.end or 0 if item else 0)
            self.items.append(item)
        if item.end is not None or reached < len(content):
            return
        while (cut := self._cut(content[item.start :], item)).offset:
            item.end = item.start + cut.offset
            rest = Item("text", part_id, item.end, None, cut.tight, cut.number, cut.fence)
            self.items.insert(self.items.index(item) + 1, rest)
            item = rest
        if not last:
            item.end = len(content)

    def _cut(self, source: str, item: Item) -> Cut:
        cut = finished(source, item.number, item.fence)
        return lines_over(source, item.fence) if self._by_line and not cut.offset else cut

    def _is_answered_inside(self, component_id: str, screen: Screen) -> bool:
        """Tells whether an answer belongs to this turn: otherwise a new turn begins with it."""
        inputs = self.turn(screen).inputs
        return not self.is_over(screen) or any(
            echo.source_component == component_id for echo in inputs
        )

    def _close(self, screen: Screen) -> None:
        for item in self.items[self.front :]:
            if item.kind == "text" and item.end is None:
                item.end = len(self._content(screen, item))

    def _drop_and_sort(self, turn: TurnScreen, order: list[str]) -> None:
        """Lets what is not printed follow the screen: removed, moved."""
        places = {component_id: place for place, component_id in enumerate(order)}
        live = [
            item
            for item in self.items[self.front :]
            if (item.ref in places if isinstance(item.ref, str) else _stands(item, turn))
        ]
        slots = [place for place, item in enumerate(live) if item.kind in OUTPUT_KINDS]
        wanted = sorted(
            (live[place] for place in slots), key=lambda item: (places[str(item.ref)], item.start)
        )
        for place, item in zip(slots, wanted, strict=True):
            live[place] = item
        self.items[self.front :] = live

    def _content(self, screen: Screen, item: Item) -> str:
        for component in self.output(screen):
            if component.id == item.ref:
                return str(component.props["content"])
        return ""


def _stands(item: Item, turn: TurnScreen) -> bool:
    """Tells whether the input, tool or error that an item names is (still) there."""
    lists: dict[str, Sequence[object]] = {
        "input": turn.inputs,
        "tool": turn.tools,
        "error": turn.errors,
    }
    found = lists.get(item.kind)
    return found is None or int(item.ref) < len(found)
