"""All that is remembered, and the table of what folds into what."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import msgspec

from arp.audit.models.entities import RECORD_KINDS
from arp.audit.models.read_model import ReadModel
from arp.audit.models.state import MODEL_VERSION, RULES, TABLES
from arp.ledger.fact import decode
from arp.ledger.fact_types import FACT_TYPES, PROFILE_TYPES
from arp.ledger.record_steps import CustomRule, RecordKind, RuleTable

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
    assert RULES.keys() == FACT_TYPES.keys()


def test_each_type_changes_something_but_a_summary_of_thinking() -> None:
    """That one is counted by its type, and told in full by the log."""
    assert {name for name in PROFILE_TYPES if not RULES[name]} == {"reasoning.summary"}


def test_a_row_names_each_rule_that_a_table_has_for_its_type() -> None:
    named = {
        (effect.table, fact_type)
        for fact_type, row in FACT_TYPES.items()
        for effect in row.effects
        if isinstance(effect, CustomRule)
    }
    assert named == {
        (name, fact_type) for name, (_, table) in TABLES.items() for fact_type in table
    }


def test_each_kind_of_records_that_a_row_may_name_is_defined() -> None:
    assert set(get_args(RecordKind)) == RECORD_KINDS.keys()
    assert set(get_args(RuleTable)) == TABLES.keys()
