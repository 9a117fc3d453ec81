"""Code, highlighted with the terminal's sixteen colours; no border gets in the way of copying."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from pygments.lexers import get_lexer_by_name  # type: ignore[import-untyped]  # publishes no types
from pygments.token import Token  # type: ignore[import-untyped]
from pygments.util import ClassNotFound  # type: ignore[import-untyped]
from rich.cells import cell_len, chop_cells
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.style import Style
from rich.text import Text

from arp.protocol.json_value import JsonObject
from arp_terminal.drawing.blocks import indented, stack
from arp_terminal.drawing.palette import DIM, HEADING, PLAIN, TITLE
from arp_terminal.drawing.props import label, line, objects, output
from arp_terminal.options import Options

MAX_HIGHLIGHTED = 60_000
"""Maximum length of code that is highlighted. Lexers are regular expressions, and untrusted code
could make them slow."""

MAX_HIGHLIGHTED_LINE = 2_000
"""Maximum length of a line of code that is highlighted, for the same reason."""

_STYLES: tuple[tuple[Any, Style], ...] = (
    (Token.Comment, Style(dim=True, italic=True)),
    (Token.Keyword, Style(color="magenta")),
    (Token.Operator.Word, Style(color="magenta")),
    (Token.Literal.String, Style(color="green")),
    (Token.Literal.Number, Style(color="cyan")),
    (Token.Name.Function, Style(color="blue")),
    (Token.Name.Class, Style(color="yellow", bold=True)),
    (Token.Name.Decorator, Style(color="yellow")),
    (Token.Name.Builtin, Style(color="cyan")),
    (Token.Name.Tag, Style(color="magenta")),
    (Token.Name.Attribute, Style(color="blue")),
    (Token.Generic.Deleted, Style(color="red")),
    (Token.Generic.Inserted, Style(color="green")),
    (Token.Generic.Heading, TITLE),
)


def code_block(props: JsonObject, options: Options) -> RenderableType:
    """Draw `code-block`: its title and language, the code, and each tab under its name."""
    parts: list[RenderableType | None] = [
        _head(line(props.get("title")), line(props.get("language")))
    ]
    if props.get("code") is not None:
        parts.append(
            indented(draw_code(output(props["code"]), line(props.get("language")), options))
        )
    for tab in objects(props.get("tabs")):
        language = line(tab.get("language"))
        parts.append(_head(line(tab.get("name")), language))
        parts.append(indented(draw_code(output(tab.get("code")), language, options)))
    return stack(parts)


def draw_code(code: str, language: str, options: Options) -> RenderableType:
    """Draw safe code; lines that are too long continue after a sign."""
    text = highlight(code.rstrip("\n"), language)
    return CodeLines(text, "↪ " if options.unicode else "> ")


def highlight(code: str, language: str) -> Text:
    """Return safe code with the styles of its language; plain if the language is unknown."""
    text = Text(code)
    lexer = _lexer(language.lower()) if language else None
    if lexer is None or len(code) > MAX_HIGHLIGHTED:
        return text
    if max(map(len, code.split("\n"))) > MAX_HIGHLIGHTED_LINE:
        return text
    for start, kind, word in lexer.get_tokens_unprocessed(code):
        style = _style(kind)
        if style is not PLAIN:
            text.stylize(style, start, start + len(word))
    return text


class CodeLines:
    """Lines of code; a line that does not fit continues on the next lines."""

    def __init__(self, text: Text, sign: str) -> None:
        self._text = text
        self._sign = sign

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Return the lines."""
        width = options.max_width
        for source in self._text.split("\n", allow_blank=True):
            source.no_wrap, source.overflow = True, "crop"
            if cell_len(source.plain) <= width:
                yield source
                continue
            room = max(1, width - cell_len(self._sign))
            for number, piece in enumerate(source.divide(offsets(source.plain, width, room))):
                yield Text(self._sign, style=DIM) + piece if number else piece


def offsets(text: str, first: int, rest: int) -> list[int]:
    """Return the offsets at which to cut `text` so that each piece fits.

    Characters that are drawn as one, such as an emoji with a skin tone, are not cut apart.

    Args:
        text: A line.
        first: Maximum width of the first piece, in cells.
        rest: Maximum width of the other pieces, in cells.
    """
    found = [len(chop_cells(text, first)[0])]
    for piece in chop_cells(text[found[0] :], rest):
        found.append(found[-1] + len(piece))
    return found[:-1]


def _head(title: str, language: str) -> Text | None:
    if not title and not language:
        return None
    head = label(title, HEADING)
    if title and language:
        head.append("  ")
    return head.append(language, style=DIM)


@lru_cache(maxsize=256)
def _style(kind: Any) -> Style:
    return next((style for token, style in _STYLES if kind in token), PLAIN)


@lru_cache(maxsize=64)
def _lexer(language: str) -> Any:
    try:
        return get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None
