"""Rules for the Markdown of models besides CommonMark: emphasis in CJK text, and formulas.

CommonMark requires a space or punctuation on the other side of `**` that touches punctuation.
Chinese, Japanese and Korean (CJK) have no spaces there, so `これは**「重要」**な点` would keep its
asterisks. Here CJK characters count as such a neighbour, and CJK punctuation counts as letters. The
cases for all renderers are in `schemas/cases/emphasis.json`. A formula is shown as it is written,
with its backslashes, because terminals cannot draw it.
"""

from __future__ import annotations

import re
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.common.utils import isPunctChar
from markdown_it.parser_inline import ParserInline
from markdown_it.ruler import RuleOptionsType
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline
from markdown_it.rules_inline.state_inline import Scanned
from markdown_it.token import Token
from markdown_it.utils import EnvType

_CJK: Final = re.compile(
    "[\u1100-\u11ff\u2e80-\u2fff\u3001-\ua4cf\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\ufe10-\ufe6f"
    "\uff01-\uffee\U00016fe0-\U0001b2ff\U0001f200-\U0001f2ff\U00020000-\U0003fffd]"
)
"""CJK characters; the same ranges as in `web/elements/src/markdown/flanking.ts`."""

_ENDS: Final = {"$$": "$$", "\\(": "\\)", "\\[": "\\]"}
_BLOCKS: Final = frozenset(("$$", "\\["))
_DOLLAR_MATH: Final = re.compile(r"\$(?![\s$])(?=[^$\n]{0,500}\\)[^$\n]{1,500}(?<!\s)\$(?![\d$])")
"""A formula between single dollars; it needs a command of TeX, because `$5` is a price."""
_OPENING: Final = re.compile(r"(\$\$|\\\(|\\\[)|\\.")

LONGEST_MATH: Final = 5_000
"""Length after which a formula without an end is text, as on the page."""


class CjkState(StateInline):
    """State of the inline parser with CJK rules for the `*` and `~` that open and close."""

    def scanDelims(self, start: int, canSplitWord: bool) -> Scanned:
        """Return whether marks at a place may open and close, by the characters on both sides."""
        scanned = super().scanDelims(start, canSplitWord)
        before = self.src[start - 1] if start else " "
        end = start + scanned.length
        after = self.src[end] if end < self.posMax else " "
        if not canSplitWord or not (_CJK.match(before) or _CJK.match(after)):
            return scanned
        opens = not after.isspace() and (not _is_sign(after) or _is_edge(before))
        closes = not before.isspace() and (not _is_sign(before) or _is_edge(after))
        return Scanned(opens, closes, scanned.length)


def _is_sign(char: str) -> bool:
    """Return whether a character is punctuation, but not CJK."""
    return isPunctChar(char) and not _CJK.match(char)


def _is_edge(char: str) -> bool:
    return char.isspace() or isPunctChar(char) or _CJK.match(char) is not None


class _InlineParser(ParserInline):
    def parse(self, src: str, md: MarkdownIt, env: EnvType, tokens: list[Token]) -> list[Token]:
        state = CjkState(src, md, env, tokens)
        self.tokenize(state)
        for rule in self.ruler2.getRules(""):
            rule(state)
        return state.tokens


def parser(*, is_growing: bool) -> MarkdownIt:
    """Return a parser of CommonMark with tables, strikethrough and math.

    Args:
        is_growing: Whether more text may follow, so that a formula without an end is an open block.
    """
    made = MarkdownIt("commonmark")
    made.inline = _InlineParser()
    made.configure("commonmark").enable(["table", "strikethrough"]).disable("reference")
    # No `reference`: text arrives in pieces, and a definition in a later piece would be lost.
    made.inline.ruler.before("escape", "math", _inline_math)

    def block_math(state: StateBlock, first: int, end: int, silent: bool) -> bool:
        return _block_math(state, first, end, silent, is_growing)

    interrupts: RuleOptionsType = {"alt": ["paragraph", "reference", "blockquote", "list"]}
    made.block.ruler.before("fence", "math", block_math, interrupts)
    return made


def _inline_math(state: StateInline, silent: bool) -> bool:
    opening = state.src[state.pos : state.pos + 2]
    if opening in _ENDS:
        end = state.src.find(_ENDS[opening], state.pos + 3)
        end = end + 2 if end > 0 else 0
    else:
        found = _DOLLAR_MATH.match(state.src, state.pos)
        end = found.end() if found else 0
    if not state.pos < end <= min(state.posMax, state.pos + LONGEST_MATH):
        return False
    if not silent:
        state.push("math_inline", "", 0).content = state.src[state.pos : end]
    state.pos = end
    return True


def _block_math(state: StateBlock, first: int, end: int, silent: bool, is_growing: bool) -> bool:
    begin = state.bMarks[first] + state.tShift[first]
    opening = state.src[begin : begin + 2]
    if state.is_code_block(first) or opening not in _BLOCKS:
        return False
    last, is_closed = first, False
    while last < end and not is_closed:
        if state.bMarks[last] - begin > LONGEST_MATH:
            return False
        if state.sCount[last] < state.blkIndent and not state.isEmpty(last):
            break
        line_begin = begin + 2 if last == first else state.bMarks[last] + state.tShift[last]
        text = state.src[line_begin : state.eMarks[last]].rstrip()
        is_closed = text.endswith(_ENDS[opening]) and (last > first or len(text) > 2)
        last += 1
    if not is_closed and not is_growing:
        return False
    if not silent:
        token = state.push("math_block", "", 0)
        token.content = state.getLines(first, last, state.blkIndent, False)
        token.markup = opening if is_closed else ""
        token.map = [first, last]
        state.line = last
    return True


def has_open_math(source: str) -> bool:
    """Return whether a paragraph has an open formula that later text may close."""
    place = 0
    while found := _OPENING.search(source, place):
        place = found.end()
        if found[1]:
            place = source.find(_ENDS[found[1]], place) + 2
            if place < 2:
                return True
    return False
