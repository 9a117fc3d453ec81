"""What is served, and how: plain values, so that the server depends on no `App`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct

from arp.access.settings import Access, HostName, Origin, ProxyAddress, Token
from arp.hub.settings import HubSettings, RuntimeId
from arp.protocol.capabilities import AppInfo
from arp.protocol.messages import Command, Workflow
from arp.redact.settings import Redaction

if TYPE_CHECKING:
    from arp.hub.runner import Handler


class Served(Struct, frozen=True):
    """An app, as the server sees it."""

    handlers: Mapping[str, Handler]
    workflows: Callable[[], list[Workflow]]
    ledger: str = "memory:"
    access: Access = Access()
    settings: HubSettings = HubSettings()
    commands: Callable[[], tuple[Command, ...]] = tuple
    """The slash commands."""
    debug: bool = False
    """Whether clients see tracebacks."""
    title: str = ""
    """What the app calls itself; empty = as its first agent."""

    def about(self) -> AppInfo:
        """Return the app's title and agents."""
        workflows = tuple(self.workflows())
        return AppInfo(self.title or next((one.title for one in workflows), ""), workflows)


class Serving(Struct, frozen=True):
    """The settings of `arp serve`: from a file, the environment and flags."""

    host: Annotated[str, Meta(min_length=1)] = "127.0.0.1"
    """Address to listen on."""
    port: Annotated[int, Meta(ge=0, le=65535)] | None = None
    """`None`: the default port, or the next one that is free; 0: any that is free."""
    ledger: Annotated[str, Meta(min_length=1)] | None = None
    """Where facts live; `None`: as the app says, or in a file of the target in `.arp`."""
    token: Token | None = None
    """Clients must have it."""
    origins: list[Origin] = []
    """Web origins whose pages may connect."""
    hosts: list[HostName] = []
    """Names under which it is reached."""
    trusted_proxies: list[ProxyAddress] = []
    """Proxies that are trusted to say where a request comes from."""
    stdio: bool = False
    """Over standard input and output, to one renderer."""
    redact: bool = True
    """False: secrets stay in facts and logs."""
    redaction: Redaction | None = None
    """What is taken out of facts; `None`: as the app says."""
    otel: bool = False
    """Export spans and metrics; the environment can switch it on too."""
    runtime_id: RuntimeId | None = None
    """Names this runtime in every fact; `None`: as the app says, or as the ledger is called."""
    debug: bool = False
    """Show tracebacks to clients."""
    verbose: Annotated[int, Meta(ge=0)] = 0
    """1: log connections; 2: every frame."""
