"""Positions of inputs, thinking, tool calls and errors in the output of a turn.

Theory of operation. The output of a turn is an ordered list of text parts and components. Inputs,
thinking, tool calls and errors are not output. Each adds a *mark* at the end of the output so far.
The position of a mark is the root component or text part that it follows, and for a text part also
the number of characters before the mark. A tree groups its marks by that component. If the
component is removed, its marks move to the component before it; if the component moves, its marks
move with it. The cost depends on the change alone. Marks at the same position are ordered by age.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple, TypeAlias

from msgspec import Struct

from arp.protocol.components import Component

MarkKind: TypeAlias = Literal["input", "thinking", "tool", "error"]


class OutputAnchor(Struct, frozen=True, omit_defaults=True):
    """A position in the output of a turn."""

    component: str | None = None
    """Id of the preceding root component or text part; `None` = before all output."""
    characters: int | None = None
    """Unicode characters of that text part before the position; `None` = all of them."""


END = OutputAnchor("")
"""Position after all current output. A message without a position means this one."""


class Mark(Struct):
    """Position of one input, tool call or error, or of the beginning of the thinking."""

    kind: MarkKind
    number: int
    """Index among the turn's marks of this kind, from 0."""
    behind: OutputAnchor = END
    seq: int = 0
    """Sequence number of the fact that added the mark."""


class Piece(NamedTuple):
    """One piece of a turn: a component, a mark, or the text between two marks."""

    kind: Literal["text", "component", "input", "thinking", "tool", "error"]
    number: int
    """Index in the output (text and components) or among the marks of this kind, from 0."""
    text: str = ""
    """Characters of this piece of a text part; empty for the other kinds."""


def pieces_of(
    output: Sequence[Component], parts: frozenset[str], marks: Iterable[Mark]
) -> Iterator[Piece]:
    """Yield the output of a turn and its marks in reading order.

    Args:
        output: Root components in order.
        parts: Ids of the root components that are text parts.
        marks: Marks, oldest first. A mark after an unknown component comes before all output.
    """
    marks_after: dict[str | None, list[Mark]] = {}
    known = {component.id for component in output}
    for mark in marks:
        name = mark.behind.component
        # A mark after an unknown component would otherwise be lost.
        marks_after.setdefault(name if name in known else None, []).append(mark)
    yield from (Piece(mark.kind, mark.number) for mark in marks_after.get(None, ()))
    for index, component in enumerate(output):
        following = marks_after.get(component.id, [])
        if component.id in parts:
            yield from _split_text(index, component.props["content"], following)
        else:
            yield Piece("component", index)
            yield from (Piece(mark.kind, mark.number) for mark in following)


def _split_text(index: int, content: str, marks: list[Mark]) -> Iterator[Piece]:
    """Yield the text of a text part, split at its marks, and the marks."""
    start = 0
    # The sort is stable: marks at the same character keep their order.
    offsets = ((_offset_of(mark, content), mark) for mark in marks)
    for offset, mark in sorted(offsets, key=lambda pair: pair[0]):
        if offset > start:
            yield Piece("text", index, content[start:offset])
            start = offset
        yield Piece(mark.kind, mark.number)
    if start < len(content):
        yield Piece("text", index, content[start:])


def _offset_of(mark: Mark, content: str) -> int:
    """Return the offset of a mark in a text; the text may be shorter than when it was marked."""
    wanted = mark.behind.characters
    return len(content) if wanted is None else min(max(wanted, 0), len(content))
