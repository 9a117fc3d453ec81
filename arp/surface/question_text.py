"""Questions as text with instructions for the answer; `typed_answer` parses the answer.

A closed question shows its state and answer instead. A password is never shown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from arp.protocol.components import (
    ChoicesProps,
    ConfirmProps,
    Field,
    FieldOption,
    FormProps,
    Option,
    QuestionState,
    TableProps,
    TextInputProps,
    label_of,
    value_of,
)
from arp.protocol.json_value import Json, JsonObject
from arp.surface.aligned import cell_text
from arp.surface.typed_answer import by_number

HIDDEN = "••••"
"""Text shown instead of a password."""


def _form(props: JsonObject) -> str:
    form = msgspec.convert(props, FormProps)
    lines = [line for line in (form.title, form.description) if line]
    if form.state in (None, "open"):
        how = _how_to_fill(form) + _or_decline(form)
        return "\n".join([*lines, *map(_field, form.fields), how])
    if form.state == "answered" and isinstance(form.answer, dict):
        lines += [
            f"- {field.label or field.name}: {_given(field, form.answer[field.name])}"
            for field in form.fields
            if form.answer.get(field.name) is not None
        ]
    return "\n".join([*lines, _closed(form.state)])


def _field(field: Field) -> str:
    label = f" ({field.label})" if field.label and field.label != field.name else ""
    notes = [*_kind(field), "required" if field.required else "optional"]
    if field.value is not None and field.field_type != "password":
        notes.append(f"now {_label(field.options, field.value)}")
    elif field.placeholder:
        notes.append(f"such as {field.placeholder}")
    return f"- {field.name}{label}: {', '.join(notes)}"


def _kind(field: Field) -> list[str]:
    if field.options:
        return [f"one of {' | '.join(map(label_of, field.options))}"]
    kinds = {"checkbox": "yes or no", "date": "date YYYY-MM-DD", "textarea": "text"}
    if field.field_type in ("password", "file"):
        return [field.field_type, "cannot be typed here"]
    notes = [kinds.get(field.field_type, field.field_type)]
    if (rules := field.validation) is not None:
        bounds = {
            "from": rules.min,
            "to": rules.max,
            "at least": rules.min_length,
            "at most": rules.max_length,
        }
        for word, bound in bounds.items():
            if bound is not None:
                unit = " characters" if word.startswith("at") else ""
                notes.append(f"{word} {cell_text(bound)}{unit}")
    return notes


def _how_to_fill(form: FormProps) -> str:
    if any(field.required and field.field_type in ("password", "file") for field in form.fields):
        return "This form cannot be answered by text."
    typed = [field for field in form.fields if field.field_type not in ("password", "file")]
    if len(typed) == 1:
        return f"Reply with the {typed[0].label or typed[0].name}."
    return 'Reply with a line "name: value" for each field.'


def _given(field: Field, value: Json) -> str:
    if field.field_type == "password":
        return HIDDEN
    if field.field_type == "file" and isinstance(value, dict):
        return cell_text(value.get("name"))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return _label(field.options, value)


def _confirm(props: JsonObject) -> str:
    confirm = msgspec.convert(props, ConfirmProps)
    lines = [f"[warning] {confirm.title}" if confirm.destructive else confirm.title]
    if confirm.message:
        lines.append(confirm.message)
    yes = f"yes ({confirm.confirm_label})" if confirm.confirm_label else "yes"
    no = f"no ({confirm.deny_label})" if confirm.deny_label else "no"
    if confirm.state in (None, "open"):
        return "\n".join([*lines, f"Reply {yes} or {no}.{_or_decline(confirm)}"])
    if confirm.state == "answered" and isinstance(confirm.answer, bool):
        return "\n".join([*lines, f"Answered: {yes if confirm.answer else no}."])
    return "\n".join([*lines, _closed(confirm.state)])


def _choices(props: JsonObject) -> str:
    choices = msgspec.convert(props, ChoicesProps)
    lines = [] if choices.title is None else [choices.title]
    if choices.state == "answered" and choices.answer is not None:
        taken = choices.answer if isinstance(choices.answer, list) else [choices.answer]
        chosen = ", ".join(_label(choices.options, value) for value in taken) or "none"
        return "\n".join([*lines, f"Answered: {chosen}."])
    numbered = by_number(choices.options)
    for number, option in enumerate(choices.options, 1):
        line = f"{number}. {label_of(option)}" if numbered else f"- {label_of(option)}"
        if not isinstance(option, str):
            line += f": {option.description}" if option.description else ""
            line += " (not available)" if option.disabled else ""
        lines.append(line)
    if choices.state not in (None, "open"):
        return "\n".join([*lines, _closed(choices.state)])
    how = _how_to_choose(numbered, choices.multi_select) + _or_decline(choices)
    return "\n".join([*lines, how])


def _how_to_choose(numbered: bool, several: bool) -> str:
    if numbered:
        return "Reply with numbers, such as 1,3." if several else "Reply with a number."
    return "Reply with one or more of them." if several else "Reply with one of them."


def _text_input(props: JsonObject) -> str:
    question = msgspec.convert(props, TextInputProps)
    lines = [] if question.label is None else [question.label]
    if question.state == "answered" and isinstance(question.answer, str):
        return "\n".join([*lines, f"Answered: {question.answer}"])
    if question.state not in (None, "open"):
        return "\n".join([*lines, _closed(question.state)])
    if question.placeholder:
        lines.append(f"Such as: {question.placeholder}")
    most = f" of at most {question.max_length} characters" if question.max_length else ""
    kind = "text" if question.multiline else "line of text"
    how = f"Reply with your answer, a {kind}{most}.{_or_decline(question)}"
    return "\n".join([*lines, how])


def how_to_select(table: TableProps) -> str:
    """Return how to select rows of a table, by numbers from 1; for a closed table, its answer."""
    if table.state == "answered" and table.answer is not None:
        taken = table.answer if isinstance(table.answer, list) else [table.answer]
        return f"Answered: {', '.join(map(_row_number, taken)) or 'none'}."
    if table.state not in (None, "open"):
        return _closed(table.state)
    if table.selectable == "many":
        return f"Reply with numbers of rows, such as 1,3.{_or_decline(table)}"
    return f"Reply with the number of a row.{_or_decline(table)}"


def _row_number(row: Json) -> str:
    return str(row + 1) if type(row) is int else cell_text(row)


def _closed(state: QuestionState | None) -> str:
    words = {
        "answered": "Answered.",
        "declined": "Declined.",
        "expired": "Expired.",
        "cancelled": "Cancelled.",
    }
    return words[state or "cancelled"]


def _or_decline(
    props: FormProps | ConfirmProps | ChoicesProps | TextInputProps | TableProps,
) -> str:
    """Return the sentence on how to decline; empty if the question cannot be declined."""
    return ' Reply "decline" to decline.' if props.can_decline else ""


def _label(options: Sequence[str | FieldOption | Option], value: Json) -> str:
    """Return the label of the option with a value; for other values, their text."""
    for option in options:
        if value_of(option) == value:
            return label_of(option)
    if isinstance(value, list | dict):
        return msgspec.json.encode(value).decode()
    return cell_text(value)


QUESTIONS: Mapping[str, Callable[[JsonObject], str]] = {
    "form": _form,
    "confirm": _confirm,
    "choices": _choices,
    "text-input": _text_input,
}
"""The text of each input component, by type."""
