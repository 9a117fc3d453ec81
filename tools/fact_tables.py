"""Tables of the facts for the docs: per type its ids and its payload, and what each field means."""

from __future__ import annotations

from itertools import groupby

import msgspec
from msgspec import inspect as shapes

from arp.ledger.fact import WRITTEN
from arp.ledger.fact_types import REQUIRED_IDS, ROWS
from arp.ledger.payload_fields import BESIDE, FIELDS, KINDS
from tools.doc_tables import attribute_docs, table, type_text

FAMILIES = {
    "session": "A session is created, renamed or pinned, shows another branch, or its `turn.state` "
    "or its commands change, or what the user set for it; feedback on a turn; an admin reads the "
    "session of another user.",
    "thread": "A thread of a session is started or changed.",
    "turn": "An input is accepted, its turn begins, and ends.",
    "task": "A task, which may outlive a turn, from its creation to its end, with its attempts.",
    "run": "The status of a turn or of an attempt at a task changes; also a request to cancel, "
    "promote or resume.",
    "model": "A request to a model, and the text that it returns. The text of every agent is "
    "`model.delta`.",
    "reasoning": "Reasoning of a model, and summaries of it.",
    "tool": "A use of a tool: its arguments, its progress, and its result or error.",
    "process": "A process that an agent runs: its input, its output, and its end.",
    "output": "A large output or a file is stored, cut off or deleted; secrets were removed from "
    "the fact before.",
    "action": "A question to the user, and its answer.",
    "permission": "A tool needs a permission: what the rules say, the request, and the decision.",
    "sandbox": "A sandbox is applied, or prevents an operation.",
    "hook": "A hook runs.",
    "policy": "A policy has a new value.",
    "queue": "The queue of turns changes.",
    "context": "What a model gets as its context, and compactions of the context.",
    "history": "A part of the log is loaded or repaired, or the session shows another version of a "
    "turn.",
    "routing": "Which model is used, and why.",
    "cost": "The cost of a request to a model, estimated before or recorded after it.",
    "rate_limit": "A rate limit refuses a request.",
    "quota": "A quota is almost or fully used.",
    "limit": "A limit has a new value.",
    "subagent": "An agent that works for this one.",
    "job": "Work in the background, item by item.",
    "channel": "A renderer connects or disconnects; messages and permissions on other channels.",
    "artifact": "A commit changes a surface, or an agent changes a file.",
    "evidence": "An export (evidence, replay, review or benchmark), and its result.",
    "snapshot": "A read model is stored, or a damaged one is made again.",
    "runtime": "A warning or an error of the runtime.",
    "benchmark": "A benchmark, its trials, rewards and comparisons.",
}
"""What the facts of each family record."""


def facts() -> str:
    """Return a section for each family: what it records, and a table of type, ids, payload."""
    parts = []
    for family, names in groupby(REQUIRED_IDS, key=lambda name: name.partition(".")[0]):
        rows = [[f"`{name}`", _ids(name), _payload(name)] for name in names]
        head = f"### {family}\n\n{FAMILIES[family]}\n\n"
        parts.append(head + table(["type", "ids", "payload"], rows))
    return "\n\n".join(parts)


def _ids(name: str) -> str:
    """Return what the profile requires, then what this project adds, in italics."""
    required = [f"`{WRITTEN[one]}`" for one in REQUIRED_IDS[name]]
    added = [f"*`{word[1:]}`*" for word in ROWS[name].split() if word[0] == "@"]
    return " ".join(required + added) or "–"


def _payload(name: str) -> str:
    words = [word for word in ROWS[name].split() if word[0] != "@"]
    return " ".join(_word(word) for word in words) or "–"


def _word(word: str) -> str:
    name, _, kind = word.removesuffix("?").partition(":")
    shown = f"`{name}?`" if word.endswith("?") else f"`{name}`"
    return f"{shown} ({_type(KINDS[kind])})" if kind else shown


def fields() -> str:
    """Return a line for each name that a payload may have."""
    rows = [[f"`{name}`", _type(kind), note] for name, (kind, note) in FIELDS.items()]
    return table(["field", "type", "meaning"], rows)


def beside() -> str:
    """Return a table for each object that is in a benchmark fact beside its payload."""
    return "\n\n".join(f"`{name}`:\n\n{_struct(kind)}" for name, kind in BESIDE.items())


def _struct(kind: type[msgspec.Struct]) -> str:
    notes = attribute_docs(kind)
    rows = [
        [
            f"`{field.encode_name}`" if field.required else f"`{field.encode_name}?`",
            type_text(shapes.type_info(field.type)).removesuffix(" or null"),
            notes.get(field.name, ""),
        ]
        for field in msgspec.structs.fields(kind)
    ]
    return table(["field", "type", "meaning"], rows)


def _type(kind: object) -> str:
    """Return the type in the words of JSON; of objects of ours also their fields."""
    info = shapes.type_info(kind)
    inner = info.item_type if isinstance(info, shapes.ListType) else info
    shown = type_text(info)
    if isinstance(inner, shapes.StructType):
        names = (_inner(field) for field in inner.fields)
        shown += " {" + ", ".join(names) + "}"
    return shown


def _inner(field: shapes.Field) -> str:
    words = field.type
    if isinstance(words, shapes.LiteralType):
        shown = f"{field.encode_name}: {' '.join(map(str, words.values))}"
    else:
        shown = field.encode_name
    return shown if field.required else shown + "?"
