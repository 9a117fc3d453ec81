"""What passes between a session and others on its channels, besides what ARP itself carries."""

from __future__ import annotations

from typing import Literal

from arp.ledger.payload_fields import Resolution
from arp.record.scope import FactScope


class Channel:
    """A channel that carries more than a renderer; given by `turn.record.channel(id)`."""

    __slots__ = ("_scope", "id")

    def __init__(self, scope: FactScope, channel_id: str) -> None:
        self.id = channel_id
        self._scope = scope.within(channel_id=channel_id)

    def message(self, direction: Literal["in", "out"], text: str | None = None) -> None:
        """Notes a message; `direction` is seen from the session."""
        self._scope.record("channel.message", {"direction": direction, "text": text})

    def permission_forwarded(self, request_id: str, tool: str, to: str) -> None:
        """Notes that somebody else is asked for leave."""
        payload = {"tool": tool, "to": to}
        self._scope.record("channel.permission_forwarded", payload, request_id=request_id)

    def permission_returned(self, request_id: str, tool: str, decision: Resolution) -> None:
        """Notes what came back; only `allow` is an approval."""
        payload = {"tool": tool, "decision": decision}
        self._scope.record("channel.permission_returned", payload, request_id=request_id)
