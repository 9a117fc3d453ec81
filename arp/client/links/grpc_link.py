"""gRPC: one call is one connection; each frame is in an envelope of `schemas/arp.proto`.

Source: protocol.md 6.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import AsyncIterator, Sequence
from typing import Any, TypeAlias

from arp.client.address import Address
from arp.client.errors import LinkLost, ServerRefused, lost_by_close, printable
from arp.client.link import MAX_FRAME_BYTES, OPEN_TIMEOUT_S
from arp.client.options import LinkSettings
from arp.protocol.errors import InvalidMessage, PermissionDenied, Unauthenticated
from arp.protocol.framing.envelope import (
    CLOSE_CODE_KEY,
    CONNECT,
    DIALECT_KEY,
    ENCODING_KEY,
    UPLOAD,
    FileStart,
    seal,
    seal_file_start,
    seal_part,
    unseal,
    unseal_answer,
)

# Otherwise the gRPC library also writes failures to stderr.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")

from arp.net.grpc_library import grpc

Call: TypeAlias = "grpc.aio.StreamStreamCall[Any, Any]"
Error: TypeAlias = "grpc.aio.AioRpcError"

CLOSE_TIMEOUT_S = 2.0
"""Time for the server to end the call after this side has ended it."""

PIECE_BYTES = 64 << 10
"""Maximum number of bytes of a file in one message."""

KEEP_ALIVE_MS = 20_000
"""Silence after which gRPC checks whether the server is still there."""

OPTIONS: tuple[tuple[str, int], ...] = (
    ("grpc.max_receive_message_length", MAX_FRAME_BYTES),
    ("grpc.max_send_message_length", -1),
    ("grpc.keepalive_time_ms", KEEP_ALIVE_MS),
    ("grpc.keepalive_timeout_ms", KEEP_ALIVE_MS // 2),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.use_local_subchannel_pool", 1),  # a link has its own connection, and closes it
    ("grpc.enable_retries", 0),
)


class GrpcLink:
    """Connection over gRPC: one call, on a channel that `aclose` closes too."""

    carries_acks = True
    is_remote = True

    def __init__(
        self, channel: grpc.aio.Channel, call: Call, url: str, access: LinkSettings
    ) -> None:
        self._channel = channel
        self._call = call
        self._url = url
        self._dialect = access.dialect
        self._access = access
        self._first: bytes | None = None
        """The first frame, if it was read by `wait_until_accepted` and not yet received."""

    async def wait_until_accepted(self) -> None:
        """Wait for the first frame, which the server sends.

        Nothing may be written before, because a failed write would hide the reason of a refusal.
        The initial metadata cannot be used instead: a refusal has them too, and they arrive before
        its status.

        Raises:
            LinkLost: The server refuses the call.
        """
        async with asyncio.timeout(OPEN_TIMEOUT_S):
            self._first = await self.receive()

    async def receive(self) -> bytes:
        """Wait for the next frame and return it."""
        first, self._first = self._first, None
        if first is not None:
            return first
        try:
            data: Any = await self._call.read()
            if data is grpc.aio.EOF:
                raise await self._ended()
            dialect, frame = unseal(data)
        except grpc.aio.AioRpcError as error:
            raise lost_by_error(error, self._url) from None
        except InvalidMessage as error:
            raise LinkLost(f"{self._url}: {error.message}") from None
        if dialect != self._dialect:
            raise LinkLost(f"{self._url}: a frame of the {dialect} dialect")
        return frame

    async def send(self, frame: bytes) -> None:
        """Send a frame; wait until the server and the network have capacity for it."""
        try:
            await self._call.write(seal(frame, self._dialect))
        except grpc.aio.AioRpcError as error:
            raise lost_by_error(error, self._url) from None
        except asyncio.InvalidStateError:
            raise await self._ended() from None

    async def upload(self, message: bytes, files: Sequence[tuple[FileStart, bytes]]) -> bytes:
        """Send an input with its files in a separate call, and return the answer.

        Args:
            message: The input, as JSON.
            files: Description and content of each file.

        Raises:
            LinkLost: The call failed. It is unknown whether the files arrived.
        """
        upload: grpc.aio.StreamUnaryMultiCallable[Any, Any] = self._channel.stream_unary(UPLOAD)
        try:
            answer: Any = await upload(_parts(message, files), metadata=_token(self._access))
            return unseal_answer(answer)
        except grpc.aio.AioRpcError as error:
            lost = lost_by_error(error, self._url)
            # The same upload would fail again, so it must not be retried.
            if error.code() is grpc.StatusCode.INTERNAL:
                lost = LinkLost(lost.reason, error=ServerRefused("the server ended the upload"))
            raise lost from None
        except grpc.aio.UsageError:  # the channel is closed
            raise LinkLost(f"{self._url}: the connection is closed") from None
        except InvalidMessage as error:
            raise LinkLost(f"{self._url}: {error.message}") from None

    async def aclose(self) -> None:
        """End the call, and wait at most `CLOSE_TIMEOUT_S` until the server has ended it too."""
        try:
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                if not self._call.done():
                    await self._call.done_writing()
                    await self._call.code()
        except (TimeoutError, asyncio.InvalidStateError, grpc.RpcError):
            self._call.cancel()
        await self._channel.close()

    async def _ended(self) -> LinkLost:
        """Return the `LinkLost` for a call that the server has ended."""
        code, details = await self._call.code(), await self._call.details()
        close_code = _close_code(await self._call.trailing_metadata())
        return lost_by_code(code, details or "", close_code, self._url)


async def open_grpc(address: Address, access: LinkSettings, hello: bytes) -> GrpcLink:
    """Open a call and send `hello` on it.

    Raises:
        LinkLost: The call could not be opened.
    """
    scheme = "grpcs" if address.is_encrypted else "grpc"
    url = f"{scheme}:{address.grpc_target}"
    options = [*OPTIONS, ("grpc.enable_http_proxy", 0 if address.is_loopback else 1)]
    if address.is_encrypted:
        credentials = grpc.ssl_channel_credentials(_authorities(access.tls))
        channel = grpc.aio.secure_channel(address.grpc_target, credentials, options=options)
    else:
        channel = grpc.aio.insecure_channel(address.grpc_target, options=options)
    dialect = access.dialect
    metadata: list[tuple[str, str]] = [(DIALECT_KEY, dialect), (ENCODING_KEY, access.encoding)]
    metadata += _token(access)
    link: GrpcLink | None = None
    try:
        connect: grpc.aio.StreamStreamMultiCallable[Any, Any] = channel.stream_stream(CONNECT)
        link = GrpcLink(channel, connect(metadata=metadata), url, access)
        await link.wait_until_accepted()
        if hello:
            await link.send(hello)
    except TimeoutError:
        await channel.close()
        raise LinkLost(f"{url}: no answer within {OPEN_TIMEOUT_S:g} s") from None
    except BaseException:
        if link is not None:
            await link.aclose()
        await channel.close()
        raise
    return link


def _token(access: LinkSettings) -> list[tuple[str, str]]:
    return [(name.lower(), value) for name, value in access.headers().items()]


async def _parts(message: bytes, files: Sequence[tuple[FileStart, bytes]]) -> AsyncIterator[bytes]:
    """Yield the messages of an upload: the input, then each file in pieces."""
    yield seal_part("input", message)
    for start, content in files:
        yield seal_part("file", seal_file_start(start))
        for begin in range(0, len(content), PIECE_BYTES):
            yield seal_part("data", content[begin : begin + PIECE_BYTES])


def _authorities(tls: ssl.SSLContext | None) -> bytes | None:
    """Return the certificate authorities of a context, as PEM; `None` for those of the system."""
    found = tls.get_ca_certs(binary_form=True) if tls is not None else []
    return "".join(map(ssl.DER_cert_to_PEM_cert, found)).encode() or None


def lost_by_error(error: Error, url: str) -> LinkLost:
    """Return the `LinkLost` for an error of a call."""
    close_code = _close_code(error.trailing_metadata())
    return lost_by_code(error.code(), error.details() or "", close_code, url)


def lost_by_code(code: grpc.StatusCode, details: str, close_code: int, url: str) -> LinkLost:
    """Return the `LinkLost` for the end of a call.

    Args:
        code: Status of the call.
        details: Text from the server or from the gRPC library.
        close_code: Close code that the server sent; 0 if it sent none.
        url: Address of the server.
    """
    if close_code:
        return lost_by_close(close_code, details)
    cause = f"{url}: {printable(details) or code.name}"
    status = grpc.StatusCode
    if code is status.UNAUTHENTICATED:
        return LinkLost(cause, error=Unauthenticated(f"no valid token: {cause}; give token=…"))
    if code is status.PERMISSION_DENIED:
        return LinkLost(cause, error=PermissionDenied(f"the server does not let us in: {cause}"))
    if code is status.UNIMPLEMENTED:
        return LinkLost(cause, error=ServerRefused(f"nothing there speaks ARP: {cause}"))
    if code in (status.INVALID_ARGUMENT, status.OUT_OF_RANGE):
        return LinkLost(cause, error=ServerRefused(f"the server does not accept it: {cause}"))
    return LinkLost(cause)  # UNAVAILABLE, DEADLINE_EXCEEDED, CANCELLED, …: reconnect


def _close_code(metadata: Any) -> int:
    for name, value in metadata or ():
        if name == CLOSE_CODE_KEY and str(value).isdigit():
            return int(value)
    return 0
