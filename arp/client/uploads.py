"""Files on their way to the server, tried until each is answered.

Over HTTP, whatever the transport of the session, they are multipart POSTs: part `message` is the
input as JSON, each part `file` a file. Over gRPC they are a call of their own, `Upload`. Over a
Unix socket the input goes with a descriptor for each file. Source: protocol.md 6.
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

from arp.client.dial import Dialer
from arp.client.errors import LinkLost, ServerRefused, UploadUnavailable
from arp.client.options import Backoff
from arp.protocol.codec import encode_json
from arp.protocol.errors import ArpError, ResourceLimit, error_payload
from arp.protocol.framing.envelope import FileStart
from arp.protocol.json_value import Json
from arp.protocol.messages import ErrorMessage, Input
from arp.unix.framed_socket import MAX_DESCRIPTORS

FileSource: TypeAlias = str | PathLike[str] | tuple[str, bytes]
"""A path, or a name with what the file holds."""

ANY_TYPE = "application/octet-stream"

NO_ANSWER = "the server took the files without a word; whether they arrived is not known"


class File(Struct, frozen=True):
    """A file, read."""

    name: str
    content: bytes


class Upload(Struct, frozen=True):
    """An input of type `file`, with its files."""

    input_id: str
    message: Input
    files: tuple[File, ...]


class Uploads:
    """Uploads that are not answered yet, and the sending of them."""

    def __init__(
        self,
        dialer: Dialer,
        backoff: Backoff,
        receive: Callable[[bytes], None],
        pass_on: Callable[[Input, Sequence[bytes]], None],
        settled: Callable[[str], Awaitable[None]],
    ) -> None:
        """See the class.

        Args:
            dialer: Of the session's connections.
            backoff: Between two attempts.
            receive: Takes an answer that came beside the connection, as JSON.
            pass_on: Sends an input with files over the connection, a Unix socket.
            settled: Waits for the answer that comes over the connection.
        """
        self._dialer = dialer
        self._backoff = backoff
        self._receive = receive
        self._pass_on = pass_on
        self._settled = settled
        self._pending: dict[str, Upload] = {}
        self._news = asyncio.Event()

    def check(self, count: int = 1) -> None:
        """Raise where files cannot be sent.

        Args:
            count: How many go with one input.

        Raises:
            UploadUnavailable: No way for files is known.
            ResourceLimit: They are more than one message carries.
        """
        address = self._dialer.address
        if not (address.input_url or address.socket_path or address.grpc_target):
            raise UploadUnavailable("files cannot be sent to a child process; connect over HTTP")
        if address.socket_path and count > MAX_DESCRIPTORS:
            raise ResourceLimit(
                f"{count} files; a Unix socket carries at most {MAX_DESCRIPTORS} with one message"
            )

    def add(self, upload: Upload) -> None:
        """Queue an upload; it is sent while the session is there."""
        self._pending[upload.input_id] = upload
        self._news.set()

    async def run(self, session_id: str) -> None:
        """Send what there is and what comes, one after the other, until it is cancelled.

        Cancel: safe; what was not answered is sent again, with the same id, by the next run.
        """
        attempt = 0
        while True:
            while not self._pending:
                self._news.clear()
                await self._news.wait()
            input_id, upload = next(iter(self._pending.items()))
            message = replace(upload.message, id=input_id, session_id=session_id)
            if self._dialer.address.socket_path:
                await self._pass(message, upload.files)
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
            self._receive(answer or refusal(input_id, ServerRefused(NO_ANSWER)))

    async def _pass(self, message: Input, files: Sequence[File]) -> None:
        """Pass files over a Unix socket, and wait for the answer.

        Cancel: safe; they are sent again over the next connection.
        """
        named: list[Json] = [
            {"descriptor": number, "name": file.name, "mime": _mime(file.name)}
            for number, file in enumerate(files)
        ]
        message = replace(message, data={**message.data, "files": named})
        self._pass_on(message, [file.content for file in files])
        await self._settled(str(message.id))

    async def _upload(self, message: Input, files: Sequence[File]) -> bytes | None:
        """Send an input with its files beside the connection, and return the answer."""
        if not self._dialer.address.grpc_target:
            return await self._post(message, files)
        link = self._dialer.grpc_link
        assert link is not None  # a connection with a session is what calls this
        named = [(FileStart(file.name, _mime(file.name)), file.content) for file in files]
        return await link.upload(encode_json(message), named)

    async def _post(self, message: Input, files: Sequence[File]) -> bytes | None:
        from arp.client.http_access import new_http_client, post

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
    """Read files, now, so that what is sent later is what they hold now.

    Args:
        sources: Paths, or names with contents.
        most_bytes: The longest file that the server takes.

    Raises:
        OSError: A path cannot be read.
        ResourceLimit: A file is too big.
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
        raise ResourceLimit(f"{name}: more than {most_bytes} bytes, which is what the server takes")
    return File(Path(name).name, content)


def refusal(input_id: str, error: ArpError) -> bytes:
    """Return the frame with which this side answers an upload that nobody else will."""
    return encode_json(ErrorMessage(payload=error_payload(error, input_id)))
