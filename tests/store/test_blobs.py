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
from arp.store.blobs import Blob, Blobs, BlobStore, Files, MemoryBlobs
from arp.store.errors import BlobNotFound, StoreUnavailable, StoreUnwritable

HELLO = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
"""SHA-256 of `hello`."""

EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


KEY = "043a718774c572bd8a25adbeb1bfcd5c0256ae11cecf9f9c3f925d0e52beaf89"
"""SHA-256 of `s`."""


@pytest.fixture(params=["memory", "directory"])
def blobs(request: pytest.FixtureRequest, tmp_path: Path) -> Blobs:
    return MemoryBlobs() if request.param == "memory" else BlobStore(tmp_path / "blobs")


@pytest.fixture
def files(blobs: Blobs) -> Files:
    return blobs.of("s")


def names(directory: Path) -> list[str]:
    """Return what files there are, with those of all sessions."""
    return [str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file()]


async def stream(*chunks: bytes) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


async def test_a_blob_is_named_by_what_it_contains(files: Files) -> None:
    blob = await files.put(stream(b"he", b"", b"llo"), max_bytes=5)
    assert blob == Blob(id=HELLO, size=5, sha256=HELLO)
    assert await files.read(HELLO) == b"hello"


async def test_equal_bytes_are_one_blob(files: Files) -> None:
    first = await files.put(stream(b"hello"), max_bytes=10)
    again = await files.put(stream(b"hel", b"lo"), max_bytes=10)
    assert (first.id, first.is_new, again.id, again.is_new) == (HELLO, True, HELLO, False)
    assert await files.read(HELLO) == b"hello"


async def test_the_size_of_sessions_is_reported_in_bytes(blobs: Blobs) -> None:
    for name, content in (("a", b"12345"), ("a", b"123"), ("b", b"12345"), ("c", b"1")):
        await blobs.of(name).put(stream(content), max_bytes=10)
    assert await blobs.total_bytes(["a", "b", "none"]) == 13
    async with blobs.removal("a"):
        assert await blobs.total_bytes(["a", "b"]) == 5


async def test_an_empty_blob_is_a_blob(files: Files) -> None:
    assert await files.put(stream(), max_bytes=0) == Blob(id=EMPTY, size=0, sha256=EMPTY)
    assert await files.read(EMPTY) == b""


async def test_a_large_blob_is_read_back_unchanged(files: Files) -> None:
    part = bytes(range(256)) * 400
    blob = await files.put(stream(*[part] * 20), max_bytes=2**22)
    assert blob.size == 2_048_000
    assert blob.sha256 == hashlib.sha256(part * 20).hexdigest()
    assert await files.read(blob.id) == part * 20


async def test_too_much_is_refused_at_once_and_nothing_is_kept(blobs: Blobs, files: Files) -> None:
    asked = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal asked
        while True:
            asked += 1
            yield b"x" * 100_000

    with pytest.raises(ResourceLimit, match="the file is larger than 450000 bytes"):
        await files.put(endless(), max_bytes=450_000)
    assert asked == 5
    if isinstance(blobs, BlobStore):
        assert names(blobs.directory) == []


@pytest.mark.parametrize(
    "blob_id",
    ["", "../ledger.db", HELLO[:-1], HELLO.upper(), HELLO + "0", HELLO + "\n", "g" * 64, EMPTY],
)
async def test_an_id_that_names_no_blob_is_not_found(files: Files, blob_id: str) -> None:
    """threats.md, file access: a client never chooses a path."""
    await files.put(stream(b"hello"), max_bytes=5)
    with pytest.raises(BlobNotFound, match="no such blob"):
        await files.read(blob_id)


@given(st.text(max_size=70))
def test_no_text_but_a_digest_gives_a_path(blob_id: str) -> None:
    with pytest.raises(BlobNotFound):
        BlobStore("blobs").of("s").path(blob_id)


def test_a_path_lies_in_the_directory() -> None:
    assert BlobStore("blobs").of("s").path(HELLO) == Path("blobs", KEY, HELLO)


async def test_a_stream_that_breaks_leaves_nothing(tmp_path: Path) -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield b"x" * 300_000
        raise ConnectionResetError("the browser went away")

    files = BlobStore(tmp_path).of("s")
    with pytest.raises(ConnectionResetError):
        await files.put(broken(), max_bytes=2**20)
    assert names(tmp_path) == []


async def test_an_upload_that_is_cancelled_leaves_nothing(tmp_path: Path) -> None:
    waits = asyncio.Event()

    async def stuck() -> AsyncIterator[bytes]:
        yield b"x" * 300_000
        waits.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(BlobStore(tmp_path).of("s").put(stuck(), max_bytes=2**20))
    await waits.wait()
    assert [name[:12] for name in names(tmp_path)] == [".unfinished-"]
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert names(tmp_path) == []


async def test_what_a_session_holds_it_holds_alone(blobs: Blobs) -> None:
    await blobs.of("s").put(stream(b"hello"), max_bytes=5)
    with pytest.raises(BlobNotFound):
        await blobs.of("t").read(HELLO)


@pytest.mark.parametrize("session_id", ["", ".", "..", "../x", "a/b", "\0", "ü", "CON", "x" * 300])
async def test_a_session_of_any_name_has_a_place_in_the_directory(
    tmp_path: Path, session_id: str
) -> None:
    files = BlobStore(tmp_path / "blobs").of(session_id)
    await files.put(stream(b"hello"), max_bytes=5)
    assert files.path(HELLO).parent.parent == tmp_path / "blobs"
    assert await files.read(HELLO) == b"hello"


async def test_with_a_session_its_files_are_gone_and_no_others(blobs: Blobs) -> None:
    for session_id in ("s", "t"):
        await blobs.of(session_id).put(stream(b"hello"), max_bytes=5)
    async with blobs.removal("s"):
        with pytest.raises(BlobNotFound):
            await blobs.of("s").read(HELLO)
    async with blobs.removal("s"), blobs.removal("one without files"):
        pass
    with pytest.raises(BlobNotFound):
        await blobs.of("s").read(HELLO)
    assert await blobs.of("t").read(HELLO) == b"hello"
    if isinstance(blobs, BlobStore):
        assert len(names(blobs.directory)) == 1


async def test_a_session_that_could_not_be_removed_has_its_files(blobs: Blobs) -> None:
    await blobs.of("s").put(stream(b"hello"), max_bytes=5)
    with pytest.raises(StoreUnavailable):
        async with blobs.removal("s"):
            raise StoreUnavailable("the disk is gone")
    assert await blobs.of("s").read(HELLO) == b"hello"


async def test_what_is_still_coming_when_its_session_is_removed_is_not_kept(
    tmp_path: Path,
) -> None:
    blobs, begun, gone = BlobStore(tmp_path), asyncio.Event(), asyncio.Event()

    async def slow() -> AsyncIterator[bytes]:
        begun.set()
        await gone.wait()
        yield b"hello"

    task = asyncio.create_task(blobs.of("s").put(slow(), max_bytes=5))
    await begun.wait()
    async with blobs.removal("s"):
        pass
    gone.set()
    with pytest.raises(StoreUnwritable):
        await task
    assert names(tmp_path) == []


def test_what_is_made_aside_is_private_and_gone_afterwards(blobs: Blobs) -> None:
    with blobs.temporary_directory() as aside:
        (aside / "pack.zip").write_bytes(b"half")
        assert aside.stat().st_mode & 0o777 == 0o700
    assert not aside.exists()


def test_a_disk_that_refuses_what_is_made_aside_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    blobs = BlobStore(tmp_path / "file")
    with pytest.raises(StoreUnwritable, match="file"), blobs.temporary_directory():
        pass


async def test_a_blob_that_changed_on_the_disk_is_not_given(tmp_path: Path) -> None:
    files = BlobStore(tmp_path).of("s")
    await files.put(stream(b"hello"), max_bytes=5)
    files.path(HELLO).write_bytes(b"hellO")
    with pytest.raises(StoreUnavailable, match="is damaged on the disk"):
        await files.read(HELLO)


async def test_a_directory_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreUnwritable, match="Not a directory"):
        await BlobStore(tmp_path / "file" / "blobs").of("s").put(stream(b"x"), max_bytes=5)
