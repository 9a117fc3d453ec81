"""A pack, opened: its manifest and its parts, from a directory or a zip.

Theory of operation. Of a damaged zip as much is read as there is: an entry's bytes are decompressed
here, without its checksum, so that whoever checks the facts comes to the first that is bad.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO, Final

from arp.ledger.exports.manifest import MANIFEST, Manifest, NoManifest, decode_manifest
from arp.protocol.errors import LocalError

CHUNK: Final = 1 << 20
"""Read at once."""

MOST_LINE: Final = 64 << 20
"""Of a line: no fact is as large, so what is longer is no line."""

MOST_DOCUMENT: Final = 256 << 20
"""Of a part that is read whole: a small zip must not fill the memory."""

STEP: Final = 16 << 10
"""Packed bytes decompressed at once."""

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
                self._zip = zipfile.ZipFile(path)
            except (zipfile.BadZipFile, OSError, NotImplementedError, ValueError) as error:
                raise NoPack(f"{path} is no pack: {error}") from error
        elif not path.is_dir():
            raise NoPack(f"there is no pack {path}; name a directory or a zip")
        try:
            self.manifest_bytes = self.read(MANIFEST)
            self.manifest: Manifest = decode_manifest(self.manifest_bytes)
        except (NoManifest, PartMissing) as error:
            self.close()
            raise NoPack(f"{path} is no pack: {error.message}") from error

    def close(self) -> None:
        """Lets go of the file. Harmless when repeated."""
        if self._zip is not None:
            self._zip.close()

    def __enter__(self) -> Pack:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def names(self) -> set[str]:
        """Gives the paths of the files in it."""
        if self._zip is not None:
            return {entry.filename for entry in self._zip.infolist() if not entry.is_dir()}
        files = (one for one in self.path.rglob("*") if one.is_file())
        return {one.relative_to(self.path).as_posix() for one in files}

    def read(self, name: str) -> bytes:
        """Gives all of a part.

        Raises:
            PartMissing: There is none of that name, or it is larger than a document may be.
        """
        parts, size = list[bytes](), 0
        for chunk in self.chunks(name):
            parts.append(chunk)
            size += len(chunk)
            if size > MOST_DOCUMENT:
                raise PartMissing(f"{name} is larger than {MOST_DOCUMENT} bytes")
        return b"".join(parts)

    def chunks(self, name: str) -> Iterator[bytes]:
        """Gives a part's bytes; of a damaged zip those before the damage, then it ends.

        Raises:
            PartMissing: There is none of that name.
        """
        pure = PurePosixPath(name)
        if pure.is_absolute() or ".." in pure.parts or "\\" in name or not pure.parts:
            raise PartMissing(f"{name!r:.80} is no path inside a pack")
        if self._zip is not None:
            yield from self._unzipped(self._zip, name)
            return
        place = self.path.joinpath(*pure.parts)
        try:
            if not place.resolve().is_relative_to(self.path.resolve()):
                raise PartMissing(f"{name!r:.80} lies outside of the pack")
            with place.open("rb") as file:
                while chunk := file.read(CHUNK):
                    yield chunk
        except OSError as error:
            raise PartMissing(f"{name!r:.80}: {error.strerror or error}") from error

    def lines(self, name: str) -> Iterator[bytes]:
        """Gives a part's lines with their line breaks; the last one may lack it.

        Raises:
            PartMissing: There is none of that name.
        """
        held = b""
        for chunk in self.chunks(name):
            *whole, held = (held + chunk).split(b"\n")
            for line in whole:
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


def _entry_bytes(file: IO[bytes], entry: zipfile.ZipInfo) -> Iterator[bytes]:
    """Gives the bytes of an entry, as far as they can be made out."""
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
