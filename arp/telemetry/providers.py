"""Where telemetry goes, as the standard variables say: OTLP over HTTP, the console, or nowhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import TypeVar

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
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

from arp.telemetry.given_ids import GivenIds
from arp.telemetry.settings import is_disabled
from arp.telemetry.sink import Sink

SERVICE = "arp"
"""What a service is called that nobody named."""

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
    """Gives a sink that exports as the environment says; OTLP where it says nothing.

    The SDK reads the rest of the standard variables itself: endpoint, headers, intervals, sampler.

    Raises:
        ValueError: It names an exporter that there is not; nothing is begun.
    """
    off = is_disabled(environment)
    span_exporters = [] if off else _named(environment, "OTEL_TRACES_EXPORTER", _SPANS)
    metric_exporters = [] if off else _named(environment, "OTEL_METRICS_EXPORTER", _METRICS)
    return make_sink(
        [BatchSpanProcessor(exporter()) for exporter in span_exporters],
        [PeriodicExportingMetricReader(exporter()) for exporter in metric_exporters],
    )


def make_sink(processors: list[SpanProcessor], readers: list[MetricReader]) -> Sink:
    """Gives a sink over parts of the SDK; it shuts them down with itself."""
    resource, ids = _resource(), GivenIds()
    traces = TracerProvider(resource=resource, id_generator=ids, shutdown_on_exit=False)
    for processor in processors:
        traces.add_span_processor(processor)
    meters = MeterProvider(metric_readers=readers, resource=resource, shutdown_on_exit=False)
    return Sink(traces, meters, ids)


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
