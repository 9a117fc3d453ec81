"""Files that come over gRPC: the call `Upload`, which takes one input with its files.

Theory of operation. A call is read as a form over HTTP is: the input stays in memory and is as
long as a message at most, files go to the disk in pieces and are counted as they come, for their
user, their address and all together. A client that sends nothing for a while is not waited for.
Pieces of files between the frames of `Connect` would delay what is shown.
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
async def received_form(
    intake: Intake, keys: tuple[Key, ...], parts: AsyncIterator[bytes], stall_s: float
) -> AsyncIterator[UploadedForm]:
    """Read an upload; its files are there as long as the block.

    Args:
        intake: Counts what is being received.
        keys: For whom.
        parts: The messages of the call.
        stall_s: How long the next of them may take.

    Raises:
        InvalidMessage: The messages are no upload, or do not come in time.
        ResourceLimit: More bytes or files than are taken; reading stops there.
        RateLimited: Too much is being received; reading stops there.
        StoreUnwritable: The disk is full.
    """
    intake.uploads.acquire(keys)
    received = _ReceivedParts(intake, keys)
    try:
        async with AsyncExitStack() as stack:
            while (part := await _next(parts, stall_s)) is not None:
                await received.take(part, stack)
            yield await received.form()
    finally:
        received.release()
        intake.uploads.release(keys)


async def skip(parts: AsyncIterator[bytes], most_bytes: int, stall_s: float) -> None:
    """Read what still comes of an upload that is refused, and drop it, up to a bound.

    A client that writes when the answer comes may get an error of its library instead of it.
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
    """One upload that is being read, and is counted meanwhile."""

    def __init__(self, intake: Intake, keys: tuple[Key, ...]) -> None:
        self._intake = intake
        self._keys = keys
        self._size = 0
        self._message: bytes | None = None
        self._files: list[tuple[FileStart, UploadFile]] = []

    def release(self) -> None:
        """Count nothing of it any longer."""
        self._intake.received.release(self._keys, self._size)

    async def take(self, message: bytes, stack: AsyncExitStack) -> None:
        """Take the next message of the call.

        Args:
            message: An `UploadPart`.
            stack: Closes the files at the end.
        """
        part = unseal_part(message)
        self._count(len(part.data))
        if (part.kind == "input") is not (self._message is None):
            raise InvalidMessage("upload: the input comes first, and once")
        if part.kind == "input":
            self._take_input(part.data)
        elif part.kind == "file":
            self._begin(unseal_file_start(part.data), stack)
        elif not self._files:
            raise InvalidMessage("upload: data before a file has begun")
        else:
            await self._append(part.data)

    def _count(self, size: int) -> None:
        most = self._intake.max_form_bytes
        if self._size + size > most:
            raise ResourceLimit(f"an upload of more than {most} bytes is not taken")
        self._intake.received.acquire(self._keys, size)
        self._size += size

    def _take_input(self, data: bytes) -> None:
        most = self._intake.max_message_bytes
        if len(data) > most:
            raise ResourceLimit(f"an input of more than {most} bytes is not taken")
        self._message = data

    def _begin(self, start: FileStart, stack: AsyncExitStack) -> None:
        if len(self._files) == MAX_FILES:
            raise ResourceLimit(f"at most {MAX_FILES} files come with one input")
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
            raise ResourceLimit(f"a file of more than {most} bytes is not taken")

    async def form(self) -> UploadedForm:
        """Return what came, as it would come in a form over HTTP."""
        if self._message is None:
            raise InvalidMessage("upload: it has no input")
        try:
            message = self._message.decode()
        except UnicodeDecodeError:
            raise InvalidMessage("upload: the input is no UTF-8") from None
        files: list[UploadedFile] = []
        for start, file in self._files:
            await file.seek(0)
            part = f"{FIELD_PART}{start.field}" if start.field else "file"
            files.append(await self._intake.file(part, file))
        return UploadedForm({"message": message}, files)
