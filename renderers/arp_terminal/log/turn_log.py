"""One turn (or another surface): its items in order, and how many are printed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from arp.protocol.components import AUTHOR, Component
from arp.protocol.mark import Piece, pieces_of
from arp.protocol.messages import FINAL_STATUSES
from arp.protocol.screen import Screen, TurnScreen
from arp_terminal.asking.open_questions import is_question
from arp_terminal.drawing.pieces import MarkdownCut, finished, is_open_fence, lines_over
from arp_terminal.drawing.questions import is_open
from arp_terminal.drawing.turn import draw_end, is_said
from arp_terminal.log.entries import (
    Entry,
    EntrySource,
    Item,
    Kind,
    entry_of,
    fingerprint,
    update_of,
)
from arp_terminal.options import Options

OUTPUT_KINDS = ("text", "component", "author")
"""Kinds that follow the order of the output."""


Reached: TypeAlias = Mapping[str, int]
"""How many characters of each text part are before the current place."""


class TurnLog:
    """The items of one turn: `sync` reads the screen, `entries` returns what is not printed."""

    def __init__(
        self,
        key: str,
        surface: str = "main",
        *,
        by_line: bool = False,
        number_tool: Callable[[int], int | None] = lambda _: None,
    ) -> None:
        """Begin without items.

        Args:
            key: The turn's id, or `@` and the surface's name.
            surface: Where it shows.
            by_line: Whether to print lines of unfinished text, for an output that cannot redraw.
            number_tool: Returns the number in the conversation of a new tool call, from its place
                in the turn.
        """
        self.key = key
        self.surface = surface
        self._by_line = by_line
        self._number_tool = number_tool
        self.items: list[Item] = []
        self.front = 0
        """Items that are printed."""
        self._changed: set[str] = set()
        self._printed: dict[str, object] = {}
        """What was drawn of each component, as its fingerprint."""
        self._asked: set[str] = set()
        """Questions that were printed while they were open."""
        self._answered: set[str] = set()
        """Those whose answer is shown with an input that `sync` has still to read."""
        self._taken: Counter[str] = Counter()
        self._titles: list[str] = []
        """Of the surface, each as it was when it was shown."""

    # -- what happened ---------------------------------------------------------------------------

    def change(self, component_id: str, screen: Screen) -> None:
        """Record that a commit changed a component; `sync` finds answers."""
        if component_id not in self._printed:
            return
        component = next(one for one in self.output(screen) if one.id == component_id)
        if not is_question(component.type, component.props):
            self._changed.add(component_id)

    def adopt(self, screen: Screen) -> None:
        """Read all of a new screen; what is printed may have changed in it."""
        self._changed.update(self._printed)
        self.sync(screen)

    def close(self) -> None:
        """Record that the surface is closed: a later one of this name has nothing to do with it."""
        was_seen = self.front > 0
        self.items = self.items[self.front :]
        self.front = 0
        for seen in (self._changed, self._printed, self._asked):
            seen.clear()
        if was_seen:
            name = next((title for title in reversed(self._titles) if title), self.surface)
            self._add_title(f"{name}: closed")
        self._titles.append("")

    def _add_title(self, title: str) -> None:
        self._titles.append(title)
        self.items.append(Item("title", len(self._titles) - 1))

    def sync(self, screen: Screen) -> None:
        """Read what the screen shows of the turn, in the order in which it happened."""
        title = screen.info(self.surface).title
        if title and (not self._titles or self._titles[-1] != title):
            self._add_title(title)
        turn, output = self.turn(screen), self.output(screen)
        self._take_answers(output, screen)
        components = {item.ref for item in self.items if item.kind in ("component", "author")}
        reached: Counter[str] = Counter()
        for piece in self._story(screen, output):
            match piece.kind:
                case "text":
                    part, is_last = output[piece.number], piece.number == len(output) - 1
                    reached[part.id] += len(piece.text)
                    self._take_text(part, reached[part.id], last=is_last)
                case "component":
                    component = output[piece.number]
                    if component.id not in components:
                        kind: Kind = "author" if component.type == AUTHOR else "component"
                        self.items.append(Item(kind, component.id))
                case _:
                    self._take_mark(piece, turn, output, reached)
        if self.is_over(screen):
            self._close(output)
        self._drop_and_sort(turn, [component.id for component in output])
        if not self._taken["end"] and draw_end(turn, Options()) is not None:
            self._taken["end"] = 1
            self.items.append(Item("end"))

    # -- what to print ---------------------------------------------------------------------------

    def entries(self, screen: Screen, *, hold: bool, spinner: str = "") -> Iterator[Entry]:
        """Return what is not printed, in order, then what was printed and has changed since."""
        source = EntrySource(
            key=self.key,
            turn=self.turn(screen),
            components={component.id: component for component in self.output(screen)},
            over=self.is_over(screen),
            hold=hold,
            spinner=spinner,
            titles=self._titles,
        )
        for place in range(self.front, len(self.items)):
            yield entry_of(self.items[place], source, last=place == len(self.items) - 1)
        for component_id in sorted(self._changed):
            component = source.components.get(component_id)
            if component is None or fingerprint(component) == self._printed[component_id]:
                self._changed.discard(component_id)
            elif source.over or source.turn.status == "waiting":
                yield update_of(component, source)

    def printed(self, entry: Entry) -> None:
        """Record that the first of the entries is on paper."""
        if entry.kind != "update":
            self.front += 1
        if entry.kind in ("component", "author", "update", "answer"):
            self._changed.discard(str(entry.ref))
            self._printed[str(entry.ref)] = entry.fingerprint
            if entry.asks:
                self._asked.add(str(entry.ref))

    def is_over(self, screen: Screen) -> bool:
        """Return whether the agent is done with it."""
        turn = self.turn(screen)
        return turn.final or turn.status in FINAL_STATUSES

    def is_done(self, screen: Screen) -> bool:
        """Return whether it is over and all of it is on paper."""
        return self.is_over(screen) and self.front == len(self.items) and not self._changed

    def turn(self, screen: Screen) -> TurnScreen:
        """Return the turn; another surface is a turn that is over at any time."""
        if self.surface != "main":
            return TurnScreen(self.key, final=True)
        return screen.turns.get(self.key) or TurnScreen(self.key)

    def output(self, screen: Screen) -> list[Component]:
        """Return what it shows."""
        return screen.output(self.key, self.surface)

    # -- taking in -------------------------------------------------------------------------------

    def _story(self, screen: Screen, output: Sequence[Component]) -> Iterable[Piece]:
        if self.surface == "main":
            return screen.story(self.key)
        parts = frozenset(one.id for one in output if "/" in one.id and one.type == "text")
        return pieces_of(output, parts, ())

    def _take_text(self, part: Component, reached: int, *, last: bool) -> None:
        """Add a text part up to a place; what a mark does not cut is cut into blocks."""
        content = part.props["content"]
        item = next((one for one in reversed(self.items) if one.ref == part.id), None)
        if item is None or (item.end is not None and item.end < reached):
            item = Item("text", part.id, item.end or 0 if item else 0)
            self.items.append(item)
        if item.end is not None or reached < len(content):
            return
        while (cut := self._cut(content[item.start :], item)).offset:
            item.end = item.start + cut.offset
            rest = Item("text", part.id, item.end, None, cut.tight, cut.number, cut.fence)
            self.items.insert(self.items.index(item) + 1, rest)
            item = rest
        if not last:
            item.end = len(content)

    def _take_mark(
        self, piece: Piece, turn: TurnScreen, output: Sequence[Component], reached: Reached
    ) -> None:
        """Put an input, the thinking, a tool or an error where it happened, if it is new."""
        kind: Kind = "thought" if piece.kind == "thinking" else piece.kind
        if piece.number < self._taken[kind]:
            return
        self._taken[kind] = piece.number + 1
        match kind:
            case "input" if not is_said(turn, piece.number):
                answered = turn.inputs[piece.number].source_component
                if answered is not None and answered in self._answered:
                    self._answered.discard(answered)
                    self._place(Item("answer", answered), output, reached)
            case "error" if turn.errors[piece.number].id is not None:
                pass
            case "tool":
                number = self._number_tool(piece.number)
                self._place(Item(kind, piece.number, tool_number=number), output, reached)
            case _:
                self._place(Item(kind, piece.number), output, reached)

    def _take_answers(self, output: Sequence[Component], screen: Screen) -> None:
        """Find answers to printed questions; they are shown here unless their input is to come."""
        turn = self.turn(screen)
        to_come = {
            turn.inputs[place].source_component
            for place in range(self._taken["input"], len(turn.inputs))
            if not is_said(turn, place)
        }
        for question in output:
            is_answered = (
                question.id in self._asked
                and not is_open(question.props)
                and self._is_answered_inside(question.id, screen)
            )
            if not is_answered:
                continue
            self._asked.discard(question.id)
            if question.id in to_come:
                self._answered.add(question.id)
            else:
                self._place(Item("answer", question.id), output, {})

    def _place(self, new: Item, output: Sequence[Component], reached: Reached) -> None:
        """Append an item, but not inside a block of code."""
        last = self.items[-1] if self.items else None
        place = len(self.items)
        if last is not None and last.kind == "text" and last.end is None:
            content = _content(output, last)
            end = reached.get(str(last.ref), len(content))
            if not content[last.start : end].strip():
                self.items.pop()
                place -= 1
            elif is_open_fence(last.fence + content[last.start : end]):
                place -= 1
            else:
                last.end = end
        self.items.insert(max(place, self.front), new)

    def _cut(self, source: str, item: Item) -> MarkdownCut:
        cut = finished(source, item.number, item.fence)
        return lines_over(source, item.fence) if self._by_line and not cut.offset else cut

    def _is_answered_inside(self, component_id: str, screen: Screen) -> bool:
        """Return whether an answer belongs to this turn: otherwise a new turn begins with it."""
        inputs = self.turn(screen).inputs
        return not self.is_over(screen) or any(
            echo.source_component == component_id for echo in inputs
        )

    def _close(self, output: Sequence[Component]) -> None:
        for item in self.items[self.front :]:
            if item.kind == "text" and item.end is None:
                item.end = len(_content(output, item))

    def _drop_and_sort(self, turn: TurnScreen, order: list[str]) -> None:
        """Let what is not printed follow the screen: removed, moved."""
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


def _content(output: Sequence[Component], item: Item) -> str:
    """Return the whole text part of which an item is a piece."""
    return next((str(one.props["content"]) for one in output if one.id == item.ref), "")


def _stands(item: Item, turn: TurnScreen) -> bool:
    """Return whether the input, tool or error that an item names is (still) there."""
    lists: dict[str, Sequence[object]] = {
        "input": turn.inputs,
        "tool": turn.tools,
        "error": turn.errors,
    }
    found = lists.get(item.kind)
    return found is None or int(item.ref) < len(found)
