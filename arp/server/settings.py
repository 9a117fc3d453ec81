"""What is served: plain values, so that the server depends on no `App`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from arp.access.settings import Access
from arp.live.settings import HubSettings
from arp.protocol.capabilities import AppInfo
from arp.protocol.messages import Command, Workflow

if TYPE_CHECKING:
    from starlette.routing import BaseRoute

    from arp.hub.hub import Hub
    from arp.hub.removal import SessionKeeper
    from arp.hub.runner import AnswerHandler, Handler
    from arp.turn.feedback import Feedback
    from arp.turn.tool import ToolProvider
    from arp.turn.user_settings import UserSettings


async def _nothing() -> None:
    """Do nothing: the app has no parts."""


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
    tools: ToolProvider | None = None
    """Where the tools come from that agents call by name."""
    hub_changed: Callable[[Hub | None], None] = lambda _hub: None
    """Called with the hub when it has started, and with `None` when it ends."""
    command_handlers: Mapping[str, Handler] = MappingProxyType({})
    """What runs in the place of an agent, by slash command."""
    open_parts: Callable[[], Awaitable[object]] = _nothing
    """Called before anything else: it begins what the app's agents need."""
    close_parts: Callable[[], Awaitable[object]] = _nothing
    """Called when no turn runs any more, once for each `open_parts` that did not raise."""
    answer_handlers: Mapping[str, AnswerHandler] = MappingProxyType({})
    """What takes the answers to questions of turns that are gone, by name of the question."""
    routes: Sequence[BaseRoute] = ()
    """Further routes; no agent may have the name that one of them begins with."""
    app_state: Callable[[], object] = lambda: None
    """Returns what the app's lifespan yielded, for `turn.app_state`."""
    session_start: Handler | None = None
    """What runs when a renderer has begun a session."""
    user_settings: UserSettings | None = None
    """What users set for a session."""
    feedback_handlers: Sequence[Callable[[Feedback], Any]] = ()
    """Called with what users think of a turn."""
    origin_handlers: Mapping[str, Handler] = MappingProxyType({})
    """What runs in place of an agent in turns that a program began, by what it calls itself."""
    keepers: Callable[[], Sequence[SessionKeeper]] = tuple
    """Returns all that keep something of sessions outside of the ledger, such as runtimes."""
    runs_commands: bool = False
    """Whether agents or tools of the app run commands, which could use the server themselves."""
    start_token: Literal["no", "printed", "logged"] = "no"
    """Whether it gets a token then, if nothing else keeps anybody out, and where people find it."""

    def about(self) -> AppInfo:
        """Return the app's title and agents."""
        workflows = tuple(self.workflows())
        return AppInfo(self.title or next((one.title for one in workflows), ""), workflows)
