"""What a server needs to know of an app: plain values, so that the server knows no `App`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from arp.hub.settings import HubSettings

if TYPE_CHECKING:
    from arp.hub.runner import Handler

Authenticate: TypeAlias = Callable[[dict[str, str]], Awaitable[str | None] | str | None]
"""Takes the request's headers (lower-case names), gives the user's name, or `None` to refuse."""


class Workflow(Struct, frozen=True):
    """One agent of an app, as lists show it."""

    name: str
    title: str
    description: str = ""
    suggestions: Sequence[str] = ()


class Access(Struct, frozen=True):
    """Who may come in."""

    token: str | None = None
    """Everyone must have it."""
    authenticate: Authenticate | None = None
    """Tells who asks; before `token`."""
    hosts: tuple[str, ...] = ()
    """Names under which the server is reached, besides this machine's own."""
    origins: tuple[str, ...] = ()
    """Web origins whose pages may use it, besides its own."""


class Served(Struct, frozen=True):
    """An app, as the server sees it."""

    handlers: Mapping[str, Handler]
    workflows: Callable[[], list[Workflow]]
    ledger: str = "memory:"
    access: Access = Access()
    settings: HubSettings = HubSettings()
