"""`AppExtension`: what a part brings that is served with an app."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Protocol

from msgspec import Struct

from arp.hub.runner import Handler
from arp.protocol.messages import Workflow


class AppExtension(Struct, frozen=True):
    """What a part brings that is served with an app: the Tool Agent is one."""

    open: Callable[[], Awaitable[object]]
    """Called when the server starts, before its hub."""
    aclose: Callable[[], Awaitable[object]]
    """Called when the server stops, behind its hub."""
    hub_changed: Callable[[Any], None]
    """Called with the hub when it has started, and with `None` when it ends."""
    agents: Mapping[str, tuple[Workflow, Handler]] = MappingProxyType({})
    """Agents, behind those of the author."""
    routes: Sequence[Any] = ()
    """Routes of Starlette, before those of the agents."""
    origins: Mapping[str, Handler] = MappingProxyType({})
    """What runs in place of an agent in turns that a program began, by what it calls itself."""


class ExtensibleApp(Protocol):
    """What takes an extension; an `App` does."""

    def extend(self, extension: AppExtension) -> None:
        """Take what a part brings."""
