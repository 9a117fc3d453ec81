"""Questions of an agent to its user, as components: choices, texts and forms.

The input of a request is a question if it has one of these shapes:

- `questions`: a list (Claude Code's `AskUserQuestion`, Codex's `request_user_input`). The user
  chooses one or several options of each question, or writes an answer. Each question becomes a
  component of its own. In a single form, the user could only decline all questions together, and
  each question would need an additional field for an answer in the user's own words.
- `schema`: a JSON Schema, the form of an MCP server. It becomes one component that can be declined.
  A schema without properties is a yes-or-no question.
- `component` or `question`: one question of an agent of a framework. `component` is a component of
  ARP. A `question` has `options` or a `schema`; if it has neither, the user writes a text. The id
  of the component identifies the question, so that an answer after a restart can be matched to it.

An input of any other shape is asked as a permission.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import NamedTuple, Protocol

import msgspec

from arp.protocol.components import Component
from arp.protocol.json_value import Json, JsonObject
from arp.surface.schema_form import NoForm, SchemaForm, form_of_schema
from arp.surface.schema_slot import distinct
from arp.turn.foreign_names import shortened
from arp.turn.question_outcome import DECLINED, Declined

OTHER = "Something else…"
"""Option for an answer in the user's own words."""
DECLINE = "Do not answer"
MAX_QUESTIONS = 20
"""Questions in one request. A request with more is asked as a permission, which shows them all."""
MAX_TITLE = 2_000
"""Largest length of a question, in characters."""

Check = Callable[[Json], object]
"""Additional validation of an answer that fits the component; raises `InvalidAnswer`."""


class UserQuestion(NamedTuple):
    """A question with options, or with a text as its answer."""

    key: str
    """Key of the answer: the id of the question, or its text if it has no id."""
    text: str
    options: tuple[tuple[str, str], ...]
    """Labels and descriptions of the options; empty if the answer is a text."""
    several: bool
    is_secret: bool
    """Whether the answer must not be visible."""


def is_user_question(tool_input: JsonObject) -> bool:
    """Return whether an input has one of the two shapes of a question."""
    return bool(questions_of(tool_input)) or _is_asked_by_form(form_of(tool_input.get("schema")))


class Questioner(Protocol):
    """Something that can ask the user: a turn, or a tool that runs in a turn."""

    async def ask(self, component: Component, *, check: Check | None = None) -> Json | Declined:
        """Show an input component and return its answer, or `DECLINED`."""


async def ask_user(turn: Questioner, tool_input: JsonObject) -> JsonObject | None:
    """Ask the user the questions of an agent; return the input with the answers.

    Args:
        turn: Turn that shows the questions.
        tool_input: Input of the runtime's request; `is_user_question` holds for it.

    Returns:
        The value of `updated_input`: the input with `answers`, or the content of the form. `None`
        if the user does not answer.

    Cancel: Safe; an open question is withdrawn.
    """
    questions = questions_of(tool_input)
    if not questions:
        return await _ask_form(turn, tool_input)
    answers: JsonObject = {}
    for question in questions:
        answer = await _ask_question(turn, question)
        if answer is None:
            return None
        answers[question.key] = answer
    return {**tool_input, "answers": answers}


async def _ask_question(turn: Questioner, question: UserQuestion) -> Json:
    """Return a text, a list of texts for a multiple choice, or `None` without an answer."""
    labels = [label for label, _ in question.options]
    if not labels:
        words = await _ask_own_words(turn, question)
        return [words] if question.several and words is not None else words
    options: list[Json] = [
        {"label": label, "description": description} if description else label
        for label, description in question.options
    ]
    is_described = any(description for _, description in question.options)
    props: JsonObject = {
        "title": question.text,
        "options": [*options, OTHER, DECLINE],
        "style": "list" if is_described else "buttons",
        "multi_select": question.several,
    }
    chosen = await turn.ask(Component("", "choices", props))
    taken = chosen if isinstance(chosen, list) else [chosen]
    if DECLINE in taken:
        return None
    answer = [str(label) for label in taken if label in labels]
    if len(answer) < len(taken):  # `OTHER` was chosen
        words = await _ask_own_words(turn, question)
        if words is None:
            return None
        answer.append(words)
    return answer if question.several else answer[0]


async def _ask_own_words(turn: Questioner, question: UserQuestion) -> str | None:
    """Return a text that the user writes; `None` if they decline."""
    asked = Component("", "text-input", {"label": question.text, "can_decline": True})
    if question.is_secret:  # only a form has a field that hides its text
        field: JsonObject = {"name": "answer", "label": question.text, "field_type": "password"}
        props: JsonObject = {"fields": [{**field, "required": True}], "can_decline": True}
        asked = Component("", "form", props)
    given: Json | Declined = await turn.ask(asked)
    if given is DECLINED:
        return None
    return str(given["answer"] if isinstance(given, dict) else given)


async def _ask_form(turn: Questioner, tool_input: JsonObject) -> JsonObject | None:
    form = form_of(tool_input.get("schema"))
    assert form is not None
    title = shortened(str(tool_input.get("message") or ""), MAX_TITLE)
    asked = _form_component(form, title)
    given = await turn.ask(asked, check=None if asked.type == "confirm" else form.read)
    content = _content(form, given)
    return content if isinstance(content, dict) else None


def _form_component(form: SchemaForm, title: str, id: str = "") -> Component:
    """Return the component for a form; the user can decline it.

    A form without fields becomes a yes-or-no question.
    """
    if not form.fields:
        return Component(id, "confirm", {"title": title})
    asked = form.component(title=title, id=id)
    return Component(id, asked.type, {**asked.props, "can_decline": True})


def _content(form: SchemaForm, given: Json | Declined) -> Json | Declined:
    """Return the answer to the component of `_form_component` as a value of the schema."""
    if given is DECLINED or not form.fields:
        return form.read({}) if given is True else DECLINED
    return form.read(given)


# -- single questions ----------------------------------------------------------------------------


class SingleQuestion(NamedTuple):
    """A question that an agent of a framework asks as one component."""

    component: Component
    form: SchemaForm | None
    """Form that converts the answer; `None` if the answer to the component is used as it is."""
    about: JsonObject
    """Context of the question, as names and values."""
    can_decline: bool

    @property
    def check(self) -> Check | None:
        """Function that validates an answer while its question is open; `None` accepts any."""
        return self.form.read if self.form is not None and self.form.fields else None

    def answer(self, given: Json) -> Json | Declined:
        """Return the value that the agent gets for an answer to the component."""
        return given if self.form is None else _content(self.form, given)


def single_question(
    tool_input: JsonObject, tool_call_id: str, turn_id: str
) -> SingleQuestion | None:
    """Return the component for one question of a framework; `None` if the input has another shape.

    Args:
        tool_input: Input of the runtime's request.
        tool_call_id: Id that stays the same for the same question, also after a restart.
        turn_id: Id of the turn that asks.
    """
    text, given = tool_input.get("question"), tool_input.get("component")
    known = {"question", "options", "schema", "component", "can_decline"}
    about = {name: value for name, value in tool_input.items() if name not in known}
    can_decline = tool_input.get("can_decline") is True
    component_id = f"{question_mark(tool_call_id)}.{_digest(turn_id)}"

    def asked(kind: str, props: JsonObject) -> SingleQuestion:
        if can_decline:
            props = {**props, "can_decline": True}
        return SingleQuestion(Component(component_id, kind, props), None, about, can_decline)

    if isinstance(given, dict):
        props = given.get("props")
        return asked(str(given.get("type")), props if isinstance(props, dict) else {})
    if not isinstance(text, str):
        return None
    title, options = shortened(text, MAX_TITLE), tool_input.get("options")
    if isinstance(options, list) and options:
        return asked("choices", {"title": title, "options": _choices_of(options)})
    schema = tool_input.get("schema")
    if isinstance(schema, dict) and schema.get("type") == "boolean":
        return asked("confirm", {"title": title})
    form = None if _is_any_text(schema) else form_of(schema)
    if form is not None:
        component = _form_component(form, title, component_id)
        if not can_decline and form.fields:
            component = form.component(title=title, id=component_id)
        return SingleQuestion(component, form, about, can_decline and bool(form.fields))
    return asked("text-input", {"label": title})


def _is_any_text(schema: Json) -> bool:
    """Return whether a schema describes any text, so that no form is needed."""
    rules = {"enum", "const", "oneOf", "anyOf", "format", "minLength", "maxLength", "default"}
    return isinstance(schema, dict) and schema.get("type") == "string" and not rules & set(schema)


def question_mark(tool_call_id: str) -> str:
    """Return the prefix that the ids of all components of the same question share."""
    return f"question-{_digest(tool_call_id)}"


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]


# -- values --------------------------------------------------------------------------------------


def questions_of(tool_input: JsonObject) -> Sequence[UserQuestion]:
    """Return the questions of an input; empty if it has another shape."""
    listed = tool_input.get("questions")
    if not isinstance(listed, list) or len(listed) > MAX_QUESTIONS:
        return ()
    questions = []
    for one in listed:
        text = one.get("question") if isinstance(one, dict) else None
        if not isinstance(text, str) or not text:
            return ()
        questions.append(
            UserQuestion(
                str(one.get("id") or text),
                shortened(text, MAX_TITLE),
                tuple(_options_of(one.get("options"))),
                one.get("multiSelect") is True,
                one.get("isSecret") is True,
            )
        )
    # With equal keys, one answer would replace the other. Such an input is asked as a permission.
    keys = {question.key for question in questions}
    return questions if len(keys) == len(questions) else ()


def _options_of(listed: Json) -> Sequence[tuple[str, str]]:
    """Return label and description of each option.

    Options with the text of `OTHER` or `DECLINE` are left out, because every question gets them.
    """
    reserved = {OTHER.casefold(), DECLINE.casefold()}
    found: dict[tuple[str, str], None] = {}
    for option in listed if isinstance(listed, list) else ():
        label = option.get("label") if isinstance(option, dict) else option
        about = option.get("description") if isinstance(option, dict) else ""
        text = _text_of(label) if isinstance(label, str) or _is_number(label) else ""
        if text.strip() and text.strip().casefold() not in reserved:
            found[text, about if isinstance(about, str) else ""] = None
    labels = distinct([label for label, _ in found], [about for _, about in found])
    return [(label, about) for label, (_, about) in zip(labels, found, strict=True)]


def _choices_of(listed: Sequence[Json]) -> list[Json]:
    """Return the options of a framework's question; equal labels are made distinct."""
    options = [_choice_of(one) for one in listed]
    about = [str(one.get("description") or one.get("value", "")) for one in options]
    labels = distinct([str(one["label"]) for one in options], about)
    return [{**one, "label": label} for one, label in zip(options, labels, strict=True)]


def _choice_of(given: Json) -> JsonObject:
    """Return an option as the component `choices` takes it.

    A value that is not an object with a `label` becomes an option with its text or JSON as label.
    """
    if not isinstance(given, dict) or not isinstance(given.get("label"), str):
        label = _text_of(given)
        return {"label": label, "value": given} if _is_number(given) else {"label": label}
    known: JsonObject = {"label": given["label"]}
    value = given.get("value")
    if isinstance(value, str) or _is_number(value):
        known["value"] = value
    texts = {"description": given.get("description"), "icon": given.get("icon")}
    known |= {name: text for name, text in texts.items() if isinstance(text, str)}
    return known | ({"disabled": True} if given.get("disabled") is True else {})


def _text_of(value: Json) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def form_of(schema: Json) -> SchemaForm | None:
    """Return the form of a schema; `None` if a form cannot express it."""
    if not isinstance(schema, dict):
        return None
    try:
        return form_of_schema(schema)
    except NoForm:
        return None


def _is_asked_by_form(form: SchemaForm | None) -> bool:
    """Return whether there is a form, and its answer is an object, as MCP requires."""
    return form is not None and all(slot.path for slot in form.slots)
