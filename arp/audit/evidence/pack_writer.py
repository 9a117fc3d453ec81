"""Write a pack to a temporary directory and rename it when it is complete and durable.

Theory of operation. Parts are written to a temporary directory next to the target; its name begins
with a dot. When all parts are written and synced, the manifest is written and the directory is
renamed to the target. For a zip, the files are packed into a zip in the temporary directory, and
the zip is renamed. If the process is killed, the temporary directory remains, but the target never
holds an incomplete pack.
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
"""Prefix of temporary files and directories. They may be deleted when no export is running."""

ZIP: Final = ".zip"

_EPOCH: Final = (1980, 1, 1, 0, 0, 0)
"""Modification time of every zip entry, so that equal parts give equal zips. The manifest records
the time of the export."""


class PackUnwritable(LocalError):
    """The pack cannot be written to its target. An existing file or directory is unchanged."""


class PackWriter:
    """A pack that is being written; leaving the context removes an unfinished pack.

    Args:
        target: Path of the pack, which must not exist; a zip if it ends in `.zip`, else a
            directory.

    Raises:
        PackUnwritable: The target exists, or the disk refuses the write.
    """

    def __init__(self, target: Path) -> None:
        self.target = target
        if target.exists() or target.is_symlink():
            raise PackUnwritable(f"{target} is there already; name another, or remove it")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            self._temporary = Path(tempfile.mkdtemp(prefix=UNFINISHED, dir=target.parent))
        except OSError as error:
            raise _unwritable(target, error) from error
        self._open: dict[str, _OpenPart] = {}

    def __enter__(self) -> PackWriter:
        return self

    def __exit__(self, *_: object) -> None:
        for part in self._open.values():
            with suppress(OSError):
                part.file.close()
        shutil.rmtree(self._temporary, ignore_errors=True)

    def add(self, name: str, data: bytes) -> None:
        """Append bytes to a part. The first call creates the part.

        Raises:
            PackUnwritable: The disk refuses the write.
        """
        try:
            if name not in self._open:
                self._open[name] = _OpenPart(self._part_path(name))
            self._open[name].add(data)
        except OSError as error:
            raise _unwritable(self.target, error) from error

    @property
    def count(self) -> int:
        """Number of parts."""
        return len(self._open)

    def _part_path(self, name: str) -> Path:
        path = self._temporary.joinpath(*PurePosixPath(name).parts)
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def close_parts(self) -> list[Part]:
        """Sync and close the parts; return them, sorted by name, with their sizes and hashes.

        Raises:
            PackUnwritable: The disk refuses the write.
        """
        try:
            return [part.close(name) for name, part in sorted(self._open.items())]
        except OSError as error:
            raise _unwritable(self.target, error) from error

    def finish(self, manifest: Manifest) -> str:
        """Write the manifest and rename the pack to its target.

        Args:
            manifest: Manifest that lists the parts returned by `close_parts`.

        Returns:
            The SHA-256 of the manifest, which covers the whole pack.

        Raises:
            PackUnwritable: The disk refuses the write, or the rename fails.
        """
        data = encode_manifest(manifest)
        self.add(MANIFEST, data)
        try:
            self._open[MANIFEST].close(MANIFEST)
            for directory in {self._temporary, *(one.path.parent for one in self._open.values())}:
                sync_directory(directory)
            if self.target.suffix == ZIP:
                self._write_zip().replace(self.target)
            else:
                self._temporary.rename(self.target)
            sync_directory(self.target.parent)
        except OSError as error:
            raise _unwritable(self.target, error) from error
        return sha256(data).hexdigest()

    def _write_zip(self) -> Path:
        """Pack the files into a zip, manifest first, and sync it; return its path."""
        zipped = self._temporary / f"pack{ZIP}"
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
    """A part that is being written."""

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
