"""Uploads: inputs with files, sent again until each is answered.

If the session uses HTTP, an upload is a multipart POST request: the part `message` is the input as
JSON, and each part `file` is a file. If it uses gRPC, an upload is a separate call, `Upload`. Over
a Unix socket, the input is sent together with a descriptor for each file.

Source: protocol.md 6.
"""

from __future__ import annotations

import asyncio
import mimetypes
from collections.abc import Awaitable, Callable, Sequence
from os import PathLike
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from arp.client.errors import LinkLost, ServerRefused, UploadUnavailable
from arp.client.links.dial import Dialer
from arp.client.options import Backoff
from arp.protocol.codec import encode_json
from arp.protocol.errors import ArpError, ResourceLimit, error_payload
from arp.protocol.framing.envelope import FileStart
from arp.protocol.json_value import Json
from arp.protocol.messages import ErrorMessage, Input
from arp.unix.framed_socket import MAX_DESCRIPTORS

FileSource: TypeAlias = str | PathLike[str] | tuple[str, bytes]
"""A path, or a pair of name and content."""

ANY_TYPE = "application/octet-stream"
"""Type of a file with an unknown type."""

NO_ANSWER = "the server accepted the files without an answer; it is unknown whether they arrived"


class File(Struct, frozen=True):
    """A file that has been read."""

    name: str
    content: bytes


class Upload(Struct, frozen=True):
    """An input of type `file`, with its files."""

    input_id: str
    message: Input
    files: tuple[File, ...]


class Uploads:
    """Sends uploads, one after the other, until each is answered."""

    def __init__(
        self,
        dialer: Dialer,
        backoff: Backoff,
        receive: Callable[[bytes], None],
        send_with_files: Callable[[Input, Sequence[bytes]], None],
        wait_for_answer: Callable[[str], Awaitable[None]],
    ) -> None:
        """Create the uploads of one client.

        Args:
            dialer: Opens the connections of the session.
            backoff: Waits between two attempts.
            receive: Receives the answer to an upload that was sent over HTTP or gRPC, as JSON.
            send_with_files: Sends an input with files over the Unix socket.
            wait_for_answer: Waits for the answer to an input over the Unix socket.
        """
        self._dialer = dialer
        self._backoff = backoff
        self._receive = receive
        self._send_with_files = send_with_files
        self._wait_for_answer = wait_for_answer
        self._pending: dict[str, Upload] = {}
        self._not_empty = asyncio.Event()

    def check(self, count: int = 1) -> None:
        """Check that files can be sent.

        Args:
            count: Number of files of one input.

        Raises:
            UploadUnavailable: The transport carries no files.
            ResourceLimit: There are more files than one message can carry.
        """
        address = self._dialer.address
        if address.file_channel is None:
            raise UploadUnavailable(
                f"files cannot be sent over {address.kinds[0]}; connect over HTTP"
            )
        if address.file_channel == "descriptors" and count > MAX_DESCRIPTORS:
            raise ResourceLimit(
                f"{count} files; a Unix socket carries at most {MAX_DESCRIPTORS} with one message"
            )

    def add(self, upload: Upload) -> None:
        """Enqueue an upload; `run` sends it."""
        self._pending[upload.input_id] = upload
        self._not_empty.set()

    async def run(self, session_id: str) -> None:
        """Send present and future uploads, one after the other, until the task is cancelled.

        Cancel: safe; the next run sends uploads without an answer again, with the same id.
        """
        attempt = 0
        while True:
            while not self._pending:
                self._not_empty.clear()
                await self._not_empty.wait()
            input_id, upload = next(iter(self._pending.items()))
            message = replace(upload.message, id=input_id, session_id=session_id)
            if self._dialer.address.file_channel == "descriptors":
                await self._send_over_socket(message, upload.files)
                del self._pending[input_id]
                continue
            try:
                answer = await self._upload(message, upload.files)
            except LinkLost as lost:
                if lost.error is None:
                    await self._backoff.sleep(self._backoff.delay_s(attempt))
                    attempt += 1
                    continue
                answer = refusal(input_id, lost.error)
            attempt = 0
            del self._pending[input_id]
            # Without an answer the caller would wait forever, so an empty answer is a refusal.
            self._receive(answer or refusal(input_id, ServerRefused(NO_ANSWER)))

    async def _send_over_socket(self, message: Input, files: Sequence[File]) -> None:
        """Send an upload over the Unix socket, and wait for the answer.

        Cancel: safe; the upload is sent again over the next connection.
        """
        named: list[Json] = [
            {"descriptor": number, "name": file.name, "mime": _mime(file.name)}
            for number, file in enumerate(files)
        ]
        message = replace(message, data={**message.data, "files": named})
        self._send_with_files(message, [file.content for file in files])
        await self._wait_for_answer(str(message.id))

    async def _upload(self, message: Input, files: Sequence[File]) -> bytes | None:
        """Send an upload over HTTP or gRPC, and return the answer."""
        if self._dialer.address.file_channel != "call":
            return await self._post(message, files)
        link = self._dialer.grpc_link
        assert link is not None  # uploads run only while a connection is ready
        named = [(FileStart(file.name, _mime(file.name)), file.content) for file in files]
        return await link.upload(encode_json(message), named)

    async def _post(self, message: Input, files: Sequence[File]) -> bytes | None:
        from arp.client.links.http_access import new_http_client, post

        address = self._dialer.address
        parts: list[tuple[str, tuple[str | None, bytes, str]]] = [
            ("message", (None, encode_json(message), "application/json"))
        ]
        parts += [("file", (file.name, file.content, _mime(file.name))) for file in files]
        async with new_http_client(address, self._dialer.access) as client:
            request = client.build_request("POST", address.input_url, files=parts)
            return await post(client, request, message.id)


def _mime(name: str) -> str:
    return mimetypes.guess_type(name)[0] or ANY_TYPE


async def read_files(sources: Sequence[FileSource], most_bytes: int) -> tuple[File, ...]:
    """Read files now, so that later changes of the files are not sent.

    Args:
        sources: Paths, or pairs of name and content.
        most_bytes: Maximum size of a file that the server accepts.

    Raises:
        OSError: A path cannot be read.
        ResourceLimit: A file is too large.
    """
    return tuple([await asyncio.to_thread(_read, source, most_bytes) for source in sources])


def _read(source: FileSource, most_bytes: int) -> File:
    if isinstance(source, tuple):
        name, content = source
    else:
        path = Path(source)
        name = path.name
        with path.open("rb") as file:
            content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise ResourceLimit(f"{name}: more than {most_bytes} bytes, the limit of the server")
    return File(Path(name).name, content)


def refusal(input_id: str, error: ArpError) -> bytes:
    """Return an error frame that answers an upload, for an upload without another answer."""
    return encode_json(ErrorMessage(payload=error_payload(error, input_id)))
