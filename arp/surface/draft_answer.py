"""Answers in the text format of a client that only knows the draft.

The components of such a client have buttons and fields, but it sends text: `[Confirmed] LABEL` or
`[Denied] LABEL` for a confirm, the label for a choice, and `[Form: ACTION] {…}` or only the fields
as JSON for a form. A component that the draft does not have is answered by typed text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from arp.protocol.catalog import CATALOG
from arp.protocol.components import (
    ChoicesProps,
    Component,
    ConfirmProps,
    FormProps,
    label_of,
    value_of,
)
from arp.protocol.json_value import Json, JsonObject
from arp.surface.typed_answer import MAX_LONG, understand

CONFIRM_LABELS = ("Confirm",)
"""Default label of the button that confirms, in the draft."""

DENY_LABELS = ("Deny", "Cancel")
"""Default labels of the button that denies: Deny in the draft's clients, Cancel in its text."""


def understand_draft(component: Component, text: str) -> tuple[str, JsonObject] | None:
    """Parse a text of a client without `hello` as the answer to an open question.

    Args:
        component: A component that fits the catalog. The draft shows a custom component as its
            `fallback`.
        text: The received text.

    Returns:
        The input type and its data, to be checked by `check_answer`; `None` if the text is not an
        answer to this question, for example the button label of another question.
    """
    if component.props.get("state") not in (None, "open"):
        return None
    reader = _READERS.get(component.type)
    if reader is not None:
        return reader(component.props, text.strip())
    if component.type not in CATALOG and component.fallback is not None:
        return understand_draft(component.fallback, text)
    return understand(component, text)


def _confirm(props: JsonObject, text: str) -> tuple[str, JsonObject] | None:
    confirm = msgspec.convert(props, ConfirmProps)
    # Only the label of a button counts. Any "yes" would approve questions that were not read.
    if text in _pressed("Confirmed", confirm.confirm_label, CONFIRM_LABELS):
        return "action", {"action": "confirm"}
    if text in _pressed("Denied", confirm.deny_label, DENY_LABELS):
        return "action", {"action": "deny"}
    return None


def _pressed(tag: str, label: str | None, default: tuple[str, ...]) -> list[str]:
    """Return the texts that a button with a label may send."""
    return [f"[{tag}] {one}".strip() for one in (default if label is None else (label,))]


def _choices(props: JsonObject, text: str) -> tuple[str, JsonObject] | None:
    for option in msgspec.convert(props, ChoicesProps).options:
        if label_of(option).strip() == text:
            return "selection", {"selected": [value_of(option)]}
    return None


def _form(props: JsonObject, text: str) -> tuple[str, JsonObject] | None:
    form = msgspec.convert(props, FormProps)
    tag = f"[Form: {form.submit_action}]"
    if form.submit_action is not None and text.startswith(tag):
        fields = _object(text.removeprefix(tag))
        return None if fields is None else ("form_submit", {"fields": fields})
    fields = _object(text) or {}
    is_of_this_form = any(field.name in fields for field in form.fields)
    return ("form_submit", {"fields": fields}) if is_of_this_form else None


def _object(text: str) -> JsonObject | None:
    """Return a text parsed as a JSON object; `None` if it is not one."""
    if len(text) > MAX_LONG or not text.lstrip().startswith("{"):
        return None
    try:
        value: Json = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None
    assert isinstance(value, dict)  # the text begins with a brace
    return value


_READERS: Mapping[str, Callable[[JsonObject, str], tuple[str, JsonObject] | None]] = {
    "confirm": _confirm,
    "choices": _choices,
    "form": _form,
}
