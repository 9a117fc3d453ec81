"""A session in memory: what waits for a write is done after it, or learns that it will not be."""

from __future__ import annotations

import asyncio
import weakref

import pytest

from arp.access.principal import Principal
from arp.live.live_session import settle
from arp.protocol.errors import ArpError, SessionNotFound
from tests.hub.rig import BROKEN, HeldStore, running, settled


async def test_action_is_done_when_what_was_recorded_is_durable() -> None:
    """Acknowledgements and new turns wait for the disk."""
    store = HeldStore()
    done: list[str] = []
    async with running(store=store) as hub:
        live = await hub.open("s", Principal(), "agent")
        await settled(hub)
        store.hold()
        live.session.record("runtime.warning", {"message": "x"})
        live.after_write(lambda: done.append("done"))
        await store.waiting.wait()
        before = list(done)
        store.release()
        await settled(hub)
    assert before == []
    assert done == ["done"]


async def test_session_that_leaves_holds_no_pending_of_its_turn() -> None:
    """Its turn holds the session: in a circle both would stay until a full collection."""

    class Pending:
        def record(self) -> None:
            """There is nothing."""

    async with running() as hub:
        live = await hub.open("s", Principal(), "agent")
        await settled(hub)
        held = [Pending(), Pending()]
        known = [weakref.ref(one) for one in held]
        live.before_write(held[0].record)
        live.leave(SessionNotFound("it left"))
        live.before_write(held[1].record)
        held.clear()
        assert [one() for one in known] == [None, None]


async def test_written_returns_when_all_so_far_is_durable() -> None:
    """Also where there is nothing to write."""
    store = HeldStore()
    async with running(store=store) as hub:
        live = await hub.open("s", Principal(), "agent")
        await live.written()
        count = len(await store.facts())
        await live.written()
    assert count == 1


@pytest.mark.parametrize("how", ["disk", "delete", "evict"])
async def test_who_waits_for_a_session_that_leaves_is_told_why(how: str) -> None:
    """Nobody waits for ever."""
    store = HeldStore()
    async with running(store=store) as hub:
        live = await hub.open("s", Principal(), "agent")
        await settled(hub)
        if how == "evict":
            hub.lifetimes.evict(asyncio.get_running_loop().time() + 1)
        else:
            store.error = BROKEN
            live.session.record("runtime.warning", {"message": "x"})
        waiting = asyncio.ensure_future(live.written())
        if how == "delete":
            store.error = None
            await hub.delete("s", Principal())
        async with asyncio.timeout(30):
            error = await caught(waiting)
        store.error = None
    if how == "delete":
        assert isinstance(error, SessionNotFound)
    else:
        assert "try again" in error.message


async def caught(waiting: asyncio.Future[None]) -> ArpError:
    with pytest.raises(ArpError) as raised:
        await waiting
    return raised.value


async def test_session_that_left_is_written_no_more() -> None:
    """What still comes of it is dropped."""
    store = HeldStore()
    async with running(store=store) as hub:
        live = await hub.open("s", Principal(), "agent")
        await settled(hub)
        hub.lifetimes.evict(asyncio.get_running_loop().time() + 1)
        live.session.record("runtime.warning", {"message": "x"})
        live.mark()
        await settled(hub)
        count = len(await store.facts())
    assert live.dirty is False
    assert count == 1


async def test_settling_what_nobody_waits_for_is_harmless() -> None:
    """A future that was given up, or has its value."""
    loop = asyncio.get_running_loop()
    first, second = loop.create_future(), loop.create_future()
    first.cancel()
    settle(first, 1)
    settle(second, 1)
    settle(second, 2)
    assert first.cancelled()
    assert second.result() == 1
