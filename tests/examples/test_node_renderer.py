"""A renderer that was written from docs/protocol.md alone, against `arp serve`."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from pathlib import Path

import pytest

from arp.client.client import connect
from tests.examples.node_page import COMMAND, RENDERER, node_page
from tests.server.processes import Process, start

OFFERS = Path(__file__).parent / "offers.py"
ECHO = Path(__file__).parents[2] / "examples" / "echo" / "app.py"

ASKING = """\
> show me
Here they are.\x20
Item  Cost
----  ----
Lamp  12
? Buy a lamp?  (y/n)
"""
BOUGHT = """\
> show me
Here they are.\x20
Item  Cost
----  ----
Lamp  12
? Buy a lamp?  (true)
Bought.\x20
Colour?
Answered: green.
It is green.
(completed)
"""


@pytest.fixture(autouse=True)
def needs_node(requires: Callable[[str], str]) -> None:
    requires("node")


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Process]:
    """Serves the offers in a process."""
    async with aclosing(await start(OFFERS, tmp_path / "ledger.db")) as running:
        yield running


async def test_whole_conversation_with_questions(server: Process) -> None:
    """A question that it does not know comes as text, and takes a typed answer."""
    async with node_page(server.ws, "s") as page:
        page.type("show me")
        assert await page.until("(waiting)\n") == f"{ASKING}(waiting)\n"
        page.type("y")
        await page.until("Colour?\n1. red\n2. green\nReply with a number.\n(waiting)\n")
        page.type("green")
        assert await page.until("(completed)\n") == BOUGHT
        assert await page.ended() == 0
    async with node_page(server.ws, "s") as later:
        assert await later.until("(completed)\n") == BOUGHT


async def test_changes_of_components_show_alike_live_and_later(server: Process) -> None:
    async with node_page(server.ws, "s") as page:
        page.type("changes")
        shown = await page.until("(completed)\n")
        assert shown == "> changes\nzero\nthree\nFirst. \nTWO\nLast. \n(completed)\n"
    async with node_page(server.ws, "s") as later:
        assert await later.until("(completed)\n") == shown


async def test_permission_shows_what_is_to_be_allowed_and_names_it(server: Process) -> None:
    async with node_page(server.ws, "s") as page:
        page.type("order")
        asking = await page.until("(waiting)\n")
        assert '? Order it? order {"item":"lamp"} (y/n)' in asking
        page.type("y")
        assert (await page.until("(completed)\n")).endswith("(true)\nOrdered.\n(completed)\n")
        page.type("order")
        await page.until("(waiting)\n")
        page.type("n")
        assert (await page.until("(completed)\n")).endswith("(false)\nNot ordered.\n(completed)\n")


async def test_failure_is_shown_in_its_turn(server: Process) -> None:
    async with node_page(server.ws, "s") as page:
        page.type("fail")
        shown = await page.until("(failed)\n")
    assert shown.startswith("> fail\n! ")
    assert "inner workings" not in shown


@pytest.mark.parametrize("end", ["kill", "stop"])
async def test_it_resumes_after_a_restart_and_answers_what_was_open(
    tmp_path: Path, end: str
) -> None:
    """It connects again by itself; a line that was typed meanwhile arrives once."""
    ledger = tmp_path / "ledger.db"
    async with aclosing(await start(OFFERS, ledger)) as first, node_page(first.ws, "s") as page:
        page.type("show me")
        assert await page.until("(waiting)\n") == f"{ASKING}(waiting)\n"
        if end == "kill":
            await first.kill()
        else:
            assert await first.stop(30.0) == 0
        page.type("y")
        async with aclosing(await start(OFFERS, ledger, "--port", str(first.port))) as second:
            shown = await page.until("Here they are. \n? Buy a lamp?  (y/n)\n(waiting)\n")
            async with connect(second.http, session_id="s") as client:
                assert list(client.screen.turns) == ["t1", "t2"]
    before = ASKING.replace("y/n", "true")
    again = "Here they are. \n? Buy a lamp?  (y/n)\n(waiting)\n"
    assert shown == f"{before}(completed)\n{again}"


async def test_refused_input_is_shown_and_sent_no_more(server: Process) -> None:
    async with node_page(server.ws, "s") as page:
        page.type("x" * 2_000_000)
        assert "! message of 2000" in await page.until(" bytes; at most 1048576\n")
        page.type("fail")
        await page.until("(failed)\n")


async def test_lines_of_a_pipe_are_inputs(tmp_path: Path) -> None:
    async with aclosing(await start(ECHO, tmp_path / "ledger.db")) as server:
        command = [*COMMAND, server.ws]
        done = await asyncio.to_thread(
            subprocess.run,
            command,
            input="Hello there\n",
            capture_output=True,
            text=True,
            timeout=60,
        )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("\f> Hello there\nHello there \n(completed)\n")


def test_it_needs_nothing_but_node() -> None:
    lines = RENDERER.read_text(encoding="utf-8").splitlines()
    imports = [line for line in lines if line.startswith("import ")]
    assert imports
    assert all(' from "node:' in line for line in imports)
