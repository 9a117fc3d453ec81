"""`arp ari serve`: one runtime over gRPC and HTTP, until a signal comes.

At its end the runtime is closed first: that ends sessions, their streams, and the processes of the
agents. Then the servers have nothing left to wait for.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple, TypeAlias, cast

import click
import msgspec

from arp.access.own_code import OwnCode
from arp.access.settings import Access, check_names
from arp.commands.output import fail
from arp.commands.runtime_option import runtime_of
from arp.net.bounded_server import InnerServer
from arp.process.stop_signals import StopSignals
from arp.redact.settings import Redaction
from arp.runtime.contract import types as ari
from arp.runtime.contract.errors import AriError
from arp.runtime.contract.services import RuntimeService
from arp.runtime.named import not_installed
from arp.runtime.remote.http_gateway import HttpGateway
from arp.runtime.remote.tls import TlsFiles
from arp.server.ending import Deadline, leave, run_to_end
from arp.server.login.own_secrets import redact_logs
from arp.server.serve import bind, is_private
from arp.store.location import ledger_of, starts_of

STOP_S = 10.0
"""What a stop may take; then the process ends, whatever an agent does."""
GRACE_S = 2.0
"""How long calls may take that are under way when the runtime is closed."""

Stop: TypeAlias = Callable[[], Coroutine[Any, Any, None]]
"""Ends a server."""

EVERYWHERE = ("0.0.0.0", "::")


class AriSettings(msgspec.Struct, frozen=True):
    """What the command line says."""

    runtime: str
    grpc: str | None = None
    http: str | None = None
    cwd: str = "."
    mode: str = ""
    model: str = ""
    passed: tuple[str, ...] = ()
    token: str | None = None
    no_token: bool = False
    tls_cert: str = ""
    tls_key: str = ""
    hosts: tuple[str, ...] = ()
    verbose: int = 0


class ListenAddress(NamedTuple):
    """Where a server listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def address_of(flag: str, text: str) -> ListenAddress:
    """Return the address in a text: `7001`, `:7001`, `HOST:7001` or `[::1]:7001`."""
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not (port.isascii() and port.isdigit() and int(port) <= 65535):
        fail(f"{flag} {text}: expected [HOST]:PORT, such as :7001 or 0.0.0.0:7001")
    return ListenAddress(host or "127.0.0.1", int(port))


class SessionDefaults:
    """A runtime whose new sessions begin in a mode and with a model, if they ask for none."""

    def __init__(self, runtime: RuntimeService, mode: str, model: str) -> None:
        self._runtime = runtime
        self._mode = mode
        self._model = model

    def __getattr__(self, name: str) -> Any:
        return getattr(self._runtime, name)

    async def create_session(self, request: ari.CreateSessionRequest) -> ari.CreateSessionResponse:
        """As `SessionManager.create_session`."""
        mode, model = request.mode or self._mode, request.model or self._model
        return await self._runtime.create_session(
            msgspec.structs.replace(request, mode=mode, model=model)
        )


def serve_runtime(settings: AriSettings) -> None:
    """Serve a runtime until a signal comes, and end the process."""
    logging.basicConfig(level=logging.INFO if settings.verbose else logging.WARNING)
    logging.getLogger("arp").setLevel(
        (logging.WARNING, logging.INFO, logging.DEBUG)[min(settings.verbose, 2)]
    )
    grpc = address_of("--grpc", settings.grpc) if settings.grpc is not None else None
    http = address_of("--http", settings.http) if settings.http is not None else None
    if grpc is None and http is None:
        fail("give --grpc, --http or both: arp ari serve --runtime codex --grpc :7001")
    access = _access(settings, [one for one in (grpc, http) if one is not None])
    tls = _tls(settings)
    runtime = runtime_of(settings.runtime, settings.cwd, settings.passed)
    # It has every method that the runtime has.
    service = cast(RuntimeService, SessionDefaults(runtime, settings.mode, settings.model))
    redact_logs(Redaction())
    own_code = _own_code(settings, runtime)
    serving = _Serving(service, access, tls, _Listeners(grpc, _listener(http)), own_code)
    try:
        run_to_end(serving.run())
    except AriError as error:
        fail(error.message)
    except ModuleNotFoundError as missing:
        if missing.name != "grpc":
            raise
        fail(f"--grpc: {not_installed(missing, 'grpc').message}")
    finally:
        serving.deadline.cancel()
        if serving.signals is not None:
            serving.signals.close()
    leave(0)


def _own_code(settings: AriSettings, runtime: RuntimeService) -> OwnCode | None:
    """Return what keeps the commands of a runtime away from it; `None`: it runs none."""
    if not getattr(runtime, "runs_commands", True):
        return None
    name = settings.runtime.partition(":")[0]
    has_token = settings.token is None and not settings.no_token
    if settings.no_token and settings.token is None:
        click.echo(
            "arp: Nothing keeps out the commands that its agents run: they can answer its "
            "questions in your place. Leave --no-token out, or set ARP_TOKEN.",
            err=True,
        )
    return OwnCode(starts_of(f"sqlite:{ledger_of(f'ari-{name}')}"), has_token=has_token)


def _access(settings: AriSettings, addresses: list[ListenAddress]) -> Access:
    for address in addresses:
        if settings.token is None and not is_private(address.host):
            fail(
                f"{address} can be reached by others: set --token (or ARP_TOKEN), or leave the "
                "host out, so that only this machine reaches it"
            )
    own = [f"[{one.host}]" if ":" in one.host else one.host for one in addresses]
    hosts = [name for name in own if name.strip("[]") not in EVERYWHERE]
    try:
        access = Access(token=settings.token, hosts=(*hosts, *settings.hosts))
        check_names(access)
        return access
    except ValueError as error:
        fail(str(error))


def _tls(settings: AriSettings) -> TlsFiles | None:
    if not settings.tls_cert and not settings.tls_key:
        return None
    if not settings.tls_cert or not settings.tls_key:
        fail("--tls-cert and --tls-key go together: the certificate, and its key")
    files = TlsFiles(settings.tls_cert, settings.tls_key)
    try:
        files.check()
    except AriError as error:
        fail(f"--tls-cert: {error.message}")
    return files


def _listener(address: ListenAddress | None) -> socket.socket | None:
    if address is None:
        return None
    try:
        return bind(*address)
    except OSError as error:
        fail(f"cannot listen on {address}: {error.strerror}")


class _Listeners(NamedTuple):
    grpc: ListenAddress | None
    http: socket.socket | None


class _Serving:
    def __init__(
        self,
        runtime: RuntimeService,
        access: Access,
        tls: TlsFiles | None,
        listeners: _Listeners,
        own_code: OwnCode | None,
    ) -> None:
        self.deadline = Deadline(STOP_S)
        self.signals: StopSignals | None = None
        self._runtime = runtime
        self._access = access
        self._tls = tls
        self._grpc = listeners.grpc
        self._listener = listeners.http
        self._own_code = own_code
        self._asked = asyncio.Event()

    async def run(self) -> None:
        """Serve until a signal comes; then end everything.

        Raises:
            AriError: An address cannot be had.
            ModuleNotFoundError: gRPC is not installed.
        """
        self.signals = StopSignals(partial(self._told, asyncio.get_running_loop()))
        stopping: list[Stop] = []
        try:
            if self._grpc is not None:
                stop, port = await self._serve_grpc(self._grpc)
                stopping.append(stop)
                scheme = "grpcs" if self._tls else "grpc"
                click.echo(f"ARI on {scheme}://{self._grpc._replace(port=port)}")
            if self._listener is not None:
                stopping.append(await self._serve_http(self._listener))
                scheme = "https" if self._tls else "http"
                address = ListenAddress(*self._listener.getsockname()[:2])
                click.echo(f"ARI on {scheme}://{address}")
            if self._own_code is not None and self._own_code.token:
                self._own_code.save()
                click.echo(f"ARI token: {self._own_code.token}")
            await self._asked.wait()
        finally:
            await self._runtime.close(ari.CloseRequest())
            for end in stopping:
                await end()

    def _told(self, loop: asyncio.AbstractEventLoop, number: int) -> None:
        self.deadline.begin()  # here, since an agent may block the loop
        with suppress(RuntimeError):  # the loop is closed: everything has ended
            loop.call_soon_threadsafe(self._asked.set)

    async def _serve_grpc(self, address: ListenAddress) -> tuple[Stop, int]:
        """Serve until the function is called that this returns, and return the port."""
        # Its library writes what fails to standard error, besides raising it.
        os.environ.setdefault("GRPC_VERBOSITY", "NONE")
        from arp.runtime.remote.grpc_server import GrpcServer

        server = GrpcServer(self._runtime, self._access, self._own_code)
        port = await server.start(*address, tls=self._tls)
        return partial(server.stop, GRACE_S), port

    async def _serve_http(self, listener: socket.socket) -> Stop:
        """Serve until the function that this returns is called."""
        server = InnerServer(
            HttpGateway(self._runtime, self._access, self._own_code),
            listener,
            self._access.bounds,
            ssl_certfile=self._tls.certificate if self._tls else None,
            ssl_keyfile=self._tls.key if self._tls else None,
            timeout_graceful_shutdown=int(GRACE_S),
        )
        await server.open()
        return server.aclose
