"""Other transports of `arp serve`: Unix sockets, gRPC, and connections to listening renderers."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from arp.commands.output import fail
from arp.protocol.codec import Encoding
from arp.protocol.framing.envelope import Dialect
from arp.runtime.remote.tls import TlsFiles
from arp.server.ports.unix_port import UnixDialler, UnixPort, UnixSettings
from arp.unix.socket_path import default_path

if TYPE_CHECKING:
    from arp.server.serve import Port
    from arp.server.state import ServerState

AUTO = "auto"
"""Used instead of a path: the default path of clients."""


class PortSettings(Struct, frozen=True):
    """The addresses of an app besides HTTP."""

    host: str
    """Host for gRPC, if `grpc` has none."""
    unix: str | None = None
    dial: Sequence[str] = ()
    encoding: str = "msgpack"
    dialect: str = "session"
    grpc: str | None = None
    grpc_cert: str = ""
    grpc_key: str = ""


def open_ports(state: ServerState, settings: PortSettings) -> list[Port]:
    """Return the ports of the settings. A Unix socket listens when this returns.

    Raises:
        SocketRefused: A socket cannot be created at the path.
    """
    ports: list[Port] = []
    if settings.grpc is not None:
        ports.append(_grpc(state, settings))
    unix_settings = UnixSettings(
        msgspec.convert(settings.encoding, Encoding), msgspec.convert(settings.dialect, Dialect)
    )
    for address in settings.dial:
        ports += [UnixDialler(state, address.removeprefix("unix:"), unix_settings)]
    # Last, because it creates a file that would remain if another port failed.
    if settings.unix is not None:
        path = default_path(os.environ) if settings.unix == AUTO else settings.unix
        ports.append(UnixPort(state, path.removeprefix("unix:"), unix_settings))
    return ports


def _grpc(state: ServerState, settings: PortSettings) -> Port:
    try:
        from arp.server.ports.grpc_port import GrpcPort, GrpcSettings
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] not in ("grpc", "grpc_health"):
            raise
        fail('--grpc needs gRPC; install it: pip install "agent-rendering-protocol[grpc]"')
    text = str(settings.grpc)
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not (port.isascii() and port.isdigit() and int(port) <= 65535):
        fail(f"--grpc {text}: expected [HOST:]PORT, such as 7001 or 0.0.0.0:7001")
    if bool(settings.grpc_cert) != bool(settings.grpc_key):
        fail("--grpc-cert and --grpc-key go together: the certificate, and its key")
    tls = TlsFiles(settings.grpc_cert, settings.grpc_key) if settings.grpc_cert else None
    return GrpcPort(state, GrpcSettings(host or settings.host, int(port), tls))


def ready_lines(ports: Sequence[Port]) -> Iterator[str]:
    """Yield the line to print for each port when it is ready."""
    for port in ports:
        verb = "dials" if isinstance(port, UnixDialler) else "on"
        yield f"ARP {verb} {port.address}"
