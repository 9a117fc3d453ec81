"""Blobs: uploads and spilled output, named by what they contain; each is one session's."""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    aclosing,
    asynccontextmanager,
    contextmanager,
    suppress,
)
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
"""Gathered before a thread writes: one change of threads for four network reads."""

_UNFINISHED: Final = ".unfinished-"


class Blob(msgspec.Struct, frozen=True):
    """What is known about stored bytes."""

    id: str
    """The SHA-256 of the content in 64 lower-case hex digits: equal bytes of a session are one."""
    size: int
    """Bytes."""
    sha256: str
    is_new: bool = True
    """The session did not hold it before."""


class Files(Protocol):
    """The blobs of one session. Who may read them is not decided here: an id is no credential."""

    async def put(self, stream: AsyncIterator[bytes], *, max_bytes: int) -> Blob:
        """Store what comes until the stream ends; it is durable when this returns.

        Raises:
            ResourceLimit: More than `max_bytes` came; nothing is stored.
            StoreUnwritable: The disk refuses, or the session is removed meanwhile; nothing is
                stored. What `stream` raises is passed on, with nothing stored either.

        Cancel: Safe; nothing is stored.
        """

    async def read(self, blob_id: str) -> bytes:
        """Return all bytes of a blob, which are what was put.

        Raises:
            BlobNotFound: The session has no such blob, or it is no id at all.
            StoreUnavailable: The bytes on the disk are not what was put.
        """

    def path(self, blob_id: str) -> Path | None:
        """Return the path of a blob on the disk, if it is there; it need not exist.

        Returns:
            `None` where blobs are in no file: then `read` returns them.

        Raises:
            BlobNotFound: It is no id at all.
        """


class Blobs(Protocol):
    """Where the blobs of all sessions live: what one session holds, it holds alone."""

    def of(self, session_id: str) -> Files:
        """Return the blobs of a session; a session without any needs no space."""

    def removing(self, session_id: str) -> AbstractAsyncContextManager[None]:
        """Hide all blobs of a session, for a block that removes the session.

        They are deleted when the block ends, and there again if the block fails.

        Raises:
            StoreUnwritable: The disk refuses; nothing has changed.
        """

    def aside(self) -> AbstractContextManager[Path]:
        """Return an empty private directory to make something in; it is gone afterwards.

        Raises:
            StoreUnwritable: The disk refuses.
        """

    async def held(self, session_ids: Collection[str]) -> int:
        """Return how many bytes sessions hold, all together.

        Raises:
            StoreUnwritable: The disk refuses.
        """


class BlobStore:
    """`Blobs` in a directory, one below it for each session; for one process, as the ledger."""

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self.directory = Path(directory)

    def sweep(self) -> None:
        """Remove what a killed process left unfinished. To be called before the first `put`."""
        for leftover in self.directory.glob(_UNFINISHED + "*"):
            if leftover.is_dir():
                shutil.rmtree(leftover)
            else:
                leftover.unlink(missing_ok=True)

    def of(self, session_id: str) -> StoredFiles:
        """As `Blobs.of`."""
        return StoredFiles(self.directory, self._place(session_id))

    @asynccontextmanager
    async def removing(self, session_id: str) -> AsyncIterator[None]:
        """As `Blobs.removing`; `sweep` removes what a killed process left."""
        place = self._place(session_id)
        away = self.directory / f"{_UNFINISHED}{secrets.token_hex(8)}"
        if not await _on_disk(place, partial(_rename, place, away)):
            yield
            return
        try:
            yield
        except BaseException:
            await _on_disk(place, partial(_rename, away, place))
            raise
        await _on_disk(place, partial(shutil.rmtree, away))

    @contextmanager
    def aside(self) -> Iterator[Path]:
        """As `Blobs.aside`; `sweep` removes what a killed process left in it."""
        try:
            make_private_directory(self.directory)
            directory = tempfile.TemporaryDirectory(prefix=_UNFINISHED, dir=self.directory)
        except OSError as error:
            raise StoreUnwritable(str(self.directory), str(error.strerror)) from error
        with directory as path:
            yield Path(path)

    async def held(self, session_ids: Collection[str]) -> int:
        """As `Blobs.held`."""
        places = [self._place(session_id) for session_id in session_ids]
        return await _on_disk(self.directory, lambda: sum(map(_size_of, places)))

    def _place(self, session_id: str) -> Path:
        # A session id may hold any printable character; every file system accepts a digest.
        return self.directory / sha256(session_id.encode()).hexdigest()


class StoredFiles:
    """`Files` in a directory, one file each."""

    __slots__ = ("_making", "directory")

    def __init__(self, making: Path, directory: Path) -> None:
        self._making = making
        self.directory = directory

    async def put(self, stream: AsyncIterator[bytes], *, max_bytes: int) -> Blob:
        """As `Files.put`."""
        upload = await self._on_disk(lambda: _NewBlob(self._making, self.directory))
        try:
            async with aclosing(_gather(stream, max_bytes)) as chunks:
                async for chunk in chunks:
                    await self._on_disk(partial(upload.write, chunk))
            return await self._on_disk(upload.finish)
        finally:
            upload.discard()

    async def read(self, blob_id: str) -> bytes:
        """As `Files.read`."""
        path = self.path(blob_id)
        try:
            data = await asyncio.to_thread(path.read_bytes)
        except FileNotFoundError as error:
            raise BlobNotFound from error
        return _checked(blob_id, data)

    def path(self, blob_id: str) -> Path:
        """Return the path of a blob, for streaming; it need not exist.

        Raises:
            BlobNotFound: The id is not 64 lower-case hex digits, so it can name no file.
        """
        return self.directory / _check_id(blob_id)

    async def _on_disk(self, action: Callable[[], T]) -> T:
        return await _on_disk(self.directory, action)


class MemoryBlobs:
    """`Blobs` in memory, gone when the process is."""

    def __init__(self) -> None:
        self._sessions: dict[str, dict[str, bytes]] = {}

    def of(self, session_id: str) -> MemoryFiles:
        """As `Blobs.of`."""
        return MemoryFiles(self._sessions, session_id)

    @asynccontextmanager
    async def removing(self, session_id: str) -> AsyncIterator[None]:
        """As `Blobs.removing`."""
        held = self._sessions.pop(session_id, None)
        try:
            yield
        except BaseException:
            if held is not None:
                self._sessions[session_id] = held
            raise

    @contextmanager
    def aside(self) -> Iterator[Path]:
        """As `Blobs.aside`, among the machine's temporary files."""
        with tempfile.TemporaryDirectory(prefix="arp-") as path:
            yield Path(path)

    async def held(self, session_ids: Collection[str]) -> int:
        """As `Blobs.held`."""
        kept = [self._sessions.get(session_id, {}) for session_id in session_ids]
        return sum(len(data) for files in kept for data in files.values())


class MemoryFiles:
    """`Files` in memory."""

    __slots__ = ("_session_id", "_sessions")

    def __init__(self, sessions: dict[str, dict[str, bytes]], session_id: str) -> None:
        self._sessions = sessions
        self._session_id = session_id

    async def put(self, stream: AsyncIterator[bytes], *, max_bytes: int) -> Blob:
        """As `Files.put`."""
        async with aclosing(_gather(stream, max_bytes)) as chunks:
            data = b"".join([chunk async for chunk in chunks])
        blob_id = sha256(data).hexdigest()
        files = self._sessions.setdefault(self._session_id, {})
        is_new = blob_id not in files
        files[blob_id] = data
        return Blob(blob_id, len(data), blob_id, is_new)

    async def read(self, blob_id: str) -> bytes:
        """As `Files.read`."""
        data = self._sessions.get(self._session_id, {}).get(_check_id(blob_id))
        if data is None:
            raise BlobNotFound
        return data

    def path(self, blob_id: str) -> None:
        """As `Files.path`: in no file."""
        _check_id(blob_id)


class _NewBlob:
    """A file that is written under a name of its own and gets its true name when it is whole."""

    def __init__(self, making: Path, target: Path) -> None:
        make_private_directory(target)
        # Beside the target, not in it: a session that is removed meanwhile must not come back.
        fd, name = tempfile.mkstemp(prefix=_UNFINISHED, dir=making)
        self._path, self._target = Path(name), target
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
        target = self._target / blob_id
        is_new = not target.exists()
        self._path.replace(target)
        sync_directory(self._target)
        return Blob(blob_id, self._size, blob_id, is_new)

    def discard(self) -> None:
        """Remove what is unfinished; harmless after `finish`."""
        with suppress(OSError):
            self._file.close()
        with suppress(OSError):
            self._path.unlink(missing_ok=True)


async def _on_disk(directory: Path, action: Callable[[], T]) -> T:
    try:
        return await asyncio.to_thread(action)
    except OSError as error:
        raise StoreUnwritable(str(directory), str(error.strerror)) from error


def _rename(old: Path, new: Path) -> bool:
    """Rename a directory; return whether there was one."""
    try:
        old.rename(new)
    except FileNotFoundError:
        return False
    return True


def _size_of(directory: Path) -> int:
    """Return the bytes of the files in a directory that need not exist."""
    try:
        with os.scandir(directory) as entries:
            return sum(entry.stat().st_size for entry in entries)
    except FileNotFoundError:
        return 0


def too_large(max_bytes: int) -> ResourceLimit:
    """Return the refusal of a file."""
    return ResourceLimit(
        f"the file is larger than {max_bytes} bytes; send a smaller one, or raise the limit"
    )


async def _gather(stream: AsyncIterator[bytes], max_bytes: int) -> AsyncGenerator[bytes, None]:
    """Join small chunks, and end with `ResourceLimit` as soon as there is too much."""
    waiting, size, total = list[bytes](), 0, 0
    async for chunk in stream:
        total += len(chunk)
        if total > max_bytes:
            raise too_large(max_bytes)
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
