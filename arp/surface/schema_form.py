"""Forms from JSON Schemas, and answers in the shape of the schema.

Theory of operation. Each scalar property becomes a field. The properties of a nested object become
fields of the same form, with a dot in their names (`address.city`). A list of enumerated values
becomes one checkbox per value. A list of texts or numbers becomes a text with one value per line. A
schema that is not an object becomes the single field `value`. `SchemaForm.read` converts the answer
of the form back: it checks the rules that fields cannot express (`schema_slot`), and leaves out
empty fields, so that defaults apply. This is the only builder of forms from schemas. It is used for
types of authors and for questions of MCP servers, agents and frameworks.

Patterns are not checked, because a foreign pattern can take forever. The author of the schema
checks them.
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
"""Most fields of one form; no person fills in more."""

MAX_DEPTH: Final = 4
"""Deepest nesting of objects."""

MAX_REFERENCES: Final = 20
"""Longest chain of references from one schema to the next."""

LONG_TEXT: Final = 200
"""Length, in characters, above which a text gets a field with several lines."""

ONLY_FIELD: Final = "value"
"""Name of the field for a schema that is not an object."""

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
    """There is no form for a schema; the message names the property and the reason."""


class SchemaForm(Struct, frozen=True):
    """The form for a JSON Schema, made by `form_of_schema`."""

    fields: tuple[Field, ...]
    title: str | None = None
    description: str | None = None
    slots: tuple[FormSlot, ...] = ()
    constants: tuple[tuple[tuple[str, ...], Json], ...] = ()
    """Properties with only one possible value; they have no field."""
    shows_values: bool = False
    """Whether the fields show existing values and not only defaults. An emptied field then means
    null if the schema allows null, and not the default."""

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
            title: Title of the form; `None` = the title of the schema.
            description: Description of the form; `None` = the description of the schema.
            submit_label: Text of the button; see `ui.form`.
            id: Id of the component; see `ui.form`.
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
        """Return the name of the field for a path in the answer; `None` if there is none.

        Args:
            path: Names of properties and indexes of items, from the outermost on. A path into the
                value of a field means the field.
        """
        wanted = tuple(map(str, path))
        for slot in self.slots:
            if slot.path == wanted[: len(slot.path)]:
                return f"{slot.name}.1" if slot.reading == "ticks" else slot.name
        return None

    def read(self, answer: JsonObject) -> Json:
        """Return an answer in the shape of the schema.

        Args:
            answer: The checked fields of the form.

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
            # An explicit null would replace the default of a property that was left empty.
            has_default = "default" in slot.schema and not self.shows_values
            if value is not None or (slot.is_nullable and not has_default):
                _put(out, slot.path, value)
        return out


def form_of_schema(
    schema: Mapping[str, Json], values: Mapping[str, Json] | None = None
) -> SchemaForm:
    """Return the form for a JSON Schema.

    Args:
        schema: The schema. Its `$ref`s must be within it. `additionalProperties` and patterns are
            ignored.
        values: Initial values of the fields, in the shape of the schema; `None`: the defaults.

    Raises:
        NoForm: A property cannot be a field, or there are too many properties.
    """
    return _Builder(dict(schema), dict(values or {})).form()


class _Builder:
    """One pass over a schema that collects the fields and slots of its form."""

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
                # The default of an object has the defaults of its properties.
                inner = {**inner, "default": default[name]}
            self._property(inner, (*path, str(name)), is_required=must)

    def _resolved(self, schema: Json, path: tuple[str, ...]) -> tuple[JsonObject, bool]:
        """Follow the references of a schema; return the result and whether it may be null.

        Raises:
            NoForm: A reference leads nowhere or in a circle.
        """
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
                return self._without_null({**own, key: others} if key else own, is_nullable)
        raise _no_form(path, "references that lead in a circle")

    def _without_null(self, schema: JsonObject, is_nullable: bool) -> tuple[JsonObject, bool]:
        """Remove null from the types of a schema; return it and whether null is allowed."""
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
        """Return a free name for the fields of a slot: that of the property, if it is possible."""
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
        """Return the reading of a property, its enumerated values, and the schema of its items.

        Raises:
            NoForm: There is no field for its type.
        """
        if offers := offers_of(schema):
            return "choice", offers, {}
        match schema.get("type"):
            # A checkbox has no third state for null.
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
    """Yield the fields of a slot.

    Args:
        slot: The slot.
        given: Initial value.
        is_made: Whether the form edits existing values, so that `given` is a choice made before.
    """
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
        # An existing choice can be changed but not cleared, unless the schema allows null.
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
    # An empty field has no value: a required text of at most 0 characters could never be filled in.
    must = must and known.get("max_length") != 0
    if kind == "email":
        return _field(slot, label, "email", value, known, must)
    if kind == "password" or schema.get("writeOnly") is True:
        return _field(slot, label, "password", None, known, must)
    is_long = known.get("max_length", 0) > LONG_TEXT
    return _field(slot, label, "textarea" if is_long else "text", value, known, must)


def _kept(bound: int | float | None) -> int | float | None:
    """Return a limit if a field can carry it."""
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
    """Return the label of a field: its title or name, with the description."""
    *outer, by_name = map(_spoken, slot.path) if slot.path else ("Answer",)
    title, description = text_in(slot.schema.get("title")), text_in(slot.schema.get("description"))
    # Pydantic and others generate titles from names; such a title says nothing new.
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
    """Return the initial value of a slot: an existing value, or else the default."""
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
    """Return whether the only alternative is a constant, so its title is not the property's."""
    return key != "allOf" and "const" in way
