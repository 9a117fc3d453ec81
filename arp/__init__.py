"""ARP, the Agent Rendering Protocol: one agent, every screen.

    from arp import App, Turn, ui

    app = App(title="Echo")

    @app.agent
    async def echo(turn: Turn) -> None:
        await turn.say(turn.text)

`arp serve app.py` serves it to browsers, terminals and every other renderer of the protocol.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from arp import ui
    from arp.access.incoming import IncomingConnection
    from arp.access.oidc import Oidc
    from arp.access.principal import User
    from arp.access.settings import Access, Bounds
    from arp.app import App, serve
    from arp.client.client import ArpClient, connect
    from arp.live.settings import HubSettings
    from arp.protocol.components import Component
    from arp.protocol.errors import ArpError, ErrorCode
    from arp.protocol.limits import Limits
    from arp.protocol.messages import Command, CommandChoice
    from arp.turn.question_outcome import DECLINED, QuestionExpired
    from arp.turn.sync_turn import SyncTurn
    from arp.turn.tool import ToolFailed, ToolProvider, ToolSpec, tool
    from arp.turn.turn import Turn

__all__ = [
    "DECLINED",
    "Access",
    "App",
    "ArpClient",
    "ArpError",
    "Bounds",
    "Command",
    "CommandChoice",
    "Component",
    "ErrorCode",
    "HubSettings",
    "IncomingConnection",
    "Limits",
    "Oidc",
    "QuestionExpired",
    "SyncTurn",
    "ToolFailed",
    "ToolProvider",
    "ToolSpec",
    "Turn",
    "User",
    "connect",
    "serve",
    "tool",
    "ui",
]
__version__ = "0.1.0"


_LATER: Final = {
    "Access": "arp.access.settings",
    "App": "arp.app",
    "ArpError": "arp.protocol.errors",
    "Bounds": "arp.access.settings",
    "Command": "arp.protocol.messages",
    "CommandChoice": "arp.protocol.messages",
    "Component": "arp.protocol.components",
    "ErrorCode": "arp.protocol.errors",
    "HubSettings": "arp.live.settings",
    "IncomingConnection": "arp.access.incoming",
    "Limits": "arp.protocol.limits",
    "Oidc": "arp.access.oidc",
    "User": "arp.access.principal",
    "serve": "arp.app",
    "ArpClient": "arp.client.client",
    "connect": "arp.client.client",
    "DECLINED": "arp.turn.question_outcome",
    "QuestionExpired": "arp.turn.question_outcome",
    "ToolFailed": "arp.turn.tool",
    "ToolProvider": "arp.turn.tool",
    "ToolSpec": "arp.turn.tool",
    "tool": "arp.turn.tool",
    "SyncTurn": "arp.turn.sync_turn",
    "Turn": "arp.turn.turn",
}
"""Module of each name. A module is loaded when one of its names is first used, because pytest and
the command line import this package in every run."""


def __getattr__(name: str) -> Any:
    if name == "ui":
        return import_module("arp.ui")
    if name not in _LATER:
        raise AttributeError(f"module 'arp' has no attribute {name!r}")
    return getattr(import_module(_LATER[name]), name)
