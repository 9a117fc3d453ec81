"""`App`: what an agent's author writes down, and the ASGI application that it becomes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

from arp.hub.runner import Handler
from arp.hub.settings import HubSettings
from arp.server.served import Access, Authenticate, Served, Workflow

if TYPE_CHECKING:
    from arp.server.application import Application


class App:
    """One or more agents, served together.

    Args:
        title: What the page and lists call it.
        description: One sentence for those who have not used it yet.
        suggestions: What a user may say first.
        ledger: Where facts live: `memory:`, or `sqlite:PATH`. `arp serve` has a default of its own.
        token: If set, everyone must have it: as `Authorization: Bearer …`, or in `hello`.
        authenticate: A hook that tells who asks; sessions belong to the user that it names.
        hosts: Names under which it may be reached, besides this machine's own.
        origins: Web origins (`https://example.org`) whose pages may use it, besides its own.
        settings: How sessions behave.
    """

    def __init__(  # an author's one call, all by keyword
        self,
        title: str = "ARP agent",
        *,
        description: str = "",
        suggestions: Sequence[str] = (),
        ledger: str = "memory:",
        token: str | None = None,
        authenticate: Authenticate | None = None,
        hosts: Sequence[str] = (),
        origins: Sequence[str] = (),
        settings: HubSettings | None = None,
    ) -> None:
        self.title = title
        self.description = description
        self.suggestions = tuple(suggestions)
        self.ledger = ledger
        self.access = Access(token, authenticate, tuple(hosts), tuple(origins))
        self.settings = settings or HubSettings()
        self.handlers: dict[str, Handler] = {}

    @overload
    def agent(self, handler: Handler, /) -> Handler: ...

    @overload
    def agent(self, name: str, /) -> Callable[[Handler], Handler]: ...

    def agent(self, name: str | Handler, /) -> Any:
        """Registers an agent: `@app.agent`, or `@app.agent("name")` where there are several.

        The first is the one that a session gets which names none.
        """
        if callable(name):
            return self._add(name.__name__, name)
        return lambda handler: self._add(name, handler)

    def _add(self, name: str, handler: Handler) -> Handler:
        if name in self.handlers:
            raise ValueError(f"there is an agent {name!r} already; give this one another name")
        self.handlers[name] = handler
        return handler

    def workflows(self) -> list[Workflow]:
        """Lists the agents."""
        several = len(self.handlers) > 1
        return [
            Workflow(
                name,
                name if several else self.title,
                _first_line(handler) if several else self.description,
                self.suggestions,
            )
            for name, handler in self.handlers.items()
        ]

    def served(self, *, ledger: str | None = None, access: Access | None = None) -> Served:
        """Gives what a server needs to know, with what its command line says instead."""
        return Served(
            self.handlers,
            self.workflows,
            ledger or self.ledger,
            access or self.access,
            self.settings,
        )

    @cached_property
    def asgi(self) -> Application:
        """The ASGI application: mount it anywhere, also where nobody runs its lifespan."""
        from arp.server.application import Application

        return Application(self.served())


def _first_line(handler: Handler) -> str:
    return (handler.__doc__ or "").strip().partition("\n")[0]
