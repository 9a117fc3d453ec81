"""Conversion of typed text into the answer to a question that was shown as text.

A text that is not clearly an answer gives `None`: it is then an ordinary message of the user. A
doubtful word never confirms anything.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import msgspec

from arp.protocol.catalog import asks
from arp.protocol.components import (
    ChoicesProps,
    Component,
    ConfirmProps,
    Field,
    FormProps,
    Option,
    Scalar,
    TextInputProps,
    label_of,
    value_of,
)
from arp.protocol.json_value import JsonObject

# fmt: off
YES = frozenset((
    "yes", "y", "yeah", "yep", "ok", "okay", "sure", "confirm", "approve", "true", "1",
    "ja", "j", "oui", "si", "sí", "sì", "sim", "tak", "да", "evet",
    "是", "是的", "好", "好的", "确认", "同意", "はい", "네", "예",
))
NO = frozenset((
    "no", "n", "nope", "cancel", "deny", "reject", "false", "0",
    "nein", "nee", "nej", "nie", "non", "não", "nao", "нет", "hayır",
    "不", "不是", "否", "取消", "拒绝", "いいえ", "아니요", "아니오",
))
# fmt: on
"""Short answers in several languages. A word that means yes in one language and no in another is in
neither set."""

DECLINE = "decline"
"""Word and action that decline a question."""

MAX_SHORT = 1_000
"""Longest text that is read as yes, no or a list of choices, in characters."""

MAX_LONG = 100_000
"""Longest text that is read as lines of a form, in characters; a single field accepts more."""

MAX_DIGITS = 6

UNTYPED = ("password", "file")
"""Field types that text cannot answer, because a password would be visible in the conversation."""

_ENDS = " \t\r\n.!)。！）"
_LIST = re.compile(r"[,;，、；\n]")
_WORDS = re.compile(r"[\s,;，、；]+")
_FIELDS = re.compile(r"[;；]")
_COLON = re.compile(r"[:=：＝]")


def understand(component: Component, text: str) -> tuple[str, JsonObject] | None:
    """Parse typed text as the answer to an open question.

    Args:
        component: A component that fits the catalog; the user may have read its `fallback`.
        text: The typed text.

    Returns:
        The input type and its data, to be checked by `check_answer`; `None` if the text is not an
        answer to the question.
    """
    if component.props.get("state") not in (None, "open") or not text.strip():
        return None
    declines = component.props.get("can_decline") is True and len(text) <= MAX_SHORT
    if declines and text.strip(_ENDS).casefold() == DECLINE:
        return "action", {"action": DECLINE}
    reader = _READERS.get(component.type)
    understood = reader(component.props, text) if reader is not None else None
    if understood is None and component.fallback is not None:
        return understand(component.fallback, text)
    return understood


def by_number(options: Sequence[str | Option]) -> bool:
    """Return whether options can be selected by number. They cannot if a label is a number."""
    return not any(label_of(option).strip().isdecimal() for option in options)


def _confirm(props: JsonObject, text: str) -> tuple[str, JsonObject] | None:
    confirm = msgspec.convert(props, ConfirmProps)
    word = text.strip(_ENDS).casefold() if len(text) <= MAX_SHORT else ""
    is_yes = word in YES or word == _folded(confirm.confirm_label)
    is_no = word in NO or word == _folded(confirm.deny_label)
    if is_yes and is_no:  # a label such as "No" on the button for yes
        return None
    if is_yes:
        return "action", {"action": "confirm"}
    return ("action", {"action": "deny"}) if is_no else None


def _choices(props: JsonObject, text: str) -> tuple[str, JsonObject] | None:
    if len(text) > MAX_SHORT:
        return None
    choices = msgspec.convert(props, ChoicesProps)
    taken = [_taken(choices.options, text)]
    if taken == [None] and choices.multi_select:
        parts = [part for part in _LIST.split(text) if part.strip()]
        # Without commas, the answers are separated by spaces, as in `1 3`.
        if len(parts) == 1:
            parts = text.split()
        taken = [_taken(choices.options, part) for part in parts]
    if None in taken or not taken:
        return None
    return "selection", {"selected": taken}


def _taken(options: Sequence[str | Option], text: str) -> Scalar | None:
    """Return the option's value for a label, a number or a value; `#n` for an unknown number n."""
    for option in options:
        if text.strip().casefold() == _folded(label_of(option)):
            return value_of(option)
    word = text.strip(_ENDS)
    # The user sees numbers before the options. A number therefore means a position, even if another
    # option has it as its value.
    if word.isdecimal() and by_number(options):
        number = int(word) if len(word) <= MAX_DIGITS else 0
        return value_of(options[number - 1]) if 0 < number <= len(options) else f"#{word}"
    for option in options:
        if word.casefold() in (_folded(label_of(option)), _folded(str(value_of(option)))):
            return value_of(option)
    return None


def _table(props: JsonObject, text: str) -> tuple[str, JsonObject] | None:
    """Parse row numbers, which users count from 1; `#n` for an unknown row n."""
    if len(text) > MAX_SHORT or not asks("table", props):
        return None
    words = [word for word in _WORDS.split(text.strip(_ENDS)) if word]
    most = MAX_SHORT if props["selectable"] == "many" else 1
    if not 0 < len(words) <= most or not all(word.isdecimal() for word in words):
        return None
    rows = [int(word) if len(word) <= MAX_DIGITS else 0 for word in words]
    known = len(props["rows"])
    return "selection", {
        "selected": [
            row - 1 if 0 < row <= known else f"#{word}"
            for row, word in zip(rows, words, strict=True)
        ]
    }


def _form(props: JsonObject, text: str) -> tuple[str, JsonObject] | None:
    fields = msgspec.convert(props, FormProps).fields
    typed = [field for field in fields if field.field_type not in UNTYPED]
    # A required password or file cannot be typed, so no text can answer this form.
    if not typed or any(field.required for field in fields if field not in typed):
        return None
    given = _given(fields, text) if len(text) <= MAX_LONG else {}
    # The instructions for a form with one field ask for its value alone, without its name.
    if given == {} and len(typed) == 1:
        given = {typed[0].name: text.strip()}
    if not given:
        return None
    # A field that the text does not name keeps the value that the user sees.
    before = {field.name: field.value for field in typed if field.value is not None}
    return "form_submit", {"fields": {**before, **given}}


def _given(fields: Sequence[Field], text: str) -> JsonObject | None:
    """Parse lines of the form `name: value`.

    Returns:
        The values by name. An unknown name is kept if there is a known one too, so that the error
        can name it. `None` if there is other text between the lines, or a field that cannot be
        typed.
    """
    known = {_folded(field.label): field for field in fields if field.label}
    known |= {_folded(field.name): field for field in fields}
    given: dict[str, list[str]] = {}
    strays: JsonObject = {}
    last: Field | None = None
    for line in _lines(text, known):
        name, colon, value = _split(line)
        field = known.get(_folded(name)) if colon else None
        if field is not None:
            if field.field_type in UNTYPED:
                return None
            given[field.name] = [value]
            last = field
        elif last is not None and last.field_type == "textarea":
            given[last.name].append(line)
        elif line.strip():
            strays[name if colon else ""] = value
    if not given:
        return {}
    if "" in strays:
        return None
    return {**strays, **{name: "\n".join(lines) for name, lines in given.items()}}


def _lines(text: str, known: Mapping[str, Field]) -> list[str]:
    """Split a text at line breaks, and at semicolons if every part begins with a known name."""
    lines: list[str] = []
    for line in text.split("\n"):
        parts = _FIELDS.split(line)
        heads = [_split(part) for part in parts]
        fits = all(colon and _folded(name) in known for name, colon, _ in heads)
        lines += parts if fits else [line]
    return lines


def _split(line: str) -> tuple[str, str, str]:
    """Split `name: value` into name, colon and value; the colon is empty if there is none."""
    found = _COLON.search(line)
    if found is None:
        return line, "", ""
    return line[: found.start()].strip(" -*\t"), ":", line[found.end() :].strip()


def _text_input(props: JsonObject, text: str) -> tuple[str, JsonObject] | None:
    question = msgspec.convert(props, TextInputProps)
    return "text", {"text": text if question.multiline else text.strip()}


def _folded(text: str | None) -> str:
    """Return a text for comparison; for no text, a value that no word is equal to."""
    return "\0" if text is None else text.strip().casefold()


_READERS: Mapping[str, Callable[[JsonObject, str], tuple[str, JsonObject] | None]] = {
    "confirm": _confirm,
    "choices": _choices,
    "form": _form,
    "table": _table,
    "text-input": _text_input,
}
