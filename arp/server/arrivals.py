"""One line in the log for each connection that opens: which way it came, and from where."""

from __future__ import annotations

import logging

from arp.hub.viewer import Viewer
from arp.transport.websocket import Scope

logger = logging.getLogger(__name__)


def log_arrival(viewer: Viewer, way: str, scope: Scope | None = None) -> None:
    """Logs that a renderer has come; `closed` logs that it went.

    Args:
        viewer: The renderer.
        way: How its frames travel.
        scope: Of its request; never its headers or its query, which may hold a token.
    """
    client = scope.get("client") if scope is not None else None
    place = f" from {client[0]}:{client[1]}" if client else ""
    logger.info("renderer %s came by %s (%s)%s", viewer.id, way, viewer.encoding, place)
