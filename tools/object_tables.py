"""Generate code and docs from `schemas/arp-core.protocol.yaml`: messages, dispatch table, tables.

`gen_schemas` writes the files, `gen_docs` the parts of the docs. The head of the YAML file
describes its syntax; `read` refuses anything else, with its place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from arp.protocol.errors import ErrorCode
from arp.protocol.objects.states import TABLES, Machine
from tools.doc_tables import table
from tools.generated_files import formatted

ROOT = Path(__file__).resolve().parent.parent

SOURCE = "schemas/arp-core.protocol.yaml"


TYPES: Mapping[str, str] = {
    "id": "ObjectId",
    "new_id": "ObjectId",
    "uint": "Sequence",
    "int": "Coordinate",
    "number": "float",
    "string": "str",
    "identifier": "Identifier",
    "bool": "bool",
    "json": "Json",
    "object": "JsonObject",
    "components": "list[Component]",
    "ops": "list[PatchOp]",
    "strings": "list[str]",
    "states": "States",
    "counts": "dict[str, int]",
    "bounds": "Rectangle",
    "input_type": "InputType",
    "resume_kind": "ResumeKind",
    "turn_status": "TurnStatus",
    "behind": "OutputAnchor",
    "tool_progress": "ToolProgressPayload",
    "tool_end": "ToolEndPayload",
    "permission": "Permission",
    "error_payload": "ErrorPayload",
    "surface_info": "SurfaceInfo",
    "close_reason": "CloseReason",
    "commands": "tuple[Command, ...]",
}
"""Python type for each type of the YAML."""


class Argument(NamedTuple):
    """An argument of an operation."""

    name: str
    type: str
    is_optional: bool
    interface: str | None
    """Interface of the object that an id names; `None` for other arguments."""
    summary: str


class OperationSource(NamedTuple):
    """A request or event."""

    name: str
    kind: str
    """`Request` or `Event`."""
    interface: str
    summary: str
    since: int
    destroys: bool
    creates: str | None
    is_error: bool
    arguments: tuple[Argument, ...]

    @property
    def struct(self) -> str:
        """Return the name of its struct: `SurfaceSetTitleRequest`."""
        words = "".join(word.capitalize() for word in self.name.split("_"))
        return f"{self.interface.removeprefix('Arp')}{words}{self.kind}"


class InterfaceSource(NamedTuple):
    """An interface with its requests and events."""

    name: str
    version: int
    summary: str
    errors: tuple[str, ...]
    requests: tuple[OperationSource, ...]
    events: tuple[OperationSource, ...]


# -- reading ---------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def interfaces() -> tuple[InterfaceSource, ...]:
    """Return the interfaces in the file in `schemas/`."""
    return read((ROOT / SOURCE).read_text(encoding="utf-8"))


def read(text: str) -> tuple[InterfaceSource, ...]:
    """Return the interfaces in a YAML text.

    Raises:
        ValueError: It has something that this version does not know; the message has the place.
    """
    source = yaml.safe_load(text)
    found = source["interfaces"]
    for code in source["errors"]:
        if code not in ErrorCode.__members__:
            raise ValueError(f"errors.{code}: no such code in arp.protocol.errors")
    return tuple(_interface(name, entry, source) for name, entry in found.items())


def _interface(name: str, entry: dict[str, Any], source: dict[str, Any]) -> InterfaceSource:
    _check(entry, {"version", "summary", "errors", "requests", "events"}, name)
    for code in entry.get("errors", ()):
        if code not in source["errors"]:
            raise ValueError(f"{name}.errors: {code} is not declared")
    operations = {
        kind: tuple(
            _operation(name, each, one, kind, source)
            for each, one in entry.get(f"{kind.lower()}s", {}).items()
        )
        for kind in ("Request", "Event")
    }
    return InterfaceSource(
        name,
        entry["version"],
        entry["summary"],
        tuple(entry.get("errors", ())),
        operations["Request"],
        operations["Event"],
    )


def _operation(
    interface: str, name: str, entry: dict[str, Any], kind: str, source: dict[str, Any]
) -> OperationSource:
    where = f"{interface}.{name}"
    _check(entry, {"summary", "since", "destroys", "creates", "answers", "args"}, where)
    since = entry.get("since", 1)
    if since > source["interfaces"][interface]["version"]:
        raise ValueError(f"{where}: since {since}, but the interface has no such version")
    arguments = [
        _argument(f"{where}.{each}", each, one, source)
        for each, one in entry.get("args", {}).items()
    ]
    return OperationSource(
        name,
        kind,
        interface,
        entry["summary"],
        since,
        entry.get("destroys", False),
        entry.get("creates"),
        entry.get("answers") == "error",
        tuple(sorted(arguments, key=lambda one: one.is_optional)),
    )


def _argument(where: str, name: str, entry: dict[str, Any], source: dict[str, Any]) -> Argument:
    _check(entry, {"type", "interface", "summary"}, where)
    kind = entry["type"].removesuffix("?")
    if kind not in TYPES:
        raise ValueError(f"{where}: no type {kind!r}; there are {', '.join(TYPES)}")
    interface = entry.get("interface")
    if interface is not None and interface not in source["interfaces"]:
        raise ValueError(f"{where}: no interface {interface!r}")
    return Argument(name, kind, entry["type"].endswith("?"), interface, entry["summary"])


def _check(entry: dict[str, Any], known: set[str], where: str) -> None:
    if unknown := sorted(entry.keys() - known):
        raise ValueError(f"{where}: {', '.join(unknown)} means nothing; use {', '.join(known)}")


def operations() -> Iterator[OperationSource]:
    """Yield every request and event."""
    for interface in interfaces():
        yield from interface.requests
        yield from interface.events


# -- Python ----------------------------------------------------------------------------------------

PYTHON_HEAD = '''\
"""The messages of the object dialect and the table of its interfaces.

Generated by tools/gen_schemas.py from schemas/arp-core.protocol.yaml; run `make gen`, do not edit.

A struct is the `payload` of one operation: `…Request` from the agent side to the renderer,
`…Event` back. `INTERFACES` says which operations an interface has.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, Struct

from arp.protocol.components import Component
from arp.protocol.errors import ErrorCode, ErrorPayload
from arp.protocol.json_value import Json, JsonObject
from arp.protocol.mark import OutputAnchor
from arp.protocol.messages import (
    CloseReason,
    Command,
    Identifier,
    InputType,
    Permission,
    Sequence,
    SurfaceInfo,
    ToolEndPayload,
    ToolProgressPayload,
    TurnStatus,
)
from arp.protocol.patch import PatchOp

ObjectId = Annotated[int, Meta(ge=0, le=0xFFFFFFFF, description="a number in 0…0xFFFFFFFF")]
"""The number of an object on one connection."""

Coordinate = Annotated[
    int, Meta(ge=-(2**31), le=2**31, description="a number in -2³¹…2³¹")
]

States = Annotated[
    list[Annotated[str, Meta(max_length=64)]], Meta(max_length=16, description="at most 16 states")
]

ResumeKind: TypeAlias = Literal["new", "replay", "snapshot"]


class Rectangle(Struct, frozen=True):
    """Position and size of a surface."""

    x: Coordinate
    y: Coordinate
    width: Sequence
    height: Sequence


class Operation(Struct, frozen=True):
    """One request or event of an interface."""

    payload: type[Struct]
    since: int = 1
    """The version of the interface from which on it exists."""
    destroys: bool = False
    """Its object ends with it."""
    creates: str | None = None
    """The interface of the object that begins with it, under an id of the sender."""
    is_error: bool = False
    """It answers another message with an error, and is never answered by one."""
    new_ids: Mapping[str, str | None] = {}
    """Arguments that name a new object → its interface; `None`: the message names it."""
    ids: Mapping[str, str] = {}
    """Arguments that name an object → its interface."""


class Interface(Struct, frozen=True):
    """One interface."""

    name: str
    version: int
    requests: Mapping[str, Operation]
    events: Mapping[str, Operation]
    errors: tuple[ErrorCode, ...] = ()
    """With which a request of it may be refused, besides those of the display."""
'''


def python_module() -> str:
    """Return `arp/protocol/objects/messages.py`."""
    parts = [PYTHON_HEAD]
    for interface in interfaces():
        parts.append(f"\n\n# -- {interface.name} {'-' * (94 - len(interface.name))}\n")
        parts += [_struct(one) for one in (*interface.requests, *interface.events)]
    for kind in ("Request", "Event"):
        names = [one.struct for one in operations() if one.kind == kind]
        parts.append(f"\n\n{kind}: TypeAlias = (\n    " + "\n    | ".join(names) + "\n)")
    parts.append("\n\nINTERFACES: Mapping[str, Interface] = {\n")
    parts += [_entry(interface) for interface in interfaces()]
    parts.append('}\n"""Every interface by its name."""\n')
    return formatted("".join(parts))


def _struct(operation: OperationSource) -> str:
    tail = ", omit_defaults=True" if any(one.is_optional for one in operation.arguments) else ""
    lines = [f"\n\nclass {operation.struct}(Struct, frozen=True{tail}):"]
    lines.append(f"    {_docstring(operation.summary)}")
    if operation.arguments:
        lines.append("")
    for one in operation.arguments:
        word = TYPES[one.type]
        if one.is_optional:
            word = "bool = False" if word == "bool" else f"{word} | None = None"
        lines.append(f"    {one.name}: {word}")
        lines.append(f"    {_docstring(one.summary)}")
    return "\n".join(lines) + "\n"


def _docstring(text: str) -> str:
    if len(text) <= 88:
        return f'"""{text}"""'
    words, lines, line = text.split(), [], '"""'
    for word in words:
        if len(line) + len(word) > 94:
            lines.append(line.rstrip())
            line = ""
        line += f"{word} "
    return "\n    ".join([*lines, line.rstrip(), '"""'])


def _entry(interface: InterfaceSource) -> str:
    errors = "".join(f"ErrorCode.{code}, " for code in interface.errors)
    return (
        f'    "{interface.name}": Interface(\n        "{interface.name}",\n'
        f"        {interface.version},\n"
        f"        {_operations(interface.requests)},\n        {_operations(interface.events)},\n"
        f"        ({errors}),\n    ),\n"
    )


def _operations(found: tuple[OperationSource, ...]) -> str:
    return "{" + "".join(f'"{one.name}": {_made(one)}, ' for one in found) + "}"


def _made(operation: OperationSource) -> str:
    new = {one.name: one.interface for one in operation.arguments if one.type == "new_id"}
    named = {one.name: one.interface for one in operation.arguments if one.type == "id"}
    extras = [
        f"since={operation.since}" if operation.since > 1 else "",
        "destroys=True" if operation.destroys else "",
        f'creates="{operation.creates}"' if operation.creates else "",
        "is_error=True" if operation.is_error else "",
        f"new_ids={new!r}" if new else "",
        f"ids={named!r}" if named else "",
    ]
    return f"Operation({', '.join([operation.struct, *filter(None, extras)])})"


# -- TypeScript ------------------------------------------------------------------------------------

# -- docs ------------------------------------------------------------------------------------------


def interface_tables() -> str:
    """Return every interface with its operations, arguments and errors."""
    parts = []
    for interface in interfaces():
        head = f"**`{interface.name}`**, version {interface.version}. {interface.summary}"
        if interface.errors:
            head += f" Errors: {', '.join(f'`{code}`' for code in interface.errors)}."
        rows = [_doc_row(one) for one in (*interface.requests, *interface.events)]
        parts += [head, table(["", "operation", "meaning"], rows)]
    return "\n\n".join(parts)


def _doc_row(one: OperationSource) -> list[str]:
    arguments = ", ".join(f"{each.name}{'?' if each.is_optional else ''}" for each in one.arguments)
    since = f" Since version {one.since}." if one.since > 1 else ""
    notes = " ".join(
        f"`{each.name}`: {each.summary[0].lower() + each.summary[1:]}" for each in one.arguments
    )
    mark = "→" if one.kind == "Request" else "←"
    shown = f"{one.summary}{since}{' ' + notes if notes else ''}"
    return [mark, f"`{one.name}({arguments})`", shown]


def diagram(name: str) -> str:
    """Return one table of `object_states` as a state diagram."""
    machine: Machine = TABLES[name]
    lines = ["```mermaid", "stateDiagram-v2"]
    for state, moves in machine.moves.items():
        if state == machine.start:
            lines.append(f"    [*] --> {state}")
        lines += [f"    {state} --> {after}: {event}" for event, after in moves.items()]
        if not moves:
            lines.append(f"    {state} --> [*]")
    return "\n".join([*lines, "```"])
