"""`AppExtension`: a component that is served together with an app."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Protocol

from msgspec import Struct

from arp.hub.runner import Handler
from arp.protocol.messages import Workflow


class AppExtension(Struct, frozen=True):
    """Parts of an app that a package contributes, for example the Tool Agent."""

    open: Callable[[], Awaitable[object]]
    """Called when the server starts, before its hub."""
    aclose: Callable[[], Awaitable[object]]
    """Called when the server stops, after its hub."""
    hub_changed: Callable[[Any], None]
    """Called with the hub after its start, and with `None` when it stops."""
    agents: Mapping[str, tuple[Workflow, Handler]] = MappingProxyType({})
    """Additional agents, listed after those of the author."""
    routes: Sequence[Any] = ()
    """Additional Starlette routes, matched before those of the agents."""
    origins: Mapping[str, Handler] = MappingProxyType({})
    """Handlers that replace the agent in turns that a program queued, by origin of the turn."""


class ExtensibleApp(Protocol):
    """Object that accepts an extension, such as an `App`."""

    def extend(self, extension: AppExtension) -> None:
        """Add the parts of an extension."""
