"""What an agent asks its user, as components: questions with options, and forms.

Runtimes have two shapes for it. `questions` is a list, each with options, of which one or several
can be taken, or words of the user's own: Claude Code's `AskUserQuestion`, Codex's
`request_user_input`. `schema` is a JSON Schema: a form of an MCP server, which is asked once, and
can be declined there. One without properties is a yes-or-no question. What has another shape is no
question here, and is asked as a permission.

Agents of frameworks ask one thing at a time: `question` with `options`, a `schema`, a `component`
of ARP, or nothing of these for a text. That is one component, whose id says which question it is:
so an answer that comes after a restart is known to be the answer to it.
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
"""The option by which a user answers in words of their own."""
DECLINE = "Do not answer"
MAX_QUESTIONS = 20
"""In one request; a runtime that asks more is asked as a permission, where all can be seen."""
MAX_TITLE = 2_000
"""Characters of a question."""

Check = Callable[[Json], object]
"""Raises `InvalidAnswer` for an answer that fits the component, but not who asked."""


class UserQuestion(NamedTuple):
    """A question with options, or for a text."""

    key: str
    """Of its answer: the id of the question, or else its text."""
    text: str
    options: tuple[tuple[str, str], ...]
    """Labels and descriptions; empty: it is answered by a text."""
    several: bool
    is_secret: bool
    """The answer is not to be seen."""


def is_user_question(tool_input: JsonObject) -> bool:
    """Return whether an input has one of the two shapes."""
    return bool(questions_of(tool_input)) or _is_asked_by_form(form_of(tool_input.get("schema")))


class Questioner(Protocol):
    """A turn, or a tool that runs in one."""

    async def ask(self, component: Component, *, check: Check | None = None) -> Json | Declined:
        """Show an input component, and return its answer; `DECLINED` if it can be declined."""


async def ask_user(turn: Questioner, tool_input: JsonObject) -> JsonObject | None:
    """Ask the user what an agent wants to know; return the input with the answers.

    Args:
        turn: On whose screens.
        tool_input: What the runtime gave; `is_user_question` holds.

    Returns:
        For `updated_input`: the input with `answers`, or the content of the form. `None`: the user
        does not answer.

    Cancel: Safe; what is open is withdrawn.
    """
    questions = questions_of(tool_input)
    if not questions:
        return await _filled_in(turn, tool_input)
    answers: JsonObject = {}
    for question in questions:
        answer = await _answer_to(turn, question)
        if answer is None:
            return None
        answers[question.key] = answer
    return {**tool_input, "answers": answers}


async def _answer_to(turn: Questioner, question: UserQuestion) -> Json:
    """Return a text, a list of texts for several, or `None` if there is no answer."""
    labels = [label for label, _ in question.options]
    if not labels:
        words = await _own_words(turn, question)
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
    if len(answer) < len(taken):
        words = await _own_words(turn, question)
        if words is None:
            return None
        answer.append(words)
    return answer if question.several else answer[0]


async def _own_words(turn: Questioner, question: UserQuestion) -> str | None:
    """Return what the user writes; `None` if they decline."""
    asked = Component("", "text-input", {"label": question.text, "can_decline": True})
    if question.is_secret:
        field: JsonObject = {"name": "answer", "label": question.text, "field_type": "password"}
        props: JsonObject = {"fields": [{**field, "required": True}], "can_decline": True}
        asked = Component("", "form", props)
    given: Json | Declined = await turn.ask(asked)
    if given is DECLINED:
        return None
    return str(given["answer"] if isinstance(given, dict) else given)


async def _filled_in(turn: Questioner, tool_input: JsonObject) -> JsonObject | None:
    form = form_of(tool_input.get("schema"))
    assert form is not None
    title = shortened(str(tool_input.get("message") or ""), MAX_TITLE)
    asked = _form_component(form, title)
    given = await turn.ask(asked, check=None if asked.type == "confirm" else form.read)
    content = _content(form, given)
    return content if isinstance(content, dict) else None


def _form_component(form: SchemaForm, title: str, id: str = "") -> Component:
    """Return what asks for a form: once, with a way to decline; without fields it is yes or no."""
    if not form.fields:
        return Component(id, "confirm", {"title": title})
    asked = form.component(title=title, id=id)
    return Component(id, asked.type, {**asked.props, "can_decline": True})


def _content(form: SchemaForm, given: Json | Declined) -> Json | Declined:
    """Return what an answer to `_form_component` makes of the schema."""
    if given is DECLINED or not form.fields:
        return form.read({}) if given is True else DECLINED
    return form.read(given)


# -- one thing at a time -------------------------------------------------------------------------


class AskedOnce(NamedTuple):
    """What an agent of a framework asks."""

    component: Component
    form: SchemaForm | None
    """The form that the component asks for; `None`: the answer is that of the component."""
    about: JsonObject
    """What belongs to the question, as names and values."""
    can_decline: bool

    @property
    def check(self) -> Check | None:
        """What refuses an answer before the component closes."""
        return self.form.read if self.form is not None and self.form.fields else None

    def answer(self, given: Json) -> Json | Declined:
        """Return what the agent gets for an answer to the component."""
        return given if self.form is None else _content(self.form, given)


def asked_once(tool_input: JsonObject, tool_call_id: str, turn_id: str) -> AskedOnce | None:
    """Return what one question is asked by; `None`: it has another shape.

    Args:
        tool_input: What the runtime gave.
        tool_call_id: The same for the same question, also after a restart.
        turn_id: Of the turn that asks.
    """
    text, given = tool_input.get("question"), tool_input.get("component")
    known = {"question", "options", "schema", "component", "can_decline"}
    about = {name: value for name, value in tool_input.items() if name not in known}
    can_decline = tool_input.get("can_decline") is True
    component_id = f"{question_mark(tool_call_id)}.{_digest(turn_id)}"

    def asked(kind: str, props: JsonObject) -> AskedOnce:
        if can_decline:
            props = {**props, "can_decline": True}
        return AskedOnce(Component(component_id, kind, props), None, about, can_decline)

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
        return AskedOnce(component, form, about, can_decline and bool(form.fields))
    return asked("text-input", {"label": title})


def _is_any_text(schema: Json) -> bool:
    """Return whether a schema describes a text and nothing more: no form is needed for it."""
    rules = {"enum", "const", "oneOf", "anyOf", "format", "minLength", "maxLength", "default"}
    return isinstance(schema, dict) and schema.get("type") == "string" and not rules & set(schema)


def question_mark(tool_call_id: str) -> str:
    """Return what the ids of all components begin with that ask the same question."""
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
    keys = {question.key for question in questions}
    return questions if len(keys) == len(questions) else ()


def _options_of(listed: Json) -> Sequence[tuple[str, str]]:
    """Return what can be chosen; an agent's own words for the other answers are left out."""
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
    """Return the options of a framework's question; those that share a label are told apart."""
    options = [_choice_of(one) for one in listed]
    about = [str(one.get("description") or one.get("value", "")) for one in options]
    labels = distinct([str(one["label"]) for one in options], about)
    return [{**one, "label": label} for one, label in zip(options, labels, strict=True)]


def _choice_of(given: Json) -> JsonObject:
    """Return an option as `choices` has it; a value that is no option is one by its JSON."""
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
    """Return the form of a schema; `None` if it has something that no form can ask."""
    if not isinstance(schema, dict):
        return None
    try:
        return form_of_schema(schema)
    except NoForm:
        return None


def _is_asked_by_form(form: SchemaForm | None) -> bool:
    """Return whether a form makes an object, as MCP wants it."""
    return form is not None and all(slot.path for slot in form.slots)
