"""Blobs are what was put, or they are not there."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arp.protocol.errors import ResourceLimit
from arp.store.blobs import Blob, Blobs, BlobStore, MemoryBlobs
from arp.store.errors import BlobNotFound, StoreUnavailable, StoreUnwritable

HELLO = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
"""SHA-256 of `hello`."""

EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


@pytest.fixture(params=["memory", "directory"])
def blobs(request: pytest.FixtureRequest, tmp_path: Path) -> Blobs:
    return MemoryBlobs() if request.param == "memory" else BlobStore(tmp_path / "blobs")


def names(directory: Path) -> list[str]:
    return [path.name for path in directory.iterdir()]


async def stream(*chunks: bytes) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


async def test_a_blob_is_named_by_what_it_contains(blobs: Blobs) -> None:
    blob = await blobs.put(stream(b"he", b"", b"llo"), max_bytes=5)
    assert blob == Blob(id=HELLO, size=5, sha256=HELLO)
    assert await blobs.read(HELLO) == b"hello"


async def test_equal_bytes_are_one_blob(blobs: Blobs) -> None:
    first = await blobs.put(stream(b"hello"), max_bytes=10)
    assert await blobs.put(stream(b"hel", b"lo"), max_bytes=10) == first
    assert await blobs.read(HELLO) == b"hello"


async def test_an_empty_blob_is_a_blob(blobs: Blobs) -> None:
    assert await blobs.put(stream(), max_bytes=0) == Blob(id=EMPTY, size=0, sha256=EMPTY)
    assert await blobs.read(EMPTY) == b""


async def test_a_large_blob_comes_back_whole(blobs: Blobs) -> None:
    part = bytes(range(256)) * 400
    blob = await blobs.put(stream(*[part] * 20), max_bytes=2**22)
    assert blob.size == 2_048_000
    assert blob.sha256 == hashlib.sha256(part * 20).hexdigest()
    assert await blobs.read(blob.id) == part * 20


async def test_too_much_is_refused_at_once_and_nothing_is_kept(blobs: Blobs) -> None:
    asked = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal asked
        while True:
            asked += 1
            yield b"x" * 100_000

    with pytest.raises(ResourceLimit, match="the file is larger than 450000 bytes"):
        await blobs.put(endless(), max_bytes=450_000)
    assert asked == 5
    if isinstance(blobs, BlobStore):
        assert names(blobs.directory) == []


@pytest.mark.parametrize(
    "blob_id",
    ["", "../ledger.db", HELLO[:-1], HELLO.upper(), HELLO + "0", HELLO + "\n", "g" * 64, EMPTY],
)
async def test_an_id_that_names_no_blob_is_not_found(blobs: Blobs, blob_id: str) -> None:
    """threats.md, file access: a client never chooses a path."""
    await blobs.put(stream(b"hello"), max_bytes=5)
    with pytest.raises(BlobNotFound, match="no such blob"):
        await blobs.read(blob_id)


@given(st.text(max_size=70))
def test_no_text_but_a_digest_gives_a_path(blob_id: str) -> None:
    with pytest.raises(BlobNotFound):
        BlobStore("blobs").path(blob_id)


def test_a_path_lies_in_the_directory() -> None:
    assert BlobStore("blobs").path(HELLO) == Path("blobs") / HELLO


async def test_a_stream_that_breaks_leaves_nothing(tmp_path: Path) -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield b"x" * 300_000
        raise ConnectionResetError("the browser went away")

    blobs = BlobStore(tmp_path)
    with pytest.raises(ConnectionResetError):
        await blobs.put(broken(), max_bytes=2**20)
    assert names(tmp_path) == []


async def test_an_upload_that_is_cancelled_leaves_nothing(tmp_path: Path) -> None:
    waits = asyncio.Event()

    async def stuck() -> AsyncIterator[bytes]:
        yield b"x" * 300_000
        waits.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(BlobStore(tmp_path).put(stuck(), max_bytes=2**20))
    await waits.wait()
    assert [name[:12] for name in names(tmp_path)] == [".unfinished-"]
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert names(tmp_path) == []


async def test_a_blob_that_changed_on_the_disk_is_not_given(tmp_path: Path) -> None:
    blobs = BlobStore(tmp_path)
    await blobs.put(stream(b"hello"), max_bytes=5)
    blobs.path(HELLO).write_bytes(b"hellO")
    with pytest.raises(StoreUnavailable, match="is damaged on the disk"):
        await blobs.read(HELLO)


async def test_a_directory_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreUnwritable, match="Not a directory"):
        await BlobStore(tmp_path / "file" / "blobs").put(stream(b"x"), max_bytes=5)
