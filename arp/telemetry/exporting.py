"""Where spans and figures go: to the SDK, and from there as the standard variables say.

Exporters are OTLP over HTTP, the console, or none; gRPC would double the size of the extra. The
providers are not the global ones of the process: our spans need ids that come from facts, and an
author's own instrumentation belongs to the author.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from threading import Thread
from typing import TypeVar

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.metrics import Counter, Histogram, Meter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import (
    ConsoleMetricExporter,
    MetricExporter,
    MetricReader,
    PeriodicExportingMetricReader,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter, SpanExporter
from opentelemetry.sdk.trace.id_generator import IdGenerator
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
from arp.telemetry.fold import Figure, Measured, MeasuredSpan

logger = logging.getLogger(__name__)

SCOPE = "arp"

SERVICE = "arp"
"""The name of a service without one."""

CLOSE_S = 2.0
"""How long the last spans may take when the server stops, which it does in ten seconds."""

MOST_TRACES = 10_000
"""Traces of which it is remembered whether they are sampled."""

_KINDS = {"internal": SpanKind.INTERNAL, "client": SpanKind.CLIENT, "server": SpanKind.SERVER}

_SPANS: Mapping[str, Callable[[], SpanExporter]] = {
    "otlp": OTLPSpanExporter,
    "console": lambda: ConsoleSpanExporter(out=sys.stderr),
}
"""Standard output is a renderer's, under `--stdio`."""

_METRICS: Mapping[str, Callable[[], MetricExporter]] = {
    "otlp": OTLPMetricExporter,
    "console": lambda: ConsoleMetricExporter(out=sys.stderr),
}

T = TypeVar("T")


def open_sink(environment: Mapping[str, str]) -> Sink:
    """Return a sink that exports as the environment says; without a word there, by OTLP.

    The SDK reads the rest of the standard variables itself: endpoint, headers, intervals, sampler.

    Raises:
        ValueError: It names an exporter that there is not; nothing is begun.
    """
    span_exporters = _named(environment, "OTEL_TRACES_EXPORTER", _SPANS)
    metric_exporters = _named(environment, "OTEL_METRICS_EXPORTER", _METRICS)
    return Sink(
        [BatchSpanProcessor(exporter()) for exporter in span_exporters],
        [PeriodicExportingMetricReader(exporter()) for exporter in metric_exporters],
    )


class Sink:
    """Hands spans and figures to the SDK, under ids and times of the facts; waits for no network.

    Args:
        processors: Receive the spans; shut down with the sink.
        readers: Receive the figures; shut down with the sink.
    """

    def __init__(self, processors: list[SpanProcessor], readers: list[MetricReader]) -> None:
        resource, self._ids = _resource(), GivenIds()
        self._traces = TracerProvider(
            resource=resource, id_generator=self._ids, shutdown_on_exit=False
        )
        for processor in processors:
            self._traces.add_span_processor(processor)
        self._meters = MeterProvider(readers, resource, shutdown_on_exit=False)
        self._tracer = self._traces.get_tracer(SCOPE)
        self._instruments = _instruments(self._meters.get_meter(SCOPE))
        self._sampled: dict[str, bool] = {}

    def take(self, measured: Iterable[Measured]) -> None:
        """Take spans and figures in the order in which they ended."""
        for one in measured:
            if isinstance(one, MeasuredSpan):
                self._span(one)
            else:
                self._figure(one)

    def is_sampled(self, trace: Trace) -> bool:
        """Return what the sampler says of a turn, which ends after what is in it."""
        known = self._sampled.get(trace.trace_id)
        if known is None:
            if len(self._sampled) >= MOST_TRACES:
                del self._sampled[next(iter(self._sampled))]
            trace_id = int(trace.trace_id, 16)
            result = self._traces.sampler.should_sample(_caller(trace), trace_id, "invoke_agent")
            known = result.decision is Decision.RECORD_AND_SAMPLE
            self._sampled[trace.trace_id] = known
        return known

    def _span(self, span: MeasuredSpan) -> None:
        if span.parent_id is None:
            above = _caller(span.trace)
        else:
            above = _context(span.trace.trace_id, span.parent_id, self.is_sampled(span.trace))
        self._ids.trace_id, self._ids.span_id = int(span.trace.trace_id, 16), int(span.span_id, 16)
        made = self._tracer.start_span(
            span.name, above, _KINDS[span.kind], span.attributes, start_time=span.start_ns
        )
        if span.error is not None:
            made.set_status(Status(StatusCode.ERROR, span.error))
        made.end(span.end_ns)

    def _figure(self, figure: Figure) -> None:
        instrument = self._instruments[figure.metric]
        if isinstance(instrument, Histogram):
            instrument.record(figure.value, figure.attributes)
        else:
            instrument.add(figure.value, figure.attributes)

    def close(self) -> None:
        """Send what is left, for `CLOSE_S` at most. It waits for the network: not in the loop.

        The SDK tries again for as long as half a minute and cannot be configured otherwise; so it
        closes in threads that nothing waits for.
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


class GivenIds(IdGenerator):
    """Returns the ids of the span that is made now, in place of random ones; for one thread."""

    def __init__(self) -> None:
        self.trace_id = 0
        self.span_id = 0

    def generate_trace_id(self) -> int:
        """Return the trace's id."""
        return self.trace_id

    def generate_span_id(self) -> int:
        """Return the span's id."""
        return self.span_id

    def is_trace_id_random(self) -> bool:
        """Return that samplers may rely on it: an id is the end of a hash."""
        return True


def _close(what: str, close: Callable[[], object]) -> None:
    try:
        close()
    except Exception:
        # Whatever an exporter raises, the server stops in good order.
        logger.exception("the last %s could not be sent", what)


def _caller(trace: Trace) -> Context:
    """Return the parent context of a turn: that of its caller, or an empty one."""
    caller = trace.caller
    if caller is None:
        return Context()
    return _context(trace.trace_id, caller.span_id, caller.sampled, is_remote=True)


def _context(trace_id: str, span_id: str, is_sampled: bool, is_remote: bool = False) -> Context:
    flags = TraceFlags(TraceFlags.SAMPLED if is_sampled else TraceFlags.DEFAULT)
    named = SpanContext(int(trace_id, 16), int(span_id, 16), is_remote, flags)
    return set_span_in_context(NonRecordingSpan(named), Context())


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


def _named(
    environment: Mapping[str, str], variable: str, known: Mapping[str, Callable[[], T]]
) -> list[Callable[[], T]]:
    names = [name.strip() for name in environment.get(variable, "").split(",")]
    wanted = [name for name in names if name] or ["otlp"]
    unknown = [name for name in wanted if name not in known and name != "none"]
    if unknown:
        listed = ", ".join((*known, "none"))
        raise ValueError(f"{variable}: no exporter {unknown[0]!r:.40} here; there are {listed}")
    return [known[name] for name in wanted if name != "none"]


def _resource() -> Resource:
    found = Resource.create()
    if str(found.attributes.get("service.name", "")).startswith("unknown_service"):
        return found.merge(Resource({"service.name": SERVICE}))
    return found
