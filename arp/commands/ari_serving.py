"""`arp ari serve`: serve one runtime over gRPC and HTTP, until a signal is received.

At the end the runtime is closed first. That ends its sessions, their streams, and the processes of
the agents, so the servers do not have to wait for them.
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

from arp.access.own_code import OwnCodeDetector
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
"""Time for a stop; after it the process ends, even if an agent is still busy."""
GRACE_S = 2.0
"""Time for calls that are running when the runtime is closed."""

Stop: TypeAlias = Callable[[], Coroutine[Any, Any, None]]
"""Function that stops a server."""

EVERYWHERE = ("0.0.0.0", "::")


class AriSettings(msgspec.Struct, frozen=True):
    """The settings of `arp ari serve`, from the command line."""

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
    """The address that a server listens on."""

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
    """A runtime with a default mode and a default model for new sessions."""

    def __init__(self, runtime: RuntimeService, mode: str, model: str) -> None:
        self._runtime = runtime
        self._mode = mode
        self._model = model

    def __getattr__(self, name: str) -> Any:
        return getattr(self._runtime, name)

    async def create_session(self, request: ari.CreateSessionRequest) -> ari.CreateSessionResponse:
        """Create a session; see `SessionManager.create_session`."""
        mode, model = request.mode or self._mode, request.model or self._model
        return await self._runtime.create_session(
            msgspec.structs.replace(request, mode=mode, model=model)
        )


def serve_runtime(settings: AriSettings) -> None:
    """Serve a runtime until a signal is received, then end the process."""
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
    # `__getattr__` gives the object every method of the runtime, which mypy cannot see.
    service = cast(RuntimeService, SessionDefaults(runtime, settings.mode, settings.model))
    redact_logs(Redaction())
    own_code = _own_code(settings, runtime)
    serving = _AriServers(service, access, tls, _Listeners(grpc, _listener(http)), own_code)
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


def _own_code(settings: AriSettings, runtime: RuntimeService) -> OwnCodeDetector | None:
    """Return the protection against commands that the runtime's agents run.

    Returns:
        `None` if the runtime runs no commands.
    """
    if not getattr(runtime, "runs_commands", True):
        return None
    name = settings.runtime.partition(":")[0]
    has_token = settings.token is None and not settings.no_token
    if settings.no_token and settings.token is None:
        click.echo(
            "arp: Commands that its agents run can use this server, and can answer its questions "
            "in your place. Leave --no-token out, or set ARP_TOKEN.",
            err=True,
        )
    return OwnCodeDetector(starts_of(f"sqlite:{ledger_of(f'ari-{name}')}"), has_token=has_token)


def _access(settings: AriSettings, addresses: list[ListenAddress]) -> Access:
    for address in addresses:
        if settings.token is None and not is_private(address.host):
            fail(
                f"{address} can be reached by others: set --token (or ARP_TOKEN), or leave the "
                "host out, so that only this machine reaches it"
            )
    names = [f"[{one.host}]" if ":" in one.host else one.host for one in addresses]
    hosts = [name for name in names if name.strip("[]") not in EVERYWHERE]
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


class _AriServers:
    """The servers of one runtime, from their start to their stop."""

    def __init__(
        self,
        runtime: RuntimeService,
        access: Access,
        tls: TlsFiles | None,
        listeners: _Listeners,
        own_code: OwnCodeDetector | None,
    ) -> None:
        self.deadline = Deadline(STOP_S)
        self.signals: StopSignals | None = None
        self._runtime = runtime
        self._access = access
        self._tls = tls
        self._grpc = listeners.grpc
        self._listener = listeners.http
        self._own_code = own_code
        self._stop_requested = asyncio.Event()

    async def run(self) -> None:
        """Serve until a signal is received, then stop the runtime and the servers.

        Raises:
            AriError: An address cannot be used.
            ModuleNotFoundError: gRPC is not installed.
        """
        self.signals = StopSignals(partial(self._on_signal, asyncio.get_running_loop()))
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
            await self._stop_requested.wait()
        finally:
            await self._runtime.close(ari.CloseRequest())
            for end in stopping:
                await end()

    def _on_signal(self, loop: asyncio.AbstractEventLoop, number: int) -> None:
        # The deadline starts here and not in the event loop, because an agent may block the loop.
        self.deadline.begin()
        with suppress(RuntimeError):  # the loop is closed: everything has ended
            loop.call_soon_threadsafe(self._stop_requested.set)

    async def _serve_grpc(self, address: ListenAddress) -> tuple[Stop, int]:
        """Start the gRPC server; return the function that stops it, and its port."""
        # Otherwise the gRPC library also writes failures to standard error.
        os.environ.setdefault("GRPC_VERBOSITY", "NONE")
        from arp.runtime.remote.grpc_server import GrpcServer

        server = GrpcServer(self._runtime, self._access, self._own_code)
        port = await server.start(*address, tls=self._tls)
        return partial(server.stop, GRACE_S), port

    async def _serve_http(self, listener: socket.socket) -> Stop:
        """Start the HTTP server; return the function that stops it."""
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
