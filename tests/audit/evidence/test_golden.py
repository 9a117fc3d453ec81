"""What logs come to in exports: each document byte for byte what it was before."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import msgspec
import pytest

from arp.audit.evidence.checking import check_pack
from arp.audit.evidence.comparison import compare
from arp.audit.evidence.export import (
    CaseExport,
    EvidenceExport,
    NothingToExport,
    Order,
    ReviewExport,
)
from arp.audit.evidence.manifest import FACTS, Scope, TrialOf
from arp.audit.evidence.pack import Pack
from arp.audit.evidence.trials import TrialBook
from arp.ledger.fact import encode
from tests.audit.evidence.ranges import range_of
from tests.ledger.golden import LOGS, readable, stored

GOLDEN = Path(__file__).parent / "golden.tar.xz"

CREATED = "2026-02-03T04:05:06.000Z"

SCOPES: dict[str, Scope] = {
    "all": Scope(),
    "thread": Scope(thread_id="side"),
    "turn": Scope(turn_id="t3"),
    "task": Scope(task_id="task2"),
}


def made(log: str) -> dict[str, bytes]:
    """Return all documents of a log: of the session, and of parts of it."""
    facts = LOGS[log]()
    pages = [list(enumerate(map(encode, facts), 1))]
    documents: dict[str, bytes] = {}
    for name, scope in SCOPES.items():
        try:
            found = range_of(scope, pages)
        except NothingToExport as error:
            documents[f"{log}/{name}/refused"] = error.message.encode()
            continue
        order = Order(
            session_id="s", epoch="e1", evidence_id="evidence", created_at=CREATED, scope=scope
        )
        trial = TrialOf("trial2", "agent") if name == "all" else None
        with tempfile.TemporaryDirectory() as place:
            with EvidenceExport(order, Path(place, "pack"), found, trial) as export:
                export.add_page(pages[0])
                export.finish(None)
            with Pack(Path(place, "pack")) as pack:
                assert check_pack(pack).broken == []
                for part in sorted(pack.names() - {FACTS}):
                    documents[f"{log}/{name}/{part}"] = pack.read(part)
        for part, maker in (
            ("case.json", CaseExport(scope, found)),
            ("review.md", ReviewExport(order, found)),
        ):
            maker.add_page(pages[0])
            try:
                documents[f"{log}/{name}/{part}"] = maker.finish()
            except NothingToExport as error:
                documents[f"{log}/{name}/{part}"] = error.message.encode()
    book = TrialBook()
    for fact in facts:
        book.add(fact)
    trials = list(book.trials.values())
    told: dict[str, Any] = msgspec.to_builtins(book.trials)
    documents[f"{log}/trials.json"] = readable(told)
    half = len(trials) // 2
    compared = compare(trials[:half], trials[half:])
    documents[f"{log}/comparison.json"] = readable(msgspec.json.encode(compared))
    return documents


@pytest.mark.parametrize("log", LOGS)
def test_documents_are_what_they_were(log: str) -> None:
    expected = {name: data for name, data in stored(GOLDEN).items() if name.startswith(f"{log}/")}
    found = made(log)
    assert found.keys() == expected.keys()
    for name, data in expected.items():
        assert found[name] == data, name
