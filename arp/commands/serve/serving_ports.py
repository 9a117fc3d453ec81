"""The ports of `arp serve` besides HTTP, one function for each setting of `PORTS`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from arp.commands.output import fail
from arp.commands.serve.serve_settings import ServeSettings
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


def open_ports(state: ServerState, settings: ServeSettings) -> list[Port]:
    """Return the ports of the settings. A Unix socket listens when this returns.

    Raises:
        SocketRefused: A socket cannot be created at the path.
    """
    return [port for name in settings.ports() for port in OPENERS[name](state, settings)]


def _unix(state: ServerState, settings: ServeSettings) -> list[Port]:
    assert settings.unix is not None
    path = default_path(os.environ) if settings.unix == AUTO else settings.unix
    return [UnixPort(state, path.removeprefix("unix:"), _unix_settings(settings))]


def _dial(state: ServerState, settings: ServeSettings) -> list[Port]:
    unix_settings = _unix_settings(settings)
    return [
        UnixDialler(state, address.removeprefix("unix:"), unix_settings)
        for address in settings.dial
    ]


def _unix_settings(settings: ServeSettings) -> UnixSettings:
    return UnixSettings(
        msgspec.convert(settings.encoding, Encoding), msgspec.convert(settings.dialect, Dialect)
    )


def _grpc(state: ServerState, settings: ServeSettings) -> list[Port]:
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
    return [GrpcPort(state, GrpcSettings(host or settings.host, int(port), tls))]


OPENERS: Final[dict[str, Callable[[ServerState, ServeSettings], list[Port]]]] = {
    "grpc": _grpc,
    "dial": _dial,
    "unix": _unix,
}
"""Function that makes the ports of each setting of `PORTS`."""


def ready_lines(ports: Sequence[Port]) -> Iterator[str]:
    """Yield the line to print for each port when it is ready."""
    for port in ports:
        verb = "dials" if isinstance(port, UnixDialler) else "on"
        yield f"ARP {verb} {port.address}"
