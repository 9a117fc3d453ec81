"""Request bodies within bounds: JSON into memory, large files aside until they are a session's.

Source: protocol.md 4 (`max_upload_bytes`) and 6.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from hashlib import sha256

from msgspec import Struct
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect, Request

from arp.protocol.errors import InvalidMessage, ResourceLimit
from arp.protocol.messages import FileRef
from arp.store.blobs import too_large

MAX_FILES = 20
"""In one upload."""

MAX_FIELDS = 50
"""Beside the files."""

MAX_NAME_BYTES = 255
"""What file systems take."""

READ_BYTES = 64 << 10

OVERHEAD_BYTES = 64 << 10
"""Room for part headers and fields beside the files themselves."""


async def read_body(request: Request, max_bytes: int) -> bytes:
    """Gives a whole body.

    Raises:
        ResourceLimit: It has more than `max_bytes`; reading stops there.
    """
    return b"".join([chunk async for chunk in bounded(request, max_bytes)])


async def bounded(request: Request, max_bytes: int) -> AsyncGenerator[bytes, None]:
    """Gives a body in chunks, up to a limit."""
    size = 0
    try:
        async for chunk in request.stream():
            size += len(chunk)
            if size > max_bytes:
                raise ResourceLimit(f"a body of more than {max_bytes} bytes is not taken")
            yield chunk
    except ClientDisconnect:
        raise InvalidMessage("the body ended early") from None


class Upload(Struct, frozen=True):
    """A file in a form: read, and no session's yet."""

    part: str
    """The name of its part."""
    ref: FileRef
    body: UploadFile

    async def chunks(self) -> AsyncIterator[bytes]:
        """Gives its bytes, from the first on each time; as long as the form is open."""
        await self.body.seek(0)
        while chunk := await self.body.read(READ_BYTES):
            yield chunk


class Form(Struct, frozen=True):
    """What came as multipart/form-data."""

    fields: dict[str, str]
    files: list[Upload]


@asynccontextmanager
async def read_form(request: Request, max_bytes: int) -> AsyncIterator[Form]:
    """Reads multipart/form-data; what it holds is there for a block.

    Raises:
        ResourceLimit: More bytes, files or fields than are taken.
        InvalidMessage: Not multipart.
    """
    body = bounded(request, max_bytes + OVERHEAD_BYTES)
    parser = MultiPartParser(
        request.headers, body, max_files=MAX_FILES, max_fields=MAX_FIELDS, max_part_size=max_bytes
    )
    try:
        form = await parser.parse()
    except MultiPartException as error:
        raise InvalidMessage(f"multipart/form-data: {error.message}") from None
    read = Form({}, [])
    try:
        for name, value in form.multi_items():
            if isinstance(value, UploadFile):
                read.files.append(Upload(name, await _ref(value, max_bytes), value))
            else:
                read.fields[name] = value
        yield read
    finally:
        await form.close()


async def _ref(body: UploadFile, max_bytes: int) -> FileRef:
    digest, size = sha256(), 0
    while chunk := await body.read(READ_BYTES):
        digest.update(chunk)
        size += len(chunk)
    if size > max_bytes:
        raise too_large(max_bytes)
    mime = _printable(body.content_type or "")[:128] or "application/octet-stream"
    name = digest.hexdigest()
    return FileRef(name, shown_name(body.filename or ""), size, mime, name)


def shown_name(filename: str) -> str:
    """Gives a name that is safe to show, and to use in a directory of one's own: no path."""
    name = _printable(filename.replace("\\", "/").rpartition("/")[2]).strip()
    cut = name.encode()[:MAX_NAME_BYTES].decode(errors="ignore")
    return cut if cut.strip(".") else "file"


def _printable(text: str) -> str:
    return "".join(character for character in text if character.isprintable())
