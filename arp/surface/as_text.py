"""Components as plain text with the same content.

Questions are in `question_text`; `degrade` handles layout components.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from arp.protocol import components as shown
from arp.protocol.catalog import chain
from arp.protocol.json_value import JsonObject
from arp.surface.aligned import aligned, cell_text, padded, width
from arp.surface.conversions import CONVERSIONS, not_shown
from arp.surface.question_text import QUESTIONS, how_to_select

_STEP_MARKS = {"done": "[x]", "active": "[>]", "pending": "[ ]", "failed": "[!]"}


def as_text(type_name: str, props: JsonObject, max_table_rows: int | None = None) -> str:
    """Return the content of a component as plain text, by its fallback chain.

    Args:
        type_name: A core type that is not a layout.
        props: Props that fit the type.
        max_table_rows: Most rows of tables, charts and product cards; `None` for all.
    """
    if type_name in CONVERSIONS:
        props, type_name = CONVERSIONS[type_name](props), chain(type_name)[1]
    if type_name == "table":
        return _table(props, max_table_rows)
    return _TEXTS[type_name](props)


def _content(props: JsonObject) -> str:
    content: str = props["content"]
    return content


def _status_card(props: JsonObject) -> str:
    card = msgspec.convert(props, shown.StatusCardProps)
    lines = [f"[{card.status}] {card.title}"]
    if card.message:
        lines.append(card.message)
    lines += [_labelled(section.label, section.content) for section in card.sections]
    return "\n".join(lines)


def _table(props: JsonObject, most: int | None) -> str:
    table = msgspec.convert(props, shown.TableProps)
    parts = [] if table.title is None else [table.title]
    if table.headers or table.rows:
        parts += _table_lines(_numbered(table), most)
    for tab in table.tabs:
        parts += ["", tab.name, *_table_lines(tab, most)]
    if table.selectable != "none":
        parts.append(how_to_select(table))
    return "\n".join(parts).strip("\n")


def _numbered(table: shown.TableProps) -> shown.TableProps:
    """Return a table with row numbers from 1 in the first column, if rows can be selected."""
    if table.selectable == "none":
        return table
    rows = tuple((number, *row) for number, row in enumerate(table.rows, 1))
    return msgspec.structs.replace(table, headers=("#", *table.headers), rows=rows)


def _table_lines(table: shown.TableProps | shown.TableTab, most: int | None) -> list[str]:
    """Return a table as lines; highlighted rows begin with a star."""
    rows = table.rows[:most]
    lines = aligned(table.headers, rows)
    if table.highlight:
        before = len(lines) - len(rows)
        lines = [
            f"* {line}" if number - before in table.highlight else f"  {line}".rstrip()
            for number, line in enumerate(lines)
        ]
    left_out = len(table.rows) - len(rows)
    return [*lines, not_shown(left_out)] if left_out else lines


def _code_block(props: JsonObject) -> str:
    block = msgspec.convert(props, shown.CodeBlockProps)
    parts = []
    if block.code is not None:
        parts.append(_code(block.title, block.language, block.code))
    elif block.title is not None:
        parts.append(block.title)
    parts += [_code(tab.name, tab.language, tab.code) for tab in block.tabs]
    return "\n\n".join(parts)


def _code(title: str | None, language: str | None, code: str) -> str:
    """Return code with a heading of title and language; for a diff the language is left out."""
    named = None if language in (None, "diff") else f"({language})"
    heading = " ".join(part for part in (title, named) if part)
    return f"{heading}\n{code}" if heading else code


def _key_value(props: JsonObject) -> str:
    facts = msgspec.convert(props, shown.KeyValueProps)
    keys = [f"{cell_text(item.key)}:" for item in facts.items]
    columns = max(map(width, keys), default=0)
    lines = [] if facts.title is None else [facts.title]
    for key, item in zip(keys, facts.items, strict=True):
        mark = f" [{item.style}]" if item.style in ("success", "error", "warning") else ""
        lines.append(f"{padded(key, columns)} {cell_text(item.value)}{mark}".rstrip())
    return "\n".join(lines)


def _progress(props: JsonObject) -> str:
    progress = msgspec.convert(props, shown.ProgressProps)
    done = sum(step.status == "done" for step in progress.steps)
    count = f"({done}/{len(progress.steps)})"
    lines = [f"{progress.title} {count}" if progress.title else count]
    for step in progress.steps:
        detail = f": {step.detail}" if step.detail else ""
        lines.append(f"{_STEP_MARKS[step.status]} {step.name}{detail}")
    return "\n".join(lines)


def _image(props: JsonObject) -> str:
    image = msgspec.convert(props, shown.ImageProps)
    source = "" if image.src.startswith("data:") else f" {image.src}"
    caption = f"\n{image.caption}" if image.caption else ""
    return f"[image: {image.alt}]{source}{caption}"


def _labelled(label: str, content: str) -> str:
    """Return content with a label before it; several lines are indented below the label."""
    if "\n" not in content:
        return f"{label}: {content}"
    return "\n".join([f"{label}:", *(f"  {line}" for line in content.split("\n"))])


_TEXTS: Mapping[str, Callable[[JsonObject], str]] = {
    "text": _content,
    "markdown": _content,
    "status-card": _status_card,
    "code-block": _code_block,
    "key-value": _key_value,
    "progress": _progress,
    "image": _image,
    **QUESTIONS,
}
