"""A server with eventful sessions, and a browser before its page `/_inspect`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, TypeVar

import pytest
from playwright.sync_api import Browser, Page

from arp.control.control import Control
from arp.control.turns import StartTurn, TurnInput
from tests.page.inspect.eventful import app
from tests.support.serving import Serving, serving

WAIT_S = 30.0

T = TypeVar("T")


class Desk:
    """Begins turns in the server's loop."""

    def __init__(self, server: Serving) -> None:
        self.server = server

    @property
    def url(self) -> str:
        """The page's address."""
        return f"{self.server.http}/_inspect"

    def run(self, work: Callable[[Control], Coroutine[Any, Any, T]]) -> T:
        """Does something with the control plane."""

        async def with_control() -> T:
            async with asyncio.timeout(WAIT_S):
                return await work(await self.server.application.control())

        return asyncio.run_coroutine_threadsafe(with_control(), self.server.loop).result(WAIT_S)

    def begin(self, session_id: str, text: str) -> str:
        """Begins a turn and gives its id."""
        asked = StartTurn(session_id=session_id, input=TurnInput(text=text))

        async def start(control: Control) -> str:
            return (await control.turns.start(asked)).turn_id

        return self.run(start)

    def say(self, session_id: str, text: str) -> None:
        """Begins a turn and waits for its end."""
        turn_id = self.begin(session_id, text)

        async def ended(control: Control) -> None:
            ends = ["turn.completed", "turn.failed"]
            async for _, body in control.sessions.follow(session_id, types=ends):
                if json.loads(body)["turnId"] == turn_id:
                    return

        self.run(ended)


@pytest.fixture
def desk() -> Iterator[Desk]:
    """A server of the eventful agent, which has no sessions: also when a test is tried again."""
    with serving(app, ledger="memory:") as server:
        yield Desk(server)


@pytest.fixture
def page(browser: Browser, desk: Desk) -> Iterator[Page]:
    """The page, with no session chosen; it may log no error and ask nobody but the server."""
    context = browser.new_context(viewport={"width": 1400, "height": 800})
    context.set_default_timeout(WAIT_S * 1000)
    page = context.new_page()
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda line: faults.append(line.text) if line.type == "error" else None)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(desk.url)
    page.get_by_text("Connected", exact=True).wait_for()
    yield page
    context.close()
    assert faults == []
    server = desk.url.partition("/_inspect")[0]
    assert [url for url in asked if not url.startswith((f"{server}/", "blob:"))] == []
