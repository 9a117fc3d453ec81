"""Whether telemetry is wanted and can be had. Knows no OpenTelemetry: it may not be installed."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec

EXTRA = "agent-rendering-protocol[otel]"
"""What to install."""

_ENDPOINTS = (
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
)

_EXPORTERS = ("OTEL_TRACES_EXPORTER", "OTEL_METRICS_EXPORTER")


def is_configured(environment: Mapping[str, str]) -> bool:
    """Tells whether the standard variables say where telemetry goes."""
    if is_disabled(environment):
        return False
    if any(environment.get(name, "").strip() for name in _ENDPOINTS):
        return True
    return any(environment.get(name, "none").strip() not in ("none", "") for name in _EXPORTERS)


def is_disabled(environment: Mapping[str, str]) -> bool:
    """Tells whether the standard variable switches everything off."""
    return environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"


def is_installed() -> bool:
    """Tells whether the extra is there."""
    return find_spec("opentelemetry") is not None and find_spec("opentelemetry.sdk") is not None
