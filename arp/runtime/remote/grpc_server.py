"""`GrpcServer`: a runtime over gRPC, as `schemas/ari/runtime/v1/api.proto` defines it.

The runtime may run commands for every accepted caller. Without a token or a hook, the server
listens only on loopback. No web page can call it: browsers do not send HTTP/2 without TLS, and they
never send the header `te` that gRPC requires. So `Host` and `Origin` are not checked, unlike over
HTTP.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from arp.access.client_address import client_of
from arp.access.guard import Guard
from arp.access.own_code import OwnCodeDetector
from arp.access.settings import Access, Bounds
from arp.access.usage import UsageCounter, UsageLimits
from arp.net.grpc_bounds import MAX_CALLS, GrpcBounds, bounded_options
from arp.net.grpc_library import grpc
from arp.protocol.errors import RateLimited
from arp.protocol.framing.protobuf import ProtoError
from arp.runtime.contract import types as ari
from arp.runtime.contract.errors import (
    ERRORS,
    AriCode,
    AriError,
    ErrorStatus,
    InvalidArgument,
    Unavailable,
    Unimplemented,
    status_of,
)
from arp.runtime.contract.services import AriMethod, RuntimeService
from arp.runtime.remote.grpc_status import CURSOR_KEY, MAX_MESSAGE_BYTES, MAX_TEXT, trailing
from arp.runtime.remote.proto_codec import MAX_REQUEST_VALUES, decode, encode
from arp.runtime.remote.proto_fields import PACKAGE, REMOTE_METHODS, service_method
from arp.runtime.remote.tls import TlsFiles, is_loopback

logger = logging.getLogger(__name__)

_STATUSES = {status.value[0]: status for status in grpc.StatusCode}

SPARE_CALLS = 100
"""Number of calls above the limit that one connection can carry; they are refused at once."""

Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"
Answering: TypeAlias = Callable[[bytes, Context], Awaitable[bytes | None]]


class GrpcServer:
    """Serves a runtime over gRPC; created and used in one loop.

    Args:
        runtime: Runtime that does the work; it is not closed with the server.
        access: Who may call; without a token only this machine. Its hosts and origins are not used.
        own_code: Detects commands that the runtime itself runs; their calls are refused. `None` if
            the runtime runs no commands.
    """

    def __init__(
        self,
        runtime: RuntimeService,
        access: Access | None = None,
        own_code: OwnCodeDetector | None = None,
    ) -> None:
        self.runtime = runtime
        self._access = access or Access()
        self._port = 0
        bounds = self._access.bounds
        guard = Guard(self._access, own_code=own_code)
        interceptor = _AccessInterceptor(guard, bounds, lambda: self._port)
        # All clients of a process share a connection. If its connection has no free stream, a call
        # may wait for ever. So there are more streams than allowed calls, and further calls are
        # refused.
        each = bounds.max_connections_per_address + SPARE_CALLS
        self._server = grpc.aio.server(
            interceptors=[interceptor],
            options=bounded_options(bounds, GrpcBounds(MAX_MESSAGE_BYTES, each)),
            maximum_concurrent_rpcs=MAX_CALLS,
        )
        self._server.add_generic_rpc_handlers(_handlers(runtime))

    async def start(
        self, host: str = "127.0.0.1", port: int = 0, *, tls: TlsFiles | None = None
    ) -> int:
        """Listen, and return the port.

        Args:
            host: Address to listen on.
            port: Port; 0 means any free port.
            tls: Certificate and key; `None` means no encryption.

        Raises:
            InvalidArgument: Others can reach the address although no token is required, or the
                files are not a certificate and its key.
            Unavailable: The address cannot be used.
        """
        if self._access.is_open and not is_loopback(host):
            raise InvalidArgument(f"{host} can be reached by others: give Access a token")
        address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        try:
            if tls is None:
                bound = self._server.add_insecure_port(address)
            else:
                bound = self._server.add_secure_port(address, _credentials(tls))
        except RuntimeError as error:
            raise Unavailable(f"cannot listen on {address}") from error
        self._port = bound
        await self._server.start()
        return bound

    async def stop(self, grace_s: float | None = None) -> None:
        """Refuse new calls, and end the running ones after `grace_s`."""
        await self._server.stop(grace_s)


def _credentials(tls: TlsFiles) -> grpc.ServerCredentials:
    tls.check()
    pair = (Path(tls.key).read_bytes(), Path(tls.certificate).read_bytes())
    return grpc.ssl_server_credentials([pair])


class _AccessInterceptor(grpc.aio.ServerInterceptor):
    """Refuses callers without access before their message is read, and limits the other calls."""

    def __init__(self, guard: Guard, bounds: Bounds, port: Callable[[], int]) -> None:
        self._guard = guard
        self._port = port
        limits = UsageLimits(MAX_CALLS, bounds.max_connections_per_address, MAX_CALLS)
        self._calls = UsageCounter("calls", limits)

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Handler | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler | None:
        """Return the handler of a call."""
        metadata = handler_call_details.invocation_metadata or ()
        headers = [(name.encode(), _bytes(value)) for name, value in metadata]
        scope = {"type": "http", "path": handler_call_details.method, "headers": headers}
        if await self._guard.principal(scope) is None:
            return grpc.stream_stream_rpc_method_handler(_refuse)  # reads nothing
        handler = await continuation(handler_call_details)
        if handler is None:
            return None
        if handler.response_streaming:
            counted = partial(self._counted, _asynchronous(handler.unary_stream), scope)
            return grpc.unary_stream_rpc_method_handler(counted)
        counted = partial(self._counted, _asynchronous(handler.unary_unary), scope)
        return grpc.unary_unary_rpc_method_handler(counted)

    async def _counted(
        self,
        answer: Answering,
        scope: dict[str, Any],
        data: bytes,
        context: Context,
    ) -> bytes | None:
        # The address of the caller is known here and not yet in `intercept_service`.
        scope |= {"client": client_of(context.peer()), "server": ("", self._port())}
        denial = self._guard.check_peer(scope)
        if denial is not None:
            status = ErrorStatus(AriCode.PERMISSION_DENIED, denial.reason)
            await _abort(context, status, grpc.StatusCode.PERMISSION_DENIED)
        keys = (f"address {self._guard.proxies.counted(scope)}",)
        try:
            self._calls.acquire(keys)
        except RateLimited as error:
            status = ErrorStatus(AriCode.UNAVAILABLE, error.message)
            await _abort(context, status, grpc.StatusCode.UNAVAILABLE)
        try:
            return await answer(data, context)
        finally:
            self._calls.release(keys)


def _asynchronous(function: Callable[[Any, Any], Any] | None) -> Answering:
    """Return a handler's function unchanged, with the type of an asynchronous function.

    The types of the gRPC library describe the functions of handlers as synchronous.
    """
    assert function is not None
    return function


def _bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value


async def _refuse(requests: object, context: Context) -> None:
    status = ErrorStatus(AriCode.PERMISSION_DENIED, "a valid token is needed")
    await _abort(context, status, grpc.StatusCode.UNAUTHENTICATED)


def _handlers(runtime: RuntimeService) -> list[grpc.GenericRpcHandler]:
    services: dict[str, dict[str, Handler]] = {}
    for method in REMOTE_METHODS:
        service, _, name = service_method(method).partition("/")
        services.setdefault(service, {})[name] = _handler(runtime, method)
    return [
        grpc.method_handlers_generic_handler(f"{PACKAGE}.{service}", methods)
        for service, methods in services.items()
    ]


def _handler(runtime: RuntimeService, method: AriMethod) -> Handler:
    """Return the handler of a method.

    It receives bytes, so that an unreadable message is answered with a coded error.
    """

    async def unary(data: bytes, context: Context) -> bytes | None:
        try:
            return encode(await call_with(runtime, method, data))
        except Exception as failed:  # noqa: BLE001 - every failure is an answer with its code
            await _fail(context, failed)
            return None

    async def events(data: bytes, context: Context) -> None:
        try:
            await _stream(runtime, data, context)
        except Exception as failed:  # noqa: BLE001 - as above
            await _fail(context, failed)

    if method.name == "session_events":
        return grpc.unary_stream_rpc_method_handler(events)
    return grpc.unary_unary_rpc_method_handler(unary)


async def call_with(runtime: RuntimeService, method: AriMethod, data: bytes) -> msgspec.Struct:
    """Call a method with its request as Protocol Buffers.

    Raises:
        InvalidArgument: The request cannot be read; the message names the field.
        Unimplemented: The runtime does not have the service.
        AriError: The method raised it.
    """
    request = _request(method.name, method.request, data)
    function = getattr(runtime, method.name, None)
    if function is None:
        raise Unimplemented(f"this runtime has no {method.name}")
    response: msgspec.Struct = await function(request)
    return response


def _request(name: str, kind: type[msgspec.Struct], data: bytes) -> Any:
    try:
        return decode(kind, data, MAX_REQUEST_VALUES)
    except ProtoError as error:
        raise InvalidArgument(f"{name}: {error}") from error


async def _stream(runtime: RuntimeService, data: bytes, context: Context) -> None:
    """Send the events of a session until it is closed or the client cancels."""
    request = _request("session_events", ari.SessionEventsRequest, data)
    subscription = await runtime.session_events(request)
    try:
        # The metadata confirms the subscription to the client.
        await context.send_initial_metadata(((CURSOR_KEY, str(subscription.cursor)),))
        async for event in subscription:
            await context.write(encode(event))
    finally:
        await subscription.aclose()


async def _fail(context: Context, failed: Exception) -> None:
    if context.cancelled():  # the client no longer waits for the answer
        return
    if not isinstance(failed, AriError):
        logger.error("a call failed", exc_info=failed)
    status = status_of(failed)
    await _abort(context, status, _STATUSES[ERRORS[status.code].grpc_status])


async def _abort(context: Context, status: ErrorStatus, code: grpc.StatusCode) -> None:
    await context.abort(code, status.message[:MAX_TEXT], trailing(status))
