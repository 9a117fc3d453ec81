"""ARP, the Agent Rendering Protocol: one agent, every screen.

    from arp import App, Turn, ui

    app = App(title="Echo")

    @app.agent
    async def echo(turn: Turn) -> None:
        await turn.say(turn.text)

`arp serve app.py` serves it to browsers, terminals and whoever speaks the protocol.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from arp import ui
from arp.app import App, serve
from arp.hub.settings import HubSettings
from arp.hub.turn import Turn
from arp.protocol.component import Component
from arp.protocol.errors import ArpError, ErrorCode
from arp.protocol.limits import Limits
from arp.server.served import Access

if TYPE_CHECKING:
    from arp.client.client import ArpClient, connect

__all__ = [
    "Access",
    "App",
    "ArpClient",
    "ArpError",
    "Component",
    "ErrorCode",
    "HubSettings",
    "Limits",
    "Turn",
    "connect",
    "serve",
    "ui",
]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Loads the client when it is asked for: an agent needs none."""
    if name in ("ArpClient", "connect"):
        from arp.client import client

        return getattr(client, name)
    raise AttributeError(f"module 'arp' has no attribute {name!r}")
