"""Blobs: uploads and spilled output, named by what they contain."""

from __future__ import annotations

import asyncio
import os
import re
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, suppress
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, Final, Protocol, TypeVar

import msgspec

from arp.protocol.errors import ResourceLimit
from arp.store.directory import make_private_directory, sync_directory
from arp.store.errors import BlobNotFound, StoreUnavailable, StoreUnwritable

T = TypeVar("T")

_ID: Final = re.compile(r"[0-9a-f]{64}")

_CHUNK_BYTES: Final = 256 * 2**10
"""Gathered before a thread is asked to write: one change of threads for four network reads."""

_UNFINISHED: Final = ".unfinished-"


class Blob(msgspec.Struct, frozen=True):
    """What is known about stored bytes."""

    id: str
    """The SHA-256 of the content in 64 lower-case hex digits: equal bytes are one blob."""
    size: int
    """Bytes."""
    sha256: str


class Blobs(Protocol):
    """Where blobs live. Whoever may read one is not decided here: an id is not a credential."""

    async def put(self, stream: AsyncIterator[bytes], *, max_bytes: int) -> Blob:
        """Stores what comes until the stream ends; it is durable when this returns.

        Raises:
            ResourceLimit: More than `max_bytes` came; nothing is kept.
            StoreUnwritable: The disk refuses; nothing is kept. What `stream` raises comes through,
                with nothing kept either.

        Cancel: Safe; nothing is kept.
        """

    async def read(self, blob_id: str) -> bytes:
        """Gives all bytes of a blob, which are what was put.

        Raises:
            BlobNotFound: No such blob, or no id at all.
            StoreUnavailable: The bytes on the disk are not what was put.
        """

    def path(self, blob_id: str) -> Path | None:
        """Gives where a blob stands on the disk, if it is there; it need not exist.

        Returns:
            `None` where blobs are in no file: then `read` gives them.

        Raises:
            BlobNotFound: It is no id at all.
        """


class BlobStore:
    """`Blobs` in a directory, one file each; for one process, as the ledger beside it."""

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self.directory = Path(directory)

    def sweep(self) -> None:
        """Removes what a killed process left unfinished. To be called before the first `put`."""
        for leftover in self.directory.glob(_UNFINISHED + "*"):
            leftover.unlink(missing_ok=True)

    async def put(self, stream: AsyncIterator[bytes], *, max_bytes: int) -> Blob:
        """As `Blobs.put`."""
        upload = await self._on_disk(lambda: _Upload(self.directory))
        try:
            async with aclosing(_gather(stream, max_bytes)) as chunks:
                async for chunk in chunks:
                    await self._on_disk(partial(upload.write, chunk))
            return await self._on_disk(upload.finish)
        finally:
            upload.discard()

    async def read(self, blob_id: str) -> bytes:
        """As `Blobs.read`."""
        path = self.path(blob_id)
        try:
            data = await asyncio.to_thread(path.read_bytes)
        except FileNotFoundError as error:
            raise BlobNotFound from error
        return _checked(blob_id, data)

    def path(self, blob_id: str) -> Path:
        """Gives where a blob stands, for who streams it; it need not exist.

        Raises:
            BlobNotFound: The id is not 64 lower-case hex digits, so it can name no file.
        """
        return self.directory / _check_id(blob_id)

    async def _on_disk(self, action: Callable[[], T]) -> T:
        try:
            return await asyncio.to_thread(action)
        except OSError as error:
            raise StoreUnwritable(str(self.directory), str(error.strerror)) from error


class MemoryBlobs:
    """`Blobs` in memory, gone when the process is."""

    def __init__(self) -> None:
        self._blobs: dict[str, bytes] = {}

    async def put(self, stream: AsyncIterator[bytes], *, max_bytes: int) -> Blob:
        """As `Blobs.put`."""
        async with aclosing(_gather(stream, max_bytes)) as chunks:
            data = b"".join([chunk async for chunk in chunks])
        blob_id = sha256(data).hexdigest()
        self._blobs[blob_id] = data
        return Blob(blob_id, len(data), blob_id)

    async def read(self, blob_id: str) -> bytes:
        """As `Blobs.read`."""
        data = self._blobs.get(_check_id(blob_id))
        if data is None:
            raise BlobNotFound
        return data

    def path(self, blob_id: str) -> None:
        """As `Blobs.path`: in no file."""
        _check_id(blob_id)


class _Upload:
    """A file that is written under a name of its own and gets its true name when it is whole."""

    def __init__(self, directory: Path) -> None:
        make_private_directory(directory)
        fd, name = tempfile.mkstemp(prefix=_UNFINISHED, dir=directory)
        self._path = Path(name)
        self._file: BinaryIO = os.fdopen(fd, "wb", buffering=0)
        self._hash = sha256()
        self._size = 0

    def write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[self._file.write(rest) :]
        self._hash.update(data)
        self._size += len(data)

    def finish(self) -> Blob:
        os.fsync(self._file.fileno())
        self._file.close()
        blob_id = self._hash.hexdigest()
        self._path.replace(self._path.with_name(blob_id))
        sync_directory(self._path.parent)
        return Blob(blob_id, self._size, blob_id)

    def discard(self) -> None:
        """Removes what is unfinished; harmless after `finish`."""
        with suppress(OSError):
            self._file.close()
        with suppress(OSError):
            self._path.unlink(missing_ok=True)


async def _gather(stream: AsyncIterator[bytes], max_bytes: int) -> AsyncGenerator[bytes, None]:
    """Joins small chunks, and ends with `ResourceLimit` as soon as there is too much."""
    waiting, size, total = list[bytes](), 0, 0
    async for chunk in stream:
        total += len(chunk)
        if total > max_bytes:
            raise ResourceLimit(
                f"the file is larger than {max_bytes} bytes; send a smaller one, or raise the limit"
            )
        waiting.append(chunk)
        size += len(chunk)
        if size >= _CHUNK_BYTES:
            yield b"".join(waiting)
            waiting, size = [], 0
    if waiting:
        yield b"".join(waiting)


def _check_id(blob_id: str) -> str:
    if not _ID.fullmatch(blob_id):
        raise BlobNotFound
    return blob_id


def _checked(blob_id: str, data: bytes) -> bytes:
    if sha256(data).hexdigest() != blob_id:
        raise StoreUnavailable(f"blob {blob_id} is damaged on the disk; restore it from a backup")
    return data
