"""Files that a client sends as descriptors over a Unix socket, and the input that names them.

Theory of operation. A received descriptor cannot be trusted: it may be a pipe that never ends, and
the content of a file may change while it is read. So only regular files are accepted. Each is
copied in a thread, up to the size limit of an upload, and the copy is stored. In the input,
`{"descriptor": N, "name": …, "mime": …}` represents the file of descriptor N, counted from 0. It is
an item of `data.files`, or the value of a form's field.

Source: protocol.md 6.
"""

from __future__ import annotations

import asyncio
import io
import os
import re
import stat
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from tempfile import SpooledTemporaryFile, gettempdir
from typing import BinaryIO, cast

import msgspec
from msgspec.structs import replace
from starlette.datastructures import Headers, UploadFile

from arp.access.principal import Key, keys_of
from arp.hub.peers.peer import Peer
from arp.protocol.errors import ArpError, InvalidMessage, Unauthenticated
from arp.protocol.json_value import Json, JsonObject
from arp.server.uploads import READ_BYTES, Intake, UploadedFile, shown_name
from arp.store.blobs import too_large
from arp.store.errors import StoreUnwritable
from arp.unix.framed_socket import ReceivedFrame


async def receive_files(intake: Intake, peer: Peer, received: ReceivedFrame) -> None:
    """Receive an input with files, answer the peer, and close the descriptors."""
    try:
        principal = peer.principal
        if principal is None:
            raise Unauthenticated("send hello with a token first")
        async with copy_files(intake, keys_of(principal), received.descriptors) as files:
            await peer.receive_files(received.data, partial(with_references, files=files))
    except ArpError as error:
        peer.refuse(error)
    finally:
        for descriptor in received.descriptors:
            with suppress(OSError):
                os.close(descriptor)


@asynccontextmanager
async def copy_files(
    intake: Intake, keys: tuple[Key, ...], descriptors: Sequence[int]
) -> AsyncIterator[list[UploadedFile]]:
    """Copy the files of descriptors; the copies exist until the block ends.

    Raises:
        InvalidMessage: A descriptor is not a regular file.
        ResourceLimit: A file is larger than an upload may be.
        RateLimited: The server is receiving too much.
        StoreUnwritable: The disk refuses the write, for example because it is full.
    """
    intake.uploads.acquire(keys)
    size = 0
    try:
        async with AsyncExitStack() as stack:
            files = []
            for number, descriptor in enumerate(descriptors):
                wanted = _size_of(number, descriptor, intake.max_upload_bytes)
                intake.received.acquire(keys, wanted)
                size += wanted
                body = cast(BinaryIO, SpooledTemporaryFile(max_size=READ_BYTES))  # noqa: SIM115
                # Registered before the thread starts: otherwise a task that is cancelled while it
                # waits would never close the file. A thread that still writes then gets an error.
                stack.callback(body.close)
                await asyncio.to_thread(_copy, descriptor, body, intake.max_upload_bytes)
                upload = UploadFile(body, filename="file", headers=Headers())
                files.append(await intake.file(str(number), upload))
            yield files
    finally:
        intake.received.release(keys, size)
        intake.uploads.release(keys)


def _size_of(number: int, descriptor: int, max_bytes: int) -> int:
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        raise InvalidMessage(f"descriptor {number}: not a regular file")
    if found.st_size > max_bytes:
        raise too_large(max_bytes)
    return found.st_size


def _copy(descriptor: int, body: BinaryIO, max_bytes: int) -> None:
    """Copy a file from its beginning, at most one byte more than the limit.

    The additional byte lets the caller detect a file that grew after its size was checked.
    """
    offset = 0
    try:
        while offset <= max_bytes and (chunk := _read(descriptor, offset, max_bytes + 1 - offset)):
            body.write(chunk)
            offset += len(chunk)
        body.seek(0, io.SEEK_SET)
    except OSError as error:
        raise StoreUnwritable(gettempdir(), str(error.strerror)) from error


def _read(descriptor: int, offset: int, most: int) -> bytes:
    try:
        return os.pread(descriptor, min(READ_BYTES, most), offset)
    except OSError as error:  # for example, the file is open for writing only
        raise InvalidMessage(f"a file cannot be read: {error.strerror}") from None


# -- references in the input -----------------------------------------------------------------------

MIME = re.compile(r"[\w.+-]{1,60}/[\w.+-]{1,60}", re.ASCII)

NAMED_BY = "descriptor"
"""Key of the number of a file in an input, counted from 0."""


def with_references(
    data: JsonObject, files: Sequence[UploadedFile]
) -> tuple[list[UploadedFile], JsonObject]:
    """Replace the descriptor numbers in the data of an input by file references.

    Returns:
        The files with the names and types that the input gives them, and the changed data.

    Raises:
        InvalidMessage: A number has no file, a file has no number, or two numbers are equal.
    """
    named: dict[int, UploadedFile] = {}

    def resolved(value: Json, path: str) -> Json:
        if not isinstance(value, dict) or NAMED_BY not in value:
            return value
        number = value[NAMED_BY]
        is_number = isinstance(number, int) and not isinstance(number, bool)
        if not is_number or not 0 <= number < len(files) or number in named:
            raise InvalidMessage(
                f"{path}.{NAMED_BY}: {number!r:.20} is not a file of this input, or is used twice"
            )
        file = named[number] = _renamed(files[number], value)
        return cast(Json, msgspec.to_builtins(file.ref))

    plain = dict(data)
    if isinstance(data.get("files"), list):
        items = enumerate(cast("list[Json]", data["files"]))
        plain["files"] = [resolved(value, f"data.files[{n}]") for n, value in items]
    if isinstance(data.get("fields"), dict):
        fields = cast("JsonObject", data["fields"])
        plain["fields"] = {key: resolved(fields[key], f"data.fields.{key}") for key in fields}
    if len(named) != len(files):
        raise InvalidMessage(
            f"data: {len(files)} files were sent, and {len(named)} are named; name each one with "
            f'{{"{NAMED_BY}": NUMBER}} in data.files or data.fields'
        )
    return [named[number] for number in sorted(named)], plain


def _renamed(file: UploadedFile, value: JsonObject) -> UploadedFile:
    """Return a file with the name and the type that the input gives."""
    name, mime = value.get("name"), value.get("mime")
    ref = replace(
        file.ref,
        name=shown_name(name) if isinstance(name, str) else file.ref.name,
        mime=mime if isinstance(mime, str) and MIME.fullmatch(mime) else file.ref.mime,
    )
    return replace(file, ref=ref)
