"""Settings of telemetry: whether it is configured and installed; `begin` starts it.

OpenTelemetry may be missing, so it is imported only after `is_installed` has returned true.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from arp.hub.hub import Hub
    from arp.telemetry.follower import Follower

logger = logging.getLogger(__name__)

EXTRA = "agent-rendering-protocol[otel]"
"""Name of the package with its extra, for messages."""

_ENDPOINTS = (
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
)

_NOWHERE = {"OTEL_TRACES_EXPORTER": "none", "OTEL_METRICS_EXPORTER": "none"}

_EXPORTERS = ("OTEL_TRACES_EXPORTER", "OTEL_METRICS_EXPORTER")


def is_configured(environment: Mapping[str, str]) -> bool:
    """Return whether the standard variables name a receiver of telemetry."""
    if is_disabled(environment):
        return False
    if any(environment.get(name, "").strip() for name in _ENDPOINTS):
        return True
    return any(environment.get(name, "none").strip() not in ("none", "") for name in _EXPORTERS)


def is_disabled(environment: Mapping[str, str]) -> bool:
    """Return whether the standard variable disables telemetry."""
    return environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"


def is_installed() -> bool:
    """Return whether the extra is installed."""
    return find_spec("opentelemetry") is not None and find_spec("opentelemetry.sdk") is not None


def begin(hub: Hub, environment: Mapping[str, str], began_ns: int) -> Follower | None:
    """Start to send spans and figures of a hub, as the standard variables configure it.

    If the extra is missing or the variables are invalid, a warning is logged and nothing is sent:
    an agent must also run without telemetry.

    Args:
        hub: Hub that has started.
        environment: Environment with the standard variables.
        began_ns: Time when the hub began to start, in nanoseconds since 1970, UTC. Spans that ended
            earlier are not sent; spans that the repair at the start ended are sent.

    Returns:
        The running follower; `None` if nothing is sent.
    """
    if not is_installed():
        logger.warning("Telemetry is wanted and not installed; install %s", EXTRA)
        return None
    # Imported here, because both import OpenTelemetry.
    from arp.telemetry.exporting import open_sink
    from arp.telemetry.follower import Follower

    try:
        sink = open_sink(_NOWHERE if is_disabled(environment) else environment)
    except ValueError as error:
        logger.warning("No telemetry: %s", error)
        return None
    follower = Follower(hub, sink, began_ns)
    follower.start()
    return follower
