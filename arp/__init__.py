"""ARP, the Agent Rendering Protocol: one agent, every screen.

    from arp import App, Turn, ui

    app = App(title="Echo")

    @app.agent
    async def echo(turn: Turn) -> None:
        await turn.say(turn.text)

`arp serve app.py` serves it to browsers, terminals and whoever speaks the protocol.
"""

from __future__ import annotations

from arp import ui
from arp.app import App
from arp.hub.settings import HubSettings
from arp.hub.turn import Turn
from arp.protocol.component import Component
from arp.protocol.errors import ArpError, ErrorCode
from arp.protocol.limits import Limits

__all__ = ["App", "ArpError", "Component", "ErrorCode", "HubSettings", "Limits", "Turn", "ui"]
__version__ = "0.1.0"
