"""`App(lifespan=…)`: what is open as long as the app is served."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import pytest

from arp import App, Turn
from arp.testing import session


class Pool:
    """A client that must be closed in the task that opened it, as those on anyio."""

    def __init__(self, log: list[str]) -> None:
        self.log = log

    @asynccontextmanager
    async def lifespan(self, app: App) -> AsyncIterator[Pool]:
        task = asyncio.current_task()
        self.log.append(f"opened for {app.title}")
        await asyncio.sleep(0)
        try:
            yield self
        finally:
            assert asyncio.current_task() is task
            await asyncio.sleep(0)
            self.log.append("closed")


def pooled(log: list[str]) -> App:
    app = App("Pooled", lifespan=Pool(log).lifespan)

    @app.agent
    async def agent(turn: Turn) -> str:
        pool: Pool = turn.app_state
        assert pool is app.state
        pool.log.append("used")
        return "fine"

    return app


async def test_it_is_entered_before_the_first_turn_and_left_after_the_last() -> None:
    log: list[str] = []
    app = pooled(log)
    assert app.state is None
    async with session(app) as user:
        assert (await user.say("go")).text == "fine"
        assert log == ["opened for Pooled", "used"]
    assert log == ["opened for Pooled", "used", "closed"]
    assert app.state is None


async def test_app_that_is_served_again_enters_it_again() -> None:
    log: list[str] = []
    app = pooled(log)
    for _ in range(2):
        await app.asgi.hub()
        await app.asgi.aclose()
    assert log == ["opened for Pooled", "closed"] * 2


def test_it_is_left_where_nobody_says_that_the_server_stops() -> None:
    """A parent application that does not run the lifespan of a mounted one."""
    log: list[str] = []
    app = pooled(log)

    async def serves() -> None:
        await app.asgi.hub()

    asyncio.run(serves())
    assert log == ["opened for Pooled", "closed"]


async def asgi_lifespan(app: App) -> list[Any]:
    """Run an app's lifespan as a server does, and return what it sends."""
    sent: list[Any] = []
    waiting = [{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}]

    async def receive() -> Any:
        return waiting.pop(0)

    async def send(message: Any) -> None:
        sent.append(message)

    await app.asgi({"type": "lifespan"}, receive, send)
    return sent


async def test_servers_lifespan_enters_and_leaves_it() -> None:
    log: list[str] = []
    sent = await asgi_lifespan(pooled(log))
    assert [one["type"] for one in sent] == [
        "lifespan.startup.complete",
        "lifespan.shutdown.complete",
    ]
    assert log == ["opened for Pooled", "closed"]


async def test_one_that_fails_stops_the_server_and_what_was_opened_before_is_closed() -> None:
    @asynccontextmanager
    async def broken(app: App) -> AsyncIterator[None]:
        raise ConnectionError("no database at db:5432")
        yield

    app = App(lifespan=broken)

    @app.agent
    async def agent(turn: Turn) -> None: ...

    sent = await asgi_lifespan(app)
    assert sent == [{"type": "lifespan.startup.failed", "message": "no database at db:5432"}]
    with pytest.raises(ConnectionError):
        await app.asgi.hub()


async def test_ledger_that_cannot_be_opened_leaves_it_again(tmp_path: Any) -> None:
    log: list[str] = []
    app = pooled(log)
    app.ledger = f"sqlite:{tmp_path}"  # a directory
    with pytest.raises(Exception, match="ledger"):
        await app.asgi.hub()
    assert log == ["opened for Pooled", "closed"]


def test_what_is_no_context_manager_is_refused_where_it_is_written() -> None:
    async def forgot_the_decorator(app: App) -> AsyncIterator[None]:
        yield

    wrong: Any = forgot_the_decorator
    with pytest.raises(TypeError, match="write @asynccontextmanager above async def lifespan"):
        App(lifespan=wrong)


@pytest.mark.parametrize("returned", [1, contextmanager(lambda: iter([1]))()])
async def test_function_that_returns_no_context_manager_is_named(returned: Any) -> None:
    app = App("Odd", lifespan=lambda app: returned)
    app.agent("agent")(pooled([]).handlers["agent"])
    with pytest.raises(RuntimeError, match=r"lifespan=…\): the function returned .*write @async"):
        async with session(app):
            pass


def test_generator_is_refused_where_it_is_written() -> None:
    def lifespan(app: App) -> Iterator[int]:
        yield 1

    with pytest.raises(TypeError, match="write @asynccontextmanager"):
        App("Odd", lifespan=lifespan)  # type: ignore[arg-type]  # the mistake
