"""Where something of a turn stands among its output: what was said, used or thought on the way.

Theory of operation. Text and components are a turn's output and stand in order. Inputs, thinking,
tools and errors are not output; each leaves a *mark* at the place that the output had reached: the
root component (or text part) behind which it stands, and how many characters of a text part stand
before it. A tree keeps marks by that component, so that one which goes away hands them to the one
before it, at the cost of the change alone; one that moves takes them along. Marks at one place
stand in the order in which they came.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple, TypeAlias

from msgspec import Struct

from arp.protocol.components import Component

MarkKind: TypeAlias = Literal["input", "thinking", "tool", "error"]


class Behind(Struct, frozen=True, omit_defaults=True):
    """A place among the output of a turn."""

    component: str | None = None
    """The root component or text part before this place; `None` = before all."""
    characters: int | None = None
    """Unicode characters of that text part before this place; `None` = all of them."""


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
