"""What the payload of each fact holds."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from arp.ledger import fact_types, payload_fields
from arp.ledger.fact_family import BothOrNeither, OnlyIf
from arp.ledger.fact_types import FACT_TYPES, ProfileViolation
from arp.ledger.payload_fields import BESIDE, Authority, PayloadField
from arp.ledger.payloads import FIELDS, check_payload

SHA = "0123456789abcdef" * 4


def test_a_field_has_one_type_and_one_meaning_in_all_facts() -> None:
    """Only a field that `typed` made has another type, and keeps its meaning."""
    for fact_type, row in FACT_TYPES.items():
        for field in row.fields:
            known = FIELDS[field.name]
            base = field.base or field
            assert (base.type, field.meaning) == (known.type, known.meaning), fact_type
    assert list(FIELDS) == sorted(FIELDS)


def test_every_field_that_is_defined_stands_in_a_payload() -> None:
    modules = [payload_fields, *vars(fact_types).values()]
    defined = {
        value.name
        for module in modules
        if isinstance(module, ModuleType)
        for value in vars(module).values()
        if isinstance(value, PayloadField)
    }
    assert defined == set(FIELDS)


FITTING: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("turn.started", {}, {}),
    ("task.created", {"objective": "x"}, {}),
    ("task.created", {"objective": "x", "dependsOn": ["a"], "x-acme": 1}, {}),
    ("task.progress", {"fraction": 1, "done": 0}, {}),
    ("process.started", {"command": ["ls"]}, {"process_id": "p"}),
    ("process.started", {"command": "ls"}, {"process_id": "p"}),
    ("output.spilled", {"bytes": 0, "sha256": SHA, "preview": ""}, {"output_ref": "r"}),
    ("cost.recorded", {"model": "m", "inputTokens": 1, "outputTokens": 0}, {}),
    (
        "cost.recorded",
        {"model": "m", "inputTokens": 1, "outputTokens": 0, "amount": 1, "currency": "EUR"},
        {},
    ),
    ("permission.resolved", {"tool": "x", "decision": "allow"}, {"request_id": "r"}),
    (
        "permission.resolved",
        {"tool": "x", "decision": "deny", "deniedBy": {"kind": "mode", "name": "plan"}},
        {"request_id": "r"},
    ),
    (
        "permission.resolved",
        {"tool": "x", "decision": "deny", "deniedBy": Authority("mode", "plan")},
        {"request_id": "r"},
    ),
    (
        "benchmark.trial.completed",
        {},
        {
            "benchmark": {"datasetId": "d", "datasetVersion": "1", "x-acme": 1},
            "refs": {"trajectoryRef": "t.json"},
        },
    ),
]


@pytest.mark.parametrize(("fact_type", "payload", "ids"), FITTING)
def test_what_fits_its_row_passes_with_more_fields_too(
    fact_type: str, payload: dict[str, Any], ids: dict[str, Any]
) -> None:
    check_payload(fact_type, payload, ids)


REFUSED: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
    ("task.creatd", {}, {}, "no type 'task.creatd'; the nearest is task.created"),
    ("task.created", {}, {}, "task.created: payload.objective: missing"),
    (
        "task.created",
        {"objective": ""},
        {},
        "task.created: payload.objective: expected a text that is not empty",
    ),
    (
        "task.created",
        {"objective": None},
        {},
        "task.created: payload.objective: expected string, got null",
    ),
    (
        "task.attempt.started",
        {"attempt": 0},
        {},
        "task.attempt.started: payload.attempt: expected a whole number from 1",
    ),
    (
        "task.progress",
        {"fraction": 1.5},
        {},
        "task.progress: payload.fraction: expected a number from 0 to 1",
    ),
    (
        "task.waiting",
        {"waitingFor": "luck"},
        {},
        "task.waiting: payload.waitingFor: 'luck' is not one of input, permission, resource",
    ),
    ("process.started", {"command": "ls"}, {}, "process.started needs processId"),
    ("job.item.started", {"attempt": 1}, {"job_id": ""}, "job.item.started needs jobId, jobItemId"),
    (
        "output.spilled",
        {"bytes": 1, "sha256": SHA + "\n", "preview": ""},
        {"output_ref": "r"},
        "output.spilled: payload.sha256: expected 64 lower-case hex digits",
    ),
    (
        "permission.evaluated",
        {"tool": "x", "decision": "maybe", "decidedBy": {"kind": "rule", "name": "r"}},
        {"request_id": "r"},
        "permission.evaluated: payload.decision: 'maybe' is not one of allow, deny, ask",
    ),
    (
        "permission.evaluated",
        {"tool": "x", "decision": "ask", "decidedBy": {"kind": "luck", "name": "r"}},
        {"request_id": "r"},
        (
            "permission.evaluated: payload.decidedBy.kind: 'luck' is not one of rule, mode, hook, "
            "hostPolicy, person"
        ),
    ),
    (
        "permission.resolved",
        {"tool": "x", "decision": "deny"},
        {"request_id": "r"},
        "permission.resolved: payload: deniedBy must be present if and only if decision is deny",
    ),
    (
        "permission.resolved",
        {"tool": "x", "decision": "allow", "deniedBy": {"kind": "rule", "name": "r"}},
        {"request_id": "r"},
        "permission.resolved: payload: deniedBy must be present if and only if decision is deny",
    ),
    (
        "cost.recorded",
        {"model": "m", "inputTokens": 1, "outputTokens": 0, "amount": 1},
        {},
        "cost.recorded: payload: amount and currency must both be present or both be absent",
    ),
    (
        "evidence.changed",
        {
            "kind": "evidence",
            "state": "exported",
            "verification": {"outcome": "failed", "firstBad": 0},
        },
        {},
        "evidence.changed: payload.verification.firstBad: expected a whole number from 1",
    ),
    (
        "benchmark.dataset.resolved",
        {},
        {"benchmark": {"datasetId": "d"}},
        "benchmark.dataset.resolved: benchmark.datasetVersion: missing",
    ),
    (
        "benchmark.trial.completed",
        {},
        {"benchmark": {"datasetId": "d", "datasetVersion": "1"}, "refs": {"rewardRef": 1}},
        "benchmark.trial.completed: refs.rewardRef: expected string or null, got number",
    ),
]


@pytest.mark.parametrize(("fact_type", "payload", "ids", "told"), REFUSED)
def test_what_does_not_fit_is_refused_with_what_is_wrong_and_where(
    fact_type: str, payload: dict[str, Any], ids: dict[str, Any], told: str
) -> None:
    with pytest.raises(ProfileViolation) as refused:
        check_payload(fact_type, payload, ids)
    assert str(refused.value) == f"profile validation failed: {told}"


def test_ids_that_this_project_adds_stand_in_the_row() -> None:
    assert FACT_TYPES["job.item.failed"].written_ids == ("job_id", "job_item_id")
    assert FACT_TYPES["task.created"].written_ids == ()


def test_the_rules_about_two_fields_name_fields_of_their_rows() -> None:
    for row in FACT_TYPES.values():
        match row.relation:
            case BothOrNeither(one, other) | OnlyIf(one, other):
                assert {one.name, other.name} <= {field.name for field in row.fields}


def test_refs_of_what_is_no_benchmark_are_free() -> None:
    assert set(BESIDE) == {"benchmark", "comparison", "refs"}
    check_payload("runtime.warning", {"message": "x"}, {"refs": ["anything"]})
