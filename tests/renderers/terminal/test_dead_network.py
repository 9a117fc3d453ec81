"""A terminal whose network dies without a word says so, and loses nothing of what was typed."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from arp import App, Turn
from tests.renderers.terminal.pseudo_terminal import PseudoTerminal
from tests.renderers.terminal.test_connect import command
from tests.support.holding import HoldingProxy
from tests.support.serving import serving

app = App(title="Echo")


@app.agent
async def echo(turn: Turn) -> None:
    """Says it again."""
    await turn.say(f"You said: {turn.text}")


@contextmanager
def proxied(proxy: HoldingProxy) -> Iterator[tuple[str, asyncio.AbstractEventLoop]]:
    """Runs a proxy in a thread; gives its address and its loop."""
    ready, address = threading.Event(), [""]
    loops: list[asyncio.AbstractEventLoop] = []
    ends: list[asyncio.Event] = []

    async def run() -> None:
        loops.append(asyncio.get_running_loop())
        ends.append(asyncio.Event())
        async with proxy.running() as url:
            address[0] = url
            ready.set()
            await ends[0].wait()

    thread = threading.Thread(target=lambda: asyncio.run(run()))
    thread.start()
    try:
        assert ready.wait(10)
        yield address[0], loops[0]
    finally:
        loops[0].call_soon_threadsafe(ends[0].set)
        thread.join(10)


@pytest.mark.slow
def test_network_that_holds_all_bytes_is_told_within_25_s(tmp_path: Path) -> None:
    with serving(app) as server:
        proxy = HoldingProxy(server.port)
        with (
            proxied(proxy) as (url, loop),
            PseudoTerminal(command(url), tmp_path, size=(40, 100)) as terminal,
        ):
            terminal.until_at_rest()
            terminal.type("before\r")
            terminal.until_at_rest("You said: before")
            loop.call_soon_threadsafe(proxy.free.clear)
            began = time.monotonic()
            terminal.type("meanwhile\r")
            terminal.until_shown("Connection lost: the server has been silent for")
            took = time.monotonic() - began
            loop.call_soon_threadsafe(proxy.free.set)
            terminal.until_shown("Connected again")
            terminal.until_shown("You said: meanwhile")
            terminal.until_at_rest()
            assert took < 25
            assert "\n".join(terminal.paper).count("You said: meanwhile") == 1
