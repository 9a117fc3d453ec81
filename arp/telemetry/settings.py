"""Whether telemetry is wanted and can be had, and its start.

OpenTelemetry may not be installed: nothing here imports it before it is known to be there.
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
"""What to install."""

_ENDPOINTS = (
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
)

_NOWHERE = {"OTEL_TRACES_EXPORTER": "none", "OTEL_METRICS_EXPORTER": "none"}

_EXPORTERS = ("OTEL_TRACES_EXPORTER", "OTEL_METRICS_EXPORTER")


def is_configured(environment: Mapping[str, str]) -> bool:
    """Return whether the standard variables say where telemetry goes."""
    if is_disabled(environment):
        return False
    if any(environment.get(name, "").strip() for name in _ENDPOINTS):
        return True
    return any(environment.get(name, "none").strip() not in ("none", "") for name in _EXPORTERS)


def is_disabled(environment: Mapping[str, str]) -> bool:
    """Return whether the standard variable switches everything off."""
    return environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"


def is_installed() -> bool:
    """Return whether the extra is there."""
    return find_spec("opentelemetry") is not None and find_spec("opentelemetry.sdk") is not None


def begin(hub: Hub, environment: Mapping[str, str], began_ns: int) -> Follower | None:
    """Begin to send what happens in a hub to where the standard variables say.

    Without the extra, or with variables that cannot be followed, the log says so and nothing is
    sent: an agent must not stop for want of telemetry.

    Args:
        hub: A started one.
        environment: With the standard variables.
        began_ns: When it began to start: what it mended then is sent, what was over before is not.
    """
    if not is_installed():
        logger.warning("Telemetry is wanted and not installed; install %s", EXTRA)
        return None
    # Only now: they import OpenTelemetry.
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
