"""Looking at a session loads nothing, records nothing and keeps nothing (`SessionReader`)."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import msgspec
import pytest

from arp import Turn, ui
from arp.access.principal import Principal
from arp.hub.hub import Hub
from arp.hub.readers.session_reader import MAX_RESTORING, ReadableSession, SessionCopy
from arp.live.settings import HubSettings
from arp.protocol.errors import InternalError, SessionNotFound
from arp.session.session import Session
from arp.session.tracking import window
from arp.store.errors import StoreDamaged
from arp.store.memory import MemoryStore
from arp.store.store import SessionWrite
from tests.hub.rig import WAIT_S, HeldStore, Renderer, running, settled, started
from tests.support.waiting import becomes

ADA, BOB, NOBODY = Principal("ada"), Principal("bob"), Principal()

UNREADABLE = b'{"sessionId":"s","sequence":1,"type":"model.delta","payload":{"text":}}'
IMPOSSIBLE = (
    b'{"schemaVersion":"x","runtimeId":"arp","sessionId":"s","eventId":"s-1","timestamp":"x",'
    b'"sequence":1,"type":"turn.started","payload":{},"threadId":"main","turnId":"t99"}'
)
"""A turn starts that was never submitted."""


@pytest.fixture(autouse=True)
def _three_are_recent() -> Iterator[None]:
    with patch.object(window, "RECENT_TURNS", 3):
        yield


class GatedStore(HeldStore):
    """A store whose reads of facts wait when a test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = 0
        self.reading = asyncio.Event()
        """A read has come."""
        self.released = asyncio.Event()
        self.released.set()

    def stop_reads(self) -> None:
        """Let the next reads wait."""
        self.reading.clear()
        self.released.clear()

    async def read(
        self, session_id: str, after: int = 0, limit: int = 1000
    ) -> list[tuple[int, bytes]]:
        """As `Store.read`, when it may go on."""
        self.reads += 1
        self.reading.set()
        await self.released.wait()
        return await super().read(session_id, after, limit)


async def agent(turn: Turn) -> None:
    """Repeats the input and shows a table."""
    await turn.say(f"re {turn.text}")
    turn.show(ui.table(["n"], [[turn.text]], id=f"table-{turn.id}"))


async def talked(hub: Hub, *texts: str, session_id: str = "s") -> None:
    """Say texts, each after the turn before; then nobody is connected."""
    user = await Renderer(hub, session_id).join()
    for number, text in enumerate(texts, 1):
        await user.say(text)
        assert await user.ended(f"t{number}") == "completed"
    user.leave()
    await settled(hub)


def evict(hub: Hub) -> int:
    return hub.lifetimes.evict(asyncio.get_running_loop().time() + 1)


def stored(store: MemoryStore) -> Any:
    """Everything that a store has."""
    return (
        {name: list(kept) for name, kept in store._facts.items()},
        dict(store._metas),
        dict(store._models),
    )


async def told(hub: Hub, source: ReadableSession) -> list[tuple[int, str, str | None, int]]:
    """What the history says of all turns."""
    page = await hub.history.page(source, None, 200)
    return [(past.number, past.text, past.turn.status, len(past.output)) for past in page]


# -- which session ---------------------------------------------------------------------------------


async def test_session_in_memory_is_the_one_that_is_read() -> None:
    async with running(agent) as hub:
        live = await hub.open("s", ADA, "agent")
        live.used_at = 0.0
        assert await hub.reader.read("s", ADA) is live
        assert live.used_at > 0, "a session that is read is in use"


@pytest.mark.parametrize("model_every_facts", [1, 2000], ids=["from a state", "from facts"])
async def test_session_that_is_not_in_memory_is_read_as_if_it_was_loaded(
    model_every_facts: int,
) -> None:
    store = GatedStore()
    settings = HubSettings(model_every_facts=model_every_facts, stop_grace_s=0.05)
    async with running(agent, store=store, settings=settings) as hub:
        await talked(hub, *[f"m{number}" for number in range(8)])
        for cache in hub._caches:
            await cache.keep_up()
        await settled(hub)  # a stored model is recorded
        assert evict(hub) == 1
        before = stored(store)
        source = await hub.reader.read("s", NOBODY)
        assert isinstance(source, SessionCopy)
        assert hub.sessions == {}
        assert stored(store) == before
        shown, turns = source.session.screen.canonical(), await told(hub, source)
        assert (await hub.history.turn(source, "t2")) is not None
        assert hub.sessions == {}
        live = await hub.find("s", NOBODY)
        assert (source.stored, source.session.sequence) == (live.stored, live.stored)
        assert shown == live.session.screen.canonical()
        assert turns == await told(hub, live)
        assert len(turns) == 8


@pytest.mark.parametrize("where", ["memory", "store"])
async def test_session_of_another_user_is_answered_as_one_that_does_not_exist(where: str) -> None:
    """The row decides before any fact is read, so the time is the same too."""
    store = GatedStore()
    async with running(agent, store=store) as hub:
        await (await hub.open("hers", ADA, "agent")).written()
        if where == "store":
            assert evict(hub) == 1
        store.reads = 0
        errors: list[SessionNotFound] = []
        for session_id in ("hers", "none"):
            with pytest.raises(SessionNotFound) as caught:
                await hub.reader.read(session_id, BOB)
            errors.append(caught.value)
            with pytest.raises(SessionNotFound) as found:
                await hub.find(session_id, BOB)
            assert str(found.value) == str(caught.value)
    assert store.reads == 0
    assert errors[0].message.replace("hers", "…") == errors[1].message.replace("none", "…")


async def test_provisional_session_is_not_found() -> None:
    async with running(agent) as hub:
        await hub.open("s", NOBODY, "agent", provisional=True)
        with pytest.raises(SessionNotFound):
            await hub.reader.read("s", NOBODY)


# -- a turn that a crash interrupted ---------------------------------------------------------------


async def crashed(agent: Any, *, is_active: bool) -> GatedStore:
    """What a crash leaves of a session with a running turn."""
    store = GatedStore()
    hub = await started(agent, store=store)
    user = await Renderer(hub).join()
    await user.say("go")
    await user.box.has("turn", status="running")
    await settled(hub)
    left = GatedStore()
    left._facts = {"s": list(store._facts["s"])}
    # A row that is not active hides the open work, so no server loads the session at its start.
    left._metas = {"s": msgspec.structs.replace(store._metas["s"], active=is_active)}
    await hub.aclose()
    return left


async def forever(turn: Turn) -> None:
    await turn.say("begun")
    await asyncio.Event().wait()


async def test_interrupted_turn_of_a_session_that_is_not_loaded_is_shown_as_the_ledger_has_it() -> (
    None
):
    store = await crashed(forever, is_active=False)
    async with running(agent, store=store) as hub:
        before = stored(store)
        source = await hub.reader.read("s", NOBODY)
        assert source.session.status_of("t1") == "running"
        assert (hub.sessions, stored(store)) == ({}, before)
        live = await hub.find("s", NOBODY)
        assert live.session.status_of("t1") == "failed"


async def test_a_start_ends_interrupted_turns_before_anything_is_read() -> None:
    async with running(agent, store=await crashed(forever, is_active=True)) as hub:
        source = await hub.reader.read("s", NOBODY)
        assert source.session.status_of("t1") == "failed"


# -- damage ----------------------------------------------------------------------------------------


async def test_damaged_session_gives_its_error() -> None:
    class Damaged(GatedStore):
        bad = False

        async def read(
            self, session_id: str, after: int = 0, limit: int = 1000
        ) -> list[tuple[int, bytes]]:
            if self.bad:
                raise StoreDamaged(session_id, after)
            return await super().read(session_id, after, limit)

    store = Damaged()
    async with running(agent, store=store) as hub:
        await talked(hub, "one")
        evict(hub)
        store.bad = True
        with pytest.raises(StoreDamaged):
            await hub.reader.read("s", NOBODY)
        with (
            patch.object(hub.directory.states, "_try_restore", side_effect=KeyError("x")),
            pytest.raises(InternalError, match="cannot be read"),
        ):
            await hub.reader.read("s", NOBODY)
        store.bad = False
        assert hub.sessions == {}
        assert (await hub.reader.read("s", NOBODY)).session.turn_count == 1


@pytest.mark.parametrize("bad", [UNREADABLE, IMPOSSIBLE], ids=["no JSON", "impossible"])
async def test_session_with_an_unreadable_fact_is_read_up_to_it_also_while_it_is_loaded(
    bad: bytes,
) -> None:
    """Two attempts at the same time do not disturb each other."""
    store = GatedStore()
    async with running(agent, store=store) as hub:
        await talked(hub, *[f"m{number}" for number in range(8)])
        evict(hub)
        whole = await told(hub, await hub.reader.read("s", NOBODY))
        at = len(store._facts["s"]) + 1
        store._facts["s"] += [bad, b"and what came after it"]
        states, head = hub.directory.states, (await hub.directory.head("s", NOBODY))
        copies = await asyncio.gather(*[states.peek(head) for _ in range(3)], states.read(head))
        assert [copy.sequence for copy in copies] == [at - 1] * 4
        with patch("arp.live.states.MANY_TURNS", 1):  # so that its history reads the log again
            source = await hub.reader.read("s", NOBODY)
        sealed = source.session.sealed
        assert sealed is not None
        assert f"fact {at} cannot be read" in sealed.message
        assert await told(hub, source) == whole
        assert hub.sessions == {}


async def test_unusable_state_is_reported_when_the_session_is_loaded_not_when_it_is_read() -> None:
    store = GatedStore()
    settings = HubSettings(model_every_facts=1, stop_grace_s=0.05)
    async with running(agent, store=store, settings=settings) as hub:
        await talked(hub, "one")
        states = hub.directory.states
        await states.keep_up()
        evict(hub)
        await states.keep_up()
        sequence, _ = store._models["s", states.name]
        store._models["s", states.name] = sequence, b"damaged"
        before = stored(store)
        await hub.reader.read("s", NOBODY)
        await states.keep_up()
        assert stored(store) == before
        await (await hub.find("s", NOBODY)).written()
        assert [one.type for one in await store.facts()][-1] == "snapshot.repaired"


# -- loads and removals at the same time -----------------------------------------------------------


async def test_session_that_is_deleted_while_it_is_read_is_not_found() -> None:
    store = GatedStore()
    async with running(agent, store=store) as hub, asyncio.timeout(WAIT_S):
        await talked(hub, "one")
        evict(hub)
        store.stop_reads()
        reading = asyncio.ensure_future(hub.reader.read("s", NOBODY))
        await store.reading.wait()
        assert await store.delete("s")  # as another process does
        store.released.set()
        with pytest.raises(SessionNotFound):
            await reading


async def test_session_that_was_made_again_while_it_is_read_is_the_new_one() -> None:
    store = GatedStore()
    async with running(agent, store=store) as hub, asyncio.timeout(WAIT_S):
        await talked(hub, "old")
        evict(hub)
        store.stop_reads()
        reading = asyncio.ensure_future(hub.reader.read("s", NOBODY))
        await store.reading.wait()
        await store.delete("s")
        live = await hub.open("s", NOBODY, "agent")
        await live.written()
        store.released.set()
        assert await reading is live


async def test_session_that_is_half_removed_is_not_found() -> None:
    store = GatedStore()
    async with running(agent, store=store) as hub, asyncio.timeout(WAIT_S):
        await talked(hub, "one")
        evict(hub)
        begun, released = asyncio.Event(), asyncio.Event()
        delete = store.delete

        async def slow(session_id: str) -> bool:
            begun.set()
            await released.wait()
            return await delete(session_id)

        with patch.object(store, "delete", slow):
            deleting = asyncio.ensure_future(hub.delete("s", NOBODY))
            await begun.wait()
            store.reads = 0
            reading = asyncio.ensure_future(hub.reader.read("s", NOBODY))
            for _ in range(20):
                await asyncio.sleep(0)
            assert not reading.done()
            assert store.reads == 0
            released.set()
            with pytest.raises(SessionNotFound):
                await reading
            await deleting


async def test_session_that_is_being_loaded_is_the_one_that_comes_into_memory() -> None:
    store = GatedStore()
    async with running(agent, store=store) as hub, asyncio.timeout(WAIT_S):
        await talked(hub, "one")
        evict(hub)
        store.stop_reads()
        loading = asyncio.ensure_future(hub.find("s", NOBODY))
        await store.reading.wait()
        reading = asyncio.ensure_future(hub.reader.read("s", NOBODY))
        await asyncio.sleep(0)
        store.released.set()
        assert await reading is await loading


# -- costs -----------------------------------------------------------------------------------------


async def test_requests_at_the_same_time_share_one_copy_and_later_ones_see_newer_facts() -> None:
    store = GatedStore()
    async with running(agent, store=store) as hub, asyncio.timeout(WAIT_S):
        await talked(hub, "one")
        evict(hub)
        store.stop_reads()
        first = [asyncio.ensure_future(hub.reader.read("s", NOBODY)) for _ in range(4)]
        await store.reading.wait()
        first.pop().cancel()  # one that gives up takes no other along
        at = len(store._facts["s"])
        title = b'{"schemaVersion":"x","runtimeId":"arp","sessionId":"s","eventId":"s-%d",' % (
            at + 1
        )
        title += b'"timestamp":"x","sequence":%d,"type":"session.updated",' % (at + 1)
        title += b'"payload":{"name":"New"},"threadId":"main"}'
        row = await store.session("s")
        await store.append([SessionWrite("s", at, [title], row)])  # as another process does
        later = asyncio.ensure_future(hub.reader.read("s", NOBODY))
        await becomes(lambda: len(hub.reader._copying) == 2)
        store.released.set()
        copies = await asyncio.gather(*first)
        assert len({id(copy.session) for copy in copies}) == 1
        assert (await later).stored == at + 1
        assert hub.reader._copying == {}


async def test_reading_many_sessions_keeps_none_of_them() -> None:
    def sessions() -> int:
        return sum(isinstance(one, Session) for one in gc.get_objects())

    store = GatedStore()
    async with running(agent, store=store) as hub:
        names = [f"s{number}" for number in range(30)]
        for name in names:
            await talked(hub, "one", session_id=name)
        store._facts["s7"].append(UNREADABLE)
        assert evict(hub) == 30
        for cache in hub._caches:
            await cache.keep_up()
        gc.collect()
        before = sessions()
        gc.disable()  # a server almost never runs a full collection
        try:
            for name in names:
                source = await hub.reader.read(name, NOBODY)
                assert len(await told(hub, source)) == 1
                del source
            for _ in range(2):
                await asyncio.sleep(0)  # the loop still holds callbacks of the last task
            assert sessions() == before
        finally:
            gc.enable()
        assert hub.sessions == {}
        assert hub.reader._copying == {}
        assert hub.listing.rows == {}
        assert hub.directory.states._stored == {}


async def test_few_sessions_are_restored_at_the_same_time() -> None:
    """They do not count against the sessions in memory."""
    store = GatedStore()
    async with running(agent, store=store) as hub, asyncio.timeout(WAIT_S):
        names = [f"s{number}" for number in range(MAX_RESTORING + 4)]
        for name in names:
            await talked(hub, "one", session_id=name)
        assert evict(hub) == len(names)
        store.stop_reads()
        store.reads = 0
        reading = [asyncio.ensure_future(hub.reader.read(name, NOBODY)) for name in names]
        await becomes(lambda: len(hub.reader._copying) == len(names))
        await becomes(lambda: store.reads == MAX_RESTORING)
        await asyncio.sleep(0.02)
        assert store.reads == MAX_RESTORING
        store.released.set()
        assert len({id(copy.session) for copy in await asyncio.gather(*reading)}) == len(names)


async def test_turns_that_a_long_log_evicts_do_not_stay_in_a_copy() -> None:
    """They come from the log again when they are wanted."""
    store = GatedStore()
    async with running(agent, store=store) as hub:
        await talked(hub, *[f"m{number}" for number in range(12)])
        evict(hub)
        hub.directory.states._evicted.clear()
        store._models.clear()
        with patch("arp.live.states.MANY_TURNS", 1):
            copy = await hub.directory.states.peek(await hub.directory.head("s", NOBODY))
        assert store._models == {}
        assert copy.screen.departed == []
        page = await hub.history.page(SessionCopy(copy, copy.sequence), "t4", 9)
        assert [past.text for past in page] == ["re m0", "re m1", "re m2"]


async def test_stop_waits_for_copies() -> None:
    """A read after the store is closed would fail, with nobody to tell."""
    store = GatedStore()
    hub = await started(agent, store=store)
    await talked(hub, "one")
    evict(hub)
    store.stop_reads()
    reading = asyncio.ensure_future(hub.reader.read("s", NOBODY))
    await store.reading.wait()
    closing = asyncio.ensure_future(hub.aclose())
    await asyncio.sleep(0.01)
    assert not closing.done()
    store.released.set()
    await closing
    assert not hub.reader._copying
    await asyncio.gather(reading, return_exceptions=True)
