"""A pack, opened: its manifest and its parts, from a directory or a zip.

Theory of operation. Of a damaged zip as much is read as there is: an entry's bytes are decompressed
here, without its checksum, so that whoever checks the facts comes to the first that is bad. What
no export writes is refused when the pack is opened, before anything is read whose size a stranger
chose: too many entries, two of one name, entries that share bytes, encrypted ones, names that lead
out of the pack. Of a directory only regular files are read: a named pipe would never end.
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
"""Read at once."""

MOST_LINE: Final = 64 << 20
"""Of a line: no fact is as large, so what is longer is no line."""

MOST_DOCUMENT: Final = 256 << 20
"""Of a part that is read whole: a small zip must not fill the memory."""

STEP: Final = 16 << 10
"""Packed bytes decompressed at once."""

MOST_DIRECTORY: Final = MOST_PARTS * 200
"""Bytes of a zip's directory: an entry of an output has 46, its name 72, and some more if large."""

_END: Final = struct.Struct("<4s4H2LH")
"""The end of a zip: its mark, four counts, size and place of the directory, length of a comment."""

_END_64: Final = struct.Struct("<4sQ2H2L4Q")
_LOCATOR_64: Final = struct.Struct("<4sLQL")
"""The same for a zip that is larger than 4 GiB, and where to find it."""

_READING: Final = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)

_LOCAL_HEADER: Final = struct.Struct("<4s22xHH")
"""Of an entry: its mark, and the lengths of its name and of what follows that."""


class NoPack(LocalError):
    """What was named is no pack, or so damaged that nothing of it can be checked."""


class PartMissing(LocalError):
    """A part of a pack is not there, or cannot be read."""


class Pack:
    """A pack; a context manager closes it.

    Args:
        path: Of a directory or a zip.

    Raises:
        NoPack: It is neither, or has no manifest that can be read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._zip: zipfile.ZipFile | None = None
        if path.is_file():
            try:
                self._zip = _opened(path)
            except (zipfile.BadZipFile, OSError, NotImplementedError, ValueError) as error:
                raise NoPack(f"{path} is no pack: {error}") from error
        elif not path.is_dir():
            raise NoPack(f"there is no pack {path}; name a directory or a zip")
        try:
            if self._zip is not None:
                _check_entries(self._zip.infolist())
            self._names = self._found()
            self.manifest_bytes = self.read(MANIFEST, MOST_MANIFEST)
            self.manifest: Manifest = decode_manifest(self.manifest_bytes)
        except (NoManifest, NoPack, PartMissing) as error:
            self.close()
            raise NoPack(f"{path} is no pack: {error.message}") from error

    def close(self) -> None:
        """Let go of the file. Harmless when repeated."""
        if self._zip is not None:
            self._zip.close()

    def __enter__(self) -> Pack:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def names(self) -> set[str]:
        """Return the paths of everything in it that is no directory."""
        return self._names

    def _found(self) -> set[str]:
        if self._zip is not None:
            return {entry.filename for entry in self._zip.infolist() if not entry.is_dir()}
        names, entries = set[str](), 0
        for place, directories, files in os.walk(self.path):
            entries += len(directories) + len(files)
            if entries > MOST_PARTS:
                raise NoPack(f"it has more than {MOST_PARTS} entries")
            linked = [one for one in directories if Path(place, one).is_symlink()]
            inside = (Path(place, one).relative_to(self.path) for one in files + linked)
            names.update(one.as_posix() for one in inside)
        return names

    def read(self, name: str, most: int = MOST_DOCUMENT) -> bytes:
        """Return all of a part.

        Args:
            name: Of the part.
            most: Bytes that it may have.

        Raises:
            PartMissing: There is none of that name, or it is larger than it may be.
        """
        parts, size = list[bytes](), 0
        for chunk in self.chunks(name):
            parts.append(chunk)
            size += len(chunk)
            if size > most:
                raise PartMissing(f"{name} is larger than {most} bytes")
        return b"".join(parts)

    def chunks(self, name: str) -> Iterator[bytes]:
        """Return a part's bytes; of a damaged zip those before the damage, then it ends.

        Raises:
            PartMissing: There is none of that name.
        """
        if not _is_inside(name):
            raise PartMissing(f"{name!r:.80} is no path inside a pack")
        if self._zip is not None:
            yield from self._unzipped(self._zip, name)
            return
        place = self.path.joinpath(*PurePosixPath(name).parts)
        try:
            if not place.resolve().is_relative_to(self.path.resolve()):
                raise PartMissing(f"{name!r:.80} lies outside of the pack")
            # Not blocking: to open a named pipe would else wait for somebody to write into it.
            with os.fdopen(os.open(place, _READING), "rb") as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    raise PartMissing(f"{name!r:.80} is no regular file")
                while chunk := file.read(CHUNK):
                    yield chunk
        except OSError as error:
            raise PartMissing(f"{name!r:.80}: {error.strerror or error}") from error

    def lines(self, name: str) -> Iterator[bytes]:
        """Return a part's lines with their line breaks; the last one may lack it.

        Raises:
            PartMissing: There is none of that name.
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
    def _unzipped(pack: zipfile.ZipFile, name: str) -> Iterator[bytes]:
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
            return  # what is missing shows where its bytes are checked


def _is_inside(name: str) -> bool:
    """Return whether a name is a path inside of a pack."""
    pure = PurePosixPath(name)
    return bool(pure.parts) and not (pure.is_absolute() or ".." in pure.parts or "\\" in name)


def _opened(path: Path) -> zipfile.ZipFile:
    """Open a zip whose directory is of a bounded size: all of it is read into the memory.

    Raises:
        NoPack: It is too large.
        zipfile.BadZipFile, OSError, ValueError: It is no zip.
    """
    with path.open("rb") as file:
        if _directory_size(file) > MOST_DIRECTORY:
            raise NoPack(f"{path} is no pack: it has more than {MOST_PARTS} entries")
    return zipfile.ZipFile(path)


def _directory_size(file: IO[bytes]) -> int:
    """Return how many bytes of a zip are its directory, at most; 0 if it is no zip.

    Where the end of a zip can be found in two ways, `zipfile` takes one of them.
    """
    length = file.seek(0, os.SEEK_END)
    start = max(0, length - _END.size - (1 << 16))
    file.seek(start)
    tail = file.read()
    places = {len(tail) - _END.size, tail.rfind(b"PK\5\6")}
    return max((_size_told(file, start, tail, place) for place in places), default=0)


def _size_told(file: IO[bytes], start: int, tail: bytes, place: int) -> int:
    """Return the size of the directory that an end of a zip tells; 0 if there is none."""
    if place < 0 or tail[place : place + 4] != b"PK\5\6" or place + _END.size > len(tail):
        return 0
    size = int(_END.unpack_from(tail, place)[5])
    with suppress(struct.error, OSError):  # there is no larger record: the size above holds
        file.seek(start + place - _LOCATOR_64.size - _END_64.size)
        record = _END_64.unpack(file.read(_END_64.size))
        locator = _LOCATOR_64.unpack(file.read(_LOCATOR_64.size))
        if (record[0], locator[0]) == (b"PK\6\6", b"PK\6\7"):
            size = int(record[8])
    return size


def _check_entries(entries: list[zipfile.ZipInfo]) -> None:
    """Refuse a zip that no export has written.

    Raises:
        NoPack: The message says which entry is wrong.
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
    """Return the bytes of an entry, as far as they can be made out."""
    file.seek(entry.header_offset)
    mark, name_size, extra_size = _LOCAL_HEADER.unpack(file.read(_LOCAL_HEADER.size))
    if mark != b"PK\x03\x04":
        return
    place = entry.header_offset + _LOCAL_HEADER.size + name_size + extra_size
    end = place + entry.compress_size
    stream = zlib.decompressobj(-15) if entry.compress_type == zipfile.ZIP_DEFLATED else None
    while place < end:
        file.seek(place)  # others may read other parts meanwhile
        packed = file.read(min(STEP, end - place))
        if not packed:
            return
        place += len(packed)
        yield from (packed,) if stream is None else _inflated(stream, packed)


def _inflated(stream: zlib._Decompress, packed: bytes) -> Iterator[bytes]:
    """Decompresses a step; one that meets the damage is taken again, byte by byte."""
    before = stream.copy()
    try:
        yield stream.decompress(packed, CHUNK)
    except zlib.error:
        for byte in packed:
            yield before.decompress(bytes((byte,)))
        raise
    while stream.unconsumed_tail:
        yield stream.decompress(stream.unconsumed_tail, CHUNK)
