"""A fact in one line: where, when, what, about what, and its gist."""

from __future__ import annotations

import json
from typing import Any

import click

from arp.commands.ledger.events import fact_line

FACT = {
    "schemaVersion": "lime-profile-0.4.0",
    "runtimeId": "arp",
    "sessionId": "s",
    "eventId": "s-7",
    "timestamp": "2026-11-21T08:00:01.234567Z",
    "sequence": 7,
    "type": "tool.failed",
    "payload": {"tool": "read", "error": "no\nsuch file"},
    "turnId": "t1",
    "toolCallId": "t1.1",
}


def line(width: int = 100, **changed: Any) -> str:
    return click.unstyle(fact_line(json.dumps({**FACT, **changed}).encode(), width))


def test_line_names_what_it_is_about() -> None:
    assert line() == (
        "      7  08:00:01.234  tool.failed              t1 t1.1  tool=read no such file"
    )


def test_reason_of_a_status_comes_first() -> None:
    told = line(type="turn.failed", statusReason="cancelled", payload={"status": "cancelled"})
    assert told.endswith("t1 t1.1  cancelled status=cancelled")


def test_line_is_cut_to_the_terminal() -> None:
    told = line(80, payload={"text": "x" * 500})
    assert len(told) == 80
    assert told.endswith("…")


def test_empty_fields_and_components_are_left_out() -> None:
    payload = {"component": {"id": "a"}, "reason": "", "outputs": [], "decision": "answered"}
    assert line(payload=payload).endswith("t1 t1.1  answered")


def test_what_is_no_fact_is_shown_as_it_is() -> None:
    assert fact_line(b"\x1b[31mno fact", 40) == "␛[31mno fact"
