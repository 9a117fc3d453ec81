"""Request bodies within limits: JSON in memory, files on the disk until a session takes them.

Theory of operation. One limit holds for every way in: a message has at most `max_message_bytes`,
whether it comes as JSON or as the text fields of a form; only a part with a file name may be
longer, and goes to the disk. Bytes are counted before they are parsed. What is being received
counts for its user, its address and all together, until it is taken or given up.

Source: protocol.md 4 (`max_message_bytes`, `max_upload_bytes`) and 6.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from hashlib import sha256
from tempfile import gettempdir

from msgspec import Struct
from starlette.datastructures import FormData, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request

from arp.access.principal import keys_of
from arp.access.settings import Bounds
from arp.access.usage import UsageCounter, UsageLimits
from arp.net.bodies import BodyReading, received_bytes
from arp.protocol.blob_path import file_name
from arp.protocol.errors import InvalidMessage, ResourceLimit
from arp.protocol.limits import Limits
from arp.protocol.messages import FileRef
from arp.store.blobs import too_large
from arp.store.errors import StoreUnwritable

MAX_FILES = 20
"""In one upload."""

MAX_FIELDS = 50
"""Beside the files."""

READ_BYTES = 64 << 10

OVERHEAD_BYTES = 64 << 10
"""Room for the headers of parts."""


class UploadedFile(Struct, frozen=True):
    """A file in a form, which belongs to no session yet."""

    part: str
    """The name of its part."""
    ref: FileRef
    body: UploadFile

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield its bytes from the beginning, each time; as long as the form is open."""
        await self.body.seek(0)
        while chunk := await self.body.read(READ_BYTES):
            yield chunk


class UploadedForm(Struct, frozen=True):
    """What came as multipart/form-data."""

    fields: dict[str, str]
    files: list[UploadedFile]


class Intake:
    """Reads the bodies of requests for one application."""

    def __init__(self, bounds: Bounds, limits: Limits) -> None:
        self._limits = limits
        self.received = received_bytes(bounds, self.max_form_bytes)
        """Bytes of bodies that are being received."""
        count = bounds.max_uploads_per_user
        self.uploads = UsageCounter(
            "uploads under way", UsageLimits(count, count, bounds.max_uploads)
        )
        """Forms that are being received."""

    @property
    def max_upload_bytes(self) -> int:
        """Bytes of one file."""
        return self._limits.max_upload_bytes

    async def file(self, part: str, body: UploadFile) -> UploadedFile:
        """Return a file that is there whole.

        Raises:
            ResourceLimit: It is larger than an upload may be.
        """
        return UploadedFile(part, await _ref(body, self._limits.max_upload_bytes), body)

    @property
    def max_message_bytes(self) -> int:
        """Bytes of an input."""
        return self._limits.max_message_bytes

    @property
    def max_form_bytes(self) -> int:
        """Bytes of an input with all its files."""
        return self._limits.max_upload_bytes + self._limits.max_message_bytes + OVERHEAD_BYTES

    async def body(self, request: Request, max_bytes: int | None = None) -> bytes:
        """Return a whole body.

        Args:
            request: The request.
            max_bytes: `None`: `max_message_bytes`.

        Raises:
            ResourceLimit: It has more than `max_bytes`; reading stops there.
            RateLimited: Too much is being received; reading stops there.
        """
        most = self._limits.max_message_bytes if max_bytes is None else max_bytes
        keys = keys_of(request.scope["arp"].principal)
        async with BodyReading(self.received, request, most, keys) as reading:
            return await reading.whole()

    @asynccontextmanager
    async def form(self, request: Request) -> AsyncIterator[UploadedForm]:
        """Read multipart/form-data; its files are there as long as the block.

        Raises:
            ResourceLimit: More bytes, files or fields than are taken; reading stops there.
            RateLimited: Too much is being received; reading stops there.
            InvalidMessage: Not multipart.
            StoreUnwritable: The disk is full.
        """
        keys = keys_of(request.scope["arp"].principal)
        self.uploads.acquire(keys)
        try:
            async with BodyReading(self.received, request, self.max_form_bytes, keys) as reading:
                parser = _Parser(request, reading.chunks(), self._limits.max_message_bytes)
                form = await _parsed(parser)
                try:
                    yield await self._read(form.multi_items())
                finally:
                    await form.close()
        finally:
            self.uploads.release(keys)

    async def _read(self, items: list[tuple[str, UploadFile | str]]) -> UploadedForm:
        read = UploadedForm({}, [])
        for name, value in items:
            if isinstance(value, UploadFile):
                read.files.append(await self.file(name, value))
            else:
                read.fields[name] = value
        return read


class _Parser(MultiPartParser):
    """Limits the text of all fields together to that of a message; files go to the disk."""

    spool_max_size = READ_BYTES

    def __init__(
        self, request: Request, chunks: AsyncGenerator[bytes, None], max_text_bytes: int
    ) -> None:
        super().__init__(
            request.headers,
            chunks,
            max_files=MAX_FILES,
            max_fields=MAX_FIELDS,
            max_part_size=max_text_bytes,
        )
        self._max_text_bytes = max_text_bytes

    def on_part_data(self, data: bytes, start: int, end: int) -> None:
        """Keep a piece of a part."""
        try:
            super().on_part_data(data, start, end)
        except MultiPartException:  # it can only mean that the part is longer than `max_part_size`
            raise ResourceLimit(
                f"the fields of a form may have {self._max_text_bytes} bytes all together; "
                "send what is longer as a file"
            ) from None

    def on_part_end(self) -> None:
        """Leave what this field has not used to those that follow."""
        super().on_part_end()
        _, value = self.items[-1]
        if isinstance(value, str):
            self.max_part_size -= len(value.encode())


async def _parsed(parser: MultiPartParser) -> FormData:
    try:
        return await parser.parse()
    except MultiPartException as error:
        raise InvalidMessage(f"multipart/form-data: {error.message}") from None
    except OSError as error:
        raise StoreUnwritable(gettempdir(), str(error.strerror)) from error


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
    """Return a name without a path that is safe to show and to use in a directory."""
    return file_name(filename) or "file"


def _printable(text: str) -> str:
    return "".join(character for character in text if character.isprintable())
