"""The check of schemas says what a full implementation of JSON Schema says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from arp.conformance.ledger.schema_check import SchemaCheck
from tests.ledger.standard import FORMATS

SCHEMAS = Path(__file__).resolve().parents[2] / "arp/ledger/schemas"

NAMES = [
    f"agentruntime{profile}-{kind}"
    for profile in ("", "-lime-profile")
    for kind in ("event", "snapshot")
]

EXAMPLES = [
    json.loads(path.read_text())
    for path in sorted((SCHEMAS / "fixtures/lime-profile").glob("*.json"))
]

VALUES: Any = st.sampled_from(
    [None, "", "x", 0, -1, 1.0, 1.5, True, [], [""], [{}], {}, {"status": "running"},
     "2026-05-11T10:05:00Z", "2026-05-11 10:05", "running", "turn.started"]
)  # fmt: skip


def places(document: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path of every value in a document."""
    if isinstance(document, dict):
        inner = document.items()
    elif isinstance(document, list):
        inner = dict(enumerate(document)).items()
    else:
        return [path]
    return [path, *[one for name, value in inner for one in places(value, (*path, name))]]


@pytest.mark.parametrize("name", NAMES)
@given(st.data())
def test_it_judges_as_the_reference_implementation(name: str, data: st.DataObject) -> None:
    schema = json.loads((SCHEMAS / f"{name}.schema.json").read_text())
    document = json.loads(json.dumps(data.draw(st.sampled_from(EXAMPLES))))
    for _ in range(data.draw(st.integers(0, 3))):
        *path, last = data.draw(st.sampled_from([one for one in places(document) if one]))
        place = document
        for step in path:
            place = place[step]
        if data.draw(st.booleans()) or isinstance(place, list):
            place[last] = data.draw(VALUES)
        else:
            del place[last]
    expected = Draft202012Validator(schema, format_checker=FORMATS).is_valid(document)
    assert (list(SchemaCheck(schema).faults(document)) == []) is expected


def test_a_schema_with_a_rule_that_is_not_known_is_refused() -> None:
    with pytest.raises(KeyError, match="multipleOf"):
        list(SchemaCheck({"multipleOf": 2}).faults(3))
