"""Traces of turns: what comes from outside is read by the book, what is made here is the same."""

from __future__ import annotations

import pytest

from arp.ledger.fact import SCHEMA_VERSION, Fact
from arp.ledger.tracing import (
    Caller,
    Trace,
    hex_id,
    read_traceparent,
    tool_span_id,
    trace_of,
    turn_ids,
)

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@pytest.mark.parametrize(
    ("text", "sampled"),
    [
        (f"00-{TRACE}-{SPAN}-01", True),
        (f"00-{TRACE}-{SPAN}-00", False),
        (f"00-{TRACE}-{SPAN}-03", True),
        (f"cc-{TRACE}-{SPAN}-01-what-a-later-version-adds", True),
    ],
)
def test_traceparent_is_read(text: str, sampled: bool) -> None:
    assert read_traceparent(text) == Caller(TRACE, SPAN, sampled)


@pytest.mark.parametrize(
    "text",
    [
        *(None, "", "00", f"ff-{TRACE}-{SPAN}-01", f"00-{TRACE}-{SPAN}-01-more"),
        *(f"00-{'0' * 32}-{SPAN}-01", f"00-{TRACE}-{'0' * 16}-01", f"00-{TRACE}-{SPAN}"),
        *(f"00-{TRACE.upper()}-{SPAN}-01", f" 00-{TRACE}-{SPAN}-01", f"00-{TRACE}-{SPAN}-1"),
    ],
)
def test_what_is_no_traceparent_is_passed_over(text: str | None) -> None:
    """W3C Trace Context, 4.3: a trace that cannot be read is begun anew."""
    assert read_traceparent(text) is None
    assert "telemetry" not in turn_ids("s", "e", "t1", text)


def test_turn_has_ids_that_no_other_turn_session_or_log_has() -> None:
    made = [turn_ids(*names, None) for names in (("s", "e", "t1"), ("s", "e", "t2"))]
    made += [turn_ids(*names, None) for names in (("r", "e", "t1"), ("s", "f", "t1"))]
    assert len({str(ids["trace_id"]) for ids in made}) == 4
    assert made[0] == turn_ids("s", "e", "t1", None)
    assert [len(str(made[0][name])) for name in ("trace_id", "span_id")] == [32, 16]


def submitted(**ids: object) -> Fact:
    at, name = "2026-01-02T03:04:05Z", "turn.submitted"
    return Fact(SCHEMA_VERSION, "arp", "s", "s-1", at, 1, name, {}, turn_id="t1", **ids)  # type: ignore[arg-type]  # what a log may hold


def test_trace_is_read_back_from_the_first_fact() -> None:
    ids = turn_ids("s", "e", "t1", f"00-{TRACE}-{SPAN}-01")
    trace = trace_of(submitted(**ids), "e")
    assert (trace.trace_id, trace.caller) == (TRACE, Caller(TRACE, SPAN, True))
    assert trace.span_id not in (SPAN, "")


@pytest.mark.parametrize(
    "ids",
    [
        {},
        {"trace_id": "unknown", "span_id": "unknown"},
        {"trace_id": TRACE},
        {"telemetry": {"traceparent": f"00-{TRACE}-{SPAN}-01"}},
        {"telemetry": {"traceparent": 3}},
        {"telemetry": "x"},
    ],
)
def test_fact_without_a_trace_gets_the_one_that_is_made_of_its_names(
    ids: dict[str, object],
) -> None:
    made = turn_ids("s", "e", "t1", None)
    assert trace_of(submitted(**ids), "e") == Trace(str(made["trace_id"]), str(made["span_id"]))


def test_call_of_a_tool_has_a_span_that_no_other_call_turn_or_log_has() -> None:
    spans = [tool_span_id(TRACE, *names) for names in (("e", "t1.1"), ("e", "t1.2"), ("f", "t1.1"))]
    assert len({*spans, str(turn_ids("s", "e", "t1", None)["span_id"])}) == 4
    assert spans[0] == tool_span_id(TRACE, "e", "t1.1")


def test_names_are_told_apart_wherever_they_are_cut() -> None:
    assert hex_id(16, "ab", "c") != hex_id(16, "a", "bc")
