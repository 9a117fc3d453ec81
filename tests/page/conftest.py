"""A server with an agent that does on request what a page must show, and a browser before it."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar

import pytest
import uvicorn
from playwright.sync_api import Browser, Page, expect, sync_playwright

from arp import App, Turn, ui

FLAGS = ["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]
START_S = 10
WAIT_S = 20.0
POLL_S = 0.05

expect.set_options(timeout=WAIT_S * 1000)

T = TypeVar("T")


def becomes(read: Callable[[], T], wanted: T) -> None:
    """Reads until it is what is wanted: a page follows its user and its server in its own time."""
    until = time.monotonic() + WAIT_S
    while (seen := read()) != wanted and time.monotonic() < until:
        time.sleep(POLL_S)
    assert seen == wanted


@pytest.fixture(scope="module")
def page_url() -> Iterator[str]:
    """The address of the page, served by a real server in a thread."""
    app = App("Echo", description="Says it again.", suggestions=["Say hello", "Show the table"])
    app.agent(Script().run)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        config = uvicorn.Config(app.asgi, log_level="warning", ws="websockets-sansio")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
        server.should_exit = True
        thread.join(START_S)


@pytest.fixture(scope="module")
def browser(requires: Callable[[str], str]) -> Iterator[Browser]:
    """The machine's Chromium; nothing but loopback resolves.

    It ends with its module: while Playwright's loop runs, no other test can run one.
    """
    with sync_playwright() as runner:
        browser = runner.chromium.launch(executable_path=requires("browser"), args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Browser, page_url: str) -> Iterator[Page]:
    """A fresh page on a fresh session.

    The test fails if the page logged an error or asked anyone but the server for anything.
    """
    context = browser.new_context(viewport={"width": 1000, "height": 800})
    context.set_default_timeout(WAIT_S * 1000)
    page = context.new_page()
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda line: faults.append(line.text) if line.type == "error" else None)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(page_url)
    page.get_by_text("Connected", exact=True).wait_for()
    yield page
    context.close()
    assert faults == []
    assert [url for url in asked if not url.startswith((page_url, "data:", "blob:"))] == []


class Script:
    """An agent whose every word is known to the tests: the user's text names what it does."""

    async def run(self, turn: Turn) -> None:
        if turn.input.input_type == "selection":
            await turn.say(f"You took {turn.input.data['selected'][0]}.")
            return
        if turn.files:
            sizes = [f"{ref.name}: {len(await turn.read_file(ref))} bytes" for ref in turn.files]
            await turn.say("Got " + ", ".join(sizes))
            return
        does: Callable[[Turn], Awaitable[None]] = getattr(self, f"do_{turn.text}", self.do_echo)
        await does(turn)

    async def do_echo(self, turn: Turn) -> None:
        await turn.say(f"You said: **{turn.text}**")

    async def do_count(self, turn: Turn) -> None:
        for number in range(1, 301):
            await turn.say(f"{number}\n\n")
            await asyncio.sleep(0.01)

    async def do_hostile(self, turn: Turn) -> None:
        await turn.say("<script>document.title='broken'</script>\n\n")
        await turn.say("<img src=x onerror=\"document.title='broken'\">\n\n")
        await turn.say("[click](javascript:document.title='broken') ")
        await turn.say("![pixel](https://example.org/pixel.png) ")
        await turn.say("[bank.example](https://evil.example/login)")

    async def do_table(self, turn: Turn) -> None:
        rows = [["Oslo", 709], ["Bergen", 292], ["Zürich", 443]]
        turn.show(
            ui.table(["City", "People"], rows, title="Cities", sortable=True, searchable=True)
        )

    async def do_confirm(self, turn: Turn) -> None:
        async with turn.tool("look", {"where": "here"}):
            pass
        sure = await turn.confirm(
            "Really?", confirm_label="Do it", deny_label="Leave it", destructive=True
        )
        await turn.say("It is done." if sure else "It was left.")

    async def do_choices(self, turn: Turn) -> None:
        turn.show(ui.choices(["Rain", "Wind"], title="What next?"))

    async def do_form(self, turn: Turn) -> None:
        fields = [
            ui.field("name", label="Name", required=True),
            ui.field("code", label="Code", validation={"min_length": 4}),
            ui.field("age", label="Age", field_type="number"),
            ui.field("size", label="Size", field_type="select", options=["small", "large"]),
            ui.field("news", label="News", field_type="checkbox"),
        ]
        answer = await turn.ask(ui.form(fields, title="About you", submit_label="Register"))
        await turn.say(f"{answer['name']}, {answer['age']}, {answer['size']}, {answer['news']}")

    async def do_fail(self, turn: Turn) -> None:
        raise RuntimeError("a secret of the server")
