"""Those who wait for a log to grow are woken when it has, and when there is no more of it."""

from __future__ import annotations

import asyncio

import pytest

from arp.access.principal import Principal
from arp.protocol.errors import SessionNotFound
from tests.hub.rig import WAIT_S, HeldStore, running


async def test_all_who_wait_are_woken_and_one_who_gives_up_takes_nobody_along() -> None:
    async with running() as hub, asyncio.timeout(WAIT_S):
        live = await hub.open("s", Principal(), "agent")
        await live.written()
        first, second, third = (asyncio.ensure_future(live.beyond(1)) for _ in range(3))
        await asyncio.sleep(0)
        second.cancel()
        live.session.record("runtime.warning", {"message": "x"})
        await live.written()
        await asyncio.gather(first, third)


async def test_wait_ends_when_the_ledger_has_a_further_fact() -> None:
    store = HeldStore()
    async with running(store=store) as hub, asyncio.timeout(WAIT_S):
        live = await hub.open("s", Principal(), "agent")
        await live.written()
        await live.beyond(0)
        store.hold()
        waiting = asyncio.ensure_future(live.beyond(1))
        live.session.record("runtime.warning", {"message": "x"})
        live.mark()
        await store.waiting.wait()
        assert not waiting.done()
        store.release()
        await waiting
        assert live.stored == 2


async def test_wait_ends_with_the_session_and_says_why() -> None:
    async with running() as hub, asyncio.timeout(WAIT_S):
        live = await hub.open("s", Principal(), "agent")
        await live.written()
        waiting = asyncio.ensure_future(live.beyond(1))
        await hub.delete("s", Principal())
        with pytest.raises(SessionNotFound):
            await waiting
        with pytest.raises(SessionNotFound):
            await live.beyond(1)


async def test_who_a_session_is_can_be_told_without_reading_it() -> None:
    async with running() as hub:
        live = await hub.open("s", Principal("ada"), "agent")
        head = await hub.directory.head("s", Principal("ada"))
        assert head is live.session.head
        await live.written()
        hub.lifetimes.evict(float("inf"))
        assert await hub.directory.head("s", Principal("ada")) == head
        assert hub.sessions == {}
        for name, principal in (("s", Principal()), ("none", Principal("ada"))):
            with pytest.raises(SessionNotFound):
                await hub.directory.head(name, principal)
