"""`/metrics` is what Prometheus reads; `/health` is what a balancer asks."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from arp import App, Turn
from tests.server.sockets import raw
from tests.support.serving import Serving, serving
from tests.support.waiting import becomes

app = App(title="Metrics")


@app.agent
async def agent(turn: Turn) -> None:
    """Waits for an answer, if asked to."""
    if turn.text == "ask":
        await turn.confirm("Sure?")


@pytest.fixture
def server() -> Iterator[Serving]:
    with serving(app) as running:
        yield running


async def figures(server: Serving) -> dict[str, float]:
    """Gives every sample, read as Prometheus does."""
    async with asyncio.timeout(10), httpx.AsyncClient(base_url=server.http) as client:
        response = await client.get("/metrics")
    assert response.headers["content-type"].startswith("text/plain; version=")
    families = list(text_string_to_metric_families(response.text))
    assert all(family.documentation for family in families)
    return {sample.name: sample.value for family in families for sample in family.samples}


async def test_figures_follow_what_happens(server: Serving) -> None:
    """Read from the hub when asked, kept nowhere else."""
    before = await figures(server)
    async with raw(server) as one, raw(server) as two:
        await one.hello("a", ["text", "confirm"], "input")
        await two.hello("b", ["text"], "input")
        await one.say("a", "ask")
        await one.until("turn", status="waiting")
        during = await figures(server)
        hub = await asyncio.wrap_future(
            asyncio.run_coroutine_threadsafe(server.application.hub(), server.loop)
        )
    await becomes(lambda: not any(live.viewers for live in hub.sessions.values()))
    after = await figures(server)
    names = ("arp_sessions", "arp_renderers", "arp_turns_running", "arp_renderers_behind")
    assert [before[name] for name in names] == [0, 0, 0, 0]
    assert [during[name] for name in names] == [2, 2, 1, 0]
    assert [after[name] for name in names] == [2, 0, 1, 0]
    assert before["arp_ledger_facts_total"] < during["arp_ledger_facts_total"]
    assert 0 < during["arp_ledger_writes_total"] <= during["arp_ledger_facts_total"]
    assert during["arp_buffered_bytes"] == 0


async def test_health_says_that_it_serves(server: Serving) -> None:
    """Nothing more."""
    async with asyncio.timeout(10), httpx.AsyncClient(base_url=server.http) as client:
        response = await client.get("/health")
    assert (response.status_code, response.json()) == (200, {"status": "ok"})
