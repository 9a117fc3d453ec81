"""With `--debug`, whoever is connected sees what went wrong in an agent: once, and nobody else."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from arp import Turn
from arp.hub.hub import Hub
from arp.hub.runner import MAX_DETAILS, Handler, HubApp, traceback_of
from arp.live.settings import HubSettings
from arp.store.blobs import MemoryBlobs
from tests.hub.rig import AT, HeldStore, Renderer, settled

TOKEN = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"


@asynccontextmanager
async def debugging(agent: Handler, store: HeldStore, debug: bool = True) -> AsyncIterator[Hub]:
    """Starts a hub as `arp serve --debug` does."""
    await store.open()
    settings = HubSettings(stop_grace_s=0.05, cancel_grace_s=0.05)
    hub = Hub(store, MemoryBlobs(), HubApp({"agent": agent}, debug=debug), settings, now=lambda: AT)
    depth = sys.get_coroutine_origin_tracking_depth()
    await hub.start()
    try:
        yield hub
    finally:
        sys.set_coroutine_origin_tracking_depth(depth)
        await hub.aclose()


def details(renderer: Renderer) -> list[Any]:
    return [one for one in renderer.box.of("error") if "debug" in one["payload"]]


async def fails(turn: Turn) -> None:
    await turn.say("so far ")
    raise ValueError(f"no row for {TOKEN}")


async def test_traceback_is_shown_to_who_is_connected_behind_what_the_turn_has_shown() -> None:
    """protocol.md 2.1: besides the coded error, with the same turn, without a place."""
    store = HeldStore()
    async with debugging(fails, store) as hub:
        one, other = await Renderer(hub).join(), await Renderer(hub).join()
        elsewhere = await Renderer(hub, "t").join()
        await one.say("go")
        await one.ended("t1")
        await settled(hub)
        (shown,) = details(one)
        assert details(other) == [shown]
        assert details(elsewhere) == []
        facts = str([fact.payload for fact in await store.facts()])
        late = await Renderer(hub).join()
        resumed = await Renderer(hub).join(hub.sessions["s"].session.head.epoch, 1)
    payload = shown["payload"]
    (plain,) = [one["payload"] for one in one.box.of("error") if "debug" not in one["payload"]]
    assert (payload["error"], payload["code"]) == (plain["error"], plain["code"])
    assert payload["code"] == 18
    first, place, *_, last = payload["debug"].splitlines()
    assert first == "Traceback (most recent call last):"
    assert place.startswith(f'  File "{__file__}", line ')
    assert place.endswith(", in fails")
    assert last == "ValueError: no row for ghp_[redacted]"
    assert (shown["turn_id"], shown.get("seq")) == ("t1", None)
    types = [one["type"] for one in one.box.messages]
    assert types[-1] == "error"
    assert "commit" in types
    assert "Traceback" not in facts
    assert "ValueError" not in facts
    assert details(late) == details(resumed) == []


async def test_without_it_nobody_sees_a_traceback() -> None:
    store = HeldStore()
    async with debugging(fails, store, debug=False) as hub:
        renderer = await Renderer(hub).join()
        await renderer.say("go")
        await renderer.ended("t1")
        await settled(hub)
    assert details(renderer) == []


@pytest.mark.filterwarnings("default::RuntimeWarning")
async def test_call_that_nobody_awaited_is_shown_each_time_once_a_turn() -> None:
    """With the line of the call, also where its result was kept in a variable."""

    async def agent(turn: Turn) -> None:
        for _ in range(3):
            kept = turn.say("x")
        del kept

    async with debugging(agent, HeldStore()) as hub:
        renderer = await Renderer(hub).join()
        for turn_id in ("t1", "t2"):
            await renderer.say("go")
            await renderer.ended(turn_id)
        await settled(hub)
    told = details(renderer)
    line = agent.__code__.co_firstlineno + 2
    expected = f"agent 'agent' called Turn.say and never awaited it: {__file__}:{line}"
    assert [(one["turn_id"], one["payload"]["error"]) for one in told] == [
        ("t1", expected),
        ("t2", expected),
    ]


def test_deep_traceback_is_cut_to_its_newest_part() -> None:
    """What went wrong stands at its end."""

    def raised() -> BaseException:
        try:
            raise ValueError("x" * 2 * MAX_DETAILS)
        except ValueError as error:
            return error

    assert traceback_of(raised()) == "x" * MAX_DETAILS


def test_error_without_an_authors_line_is_told_whole() -> None:
    assert traceback_of(ValueError("x")) == "ValueError: x"
