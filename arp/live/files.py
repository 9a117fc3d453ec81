"""Files of a session, stored by agents, tools and uploads."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, BinaryIO, Protocol

from arp.live.settings import HubSettings
from arp.protocol.blob_path import file_name
from arp.protocol.errors import ArpError
from arp.protocol.messages import FileRef

if TYPE_CHECKING:
    from arp.record.outputs import OutputStore
    from arp.store.blobs import Blob, Files

READ_BYTES = 256 << 10

_MIME = re.compile(r"[\w.+-]{1,60}/[\w.+-]{1,60}", re.ASCII)


class IncomingFile(Protocol):
    """A file that came with an input and is not stored yet."""

    @property
    def ref(self) -> FileRef:
        """Description of the file in the input."""

    def chunks(self) -> AsyncIterator[bytes]:
        """Return the content in chunks; each call starts at its beginning."""


class SessionFiles:
    """Files of a session in memory."""

    __slots__ = ("_files", "_gone", "_grown", "_settings")

    def __init__(
        self,
        files: Callable[[], Files],
        settings: HubSettings,
        gone: asyncio.Future[ArpError],
        grown: Callable[[int], None],
    ) -> None:
        """Give access to the files of a session.

        Args:
            files: Returns the store of its files.
            settings: Limits of sizes.
            gone: Done when the session has left memory; nothing is stored after that.
            grown: Called with the size of each new file, in bytes.
        """
        self._files = files
        self._settings = settings
        self._gone = gone
        self._grown = grown

    async def read(self, sha256: str) -> bytes:
        """Return the content of a file.

        Raises:
            UnknownObject: There is no such file (any more).
        """
        return await self._files().read(sha256)

    async def save(self, name: str, content: bytes | os.PathLike[str], mime: str) -> FileRef:
        """Store bytes or a copy of a file.

        Raises:
            ResourceLimit: It exceeds `max_upload_bytes`; nothing is stored.
            OSError: The file cannot be read; nothing is stored.
            TypeError: The content is neither bytes nor a path.
        """
        # Imported here so that importing `Turn` stays quick.
        from mimetypes import guess_type

        shown = file_name(name) or "file"
        if isinstance(content, bytes | bytearray | memoryview):
            blob = await self.upload(_whole(bytes(content)))
        elif isinstance(content, os.PathLike):
            file = await asyncio.to_thread(open, content, "rb")
            try:
                blob = await self.upload(_chunks(file))
            finally:
                await asyncio.to_thread(file.close)
        else:
            raise TypeError(f"expected bytes or a pathlib.Path, got {type(content).__name__}")
        kind = mime if _MIME.fullmatch(mime) else guess_type(shown)[0]
        return FileRef(blob.id, shown, blob.size, kind or "application/octet-stream", blob.sha256)

    @property
    def outputs(self) -> OutputStore:
        """Store of large outputs of tools and processes."""
        from arp.record.outputs import OutputStore

        return OutputStore(self._keep, self.read, asyncio.to_thread)

    async def upload(self, stream: AsyncIterator[bytes]) -> Blob:
        """Store a file that arrives in chunks.

        Raises:
            ResourceLimit: It exceeds `max_upload_bytes`; nothing is stored.
        """
        return await self._put(stream, self._settings.limits.max_upload_bytes)

    async def _keep(self, stream: AsyncIterator[bytes]) -> str:
        return (await self._put(stream, self._settings.max_output_bytes)).sha256

    async def _put(self, stream: AsyncIterator[bytes], max_bytes: int) -> Blob:
        if self._gone.done():
            raise self._gone.result()
        blob = await self._files().put(stream, max_bytes=max_bytes)
        if blob.is_new:
            self._grown(blob.size)
        return blob


async def _whole(data: bytes) -> AsyncIterator[bytes]:
    yield data


async def _chunks(file: BinaryIO) -> AsyncIterator[bytes]:
    while chunk := await asyncio.to_thread(file.read, READ_BYTES):
        yield chunk
