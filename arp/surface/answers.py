"""Validation of answers: an answer that does not fit its question never reaches the agent.

`check_answer` checks what a renderer sent. `answer_value` returns the result of the agent's `ask`.
Rows can be selected in any table, even if it is not a question, and in a chart or product cards
that a renderer shows as a table. `typed_answer` converts typed text into answers; its `understand`
is exported here too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NoReturn

import msgspec

from arp.protocol.catalog import CATALOG, asks
from arp.protocol.components import (
    ChoicesProps,
    Component,
    FormProps,
    Option,
    TabsProps,
    TextInputProps,
    label_of,
    value_of,
)
from arp.protocol.errors import InvalidAnswer
from arp.protocol.json_value import Json, JsonObject, kind_of
from arp.protocol.messages import InputType
from arp.surface.conversions import cards_as_table, chart_as_table
from arp.surface.form_fields import OfferedOptions, check_fields, said
from arp.surface.question_text import HIDDEN
from arp.surface.typed_answer import DECLINE, understand

__all__ = ["ANSWER", "answer_value", "check_answer", "public_answer", "understand"]

MAX_REASON = 1000
"""Longest reason for a denial, in characters."""

MAX_EDITED_BYTES = 256 << 10
"""Largest edited input as JSON: a file of usual size with some structure around it. This is a
quarter of the largest message, which contains it."""

MAX_DIGEST = 128
"""Longest digest, in characters; a SHA-256 has 64."""

ANSWER = "answer"
"""Action that answers a custom component; `ask` returns its `payload`, any JSON."""

_CLOSED = {
    "answered": "is already answered",
    "expired": "has expired and takes no more answers",
    "declined": "was declined and takes no more answers",
    "cancelled": "was cancelled and takes no more answers",
}


def check_answer(component: Component, input_type: str, data: JsonObject) -> JsonObject:
    """Return the data of an answer in normal form.

    Args:
        component: The question in its current state. An answer to its `fallback` is accepted too;
            a custom component accepts any other input.
        input_type: Type of the input.
        data: Data of the input, plain JSON. Keys that the type does not have are left out.

    Returns:
        A form: `{fields}` with all fields by name, and `action` if the form has one. A confirm:
        `{action, payload?}`. Choices and tables: `{selected}` without duplicates; row numbers for a
        table. A text input: `{text}`. Tabs: `{action, payload: {tab}}`. A declined question:
        `{action: decline}`.

    Raises:
        InvalidAnswer: The question is closed, the input has the wrong type, or a value does not
            fit; the question is unchanged. `detail` names the field.

    Source: protocol.md 2.2.
    """
    named = f'{component.type} "{component.id}"'
    if (state := component.props.get("state")) in _CLOSED:
        _refuse(f"{named} {_CLOSED[state]}", component.id)
    if is_decline(component, input_type, data):
        return {"action": DECLINE}
    question = _answered_form(component, input_type)
    if question is not None:
        return _CHECKS[question.type](question.props, data)
    spec = CATALOG.get(component.type)
    if spec is None:
        return data
    if spec.answered_by is None:
        _refuse(f"{named} takes no input", component.id)
    wrong = f"{named} is answered by {spec.answered_by}, not {input_type:.40}"
    raise InvalidAnswer(wrong, detail=component.id)


def is_decline(component: Component, input_type: str, data: JsonObject) -> bool:
    """Return whether an input declines a question that can be declined.

    Args:
        component: The question.
        input_type: Type of the input.
        data: Data of the input, plain JSON.
    """
    may = component.props.get("can_decline") is True and asks(component.type, component.props)
    return may and input_type == "action" and data.get("action") == DECLINE


def as_asked(
    component: Component, input_type: InputType, data: JsonObject
) -> tuple[InputType, JsonObject]:
    """Return an answer with the input type that its component expects.

    In the draft, an action may answer `choices`: the name of the action, or its `payload`, is the
    selected value. All other answers are returned unchanged.

    Args:
        component: The question.
        input_type: Type of the answer.
        data: Data of the answer, plain JSON.
    """
    offered = _offered_to_action(component, input_type)
    if offered is None or is_decline(component, input_type, data):
        return input_type, data
    return "selection", {"selected": _chosen(offered, data)}


def offers_action(component: Component, input_type: InputType, data: JsonObject) -> bool:
    """Return whether an action without a component selects options of this component."""
    offered = _offered_to_action(component, input_type)
    if offered is None:
        return False
    chosen = _chosen(offered, data)
    return chosen != [] and all(offered.find(value) is not None for value in chosen)


def answer_value(component: Component, input_type: str, data: JsonObject) -> Json:
    """Return the value that `ask` returns for an answer.

    Args:
        component: The question.
        input_type: Type of the answer.
        data: Result of `check_answer`.

    Returns:
        A form: the fields by name. A confirm: whether it was confirmed. Choices: the value, or the
        list of values with `multi_select`. A table: the row number if it asks for one row, else the
        list of row numbers. A text input: the text. A custom component: the payload of its action
        `answer`. Anything else: `data`.
    """
    question = _answered_form(component, input_type)
    if question is None and data.get("action") == ANSWER and "payload" in data:
        return data["payload"]
    match question.type if question is not None else "":
        case "form":
            return data["fields"]
        case "confirm":
            return data["action"] == "confirm"
        case "choices" if question is not None:
            several = question.props.get("multi_select")
            return data["selected"] if several else data["selected"][0]
        case "table" if question is not None:
            is_one = question.props.get("selectable") == "one"
            return data["selected"][0] if is_one else data["selected"]
        case "text-input":
            return data["text"]
        case _:
            return data


def public_answer(component: Component, value: Json) -> Json:
    """Return an answer for all renderers of the session, with hidden passwords.

    Args:
        component: The question.
        value: Result of `answer_value`.
    """
    if component.type != "form":
        return value
    secret = {
        field["name"]
        for field in component.props["fields"]
        if field.get("field_type") == "password"
    }
    return {
        name: HIDDEN if name in secret and given is not None else given
        for name, given in value.items()
    }


def closes(component: Component, input_type: str) -> bool:
    """Return whether an answer closes its component; a table that is not a question stays open."""
    question = _answered_form(component, input_type)
    return question is None or question.type != "table" or asks("table", question.props)


def _answered_form(component: Component | None, input_type: str) -> Component | None:
    """Return the form of a component that an input type answers.

    This is the component, one of its fallbacks, or a chart or product cards as a table.
    """
    while component is not None:
        spec = CATALOG.get(component.type)
        if spec is not None and spec.answered_by == input_type:
            return component
        # A renderer shows a `fallback` rather than a table, so rows need a component without one.
        as_table = _TABLES.get(component.type) if component.fallback is None else None
        if input_type == "selection" and as_table is not None:
            return msgspec.structs.replace(component, type="table", props=as_table(component.props))
        component = component.fallback
    return None


def _form(props: JsonObject, data: JsonObject) -> JsonObject:
    form = msgspec.convert(props, FormProps)
    fields, action = data.get("fields"), data.get("action")
    if not isinstance(fields, dict):
        _refuse(f"fields: expected object, got {kind_of(fields)}", "fields")
    if "action" in fields and all(field.name != "action" for field in form.fields):
        action = fields["action"]  # the draft has it among the fields
        fields = {name: value for name, value in fields.items() if name != "action"}
    if action is not None and action != (form.submit_action or "submit"):
        _refuse(f"action: the form does not offer {said(action)}", "action")
    checked: JsonObject = {"fields": check_fields(form.fields, fields)}
    return {"action": form.submit_action, **checked} if form.submit_action else checked


def _confirm(props: JsonObject, data: JsonObject) -> JsonObject:
    action = data.get("action")
    if action not in ("confirm", "deny"):
        _refuse(f"action: expected confirm or deny, got {said(action)}", "action")
    payload = data.get("payload")
    details = _confirm_details(payload, action == "confirm") if isinstance(payload, dict) else {}
    return {"action": action, "payload": details} if details else {"action": action}


def _confirm_details(payload: JsonObject, is_yes: bool) -> JsonObject:
    """Return the checked payload of a confirm: scope, reason, digest and edited input."""
    scope, reason = payload.get("scope"), payload.get("reason")
    if scope is not None and scope not in ("once", "session"):
        _refuse(f"payload.scope: expected once or session, got {said(scope)}", "payload.scope")
    out: JsonObject = {"scope": scope} if scope is not None else {}
    if isinstance(reason, str) and reason.strip():
        out["reason"] = reason.strip()[:MAX_REASON]
    if (digest := payload.get("digest")) is not None:
        if not isinstance(digest, str) or len(digest) > MAX_DIGEST:
            _refuse("payload.digest: expected the digest of the question", "payload.digest")
        out["digest"] = digest
    if (edited := payload.get("updated_input")) is not None:
        out["updated_input"] = _edited(edited, is_yes)
    return out


def _edited(edited: Json, is_yes: bool) -> JsonObject:
    where = "payload.updated_input"
    if not is_yes:
        _refuse(f"{where}: only with confirm", where)
    if not isinstance(edited, dict):
        _refuse(f"{where}: expected object, got {kind_of(edited)}", where)
    size = len(msgspec.json.encode(edited))
    if size > MAX_EDITED_BYTES:
        _refuse(f"{where}: {size} bytes as JSON; at most {MAX_EDITED_BYTES}", where)
    return edited


def _choices(props: JsonObject, data: JsonObject) -> JsonObject:
    choices = msgspec.convert(props, ChoicesProps)
    selected = _selected(data)
    most = len(choices.options) if choices.multi_select else 1
    if len(selected) > most:
        _refuse(f"selected: at most {most} can be taken, got {len(selected)}", "selected")
    if not selected and not choices.multi_select:
        _refuse("selected: choose one", "selected")
    offered = OfferedOptions(choices.options)
    values = [_offered_value(offered, value, index) for index, value in enumerate(selected)]
    return {"selected": list(dict.fromkeys(values))}


def _selected(data: JsonObject) -> list[Json]:
    selected = data.get("selected")
    if not isinstance(selected, list):
        _refuse(f"selected: expected array, got {kind_of(selected)}", "selected")
    return selected


def _offered_to_action(component: Component, input_type: InputType) -> OfferedOptions | None:
    """Return the options of choices that an action may answer; `None` if it is no such answer."""
    takes_actions = component.type not in CATALOG or _answered_form(component, "action") is not None
    question = _answered_form(component, "selection")
    if input_type != "action" or takes_actions or question is None or question.type != "choices":
        return None
    return OfferedOptions(msgspec.convert(question.props, ChoicesProps).options)


def _chosen(offered: OfferedOptions, data: JsonObject) -> list[Json]:
    """Return the values that an action selects: the option with its name, or its payload."""
    action, payload = data.get("action"), data.get("payload")
    if isinstance(payload, dict):
        payload = payload.get("selected", payload.get("value"))
    if payload is None or offered.find(action) is not None:
        return [action]
    return payload if isinstance(payload, list) else [payload]


def _offered_value(offered: OfferedOptions, value: Json, index: int) -> str | int | float:
    option = offered.find(value)
    if option is None:
        _refuse(f"selected[{index}]: {said(value)} is not offered", f"selected[{index}]")
    if isinstance(option, Option) and option.disabled:
        _refuse(f'selected[{index}]: "{label_of(option)}" is not available', f"selected[{index}]")
    return value_of(option)


def _table(props: JsonObject, data: JsonObject) -> JsonObject:
    selected, rows = _selected(data), len(props["rows"])
    if props.get("selectable") == "one" and len(selected) != 1:
        _refuse(f"selected: select one row, got {len(selected)}", "selected")
    taken: dict[int, None] = {}  # keeps the order
    for index, value in enumerate(selected):
        row = _row(value)
        if row is None or not 0 <= row < rows:
            shown = value if type(value) is int else said(value)
            _refuse(
                f"selected[{index}]: {shown} is no row; there are {rows}, counted from 0",
                f"selected[{index}]",
            )
        if row in taken:
            _refuse(f"selected[{index}]: row {row} is selected twice", f"selected[{index}]")
        taken[row] = None
    return {"selected": list(taken)}


def _row(value: Json) -> int | None:
    """Return a row number; the draft may send it as text."""
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 10:
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if type(value) is int else None


def _text_input(props: JsonObject, data: JsonObject) -> JsonObject:
    question = msgspec.convert(props, TextInputProps)
    text = data.get("text")
    if not isinstance(text, str):
        _refuse(f"text: expected string, got {kind_of(text)}", "text")
    if question.max_length is not None and len(text) > question.max_length:
        _refuse(f"text: at most {question.max_length} characters, got {len(text)}", "text")
    if not question.multiline and "\n" in text:
        _refuse("text: expected one line", "text")
    return {"text": text}


def _tabs(props: JsonObject, data: JsonObject) -> JsonObject:
    tabs = msgspec.convert(props, TabsProps)
    action, payload = data.get("action"), data.get("payload", {})
    if action != "tab_change":
        _refuse(f"action: expected tab_change, got {said(action)}", "action")
    given = {**data, **payload} if isinstance(payload, dict) else data
    number = given.get("tab", given.get("tab_index", given.get("active_tab")))
    if type(number) is not int or not 0 <= number < len(tabs.tabs):
        _refuse(f"payload.tab: expected the number of a tab, below {len(tabs.tabs)}", "payload.tab")
    return {"action": action, "payload": {"tab": number}}


def _refuse(message: str, detail: str) -> NoReturn:
    raise InvalidAnswer(message, detail=detail)


_TABLES: Mapping[str, Callable[[JsonObject], JsonObject]] = {
    "chart": chart_as_table,
    "product-cards": cards_as_table,
}
"""Types that are shown as a table by renderers that do not know them."""

_CHECKS: Mapping[str, Callable[[JsonObject, JsonObject], JsonObject]] = {
    "form": _form,
    "confirm": _confirm,
    "choices": _choices,
    "table": _table,
    "text-input": _text_input,
    "tabs": _tabs,
}
