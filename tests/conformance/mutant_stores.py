"""Registers mutants: stores with one fault, which a case of the store suite must find."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias, TypeVar

from msgspec.structs import replace as replace

from arp.conformance.store.own_stores import MemoryUnderTest, SqliteUnderTest
from arp.conformance.store.store_under_test import StoreFactory, StoreUnderTest
from arp.store.memory import MemoryStore
from arp.store.sqlite import SqliteStore
from arp.store.store import SessionWrite, Store
from tests.support.shared_memory import SharedMemoryStore, SharedUnderTest

Writes: TypeAlias = Sequence[SessionWrite]
Units: TypeAlias = Sequence[frozenset[str]]
Kind = TypeVar("Kind", bound="type[MemoryStore] | type[SqliteStore]")

MUTANTS: dict[str, StoreFactory] = {}
"""For each case, the factory of its mutant."""


def found_by(case: str) -> Callable[[Kind], Kind]:
    """Return a decorator that registers the class of a mutant store."""

    def register(kind: Kind) -> Kind:
        def factory(directory: Path, /) -> StoreUnderTest:
            if issubclass(kind, SharedMemoryStore):
                return SharedUnderTest(kind)
            if issubclass(kind, MemoryStore):
                return MemoryMutant(kind)
            return SqliteMutant(directory, kind)

        # Other processes import the factory by this name.
        factory.__module__, factory.__qualname__ = kind.__module__, f"{kind.__qualname__}.factory"
        kind.factory = staticmethod(factory)  # type: ignore[union-attr] # only for that import
        assert case not in MUTANTS
        MUTANTS[case] = factory
        return kind

    return register


class MemoryMutant(MemoryUnderTest):
    """A mutant of `MemoryStore`."""

    def __init__(self, kind: type[MemoryStore]) -> None:
        self.kind = kind

    def make(self) -> Store:
        return self.kind()


class SqliteMutant(SqliteUnderTest):
    """A mutant of `SqliteStore`."""

    def __init__(self, directory: Path, kind: type[SqliteStore]) -> None:
        super().__init__(directory)
        self.kind = kind

    def make(self) -> Store:
        return self.kind(self.path)
