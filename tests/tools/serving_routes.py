"""The routes behind a real server, with the guard of an app before them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from arp import App, Turn
from arp.access.settings import Access
from arp.tools.app.agent import ToolAgent
from tests.support.serving import serving
from tests.tools.house import FunctionTools, house


class ToolHouse(NamedTuple):
    """A Tool Agent that is served."""

    url: str
    agent: ToolAgent
    functions: FunctionTools


@contextmanager
def tool_house(data_dir: Path, access: Access | None = None, **more: Any) -> Iterator[ToolHouse]:
    """Serve an app with the tools of `house`, and an agent `user` that calls them."""
    service, functions = house(data_dir, **more)
    agent = ToolAgent(service=service)
    app = App("House", tools=agent, access=access)

    @app.agent
    async def user(turn: Turn) -> None:
        name, _, rest = turn.text.partition(" ")
        numbers = [int(word) for word in rest.split()]
        await turn.use(name, dict(zip("ab", numbers, strict=False)))

    with serving(app, ledger="memory:") as server:
        yield ToolHouse(server.http, agent, functions)
