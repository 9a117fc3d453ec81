"""What an agent asks its user, as components: questions with options, and forms.

Runtimes have two shapes for it. `questions` is a list, each with options, of which one or several
can be taken, or words of the user's own: Claude Code's `AskUserQuestion`, Codex's
`request_user_input`. `schema` is a JSON Schema of a flat object: a form of an MCP server. Each can
be declined. What has another shape is no question here, and is asked as a permission.

Agents of frameworks ask one thing at a time: `question` with `options`, a `schema`, a `component`
of ARP, or nothing of these for a text. That is one component, whose id says which question it is:
so an answer that comes after a restart is known to be the answer to it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import NamedTuple, Protocol

from arp.protocol.components import Component
from arp.protocol.json_value import Json, JsonObject

OTHER = "Something else…"
"""The option by which a user answers in words of their own."""
ANSWER = "Answer"
DECLINE = "Do not answer"
MAX_QUESTIONS = 20
"""In one request; a runtime that asks more is asked as a permission, where all can be seen."""
MAX_TITLE = 2_000
"""Characters of a question."""

_FIELD_NAME = re.compile(r"(?!__)(?!(?:constructor|prototype)\Z)[^\x00-\x1f\x7f:;=]{1,128}\Z")
"""What a form of ARP may call a field."""
_NUMBERS = {"number", "integer"}


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


class SchemaField(NamedTuple):
    """A property of a schema, and the fields that ask for it."""

    name: str
    type: str
    fields: tuple[JsonObject, ...]
    values: tuple[Json, ...]
    """Of an array: the value that each of the fields, a checkbox, adds to it."""


def is_user_question(tool_input: JsonObject) -> bool:
    """Return whether an input has one of the two shapes."""
    return bool(questions_of(tool_input)) or bool(fields_of(tool_input.get("schema")))


class Questioner(Protocol):
    """A turn, or a tool that runs in one."""

    async def ask(self, component: Component) -> Json:
        """Show an input component, and return its answer."""


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
    others = [OTHER if labels else ANSWER, DECLINE]
    options: list[Json] = [
        {"label": label, "description": description} if description else label
        for label, description in question.options
    ]
    is_described = any(description for _, description in question.options)
    props: JsonObject = {
        "title": question.text,
        "options": [*options, *others],
        "style": "list" if is_described else "buttons",
        "multi_select": question.several and bool(labels),
    }
    chosen = await turn.ask(Component("", "choices", props))
    taken = chosen if isinstance(chosen, list) else [chosen]
    if DECLINE in taken:
        return None
    answer = [str(label) for label in taken if label in labels]
    if len(answer) < len(taken):
        answer.append(await _own_words(turn, question))
    return answer if question.several else answer[0]


async def _own_words(turn: Questioner, question: UserQuestion) -> str:
    if not question.is_secret:
        return str(await turn.ask(Component("", "text-input", {"label": question.text})))
    field: JsonObject = {"name": "answer", "label": question.text, "field_type": "password"}
    form = Component("", "form", {"fields": [{**field, "required": True}]})
    return str((await turn.ask(form))["answer"])


async def _filled_in(turn: Questioner, tool_input: JsonObject) -> JsonObject | None:
    fields = fields_of(tool_input.get("schema"))
    title = str(tool_input.get("message") or "")[:MAX_TITLE]
    way = Component("", "choices", {"title": title, "options": [ANSWER, DECLINE]})
    if await turn.ask(way) == DECLINE:
        return None
    parts = [part for field in fields for part in field.fields]
    form = Component("", "form", {"title": title, "fields": parts})
    return content_of_form(fields, await turn.ask(form))


# -- one thing at a time -------------------------------------------------------------------------


class AskedOnce(NamedTuple):
    """What an agent of a framework asks."""

    component: Component
    fields: Sequence[SchemaField]
    """Of a form that a schema made; empty: the answer is that of the component."""
    about: JsonObject
    """What belongs to the question, as names and values."""
    can_decline: bool

    def answer(self, given: Json) -> Json:
        """Return what the agent gets for an answer to the component."""
        return content_of_form(self.fields, given) if self.fields else given


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

    def asked(kind: str, props: JsonObject, fields: Sequence[SchemaField] = ()) -> AskedOnce:
        if can_decline:
            props = {**props, "can_decline": True}
        return AskedOnce(Component(component_id, kind, props), fields, about, can_decline)

    if isinstance(given, dict):
        return asked(str(given.get("type")), dict(given.get("props") or {}))
    if not isinstance(text, str):
        return None
    title, options = text[:MAX_TITLE], tool_input.get("options")
    if isinstance(options, list) and options:
        return asked("choices", {"title": title, "options": options})
    schema = tool_input.get("schema")
    fields = fields_of(schema)
    if fields:
        parts = [part for field in fields for part in field.fields]
        return asked("form", {"title": title, "fields": parts}, fields)
    if isinstance(schema, dict) and schema.get("type") == "boolean":
        return asked("confirm", {"title": title})
    return asked("text-input", {"label": title})


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
        if not isinstance(text, str) or not 0 < len(text) <= MAX_TITLE:
            return ()
        questions.append(
            UserQuestion(
                str(one.get("id") or text),
                text,
                tuple(_options_of(one.get("options"))),
                one.get("multiSelect") is True,
                one.get("isSecret") is True,
            )
        )
    keys = {question.key for question in questions}
    return questions if len(keys) == len(questions) else ()


def _options_of(listed: Json) -> Iterator[tuple[str, str]]:
    """Yield what can be chosen; an agent's own words for the other answers are left out."""
    seen = {OTHER, DECLINE}
    for option in listed if isinstance(listed, list) else ():
        label = option.get("label") if isinstance(option, dict) else option
        if isinstance(label, str) and label and label not in seen:
            seen.add(label)
            about = option.get("description") if isinstance(option, dict) else ""
            yield label, about if isinstance(about, str) else ""


def fields_of(schema: Json) -> Sequence[SchemaField]:
    """Return the fields of a schema; empty if it has something that no form can ask."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(properties, dict):
        return ()
    required = schema.get("required")
    needed = required if isinstance(required, list) else []
    found = []
    for number, (name, about) in enumerate(properties.items()):
        shown_name = name if _FIELD_NAME.match(name) else f"field {number + 1}"
        field = _field_of(name, shown_name, about, name in needed)
        if field is None:
            return ()
        found.append(field)
    return found


def _field_of(name: str, shown_name: str, about: Json, is_needed: bool) -> SchemaField | None:
    if not isinstance(about, dict):
        return None
    kind = about.get("type")
    title, more = about.get("title") or name, about.get("description")
    label = f"{title}: {more}" if more else str(title)
    if kind == "array":
        options = _values_of(about.get("items"))
        box: JsonObject = {"field_type": "checkbox"}
        boxes = tuple(
            {**box, "name": f"{shown_name}.{at}", "label": f"{title}: {option}"}
            for at, (option, _) in enumerate(options)
        )
        return SchemaField(name, "array", boxes, tuple(value for _, value in options))
    if kind == "boolean":
        box = {"field_type": "checkbox", "value": about.get("default") is True}
        return SchemaField(name, kind, ({**box, "name": shown_name, "label": label},), ())
    if kind != "string" and kind not in _NUMBERS:
        return None
    field: JsonObject = {"name": shown_name, "label": label, "required": is_needed}
    default = about.get("default")
    if isinstance(default, str if kind == "string" else int | float):
        field["value"] = default
    options = _values_of(about)
    if options:
        shown = [{"label": option, "value": value} for option, value in options]
        return SchemaField(
            name, str(kind), ({**field, "field_type": "select", "options": shown},), ()
        )
    limits = {
        "minimum": "min",
        "maximum": "max",
        "minLength": "min_length",
        "maxLength": "max_length",
    }
    rules = {to: about[of] for of, to in limits.items() if isinstance(about.get(of), int | float)}
    if rules:
        field["validation"] = rules
    known = {"date": "date", "email": "email"}.get(str(about.get("format")), "text")
    field["field_type"] = "number" if kind in _NUMBERS else known
    return SchemaField(name, str(kind), (field,), ())


def _values_of(about: Json) -> list[tuple[str, Json]]:
    """Return what a property may be, with the words for it; empty: it is free."""
    if not isinstance(about, dict):
        return []
    titled = about.get("oneOf") or about.get("anyOf")
    if isinstance(titled, list):
        return [
            (str(one.get("title") or one["const"]), one["const"])
            for one in titled
            if isinstance(one, dict) and isinstance(one.get("const"), str)
        ]
    values, names = about.get("enum"), about.get("enumNames")
    if not isinstance(values, list):
        return []
    words = names if isinstance(names, list) and len(names) == len(values) else values
    return [
        (str(word), value)
        for word, value in zip(words, values, strict=True)
        if isinstance(value, str | int | float)
    ]


def content_of_form(fields: Sequence[SchemaField], given: JsonObject) -> JsonObject:
    """Return what was filled in, by the properties of the schema."""
    content: JsonObject = {}
    for field in fields:
        values = [given.get(str(part["name"])) for part in field.fields]
        if field.type == "array":
            content[field.name] = [
                value for value, taken in zip(field.values, values, strict=True) if taken
            ]
            continue
        (value,) = values
        if field.type == "boolean":
            content[field.name] = value is True
        elif field.type == "integer" and isinstance(value, float) and value.is_integer():
            content[field.name] = int(value)
        elif value is not None and value != "":
            content[field.name] = value
    return content
