"""A form for what a JSON Schema describes, and its answer as the schema wants it.

Theory of operation. Each scalar property becomes a field. The properties of an object inside stand
beside the others, named with a dot (`address.city`); a list of offered values becomes one checkbox
for each; a list of texts or numbers becomes a text with one value on each line. A schema that is no
object becomes the one field `value`. `SchemaForm.read` goes the way back: it takes what the form
was answered with, checks what fields cannot say (`schema_slot`), and leaves out what nobody filled
in, so that defaults apply. It is the only builder of forms from schemas: for types of authors, and
for what MCP servers, agents and frameworks ask.

A pattern is not checked here, because one from outside can take forever: whoever wrote the schema
checks it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec
from msgspec import Struct

from arp.protocol.components import Component, Field, FieldOption, FormProps
from arp.protocol.errors import LocalError
from arp.protocol.json_value import Json, JsonObject
from arp.surface.schema_slot import (
    LISTS,
    MAX_BOUND,
    FormSlot,
    OfferedValue,
    Reading,
    bounds_of,
    count,
    default_of,
    offers_of,
    read_slot,
    text_in,
)

MAX_FIELDS: Final = 100
"""Of one form; a person fills in fewer."""

MAX_DEPTH: Final = 4
"""Of objects in objects."""

MAX_REFERENCES: Final = 20
"""That lead from one schema to the next."""

LONG_TEXT: Final = 200
"""Characters; a text that may be longer gets a field with several lines."""

ONLY_FIELD: Final = "value"
"""The field of a schema that is no object."""

_NAME = re.compile(r"(?!__)[^\u0000-\u001f\u007f:;=]{1,128}")
_FORBIDDEN: Final = frozenset(("constructor", "prototype"))

_WAYS: Final = ("anyOf", "oneOf", "allOf")

_YES_OR_NO: Final = (OfferedValue("Yes", True, "Yes"), OfferedValue("No", False, "No"))

_LISTS: Final[dict[str, Reading]] = {
    "string": "lines",
    "number": "numbers",
    "integer": "integers",
}


class NoForm(LocalError):
    """There is no form for a schema; the message names the property and why."""


class SchemaForm(Struct, frozen=True):
    """A form for what a JSON Schema describes; `form_of_schema` makes it."""

    fields: tuple[Field, ...]
    title: str | None = None
    description: str | None = None
    slots: tuple[FormSlot, ...] = ()
    constants: tuple[tuple[tuple[str, ...], Json], ...] = ()
    """Properties that can have one value only: there is no field for them."""
    shows_values: bool = False
    """The fields show values that were given, not only defaults: where the schema allows null, an
    emptied field means null, not the default."""

    def component(
        self,
        *,
        title: str | None = None,
        description: str | None = None,
        submit_label: str | None = None,
        id: str = "",
    ) -> Component:
        """Return the form as a component.

        Args:
            title: `None` = that of the schema.
            description: `None` = that of the schema.
            submit_label: As in `ui.form`.
            id: As in `ui.form`.
        """
        form = FormProps(
            self.fields,
            self.title if title is None else title,
            self.description if description is None else description,
            submit_label,
        )
        props: JsonObject = msgspec.json.decode(msgspec.json.encode(form))
        return Component(id, "form", props)

    def field_of(self, path: Sequence[Json]) -> str | None:
        """Return the name of the field for a place in the answer; `None` if there is none.

        Args:
            path: Names of properties, and numbers of items, from the outermost on. What is inside
                of a field means the field.
        """
        place = tuple(map(str, path))
        for slot in self.slots:
            if slot.path == place[: len(slot.path)]:
                return f"{slot.name}.1" if slot.reading == "ticks" else slot.name
        return None

    def read(self, answer: JsonObject) -> Json:
        """Return an answer as the schema wants it.

        Args:
            answer: The fields of the form, as they passed its check.

        Raises:
            InvalidAnswer: A value does not fit the schema; `detail` names its field.
        """
        out: JsonObject = {}
        for path, constant in self.constants:
            _put(out, path, constant)
        for slot in self.slots:
            value = read_slot(slot, answer)
            if value is None and not slot.path:
                return None
            if not slot.path:
                return value
            has_default = "default" in slot.schema and not self.shows_values
            if value is not None or (slot.is_nullable and not has_default):
                _put(out, slot.path, value)
        return out


def form_of_schema(
    schema: Mapping[str, Json], values: Mapping[str, Json] | None = None
) -> SchemaForm:
    """Return the form for a JSON Schema.

    Args:
        schema: Its `$ref`s stay within it. `additionalProperties` and patterns are passed over.
        values: What stands in the fields at first, as the schema would have it; `None`: its
            defaults.

    Raises:
        NoForm: It has something that no field can stand for, or too much of it.
    """
    return _Builder(dict(schema), dict(values or {})).form()


class _Builder:
    """Goes through a schema once."""

    def __init__(self, root: JsonObject, values: JsonObject) -> None:
        self._root = root
        self._values = values
        self._fields: list[Field] = []
        self._slots: list[FormSlot] = []
        self._constants: list[tuple[tuple[str, ...], Json]] = []
        self._names: set[str] = set()
        """Names of the fields so far."""

    def form(self) -> SchemaForm:
        schema, _ = self._resolved(self._root, ())
        if "properties" in schema or schema.get("type") == "object":
            self._object(schema, ())
        else:
            self._property(self._root, (), is_required=True)
        if len(self._fields) > MAX_FIELDS:
            raise NoForm(f"the form would have {len(self._fields)} fields; at most {MAX_FIELDS}")
        return SchemaForm(
            tuple(self._fields),
            text_in(schema.get("title")),
            text_in(schema.get("description")),
            tuple(self._slots),
            tuple(self._constants),
            bool(self._values),
        )

    def _object(self, schema: JsonObject, path: tuple[str, ...], is_required: bool = True) -> None:
        properties = schema.get("properties")
        if not isinstance(properties, dict) or len(path) >= MAX_DEPTH:
            raise _no_form(path, "an object of any shape, or one too deep")
        required = schema.get("required")
        needed = required if isinstance(required, list) else []
        default = schema.get("default")
        for name, inner in properties.items():
            must = is_required and name in needed
            if isinstance(default, dict) and name in default and isinstance(inner, dict):
                # The default of an object is one for each of its properties.
                inner = {**inner, "default": default[name]}
            self._property(inner, (*path, str(name)), is_required=must)

    def _resolved(self, schema: Json, path: tuple[str, ...]) -> tuple[JsonObject, bool]:
        """Return a schema behind its references, and whether it may be null."""
        is_nullable = False
        for _ in range(MAX_REFERENCES):
            if not isinstance(schema, dict):
                raise _no_form(path, "no schema")
            own = {key: one for key, one in schema.items() if key not in _WAYS}
            key = next((one for one in _WAYS if isinstance(schema.get(one), list)), None)
            ways: list[Json] = schema[key] if key is not None else []
            others = [one for one in ways if not _is_null(one)]
            is_nullable = is_nullable or len(others) < len(ways)
            if isinstance(reference := own.pop("$ref", None), str):
                schema = {**self._at(reference, path), **own}
            elif len(others) == 1 and isinstance(others[0], dict) and not _is_offer(key, others[0]):
                schema = {**others[0], **own}
            else:
                return self._told_apart({**own, key: others} if key else own, is_nullable)
        raise _no_form(path, "references that lead in a circle")

    def _told_apart(self, schema: JsonObject, is_nullable: bool) -> tuple[JsonObject, bool]:
        """Return a schema whose type and values are not null, and whether null is one besides."""
        types, values = schema.get("type"), schema.get("enum")
        if isinstance(types, list):
            rest = [one for one in types if one != "null"]
            is_nullable = is_nullable or len(rest) < len(types)
            schema = {**schema, "type": rest[0] if len(rest) == 1 else rest}
        return schema, is_nullable or (isinstance(values, list) and None in values)

    def _at(self, reference: str, path: tuple[str, ...]) -> JsonObject:
        found: Json = self._root if reference.startswith("#") else None
        for part in reference.removeprefix("#").split("/")[1:]:
            key = part.replace("~1", "/").replace("~0", "~")
            found = found.get(key) if isinstance(found, dict) else None
        if not isinstance(found, dict):
            raise _no_form(path, f"a reference to {reference!r:.80}, which is not there")
        return found

    def _property(self, inner: Json, path: tuple[str, ...], *, is_required: bool) -> None:
        schema, is_nullable = self._resolved(inner, path)
        if "properties" in schema:
            self._object(schema, path, is_required and not is_nullable)
            return
        if "const" in schema and is_required and not is_nullable:
            self._constants.append((path, schema["const"]))
            return
        reading, offers, items = self._kind(schema, path, is_nullable)
        name = self._name(path, len(offers) if reading == "ticks" else 0)
        slot = FormSlot(path, name, reading, schema, is_required, is_nullable, offers, items)
        self._slots.append(slot)
        given = default_of(slot, _given(self._values, slot))
        self._fields += _fields(slot, given, is_made=bool(self._values))

    def _name(self, path: tuple[str, ...], ticks: int) -> str:
        """Return a name for the fields of a slot: that of the property, unless none can have it."""
        wanted, number = ".".join(path) or ONLY_FIELD, len(self._slots)
        while True:
            names = {f"{wanted}.{tick}" for tick in range(1, ticks + 1)} or {wanted}
            if self._names.isdisjoint(names) and all(map(_can_name, names)):
                self._names |= names
                return wanted
            number += 1
            wanted = f"field {number}"

    def _kind(
        self, schema: JsonObject, path: tuple[str, ...], is_nullable: bool
    ) -> tuple[Reading, tuple[OfferedValue, ...], JsonObject]:
        """Return how a property is asked, what is offered, and the schema of its items."""
        if offers := offers_of(schema):
            return "choice", offers, {}
        match schema.get("type"):
            case "boolean":
                return ("choice", _YES_OR_NO, {}) if is_nullable else ("boolean", (), {})
            case "string":
                return "text", (), {}
            case "number":
                return "number", (), {}
            case "integer":
                return "integer", (), {}
            case "array":
                items, _ = self._resolved(schema.get("items"), path)
                if offers := offers_of(items):
                    return "ticks", offers, items
                if reading := _LISTS.get(str(items.get("type"))):
                    return reading, (), items
            case _:
                pass
        raise _no_form(path, f"{_said(schema)}, for which there is no field")


# -- fields ----------------------------------------------------------------------------------------


def _fields(slot: FormSlot, given: Json, *, is_made: bool) -> Iterator[Field]:
    """Return the fields of a slot; `is_made`: `given` was chosen before, and is to be changed."""
    label = _label(slot)
    must = slot.is_required and not slot.is_nullable
    if slot.reading == "ticks":
        for number, one in enumerate(slot.offers, 1):
            text, is_ticked = f"{label}: {one.label}", one.answer in given
            yield Field(f"{slot.name}.{number}", text, "checkbox", value=is_ticked)
        return
    if slot.reading == "choice":
        options = tuple(
            one.label if one.answer == one.label else FieldOption(one.label, one.answer)
            for one in slot.offers
        )
        # A choice that was made can be changed, not taken back, where the schema has no null.
        must = must or (is_made and given is not None and not slot.is_nullable)
        yield Field(slot.name, label, "select", value=given, options=options, required=must)
        return
    if slot.reading == "boolean":
        yield Field(slot.name, label, "checkbox", value=given)
        return
    if slot.reading in LISTS:
        shown = "\n".join(map(str, given)) or None
        hint = "one on each line"
        needs_one = must and count(slot.schema.get("minItems")) > 0
        yield Field(slot.name, label, "textarea", shown, required=needs_one, placeholder=hint)
        return
    yield _scalar(slot, label, given, must)


def _scalar(slot: FormSlot, label: str, value: str | float | None, must: bool) -> Field:
    schema = slot.schema
    if slot.reading != "text":
        least, most = bounds_of(schema, is_whole=slot.reading == "integer")
        bounds: JsonObject = {"min": _kept(least), "max": _kept(most)}
        return _field(slot, label, "number", value, bounds, must)
    kind = schema.get("format")
    if kind == "date":
        return _field(slot, label, "date", value, {}, must)
    lengths = {"min_length": schema.get("minLength"), "max_length": schema.get("maxLength")}
    known = {name: one for name, one in lengths.items() if type(one) is int and one >= 0}
    # An empty field is no value at all, so a text that may be empty need not be filled in.
    must = must and known.get("max_length") != 0
    if kind == "email":
        return _field(slot, label, "email", value, known, must)
    if kind == "password" or schema.get("writeOnly") is True:
        return _field(slot, label, "password", None, known, must)
    is_long = known.get("max_length", 0) > LONG_TEXT
    return _field(slot, label, "textarea" if is_long else "text", value, known, must)


def _kept(bound: int | float | None) -> int | float | None:
    """Return a limit that a field can carry."""
    return bound if bound is None or -MAX_BOUND <= bound <= MAX_BOUND else None


def _field(
    slot: FormSlot, label: str, kind: str, value: Json, rules: JsonObject, must: bool
) -> Field:
    plain: JsonObject = {"name": slot.name, "label": label, "field_type": kind, "required": must}
    validation = {name: one for name, one in rules.items() if one is not None}
    if validation:
        plain["validation"] = validation
    if value is not None:
        plain["value"] = value
    if slot.schema.get("format") == "date-time":
        plain["placeholder"] = "2026-01-31T18:30:00Z"
    return msgspec.convert(plain, Field)


def _label(slot: FormSlot) -> str:
    """Return what a person reads beside a field: its title, or name, and what it means."""
    *outer, by_name = map(_spoken, slot.path) if slot.path else ("Answer",)
    title, description = text_in(slot.schema.get("title")), text_in(slot.schema.get("description"))
    # Pydantic and others make titles of the names themselves.
    if title is None or title.casefold() == by_name.casefold():
        label = description or title or by_name
    else:
        label = f"{title}: {description}" if description else title
    return ": ".join([*outer, label])


def _spoken(name: str) -> str:
    """Return the name of a property as words."""
    words = re.sub(r"[_\s]+", " ", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)).strip()
    return words[:1].upper() + words[1:] or name


def _given(values: JsonObject, slot: FormSlot) -> Json:
    """Return what stands in a slot at first: the value that was given, else the default."""
    default = slot.schema.get("default")
    found: Json = values if slot.path else values.get(ONLY_FIELD)
    for name in slot.path:
        if not isinstance(found, dict) or name not in found:
            return default
        found = found[name]
    return default if found is None and not (slot.path and slot.is_nullable) else found


def _put(out: JsonObject, path: tuple[str, ...], value: Json) -> None:
    for name in path[:-1]:
        out = out.setdefault(name, {})
    out[path[-1]] = value


def _no_form(path: tuple[str, ...], why: str) -> NoForm:
    return NoForm(f"{'.'.join(path) or 'schema'}: {why}", detail=".".join(path) or None)


def _said(schema: JsonObject) -> str:
    kind = schema.get("type")
    return f"type {kind!r:.40}" if kind is not None else "no type"


def _can_name(name: str) -> bool:
    """Return whether a field can have a name."""
    return _NAME.fullmatch(name) is not None and name not in _FORBIDDEN


def _is_null(schema: Json) -> bool:
    if not isinstance(schema, dict):
        return False
    return schema.get("type") == "null" or ("const" in schema and schema["const"] is None)


def _is_offer(key: str | None, way: JsonObject) -> bool:
    """Return whether the only way is a value that is offered: its title is not the property's."""
    return key != "allOf" and "const" in way
