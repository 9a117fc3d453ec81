"""A route that begins a turn which nobody typed."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest

from arp.client.client import connect
from examples.webhook.app import api, app, watching
from tests.examples.conversation import shown
from tests.examples.test_fastapi_embed import running
from tests.support.waiting import becomes

SECRET = {"x-hook-secret": "try-me"}
FAILED = {"id": "17", "project": "website", "succeeded": False, "log": "2 tests failed"}


@pytest.fixture
async def url() -> AsyncIterator[str]:
    watching.clear()
    async with running(api, app) as url:
        yield url


async def test_a_failed_build_is_reported_once_without_user_input(url: str) -> None:
    async with httpx.AsyncClient(base_url=url) as http, connect(f"{url}/agent") as client:
        await client.turn_done(await client.turn_of(await client.send_text("website")))
        for _ in range(2):
            answer = await http.post("/hooks/build", json=FAILED, headers=SECRET)
            assert (answer.status_code, answer.json()) == (202, {"turn": "t2"})
        await becomes(lambda: "t2" in client.screen.turns)
        await client.turn_done("t2")
        (echo,) = client.screen.turns["t2"].inputs
        assert (echo.input_type, echo.origin) == ("event", "build server")
        assert shown(client, "t2") == ["status-card", "…"]
        assert client.screen.text("t2") == "It ends with: 2 tests failed"
        assert list(client.screen.turns) == ["t1", "t2"]


async def test_route_takes_nothing_from_strangers_or_of_unknown_projects(url: str) -> None:
    async with httpx.AsyncClient(base_url=url) as http:
        assert (await http.post("/hooks/build", json=FAILED)).status_code == 401
        answer = await http.post("/hooks/build", json=FAILED, headers=SECRET)
        assert answer.status_code == 404
