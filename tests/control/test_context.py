"""What a client may see, and that looking records an admin's access and loads nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from arp.access.principal import Principal
from arp.control.context import ControlContext
from arp.control.control import Control
from arp.control.sessions import ReadEvents, ReadSession
from arp.hub.readers.session_reader import SessionCopy
from arp.store.errors import StoreUnwritable
from tests.control.control_rig import controlled
from tests.hub.rig import BROKEN, HeldStore

ANN, ADMIN = Principal("ann"), Principal("ops", is_admin=True)


@pytest.fixture
def store() -> HeldStore:
    return HeldStore()


@pytest.fixture
async def admin(store: HeldStore) -> AsyncIterator[Control]:
    """The control plane for an admin, with a session of Ann that is not in memory."""
    async with controlled(store=store) as control:
        hub = control.context.hub
        await (await hub.open("hers", ANN, "agent")).written()
        assert hub.lifetimes.evict(float("inf")) == 1
        yield Control(control.context.plane, ADMIN)


async def looks(store: HeldStore) -> list[str]:
    return [one.payload["viewer"] for one in await store.facts("hers") if "viewer" in one.payload]


async def test_only_the_first_look_of_an_admin_loads_the_session(
    admin: Control, store: HeldStore
) -> None:
    hub = admin.context.hub
    await admin.sessions.read(ReadSession(session_id="hers"))
    assert list(hub.sessions) == ["hers"], "its access is recorded there"
    hub.lifetimes.evict(float("inf"))
    for _ in range(2):
        await admin.sessions.read(ReadSession(session_id="hers"))
        await admin.sessions.events(ReadEvents(session_id="hers"))
    assert hub.sessions == {}
    assert await looks(store) == ["ops"]


async def test_looks_at_the_same_time_are_one_and_wait_for_its_fact(
    admin: Control, store: HeldStore
) -> None:
    store.hold()
    reading = [
        asyncio.ensure_future(admin.sessions.read(ReadSession(session_id="hers"))) for _ in range(3)
    ]
    await store.waiting.wait()
    await asyncio.sleep(0.01)
    assert not any(one.done() for one in reading)
    store.release()
    await asyncio.gather(*reading)
    assert await looks(store) == ["ops"]


async def test_look_that_could_not_be_recorded_is_recorded_by_the_next_one(
    admin: Control, store: HeldStore
) -> None:
    """Otherwise the next one would show the session without a record."""
    store.error = BROKEN
    with pytest.raises(StoreUnwritable):
        await admin.sessions.read(ReadSession(session_id="hers"))
    assert await looks(store) == []
    store.error = None
    await admin.sessions.read(ReadSession(session_id="hers"))
    assert await looks(store) == ["ops"]


async def test_methods_that_only_read_load_nothing(admin: Control, store: HeldStore) -> None:
    ann = Control(admin.context.plane, ANN)
    before = await store.facts("hers")
    await ann.sessions.read(ReadSession(session_id="hers"))
    await ann.sessions.read(ReadSession(session_id="hers", view="thread"))
    await ann.sessions.events(ReadEvents(session_id="hers"))
    source = await ann.context.read("hers")
    assert isinstance(source, SessionCopy)
    assert source.stored == len(before)
    assert admin.context.hub.sessions == {}
    assert await store.facts("hers") == before


async def test_session_in_memory_is_read_when_all_of_it_is_durable(admin: Control) -> None:
    context = ControlContext(admin.context.plane, ANN)
    live = await context.live("hers")
    live.session.record("runtime.warning", {"message": "x"})
    assert await context.read("hers") is live
    assert live.stored == live.session.sequence
