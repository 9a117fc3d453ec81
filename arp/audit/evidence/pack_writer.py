"""Writes a pack aside and return it its name when it is whole and durable.

Theory of operation. Parts go into a directory beside the target whose name begins with a dot. When
all are there and synced, the manifest is written, and the directory is renamed to the target; for a
zip, the directory is packed into a file beside it and that is renamed. A process that is killed
leaves the aside directory, never a half pack under the final name.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import zipfile
from contextlib import suppress
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import IO, Final

from arp.audit.evidence.manifest import MANIFEST, Manifest, Part, encode_manifest
from arp.protocol.errors import LocalError
from arp.store.directory import sync_directory

UNFINISHED: Final = ".unfinished-"
"""In the name of what is not whole: may be deleted when no export runs."""

ZIP: Final = ".zip"

_EPOCH: Final = (1980, 1, 1, 0, 0, 0)
"""Of every entry of a zip: equal parts make equal zips; when it was made, the manifest says."""


class PackUnwritable(LocalError):
    """A pack cannot be written there; whatever had its name is unchanged."""


class PackWriter:
    """A pack that is being written; a context manager removes what was not finished.

    Args:
        target: Of the pack; a zip if it ends in `.zip`, else a directory. Nothing may be there.

    Raises:
        PackUnwritable: Something is there, or the disk refuses.
    """

    def __init__(self, target: Path) -> None:
        self.target = target
        if target.exists() or target.is_symlink():
            raise PackUnwritable(f"{target} is there already; name another, or remove it")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            self._aside = Path(tempfile.mkdtemp(prefix=UNFINISHED, dir=target.parent))
        except OSError as error:
            raise _unwritable(target, error) from error
        self._open: dict[str, _OpenPart] = {}

    def __enter__(self) -> PackWriter:
        return self

    def __exit__(self, *_: object) -> None:
        for part in self._open.values():
            with suppress(OSError):
                part.file.close()
        shutil.rmtree(self._aside, ignore_errors=True)

    def add(self, name: str, data: bytes) -> None:
        """Add bytes to the end of a part; the first make it.

        Raises:
            PackUnwritable: The disk refuses.
        """
        try:
            if name not in self._open:
                self._open[name] = _OpenPart(self._place(name))
            self._open[name].add(data)
        except OSError as error:
            raise _unwritable(self.target, error) from error

    @property
    def count(self) -> int:
        """Return how many parts there are."""
        return len(self._open)

    def _place(self, name: str) -> Path:
        place = self._aside.joinpath(*PurePosixPath(name).parts)
        place.parent.mkdir(parents=True, exist_ok=True)
        return place

    def close_parts(self) -> list[Part]:
        """Make the parts durable, and return their sizes and hashes.

        Raises:
            PackUnwritable: The disk refuses.
        """
        try:
            return [part.close(name) for name, part in sorted(self._open.items())]
        except OSError as error:
            raise _unwritable(self.target, error) from error

    def finish(self, manifest: Manifest) -> str:
        """Give the pack its name; return the SHA-256 of its manifest, which covers all of it.

        Args:
            manifest: With the parts that `close_parts` gave.

        Raises:
            PackUnwritable: The disk refuses, or the name is taken by now.
        """
        data = encode_manifest(manifest)
        self.add(MANIFEST, data)
        try:
            self._open[MANIFEST].close(MANIFEST)
            for directory in {self._aside, *(one.path.parent for one in self._open.values())}:
                sync_directory(directory)
            if self.target.suffix == ZIP:
                self._zipped().replace(self.target)
            else:
                self._aside.rename(self.target)
            sync_directory(self.target.parent)
        except OSError as error:
            raise _unwritable(self.target, error) from error
        return sha256(data).hexdigest()

    def _zipped(self) -> Path:
        """Put the prepared files into a zip, the manifest first; return the file, durable."""
        zipped = self._aside / f"pack{ZIP}"
        zipped.touch(0o600, exist_ok=False)
        with zipped.open("r+b") as file:
            with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as pack:
                names = [MANIFEST, *sorted(self._open.keys() - {MANIFEST})]
                for name in names:
                    entry = zipfile.ZipInfo(name, _EPOCH)
                    entry.compress_type = zipfile.ZIP_DEFLATED
                    entry.external_attr = 0o644 << 16
                    size = self._open[name].size
                    with (
                        self._open[name].path.open("rb") as part,
                        pack.open(entry, "w", force_zip64=size > 1 << 30) as into,
                    ):
                        shutil.copyfileobj(part, into)
            file.flush()
            os.fsync(file.fileno())
        return zipped


class _OpenPart:
    """A part that is written."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = 0
        self.file: IO[bytes] = path.open("xb")
        self._hash = sha256()

    def add(self, data: bytes) -> None:
        self.file.write(data)
        self.size += len(data)
        self._hash.update(data)

    def close(self, name: str) -> Part:
        self.file.flush()
        os.fsync(self.file.fileno())
        self.file.close()
        return Part(name, self.size, self._hash.hexdigest())


def _unwritable(target: Path, error: OSError) -> PackUnwritable:
    return PackUnwritable(f"{target} cannot be written: {error.strerror or error}")
