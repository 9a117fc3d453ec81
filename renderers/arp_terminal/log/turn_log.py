"""The log of one turn, or of another surface: its items in order, and how many are printed.

Theory of operation. `sync` compares the screen with the items and adds what is new, at its place in
the story of the turn. The items before `front` are printed and never change. Text grows: the last
piece of a text part has no `end` until a block of markdown is over or something else follows it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from arp.protocol.components import AUTHOR, Component
from arp.protocol.connection.screen import Screen, TurnScreen
from arp.protocol.mark import Piece, pieces_of
from arp.protocol.messages import FINAL_STATUSES
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
"""Kinds of items that follow the order of the output."""


Reached: TypeAlias = Mapping[str, int]
"""Number of characters of each text part that are before the current place in the story."""


class TurnLog:
    """The items of one turn. `sync` reads the screen, `entries` returns what is not printed."""

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
            key: Id of the turn, or `@` and the name of the surface.
            surface: Name of the surface.
            by_line: Whether to print lines of unfinished text, for an output that cannot redraw.
            number_tool: Returns the number in the conversation of a new tool call, from its index
                in the turn.
        """
        self.key = key
        self.surface = surface
        self._by_line = by_line
        self._number_tool = number_tool
        self.items: list[Item] = []
        self.front = 0
        """Number of items that are printed."""
        self._changed: set[str] = set()
        """Printed components that may have changed since."""
        self._printed: dict[str, object] = {}
        """Fingerprint of each printed component, as it was printed."""
        self._asked: set[str] = set()
        """Questions that were printed while they were open."""
        self._answered: set[str] = set()
        """Questions with an answer that is shown at the place of an input still to be read."""
        self._read_counts: Counter[str] = Counter()
        """Number of inputs, tool calls, errors and so on that have been read from the screen."""
        self._titles: list[str] = []
        """Titles that the surface has had, oldest first; empty after it was closed."""

    # -- what happened ---------------------------------------------------------------------------

    def change(self, component_id: str, screen: Screen) -> None:
        """Record that a commit changed a component; answers to questions are found by `sync`."""
        if component_id not in self._printed:
            return
        component = next(one for one in self.output(screen) if one.id == component_id)
        if not is_question(component.type, component.props):
            self._changed.add(component_id)

    def adopt(self, screen: Screen) -> None:
        """Read a new screen; any printed component may have changed in it."""
        self._changed.update(self._printed)
        self.sync(screen)

    def close(self) -> None:
        """Record that the surface is closed.

        A later surface with this name is another one. Without this it would be compared with the
        components of the closed one, and equal ids would be shown as updates.
        """
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
        """Read the turn from the screen, in the order of its story."""
        title = screen.info(self.surface).title
        if title and (not self._titles or self._titles[-1] != title):
            self._add_title(title)
        turn, output = self.turn(screen), self.output(screen)
        self._add_answers(output, screen)
        components = {item.ref for item in self.items if item.kind in ("component", "author")}
        reached: Counter[str] = Counter()
        for piece in self._story(screen, output):
            match piece.kind:
                case "text":
                    part, is_last = output[piece.number], piece.number == len(output) - 1
                    reached[part.id] += len(piece.text)
                    self._add_text(part, reached[part.id], last=is_last)
                case "component":
                    component = output[piece.number]
                    if component.id not in components:
                        kind: Kind = "author" if component.type == AUTHOR else "component"
                        self.items.append(Item(kind, component.id))
                case _:
                    self._add_mark(piece, turn, output, reached)
        if self.is_over(screen):
            self._close(output)
        self._follow_order(turn, [component.id for component in output])
        if not self._read_counts["end"] and draw_end(turn, Options()) is not None:
            self._read_counts["end"] = 1
            self.items.append(Item("end"))

    # -- what to print ---------------------------------------------------------------------------

    def entries(self, screen: Screen, *, hold: bool, spinner: str = "") -> Iterator[Entry]:
        """Return what is not printed, in order, and then the printed components that changed."""
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
        """Record that the first of the entries is printed."""
        if entry.kind != "update":
            self.front += 1
        if entry.kind in ("component", "author", "update", "answer"):
            self._changed.discard(str(entry.ref))
            self._printed[str(entry.ref)] = entry.fingerprint
            if entry.asks:
                self._asked.add(str(entry.ref))

    def is_over(self, screen: Screen) -> bool:
        """Return whether the turn is over."""
        turn = self.turn(screen)
        return turn.final or turn.status in FINAL_STATUSES

    def is_done(self, screen: Screen) -> bool:
        """Return whether the turn is over and all of it is printed."""
        return self.is_over(screen) and self.front == len(self.items) and not self._changed

    def turn(self, screen: Screen) -> TurnScreen:
        """Return the turn; another surface counts as a turn that is over."""
        if self.surface != "main":
            return TurnScreen(self.key, final=True)
        return screen.turns.get(self.key) or TurnScreen(self.key)

    def output(self, screen: Screen) -> list[Component]:
        """Return its components."""
        return screen.output(self.key, self.surface)

    # -- reading the screen ----------------------------------------------------------------------

    def _story(self, screen: Screen, output: Sequence[Component]) -> Iterable[Piece]:
        if self.surface == "main":
            return screen.story(self.key)
        parts = frozenset(one.id for one in output if "/" in one.id and one.type == "text")
        return pieces_of(output, parts, ())

    def _add_text(self, part: Component, reached: int, *, last: bool) -> None:
        """Add a text part up to a place, cut into blocks of markdown.

        Args:
            part: The text part.
            reached: Number of its characters before the next mark of the story.
            last: Whether nothing follows it in the output, so that it may grow.
        """
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

    def _add_mark(
        self, piece: Piece, turn: TurnScreen, output: Sequence[Component], reached: Reached
    ) -> None:
        """Add an input, the thinking, a tool call or an error at its place, if it is new."""
        kind: Kind = "thought" if piece.kind == "thinking" else piece.kind
        if piece.number < self._read_counts[kind]:
            return
        self._read_counts[kind] = piece.number + 1
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

    def _add_answers(self, output: Sequence[Component], screen: Screen) -> None:
        """Add the answers to printed questions.

        An answer is shown at the place of its input. If that input has not been read from the
        screen yet, the answer waits for it.
        """
        turn = self.turn(screen)
        to_come = {
            turn.inputs[place].source_component
            for place in range(self._read_counts["input"], len(turn.inputs))
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
        """Append an item, but never inside a block of code: the block would be torn apart."""
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
        """Return whether an answer belongs to this turn; otherwise a new turn begins with it."""
        inputs = self.turn(screen).inputs
        return not self.is_over(screen) or any(
            echo.source_component == component_id for echo in inputs
        )

    def _close(self, output: Sequence[Component]) -> None:
        for item in self.items[self.front :]:
            if item.kind == "text" and item.end is None:
                item.end = len(_content(output, item))

    def _follow_order(self, turn: TurnScreen, order: list[str]) -> None:
        """Drop the unprinted items that the screen no longer has, and sort the others like it."""
        places = {component_id: place for place, component_id in enumerate(order)}
        live = [
            item
            for item in self.items[self.front :]
            if (item.ref in places if isinstance(item.ref, str) else _is_present(item, turn))
        ]
        slots = [place for place, item in enumerate(live) if item.kind in OUTPUT_KINDS]
        wanted = sorted(
            (live[place] for place in slots), key=lambda item: (places[str(item.ref)], item.start)
        )
        for place, item in zip(slots, wanted, strict=True):
            live[place] = item
        self.items[self.front :] = live


def _content(output: Sequence[Component], item: Item) -> str:
    """Return the text of the part that an item is a piece of."""
    return next((str(one.props["content"]) for one in output if one.id == item.ref), "")


def _is_present(item: Item, turn: TurnScreen) -> bool:
    """Return whether the turn still has the input, tool call or error that an item names."""
    lists: dict[str, Sequence[object]] = {
        "input": turn.inputs,
        "tool": turn.tools,
        "error": turn.errors,
    }
    found = lists.get(item.kind)
    return found is None or int(item.ref) < len(found)
