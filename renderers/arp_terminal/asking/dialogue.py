"""Dialogues: from a question and the typed lines to an answer, without input or output.

Theory of operation. A dialogue shows a `Prompt` and receives a line. The line results in a `Reply`,
in a `Problem`, or in nothing if the next prompt follows. The server checks each answer. If it
refuses one, `refused` returns the dialogue to the place of the mistake.
"""

from __future__ import annotations

import json
import re
from typing import Protocol

from arp.protocol.catalog import asks
from arp.protocol.components import Component
from arp.protocol.json_value import Json, JsonObject
from arp.protocol.messages import Permission
from arp_terminal.drawing.permission import REASON_HINT, permission_options
from arp_terminal.drawing.props import items, line, number, objects
from arp_terminal.drawing.questions import confirm_options, field_label, option_of
from arp_terminal.prompt import (
    ActionReply,
    FormReply,
    Problem,
    Prompt,
    Reply,
    SelectionReply,
    TextReply,
)


class Dialogue(Protocol):
    """The dialogue of one question."""

    @property
    def prompt(self) -> Prompt:
        """The prompt for the next line."""
        ...

    def enter(self, typed: str) -> Reply | Problem | None:
        """Return the answer that a typed line gives, a problem, or `None` for the next prompt."""
        ...

    def refused(self, message: str, detail: str | None) -> Problem:
        """Go back to the part that the server refused; return the problem."""
        ...


def dialogue_for(component: Component, *, offered: bool) -> Dialogue | None:
    """Return the dialogue of an input component, `None` for other types.

    Args:
        component: The question.
        offered: Whether the agent continues without an answer; other text is then a new input.
    """
    match component.type:
        case "confirm":
            return ConfirmDialogue(component.props, offered=offered)
        case "choices":
            return ChoicesDialogue(component.props, offered=offered)
        case "form":
            return FormDialogue(component.props)
        case "table" if asks("table", component.props):
            return RowsDialogue(component.props, offered=offered)
        case "text-input":
            return TextDialogue(component.props)
    return None


class ConfirmDialogue:
    """Yes or no, typed in full: neither an empty line nor any other text is an answer."""

    def __init__(self, props: JsonObject, *, offered: bool) -> None:
        self._offered = offered
        self.prompt = Prompt(
            line(props.get("title")),
            "or say something else" if offered else "",
            confirm_options(props),
            answers_by_key=not offered,
        )

    def enter(self, typed: str) -> Reply | Problem | None:
        """Accept `y`, `yes`, `n`, `no`, or the label of a button."""
        option = self.prompt.option(typed)
        if option is not None:
            return option.reply
        if self._offered and typed.strip():
            return TextReply(typed, answers=False)
        return Problem(self.prompt.error)

    def refused(self, message: str, detail: str | None) -> Problem:
        """Ask again."""
        return Problem(message)


class PermissionDialogue:
    """Permission for a tool call: yes once or for the session, no with a reason, or an edit.

    The answer has the digest of the input that was shown, so it counts for that input only.
    """

    def __init__(self, props: JsonObject, permission: Permission, shown: str) -> None:
        """Begin with the question.

        Args:
            props: Props of the `confirm` component that asks.
            permission: The permission, as it is on the screen.
            shown: The input to be approved, as JSON.
        """
        self._permission = permission
        self._shown = shown
        self._edited: str | None = None
        """Text of the input that is being edited; `None` while nothing is edited."""
        notes = [REASON_HINT]
        if permission.expires_at:
            notes.append(f"until {line(permission.expires_at)[:19]}Z")
        self._question = Prompt(
            line(props.get("title")),
            ", ".join(notes),
            permission_options(props, permission),
            answers_by_key=True,
        )

    @property
    def prompt(self) -> Prompt:
        """The question, or the prompt for the edited input."""
        if self._edited is None:
            return self._question
        note = f"a JSON object; {BACK} = as it was: {line(self._shown)}"
        return Prompt("Arguments", note, multiline=True, initial=self._edited)

    def enter(self, typed: str) -> Reply | Problem | None:
        """Accept a key of an option or its word; while the input is edited, a JSON object."""
        if self._edited is not None:
            return self._parse_input(typed)
        word, _, rest = typed.strip().partition(" ")
        option = self._question.option(word)
        # Only a no has more words after it, its reason. "yes, but …" must not allow anything.
        if option is None or (rest and not option.is_denial):
            return Problem(f"{self._question.error}; {REASON_HINT}")
        if option.reply is None:
            self._edited = self._laid_out()
            return None
        reason = {"reason": rest.strip()} if option.is_denial else {}
        return self._reply(option.reply, **reason)

    def refused(self, message: str, detail: str | None) -> Problem:
        """Ask again."""
        return Problem(message)

    def _parse_input(self, typed: str) -> Reply | Problem | None:
        if typed.strip() in ("", BACK):
            self._edited = None
            return None
        try:
            edited = json.loads(typed, object_pairs_hook=_once, parse_constant=_no_number)
        except (ValueError, RecursionError) as error:
            self._edited = typed
            return Problem(f"no JSON: {error}")
        if not isinstance(edited, dict):
            self._edited = typed
            return Problem("expected an object: {…}")
        self._edited = None
        return self._reply(ActionReply("confirm", {"scope": "once"}), updated_input=edited)

    def _laid_out(self) -> str:
        """Return the input as JSON in ASCII, so that no invisible character can deceive."""
        try:
            return json.dumps(json.loads(self._shown), indent=2)
        except (ValueError, RecursionError):
            return line(self._shown)

    def _reply(self, reply: ActionReply, **more: Json) -> ActionReply:
        """Return the reply with the digest, which binds it to the input that was shown."""
        digest = self._permission.digest
        bound: JsonObject = {} if digest is None else {"digest": digest}
        return ActionReply(reply.action, {**(reply.payload or {}), **more, **bound})


def _once(pairs: list[tuple[str, Json]]) -> JsonObject:
    """Return an object; raise `ValueError` if a name occurs twice.

    Programs disagree which of two equal names counts, so the user and the tool could read the same
    input differently.
    """
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a name is there twice")
    return made


def _no_number(text: str) -> Json:
    raise ValueError(f"{text} is no number")


class ChoicesDialogue:
    """A choice of one or several numbered options."""

    def __init__(self, props: JsonObject, *, offered: bool) -> None:
        self._props = props
        self._offered = offered
        self._options = [option_of(value) for value in items(props.get("options"))]
        self._several = bool(props.get("multi_select"))

    @property
    def prompt(self) -> Prompt:
        """The prompt for numbers."""
        count = len(self._options)
        numbers = "1" if count == 1 else f"1–{count}"
        hint = (
            f"numbers from {numbers}, such as 1,{min(2, count)}"
            if self._several
            else f"a number, {numbers}"
        )
        hint += ", or say something else" if self._offered else ""
        title = line(self._props.get("title")) or "Choose"
        return Prompt(f"{title} [{numbers}]", hint, offered=self._offered)

    def enter(self, typed: str) -> Reply | Problem | None:
        """Accept numbers, or the label of an option."""
        words = [word for word in re.split(r"[,\s]+", typed.strip()) if word]
        named = self._named(typed)
        if words and all(word.isdecimal() and len(word) < 6 for word in words):
            places = [int(word) for word in words]
            if all(1 <= place <= len(self._options) for place in places):
                return self._picked([self._options[place - 1] for place in places])
            if named is not None:
                return self._picked([named])
            return Problem(
                f"there is no {max(places)}; type a number from 1 to {len(self._options)}"
            )
        if named is not None:
            return self._picked([named])
        if self._offered and words:
            return TextReply(typed, answers=False)
        return Problem(f"type a number from 1 to {len(self._options)}")

    def refused(self, message: str, detail: str | None) -> Problem:
        """Ask again."""
        return Problem(message)

    def _named(self, typed: str) -> JsonObject | None:
        word = typed.strip().casefold()
        return next(
            (one for one in self._options if word and line(one["label"]).casefold() == word), None
        )

    def _picked(self, options: list[JsonObject]) -> Reply | Problem:
        if len(options) > 1 and not self._several:
            return Problem("choose one")
        for option in options:
            if option.get("disabled"):
                return Problem(f"{line(option['label'])} is not available")
        return SelectionReply([option["value"] for option in options])


class RowsDialogue:
    """A choice of one or several rows of a table, by their numbers."""

    def __init__(self, props: JsonObject, *, offered: bool) -> None:
        self._offered = offered
        self._title = line(props.get("title")) or "Select"
        self._count = len(items(props.get("rows")))
        self._several = props.get("selectable") == "many"

    @property
    def prompt(self) -> Prompt:
        """The prompt for numbers, or for the word `none`."""
        numbers = f"1–{self._count}" if self._count > 1 else str(self._count)
        hint = f"the number of a row, {numbers}"
        if self._several:
            hint = f"numbers of rows from {numbers}, such as 1,{min(2, self._count)}, or none"
        hint += ", or say something else" if self._offered else ""
        return Prompt(f"{self._title} [{numbers}]", hint, offered=self._offered)

    def enter(self, typed: str) -> Reply | Problem | None:
        """Accept numbers from 1; the answer counts from 0."""
        words = [word for word in re.split(r"[,\s]+", typed.strip()) if word]
        if self._several and typed.strip().casefold() == "none":
            return SelectionReply([])
        if words and all(word.isdecimal() and len(word) < 10 for word in words):
            places = list(dict.fromkeys(int(word) for word in words))
            wrong = next((place for place in places if not 1 <= place <= self._count), None)
            if wrong is not None:
                return Problem(f"there is no row {wrong}; {self._wanted()}")
            if len(places) > 1 and not self._several:
                return Problem("select one row")
            return SelectionReply([place - 1 for place in places])
        if self._offered and words:
            return TextReply(typed, answers=False)
        return Problem(self._wanted())

    def refused(self, message: str, detail: str | None) -> Problem:
        """Ask again."""
        return Problem(message)

    def _wanted(self) -> str:
        return f"type a number from 1 to {self._count}"


class TextDialogue:
    """A line of text, or several."""

    def __init__(self, props: JsonObject) -> None:
        self._props = props

    @property
    def prompt(self) -> Prompt:
        """The prompt for a text."""
        multiline = bool(self._props.get("multiline"))
        hint = line(self._props.get("placeholder"))
        return Prompt(line(self._props.get("label")) or "Answer", hint, multiline=multiline)

    def enter(self, typed: str) -> Reply | Problem | None:
        """Accept any text that is not too long."""
        most = number(self._props.get("max_length"))
        if not typed.strip():
            return Problem("type an answer")
        if most is not None and len(typed) > most:
            return Problem(f"at most {most} characters; this has {len(typed)}")
        return TextReply(typed)

    def refused(self, message: str, detail: str | None) -> Problem:
        """Ask again."""
        return Problem(message)


BACK = "/back"
"""Line that goes back to the previous field, or ends the edit of an input."""

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
    """A form, one field after the other; an empty line accepts the current value of a field."""

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
        """The prompt for the current field."""
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

    def enter(self, typed: str) -> Reply | Problem | None:
        """Accept the value of the current field; the last field completes the form."""
        if not self._fields:
            return FormReply({}, self._action)
        if typed.strip() == BACK:
            self._place = max(0, self._place - 1)
            return None
        problem = self._set_field(self._fields[self._place], typed)
        if problem is not None:
            return problem
        self._place += 1
        if self._place < len(self._fields):
            return None
        self._place = 0
        return FormReply(dict(self._values), self._action)

    def refused(self, message: str, detail: str | None) -> Problem:
        """Go back to the field that `detail` names as `fields.NAME`; other values stay."""
        name = (detail or "").removeprefix("fields.")
        self._place = next(
            (place for place, field in enumerate(self._fields) if field["name"] == name), 0
        )
        self._values.pop(name, None)
        return Problem(message.removeprefix(f"{detail}: "))

    def _set_field(self, field: JsonObject, typed: str) -> Problem | None:
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
        """Return the value that a text means; the server checks the rest."""
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
