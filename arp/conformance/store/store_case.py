"""`StoreCase`, one promise of the contract, and `StoreRun`, which checks it on a store."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Literal, NamedTuple

from arp.conformance.cases import CaseFailed, CaseList, CaseUnreachable, Check, expect, expect_same
from arp.conformance.store.checked_store import CheckedStore
from arp.conformance.store.store_under_test import StoreFactory, StoreUnderTest
from arp.conformance.store.writer_process import WriterProcess, import_name
from arp.store.errors import StoreError
from arp.store.session_list import SessionMeta
from arp.store.store import Refusals

StoreNeed = Literal["durable", "shared", "unshared"]
"""What a store must be for a case. `durable`: a new store object has what an earlier one stored.
`shared`: several processes may have the storage open; `unshared`: only one may."""

_ABSENCES: dict[StoreNeed, str] = {
    "durable": "a new store object does not have what an earlier one stored",
    "shared": "the store has no raise_fence, so it is not shared between processes",
    "unshared": "several processes may have the storage open",
}


class StoreCase(NamedTuple):
    """One promise of the contract."""

    name: str
    title: str
    """The promise in one sentence."""
    mutant: str
    """A fault of one line that makes the case fail."""
    needs: frozenset[StoreNeed]
    check: Check[StoreRun]


class StoreCases(CaseList[StoreCase, "StoreRun"]):
    """The cases of one subject, in source order."""

    def add(self, mutant: str, *needs: StoreNeed) -> Callable[[Check[StoreRun]], Check[StoreRun]]:
        """Return a decorator that adds a case; its title is the function's docstring.

        Args:
            mutant: A fault of one line that makes the case fail.
            *needs: What a store must be for the case.
        """

        def make(name: str, title: str, check: Check[StoreRun]) -> StoreCase:
            return StoreCase(name, title, mutant, frozenset(needs), check)

        return self.adder(make)


class NotAdvertised(Exception):
    """The store does not offer what a case needs; the message says what is missing."""


class StoreRun:
    """One run of a case: the store objects and processes that it creates.

    Args:
        factory: Factory of the store under test.
        under_test: What the factory returned for `directory`.
        directory: Directory of the storage.
    """

    def __init__(self, factory: StoreFactory, under_test: StoreUnderTest, directory: Path) -> None:
        self._factory = factory
        self._under_test = under_test
        self._directory = directory
        self._stores: list[CheckedStore] = []
        self._others: list[StoreUnderTest] = []

    def make(self) -> CheckedStore:
        """Return a new store object, not opened; it is closed after the case."""
        return self._made_by(self._under_test)

    async def open(self) -> CheckedStore:
        """Return a new open store object."""
        store = self.make()
        await store.open()
        return store

    async def reopened(self, store: CheckedStore) -> CheckedStore:
        """Close a store object, and return a new open one over the same storage."""
        await store.aclose()
        return await self.open()

    async def open_other(self) -> CheckedStore:
        """Return an open store object with a storage of its own."""
        directory = self._directory / f"other-{len(self._others)}"
        directory.mkdir()
        with _code_of_the_author("the factory"):
            other = self._factory(directory)
        self._others.append(other)
        store = self._made_by(other)
        await store.open()
        return store

    def damage(self, session_id: str, sequence: int) -> None:
        """Overwrite the stored bytes of a fact; see `StoreUnderTest.damage`."""
        with _code_of_the_author("damage"):
            self._under_test.damage(session_id, sequence)

    def damage_model(self, session_id: str, name: str) -> None:
        """Overwrite the stored data of a model; see `StoreUnderTest.damage_model`."""
        with _code_of_the_author("damage_model"):
            self._under_test.damage_model(session_id, name)

    @asynccontextmanager
    async def process(self, role: str) -> AsyncIterator[WriterProcess]:
        """Start a process with the same storage; it is killed at the end of the block.

        Args:
            role: What it does; see `writer_roles`.

        Raises:
            CaseUnreachable: Another process cannot import the factory.
        """
        name = import_name(self._factory)
        if name is None:
            raise CaseUnreachable("another process cannot import the factory by its name")
        process = await WriterProcess.start(role, name, self._directory)
        try:
            yield process
        finally:
            await process.kill()

    def require(self, needs: Collection[StoreNeed]) -> None:
        """Raise `NotAdvertised` if the store is not what a case needs."""
        is_shared = self._made_by(self._under_test).is_shared
        offers = {
            "durable": self._under_test.is_durable,
            "shared": is_shared,
            "unshared": not is_shared,
        }
        for need, absence in _ABSENCES.items():
            if need in needs and not offers[need]:
                raise NotAdvertised(absence)

    async def aclose(self) -> None:
        """Close every store object. The case has failed already if that is not possible."""
        for store in self._stores:
            with suppress(StoreError, CaseFailed):
                await store.aclose()
        for other in self._others:
            other.end()

    def _made_by(self, under_test: StoreUnderTest) -> CheckedStore:
        with _code_of_the_author("make"):
            store = CheckedStore(under_test.make())
        self._stores.append(store)
        return store


@contextmanager
def _code_of_the_author(method: str) -> Iterator[None]:
    """Turn exceptions of the author's code, except `CaseUnreachable`, into a failed case."""
    try:
        yield
    except CaseUnreachable:
        raise
    except Exception as error:
        raise CaseFailed(f"{method} raised {type(error).__name__}: {error}") from error


@contextmanager
def refused(error: type[StoreError], what: str) -> Iterator[None]:
    """Expect that the block raises an error of this class; `what` names the block."""
    try:
        yield
    except error:
        return
    except StoreError as other:
        raise CaseFailed(
            f"{what}: expected {error.__name__}, got {type(other).__name__}: {other}"
        ) from other
    raise CaseFailed(f"{what}: expected {error.__name__}, but the call succeeded")


def expect_refused(
    refusals: Refusals, error: type[StoreError], *session_ids: str, names: str = ""
) -> None:
    """Expect that exactly these sessions are refused, each with an error of this class.

    Args:
        refusals: Result of `Store.append`.
        error: Class of the errors.
        *session_ids: The sessions.
        names: Text that the messages must contain.
    """
    expect_same(sorted(refusals), sorted(session_ids), "sessions that append refused")
    for session_id, refusal in refusals.items():
        what = f"refusal of session {session_id!r:.80}"
        got = f"{type(refusal).__name__}: {refusal}"
        expect(isinstance(refusal, error), f"{what}: expected {error.__name__}, got {got}")
        expect(names in str(refusal), f"{what}: the message should name {names!r}: {got}")


def expect_row(got: SessionMeta | None, wanted: SessionMeta | None, what: str) -> None:
    """Expect that a row is the wanted one; the failure names the first field that differs."""
    if got is not None and wanted is not None:
        for field in SessionMeta.__struct_fields__:
            expect_same(getattr(got, field), getattr(wanted, field), f"{field} of the {what}")
    expect_same(got, wanted, what)


def expect_stored(refusals: Refusals) -> None:
    """Expect that no session was refused."""
    got = {name: f"{type(error).__name__}: {error}" for name, error in refusals.items()}
    expect_same(got, {}, "sessions that append refused")
