"""Files of a session: how they are kept, and under which address a server gives them."""

from __future__ import annotations

import asyncio
import base64
import binascii
import os
import re
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, BinaryIO, Protocol

from msgspec import Struct

from arp.protocol.messages import FileRef

if TYPE_CHECKING:
    from arp.store.blobs import Files

PREFIX = "/_api/blobs/"
"""What the address of every file begins with, below that of the server."""

READ_BYTES = 256 << 10

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_MIME = re.compile(r"[\w.+-]{1,60}/[\w.+-]{1,60}", re.ASCII)


class BlobName(Struct, frozen=True):
    """What the address of a file says."""

    session_id: str
    sha256: str
    name: str


class Arrived(Protocol):
    """A file that came with an input and is no session's yet."""

    @property
    def ref(self) -> FileRef:
        """What the input says of it."""

    def chunks(self) -> AsyncIterator[bytes]:
        """Gives its bytes, from the first on each time."""


def blob_path(session_id: str, ref: FileRef) -> str:
    """Gives the path under which a session's file is served: session, content, and a name to keep.

    It holds letters, digits and `._-` alone, whatever the session is called.
    """
    session = base64.urlsafe_b64encode(session_id.encode()).decode().rstrip("=")
    stem, ending = os.path.splitext(ref.name)
    shown = f"{_plain(stem) or 'file'}{'.' if ending[1:] else ''}{_plain(ending)}"
    return f"{PREFIX}s{session}/{ref.sha256}/{shown}"


def parse_blob_path(path: str) -> BlobName | None:
    """Is the inverse of `blob_path`, as far as it can be; `None` if it is none."""
    session, _, rest = path.removeprefix(PREFIX).partition("/")
    sha256, _, name = rest.partition("/")
    if not session.startswith("s") or not sha256 or not name or "/" in name:
        return None
    try:
        padded = session[1:] + "=" * (-len(session[1:]) % 4)
        session_id = base64.b64decode(padded, altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        return None
    return BlobName(session_id, sha256, name)


async def save(
    files: Files, name: str, content: bytes | os.PathLike[str], mime: str, max_bytes: int
) -> FileRef:
    """Keeps bytes, or a copy of a file.

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


def _plain(text: str) -> str:
    """Gives a text with letters, digits and `._-` alone, none of the latter at its ends."""
    return _UNSAFE.sub("-", text).strip("._-")[:100]
