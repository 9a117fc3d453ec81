"""The served app as plain values, so that the server does not depend on `App`."""

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
    """Do nothing, because the app has no parts."""


class AppDescription(Struct, frozen=True):
    """Everything that the server needs to know about an app."""

    handlers: Mapping[str, Handler]
    workflows: Callable[[], list[Workflow]]
    ledger: str = "memory:"
    access: Access = Access()
    settings: HubSettings = HubSettings()
    commands: Callable[[], tuple[Command, ...]] = tuple
    """Returns the slash commands."""
    debug: bool = False
    """Whether clients see tracebacks."""
    title: str = ""
    """Title of the app; if empty, the title of its first agent is used."""
    tools: ToolProvider | None = None
    """Provider of the tools that agents call by name."""
    hub_changed: Callable[[Hub | None], None] = lambda _hub: None
    """Called with the hub after it has started, and with `None` when it ends."""
    command_handlers: Mapping[str, Handler] = MappingProxyType({})
    """Handlers that run instead of an agent, by slash command."""
    open_parts: Callable[[], Awaitable[object]] = _nothing
    """Opens the parts that the app's agents need; called before anything else."""
    close_parts: Callable[[], Awaitable[object]] = _nothing
    """Closes the parts when no turn runs; called once for each `open_parts` that did not raise."""
    answer_handlers: Mapping[str, AnswerHandler] = MappingProxyType({})
    """Handlers of late answers (the turn that asked has ended), by name of the question."""
    routes: Sequence[BaseRoute] = ()
    """Additional routes. The first segment of a path must not be the name of an agent."""
    app_state: Callable[[], object] = lambda: None
    """Returns the value that the app's lifespan yielded, for `turn.app_state`."""
    session_start: Handler | None = None
    """Handler that runs when a renderer has started a session."""
    user_settings: UserSettings | None = None
    """Settings that users can change for a session."""
    feedback_handlers: Sequence[Callable[[Feedback], Any]] = ()
    """Functions that receive the feedback of users on a turn."""
    origin_handlers: Mapping[str, Handler] = MappingProxyType({})
    """Handlers that run instead of an agent in turns begun by a program, by the program's name."""
    keepers: Callable[[], Sequence[SessionKeeper]] = tuple
    """Returns the objects that keep data of sessions outside the ledger, such as runtimes."""
    runs_commands: bool = False
    """Whether agents or tools of the app run commands, which could connect to the server."""
    start_token: Literal["no", "printed", "logged"] = "no"
    """Whether an app that runs commands and has no other access control gets a token at each start,
    and where people find the token."""

    def about(self) -> AppInfo:
        """Return the app's title and agents."""
        workflows = tuple(self.workflows())
        return AppInfo(self.title or next((one.title for one in workflows), ""), workflows)
