"""Tables for the docs, read from the code: props, fields, errors, flags.

Attribute docstrings (the text below a field) are read from the source, because Python does not keep
them.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import re
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import click
import msgspec
from msgspec import NODEFAULT
from msgspec import inspect as shapes

from arp.cli import main as command_line
from arp.protocol import errors
from arp.protocol.catalog import CATALOG, chain
from arp.protocol.errors import ArpError, ErrorCode, LocalError, RemoteError
from arp.server.answers import STATUS


class Row(NamedTuple):
    """One prop or field."""

    name: str
    type: str
    default: str
    note: str


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(_cell(cell) for cell in line) + " |" for line in lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


# -- components ------------------------------------------------------------------------------------


def components(page: str) -> str:
    """Return one row for each core component.

    Args:
        page: Page that describes the components, for links; may be empty.
    """
    rows = []
    for name, spec in CATALOG.items():
        purpose = summary(spec.props).partition(": ")[2]
        then = " → ".join(f"`{step}`" for step in chain(name)[1:]) or "–"
        if spec.slots == "children":
            then = "its children, in order"
        elif spec.slots:
            then = "`group`"
        link = f"[`{name}`]({page}#{name})"
        answered = f"`{spec.answered_by}`" if spec.answered_by else ""
        rows.append([link, spec.category, purpose, then, answered])
    head = ["component", "kind", "what it is", "falls back to", "answered by"]
    return table(head, rows)


def props(name: str) -> str:
    """Return the props of a component; props of its parts are listed with their paths.

    `state` and `answer` of questions are left out, because the server sets them.
    """
    rows = [
        [f"`{row.name}`", row.type, row.default, row.note]
        for row in _props(shapes.type_info(CATALOG[name].props), "")
        if row.name not in ("state", "answer")
    ]
    return table(["prop", "type", "default", "meaning"], rows)


def _props(kind: Any, path: str) -> Iterator[Row]:
    notes = attribute_docs(kind.cls)
    for field in kind.fields:
        own = path + field.name
        shown = type_text(field.type)
        if not field.required:
            shown = shown.removesuffix(" or null")
        yield Row(own, shown, _default(field), notes.get(field.name, ""))
        inner, dots = _inner(field.type)
        if inner is not None:
            yield from _props(inner, own + dots)


def _inner(kind: Any) -> tuple[Any, str]:
    """Return the Struct of a prop, or of its items, and the suffix of the path to its fields."""
    dots = "."
    if isinstance(kind, shapes.VarTupleType | shapes.ListType):
        kind, dots = kind.item_type, "[]."
    if isinstance(kind, shapes.UnionType):
        kind = next((one for one in kind.types if isinstance(one, shapes.StructType)), kind)
    return (kind if isinstance(kind, shapes.StructType) else None), dots


def type_text(kind: Any) -> str:
    """Return a type in the words of JSON."""
    match kind:
        case shapes.Metadata():
            shown = (kind.extra_json_schema or {}).get("description")
            return str(shown) if shown else type_text(kind.type)
        case shapes.UnionType():
            return " or ".join(dict.fromkeys(map(type_text, kind.types)))
        case shapes.LiteralType():
            return ", ".join(f"`{value}`" for value in kind.values)
        case shapes.VarTupleType() | shapes.ListType():
            return f"array of {type_text(kind.item_type).removeprefix('a ')}"
        case shapes.StructType() | shapes.DictType():
            return "object"
        case _:
            return JSON_WORDS.get(type(kind), "any JSON")


JSON_WORDS: dict[type, str] = {
    shapes.StrType: "string",
    shapes.IntType: "number",
    shapes.FloatType: "number",
    shapes.BoolType: "boolean",
    shapes.NoneType: "null",
}
"""Names of simple types in JSON and TypeScript."""


def _default(field: Any) -> str:
    if field.required:
        return "required"
    if field.default is NODEFAULT or field.default in (None, ()):
        return "–"
    return f"`{json.dumps(field.default)}`"


# -- functions -------------------------------------------------------------------------------------


def arguments(place: str) -> str:
    """Return the arguments of a function or class, `module:NAME`, from its signature and `Args`.

    Raises:
        ValueError: The arguments and the entries of `Args` differ.
    """
    thing = find(place)
    notes = argument_docs(thing)
    taken = inspect.signature(thing).parameters
    if set(notes) != set(taken):
        raise ValueError(f"{place}: Args and arguments differ: {set(notes) ^ set(taken)}")
    rows = [[f"`{name}`", _shown_argument(one.default), notes[name]] for name, one in taken.items()]
    return table(["argument", "default", "meaning"], rows)


def argument_docs(thing: Any) -> dict[str, str]:
    """Return the entries of `Args` in the docstring of a function or class, by argument."""
    _, _, below = (inspect.getdoc(thing) or "").partition("\nArgs:\n")
    found: dict[str, str] = {}
    for line in below.splitlines():
        if not line.startswith("    "):
            if line:
                break  # the next section
            continue
        named = re.match(r"    (\w+): (.*)", line)
        if named:
            found[named[1]] = named[2]
        elif found:
            found[next(reversed(found))] += f" {line.strip()}"
    return found


def _shown_argument(default: object) -> str:
    if default is inspect.Parameter.empty:
        return "required"
    return "–" if default in (None, ()) else f"`{json.dumps(default)}`"


def public_names(module: str) -> str:
    """Return the names of a public module, each with the extra that it needs."""
    found = importlib.import_module(module)
    rows = [
        [f"`{name}`", summary(getattr(found, name)), f"`{extra}`" if extra else ""]
        for name, extra in sorted(found.names().items(), key=lambda one: one[0].lower())
    ]
    return table(["name", "what it is", "extra"], rows)


# -- structs and classes ---------------------------------------------------------------------------


def fields(place: str) -> str:
    """Return the fields of a class, `module:Class`, with defaults and docstrings."""
    cls = find(place)
    notes = attribute_docs(cls)
    if issubclass(cls, msgspec.Struct):
        rows = [
            [f"`{field.name}`", _shown_default(field.default), notes.get(field.name, "")]
            for field in msgspec.structs.fields(cls)
        ]
        return table(["name", "default", "meaning"], rows)
    rows = [[f"`{name}`", notes.get(name, "")] for name in cls.__annotations__]
    return table(["name", "meaning"], rows)


def find(place: str) -> Any:
    """Return the object that `module:NAME` names."""
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)


def _shown_default(value: object) -> str:
    if value is NODEFAULT:
        return "required"
    if isinstance(value, msgspec.Struct):
        return f"`{type(value).__name__}()`"
    if isinstance(value, int) and not isinstance(value, bool) and value >= 1000:
        return f"{value:,}"
    return "–" if value in (None, ()) else f"`{value}`"


def attribute_docs(cls: type) -> dict[str, str]:
    """Return the docstrings of the fields of a class, or of the values of an enum."""
    body = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0]
    assert isinstance(body, ast.ClassDef)
    found: dict[str, str] = {}
    for before, after in zip(body.body, body.body[1:], strict=False):
        match before, after:
            case (
                ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                found[name] = inspect.cleandoc(text)
    return found


def summary(thing: Any) -> str:
    """Return the first line of a docstring."""
    return (inspect.getdoc(thing) or "").partition("\n")[0]


# -- errors ----------------------------------------------------------------------------------------


def error_codes() -> str:
    """Return one row for each error code: meaning, HTTP status, and whether a retry may succeed."""
    classes = [kind for kind in vars(errors).values() if _is_error(kind)]
    rows = []
    for code in ErrorCode:
        named = [kind for kind in classes if kind.code is code]
        shown = " ".join(summary(kind) for kind in named)
        again = "yes" if any(kind.retryable for kind in named) else ""
        rows.append([str(int(code)), f"`{code.name}`", shown, str(STATUS.get(code, 400)), again])
    return table(["code", "name", "meaning", "HTTP", "try again"], rows)


def _is_error(kind: object) -> bool:
    return (
        isinstance(kind, type)
        and issubclass(kind, ArpError)
        and kind not in (ArpError, LocalError, RemoteError)
    )


# -- the command line ------------------------------------------------------------------------------


ARGUMENTS = {
    "SOURCE": "A file of facts and snapshots, a ledger, or the address of a server.",
    "MODULE:FACTORY": "What makes the runtime or the store under test, in a module or a file.",
    "TARGET": "A Python file or module with an App: app.py, app.py:NAME, package.module.",
    "URL": "The address of the server.",
    "SESSION": "The id of the session.",
    "PACK": "The pack: a zip file or a directory.",
    "RECORDED": "A pack, a ledger file, or with --agent a case.",
}
"""Meanings of the positional arguments of commands; click stores help for options only."""


def flags(name: str) -> str:
    """Return the arguments and options of a command, such as `serve` or `evidence/export`."""
    command: click.Command = command_line
    for word in name.split("/"):
        assert isinstance(command, click.Group)
        command = command.commands[word]
    context = click.Context(command, info_name=f"arp {name}", **command.context_settings)
    rows = []
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if isinstance(parameter, click.Argument):
            metavar = parameter.make_metavar(context)
            rows.append([f"`{metavar}`", ARGUMENTS[metavar.strip("[]")]])
        elif record is not None and "--help" not in record[0]:
            rows.append([f"`{record[0]}`", record[1]])
    return table(["flag", "meaning"], rows)
