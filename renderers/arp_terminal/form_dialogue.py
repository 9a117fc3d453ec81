"""A form, asked field by field."""

from __future__ import annotations

from arp.protocol.json_value import Json, JsonObject
from arp_terminal.prompts import FormReply, Problem, Prompt, Reply
from arp_terminal.props import items, line, objects
from arp_terminal.questions import field_label, option_of

BACK = "/back"
"""Typed in place of a value, goes to the field before."""

YES_WORDS = {"y": True, "yes": True, "n": False, "no": False}

HINTS = {
    "number": "a number",
    "date": "YYYY-MM-DD",
    "email": "an e-mail address",
    "checkbox": "y or n",
    "password": "not shown while you type; sent to the agent",
    "file": "files cannot be given here; leave it empty",
}


class FormDialogue:
    """One field after the other; an empty line takes the value that stands there."""

    def __init__(self, props: JsonObject) -> None:
        self._fields = [
            field for field in objects(props.get("fields")) if isinstance(field.get("name"), str)
        ]
        self._title = line(props.get("title"))
        action = props.get("submit_action")
        self._action = action if isinstance(action, str) else None
        self._values: JsonObject = {
            str(field["name"]): field["value"]
            for field in self._fields
            if field.get("value") is not None
        }
        self._place = 0

    @property
    def prompt(self) -> Prompt:
        """Asks for the field whose turn it is."""
        if not self._fields:
            return Prompt(f"{self._title or 'Form'}: press Enter to send")
        field = self._fields[self._place]
        kind = line(field.get("field_type"), "text")
        known = self._values.get(str(field["name"]))
        label = field_label(field) + (" *" if field.get("required") is True else "")
        if known is not None:
            label += f" [{'••••••' if kind == 'password' else self._shown(field, known)}]"
        place = f"{self._place + 1} of {len(self._fields)}"
        hint = ", ".join(part for part in (place, self._hint(field, kind)) if part)
        return Prompt(label, hint, secret=kind == "password", multiline=kind == "textarea")

    def take(self, typed: str) -> Reply | Problem | None:
        """Take a field; the last one completes the form."""
        if not self._fields:
            return FormReply({}, self._action)
        if typed.strip() == BACK:
            self._place = max(0, self._place - 1)
            return None
        problem = self._take_field(self._fields[self._place], typed)
        if problem is not None:
            return problem
        self._place += 1
        if self._place < len(self._fields):
            return None
        self._place = 0
        return FormReply(dict(self._values), self._action)

    def refused(self, message: str, detail: str | None) -> Problem:
        """Go back to the field that `detail` names as `fields.NAME`; other answers are kept."""
        name = (detail or "").removeprefix("fields.")
        self._place = next(
            (place for place, field in enumerate(self._fields) if field["name"] == name), 0
        )
        self._values.pop(name, None)
        return Problem(message.removeprefix(f"{detail}: "))

    def _take_field(self, field: JsonObject, typed: str) -> Problem | None:
        name, kind = str(field["name"]), line(field.get("field_type"), "text")
        text = typed if kind in ("password", "textarea") else typed.strip()
        if not text:
            if field.get("required") is True and self._values.get(name) is None:
                return Problem("needed")
            return None
        value = self._parsed(field, kind, text)
        if isinstance(value, Problem):
            return value
        self._values[name] = value
        return None

    def _parsed(self, field: JsonObject, kind: str, text: str) -> Json:
        """Return what the text means; what it cannot tell is left to the server."""
        if kind == "checkbox":
            return YES_WORDS.get(text.casefold(), Problem("type y or n"))
        if kind == "file":
            return Problem(HINTS["file"])
        if kind == "select":
            options = [option_of(option) for option in items(field.get("options"))]
            if text.isdecimal() and len(text) < 6 and 1 <= int(text) <= len(options):
                return options[int(text) - 1]["value"]
            word = text.casefold()
            found = [one["value"] for one in options if line(one["label"]).casefold() == word]
            return found[0] if found else Problem(f"type a number from 1 to {len(options)}")
        return text

    @staticmethod
    def _hint(field: JsonObject, kind: str) -> str:
        if kind == "select":
            names = [line(option_of(option)["label"]) for option in items(field.get("options"))]
            return "  ".join(f"{place}. {name}" for place, name in enumerate(names, 1))
        return line(field.get("placeholder")) or HINTS.get(kind, "")

    @staticmethod
    def _shown(field: JsonObject, value: Json) -> str:
        if isinstance(value, bool):
            return "y" if value else "n"
        options = [option_of(option) for option in items(field.get("options"))]
        return next((line(one["label"]) for one in options if one["value"] == value), line(value))
