"""Turns that left are stored page by page, and read from the log where they are not."""

from __future__ import annotations

from collections.abc import Iterator
from unittest.mock import patch

import msgspec
import pytest

from arp.hub.hub import Hub
from arp.live.archive import Archive
from arp.live.live_session import LiveSession
from arp.session.session import Head
from arp.session.tracking import window
from arp.session.tracking.window import PastTurn
from tests.hub.rig import HeldStore, Renderer, running, settled
from tests.hub.test_history import agent
from tests.live.test_states import NOBODY, SpiedStore, gone

TURNS = 24


@pytest.fixture(autouse=True)
def _small() -> Iterator[None]:
    """Three turns stay in memory, a page has ten, and no session is too short to be stored."""
    with (
        patch.object(window, "RECENT_TURNS", 3),
        patch("arp.live.archive.PAGE_TURNS", 10),
        patch("arp.live.states.SHORT", 10),
        patch("arp.live.cache.SHORT", 10),
    ):
        yield


async def talked(hub: Hub, count: int = TURNS, first: int = 1) -> Renderer:
    user = await Renderer(hub).join()
    for number in range(first, first + count):
        await user.say(f"m{number}")
        await user.ended(f"t{number}")
    return user


async def told(hub: Hub, before: str | None, limit: int) -> list[tuple[int, str]]:
    live = await hub.find("s", NOBODY)
    return [(past.number, past.text) for past in await hub.history.page(live, before, limit)]


def expected(first: int, last: int) -> list[tuple[int, str]]:
    return [(number, f"re m{number}") for number in range(first, last + 1)]


async def stored(store: HeldStore) -> list[str]:
    return sorted(name for _, name in store._models if name.startswith("turns/"))


async def test_older_turns_are_read_without_the_log() -> None:
    """Whatever length it has; those that left lately are still in memory."""
    store = SpiedStore()
    async with running(agent, store=store) as hub:
        await gone(hub, await talked(hub))
        await hub.directory.states.keep_up()
        assert await stored(store) == ["turns/0", "turns/1", "turns/2"]
        await hub.find("s", NOBODY)
        store.reads.clear()
        assert await told(hub, "t13", 10) == expected(3, 12)
        assert await told(hub, "t3", 10) == expected(1, 2)
        assert await told(hub, None, 10) == expected(15, 24)
        assert store.reads == []


async def test_pages_are_filled_as_turns_leave() -> None:
    store = SpiedStore()
    async with running(agent, store=store) as hub:
        user = await talked(hub, 12)
        await gone(hub, user)
        await hub.directory.states.keep_up()
        await gone(hub, await talked(hub, 12, 13))
        await hub.directory.states.keep_up()
        store.reads.clear()
        await hub.find("s", NOBODY)
        store.reads.clear()
        assert await told(hub, None, 24) == expected(1, 24)
        assert store.reads == []


@pytest.mark.parametrize("data", [b"", b"{}", b'{"version":0,"epoch":"","turns":[]}'])
async def test_page_that_cannot_be_used_is_read_from_the_log(data: bytes) -> None:
    store = SpiedStore()
    async with running(agent, store=store) as hub:
        await gone(hub, await talked(hub))
        await hub.directory.states.keep_up()
        sequence, _ = store._models["s", "turns/0"]
        store._models["s", "turns/0"] = sequence, data
        assert await told(hub, "t13", 10) == expected(3, 12)
        assert 0 in store.reads


async def test_log_that_is_read_whole_fills_the_archive(monkeypatch: pytest.MonkeyPatch) -> None:
    """So the next page need not read it."""
    monkeypatch.setattr("arp.live.states.MANY_TURNS", 5)
    store = SpiedStore()
    async with running(agent, store=store) as hub:
        await gone(hub, await talked(hub))
        await hub.directory.states.keep_up()
        store._models.clear()
        live = await hub.find("s", NOBODY)
        assert len(live.session.screen.departed or ()) < TURNS - 3
        store.reads.clear()
        assert await told(hub, "t13", 10) == expected(3, 12)
        assert store.reads == []


async def test_reading_an_old_page_from_the_log_fills_the_archive(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("arp.hub.readers.history.MANY_TURNS", 5)
    store = SpiedStore()
    async with running(agent, store=store) as hub:
        await gone(hub, await talked(hub))
        await hub.directory.states.keep_up()
        await hub.find("s", NOBODY)
        for name in await stored(store):
            del store._models["s", name]
        store.reads.clear()
        assert await told(hub, "t13", 10) == expected(3, 12)
        assert store.reads
        store.reads.clear()
        assert await told(hub, "t11", 10) == expected(1, 10)
        assert store.reads == []


async def test_turns_that_could_not_be_stored_are_kept_for_the_next_time() -> None:
    store = SpiedStore()
    async with running(agent, store=store) as hub:
        user = await talked(hub)
        store.full = True
        live = hub.sessions["s"]
        await hub.directory.states._keep(live.id, live, 1)
        assert len(live.session.screen.departed or ()) == TURNS - 3
        user.leave()
        await settled(hub)


def past(live: LiveSession, turn_id: str) -> PastTurn:
    return live.session.screen.past(live.session.screen.turns[turn_id])


async def test_same_turns_make_the_same_bytes_in_whatever_pieces() -> None:
    """Also one that stayed longer than others, and comes into its page later."""
    whole, pieces = HeldStore(), HeldStore()
    async with running(agent) as hub:
        user = await talked(hub, 3)
        live = hub.sessions["s"]
        turns = [past(live, f"t{number}") for number in (1, 2, 3)]
        user.leave()
        await settled(hub)
        epoch = live.session.head.epoch
        log = list(hub.store._facts["s"])  # type: ignore[attr-defined]
    head = Head("s", epoch)
    for store in (whole, pieces):
        await store.open()
        store._facts["s"] = log
    await Archive(whole).save(head, len(log), turns)
    await Archive(pieces).save(head, 1, [turns[2]])
    await Archive(pieces).save(head, 2, [turns[0]])
    await Archive(pieces).save(head, len(log), [turns[1], turns[0]])
    assert whole._models == pieces._models
    found = await Archive(pieces).read(head, [1, 3, 4])
    assert {number: one.text for number, one in found.items()} == {1: "re m1", 3: "re m3"}
    assert msgspec.json.encode(found[1].turn) == msgspec.json.encode(turns[0].turn)


async def test_turns_of_another_life_of_the_session_are_not_given() -> None:
    store = SpiedStore()
    async with running(agent, store=store) as hub:
        await gone(hub, await talked(hub))
        await hub.directory.states.keep_up()
        assert await Archive(store).read(Head("s", "another life"), [1]) == {}
