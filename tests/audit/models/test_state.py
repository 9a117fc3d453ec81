"""All that is remembered, and the table of what folds into what."""

from __future__ import annotations

from pathlib import Path

import msgspec

from arp.audit.models.read_model import ReadModel
from arp.audit.models.state import MODEL_VERSION, RULES
from arp.ledger.fact import decode
from arp.ledger.fact_types import REQUIRED_IDS

HERE = Path(__file__).parent


def test_facts_come_to_what_they_came_to_in_this_version() -> None:
    """If this fails, models that are stored would be gone on with as if they meant the same.

    Raise `MODEL_VERSION`, so that they are made again, and write the new model to a new file.
    """
    model = ReadModel()
    facts = (HERE / f"version_{MODEL_VERSION}.ndjson").read_bytes().splitlines()
    model.fold_all(decode(line) for line in facts)
    known = (HERE / f"version_{MODEL_VERSION}.json").read_bytes()
    assert msgspec.json.format(model.encode(), indent=1) + b"\n" == known


def test_each_type_has_its_place_in_the_table() -> None:
    assert RULES.keys() == REQUIRED_IDS.keys()


def test_each_type_changes_something_but_a_summary_of_thinking() -> None:
    """That one is counted by its type, and told in full by the log."""
    assert {name for name, rules in RULES.items() if not rules} == {"reasoning.summary"}
