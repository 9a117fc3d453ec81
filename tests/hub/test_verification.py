"""Sessions are compared with the hashes that the ledger keeps, in nobody's way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import arp.hub.readers.verification as verification_module
from arp.hub.readers.verification import Verifier
from arp.store.errors import StoreUnreadable
from arp.store.session_list import SessionMeta
from arp.store.sqlite import SqliteStore
from arp.store.store import SessionWrite
from tests.store import tampering
from tests.store.samples import facts, meta
from tests.support.waiting import becomes

NAMES = ("a", "b", "c")


@asynccontextmanager
async def reopened(path: Path) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(path)
    await store.open()
    yield store
    await store.aclose()


@pytest.fixture
async def path(tmp_path: Path) -> Path:
    """A ledger file with three sessions, of which Ann has two."""
    async with reopened(tmp_path / "l.db") as store:
        for name in NAMES:
            row = meta(name, owner="bob" if name == "c" else "ann")
            await store.append([SessionWrite(name, 0, facts(1, 1200, name), row)])
    return tmp_path / "l.db"


async def over(verifier: Verifier) -> None:
    verifier.begin()
    await becomes(lambda: verifier.report("ann").state in ("done", "stopped"))


async def test_a_round_names_the_broken_sessions_to_their_owners(path: Path) -> None:
    for name in ("b", "c"):
        tampering.change(path, b'"sequence":700}', b'"sequence":701}', name)
    async with reopened(path) as store:
        verifier = Verifier(store)
        assert verifier.report("ann").state == "not_begun"
        await over(verifier)
        mine, his, nobodys = (verifier.report(owner) for owner in ("ann", "bob", None))
    assert (mine.sessions, mine.broken, mine.unkept) == (3, 2, 0)
    assert [(one.session_id, one.sequence, one.through) for one in mine.named] == [("b", 1, 1200)]
    assert [one.session_id for one in his.named] == ["c"]
    assert (nobodys.broken, nobodys.named) == (2, [])


async def test_facts_that_fail_their_checksum_are_broken_too(path: Path) -> None:
    tampering.run(path, "UPDATE segment SET crc = crc + 1 WHERE session = 'a'")
    async with reopened(path) as store:
        found = await Verifier(store).check("a", "e1")
    assert found.broken is not None
    assert (found.broken.sequence, found.facts) == (1, 0)


async def test_a_session_of_which_nothing_is_sorted_yet_is_counted(path: Path) -> None:
    async with reopened(path) as store:
        await store.append([SessionWrite("new", 0, facts(1, 2, "new"), meta("new"))])
        verifier = Verifier(store)
        await over(verifier)
        assert (verifier.report("ann").sessions, verifier.report("ann").unkept) == (4, 1)


async def test_a_session_that_was_mended_or_deleted_is_forgotten_by_the_next_round(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verification_module, "REST_S", 0.0)
    monkeypatch.setattr(verification_module, "RESTS", 0.0)
    for name in ("a", "b"):
        tampering.change(path, b'"sequence":700}', b'"sequence":701}', name)
    async with reopened(path) as store:
        verifier = Verifier(store)
        await over(verifier)
        assert verifier.report("ann").broken == 2
        tampering.change(path, b'"sequence":701},'[:-1], b'"sequence":700}', "a")
        await store.delete("b")
        verifier.begin()
        await becomes(
            lambda: verifier.report("ann").sessions == 2 and not verifier.report("ann").broken
        )


async def test_a_session_that_is_deleted_while_it_is_looked_at_is_not_broken(path: Path) -> None:
    tampering.change(path, b'"sequence":700}', b'"sequence":701}', "a")

    class Deleting(SqliteStore):
        async def session(self, session_id: str) -> SessionMeta | None:
            return None

    store = Deleting(path)
    await store.open()
    verifier = Verifier(store)
    await over(verifier)
    assert verifier.report("ann").broken == 0
    await store.aclose()


async def test_a_round_does_not_begin_again_at_once(path: Path) -> None:
    async with reopened(path) as store:
        verifier = Verifier(store)
        await over(verifier)
        tampering.change(path, b'"sequence":700}', b'"sequence":701}', "a")
        verifier.begin()
        await asyncio.sleep(0)
        assert verifier.report("ann").state == "done"


async def test_a_ledger_that_cannot_be_read_stops_the_round(path: Path) -> None:
    class Unreadable(SqliteStore):
        async def heads(self, session_id: str) -> list[tuple[int, bytes | None]]:
            raise StoreUnreadable("the disk stutters")

    store = Unreadable(path)
    await store.open()
    verifier = Verifier(store)
    await over(verifier)
    assert verifier.report("ann").state == "stopped"
    await store.aclose()


async def test_a_round_rests_longer_than_it_works_and_others_go_on(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rests: list[float] = []
    sleep = asyncio.sleep

    async def noted(seconds: float) -> None:
        rests.append(seconds)
        await sleep(0)

    monkeypatch.setattr(asyncio, "sleep", noted)
    async with reopened(path) as store:
        await Verifier(store).check("a", "e1", verification_module.PAUSE)
    assert len(rests) == 3, "1,200 facts are three pages"
    assert min(rests) > 0


async def test_a_round_ends_with_its_hub(path: Path) -> None:
    async with reopened(path) as store:
        verifier = Verifier(store)
        verifier.begin()
        await verifier.aclose()
        await verifier.aclose()
        assert verifier.report("ann").sessions == 0
