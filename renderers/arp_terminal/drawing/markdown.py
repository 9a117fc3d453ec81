"""Markdown (CommonMark with tables, strikethrough and `inline_rules`) as terminal text.

Raw HTML is shown as text. A link is shown as its text and its address, an image as its description
and its address. Nothing is fetched.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from urllib.parse import urljoin

from markdown_it.tree import SyntaxTreeNode
from rich.cells import cell_len
from rich.console import RenderableType
from rich.style import Style
from rich.text import Text

from arp.protocol.blob_path import PREFIX as FILES
from arp.protocol.safe_text import sanitise
from arp_terminal.drawing.blocks import HangingBlock, indented, rail, stack
from arp_terminal.drawing.code_block import draw_code
from arp_terminal.drawing.inline_rules import has_open_math, parser
from arp_terminal.drawing.palette import (
    ACCENT,
    BOLD,
    CODE,
    DIM,
    HEADING,
    ITALIC,
    LINK,
    PLAIN,
    STRUCK,
)
from arp_terminal.drawing.props import line, output
from arp_terminal.drawing.table import Grid
from arp_terminal.options import Options

MAX_SOURCE = 64 << 10
"""Maximum length of a piece that is parsed as markdown; a longer piece is shown as text."""

_PARSER = parser(is_growing=False)

_MARKS: dict[str, Style] = {"strong": BOLD, "em": ITALIC, "s": STRUCK}
_CODES = {0x2400 + code: chr(code) for code in (0x07, 0x08, 0x0D, 0x0E, 0x0F, 0x1B)}
"""Control characters that `printed` reads, by the pictures that `sanitise` made of them."""
_BULLETS = ("•", "◦", "▪")


def markdown(
    source: str, options: Options, number: int | None = None, fence: str = ""
) -> RenderableType:
    """Draw markdown from an agent; it may have control characters.

    Args:
        source: The markdown, or a piece of it.
        options: How to draw.
        number: First number of the numbered list that continues from the previous piece.
        fence: Line that opened the code block that continues from the previous piece.
    """
    whole = fence + source
    safe = sanitise(whole).expandtabs(4)
    if len(source) > MAX_SOURCE:
        return Text(safe)
    nodes = SyntaxTreeNode(_PARSER.parse(safe)).children
    if number is not None and nodes and nodes[0].type == "ordered_list" and nodes[0].token is None:
        opening = nodes[0].nester_tokens
        if opening is not None:
            opening.opening.attrs["start"] = number
    blocks = _Blocks(options, has_codes="\x1b" in whole)
    if fence and nodes:
        first = blocks.code(nodes[0]) if nodes[0].type == "fence" else blocks.block(nodes[0])
        return stack([first, *map(blocks.block, nodes[1:])], gap=1)
    return blocks.stacked(nodes, gap=1)


class _Blocks:
    """Draws block nodes, with the depth of the list around them."""

    def __init__(self, options: Options, depth: int = 0, *, has_codes: bool = False) -> None:
        self._options = options
        self._depth = depth
        self._has_codes = has_codes
        """Whether code may be output of a program with control sequences of a terminal."""

    def stacked(self, nodes: list[SyntaxTreeNode], gap: int) -> RenderableType:
        return stack((self.block(node) for node in nodes), gap=gap)

    def block(self, node: SyntaxTreeNode) -> RenderableType:
        draw: dict[str, Callable[[SyntaxTreeNode], RenderableType]] = {
            "paragraph": self._inline,
            "heading": self._heading,
            "fence": self._fence,
            "code_block": self._fence,
            "bullet_list": self._list,
            "ordered_list": self._list,
            "blockquote": self._quote,
            "table": self._table,
            "hr": self._rule,
            "math_block": self._math,
        }
        found = draw.get(node.type)
        return found(node) if found else Text(node.content.rstrip("\n"))

    def _inline(self, node: SyntaxTreeNode) -> Text:
        text = Text()
        for child in node.children:
            _append_inline(text, child, PLAIN, self._options)
        return text

    def _heading(self, node: SyntaxTreeNode) -> RenderableType:
        text = self._inline(node)
        level = int(node.tag[1:])
        text.stylize(HEADING if level <= 2 else BOLD)
        if level > 1:
            return text
        sign = "━" if self._options.unicode else "="
        return stack(
            [text, Text(sign * min(cell_len(text.plain), self._options.width), style=ACCENT)]
        )

    def _fence(self, node: SyntaxTreeNode) -> RenderableType:
        language = node.info.split()[0] if node.info.split() else ""
        return stack([Text(language, style=DIM) if language else None, self.code(node)])

    def code(self, node: SyntaxTreeNode) -> RenderableType | None:
        """Draw code without the name of its language; `None` if it is empty."""
        language = node.info.split()[0] if node.info.split() else ""
        if not node.content.strip():
            return None
        code = output(node.content.translate(_CODES)) if self._has_codes else node.content
        return indented(draw_code(code, language, self._options))

    def _math(self, node: SyntaxTreeNode) -> Text:
        return Text(node.content, style=CODE)

    def _quote(self, node: SyntaxTreeNode) -> RenderableType:
        sign = "▎" if self._options.unicode else "|"
        return rail(self.stacked(node.children, gap=1), sign, DIM)

    def _rule(self, node: SyntaxTreeNode) -> Text:
        return Text(
            ("─" if self._options.unicode else "-") * min(self._options.width - 8, 40), style=DIM
        )

    def _list(self, node: SyntaxTreeNode) -> RenderableType:
        inner = _Blocks(self._options, self._depth + 1, has_codes=self._has_codes)
        first = node.attrs.get("start", 1)
        gap = 0 if all(_is_tight(item) for item in node.children) else 1
        drawn: list[RenderableType] = []
        for place, item in enumerate(node.children):
            if node.type == "ordered_list":
                marker = f"{int(first) + place}. "
            else:
                marker = (_BULLETS[self._depth % 3] if self._options.unicode else "-") + " "
            if not item.children:  # an answer may be "42.", which is a list with an empty item
                drawn.append(Text(marker.rstrip(), style=ACCENT))
                continue
            drawn.append(HangingBlock(marker, inner.stacked(item.children, gap=gap), style=ACCENT))
        return stack(drawn, gap=gap)

    def _table(self, node: SyntaxTreeNode) -> RenderableType:
        rows = [
            [self._inline(cell) for cell in row.children]
            for part in node.children
            for row in part.children
        ]
        aligns = [
            str(cell.attrs.get("style", "")) for cell in node.children[0].children[0].children
        ]
        right = frozenset(place for place, align in enumerate(aligns) if "right" in align)
        return Grid(rows[0], rows[1:], self._options, right=right)


def _is_tight(item: SyntaxTreeNode) -> bool:
    return all(child.hidden for child in item.children if child.type == "paragraph")


def _append_inline(text: Text, node: SyntaxTreeNode, style: Style, options: Options) -> None:
    """Append an inline node with its children."""
    match node.type:
        case "text" | "html_inline":
            text.append(node.content, style=style)
        case "code_inline" | "math_inline":
            text.append(node.content, style=style + CODE)
        case "softbreak" | "hardbreak":
            text.append("\n")
        case "link":
            _append_link(text, node, style, options)
        case "image":
            sign = "▣ " if options.unicode else "[image] "
            text.append(sign + line(node.content), style=style + DIM)
            address = shown_address(str(node.attrs.get("src", "")), options)
            text.append(f" ({address})", style=style + LINK)
        case _:
            inner = style + _MARKS.get(node.type, PLAIN)
            for child in node.children:
                _append_inline(text, child, inner, options)


def _append_link(text: Text, node: SyntaxTreeNode, style: Style, options: Options) -> None:
    address = shown_address(str(node.attrs.get("href", "")), options)
    words = "".join(_plain(child) for child in node.children)
    if words == address or f"mailto:{words}" == address:
        text.append(words, style=style + LINK)
        return
    for child in node.children:
        _append_inline(text, child, style, options)
    text.append(" (", style=style + DIM)
    text.append(address, style=style + LINK)
    text.append(")", style=style + DIM)


def _plain(node: SyntaxTreeNode) -> str:
    return node.content if not node.children else "".join(_plain(child) for child in node.children)


def shown_address(address: str, options: Options) -> str:
    """Return an address that a user can open; for a `data:` address, the size of its data.

    Agents write the addresses of files of a session without the server (`/_api/blobs/…`). Such an
    address means nothing outside a browser.
    """
    if not address.lower().startswith("data:"):
        if not options.server or address.startswith("#"):
            return line(address)
        # The path of a file lacks the prefix of a mounted server; `options.server` has it.
        if address.startswith(FILES):
            return line(options.server + address)
        try:
            return line(urljoin(f"{options.server}/", address))
        except ValueError:  # not an address
            return line(address)
    kind, _, data = address[5:].partition(",")
    return line(f"embedded {kind.split(';')[0] or 'text/plain'}, {len(data):,} characters")


def has_open_mark(source: str) -> bool:
    """Return whether a paragraph has an open mark that later text may close."""
    if has_open_math(source):
        return True
    nodes = SyntaxTreeNode(_PARSER.parse(sanitise(source))).walk()
    return any(_OPEN_MARK.search(node.content) for node in nodes if node.type == "text")


_OPEN_MARK = re.compile(r"[`\[<]|~~|\*(?!\s)|(?<!\w)_(?!\s)")


def block_nodes(source: str) -> Iterator[SyntaxTreeNode]:
    """Return the outermost blocks of markdown, without parsing their inline text."""
    yield from SyntaxTreeNode(_BLOCK_PARSER.parse(source)).children


_BLOCK_PARSER = parser(is_growing=True).disable("inline")
