"""Removals of sessions: once written down they are finished, and touch that session alone."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from arp import Turn
from arp.access.principal import Principal
from arp.hub.hub import Hub
from arp.hub.removal import ExternalRecord, Remainder, RemovalFailed, note_elsewhere
from arp.hub.runner import Handler, HubApp
from arp.protocol.errors import SessionNotFound
from arp.store.blobs import MemoryBlobs
from arp.store.memory import MemoryStore
from tests.hub.rig import AT, BROKEN, WAIT_S, HeldStore, Renderer, quiet, running, settled

ME = Principal("")
SECOND = ExternalRecord("runtime", "second")


class Keeper:
    """Keeps the sessions of a runtime, and refuses to remove some."""

    def __init__(self, name: str = "runtime", **refusals: RemovalFailed) -> None:
        self.name, self.refusals = name, refusals
        self.kept = {"first", "second"}
        self.removed = asyncio.Event()

    async def remove(self, kept: ExternalRecord) -> bool:
        if kept.keeper != self.name:
            return False
        if (refusal := self.refusals.get(kept.id)) is not None:
            raise refusal
        self.kept.discard(kept.id)
        self.removed.set()
        return True


async def recording(turn: Turn) -> None:
    """Have one session of a runtime, as the facts say, and one that the memory alone knows."""
    about = {"runtime": "runtime", "runtimeSessionId": "first"}
    turn.record("thread.started", correlation=about)
    note_elsewhere(turn.cache, SECOND)


async def life(store: MemoryStore, agent: Handler, *keepers: Keeper) -> Hub:
    """Start a hub over a store; the caller ends it."""
    await store.open()
    app = HubApp({"agent": agent}, keepers=lambda: keepers)
    hub = Hub(store, MemoryBlobs(), app, now=lambda: AT)
    await hub.start()
    return hub


async def used(hub: Hub) -> None:
    renderer = await Renderer(hub).join()
    await renderer.say("go")
    await renderer.ended("t1")
    await settled(hub)


async def deleted(store: MemoryStore, *keepers: Keeper) -> list[Remainder]:
    """Use a session and delete it; return what is still there."""
    hub = await life(store, recording, *keepers)
    try:
        await used(hub)
        return await hub.delete("s", ME)
    finally:
        await hub.aclose()


async def test_all_that_is_kept_elsewhere_is_removed() -> None:
    """What the facts name, and what was made since and is not durable yet."""
    store, keeper = HeldStore(), Keeper()
    assert await deleted(store, keeper) == []
    assert keeper.kept == set()
    await store.open()
    assert await store.facts() == []
    assert await store.removals() == {}


async def test_what_can_never_be_removed_is_named_and_not_tried_again() -> None:
    store = MemoryStore()
    keeper = Keeper(second=RemovalFailed("it cannot delete", can_retry=False))
    left = await deleted(store, keeper)
    assert left == [Remainder("runtime", "second", "it cannot delete", False)]
    assert keeper.kept == {"second"}
    await store.open()
    assert await store.removals() == {}


class NotingStore(HeldStore):
    """Tells when a note was dropped."""

    def __init__(self) -> None:
        super().__init__()
        self.dropped = asyncio.Event()

    async def note_removal(self, name: str, note: str | None) -> None:
        await super().note_removal(name, note)
        if note is None:
            self.dropped.set()


async def test_what_cannot_be_removed_now_is_removed_in_the_next_life() -> None:
    store = NotingStore()
    left = await deleted(store, Keeper(first=RemovalFailed("it is busy", can_retry=True)))
    assert not store.dropped.is_set()
    assert left == [Remainder("runtime", "first", "it is busy", True)]
    keeper = Keeper()
    hub = await life(store, quiet, keeper)
    async with asyncio.timeout(WAIT_S):
        await keeper.removed.wait()
    assert await store.facts() == []
    assert keeper.kept == {"second"}, "what was removed is not tried again"
    async with asyncio.timeout(WAIT_S):
        await store.dropped.wait()
    await hub.aclose()
    await store.open()
    assert await store.removals() == {}


async def test_a_runtime_that_the_app_has_no_more_is_named() -> None:
    (first, second) = await deleted(MemoryStore(), Keeper("another"))
    assert first.reason == "no agent of this app has this runtime"
    assert (first.id, second.id, first.is_retried) == ("first", "second", True)


async def test_of_two_runtimes_of_one_name_the_one_that_has_the_session_counts() -> None:
    unknown = RemovalFailed("there is no session", can_retry=False)
    keepers: Sequence[Keeper] = (Keeper(first=unknown, second=unknown), Keeper())
    assert await deleted(MemoryStore(), *keepers) == []
    assert keepers[1].kept == set()


async def test_a_keeper_that_fails_does_not_keep_the_session() -> None:
    class Failing(Keeper):
        async def remove(self, kept: ExternalRecord) -> bool:
            raise ZeroDivisionError

    store = HeldStore()
    left = await deleted(store, Failing())
    assert {one.reason for one in left} == {"the removal failed; the server's log has the reason"}
    await store.open()
    assert await store.facts() == []


async def test_a_removal_that_a_crash_cut_off_at_its_beginning_is_finished() -> None:
    """It was asked for: the note is there, and nothing else has happened."""
    store, keeper = HeldStore(), Keeper()
    hub = await life(store, recording, keeper)
    await used(hub)
    await hub.lifetimes.removals.begin(hub.sessions["s"].session.head)
    await hub.aclose()
    hub = await life(store, quiet, keeper)
    assert await store.facts() == []
    assert "s" not in hub.sessions
    async with asyncio.timeout(WAIT_S):
        await keeper.removed.wait()
    assert keeper.kept == {"second"}, "the memory alone knew it"
    await hub.aclose()


async def test_a_removal_touches_no_later_session_with_the_same_id() -> None:
    store = HeldStore()
    hub = await life(store, recording)
    await used(hub)
    old = hub.sessions["s"].session.head
    await hub.delete("s", ME)
    await used(hub)
    name = await hub.lifetimes.removals.begin(old)
    await hub.lifetimes.removals.remove_facts(name)
    assert hub.sessions["s"].session.turn_count == 1
    await hub.aclose()
    hub = await life(store, quiet)
    assert len(await store.facts()) > 1
    await hub.aclose()


async def test_a_session_that_is_not_in_memory_is_removed() -> None:
    store, keeper = HeldStore(), Keeper()
    hub = await life(store, recording, keeper)
    await used(hub)
    await hub.aclose()
    hub = await life(store, recording, keeper)
    assert "s" not in hub.sessions
    assert await hub.delete("s", ME) == []
    assert await store.facts() == []
    assert keeper.kept == {"second"}
    await hub.aclose()


async def test_a_removal_that_cannot_be_written_down_changes_nothing_in_the_store() -> None:
    class Full(HeldStore):
        async def note_removal(self, name: str, note: str | None) -> None:
            raise BROKEN

    store = Full()
    async with running(recording, store=store) as hub:
        await used(hub)
        with pytest.raises(type(BROKEN)):
            await hub.delete("s", ME)
        assert (await hub.find("s", ME)).session.turn_count == 1


async def test_another_users_session_is_not_removed() -> None:

    async with running() as hub:
        await used(hub)
        with pytest.raises(SessionNotFound):
            await hub.delete("s", Principal("somebody else"))
        assert (await hub.find("s", ME)).session.turn_count == 1
