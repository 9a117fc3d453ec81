"""`diff`: the changes between two texts, line by line, with the changed words marked."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import SequenceMatcher

from msgspec import Struct
from rich.console import RenderableType
from rich.text import Text

from arp.protocol.json_value import JsonObject
from arp_terminal.drawing.blocks import HangingBlock, stack
from arp_terminal.drawing.code_block import highlight
from arp_terminal.drawing.palette import BAD, BAD_WORD, DIM, GOOD, GOOD_WORD, HEADING
from arp_terminal.drawing.props import label, line, lines
from arp_terminal.options import Options

CONTEXT = 3
"""Number of unchanged lines that are shown around a change."""

MAX_COMPARED = 4_000
"""Maximum number of lines of a text that is compared. The time of a comparison can be quadratic, so
longer texts are shown as removed and added."""

MAX_WORDS = 200
"""Maximum number of words in a line for the comparison of its words."""

_WORDS = re.compile(r"\w+|\s+|[^\w\s]")


class _Line(Struct, frozen=True):
    """One line of the drawing."""

    sign: str
    before: int | None
    after: int | None
    text: Text


def diff(props: JsonObject, options: Options) -> RenderableType:
    """Draw `diff`: line numbers of both texts, `-` and `+`; long unchanged parts are folded."""
    before = lines(props.get("before")).split("\n")
    after = lines(props.get("after")).split("\n")
    language = line(props.get("language"))
    shown = list(_folded(_compare(before, after, language), options))
    digits = len(str(max(len(before), len(after))))
    added = sum(1 for item in shown if item.sign == "+")
    removed = sum(1 for item in shown if item.sign == "-")
    body = [_drawn(item, digits) for item in shown]
    return stack([_head(props, added, removed, options), *body])


def _head(props: JsonObject, added: int, removed: int, options: Options) -> Text:
    head = label(props.get("title"), HEADING)
    names = [line(props.get(name)) for name in ("before_label", "after_label") if props.get(name)]
    if names:
        head.append("  " if head.plain else "")
        head.append((" → " if options.unicode else " -> ").join(names), style=DIM)
    head.append("  " if head.plain else "")
    if not added and not removed:
        return head.append("no differences", style=DIM)
    head.append(f"+{added}", style=GOOD)
    return head.append(f" -{removed}", style=BAD)


def _drawn(item: _Line, digits: int) -> RenderableType:
    if item.sign == "…":
        return item.text
    numbers = " ".join(f"{place or '':>{digits}}" for place in (item.before, item.after))
    style = {"+": GOOD, "-": BAD}.get(item.sign, DIM)
    marker = label(f"{numbers} ", DIM).append(f"{item.sign} ", style=style)
    return HangingBlock(marker, item.text)


def _compare(before: list[str], after: list[str], language: str) -> Iterator[_Line]:
    old = highlight("\n".join(before), language).split("\n", allow_blank=True)
    new = highlight("\n".join(after), language).split("\n", allow_blank=True)
    for kind, low, high, start, end in _opcodes(before, after):
        if kind == "equal":
            for offset in range(high - low):
                yield _Line(" ", low + offset + 1, start + offset + 1, new[start + offset])
            continue
        removed, added = list(old[low:high]), list(new[start:end])
        if len(removed) == len(added):
            for one, other in zip(removed, added, strict=True):
                _mark_words(one, other)
        for offset, text in enumerate(removed):
            text.stylize_before(BAD)
            yield _Line("-", low + offset + 1, None, text)
        for offset, text in enumerate(added):
            text.stylize_before(GOOD)
            yield _Line("+", None, start + offset + 1, text)


def _opcodes(before: list[str], after: list[str]) -> list[tuple[str, int, int, int, int]]:
    if max(len(before), len(after)) > MAX_COMPARED:
        return [("replace", 0, len(before), 0, len(after))]
    return list(SequenceMatcher(None, before, after, autojunk=False).get_opcodes())


def _mark_words(old: Text, new: Text) -> None:
    """Mark the words that differ in two lines, unless the lines have little in common."""
    one, other = _WORDS.findall(old.plain), _WORDS.findall(new.plain)
    if max(len(one), len(other), 1) > MAX_WORDS:
        return
    matcher = SequenceMatcher(None, one, other, autojunk=False)
    if matcher.ratio() < 0.4:
        return
    for kind, low, high, start, end in matcher.get_opcodes():
        if kind != "equal":
            old.stylize(BAD_WORD, len("".join(one[:low])), len("".join(one[:high])))
            new.stylize(GOOD_WORD, len("".join(other[:start])), len("".join(other[:end])))


def _folded(found: Iterator[_Line], options: Options) -> Iterator[_Line]:
    """Replace long sequences of unchanged lines with one line that counts them."""
    stretch: list[_Line] = []
    first = True
    for item in found:
        if item.sign == " ":
            stretch.append(item)
            continue
        yield from _shortened(stretch, 0 if first else CONTEXT, CONTEXT, options)
        stretch, first = [], False
        yield item
    yield from _shortened(stretch, 0 if first else CONTEXT, 0, options)


def _shortened(stretch: list[_Line], head: int, tail: int, options: Options) -> Iterator[_Line]:
    hidden = len(stretch) - head - tail
    if hidden <= 1:
        yield from stretch
        return
    yield from stretch[:head]
    sign = "⋯" if options.unicode else "..."
    yield _Line("…", None, None, Text(f"{sign} {hidden:,} unchanged lines", style=DIM))
    yield from stretch[len(stretch) - tail :]
