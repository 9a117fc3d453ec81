"""Blobs: uploads and long outputs, stored per session under the hash of their content."""

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
"""Bytes to collect before a thread writes them: one thread switch for about four network reads."""

_UNFINISHED: Final = ".unfinished-"


class Blob(msgspec.Struct, frozen=True):
    """The id and size of stored bytes."""

    id: str
    """The SHA-256 of the content, 64 lower-case hex digits. A session stores equal bytes once."""
    size: int
    """Bytes."""
    sha256: str
    is_new: bool = True
    """Whether the session had no blob with this content before."""


class Files(Protocol):
    """The blobs of one session.

    The caller must check who may read them, because the id of a blob is not a credential.
    """

    async def put(self, stream: AsyncIterator[bytes], *, max_bytes: int) -> Blob:
        """Store a stream to its end; the blob is durable when this returns.

        Raises:
            ResourceLimit: The stream has more than `max_bytes`; nothing is stored.
            StoreUnwritable: The disk refuses, or the session is removed meanwhile; nothing is
                stored. Errors of `stream` are raised too, and then nothing is stored either.

        Cancel: Safe; nothing is stored.
        """

    async def read(self, blob_id: str) -> bytes:
        """Return all bytes of a blob, checked against its hash.

        Raises:
            BlobNotFound: The session has no such blob, or the id is not valid.
            StoreUnavailable: The bytes on the disk are damaged.
        """

    def path(self, blob_id: str) -> Path | None:
        """Return the path of a blob on the disk; the file need not exist.

        Returns:
            `None` if blobs are not stored in files: use `read`.

        Raises:
            BlobNotFound: The id is not valid.
        """


class Blobs(Protocol):
    """The blobs of all sessions; sessions share none, even if the bytes are equal."""

    def of(self, session_id: str) -> Files:
        """Return the blobs of a session. A session without blobs uses no space."""

    def removal(self, session_id: str) -> AbstractAsyncContextManager[None]:
        """Hide all blobs of a session while a `with` block removes the session.

        They are deleted when the block ends, and restored if the block raises.

        Raises:
            StoreUnwritable: The disk refuses; nothing has changed.
        """

    def temporary_directory(self) -> AbstractContextManager[Path]:
        """Return an empty private directory for temporary files; it is removed after the block.

        Raises:
            StoreUnwritable: The disk refuses.
        """

    async def total_bytes(self, session_ids: Collection[str]) -> int:
        """Return the total size of the blobs of some sessions, in bytes.

        Raises:
            StoreUnwritable: The disk refuses.
        """


class BlobStore:
    """`Blobs` in a directory, with a subdirectory per session. Only one process may use it."""

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self.directory = Path(directory)

    def sweep(self) -> None:
        """Remove unfinished files of a killed process. Call it before the first `put`."""
        for leftover in self.directory.glob(_UNFINISHED + "*"):
            if leftover.is_dir():
                shutil.rmtree(leftover)
            else:
                leftover.unlink(missing_ok=True)

    def of(self, session_id: str) -> StoredFiles:
        """See `Blobs.of`."""
        return StoredFiles(self.directory, self._directory_of(session_id))

    @asynccontextmanager
    async def removal(self, session_id: str) -> AsyncIterator[None]:
        """See `Blobs.removal`. If the process is killed in the block, `sweep` deletes the blobs."""
        directory = self._directory_of(session_id)
        hidden = self.directory / f"{_UNFINISHED}{secrets.token_hex(8)}"
        if not await _on_disk(directory, partial(_rename, directory, hidden)):
            yield
            return
        try:
            yield
        except BaseException:
            await _on_disk(directory, partial(_rename, hidden, directory))
            raise
        await _on_disk(directory, partial(shutil.rmtree, hidden))

    @contextmanager
    def temporary_directory(self) -> Iterator[Path]:
        """See `Blobs.temporary_directory`.

        If the process is killed in the block, `sweep` deletes the files.
        """
        try:
            make_private_directory(self.directory)
            directory = tempfile.TemporaryDirectory(prefix=_UNFINISHED, dir=self.directory)
        except OSError as error:
            raise StoreUnwritable(str(self.directory), str(error.strerror)) from error
        with directory as path:
            yield Path(path)

    async def total_bytes(self, session_ids: Collection[str]) -> int:
        """See `Blobs.total_bytes`."""
        directories = [self._directory_of(session_id) for session_id in session_ids]
        return await _on_disk(self.directory, lambda: sum(map(_size_of, directories)))

    def _directory_of(self, session_id: str) -> Path:
        # A session id may have any printable character. Not every file system accepts them all, but
        # every file system accepts a digest.
        return self.directory / sha256(session_id.encode()).hexdigest()


class StoredFiles:
    """`Files` in a directory, one file for each blob.

    Args:
        unfinished_directory: Directory of unfinished files.
        directory: Directory of finished files.
    """

    __slots__ = ("_unfinished_directory", "directory")

    def __init__(self, unfinished_directory: Path, directory: Path) -> None:
        self._unfinished_directory = unfinished_directory
        self.directory = directory

    async def put(self, stream: AsyncIterator[bytes], *, max_bytes: int) -> Blob:
        """See `Files.put`."""
        blob = await self._on_disk(lambda: _NewBlob(self._unfinished_directory, self.directory))
        try:
            async with aclosing(_merge_chunks(stream, max_bytes)) as chunks:
                async for chunk in chunks:
                    await self._on_disk(partial(blob.write, chunk))
            return await self._on_disk(blob.finish)
        finally:
            blob.discard()

    async def read(self, blob_id: str) -> bytes:
        """See `Files.read`."""
        path = self.path(blob_id)
        try:
            data = await asyncio.to_thread(path.read_bytes)
        except FileNotFoundError as error:
            raise BlobNotFound from error
        return _verify(blob_id, data)

    def path(self, blob_id: str) -> Path:
        """Return the path of a blob, for streaming; it need not exist.

        Raises:
            BlobNotFound: The id is not 64 lower-case hex digits.
        """
        return self.directory / _check_id(blob_id)

    async def _on_disk(self, action: Callable[[], T]) -> T:
        return await _on_disk(self.directory, action)


class MemoryBlobs:
    """`Blobs` in memory; they are lost when the process ends."""

    def __init__(self) -> None:
        self._sessions: dict[str, dict[str, bytes]] = {}

    def of(self, session_id: str) -> MemoryFiles:
        """See `Blobs.of`."""
        return MemoryFiles(self._sessions, session_id)

    @asynccontextmanager
    async def removal(self, session_id: str) -> AsyncIterator[None]:
        """See `Blobs.removal`."""
        hidden = self._sessions.pop(session_id, None)
        try:
            yield
        except BaseException:
            if hidden is not None:
                self._sessions[session_id] = hidden
            raise

    @contextmanager
    def temporary_directory(self) -> Iterator[Path]:
        """See `Blobs.temporary_directory`; it is in the system's directory of temporary files."""
        with tempfile.TemporaryDirectory(prefix="arp-") as path:
            yield Path(path)

    async def total_bytes(self, session_ids: Collection[str]) -> int:
        """See `Blobs.total_bytes`."""
        stored = [self._sessions.get(session_id, {}) for session_id in session_ids]
        return sum(len(data) for files in stored for data in files.values())


class MemoryFiles:
    """`Files` in memory."""

    __slots__ = ("_session_id", "_sessions")

    def __init__(self, sessions: dict[str, dict[str, bytes]], session_id: str) -> None:
        self._sessions = sessions
        self._session_id = session_id

    async def put(self, stream: AsyncIterator[bytes], *, max_bytes: int) -> Blob:
        """See `Files.put`."""
        async with aclosing(_merge_chunks(stream, max_bytes)) as chunks:
            data = b"".join([chunk async for chunk in chunks])
        blob_id = sha256(data).hexdigest()
        files = self._sessions.setdefault(self._session_id, {})
        is_new = blob_id not in files
        files[blob_id] = data
        return Blob(blob_id, len(data), blob_id, is_new)

    async def read(self, blob_id: str) -> bytes:
        """See `Files.read`."""
        data = self._sessions.get(self._session_id, {}).get(_check_id(blob_id))
        if data is None:
            raise BlobNotFound
        return data

    def path(self, blob_id: str) -> None:
        """Return `None`, since there is no file; see `Files.path`."""
        _check_id(blob_id)


class _NewBlob:
    """A blob that is written to a temporary file, which is renamed when it is complete.

    Args:
        unfinished_directory: Directory of the temporary file.
        directory: Directory of the complete file.
    """

    def __init__(self, unfinished_directory: Path, directory: Path) -> None:
        make_private_directory(directory)
        # The temporary file is not in `directory`. If the session is removed meanwhile, renaming
        # then fails because the directory is gone, and the removed session does not reappear.
        fd, name = tempfile.mkstemp(prefix=_UNFINISHED, dir=unfinished_directory)
        self._path, self._directory = Path(name), directory
        self._file: BinaryIO = os.fdopen(fd, "wb", buffering=0)
        self._hash = sha256()
        self._size = 0

    def write(self, data: bytes) -> None:
        """Append bytes."""
        rest = memoryview(data)
        while rest:
            rest = rest[self._file.write(rest) :]
        self._hash.update(data)
        self._size += len(data)

    def finish(self) -> Blob:
        """Make the file durable under its id."""
        os.fsync(self._file.fileno())
        self._file.close()
        blob_id = self._hash.hexdigest()
        path = self._directory / blob_id
        is_new = not path.exists()
        self._path.replace(path)
        sync_directory(self._directory)
        return Blob(blob_id, self._size, blob_id, is_new)

    def discard(self) -> None:
        """Remove the unfinished file; do nothing after `finish`."""
        with suppress(OSError):
            self._file.close()
        with suppress(OSError):
            self._path.unlink(missing_ok=True)


async def _on_disk(directory: Path, action: Callable[[], T]) -> T:
    """Call `action` in a thread; raise an `OSError` as `StoreUnwritable`."""
    try:
        return await asyncio.to_thread(action)
    except OSError as error:
        raise StoreUnwritable(str(directory), str(error.strerror)) from error


def _rename(old: Path, new: Path) -> bool:
    """Rename a directory; return whether it existed."""
    try:
        old.rename(new)
    except FileNotFoundError:
        return False
    return True


def _size_of(directory: Path) -> int:
    """Return the total size of the files in a directory, which need not exist."""
    try:
        with os.scandir(directory) as entries:
            return sum(entry.stat().st_size for entry in entries)
    except FileNotFoundError:
        return 0


def too_large(max_bytes: int) -> ResourceLimit:
    """Return the error for a file that is too large."""
    return ResourceLimit(
        f"the file is larger than {max_bytes} bytes; send a smaller one, or raise the limit"
    )


async def _merge_chunks(
    stream: AsyncIterator[bytes], max_bytes: int
) -> AsyncGenerator[bytes, None]:
    """Yield the bytes of a stream in chunks of at least `_CHUNK_BYTES`; the last may be smaller.

    Raises:
        ResourceLimit: The stream has more than `max_bytes`.
    """
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


def _verify(blob_id: str, data: bytes) -> bytes:
    """Return the bytes of a blob if they have the right hash."""
    if sha256(data).hexdigest() != blob_id:
        raise StoreUnavailable(f"blob {blob_id} is damaged on the disk; restore it from a backup")
    return data
