"""The hand that notes: what joins its facts, and that every type of the profile can be noted."""

from __future__ import annotations

import pytest

from arp.ledger.fact_types import ProfileViolation
from tests.record.rig import Notes


async def test_everything_within_a_run_carries_its_ids() -> None:
    notes = Notes()
    inner = notes.record.within(task_id="a", run_id="a.1")
    await inner.process("make").output("x" * 3_000)
    inner.lasting.warning("slow")
    told = notes.told()
    assert len(told) == 4
    assert {(ids["task_id"], ids["run_id"]) for _, _, ids in told} == {("a", "a.1")}


def test_what_belongs_to_no_call_of_a_tool_says_so() -> None:
    """ledger.md 1: a missing correlation is written as `unavailable`."""
    notes = Notes()
    notes.record.tools(["read", "write"])
    notes.record.reasoned("It is small.")
    none = {"step_id": "unavailable", "tool_call_id": "unavailable"}
    assert notes.told() == [
        ("tool.catalog.resolved", {"tools": ["read", "write"]}, none),
        ("reasoning.summary", {"text": "It is small."}, {}),
    ]


def test_a_fact_of_any_other_type_can_be_noted_by_its_name() -> None:
    notes = Notes()
    notes.record("thread.started", {"title": "Second", "x-acme": 1})
    assert notes.told() == [("thread.started", {"title": "Second", "x-acme": 1}, {})]
    with pytest.raises(ProfileViolation, match="recorded by the session itself"):
        notes.record("turn.started", {})
