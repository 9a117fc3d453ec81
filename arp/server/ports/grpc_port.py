"""Renderers over gRPC on a separate port: `ArpService` of `schemas/arp.proto`, and health checks.

A page in a browser cannot call this port: browsers send no HTTP/2 without TLS, and never the header
`te` that gRPC requires. So there is no `Host` or `Origin` to check. The metadata of a call contains
the token; a call without it is refused before any message is read. The health service
(`grpc.health.v1`) needs no token, like `/health`.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from arp.access.client_address import client_of
from arp.access.leases import Lease
from arp.access.principal import Principal, keys_of
from arp.access.usage import Slot
from arp.hub.peers.object_peer import peer_speaking
from arp.hub.peers.peer import Peer
from arp.net.grpc_bounds import (
    IDLE_S,
    MAX_CALLS,
    MAX_CONNECTIONS,
    GrpcBounds,
    bounded_options,
)
from arp.protocol.codec import ENCODINGS, Encoding, encode_json
from arp.protocol.errors import ArpError, LocalError, RateLimited
from arp.protocol.framing.envelope import (
    CONNECT,
    DIALECT_KEY,
    DIALECTS,
    ENCODING_KEY,
    SERVICE,
    UPLOAD,
    WORKFLOW_KEY,
    Dialect,
    seal_answer,
)
from arp.protocol.messages import AgentMessage
from arp.runtime.contract.errors import AriError
from arp.runtime.remote.tls import TlsFiles, is_loopback
from arp.server.ports.grpc_uploads import receive_form, skip
from arp.server.ports.streams import answers_to, error_answer, frame_of_form
from arp.server.state import Requester, ServerState, expel, log_arrival
from arp.store.errors import StoreError

# The library reads this at import; without it, errors are also written to standard error.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")

from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from arp.net.grpc_library import grpc
from arp.transport.grpc_stream import Context, GrpcConnection, GrpcOutbox, end_call

Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"

HEALTH = "/grpc.health.v1.Health/"

FRAME_FACTOR = 4
"""Factor for the protocol's message limit: a larger gRPC message ends the call.

For a message between the limit and this size, the sender gets a coded error and the call stays
open.
"""

ENVELOPE_BYTES = 16
"""Largest number of bytes that an envelope adds to a frame."""

MAX_CALLS_PER_CONNECTION = 100

STOP_S = 1.0


class GrpcUnavailable(LocalError):
    """The port cannot be opened; the message says why, and what to do."""


class GrpcSettings(Struct, frozen=True):
    """Address and limits of the gRPC port."""

    host: str = "127.0.0.1"
    port: int = 0
    """Port number; 0 means any free port."""
    tls: TlsFiles | None = None
    """Certificate and key of the server; `None` means no encryption."""
    max_connections: int = MAX_CONNECTIONS
    """Largest number of TCP connections, with or without calls."""
    idle_s: float = IDLE_S
    """Time in seconds after which a connection without a call is closed."""


class GrpcPort:
    """Serves an app over gRPC."""

    def __init__(self, state: ServerState, settings: GrpcSettings) -> None:
        self._state = state
        self._settings = settings
        self._port = settings.port
        self._server: grpc.aio.Server | None = None
        self._health = health.aio.HealthServicer()
        self._connections: set[GrpcConnection] = set()

    @property
    def address(self) -> str:
        """Address for clients. The port number is known after `start`."""
        host = f"[{self._settings.host}]" if ":" in self._settings.host else self._settings.host
        return f"{'grpcs' if self._settings.tls else 'grpc'}:{host}:{self._port}"

    async def start(self) -> None:
        """Start listening.

        Raises:
            GrpcUnavailable: Other machines can reach the address and nothing restricts access, the
                address cannot be bound, or the files are not a certificate and its key.
        """
        settings = self._settings
        state = self._state
        is_open = state.served.access.is_open and not state.guard.tokens.are_used()
        if is_open and not is_loopback(settings.host):
            raise GrpcUnavailable(
                f"--grpc: {settings.host} can be reached by others: set --token (or ARP_TOKEN), or "
                "give App an Access with an authenticate hook, or stay on 127.0.0.1"
            )
        # A servicer cannot be used again after its shutdown.
        self._health = health.aio.HealthServicer()
        server = grpc.aio.server(
            interceptors=[_TokenInterceptor(self)],
            options=bounded_options(state.served.access.bounds, self._bounds()),
            maximum_concurrent_rpcs=MAX_CALLS,
        )
        health_pb2_grpc.add_HealthServicer_to_server(self._health, server)
        target = self.address.partition(":")[2]
        try:
            if settings.tls is None:
                self._port = server.add_insecure_port(target)
            else:
                self._port = server.add_secure_port(target, _credentials(settings.tls))
        except RuntimeError:
            raise GrpcUnavailable(
                f"--grpc: cannot listen on {target}; choose another port"
            ) from None
        except AriError as error:
            raise GrpcUnavailable(f"--grpc: {error.message}") from None
        self._server = server
        await server.start()
        for name in ("", SERVICE):
            await self._health.set(name, health_pb2.HealthCheckResponse.SERVING)

    def _bounds(self) -> GrpcBounds:
        most = FRAME_FACTOR * self._state.served.settings.limits.max_message_bytes
        return GrpcBounds(
            most + ENVELOPE_BYTES,
            MAX_CALLS_PER_CONNECTION,
            self._settings.max_connections,
            self._settings.idle_s,
        )

    async def stop(self) -> None:
        """Ask every renderer to reconnect, and stop."""
        server, self._server = self._server, None
        if server is None:
            return
        await self._health.enter_graceful_shutdown()
        for connection in list(self._connections):
            connection.outbox.close(1012, "restarting")
        await server.stop(STOP_S)

    async def admit(self, scope: dict[str, Any], context: Context) -> Principal:
        """Return the principal of a call.

        Raises:
            grpc.aio.AbortError: The caller has no access; the call is ended.
        """
        guard = self._state.guard
        scope["client"] = client_of(context.peer())
        scope["server"] = (self._settings.host, self._port)
        denial = guard.check_peer(scope)
        if denial is not None:
            await end_call(context, 1008, denial.reason)
        principal = await guard.principal(scope)
        if principal is None:
            reason = "a valid token is needed: authorization: Bearer …"
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, reason)
        return principal

    async def serve(self, principal: Principal, scope: dict[str, Any], context: Context) -> None:
        """Serve one connection until either side ends it."""
        async with self._requester(principal, scope, context):
            await self._converse(scope, context)

    async def receive_upload(
        self,
        principal: Principal,
        scope: dict[str, Any],
        parts: AsyncIterator[bytes],
        context: Context,
    ) -> bytes:
        """Receive an input with files, and return the encoded answer."""
        async with self._requester(principal, scope, context) as asker:
            ended = asyncio.current_task()
            assert ended is not None
            asker.lease.when_ended(ended.cancel)
            workflow = await self._workflow(scope, context)
            try:
                answers = await self._uploaded(asker, workflow, parts)
            except (ArpError, StoreError) as error:
                answers = [error_answer(error)]
                max_bytes = self._state.intake.max_form_bytes
                await skip(parts, max_bytes, self._state.served.settings.stall_s)
            return seal_answer(encode_json(answers))

    async def _uploaded(
        self, asker: Requester, workflow: str, parts: AsyncIterator[bytes]
    ) -> list[AgentMessage]:
        state = self._state
        keys, stall_s = keys_of(asker.principal), state.served.settings.stall_s
        async with receive_form(state.intake, keys, parts, stall_s) as form:
            return await answers_to(frame_of_form(form), form.files, asker, workflow)

    @asynccontextmanager
    async def _requester(
        self, principal: Principal, scope: dict[str, Any], context: Context
    ) -> AsyncIterator[Requester]:
        """Reserve a slot and begin a lease for a call; release both when the block ends.

        Raises:
            grpc.aio.AbortError: The user has too many connections; the call is ended.
        """
        state = self._state
        principal = replace(principal, address=state.guard.proxies.counted(scope))
        try:
            slot = Slot(state.conversations, principal)
        except RateLimited as error:
            await end_call(context, 1013, error.message)
            raise
        lease = Lease(state.leases)
        asker = scope["arp"] = Requester(state, slot, lease, principal)
        state.begin_lease(lease, principal, partial(state.guard.recheck, scope))
        try:
            yield asker
        finally:
            lease.release()
            slot.release()

    async def _workflow(self, scope: dict[str, Any], context: Context) -> str:
        """Return the agent of a new session.

        Raises:
            grpc.aio.AbortError: There is no such agent; the call is ended.
        """
        workflow = _metadata(scope).get(WORKFLOW_KEY, self._state.workflow).lstrip("/")
        if workflow not in self._state.served.handlers:
            await end_call(context, 1008, f"{WORKFLOW_KEY}: there is no agent {workflow!r:.60}")
        return workflow

    async def _converse(self, scope: dict[str, Any], context: Context) -> None:
        state, metadata = self._state, _metadata(scope)
        dialect, encoding = metadata.get(DIALECT_KEY, "session"), metadata.get(ENCODING_KEY, "json")
        if dialect not in DIALECTS or encoding not in ENCODINGS:
            reason = (
                f"{DIALECT_KEY} {dialect!r:.30}, {ENCODING_KEY} {encoding!r:.30}: not supported"
            )
            await end_call(context, 1003, reason)
        workflow = await self._workflow(scope, context)
        try:
            hub = await state.hub()
        except StoreError:
            reason = "the ledger cannot be opened; the server's log says why"
            await end_call(context, 1013, reason)
            return
        spoken = msgspec.convert(dialect, Dialect)
        connection = GrpcConnection(context, spoken, state.served.settings.stall_s)

        def make(outbox: GrpcOutbox) -> Peer:
            check = partial(state.admit_token, scope)
            written = msgspec.convert(encoding, Encoding)
            principal = scope["arp"].known
            peer = peer_speaking(spoken)(hub, outbox, written, workflow, principal, check)
            log_arrival(peer.viewer, "gRPC", scope)
            scope["arp"].lease.when_ended(partial(expel, peer, outbox))
            return peer

        self._connections.add(connection)
        try:
            await connection.talk(make)
        finally:
            self._connections.discard(connection)


class _TokenInterceptor(grpc.aio.ServerInterceptor):
    """Refuses calls before their messages are read."""

    def __init__(self, port: GrpcPort) -> None:
        self._port = port

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Handler | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler | None:
        """Return the handler of a call; `None` if there is no such method."""
        method = handler_call_details.method
        path = method.decode() if isinstance(method, bytes) else method
        if path.startswith(HEALTH):
            return await continuation(handler_call_details)
        if path not in (CONNECT, UPLOAD):
            return None
        pairs = handler_call_details.invocation_metadata or ()
        headers = [(name.encode(), _bytes(value)) for name, value in pairs]
        scope = {"type": "grpc", "path": path, "headers": headers}
        if path == UPLOAD:
            return grpc.stream_unary_rpc_method_handler(partial(self._receive_upload, scope))
        return grpc.stream_stream_rpc_method_handler(partial(self._serve, scope))

    async def _serve(self, scope: dict[str, Any], requests: object, context: Context) -> None:
        await self._port.serve(await self._port.admit(scope, context), scope, context)

    async def _receive_upload(
        self, scope: dict[str, Any], parts: AsyncIterator[bytes], context: Context
    ) -> bytes:
        principal = await self._port.admit(scope, context)
        return await self._port.receive_upload(principal, scope, parts, context)


def _bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value


def _metadata(scope: dict[str, Any]) -> dict[str, str]:
    return {name.decode(): value.decode("latin-1") for name, value in scope["headers"]}


def _credentials(tls: TlsFiles) -> grpc.ServerCredentials:
    tls.check()
    pair = (Path(tls.key).read_bytes(), Path(tls.certificate).read_bytes())
    return grpc.ssl_server_credentials([pair])
