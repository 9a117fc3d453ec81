"""Receive request bodies within limits: JSON in memory, files on disk until a session stores them.

Theory of operation. A message has at most `max_message_bytes`, whether it arrives as JSON or as the
text fields of a form. Only a part with a file name may be larger; it is written to disk. Bytes are
counted before they are parsed. The bytes of a body that is being received count toward the limits
of its user, of its address and of the server, until the body is consumed or dropped.

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
"""Maximum number of files in one upload."""

MAX_FIELDS = 50
"""Maximum number of fields in one upload, not counting files."""

READ_BYTES = 64 << 10

OVERHEAD_BYTES = 64 << 10
"""Allowance in bytes for the headers of the parts of a form."""


class UploadedFile(Struct, frozen=True):
    """A file in a form that does not belong to a session yet."""

    part: str
    """Name of the part of the form that holds the file."""
    ref: FileRef
    body: UploadFile

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the bytes from the beginning. May be repeated while the form is open."""
        await self.body.seek(0)
        while chunk := await self.body.read(READ_BYTES):
            yield chunk


class UploadedForm(Struct, frozen=True):
    """A received multipart/form-data body."""

    fields: dict[str, str]
    files: list[UploadedFile]


class Intake:
    """Reads the request bodies of one application."""

    def __init__(self, bounds: Bounds, limits: Limits) -> None:
        self._limits = limits
        self.received = received_bytes(bounds, self.max_form_bytes)
        """Counter of the body bytes that are being received."""
        count = bounds.max_uploads_per_user
        self.uploads = UsageCounter(
            "uploads under way", UsageLimits(count, count, bounds.max_uploads)
        )
        """Counter of the forms that are being received."""

    @property
    def max_upload_bytes(self) -> int:
        """Maximum size of a file in bytes."""
        return self._limits.max_upload_bytes

    async def file(self, part: str, body: UploadFile) -> UploadedFile:
        """Return a completely received file.

        Raises:
            ResourceLimit: The file is larger than `max_upload_bytes`.
        """
        return UploadedFile(part, await _file_ref(body, self._limits.max_upload_bytes), body)

    @property
    def max_message_bytes(self) -> int:
        """Maximum size of an input in bytes."""
        return self._limits.max_message_bytes

    @property
    def max_form_bytes(self) -> int:
        """Maximum size in bytes of an input with all its files."""
        return self._limits.max_upload_bytes + self._limits.max_message_bytes + OVERHEAD_BYTES

    async def body(self, request: Request, max_bytes: int | None = None) -> bytes:
        """Return the whole body of a request.

        Args:
            request: The request.
            max_bytes: Maximum size in bytes; `None` means `max_message_bytes`.

        Raises:
            ResourceLimit: The body is larger than `max_bytes`; reading stops there.
            RateLimited: The server is receiving too much; reading stops there.
        """
        most = self._limits.max_message_bytes if max_bytes is None else max_bytes
        keys = keys_of(request.scope["arp"].principal)
        async with BodyReading(self.received, request, most, keys) as reading:
            return await reading.whole()

    @asynccontextmanager
    async def form(self, request: Request) -> AsyncIterator[UploadedForm]:
        """Read a multipart/form-data body. Its files exist until the block ends.

        Raises:
            ResourceLimit: The form exceeds a limit of bytes, files or fields; reading stops there.
            RateLimited: The server is receiving too much; reading stops there.
            InvalidMessage: The body is not valid multipart/form-data.
            StoreUnwritable: The disk refuses the write, for example because it is full.
        """
        keys = keys_of(request.scope["arp"].principal)
        self.uploads.acquire(keys)
        try:
            async with BodyReading(self.received, request, self.max_form_bytes, keys) as reading:
                parser = _Parser(request, reading.chunks(), self._limits.max_message_bytes)
                form = await _parse_form(parser)
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
    """Parser that limits the text of all fields together to the size of a message.

    Files are written to disk.
    """

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
        """Process a chunk of a part."""
        try:
            super().on_part_data(data, start, end)
        except MultiPartException:  # the only cause here is a part longer than `max_part_size`
            raise ResourceLimit(
                f"all fields of a form together may have {self._max_text_bytes} bytes; "
                "send a longer text as a file"
            ) from None

    def on_part_end(self) -> None:
        """Reduce the limit of the following fields by the size of this one."""
        super().on_part_end()
        _, value = self.items[-1]
        if isinstance(value, str):
            self.max_part_size -= len(value.encode())


async def _parse_form(parser: MultiPartParser) -> FormData:
    try:
        return await parser.parse()
    except MultiPartException as error:
        raise InvalidMessage(f"multipart/form-data: {error.message}") from None
    except OSError as error:
        raise StoreUnwritable(gettempdir(), str(error.strerror)) from error


async def _file_ref(body: UploadFile, max_bytes: int) -> FileRef:
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
    """Return a file name without a path that is safe to show and to use in a directory."""
    return file_name(filename) or "file"


def _printable(text: str) -> str:
    return "".join(character for character in text if character.isprintable())
