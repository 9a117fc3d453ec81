"""Draw a tool call: its name, arguments, progress, result, error and duration."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Literal, TypeAlias

from rich.cells import cell_len
from rich.console import RenderableType
from rich.style import Style
from rich.text import Text

from arp.protocol.connection.screen import ToolRun
from arp.protocol.errors import sentence
from arp.protocol.framing.program_output import printed
from arp.protocol.json_value import Json, JsonObject
from arp.protocol.messages import ToolProgressPayload
from arp_terminal.drawing.blocks import HangingBlock, cut, indented, stack
from arp_terminal.drawing.markdown import shown_address
from arp_terminal.drawing.palette import BAD, BOLD, DIM, GOOD, WARN
from arp_terminal.drawing.props import label, line, lines, output, paragraph
from arp_terminal.options import Options

INDENT = 2
"""Cells before a call, and before the lines below its name."""

INLINE_CHARACTERS = 100
"""Maximum length of arguments on the line of the name; longer ones are below it."""

LAID_OUT_CHARACTERS = 20_000
"""Maximum length of arguments or a result that are laid out. Longer ones would be slow, because
each frame of the spinner draws them again."""

MOST_ARGUMENTS = 20
"""Maximum number of arguments that are shown, each in one or several lines."""

ARGUMENT_LINES = 12
"""Maximum number of lines of an argument."""

RESULT_LINES = 8
"""Maximum number of lines of the result."""

SHOWN_MS = 100
"""Minimum duration that is shown; without it, each quick call would have a number."""

BAR_CELLS = 12


Detail: TypeAlias = Literal["short", "whole"]
"""How much of a call is drawn: a few lines of each part, or every character that the screen has."""


def draw_tool(
    run: ToolRun,
    options: Options,
    spinner: str = "",
    *,
    is_asking: bool = False,
    number: int | None = None,
    detail: Detail = "short",
) -> RenderableType:
    """Draw one tool call.

    Short arguments are on the line of the name, long ones below it, line by line. Below them is the
    progress while it runs, then the result.

    Args:
        run: The call.
        options: How to draw.
        spinner: Current sign of the spinner while the call runs.
        is_asking: Whether an open question below it asks for permission and shows the arguments.
        number: Its number in the conversation, for `/tool`; `None` shows none.
        detail: `whole` cuts nothing: long lines are wrapped.
    """
    is_whole = detail == "whole"
    width = max(8, options.width - 2 * INDENT)
    heading, below = label("" if number is None else f"#{number} ", DIM), list[RenderableType]()
    heading.append(line(run.tool), style=BOLD)
    arguments = [] if is_asking or is_whole else _arguments(run.args)
    inline = ", ".join(f"{name}: {value}" if name else value for name, value in arguments)
    if is_whole:
        below += whole_arguments(run.args, DIM)
    elif "\n" in inline or len(inline) > INLINE_CHARACTERS:
        for name, value in arguments[:MOST_ARGUMENTS]:
            below += _argument(name, value, width, options)
        if len(arguments) > MOST_ARGUMENTS:
            below += _dimmed([f"… {len(arguments) - MOST_ARGUMENTS:,} more"], width, options)
    elif inline:
        heading.append(f"  {line(inline)}", style=DIM)
    took = _took(run.duration_ms)
    heading = cut(heading, max(8, width - cell_len(took)), options.unicode)
    heading.append(took, style=DIM)
    if run.ok is None and run.progress is not None:
        below.append(cut(_progress(run.progress, options), width, options.unicode))
    below += _whole_result(run, options) if is_whole else _result(run, width, options)
    if run.error:
        below.append(paragraph(sentence(output(run.error)), BAD))
    sign, style = _sign(run, options, spinner)
    return indented(HangingBlock(f"{sign} ", stack([heading, *below]), style=style), INDENT)


def whole_arguments(args: str, style: Style) -> list[RenderableType]:
    """Draw all arguments of a call, each below the one before, without loss.

    A text that could be taken for another JSON value has quotes. Tabs are drawn as spaces, control
    characters as signs.

    Args:
        args: The arguments as JSON. A text that is not a JSON object is drawn as it is, and so is
            an object that decoding would change: a name that occurs twice, a number such as `1e3`.
        style: Style of the values.
    """
    named: list[tuple[str, str]] | None = None
    try:
        decoded: Json = json.loads(
            args, object_pairs_hook=_once, parse_int=_plain_int, parse_float=_plain_float
        )
        if isinstance(decoded, dict):
            named = [(_distinct_name(name), _distinct(value)) for name, value in decoded.items()]
    except (ValueError, RecursionError):  # not JSON, changed by decoding, or nested too deep
        pass
    if named is None:
        return [paragraph(args, style)] if args.strip() else []
    drawn: list[RenderableType] = []
    for name, text in named:
        head = label(f"{name}:", DIM)
        if "\n" in text:
            drawn += [head, indented(paragraph(text, style), INDENT)]
        else:
            drawn.append(head.append(" ").append(lines(text), style=style))
    return drawn


def _once(pairs: list[tuple[str, Json]]) -> JsonObject:
    """Return an object; raise `ValueError` if a name occurs twice, as decoding would drop one."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name occurs twice")
    return found


def _plain_int(text: str) -> int:
    """Return an integer; raise `ValueError` if it would be printed otherwise, such as `-0`."""
    if str(int(text)) != text:
        raise ValueError("not written as it would be printed")
    return int(text)


def _plain_float(text: str) -> float:
    """Return a number; raise `ValueError` if it would be printed otherwise, such as `1e3`."""
    if repr(float(text)) != text:
        raise ValueError("not written as it would be printed")
    return float(text)


def _distinct(value: Json) -> str:
    """Return a value as text that no other value has: a text has quotes where it needs them."""
    if isinstance(value, str) and not _needs_quotes(value):
        return value
    return json.dumps(value, ensure_ascii=False)


def _needs_quotes(text: str) -> bool:
    """Return whether a text could be taken for another JSON value, or its end is not visible.

    A text of several lines never needs them: no other value is drawn below its name.
    """
    if "\n" in text:
        return False
    if text != text.strip():
        return True
    try:
        json.loads(text)
    except RecursionError:  # it begins as JSON
        return True
    except ValueError:
        return text.startswith('"')
    return True


def _distinct_name(name: str) -> str:
    """Return the name of an argument; it has quotes if its end is not plain to see."""
    is_plain = bool(name) and not any(sign.isspace() or sign in ':"' for sign in name)
    return name if is_plain else json.dumps(name, ensure_ascii=False)


def _sign(run: ToolRun, options: Options, spinner: str) -> tuple[str, Style]:
    if run.ok is None:
        return spinner or ("◌" if options.unicode else "*"), WARN
    if run.ok:
        return "✓" if options.unicode else "+", GOOD
    return "✗" if options.unicode else "!", BAD


def _took(duration_ms: int | None) -> str:
    if duration_ms is None or duration_ms < SHOWN_MS:
        return ""
    seconds = duration_ms / 1000
    if seconds < 10:
        return f"  {seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"  {minutes} min {rest} s" if minutes else f"  {rest} s"


def _arguments(args: str) -> list[tuple[str, str]]:
    """Return the names and values of arguments; a text that is no object has an empty name."""
    if len(args) > LAID_OUT_CHARACTERS:
        return [("", args[:LAID_OUT_CHARACTERS])]
    try:
        decoded: Json = json.loads(args)
        if isinstance(decoded, dict):
            return [(name, _text(value)) for name, value in decoded.items()]
        return [] if decoded is None else [("", _text(decoded))]
    except (ValueError, RecursionError):  # not JSON, or nested too deep to be read or written
        return [("", args.strip())] if args.strip() else []


def _text(value: Json) -> str:
    """Return a text unchanged, and any other value as JSON, laid out if it is long."""
    if isinstance(value, str):
        return value
    compact = json.dumps(value, ensure_ascii=False)
    is_long = isinstance(value, dict | list) and len(compact) > INLINE_CHARACTERS // 2
    return json.dumps(value, ensure_ascii=False, indent=2) if is_long else compact


def _argument(name: str, value: str, width: int, options: Options) -> list[RenderableType]:
    shown = _few(lines(value).strip("\n").split("\n"), ARGUMENT_LINES)
    if not name:
        return _dimmed(shown, width, options)
    if len(shown) == 1:
        return _dimmed([f"{line(name)}: {shown[0]}"], width, options)
    inner = _dimmed(shown, width - INDENT, options)
    return [*_dimmed([f"{line(name)}:"], width, options), *(indented(one, INDENT) for one in inner)]


def _progress(progress: ToolProgressPayload, options: Options) -> Text:
    text = Text(line(printed(progress.text)))
    if progress.done is not None and progress.total:
        share = min(1.0, max(0.0, progress.done / progress.total))
        filled = round(share * BAR_CELLS)
        full, empty = "█░" if options.unicode else "#."
        gap = "  " if text.plain else ""
        text.append(f"{gap}{full * filled}{empty * (BAR_CELLS - filled)}", style=WARN)
        text.append(f" {progress.done:,} of {progress.total:,}", style=DIM)
    elif progress.done is not None:
        text.append(f"{'  ' if text.plain else ''}{progress.done:,}", style=DIM)
    return text


def _result(run: ToolRun, width: int, options: Options) -> list[RenderableType]:
    if not run.result:
        return []
    arrow = _arrow(options)
    text = _laid_out(run.result[:LAID_OUT_CHARACTERS])
    shown = _few(text.strip("\n").split("\n"), RESULT_LINES)
    body = stack(_dimmed(shown, width - len(arrow), options))
    parts: list[RenderableType] = [HangingBlock(arrow, body, style=DIM)]
    if run.result_ref:
        parts.append(cut(label(f"Whole result: {run.result_ref}", DIM), width, options.unicode))
    return parts


def _whole_result(run: ToolRun, options: Options) -> list[RenderableType]:
    """Draw all of the result that the screen has, and the place of the rest if it was cut."""
    parts: list[RenderableType] = []
    if run.result:
        body = Text(_laid_out(run.result).strip("\n"), style=DIM)
        parts.append(HangingBlock(_arrow(options), body, style=DIM))
    if run.result_ref:
        # The terminal fetches nothing that an agent names; the user decides whether to open it.
        rest = f"The result is cut after {len(run.result or ''):,} characters. Whole result: "
        parts.append(
            Text(rest, style=WARN).append(shown_address(run.result_ref, options), style=DIM)
        )
    return parts


def _laid_out(result: str) -> str:
    """Return a result as text of several lines; JSON is laid out."""
    try:
        decoded: Json = json.loads(result)
        # A text that happens to be a JSON string keeps its quotes: the tool returned them.
        text = result if isinstance(decoded, str) else _text(_printed(decoded))
    except (ValueError, RecursionError):  # not JSON, or nested too deep to be read or written
        text = result
    return output(text)


def _arrow(options: Options) -> str:
    return "→ " if options.unicode else "> "


def _printed(value: Json) -> Json:
    """Return JSON with `printed` applied to each of its texts."""
    match value:
        case str():
            return printed(value)
        case list():
            return [_printed(one) for one in value]
        case dict():
            return {name: _printed(one) for name, one in value.items()}
    return value


def _few(all_lines: Sequence[str], most: int) -> list[str]:
    """Return the first lines and the number of the others; a single line is never left out."""
    if len(all_lines) <= most + 1:
        return list(all_lines)
    return [*all_lines[:most], f"… {len(all_lines) - most:,} more lines"]


def _dimmed(shown: Sequence[str], width: int, options: Options) -> list[RenderableType]:
    return [cut(Text(one, style=DIM), max(1, width), options.unicode) for one in shown]
