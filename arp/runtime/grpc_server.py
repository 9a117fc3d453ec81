"""`GrpcServer`: a runtime over gRPC, as `schemas/ari/runtime/v1/api.proto` has it.

It runs commands for whoever may come in. Without a token or a hook it listens on loopback alone. No
browser can be made to call it: pages cannot send HTTP/2 without TLS, and never the header `te` that
gRPC demands. So there is neither `Host` nor `Origin` to check as over HTTP.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeAlias

import grpc
import grpc.aio
import msgspec

from arp.access.client_address import client_of
from arp.access.guard import Guard
from arp.access.own_code import OwnCode
from arp.access.settings import Access
from arp.runtime import types as ari
from arp.runtime.errors import (
    ERRORS,
    AriCode,
    AriError,
    ErrorStatus,
    InvalidArgument,
    Unavailable,
    Unimplemented,
    status_of,
)
from arp.runtime.grpc_status import CURSOR_KEY, KEEP_ALIVE_MS, MAX_TEXT, OPTIONS, trailing
from arp.runtime.proto_codec import ProtoError, decode, encode
from arp.runtime.proto_fields import PACKAGE, REMOTE_METHODS, service_method
from arp.runtime.services import AriMethod, RuntimeService
from arp.runtime.tls import TlsFiles, is_loopback

logger = logging.getLogger(__name__)

_STATUSES = {status.value[0]: status for status in grpc.StatusCode}

Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"
CheckPeer: TypeAlias = "Callable[[Context], Awaitable[None]]"
"""Ends a call from where nobody may call."""


class GrpcServer:
    """Serves a runtime over gRPC; made and used in one loop.

    Args:
        runtime: Who does the work; it is not closed with the server.
        access: Who may come in; without a token only this machine. Its hosts and origins do not
            matter here.
        own_code: What the runtime runs, and must not come in; `None`: it runs nothing.
    """

    def __init__(
        self,
        runtime: RuntimeService,
        access: Access | None = None,
        own_code: OwnCode | None = None,
    ) -> None:
        self.runtime = runtime
        self._access = access or Access()
        self._guard = Guard(self._access, own_code=own_code)
        self._port = 0
        self._server = grpc.aio.server(
            interceptors=[_Door(self._guard)],
            options=(
                *OPTIONS,
                # With this option on, a second server would take half of the calls.
                ("grpc.so_reuseport", 0),
                ("grpc.http2.min_ping_interval_without_data_ms", KEEP_ALIVE_MS // 2),
            ),
        )
        self._server.add_generic_rpc_handlers(_handlers(runtime, self._check_peer))

    async def start(
        self, host: str = "127.0.0.1", port: int = 0, *, tls: TlsFiles | None = None
    ) -> int:
        """Listen, and return the port; 0 is any that is free.

        Args:
            host: The address.
            port: The port.
            tls: What it shows to its clients; `None`: it does not encrypt.

        Raises:
            InvalidArgument: Others can reach the address, and nothing keeps them out; or the files
                are no certificate and its key.
            Unavailable: The address cannot be had.
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

    async def _check_peer(self, context: Context) -> None:
        """End a call from where nobody may call; only the call itself says where that is."""
        scope: dict[str, Any] = {
            "client": client_of(context.peer()),
            "server": ("", self._port),
            "headers": [],
        }
        denial = self._guard.check_peer(scope)
        if denial is not None:
            status = ErrorStatus(AriCode.PERMISSION_DENIED, denial.reason)
            await _abort(context, status, grpc.StatusCode.PERMISSION_DENIED)

    async def stop(self, grace_s: float | None = None) -> None:
        """Take no more calls, and end those that are under way after `grace_s`."""
        await self._server.stop(grace_s)


def _credentials(tls: TlsFiles) -> grpc.ServerCredentials:
    tls.check()
    pair = (Path(tls.key).read_bytes(), Path(tls.certificate).read_bytes())
    return grpc.ssl_server_credentials([pair])


class _Door(grpc.aio.ServerInterceptor):
    """Refuses calls before their messages are read."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Handler | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler | None:
        """Return what answers a call."""
        metadata = handler_call_details.invocation_metadata or ()
        headers = [(name.encode(), _bytes(value)) for name, value in metadata]
        scope = {"type": "http", "path": handler_call_details.method, "headers": headers}
        if await self._guard.principal(scope) is None:
            return grpc.stream_stream_rpc_method_handler(_refuse)  # reads nothing
        return await continuation(handler_call_details)


def _bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value


async def _refuse(requests: object, context: Context) -> None:
    status = ErrorStatus(AriCode.PERMISSION_DENIED, "a valid token is needed")
    await _abort(context, status, grpc.StatusCode.UNAUTHENTICATED)


def _handlers(runtime: RuntimeService, check_peer: CheckPeer) -> list[grpc.GenericRpcHandler]:
    services: dict[str, dict[str, Handler]] = {}
    for method in REMOTE_METHODS:
        service, _, name = service_method(method).partition("/")
        services.setdefault(service, {})[name] = _handler(runtime, method, check_peer)
    return [
        grpc.method_handlers_generic_handler(f"{PACKAGE}.{service}", methods)
        for service, methods in services.items()
    ]


def _handler(runtime: RuntimeService, method: AriMethod, check_peer: CheckPeer) -> Handler:
    """Return the handler of a method.

    Messages come as bytes: one that cannot be read is an error like all others.
    """

    async def unary(data: bytes, context: Context) -> bytes | None:
        await check_peer(context)
        try:
            return encode(await call_with(runtime, method, data))
        except Exception as failed:  # noqa: BLE001 - every failure is an answer with its code
            await _fail(context, failed)
            return None

    async def events(data: bytes, context: Context) -> None:
        await check_peer(context)
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
        InvalidArgument: The request cannot be read; the message says which field.
        Unimplemented: The runtime does not have the service.
        AriError: As the method does.
    """
    request = _request(method.name, method.request, data)
    function = getattr(runtime, method.name, None)
    if function is None:
        raise Unimplemented(f"this runtime has no {method.name}")
    response: msgspec.Struct = await function(request)
    return response


def _request(name: str, kind: type[msgspec.Struct], data: bytes) -> Any:
    try:
        return decode(kind, data)
    except ProtoError as error:
        raise InvalidArgument(f"{name}: {error}") from error


async def _stream(runtime: RuntimeService, data: bytes, context: Context) -> None:
    """Send the events of a session until it is closed or the client cancels."""
    request = _request("session_events", ari.SessionEventsRequest, data)
    subscription = await runtime.session_events(request)
    try:
        # The client knows by these that it has subscribed.
        await context.send_initial_metadata(((CURSOR_KEY, str(subscription.cursor)),))
        async for event in subscription:
            await context.write(encode(event))
    finally:
        await subscription.aclose()


async def _fail(context: Context, failed: Exception) -> None:
    if context.cancelled():  # nobody waits for the answer
        return
    if not isinstance(failed, AriError):
        logger.error("a call failed", exc_info=failed)
    status = status_of(failed)
    await _abort(context, status, _STATUSES[ERRORS[status.code].grpc_status])


async def _abort(context: Context, status: ErrorStatus, code: grpc.StatusCode) -> None:
    await context.abort(code, status.message[:MAX_TEXT], trailing(status))
