"""The border that answers pass: nothing reaches the agent that does not fit its question.

`check_answer` judges what a renderer sent, `answer_value` gives what the agent's `ask` returns.
Rows of any table can be selected, also where none is asked for, and of a chart or cards that a
renderer shows as a table. Typed text becomes an answer in `typed_answer`, whose `understand` can be
had from here too.
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
from arp.surface.form_fields import Offered, check_fields, said
from arp.surface.question_text import HIDDEN
from arp.surface.typed_answer import DECLINE, understand

__all__ = ["ANSWER", "answer_value", "check_answer", "public_answer", "understand"]

MAX_REASON = 1000
"""Characters of why somebody said no."""

MAX_EDITED_BYTES = 256 << 10
"""Of an input that somebody changed, as JSON: a file of usual size with what is around it. It is a
quarter of the largest message, in which it has to fit."""

MAX_DIGEST = 128
"""Characters; a SHA-256 has 64."""

ANSWER = "answer"
"""The action that answers a custom component; its `payload`, any JSON, is what `ask` returns."""

_CLOSED = {
    "answered": "is already answered",
    "expired": "has expired and takes no more answers",
    "declined": "was declined and takes no more answers",
    "cancelled": "was cancelled and takes no more answers",
}


def check_answer(component: Component, input_type: str, data: JsonObject) -> JsonObject:
    """Return the data of an input in the one form that fits the component which it answers.

    Args:
        component: The question as it stands now. What a renderer showed in its place, its
            `fallback`, may be answered too; a custom component takes any other input.
        input_type: Of the input.
        data: Of the input; plain JSON. Keys that the type does not have are left out.

    Returns:
        `{fields}` with every field by name (and `action` where the form names one), `{action,
        payload?}` of a confirm, `{selected}` without repeats (of a table the numbers of rows),
        `{text}`, `{action, payload: {tab}}` of tabs; `{action: decline}` of a question that lets
        people decline.

    Raises:
        InvalidAnswer: Closed, of the wrong type, or a value that does not fit; the question stays
            as it was. `detail` names the field.

    Source: protocol.md 2.2.
    """
    named = f'{component.type} "{component.id}"'
    if (state := component.props.get("state")) in _CLOSED:
        _refuse(f"{named} {_CLOSED[state]}", component.id)
    if is_decline(component, input_type, data):
        return {"action": DECLINE}
    question = _asked(component, input_type)
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
    """Return whether an input says that somebody does not want to answer, which they may.

    Args:
        component: The question.
        input_type: Of the input.
        data: Of the input; plain JSON.
    """
    may = component.props.get("can_decline") is True and asks(component.type, component.props)
    return may and input_type == "action" and data.get("action") == DECLINE


def as_asked(
    component: Component, input_type: InputType, data: JsonObject
) -> tuple[InputType, JsonObject]:
    """Return an answer in the input type that its component takes.

    The draft answers `choices` by an action too: its name, or what its `payload` holds, is what was
    chosen. Any other answer is given as it is.

    Args:
        component: The question.
        input_type: Of the answer.
        data: Of the answer; plain JSON.
    """
    offered = _offered_to_action(component, input_type)
    if offered is None or is_decline(component, input_type, data):
        return input_type, data
    return "selection", {"selected": _chosen(offered, data)}


def offers_action(component: Component, input_type: InputType, data: JsonObject) -> bool:
    """Return whether an action that names no component chooses what this one offers."""
    offered = _offered_to_action(component, input_type)
    if offered is None:
        return False
    chosen = _chosen(offered, data)
    return chosen != [] and all(offered.find(value) is not None for value in chosen)


def answer_value(component: Component, input_type: str, data: JsonObject) -> Json:
    """Return what `ask` returns for an answer.

    Args:
        component: The question.
        input_type: Of the answer.
        data: As `check_answer` gave it.

    Returns:
        Of a form the fields by name, of a confirm whether it is confirmed, of choices the value, or
        with `multi_select` the values, of a table that asks for one row its number, of any other
        the list of them, of a text input the text; of a custom component the payload of its action
        `answer`; else `data`.
    """
    question = _asked(component, input_type)
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
    """Return an answer as every renderer of the session may see it: passwords are hidden.

    Args:
        component: The question.
        value: As `answer_value` gave it.
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
    """Return whether an answer closes its component: a table that does not ask stays as it is."""
    asked = _asked(component, input_type)
    return asked is None or asked.type != "table" or asks("table", asked.props)


def _asked(component: Component | None, input_type: str) -> Component | None:
    """Return what this type of input answers: the component, or what stood in its place."""
    while component is not None:
        spec = CATALOG.get(component.type)
        if spec is not None and spec.answered_by == input_type:
            return component
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
    more = data.get("payload")
    said_besides = _besides(more, action == "confirm") if isinstance(more, dict) else {}
    return {"action": action, "payload": said_besides} if said_besides else {"action": action}


def _besides(payload: JsonObject, is_yes: bool) -> JsonObject:
    """Return what stands beside a yes or a no: how far a yes goes and for which input; why a no."""
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
    offered = Offered(choices.options)
    taken = [_taken(offered, value, index) for index, value in enumerate(selected)]
    return {"selected": list(dict.fromkeys(taken))}


def _selected(data: JsonObject) -> list[Json]:
    selected = data.get("selected")
    if not isinstance(selected, list):
        _refuse(f"selected: expected array, got {kind_of(selected)}", "selected")
    return selected


def _offered_to_action(component: Component, input_type: InputType) -> Offered | None:
    """Return the options of choices that an action answers; `None` if it is no such answer."""
    takes_actions = component.type not in CATALOG or _asked(component, "action") is not None
    question = _asked(component, "selection")
    if input_type != "action" or takes_actions or question is None or question.type != "choices":
        return None
    return Offered(msgspec.convert(question.props, ChoicesProps).options)


def _chosen(offered: Offered, data: JsonObject) -> list[Json]:
    """Return what an action chooses: an option that it is called, else what its payload holds."""
    action, payload = data.get("action"), data.get("payload")
    if isinstance(payload, dict):
        payload = payload.get("selected", payload.get("value"))
    if payload is None or offered.find(action) is not None:
        return [action]
    return payload if isinstance(payload, list) else [payload]


def _taken(offered: Offered, value: Json, index: int) -> str | int | float:
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
    taken: dict[int, None] = {}
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
    """Return the number of a row, which the draft may send as its text."""
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
"""What shows as a table where it is not known."""

_CHECKS: Mapping[str, Callable[[JsonObject, JsonObject], JsonObject]] = {
    "form": _form,
    "confirm": _confirm,
    "choices": _choices,
    "table": _table,
    "text-input": _text_input,
    "tabs": _tabs,
}
