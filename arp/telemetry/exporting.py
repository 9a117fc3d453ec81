"""`Sink`: sends spans and figures through the SDK of OpenTelemetry.

The standard environment variables choose the exporter: OTLP over HTTP, the console, or none; gRPC
would double the size of the extra. The providers are not the global ones of the process: our spans
need ids that come from facts, and an author's own instrumentation belongs to the author.
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
"""Service name if the environment has none."""

CLOSE_S = 2.0
"""Seconds for sending the last spans when the server stops; the whole stop may take ten seconds."""

MOST_TRACES = 10_000
"""Largest number of traces with a remembered sampling decision."""

_KINDS = {"internal": SpanKind.INTERNAL, "client": SpanKind.CLIENT, "server": SpanKind.SERVER}

_SPANS: Mapping[str, Callable[[], SpanExporter]] = {
    "otlp": OTLPSpanExporter,
    "console": lambda: ConsoleSpanExporter(out=sys.stderr),
}
"""Exporters by name. The console is standard error, because standard output belongs to the renderer
under `--stdio`."""

_METRICS: Mapping[str, Callable[[], MetricExporter]] = {
    "otlp": OTLPMetricExporter,
    "console": lambda: ConsoleMetricExporter(out=sys.stderr),
}

T = TypeVar("T")


def open_sink(environment: Mapping[str, str]) -> Sink:
    """Return a sink with the exporters that the environment names; OTLP if it names none.

    The SDK reads the other standard variables itself: endpoint, headers, intervals, sampler.

    Raises:
        ValueError: The environment names an unknown exporter; nothing was started.
    """
    span_exporters = _named(environment, "OTEL_TRACES_EXPORTER", _SPANS)
    metric_exporters = _named(environment, "OTEL_METRICS_EXPORTER", _METRICS)
    return Sink(
        [BatchSpanProcessor(exporter()) for exporter in span_exporters],
        [PeriodicExportingMetricReader(exporter()) for exporter in metric_exporters],
    )


class Sink:
    """Passes spans and figures to the SDK, with ids and times of the facts, without waiting.

    Args:
        processors: Receivers of the spans; the sink shuts them down.
        readers: Receivers of the figures; the sink shuts them down.
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

    def receive(self, measured: Iterable[Measured]) -> None:
        """Receive spans and figures in the order of their ends."""
        for one in measured:
            if isinstance(one, MeasuredSpan):
                self._span(one)
            else:
                self._figure(one)

    def is_sampled(self, trace: Trace) -> bool:
        """Return whether the sampler keeps a turn.

        The spans inside a turn are sent before the span of the turn, so they cannot wait for its
        decision.
        """
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
        """Send the rest, for at most `CLOSE_S`. Do not call this in the event loop: it blocks.

        The SDK retries for up to half a minute, which cannot be configured. Therefore it is closed
        in daemon threads, which are abandoned after `CLOSE_S`.
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
    """Returns the ids of the current span instead of random ids; not thread-safe."""

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
        """Return true. A trace id is the end of a hash, which is random enough for samplers."""
        return True


def _close(what: str, close: Callable[[], object]) -> None:
    try:
        close()
    except Exception:
        # An error of an exporter must not disturb the stop of the server.
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
