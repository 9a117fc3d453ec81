"""Logs that show every kind of fact, and archives of what they must come to, byte for byte.

`python -m tests.ledger.golden` writes the archives again: only if documents are meant to change.
"""

from __future__ import annotations

import io
import itertools
import tarfile
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, Final

import msgspec

from arp.ledger.fact import Fact
from arp.protocol.json_value import Json
from tests.ledger.histories import long_history

_ODD: Final[tuple[Json, ...]] = (
    None, True, 0, -1, 2**60, 1.5, "", "text", "x" * 500, [], [1, "two", None, "", "three"], {},
    {"kind": "person", "name": "ann"}, ["s"] * 60, {"deep": {"er": [1] * 300}}, [{"excluded": 1}],
    [{"count": 2, "model": "m"}], {"input_type": "text", "data": {"text": "Hi"}}, 2.0,
)  # fmt: skip

_IDS: Final = tuple(
    field.name
    for field in msgspec.structs.fields(Fact)
    if not field.required and field.name.endswith(("_id", "_ref"))
)


def _numbered(facts: list[Fact]) -> list[Fact]:
    return [
        msgspec.structs.replace(fact, sequence=sequence) for sequence, fact in enumerate(facts, 1)
    ]


def _shuffled() -> list[Fact]:
    """Return facts in an order in which nobody wrote them."""
    facts = long_history(700, seed=2)
    Random(2).shuffle(facts)
    return _numbered(facts)


def _odd() -> list[Fact]:
    """Return facts whose payloads say something else than their types promise."""
    values, chance = itertools.cycle(_ODD), Random(3)

    def other(fact: Fact) -> Fact:
        payload = {
            name: next(values) if chance.random() < 0.4 else value
            for name, value in fact.payload.items()
        }
        more = {"newer": next(values)} if chance.random() < 0.2 else {}
        beside = {
            name: next(values)
            for name in ("refs", "benchmark", "comparison")
            if chance.random() < 0.1
        }
        kind = "newer.type" if chance.random() < 0.02 else fact.type
        return msgspec.structs.replace(fact, type=kind, payload={**payload, **more}, **beside)

    return [other(fact) for fact in long_history(800, seed=3)]


def _unjoined() -> list[Fact]:
    """Return facts that lack ids, have those of others, or say that they are not known."""
    chance = Random(4)

    def other(fact: Fact) -> Fact:
        ids: dict[str, Any] = {
            name: chance.choice((None, "unknown", "main", "1"))
            for name in _IDS
            if getattr(fact, name) is not None and chance.random() < 0.15
        }
        if chance.random() < 0.1:
            ids |= dict.fromkeys(chance.sample(_IDS, 3), "1")
        if chance.random() < 0.1:
            ids["status"] = chance.choice(("failed", "cancelling", "preparing", "archived", "odd"))
        if chance.random() < 0.03:
            ids["timestamp"] = "no time"
        return msgspec.structs.replace(fact, **ids)

    return [other(fact) for fact in long_history(800, seed=4)]


LOGS: Final[Mapping[str, Callable[[], list[Fact]]]] = {
    "lawful": cache(lambda: long_history(3_000)),
    "shuffled": cache(_shuffled),
    "odd": cache(_odd),
    "unjoined": cache(_unjoined),
}
"""Name → the facts of a session."""


def readable(value: Json | bytes) -> bytes:
    """Return a value as JSON with one thing a line, so that a difference can be read."""
    data = value if isinstance(value, bytes) else msgspec.json.encode(value)
    return msgspec.json.format(data, indent=1) + b"\n"


@cache
def stored(path: Path) -> dict[str, bytes]:
    """Return the documents of an archive by their names."""
    with tarfile.open(path) as golden:
        files = ((entry.name, golden.extractfile(entry)) for entry in golden.getmembers())
        return {name: file.read() for name, file in files if file is not None}


def write(path: Path, documents: Mapping[str, bytes]) -> None:
    """Write the documents."""
    with tarfile.open(path, "w:xz", preset=9) as golden:
        for name, data in documents.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            golden.addfile(entry, io.BytesIO(data))


if __name__ == "__main__":
    from tests.audit.evidence import test_golden as of_exports
    from tests.audit.models import test_golden as of_models

    for one in (of_models, of_exports):
        write(one.GOLDEN, {name: data for log in LOGS for name, data in one.made(log).items()})
