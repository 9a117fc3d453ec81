"""Cuts of growing markdown: the part before a cut looks the same, whatever text follows.

Theory of operation. A printed line cannot be changed, so text may be printed only when no later
text can change its drawing. A block is over when its end was seen: a blank line after a paragraph,
the closing fence of code, the next item of a list. `finished` returns the last such place.
`lines_over` finds more places for outputs that print by line, inside a paragraph or code. The half
after a cut is drawn on its own; `MarkdownCut` has what it must know of the first half.
"""

from __future__ import annotations

import re

import msgspec
from markdown_it.tree import SyntaxTreeNode
from msgspec import Struct
from rich.console import RenderableType
from rich.text import Text

from arp.protocol.safe_text import sanitise
from arp_terminal.drawing.blocks import stack
from arp_terminal.drawing.markdown import MAX_SOURCE, block_nodes, has_open_mark, markdown
from arp_terminal.options import Options

_ENDED_BY_LINE = frozenset(("heading", "hr"))
_ENDED_BY_BLANK_LINE = frozenset(
    ("paragraph", "blockquote", "table", "html_block", *_ENDED_BY_LINE)
)
_PLAIN_BEGINNING = re.compile(r"[^\W\d_]|\d+[^\W\d_]|\d+[ :,%/-]")
"""Beginning of a line that can only continue a paragraph: no list, heading, underline or table."""
_BARE_MARKER = re.compile(r"(?<=\n)[ \t]*([*+-]+|\d+[.)]?)\Z")
"""End of a text that looks like an empty list item until more of its line arrives."""
_LISTS = frozenset(("bullet_list", "ordered_list"))


class MarkdownCut(Struct, frozen=True):
    """A place in markdown, and what the half after it must know of the half before it."""

    offset: int
    """Number of characters before the cut; 0 if nothing is finished."""
    tight: bool = False
    """Whether the second half continues without an empty line, such as a list."""
    number: int | None = None
    """Number of the list item at the beginning of the second half."""
    fence: str = ""
    """Opening of the block that is cut: the line of a fence, or the head of a table."""


def finished(source: str, number: int | None = None, fence: str = "") -> MarkdownCut:
    """Return the last place before which later text cannot change anything.

    Before it are the blocks that are over, and all items of an open list except the last. Of a text
    longer than `MAX_SOURCE`, only that many characters are parsed, and they count as finished.

    Args:
        source: Markdown after the last cut.
        number: `MarkdownCut.number` of the last cut.
        fence: `MarkdownCut.fence` of the last cut.
    """
    if fence:
        cut = finished(fence + source)
        return msgspec.structs.replace(cut, offset=max(0, cut.offset - len(fence)))
    if len(source) > MAX_SOURCE:
        head = source[: source.rfind("\n", 0, MAX_SOURCE) + 1 or MAX_SOURCE]
        cut = finished(head, number)
        return cut if cut.offset else MarkdownCut(len(head), tight=True, fence=_opening(head))
    if marker := _BARE_MARKER.search(source):
        return finished(source[: marker.start()], number)
    nodes = list(block_nodes(sanitise(source)))
    if not nodes:
        return MarkdownCut(0)
    last = nodes[-1]
    if _is_over(last, source):
        return MarkdownCut(len(source))
    if last.type in _LISTS and len(last.children) > 1:
        return _before_last_item(last, source, number if len(nodes) == 1 else None)
    return MarkdownCut(_offset(source, _first_line(last)))


def lines_over(source: str, fence: str = "") -> MarkdownCut:
    """Return the end of the lines of an open block that cannot change, for printing by line.

    These are lines of code, and lines of a paragraph without an open mark that are followed by
    another line. Lines of other blocks may change until the block is over.

    Args:
        source: Markdown after the last cut, with one block that is not `finished`.
        fence: `MarkdownCut.fence` of the last cut.
    """
    if len(source) > MAX_SOURCE or "\n" not in source:
        return MarkdownCut(0)
    nodes = list(block_nodes(sanitise(fence + source)))
    if len(nodes) != 1:
        return MarkdownCut(0)
    if nodes[0].type == "fence":
        return _code_over(nodes[0], source, fence)
    return _words_over(source) if nodes[0].type == "paragraph" else MarkdownCut(0)


def _code_over(node: SyntaxTreeNode, source: str, fence: str) -> MarkdownCut:
    first = _offset(source, _first_line(node))
    opening, _, _ = source[first:].partition("\n")
    least = 0 if fence else first + len(opening) + 1
    end = len(source[: source.rfind("\n") + 1].rstrip())
    offset = source.find("\n", end) + 1 if end else 0
    if offset <= least or _is_closed_fence(node, fence + source):
        return MarkdownCut(0)
    return MarkdownCut(offset, tight=True, fence=fence or f"{opening}\n")


def _words_over(source: str) -> MarkdownCut:
    offset = source.rfind("\n") + 1
    while offset:
        begun = _PLAIN_BEGINNING.match(source, offset)
        before = source[:offset]
        if begun and not before.endswith("\\\n") and not has_open_mark(before):
            return MarkdownCut(offset, tight=True)
        offset = source.rfind("\n", 0, offset - 1) + 1
    return MarkdownCut(0)


def _opening(source: str) -> str:
    """Return the opening that the rest of a block needs in order to be read as the same block.

    It is the line that opened a block of code, also in a quote, or the head of a table.
    """
    nodes = list(block_nodes(sanitise(source)))
    node = nodes[-1] if nodes else None
    while node is not None and node.type == "blockquote" and node.children:
        node = node.children[-1]
    lines = source.split("\n")
    first = _first_line(node) if node is not None else 0
    if node is not None and node.type == "fence" and not _is_closed_fence(node, source):
        return lines[first] + "\n"
    if node is not None and node.type == "table":
        return "\n".join(lines[first : first + 2]) + "\n"
    return ""


def draw_markdown(source: str, options: Options) -> RenderableType:
    """Draw markdown of any length, in pieces that are cut between blocks."""
    drawn: list[RenderableType | None] = []
    number, fence = None, ""
    while len(source) > MAX_SOURCE:
        cut = finished(source, number, fence)
        drawn += [markdown(source[: cut.offset], options, number, fence)]
        drawn += [] if cut.tight else [Text("")]
        source, number, fence = source[cut.offset :], cut.number, cut.fence
    return stack([*drawn, markdown(source, options, number, fence)])


def is_open_fence(source: str) -> bool:
    """Return whether the markdown ends inside a code block, which must not be interrupted."""
    if len(source) > MAX_SOURCE:
        return False
    nodes = list(block_nodes(sanitise(source)))
    return bool(nodes) and nodes[-1].type == "fence" and not _is_closed_fence(nodes[-1], source)


def _is_over(node: SyntaxTreeNode, source: str) -> bool:
    if node.type == "fence":
        return _is_closed_fence(node, source)
    if node.type == "math_block":
        return bool(node.markup) and source.endswith("\n")
    line_over = source.endswith("\n")
    if node.type in _ENDED_BY_LINE and line_over:
        return True
    return node.type in _ENDED_BY_BLANK_LINE and line_over and not source.split("\n")[-2].strip()


def _is_closed_fence(node: SyntaxTreeNode, source: str) -> bool:
    if node.map is None or node.map[1] - node.map[0] < 2:
        return False
    lines = source.split("\n")
    if node.map[1] >= len(lines):
        return False
    last = lines[node.map[1] - 1].strip()
    return last.startswith(node.markup) and not last.strip(node.markup[0])


def _before_last_item(node: SyntaxTreeNode, source: str, number: int | None) -> MarkdownCut:
    offset = _offset(source, _first_line(node.children[-1]))
    tight = not source[:offset].endswith(("\n\n", "\r\n\r\n"))
    if node.type == "bullet_list":
        return MarkdownCut(offset, tight)
    first = int(node.attrs.get("start", 1)) if number is None else number
    return MarkdownCut(offset, tight, first + len(node.children) - 1)


def _first_line(node: SyntaxTreeNode) -> int:
    return node.map[0] if node.map else 0


def _offset(source: str, line: int) -> int:
    """Return the offset of the beginning of a line."""
    offset = 0
    for _ in range(line):
        offset = source.index("\n", offset) + 1
    return offset
