"""Files of a session: how they are kept."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, BinaryIO, Protocol

from arp.protocol.messages import FileRef

if TYPE_CHECKING:
    from arp.store.blobs import Files

READ_BYTES = 256 << 10

_MIME = re.compile(r"[\w.+-]{1,60}/[\w.+-]{1,60}", re.ASCII)


class Arrived(Protocol):
    """A file that came with an input and is no session's yet."""

    @property
    def ref(self) -> FileRef:
        """What the input says of it."""

    def chunks(self) -> AsyncIterator[bytes]:
        """Return its bytes, from the first on each time."""


async def save(
    files: Files, name: str, content: bytes | os.PathLike[str], mime: str, max_bytes: int
) -> FileRef:
    """Keep bytes, or a copy of a file.

    Raises:
        ResourceLimit: More than `max_bytes`; nothing is kept.
        OSError: The file cannot be read; nothing is kept.
        TypeError: It is neither bytes nor a path.
    """
    # Only now, so that importing `Turn` stays quick.
    from mimetypes import guess_type
    from pathlib import PurePath

    shown = PurePath(name.replace("\\", "/")).name or "file"
    if isinstance(content, bytes | bytearray | memoryview):
        blob = await files.put(_whole(bytes(content)), max_bytes=max_bytes)
    elif isinstance(content, os.PathLike):
        file = await asyncio.to_thread(open, content, "rb")
        try:
            blob = await files.put(_chunks(file), max_bytes=max_bytes)
        finally:
            await asyncio.to_thread(file.close)
    else:
        raise TypeError(f"expected bytes or a pathlib.Path, got {type(content).__name__}")
    kind = mime if _MIME.fullmatch(mime) else guess_type(shown)[0]
    return FileRef(blob.id, shown, blob.size, kind or "application/octet-stream", blob.sha256)


async def _whole(data: bytes) -> AsyncIterator[bytes]:
    yield data


async def _chunks(file: BinaryIO) -> AsyncIterator[bytes]:
    while chunk := await asyncio.to_thread(file.read, READ_BYTES):
        yield chunk
