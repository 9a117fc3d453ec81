"""What logs come to in the read model: each document byte for byte what it was before."""

from __future__ import annotations

from pathlib import Path

import pytest

from arp.audit.models.read_model import ReadModel
from tests.ledger.golden import LOGS, readable, stored

GOLDEN = Path(__file__).parent / "golden.tar.xz"

NOW = "2026-01-02T04:00:00Z"


def made(log: str) -> dict[str, bytes]:
    """Return what a log comes to: after a few facts, in the middle and at the end."""
    model, documents = ReadModel(), dict[str, bytes]()
    facts = LOGS[log]()
    for fact in facts:
        model.fold(fact)
        if fact.sequence in (40, len(facts) // 2, len(facts)):
            place = f"{log}/{fact.sequence}"
            documents[f"{place}/model.json"] = readable(model.encode())
            documents[f"{place}/session.json"] = readable(model.snapshot(NOW))
            for name in (None, "main", "side", "1"):
                documents[f"{place}/thread_{name}.json"] = readable(model.thread(name, NOW))
    return documents


@pytest.mark.parametrize("log", LOGS)
def test_documents_are_what_they_were(log: str) -> None:
    expected = {name: data for name, data in stored(GOLDEN).items() if name.startswith(f"{log}/")}
    found = made(log)
    assert found.keys() == expected.keys()
    for name, data in expected.items():
        assert found[name] == data, name


@pytest.mark.parametrize("log", LOGS)
def test_a_model_that_is_stored_often_comes_to_the_same(log: str) -> None:
    model = ReadModel()
    for fact in LOGS[log]():
        model.fold(fact)
        if fact.sequence % 53 == 0:
            model = ReadModel.decode(model.encode())
    expected = stored(GOLDEN)[f"{log}/{model.sequence}/model.json"]
    assert readable(model.encode()) == expected
