"""`JsonFile`: a JSON document that threads, tasks and processes change at the same time.

Theory of operation. A change acquires an exclusive lock on the file `.<name>.lock` beside the
document, reads the document, and replaces it by rename. A reader acquires no lock and sees either
the old or the new document. The new one is flushed to the disk before the rename. A `flock` lock
belongs to an open file, and each change opens its own, so the lock also separates threads of one
process.

A document that cannot be read is not touched. Each read and change raises an error about it until a
person restores a good copy or moves the file away; starting with an empty document would lose the
money spent and the owners of containers. Only a person removes a document, so a missing one counts
as empty. (`Budget` is stricter: it refuses a missing state file if its log has payments.) Unknown
fields are preserved.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Generic, TypeVar

import msgspec

from arp.protocol.json_value import Json
from arp.tools.errors import DataFileDamaged, ToolAgentError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment] # looked at before it is used

Document = TypeVar("Document", bound=msgspec.Struct)
Result = TypeVar("Result")

MAX_BYTES: Final = 64 * 2**20
"""Maximum size of a document in bytes; a registry of ten thousand tools has a third of this."""


class _UnreadableDocument(Exception):
    """The bytes of a file are not a valid document; the message says why."""


class JsonFile(Generic[Document]):
    """JSON document on disk.

    Args:
        path: Path of the file; the first change creates the directories above it.
        kind: Struct that it is decoded as; every field has a default.
    """

    def __init__(self, path: Path, kind: type[Document]) -> None:
        self.path = path
        self._kind = kind
        self._encoder = msgspec.json.Encoder(decimal_format="number")
        self._cached: tuple[tuple[int, int, int], Document] | None = None
        """Last document that was read and the identity of its file; each change creates another
        file."""

    def read(self) -> Document:
        """Return the document on disk; if there is no file, return an empty document.

        Raises:
            DataFileDamaged: It cannot be read; it is not changed.
        """
        seen, key = self._cached, self._key()
        if seen is not None and seen[0] == key:
            return seen[1]
        try:
            document = self._decoded(self._bytes())
        except _UnreadableDocument as error:
            raise self._damaged(str(error)) from error
        # If the file was replaced between `stat` and the read, the old identity is cached with the
        # new content, so the next read reads again.
        self._cached = None if key is None else (key, document)
        return document

    def change(
        self, make: Callable[[Document], tuple[Document, Result]], durable: bool = True
    ) -> Result:
        """Replace the document with the result of `make`, under the lock of the file.

        Args:
            make: Receives the document and returns the new one and a result. If it raises, the
                exception is passed on and nothing has changed. It must be fast and must not change
                this file.
            durable: Whether the change must survive a loss of power; flushing takes milliseconds.

        Returns:
            The result of `make`.

        Raises:
            DataFileDamaged: The document cannot be read; it is not changed.
            OSError: It cannot be written.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self._locked():
            try:
                before = self._bytes()
                document = self._decoded(before)
            except _UnreadableDocument as error:
                raise self._damaged(str(error)) from error
            after, result = make(document)
            if after is not document:
                self._replace(self._encoded(after, before), durable)
            return result

    def replace_damaged(self, document: Document) -> Path | None:
        """Replace the document; keep an unreadable one under another name, and return that path.

        Raises:
            OSError: It cannot be written.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self._locked():
            try:
                before, aside = self._bytes(), None
                self._decoded(before)
            except _UnreadableDocument:
                at = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
                before, aside = None, self.path.with_name(f"{self.path.name}.damaged-{at}")
                shutil.copy2(self.path, aside)
            self._replace(self._encoded(document, before), durable=True)
            return aside

    def _key(self) -> tuple[int, int, int] | None:
        try:
            found = self.path.stat()
        except OSError:
            return None
        return (found.st_ino, found.st_mtime_ns, found.st_size)

    def _bytes(self) -> bytes | None:
        """Return the content of the file; `None` if it does not exist."""
        try:
            with self.path.open("rb") as file:
                data = file.read(MAX_BYTES + 1)
        except FileNotFoundError:
            return None
        if len(data) > MAX_BYTES:
            raise _UnreadableDocument(f"it has more than {MAX_BYTES} bytes")
        return data

    def _decoded(self, data: bytes | None) -> Document:
        if data is None:
            return self._kind()
        if not data.strip():
            raise _UnreadableDocument("it is empty")
        try:
            return msgspec.json.decode(data, type=self._kind)
        except (msgspec.MsgspecError, ToolAgentError, RecursionError, ValueError) as error:
            raise _UnreadableDocument(str(error)) from error

    def _encoded(self, document: Document, before: bytes | None) -> bytes:
        text = self._encoder.encode(document)
        if before:
            known = msgspec.json.decode(self._encoder.encode(self._decoded(before)))
            unknown = _unknown_fields(msgspec.json.decode(before), known)
            if unknown:
                text = msgspec.json.encode(_restore_fields(msgspec.json.decode(text), unknown))
        return msgspec.json.format(text, indent=2) + b"\n"

    def _damaged(self, why: str) -> DataFileDamaged:
        return DataFileDamaged(
            f"{self.path} cannot be read ({why[:200]}): put a good copy in its place, or move it "
            "away to begin with an empty one"
        )

    def _replace(self, data: bytes, durable: bool) -> None:
        handle, name = tempfile.mkstemp(prefix=f".{self.path.name}-", dir=self.path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                with suppress(FileNotFoundError):  # keeps the permissions of the old file
                    os.fchmod(file.fileno(), stat.S_IMODE(self.path.stat().st_mode))
                if durable:
                    os.fsync(file.fileno())
            os.replace(name, self.path)
            # The new file may get the inode of the cached one, which an earlier change has freed.
            # If also the size and the clock tick are the same, `_key` cannot distinguish the files.
            self._cached = None
        except BaseException:
            with suppress(OSError):
                os.unlink(name)
            raise
        if not durable:
            return
        directory = os.open(self.path.parent, os.O_RDONLY)
        try:
            os.fsync(directory)  # without this a loss of power may undo the rename
        finally:
            os.close(directory)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        lock = self.path.with_name(f".{self.path.name}.lock")
        handle = os.open(lock, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
        try:
            if fcntl is not None:
                fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)


def _unknown_fields(before: Json, known: Json) -> Json:
    """Return the fields of `before` that are not in `known`, including those of nested objects.

    Elements of lists are compared by position. The result has each element under the value of its
    first field, its id, so that `_restore_fields` finds it in a changed list.
    """
    if isinstance(before, dict) and isinstance(known, dict):
        found = {}
        for name, value in before.items():
            if name not in known:
                found[name] = value
            elif rest := _unknown_fields(value, known[name]):
                found[name] = rest
        return found
    if isinstance(before, list) and isinstance(known, list):
        return {
            _key_of(item): rest
            for item, other in zip(before, known, strict=True)
            if isinstance(item, dict) and (rest := _unknown_fields(item, other))
        }
    return None


def _restore_fields(after: Json, unknown: Json) -> Json:
    """Return a document with the fields that `_unknown_fields` found before the change."""
    if isinstance(after, list):
        return [_restore_fields(item, unknown.get(_key_of(item), {})) for item in after]
    if not isinstance(after, dict):
        return after
    merged = {
        name: _restore_fields(value, unknown[name]) if name in unknown else value
        for name, value in after.items()
    }
    return merged | {name: value for name, value in unknown.items() if name not in after}


def _key_of(item: Json) -> str:
    return str(next(iter(item.values()), "")) if isinstance(item, dict) else ""
