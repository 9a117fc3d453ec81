"""A job in a real process of its own changes what a turn has shown."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

from arp.client.client import ArpClient, connect
from arp.protocol.json_value import JsonObject
from examples.job.app import app, jobs
from tests.support.serving import Serving, serving
from tests.support.waiting import becomes


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Serving]:
    jobs.clear()
    with serving(app) as running:
        monkeypatch.setenv("ARP_URL", running.http)
        yield running


def is_done(client: ArpClient) -> bool:
    return step(client).get("status") == "done"


def step(client: ArpClient) -> JsonObject:
    """Return the step that shows, of the newest turn."""
    turn_id = next(reversed(client.screen.turns), "")
    shown = [one for one in client.screen.output(turn_id) if one.type == "progress"]
    return shown[0].props["steps"][0] if shown else {}


async def test_progress_of_another_process_shows_on_every_screen_and_begins_no_turn(
    server: Serving,
) -> None:
    async with connect(server.ws, session_id="s") as one, connect(server.ws, session_id="s") as two:
        await one.turn_done(await one.turn_of(await one.send_text("Import the orders")))
        for client in (one, two):
            await becomes(partial(is_done, client))
            assert step(client) == {"name": "Import", "status": "done", "detail": "5 of 5 files"}
            assert list(client.screen.turns) == ["t1"]
        # A screen that comes later gets the same.
        async with connect(server.ws, session_id="s") as late:
            await becomes(lambda: step(late).get("status") == "done")
