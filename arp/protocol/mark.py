"""Where something of a turn stands among its output: what was said, used or thought on the way.

Theory of operation. Text and components are a turn's output and stand in order. Inputs, thinking,
tools and errors are not output; each leaves a *mark* at the place that the output had reached: the
root component (or text part) behind which it stands, and how many characters of a text part stand
before it. A tree keeps marks by that component, so that one which goes away hands them to the one
before it, at the cost of the change alone; one that moves takes them along. Marks at one place
stand in the order in which they came.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

from msgspec import Struct

from arp.protocol.component import Component
from arp.protocol.node import Node

MarkKind: TypeAlias = Literal["input", "thinking", "tool", "error"]


class Behind(Struct, frozen=True, omit_defaults=True):
    """A place among the output of a turn."""

    component: str | None = None
    """The root component or text part behind which something stands; `None` = before all."""
    characters: int | None = None
    """Unicode characters of that text part that stand before it; `None` = all of them."""


END = Behind("")
"""Behind all that shows when it comes: what a message means that names no place."""


class Mark(Struct):
    """The place of one input, tool or error, or of where thinking began."""

    kind: MarkKind
    number: int
    """Which of its kind in this turn, from 0."""
    behind: Behind = END
    seq: int = 0
    """The fact that it came with."""


class Marks:
    """The marks of one tree, by the root component that they stand behind."""

    __slots__ = ("_by_root", "_left", "handed")

    def __init__(self) -> None:
        self.handed: set[str | None] = set()
        """The roots to which the last change handed marks of those that it removed."""
        self._by_root: dict[str, list[Mark]] = {}
        self._left: list[tuple[Node, str | None]] = []

    def add(self, mark: Mark) -> None:
        """Keep a mark at its place; those before all output stay there, and need no keeping."""
        if mark.behind.component is not None:
            self._by_root.setdefault(mark.behind.component, []).append(mark)

    def leave(self, root: Node, heir: str | None) -> None:
        """Record that a root component leaves its place; `heir` gets its marks, if it is gone.

        Args:
            root: The component.
            heir: What stands in its place, or before it; `None` = nothing.
        """
        if root.id in self._by_root or self._left:
            self._left.append((root, heir))

    def drop(self, marks: Iterable[Mark]) -> None:
        """Forget marks whose turn is no longer kept."""
        for mark in marks:
            name = mark.behind.component
            here = self._by_root.get(name) if name is not None else None
            if here is not None and name is not None:
                here[:] = [one for one in here if one is not mark]
                if not here:
                    del self._by_root[name]

    def stay(self) -> None:
        """Forget what was to leave: the change is not made."""
        self._left.clear()

    def settle(self, nodes: Mapping[str, Node]) -> None:
        """Hand on the marks of those that left; who left and came back has moved, and keeps them.

        Args:
            nodes: What is there after the change.
        """
        self.handed = set()
        for root, heir in self._left:
            there = nodes.get(root.id)
            if there is not None and there.parent is None and there.turn == root.turn:
                continue
            before = nodes.get(heir) if heir is not None else None
            behind = end_of(before) if before is not None else Behind(heir)
            for mark in self._by_root.pop(root.id, ()):
                mark.behind = behind
                self.add(mark)
                self.handed.add(heir)
        self._left.clear()


def end_of(root: Node) -> Behind:
    """Return the place behind a root component as it is now; text may still join a text part."""
    if "/" not in root.id:
        return Behind(root.id)
    root.join()
    content = root.own.get("content")
    return Behind(root.id, len(content) if isinstance(content, str) else None)


class Piece(NamedTuple):
    """A stretch of a turn, in the order in which it is to be read."""

    kind: Literal["text", "component", "input", "thinking", "tool", "error"]
    number: int
    """Which of the output for text and components, else which of its kind; from 0."""
    text: str = ""
    """Of a text part, the characters that stand here."""


def pieces_of(
    output: Sequence[Component], parts: frozenset[str], marks: Iterable[Mark]
) -> Iterator[Piece]:
    """Return a turn's output with its marks in their places.

    Args:
        output: Root components in order.
        parts: The ids of those that are text parts.
        marks: In the order in which they came. One whose component is not there stands first.
    """
    places: dict[str | None, list[Mark]] = {}
    known = {component.id for component in output}
    for mark in marks:
        name = mark.behind.component
        places.setdefault(name if name in known else None, []).append(mark)
    yield from (Piece(mark.kind, mark.number) for mark in places.get(None, ()))
    for index, component in enumerate(output):
        here = places.get(component.id, [])
        if component.id in parts:
            yield from _cut(index, component.props["content"], here)
        else:
            yield Piece("component", index)
            yield from (Piece(mark.kind, mark.number) for mark in here)


def _cut(index: int, content: str, marks: list[Mark]) -> Iterator[Piece]:
    """Return a text part in pieces, with the marks that stand in it between them."""
    start = 0
    for cut, mark in sorted(
        ((_cut_at(mark, content), mark) for mark in marks), key=lambda at: at[0]
    ):
        if cut > start:
            yield Piece("text", index, content[start:cut])
            start = cut
        yield Piece(mark.kind, mark.number)
    if start < len(content):
        yield Piece("text", index, content[start:])


def _cut_at(mark: Mark, content: str) -> int:
    wanted = mark.behind.characters
    return len(content) if wanted is None else min(max(wanted, 0), len(content))
