"""Read a pack, which is a directory or a zip: its manifest and its parts.

Theory of operation. A pack may be damaged or hostile.

A damaged zip is read as far as possible. This module decompresses entries itself and ignores their
checksums, so that a check of the facts can reach the first bad fact.

A zip that no export can have written is refused on opening, before any part is read: too many
entries, duplicate names, overlapping entries, encrypted entries, or names outside the pack.

In a directory only regular files are read, because reading a named pipe might never end.
"""

from __future__ import annotations

import os
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import IO, Final

from arp.audit.evidence.manifest import (
    MANIFEST,
    MOST_MANIFEST,
    MOST_PARTS,
    Manifest,
    NoManifest,
    decode_manifest,
)
from arp.protocol.errors import LocalError

CHUNK: Final = 1 << 20
"""Size of a read in bytes."""

MOST_LINE: Final = 64 << 20
"""Maximum length of a line in bytes. No fact is this large."""

MOST_DOCUMENT: Final = 256 << 20
"""Maximum size in bytes of a part that is read whole; otherwise a small zip could fill the memory.
"""

STEP: Final = 16 << 10
"""Number of compressed bytes that are decompressed in one step."""

MOST_DIRECTORY: Final = MOST_PARTS * 200
"""Maximum size of a zip's central directory in bytes. An entry takes 46 bytes and its name, which
has 72 bytes for an output; an entry for a very large output takes some more."""

_END: Final = struct.Struct("<4s4H2LH")
"""End of central directory: signature, four counts, size and offset of the directory, length of the
comment."""

_END_64: Final = struct.Struct("<4sQ2H2L4Q")
_LOCATOR_64: Final = struct.Struct("<4sLQL")
"""Zip64 end of central directory (`_END_64`) and its locator, for zips larger than 4 GiB."""

_READING: Final = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)

_LOCAL_HEADER: Final = struct.Struct("<4s22xHH")
"""Local header of an entry: signature, length of the name, length of the extra field."""


class NoPack(LocalError):
    """The path is not a pack, or the pack is too damaged or unusual to be checked."""


class PartMissing(LocalError):
    """A part of a pack does not exist or cannot be read."""


class Pack:
    """An open pack; leaving the context closes it.

    Args:
        path: Path of a directory or a zip.

    Raises:
        NoPack: The path is neither, the zip is refused, or the manifest cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._zip: zipfile.ZipFile | None = None
        if path.is_file():
            try:
                self._zip = _open_zip(path)
            except (zipfile.BadZipFile, OSError, NotImplementedError, ValueError) as error:
                raise NoPack(f"{path} is no pack: {error}") from error
        elif not path.is_dir():
            raise NoPack(f"there is no pack {path}; name a directory or a zip")
        try:
            if self._zip is not None:
                _check_entries(self._zip.infolist())
            self._names = self._find_names()
            self.manifest_bytes = self.read(MANIFEST, MOST_MANIFEST)
            self.manifest: Manifest = decode_manifest(self.manifest_bytes)
        except (NoManifest, NoPack, PartMissing) as error:
            self.close()
            raise NoPack(f"{path} is no pack: {error.message}") from error

    def close(self) -> None:
        """Close the file. May be called more than once."""
        if self._zip is not None:
            self._zip.close()

    def __enter__(self) -> Pack:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def names(self) -> set[str]:
        """Return the paths of all entries that are not directories."""
        return self._names

    def _find_names(self) -> set[str]:
        if self._zip is not None:
            return {entry.filename for entry in self._zip.infolist() if not entry.is_dir()}
        names, entries = set[str](), 0
        for folder, directories, files in os.walk(self.path):
            entries += len(directories) + len(files)
            if entries > MOST_PARTS:
                raise NoPack(f"it has more than {MOST_PARTS} entries")
            # `os.walk` does not enter these; listing them reports them as not in the manifest.
            linked = [one for one in directories if Path(folder, one).is_symlink()]
            inside = (Path(folder, one).relative_to(self.path) for one in files + linked)
            names.update(one.as_posix() for one in inside)
        return names

    def read(self, name: str, most: int = MOST_DOCUMENT) -> bytes:
        """Return the content of a part.

        Args:
            name: Name of the part.
            most: Maximum size in bytes.

        Raises:
            PartMissing: The part does not exist, cannot be read, or is larger than `most`.
        """
        parts, size = list[bytes](), 0
        for chunk in self.chunks(name):
            parts.append(chunk)
            size += len(chunk)
            if size > most:
                raise PartMissing(f"{name} is larger than {most} bytes")
        return b"".join(parts)

    def chunks(self, name: str) -> Iterator[bytes]:
        """Yield the bytes of a part. In a damaged zip, the iterator ends at the damage.

        Raises:
            PartMissing: The part does not exist or cannot be read.
        """
        if not _is_inside(name):
            raise PartMissing(f"{name!r:.80} is no path inside a pack")
        if self._zip is not None:
            yield from self._zip_chunks(self._zip, name)
            return
        path = self.path.joinpath(*PurePosixPath(name).parts)
        try:
            # A link inside the pack must not lead to a file outside it.
            if not path.resolve().is_relative_to(self.path.resolve()):
                raise PartMissing(f"{name!r:.80} lies outside of the pack")
            # Non-blocking: opening a named pipe would otherwise wait for a writer.
            with os.fdopen(os.open(path, _READING), "rb") as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    raise PartMissing(f"{name!r:.80} is no regular file")
                while chunk := file.read(CHUNK):
                    yield chunk
        except OSError as error:
            raise PartMissing(f"{name!r:.80}: {error.strerror or error}") from error

    def lines(self, name: str) -> Iterator[bytes]:
        """Yield the lines of a part with their line breaks; the last one may have none.

        A line longer than `MOST_LINE` ends the iteration.

        Raises:
            PartMissing: The part does not exist or cannot be read.
        """
        held = b""
        for chunk in self.chunks(name):
            *complete, held = (held + chunk).split(b"\n")
            for line in complete:
                yield line + b"\n"
            if len(held) > MOST_LINE:
                break
        if held:
            yield held

    @staticmethod
    def _zip_chunks(pack: zipfile.ZipFile, name: str) -> Iterator[bytes]:
        try:
            entry = pack.getinfo(name)
        except KeyError:
            raise PartMissing(f"{name!r:.80} is not in the pack") from None
        file = pack.fp
        if file is None or entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise PartMissing(f"{name!r:.80} is packed in a way that is not read here")
        try:
            yield from _entry_bytes(file, entry)
        except (OSError, zlib.error, struct.error, ValueError):
            return  # the check of size and hash reports the missing bytes


def _is_inside(name: str) -> bool:
    """Return whether a name is a relative path that stays inside the pack."""
    pure = PurePosixPath(name)
    return bool(pure.parts) and not (pure.is_absolute() or ".." in pure.parts or "\\" in name)


def _open_zip(path: Path) -> zipfile.ZipFile:
    """Open a zip after checking the size of its central directory.

    `zipfile` reads the whole central directory into memory.

    Raises:
        NoPack: The central directory is too large.
        zipfile.BadZipFile, OSError, ValueError: The file is not a zip.
    """
    with path.open("rb") as file:
        if _directory_size(file) > MOST_DIRECTORY:
            raise NoPack(f"{path} is no pack: it has more than {MOST_PARTS} entries")
    return zipfile.ZipFile(path)


def _directory_size(file: IO[bytes]) -> int:
    """Return an upper bound of the size of a zip's central directory; 0 if the file is not a zip.

    The end record may be found in two ways, and `zipfile` uses either of them. So both are checked,
    and the larger size counts.
    """
    length = file.seek(0, os.SEEK_END)
    start = max(0, length - _END.size - (1 << 16))
    file.seek(start)
    tail = file.read()
    offsets = {len(tail) - _END.size, tail.rfind(b"PK\5\6")}
    return max((_declared_size(file, start, tail, offset) for offset in offsets), default=0)


def _declared_size(file: IO[bytes], start: int, tail: bytes, offset: int) -> int:
    """Return the directory size that an end record declares; 0 if there is no record at `offset`.

    Args:
        file: The zip.
        start: Offset of `tail` in the file.
        tail: Last bytes of the file.
        offset: Offset of the end record in `tail`.
    """
    if offset < 0 or tail[offset : offset + 4] != b"PK\5\6" or offset + _END.size > len(tail):
        return 0
    size = int(_END.unpack_from(tail, offset)[5])
    with suppress(struct.error, OSError):  # without a Zip64 record, the size above applies
        file.seek(start + offset - _LOCATOR_64.size - _END_64.size)
        record = _END_64.unpack(file.read(_END_64.size))
        locator = _LOCATOR_64.unpack(file.read(_LOCATOR_64.size))
        if (record[0], locator[0]) == (b"PK\6\6", b"PK\6\7"):
            size = int(record[8])
    return size


def _check_entries(entries: list[zipfile.ZipInfo]) -> None:
    """Refuse a zip that no export can have written.

    Raises:
        NoPack: The zip is refused; the message names the entry.
    """
    if len(entries) > MOST_PARTS:
        raise NoPack(f"it has more than {MOST_PARTS} entries")
    names, end = set[str](), 0
    for entry in sorted(entries, key=lambda one: one.header_offset):
        name = entry.filename
        if name in names:
            raise NoPack(f"{name!r:.80} is in it twice")
        if not _is_inside(name):
            raise NoPack(f"{name!r:.80} is no path inside a pack")
        if entry.flag_bits & 1:
            raise NoPack(f"{name!r:.80} is encrypted")
        if entry.header_offset < end:
            raise NoPack(f"{name!r:.80} shares bytes with another entry")
        names.add(name)
        end = entry.header_offset + _LOCAL_HEADER.size + entry.compress_size


def _entry_bytes(file: IO[bytes], entry: zipfile.ZipInfo) -> Iterator[bytes]:
    """Yield the bytes of an entry, as far as they can be read."""
    file.seek(entry.header_offset)
    mark, name_size, extra_size = _LOCAL_HEADER.unpack(file.read(_LOCAL_HEADER.size))
    if mark != b"PK\x03\x04":
        return
    position = entry.header_offset + _LOCAL_HEADER.size + name_size + extra_size
    end = position + entry.compress_size
    stream = zlib.decompressobj(-15) if entry.compress_type == zipfile.ZIP_DEFLATED else None
    while position < end:
        file.seek(position)  # another iterator may have moved the position of the shared file
        packed = file.read(min(STEP, end - position))
        if not packed:
            return
        position += len(packed)
        yield from (packed,) if stream is None else _inflate(stream, packed)


def _inflate(stream: zlib._Decompress, packed: bytes) -> Iterator[bytes]:
    """Yield the decompressed bytes of one step.

    A step that fails is repeated byte by byte, so that the bytes before the damage are not lost.
    """
    before = stream.copy()
    try:
        yield stream.decompress(packed, CHUNK)
    except zlib.error:
        for byte in packed:
            yield before.decompress(bytes((byte,)))
        raise
    while stream.unconsumed_tail:
        yield stream.decompress(stream.unconsumed_tail, CHUNK)
