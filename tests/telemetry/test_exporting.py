"""What is measured reaches the SDK under the ids, times and names that it has."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanKind, StatusCode

from arp.ledger.tracing import Caller, Trace
from arp.telemetry.conventions import METRICS
from arp.telemetry.fold import Attributes, Figure, MeasuredSpan
from tests.telemetry.rig import Exported

TURN = Trace("0" * 31 + "1", "0" * 15 + "2")


def span(**changed: Any) -> MeasuredSpan:
    given: dict[str, Any] = {"name": "work", "trace": TURN, "span_id": TURN.span_id}
    given |= {"parent_id": None, "start_ns": 1000, "end_ns": 3000, "attributes": {"a": 1}}
    return MeasuredSpan(**{**given, **changed})


def exported(*measured: MeasuredSpan | Figure) -> list[ReadableSpan]:
    out = Exported()
    out.sink().receive(measured)
    return out.spans


def test_span_has_its_own_ids_and_times() -> None:
    (told,) = exported(span(kind="client", error="tool.failed"))
    assert (told.context.trace_id, told.context.span_id, told.parent) == (1, 2, None)
    assert (told.start_time, told.end_time) == (1000, 3000)
    assert (told.name, told.kind) == ("work", SpanKind.CLIENT)
    assert dict(told.attributes or {}) == {"a": 1}
    assert (told.status.status_code, told.status.description) == (StatusCode.ERROR, "tool.failed")


def test_child_names_its_parent_and_root_its_caller() -> None:
    caller = Caller(TURN.trace_id, "0" * 15 + "9", sampled=True)
    root = Trace(TURN.trace_id, TURN.span_id, caller)
    child, turn = exported(
        span(trace=root, span_id="0" * 15 + "3", parent_id=root.span_id), span(trace=root)
    )
    assert child.parent is not None
    assert (child.context.span_id, child.parent.span_id, child.parent.is_remote) == (3, 2, False)
    assert turn.parent is not None
    assert (turn.context.span_id, turn.parent.span_id, turn.parent.is_remote) == (2, 9, True)


def test_what_the_caller_does_not_keep_is_not_kept() -> None:
    caller = Caller(TURN.trace_id, "0" * 15 + "9", sampled=False)
    root = Trace(TURN.trace_id, TURN.span_id, caller)
    child = span(trace=root, span_id="0" * 15 + "3", parent_id=root.span_id)
    assert exported(child, span(trace=root)) == []


@pytest.mark.parametrize(("ratio", "kept"), [("0", 0), ("1", 2)])
def test_the_sampler_decides_for_a_turn_and_all_in_it(
    monkeypatch: pytest.MonkeyPatch, ratio: str, kept: int
) -> None:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "parentbased_traceidratio")
    monkeypatch.setenv("OTEL_TRACES_SAMPLER_ARG", ratio)
    child = span(span_id="0" * 15 + "3", parent_id=TURN.span_id)
    assert len(exported(child, span())) == kept


def test_figures_become_histograms_with_the_advised_boundaries_and_counters() -> None:
    out = Exported()
    what: Attributes = {"gen_ai.agent.name": "sales"}
    out.sink().receive(
        [
            Figure("gen_ai.invoke_agent.duration", 0.5, what),
            Figure("gen_ai.invoke_agent.duration", 1.5, what),
            Figure("arp.cost", 0.25, {"arp.currency": "USD"}),
            Figure("arp.cost", 0.5, {"arp.currency": "USD"}),
        ]
    )
    metrics = out.metrics()
    (turns,) = metrics["gen_ai.invoke_agent.duration"]
    assert (turns.count, turns.sum, dict(turns.attributes)) == (2, 2.0, what)
    assert list(turns.explicit_bounds)[:3] == [0.01, 0.02, 0.04]
    (cost,) = metrics["arp.cost"]
    assert cost.value == 0.75


def test_every_metric_can_be_measured() -> None:
    out = Exported()
    out.sink().receive(Figure(name, 1, {}) for name in METRICS)
    assert set(out.metrics()) == set(METRICS)


def test_a_failing_exporter_is_logged_and_holds_nothing_up(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = Exported().sink()

    def broken(*_: object) -> None:
        raise RuntimeError("the exporter is broken")

    monkeypatch.setattr(sink._meters, "shutdown", broken)
    with caplog.at_level(logging.ERROR, "arp.telemetry.exporting"):
        sink.close()
    assert "the last metrics could not be sent" in caplog.text
