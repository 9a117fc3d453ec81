"""Hands spans and figures to the SDK, under the ids and times that the facts gave them."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from threading import Thread

from opentelemetry.context import Context
from opentelemetry.metrics import Counter, Histogram, Meter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import Decision
from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    set_span_in_context,
)

from arp.ledger.tracing import Trace
from arp.telemetry.conventions import METRICS
from arp.telemetry.given_ids import GivenIds
from arp.telemetry.measured import Figure, Measured, Span

logger = logging.getLogger(__name__)

SCOPE = "arp"

CLOSE_S = 2.0
"""How long the last spans may take to leave when the server stops, which it does in ten seconds."""

MOST_TRACES = 10_000
"""Traces of which it is remembered whether they are sampled."""

_KINDS = {"internal": SpanKind.INTERNAL, "client": SpanKind.CLIENT, "server": SpanKind.SERVER}


class Sink:
    """Takes what is measured; nothing here waits for a network.

    Args:
        traces: With the processors that take spans, and `ids` as its generator.
        meters: With the readers that take figures.
        ids: Of the span that is made.
    """

    def __init__(self, traces: TracerProvider, meters: MeterProvider, ids: GivenIds) -> None:
        self._traces = traces
        self._meters = meters
        self._ids = ids
        self._tracer = traces.get_tracer(SCOPE)
        self._instruments = _instruments(meters.get_meter(SCOPE))
        self._sampled: dict[str, bool] = {}

    def take(self, measured: Iterable[Measured]) -> None:
        """Takes spans and figures in the order in which they came to be."""
        for one in measured:
            if isinstance(one, Span):
                self._span(one)
            else:
                self._figure(one)

    def _span(self, span: Span) -> None:
        self._ids.trace_id = int(span.trace.trace_id, 16)
        self._ids.span_id = int(span.span_id, 16)
        made = self._tracer.start_span(
            span.name,
            self._above(span),
            _KINDS[span.kind],
            span.attributes,
            start_time=span.start_ns,
        )
        if span.error is not None:
            made.set_status(Status(StatusCode.ERROR, span.error))
        made.end(span.end_ns)

    def _above(self, span: Span) -> Context:
        if span.parent_id is None:
            return _caller(span.trace)
        flags = TraceFlags.SAMPLED if self.is_sampled(span.trace) else TraceFlags.DEFAULT
        trace_id, span_id = int(span.trace.trace_id, 16), int(span.parent_id, 16)
        above = SpanContext(trace_id, span_id, is_remote=False, trace_flags=TraceFlags(flags))
        return set_span_in_context(NonRecordingSpan(above), Context())

    def is_sampled(self, trace: Trace) -> bool:
        """Return what the sampler will say of the turn, which ends after what is in it."""
        known = self._sampled.get(trace.trace_id)
        if known is None:
            if len(self._sampled) >= MOST_TRACES:
                del self._sampled[next(iter(self._sampled))]
            trace_id = int(trace.trace_id, 16)
            said = self._traces.sampler.should_sample(_caller(trace), trace_id, "invoke_agent")
            known = said.decision is Decision.RECORD_AND_SAMPLE
            self._sampled[trace.trace_id] = known
        return known

    def _figure(self, figure: Figure) -> None:
        instrument = self._instruments[figure.metric]
        if isinstance(instrument, Histogram):
            instrument.record(figure.value, figure.attributes)
        else:
            instrument.add(figure.value, figure.attributes)

    def close(self) -> None:
        """Sends what is left, for `CLOSE_S` at most. It waits for the network: not in the loop.

        The SDK tries again for as long as half a minute and cannot be told otherwise; so it closes
        in threads that nobody has to wait for.
        """
        until = time.monotonic() + CLOSE_S
        closing = [
            Thread(target=_close, args=(what, close), name=f"arp-{what}", daemon=True)
            for what, close in (
                ("spans", self._traces.shutdown),
                ("metrics", self._meters.shutdown),
            )
        ]
        for thread in closing:
            thread.start()
        for thread in closing:
            thread.join(max(0.0, until - time.monotonic()))
            if thread.is_alive():
                logger.warning("%s: the last could not be sent in %g s", thread.name, CLOSE_S)


def _close(what: str, close: Callable[[], object]) -> None:
    try:
        close()
    except Exception:
        # Whatever an exporter raises, the server stops in good order.
        logger.exception("the last %s could not be sent", what)


def _caller(trace: Trace) -> Context:
    """Gives the context of what is above a turn: whoever asked for it, or nothing."""
    caller = trace.caller
    if caller is None:
        return Context()
    flags = TraceFlags(TraceFlags.SAMPLED if caller.sampled else TraceFlags.DEFAULT)
    trace_id, span_id = int(caller.trace_id, 16), int(caller.span_id, 16)
    outside = SpanContext(trace_id, span_id, is_remote=True, trace_flags=flags)
    return set_span_in_context(NonRecordingSpan(outside), Context())


def _instruments(meter: Meter) -> dict[str, Histogram | Counter]:
    return {
        name: meter.create_histogram(
            name,
            metric.unit,
            metric.description,
            explicit_bucket_boundaries_advisory=list(metric.boundaries),
        )
        if metric.boundaries
        else meter.create_counter(name, metric.unit, metric.description)
        for name, metric in METRICS.items()
    }
