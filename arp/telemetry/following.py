"""Begins to follow a hub, if OpenTelemetry is there."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

from arp.hub.hub import Hub
from arp.telemetry.settings import EXTRA, is_installed

if TYPE_CHECKING:
    from arp.telemetry.follower import Follower

logger = logging.getLogger(__name__)


def begin(hub: Hub, environment: Mapping[str, str], began_ns: int) -> Follower | None:
    """Begins to tell what happens in a hub to where the standard variables say.

    Without the extra, or with variables that cannot be followed, the log says so and nothing is
    told: an agent must not stop for want of telemetry.

    Args:
        hub: A started one.
        environment: With the standard variables.
        began_ns: When it began to start: what it mended then is told, what was over before is not.
    """
    if not is_installed():
        logger.warning("telemetry is wanted and not there; install %s", EXTRA)
        return None
    from arp.telemetry.follower import Follower
    from arp.telemetry.providers import open_sink

    try:
        sink = open_sink(environment)
    except ValueError as error:
        logger.warning("no telemetry: %s", error)
        return None
    follower = Follower(hub, sink, began_ns)
    follower.start()
    return follower
