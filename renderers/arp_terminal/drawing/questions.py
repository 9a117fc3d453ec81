"""Input components in the conversation: an open question, or how it ended.

`asking.dialogue` reads the answers.
"""

from __future__ import annotations

from rich.cells import cell_len
from rich.console import RenderableType
from rich.text import Text

from arp.protocol.json_value import Json, JsonObject
from arp_terminal.drawing.blocks import HangingBlock, rail, stack
from arp_terminal.drawing.palette import ACCENT, BAD, BOLD, DIM, GOOD, PLAIN, TITLE, WARN
from arp_terminal.drawing.props import items, label, line, lines, objects, paragraph
from arp_terminal.options import Options
from arp_terminal.prompt import ActionReply, Option

STATES = {"declined": "declined", "expired": "not answered in time", "cancelled": "withdrawn"}
"""Words for a question that ended without an answer, by its state."""

MAX_NAMED = 5
"""Maximum number of selected rows that are named; the others are counted."""

SECRET = "••••••"
"""Text in place of a secret answer."""


def is_open(props: JsonObject) -> bool:
    """Return whether a question still accepts an answer."""
    return props.get("state") in (None, "open")


def confirm(props: JsonObject, options: Options) -> RenderableType:
    """Draw `confirm`: the question with its two answers, or the given answer."""
    if not is_open(props):
        answer = props.get("answer")
        yes = answer is True or answer == "confirm"
        words = (
            line(props.get("confirm_label"), "Yes") if yes else line(props.get("deny_label"), "No")
        )
        return _closed(props, options, words, good=yes)
    style = WARN if props.get("destructive") else ACCENT
    body: list[RenderableType | None] = [label(props.get("title"), TITLE)]
    if props.get("message"):
        body.append(paragraph(props["message"]))
    if props.get("destructive"):
        body.append(Text("This cannot be undone.", style=BAD))
    answers = Text("   ").join(option_text(option) for option in confirm_options(props))
    return question_rail(stack([*body, answers]), style, options)


def confirm_options(props: JsonObject) -> tuple[Option, ...]:
    """Return the two answers to a `confirm`."""
    yes = line(props.get("confirm_label"), "Yes")
    no = line(props.get("deny_label"), "No")
    return (
        Option("y", yes, ActionReply("confirm"), words=("yes", yes.casefold())),
        Option("n", no, ActionReply("deny"), words=("no", no.casefold())),
    )


def option_text(option: Option) -> Text:
    """Return an answer that a question offers as its key and its label: `[y] Write`."""
    style = BAD if option.is_denial else ACCENT if option.reply is None else GOOD
    return label(f"[{option.letter}] ", style).append(option.label, style=BOLD)


def choices(props: JsonObject, options: Options) -> RenderableType:
    """Draw `choices`: numbered options, or the selected ones."""
    found = [option_of(value) for value in items(props.get("options"))]
    if not is_open(props):
        taken = props.get("answer")
        wanted = taken if isinstance(taken, list) else [taken]
        words = ", ".join(name_of(found, value) for value in wanted)
        return _closed(props, options, words, good=True)
    width = len(str(len(found)))
    body: list[RenderableType | None] = []
    if props.get("title"):
        body.append(label(props["title"], TITLE))
    for place, option in enumerate(found, 1):
        disabled = bool(option.get("disabled"))
        icon = f"{line(option['icon'])} " if option.get("icon") else ""
        text = label(icon + line(option.get("label")), DIM if disabled else PLAIN)
        if option.get("description"):
            text.append(f"  {line(option['description'])}", style=DIM)
        text.append("  (not available)" if disabled else "", style=DIM)
        body.append(HangingBlock(f"{place:>{width}}. ", text, style=DIM if disabled else ACCENT))
    return question_rail(stack(body), ACCENT, options)


def row_selection(props: JsonObject, options: Options, sheet: RenderableType) -> RenderableType:
    """Draw a `table` for selecting rows: the numbered rows, or the selected ones."""
    if is_open(props):
        title = label(props["title"], TITLE) if props.get("title") else None
        return question_rail(stack([title, sheet]), ACCENT, options)
    taken, rows = props.get("answer"), items(props.get("rows"))
    wanted = taken if isinstance(taken, list) else [] if taken is None else [taken]
    words = ", ".join(_row_name(rows, place) for place in wanted[:MAX_NAMED])
    if len(wanted) > MAX_NAMED:
        words += f" and {len(wanted) - MAX_NAMED} more"
    return _closed(props, options, words or "none", good=True)


def _row_name(rows: list[Json], place: Json) -> str:
    """Return the number of a row, from 1, and its first cell."""
    if not isinstance(place, int):
        return line(place)
    cells = items(rows[place]) if 0 <= place < len(rows) else []
    return f"{place + 1} {line(cells[0])}".rstrip() if cells else str(place + 1)


def text_input(props: JsonObject, options: Options) -> RenderableType:
    """Draw `text-input`: the question, or the written answer."""
    if not is_open(props):
        return _closed(props, options, lines(props.get("answer")), good=True)
    hint = Text(line(props.get("placeholder")), style=DIM) if props.get("placeholder") else None
    title = label(props.get("label"), TITLE) if props.get("label") else None
    return question_rail(stack([title, hint]), ACCENT, options)


def form(props: JsonObject, options: Options) -> RenderableType:
    """Draw `form`: its fields with their current values, or with the sent values."""
    fields = objects(props.get("fields"))
    if not is_open(props):
        answer = props.get("answer")
        given = answer if isinstance(answer, dict) else {}
        closed = _closed(props, options, "" if given else "sent", good=True)
        return stack([closed, *_fields(fields, given)]) if given else closed
    body: list[RenderableType | None] = []
    if props.get("title"):
        body.append(label(props["title"], TITLE))
    if props.get("description"):
        body.append(paragraph(props["description"], DIM))
    body.extend(_fields(fields, None))
    return question_rail(stack(body), ACCENT, options)


def field_label(field: JsonObject) -> str:
    """Return the label of a field, or its name."""
    return line(field.get("label")) or line(field.get("name")) or "field"


def option_of(value: Json) -> JsonObject:
    """Return an option as an object with a label and a value; it may be given as a plain value."""
    if not isinstance(value, dict):
        return {"label": value, "value": value}
    found = value.get("label") if value.get("label") is not None else value.get("value")
    taken = value.get("value") if value.get("value") is not None else value.get("label")
    return {**value, "label": found, "value": taken}


def name_of(options: list[JsonObject], value: Json) -> str:
    """Return the label of the option with this value; the value itself if there is none."""
    return next((line(one["label"]) for one in options if one["value"] == value), line(value))


def _fields(fields: list[JsonObject], given: JsonObject | None) -> list[RenderableType]:
    """Draw fields in two columns: name and type, or name and sent value if `given` is set."""
    names = [field_label(field) for field in fields]
    width = min(30, max(map(cell_len, names), default=0))
    drawn: list[RenderableType] = []
    for name, field in zip(names, fields, strict=True):
        required = given is None and field.get("required") is True
        marker = label(f"  {name}", DIM).append(" *" if required else "  ", style=BAD)
        marker.append(" " * max(1, width - cell_len(name) + 1))
        drawn.append(HangingBlock(marker, _field_value(field, given)))
    return drawn


def _field_value(field: JsonObject, given: JsonObject | None) -> Text:
    kind = line(field.get("field_type"), "text")
    if given is not None:
        value = given.get(str(field.get("name")))
        if kind == "password":
            return Text(SECRET if value else "–")
        if isinstance(value, bool):
            return Text("yes" if value else "no")
        found = [option_of(option) for option in items(field.get("options"))]
        return Text(name_of(found, value) if value is not None else "–")
    text = label(kind, DIM)
    found = [option_of(option) for option in items(field.get("options"))]
    if found:
        text = label(" / ".join(line(option["label"]) for option in found), DIM)
    if field.get("value") is not None and kind != "password":
        text.append(f"  [{line(field['value'])}]")
    return text


def question_rail(body: RenderableType, style: object, options: Options) -> RenderableType:
    """Put the rail of an open question before all lines of `body`."""
    return rail(body, "┃" if options.unicode else "|", style)  # type: ignore[arg-type]  # a Style


def _closed(props: JsonObject, options: Options, answer: str, *, good: bool) -> RenderableType:
    """Draw a question that is over in one line: sign, question, answer."""
    state = line(props.get("state"))
    title = line(props.get("title")) or line(props.get("label")) or "Question"
    if state in STATES:
        text = label(f"{title} ({STATES[state]})", DIM)
        return HangingBlock("○ " if options.unicode else "- ", text, style=DIM)
    arrow = " → " if options.unicode else " -> "
    text = label(title, DIM)
    if answer:
        text.append(arrow, style=DIM).append(answer, style=BOLD)
    sign = ("✓ " if good else "✗ ") if options.unicode else ("+ " if good else "- ")
    return HangingBlock(sign, text, style=GOOD if good else BAD)
