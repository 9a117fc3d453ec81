"""Files over gRPC: the call `Upload`, which receives one input with its files.

Theory of operation. A call is read like a form over HTTP. The input stays in memory and is limited
to the size of a message. Files are written to disk in pieces, and their bytes count toward the
limits of the user, the address and the server. A client that sends nothing for `stall_s` is
refused. Files have a call of their own, because their pieces would delay the frames of `Connect`.

Source: protocol.md 6.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from tempfile import SpooledTemporaryFile, gettempdir
from typing import BinaryIO, cast

from starlette.datastructures import Headers, UploadFile

from arp.access.principal import Key
from arp.protocol.errors import InvalidMessage, ResourceLimit
from arp.protocol.framing.envelope import FileStart, unseal_file_start, unseal_part
from arp.server.ports.streams import FIELD_PART
from arp.server.uploads import MAX_FILES, READ_BYTES, Intake, UploadedFile, UploadedForm
from arp.store.errors import StoreUnwritable


@asynccontextmanager
async def receive_form(
    intake: Intake, keys: tuple[Key, ...], parts: AsyncIterator[bytes], stall_s: float
) -> AsyncIterator[UploadedForm]:
    """Read an upload; its files exist until the block ends.

    Args:
        intake: Limits and counters of uploads.
        keys: Keys of the user and the address that the upload is counted for.
        parts: Messages of the call.
        stall_s: Time in seconds that the next message may take.

    Raises:
        InvalidMessage: The messages are not a valid upload, or a message did not arrive in time.
        ResourceLimit: The upload exceeds a limit of bytes or files; reading stops there.
        RateLimited: The server is receiving too much; reading stops there.
        StoreUnwritable: The disk refuses the write, for example because it is full.
    """
    intake.uploads.acquire(keys)
    received = _ReceivedParts(intake, keys)
    try:
        async with AsyncExitStack() as stack:
            while (part := await _next(parts, stall_s)) is not None:
                await received.add(part, stack)
            yield await received.form()
    finally:
        received.release()
        intake.uploads.release(keys)


async def skip(parts: AsyncIterator[bytes], most_bytes: int, stall_s: float) -> None:
    """Read and drop the rest of a refused upload, up to `most_bytes`.

    A client that is still writing may otherwise get an error from its library and no answer.
    """
    left = most_bytes
    with suppress(InvalidMessage):
        while left > 0 and (part := await _next(parts, stall_s)) is not None:
            left -= len(part)


async def _next(parts: AsyncIterator[bytes], stall_s: float) -> bytes | None:
    try:
        async with asyncio.timeout(stall_s):
            return await anext(parts)
    except StopAsyncIteration:
        return None
    except TimeoutError:
        raise InvalidMessage(f"upload: nothing came for {stall_s:g} s") from None


class _ReceivedParts:
    """An upload that is being read. Its bytes count toward the limits until `release`."""

    def __init__(self, intake: Intake, keys: tuple[Key, ...]) -> None:
        self._intake = intake
        self._keys = keys
        self._size = 0
        self._message: bytes | None = None
        self._files: list[tuple[FileStart, UploadFile]] = []

    def release(self) -> None:
        """Stop counting the bytes of the upload."""
        self._intake.received.release(self._keys, self._size)

    async def add(self, message: bytes, stack: AsyncExitStack) -> None:
        """Process the next message of the call.

        Args:
            message: An encoded `UploadPart`.
            stack: Exit stack that closes the files.
        """
        part = unseal_part(message)
        self._count(len(part.data))
        if (part.kind == "input") is not (self._message is None):
            raise InvalidMessage("upload: the first part, and no other, must be the input")
        if part.kind == "input":
            self._set_input(part.data)
        elif part.kind == "file":
            self._begin(unseal_file_start(part.data), stack)
        elif not self._files:
            raise InvalidMessage("upload: a file must begin before its data")
        else:
            await self._append(part.data)

    def _count(self, size: int) -> None:
        most = self._intake.max_form_bytes
        if self._size + size > most:
            raise ResourceLimit(f"an upload may have at most {most} bytes")
        self._intake.received.acquire(self._keys, size)
        self._size += size

    def _set_input(self, data: bytes) -> None:
        most = self._intake.max_message_bytes
        if len(data) > most:
            raise ResourceLimit(f"an input may have at most {most} bytes")
        self._message = data

    def _begin(self, start: FileStart, stack: AsyncExitStack) -> None:
        if len(self._files) == MAX_FILES:
            raise ResourceLimit(f"an input may have at most {MAX_FILES} files")
        body = cast(BinaryIO, SpooledTemporaryFile(max_size=READ_BYTES))  # noqa: SIM115 - see stack
        headers = Headers({"content-type": start.mime} if start.mime.isascii() else {})
        file = UploadFile(body, size=0, filename=start.name, headers=headers)
        stack.push_async_callback(file.close)
        self._files.append((start, file))

    async def _append(self, data: bytes) -> None:
        _, file = self._files[-1]
        most = self._intake.max_upload_bytes
        try:
            await file.write(data)
        except OSError as error:
            raise StoreUnwritable(gettempdir(), str(error.strerror)) from error
        if file.size is not None and file.size > most:
            raise ResourceLimit(f"a file may have at most {most} bytes")

    async def form(self) -> UploadedForm:
        """Return the upload as a form, like a form over HTTP.

        Raises:
            InvalidMessage: The upload has no input, or its text is not UTF-8.
            ResourceLimit: A file is too large.
        """
        if self._message is None:
            raise InvalidMessage("upload: it has no input")
        try:
            message = self._message.decode()
        except UnicodeDecodeError:
            raise InvalidMessage("upload: the input is not UTF-8") from None
        files: list[UploadedFile] = []
        for start, file in self._files:
            await file.seek(0)
            part = f"{FIELD_PART}{start.field}" if start.field else "file"
            files.append(await self._intake.file(part, file))
        return UploadedForm({"message": message}, files)
