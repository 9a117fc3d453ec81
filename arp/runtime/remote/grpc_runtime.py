"""`GrpcRuntime`: client of a runtime behind a `GrpcServer`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

import msgspec

from arp.net.grpc_library import grpc
from arp.protocol.framing.protobuf import ProtoError
from arp.runtime.contract import types as ari
from arp.runtime.contract.errors import (
    AriError,
    ErrorStatus,
    InvalidArgument,
    RuntimeInternal,
    Unavailable,
    error_of,
)
from arp.runtime.contract.services import EventSubscription
from arp.runtime.remote.grpc_status import (
    CURSOR_KEY,
    MAX_MESSAGE_BYTES,
    OF_GRPC,
    OPTIONS,
    STATUS_KEY,
)
from arp.runtime.remote.methods import R
from arp.runtime.remote.proto_codec import decode, encode
from arp.runtime.remote.proto_fields import PACKAGE, REMOTE_METHODS, service_method
from arp.runtime.remote.remote import RemoteRuntime, closed
from arp.runtime.remote.tls import RemoteAddress, is_loopback

logger = logging.getLogger(__name__)

RECONNECTS = 5
"""Number of attempts in a row to continue a broken stream of events."""
RECONNECT_S = 0.5
"""Seconds before the first attempt; the pause doubles each time."""

PATHS = {method.name: f"/{PACKAGE}.{service_method(method)}" for method in REMOTE_METHODS}

Metadata = tuple[tuple[str, str], ...]


class GrpcRuntime(RemoteRuntime):
    """A runtime at an address; used in one event loop until it is closed.

    Args:
        address: Address of the server, such as `127.0.0.1:7001` or, with TLS,
            `grpcs://example.org:7001`.
        token: Token that the server requires.
        ca: PEM file with the trusted certificate authorities; empty means those of the system.
        plaintext: Whether the token may be sent without TLS to another machine.
        timeout_s: Seconds that a call may take.

    Raises:
        InvalidArgument: The token would be sent without TLS, or the file cannot be used.
    """

    name = "grpc"

    def __init__(
        self,
        address: str,
        *,
        token: str | None = None,
        ca: str = "",
        plaintext: bool = False,
        timeout_s: float = 60.0,
    ) -> None:
        scheme, found, rest = address.partition("://")
        is_ours = found and scheme in ("grpc", "grpcs")
        self._address = rest if is_ours else address
        host = "localhost" if address.startswith("unix:") else self._address.rpartition(":")[0]
        reached = RemoteAddress(host, bool(is_ours) and scheme == "grpcs", ca, plaintext)
        reached.check(token)
        # A proxy cannot reach a loopback address of this machine, and must not see the token.
        self._options = (("grpc.enable_http_proxy", 0),) if is_loopback(host) else ()
        self._credentials: grpc.ChannelCredentials | None = None
        if reached.is_tls:
            self._credentials = grpc.ssl_channel_credentials(reached.authorities())
        self._metadata: Metadata = (("authorization", f"Bearer {token}"),) if token else ()
        self._timeout_s = timeout_s
        self._made: grpc.aio.Channel | None = None
        self._is_closed = False

    @property
    def _channel(self) -> grpc.aio.Channel:
        """Channel of the loop that runs when the channel is first used."""
        if self._is_closed:
            raise closed()
        if self._made is None:
            # While gRPC pauses between attempts to connect, every call fails at once. The pause is
            # short, so that the attempts of `GrpcEvents` really connect.
            options = (*OPTIONS, ("grpc.max_reconnect_backoff_ms", 1000), *self._options)
            if self._credentials is None:
                self._made = grpc.aio.insecure_channel(self._address, options)
            else:
                self._made = grpc.aio.secure_channel(self._address, self._credentials, options)
        return self._made

    async def _call(self, method: str, request: msgspec.Struct, response: type[R]) -> R:
        function: Any = self._channel.unary_unary(PATHS[method])
        try:
            data = await function(
                encoded(method, request), timeout=self._timeout_s, metadata=self._metadata
            )
        except grpc.aio.AioRpcError as failed:
            raise error_in(failed, method) from failed
        except asyncio.CancelledError:
            # If this task itself was not cancelled, `close` has cancelled the call.
            if self._is_closed and not _is_cancelled():
                raise closed() from None
            raise
        try:
            return decode(response, data)
        except ProtoError as failed:
            raise RuntimeInternal(f"{method}: the answer cannot be read: {failed}") from failed

    async def session_events(self, request: ari.SessionEventsRequest) -> EventSubscription:
        """Subscribe to a session; a broken connection is restored."""
        call = await self._open(request)
        cursor = dict(await call.initial_metadata()).get(CURSOR_KEY, "0")
        return GrpcEvents(self, request.session_id, call, int(cursor))

    async def open(self) -> None:
        """Connect again after `close`, also in another event loop.

        A new runtime is open already.
        """
        self._is_closed = False

    async def close(self, request: ari.CloseRequest | None = None) -> ari.CloseResponse:
        """Close the connection; the remote runtime keeps running."""
        self._is_closed = True
        made, self._made = self._made, None
        if made is not None:
            await made.close()
        return ari.CloseResponse()

    async def _open(self, request: ari.SessionEventsRequest) -> Any:
        """Return a stream of events after the server has subscribed.

        Raises:
            AriError: `session_events` raised it; `Unavailable` if the server cannot be reached.
        """
        function: Any = self._channel.unary_stream(PATHS["session_events"])
        call = function(encoded("session_events", request), metadata=self._metadata)
        try:
            async with asyncio.timeout(self._timeout_s):
                # The server sends the metadata after it has subscribed. Without metadata the call
                # has failed.
                if CURSOR_KEY not in dict(await call.initial_metadata()):
                    await call.read()
                    raise RuntimeInternal("session_events: the server does not say where it begins")
        except grpc.aio.AioRpcError as failed:
            raise error_in(failed, "session_events") from failed
        except TimeoutError as failed:
            call.cancel()
            raise Unavailable("session_events: the server does not answer") from failed
        return call


class GrpcEvents:
    """Events of a session over gRPC; a broken stream is continued after the last event."""

    def __init__(self, runtime: GrpcRuntime, session_id: str, call: Any, cursor: int) -> None:
        self.cursor = cursor
        self._runtime = runtime
        self._session_id = session_id
        self._call = call
        self._reading: asyncio.Future[Any] | None = None
        self._is_over = False

    def __aiter__(self) -> AsyncIterator[ari.Event]:
        return self

    async def __anext__(self) -> ari.Event:
        """Return the next event.

        Raises:
            AriError: The stream cannot be continued.

        Cancel: Safe; no event is lost.
        """
        while not self._is_over:
            # Cancelling a read of gRPC ends the stream, so the read continues for the next call.
            self._reading = self._reading or asyncio.ensure_future(self._call.read())
            await asyncio.wait([self._reading])
            reading, self._reading = self._reading, None
            if self._is_over:
                break
            if reading.cancelled():  # `close` of the runtime cancelled it
                raise closed()
            failed = reading.exception()
            if isinstance(failed, grpc.aio.AioRpcError):
                await self._continue(failed)
                continue
            data = reading.result()
            if data is grpc.aio.EOF:
                break
            event = decode(ari.Event, data)
            self.cursor = event.sequence
            return event
        await self.aclose()
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Unsubscribe, also at the server."""
        self._is_over = True
        self._call.cancel()

    async def _continue(self, broken: grpc.aio.AioRpcError) -> None:
        """Open the stream again after the last event; the server still has the events since then.

        Raises:
            AriError: The server itself ended the stream, or cannot be reached.
        """
        if _status_in(broken) is not None:
            raise error_in(broken, "session_events")
        logger.debug("events of %s: %s", self._session_id, broken.details())
        request = ari.SessionEventsRequest(self._session_id, self.cursor)
        pause = RECONNECT_S
        for attempt in range(1, RECONNECTS + 1):
            await asyncio.sleep(pause)
            pause *= 2
            try:
                self._call = await self._runtime._open(request)
            except Unavailable:
                if attempt == RECONNECTS:
                    raise
            else:
                if self._is_over:
                    self._call.cancel()
                return


def encoded(method: str, request: msgspec.Struct) -> bytes:
    """Return a request as bytes.

    Raises:
        InvalidArgument: It cannot be sent; the message names the field.
    """
    try:
        data = encode(request)
    except ProtoError as error:
        raise InvalidArgument(f"{method}: {error}") from error
    if len(data) > MAX_MESSAGE_BYTES:
        raise InvalidArgument(f"{method}: the request has more than {MAX_MESSAGE_BYTES} bytes")
    return data


def error_in(failed: grpc.aio.AioRpcError, method: str) -> AriError:
    """Return the error of a call: the server's own, or one for a status that gRPC itself made."""
    status = _status_in(failed)
    if status is not None:
        return error_of(status)
    kind = OF_GRPC.get(failed.code().value[0], RuntimeInternal)
    return kind(f"{method}: {failed.details() or failed.code().name}")


def _status_in(failed: grpc.aio.AioRpcError) -> ErrorStatus | None:
    for name, value in failed.trailing_metadata() or ():
        if name == STATUS_KEY and isinstance(value, bytes):
            try:
                return decode(ErrorStatus, value)
            except ProtoError:
                return None
    return None


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
