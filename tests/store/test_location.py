"""From what a person writes to a store."""

from __future__ import annotations

import os
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from arp.store.blobs import BlobStore, MemoryBlobs
from arp.store.errors import StoreUnavailable
from arp.store.location import open_blobs, open_store
from arp.store.memory import MemoryStore
from arp.store.sqlite import SqliteStore
from tests.store.samples import put


@pytest.mark.parametrize(
    ("location", "path"),
    [
        ("sqlite:.arp/ledger.db", ".arp/ledger.db"),
        ("SQLite:/var/arp/l.db", "/var/arp/l.db"),
        (".arp/ledger.db", ".arp/ledger.db"),
        ("ledger", "ledger"),
        (r"C:\arp\ledger.db", r"C:\arp\ledger.db"),
        ("sqlite:a:b", "a:b"),
    ],
)
def test_a_path_is_a_ledger_in_a_file(location: str, path: str) -> None:
    store = open_store(location)
    assert isinstance(store, SqliteStore)
    assert store.path == Path(path)


def test_memory_is_memory() -> None:
    assert isinstance(open_store("memory:"), MemoryStore)
    assert isinstance(open_blobs("memory:"), MemoryBlobs)


@pytest.mark.parametrize(
    ("location", "message"),
    [
        (
            "nats://localhost:4222",
            (
                "nats: ledgers are not available in this version; use sqlite:PATH, postgresql://… "
                "or memory:"
            ),
        ),
        (
            "redis://x/y",
            "no ledger of kind 'redis:'; use sqlite:PATH, postgresql://… or memory:",
        ),
        ("sqlite:", "sqlite: needs the path of a file, as in sqlite:.arp/ledger.db"),
        ("", "sqlite: needs the path of a file, as in sqlite:.arp/ledger.db"),
    ],
)
def test_what_is_no_store_says_what_is(location: str, message: str) -> None:
    with pytest.raises(StoreUnavailable) as refused:
        open_store(location)
    assert str(refused.value) == message


def test_blobs_live_beside_their_ledger(tmp_path: Path) -> None:
    blobs = open_blobs(f"sqlite:{tmp_path}/ledger.db")
    assert isinstance(blobs, BlobStore)
    assert blobs.directory == tmp_path / "ledger.blobs"


def test_what_a_killed_process_left_unfinished_is_removed(tmp_path: Path) -> None:
    left = tmp_path / "ledger.blobs" / ".unfinished-abc"
    left.parent.mkdir()
    left.write_bytes(b"half")
    aside = left.with_name(".unfinished-def")
    aside.mkdir()
    (aside / "pack.zip").write_bytes(b"half")
    (left.parent / "kept").write_bytes(b"")
    open_blobs(str(tmp_path / "ledger.db"))
    assert [path.name for path in left.parent.iterdir()] == ["kept"]


def kinds_below(directory: Path) -> dict[str, tuple[bool, int]]:
    """Return by name whether something is a directory, and its mode."""
    found = [(path, path.stat()) for path in directory.rglob("*")]
    return {path.name: (path.is_dir(), stat.S_IMODE(state.st_mode)) for path, state in found}


async def test_what_lies_beside_a_ledger_is_for_its_user_alone(tmp_path: Path) -> None:
    """From the first directory that is made; whatever the umask."""
    before = os.umask(0o022)
    try:
        location = f"sqlite:{tmp_path / 'a' / 'b' / 'ledger.db'}"
        store = open_store(location)
        await store.open()
        await put(store, 1, 1)

        async def content() -> AsyncIterator[bytes]:
            yield b"x"

        await open_blobs(location).of("s1").put(content(), max_bytes=10)
        kinds = kinds_below(tmp_path)
        await store.aclose()
    finally:
        os.umask(before)
    assert {"a", "b", "ledger.blobs", "ledger.db", "ledger.db-wal", "ledger.db.lock"} <= set(kinds)
    assert {mode for is_directory, mode in kinds.values() if is_directory} == {0o700}
    assert {mode for is_directory, mode in kinds.values() if not is_directory} == {0o600}
