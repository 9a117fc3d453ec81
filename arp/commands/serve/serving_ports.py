"""Where `arp serve` is reached besides HTTP: Unix sockets and gRPC, and renderers that it dials."""

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
"""In place of a path: the socket that clients look for if none is named."""


class PortSettings(Struct, frozen=True):
    """Where an app is served besides HTTP."""

    host: str
    """For gRPC, if that names none."""
    unix: str | None = None
    dial: Sequence[str] = ()
    encoding: str = "msgpack"
    dialect: str = "session"
    grpc: str | None = None
    grpc_cert: str = ""
    grpc_key: str = ""


def open_ports(state: ServerState, wanted: PortSettings) -> list[Port]:
    """Return the ports that the settings name; Unix sockets listen already.

    Raises:
        SocketRefused: A socket cannot be made there.
    """
    ports: list[Port] = []
    if wanted.grpc is not None:
        ports.append(_grpc(state, wanted))
    settings = UnixSettings(
        msgspec.convert(wanted.encoding, Encoding), msgspec.convert(wanted.dialect, Dialect)
    )
    for address in wanted.dial:
        ports += [UnixDialler(state, address.removeprefix("unix:"), settings)]
    if wanted.unix is not None:  # the last, since it has a file then
        path = default_path(os.environ) if wanted.unix == AUTO else wanted.unix
        ports.append(UnixPort(state, path.removeprefix("unix:"), settings))
    return ports


def _grpc(state: ServerState, wanted: PortSettings) -> Port:
    try:
        from arp.server.ports.grpc_port import GrpcPort, GrpcSettings
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] not in ("grpc", "grpc_health"):
            raise
        fail('--grpc needs gRPC; install it: pip install "agent-rendering-protocol[grpc]"')
    text = str(wanted.grpc)
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not (port.isascii() and port.isdigit() and int(port) <= 65535):
        fail(f"--grpc {text}: expected [HOST:]PORT, such as 7001 or 0.0.0.0:7001")
    if bool(wanted.grpc_cert) != bool(wanted.grpc_key):
        fail("--grpc-cert and --grpc-key go together: the certificate, and its key")
    tls = TlsFiles(wanted.grpc_cert, wanted.grpc_key) if wanted.grpc_cert else None
    return GrpcPort(state, GrpcSettings(host or wanted.host, int(port), tls))


def lines_of(ports: Sequence[Port]) -> Iterator[str]:
    """Yield what is printed of each port when it is ready."""
    for port in ports:
        verb = "dials" if isinstance(port, UnixDialler) else "on"
        yield f"ARP {verb} {port.address}"
