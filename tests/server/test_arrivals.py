"""The log over real sockets: who comes and goes, and no secret whatever the level."""

from __future__ import annotations

import asyncio
import logging
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from websockets.asyncio.client import connect

from arp import Access, App, Turn, ui
from tests.server.processes import Process
from tests.server.sockets import Raw
from tests.support.serving import Serving, serving
from tests.support.waiting import becomes

app = App(title="Log", access=Access(token="sesame"))


@app.agent
async def agent(turn: Turn) -> None:
    """Asks for a password."""
    await turn.ask(ui.form([ui.field("pin", field_type="password")], id="form"))
    await turn.say("private answer")


@pytest.fixture(scope="module")
def server() -> Iterator[Serving]:
    with serving(app) as running:
        yield running


SECRETS = ("sesame", "private", "hunter2")


async def talk(server: Serving) -> None:
    async with connect(server.ws, compression=None) as socket:
        client = Raw(socket)
        await client.hello("s", ["text", "form"], "input", token="sesame")
        await client.say("s", "private question")
        await client.until("turn", status="waiting")
        body = {"v": 1, "type": "input", "input_type": "form_submit", "source_component": "form"}
        await client.send({**body, "data": {"fields": {"pin": "hunter2"}}})
        await client.until("commit", final=True)


async def gone(caplog: pytest.LogCaptureFixture) -> None:
    await becomes(lambda: any(message.endswith("is gone") for message in caplog.messages))


async def test_info_has_a_line_when_a_renderer_comes_and_when_it_goes(
    server: Serving, caplog: pytest.LogCaptureFixture
) -> None:
    """style.md: INFO a line when a connection opens and closes."""
    caplog.set_level(logging.INFO, "arp")
    await talk(server)
    await gone(caplog)
    lines = [re.sub(r"renderer [0-9a-f]{16}", "renderer R", one) for one in caplog.messages]
    assert [re.sub(r":\d+$", ":PORT", one) for one in lines] == [
        "renderer R connected by WebSocket (json) from 127.0.0.1:PORT",
        "renderer R is on session 's'",
        "renderer R is gone",
    ]


async def test_debug_has_a_line_for_every_frame_and_no_secret(
    server: Serving, caplog: pytest.LogCaptureFixture
) -> None:
    """Types and sizes; never a token, a password, or what was said."""
    caplog.set_level(logging.DEBUG, "arp")
    await talk(server)
    await gone(caplog)
    assert re.search(r"renderer [0-9a-f]{16} < hello, \d+ bytes", caplog.text)
    assert re.search(r"renderer [0-9a-f]{16} < input form_submit, \d+ bytes", caplog.text)
    assert re.search(r"renderer [0-9a-f]{16} > .*delta seq=\d+ turn=t\d, \d+ bytes", caplog.text)
    assert not [secret for secret in SECRETS if secret in caplog.text]


async def test_streams_and_posts_are_logged_as_sockets_are(
    server: Serving, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither the query nor the headers, which hold tokens too."""
    caplog.set_level(logging.DEBUG, "arp")
    headers = {"authorization": "Bearer sesame"}
    body = {"v": 1, "type": "input", "input_type": "text", "data": {"text": "private"}}
    async with httpx.AsyncClient(base_url=server.http, headers=headers) as client:
        async with client.stream("GET", "/_arp/v1/events?session_id=e") as response:
            await anext(response.aiter_bytes())
            await client.post("/_arp/v1/input", json={**body, "session_id": "e"})
        await gone(caplog)
    assert "connected by event stream (json) from 127.0.0.1:" in caplog.text
    assert "renderer without a connection < input text, " in caplog.text
    assert not [secret for secret in SECRETS if secret in caplog.text]


AGENT = """
from arp import App, Turn

app = App()

@app.agent
async def agent(turn: Turn) -> None:
    await turn.say("private answer")
"""


@pytest.mark.parametrize(("flag", "shows"), [("-v", "connected by"), ("-vv", " > hello, ")])
async def test_command_line_shows_what_its_flag_says(tmp_path: Path, flag: str, shows: str) -> None:
    """`arp serve -v` and `-vv`, on standard error."""
    (tmp_path / "app.py").write_text(AGENT)
    command = [sys.executable, "-m", "arp.cli", "serve", str(tmp_path / "app.py")]
    child = await asyncio.create_subprocess_exec(
        *(*command, "--port", "0", "--ledger", "memory:", flag),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert child.stdout is not None
    line = (await asyncio.wait_for(child.stdout.readline(), 15)).decode()
    running = Process(child, int(line.rpartition(":")[2]))
    try:
        async with connect(running.ws, compression=None) as socket:
            client = Raw(socket)
            await client.say("s", "private question")
            await client.until("commit", final=True)
        child.terminate()
        _, log = await asyncio.wait_for(child.communicate(), 15)
    finally:
        await running.aclose()
    assert shows in log.decode()
    assert ("bytes" in log.decode()) == (flag == "-vv")
    assert "private" not in log.decode()
