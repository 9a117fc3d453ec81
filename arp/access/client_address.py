"""Which address a request comes from, also through trusted proxies, and how it is counted.

A proxy appends the address of its client to those that are in the request already. So the list is
read from its end: addresses of trusted proxies are hops, and the first other address is the
client's. Everything before it was written by the client, and may be forged.
"""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import TypeAlias
from urllib.parse import unquote

from arp.access.incoming import Scope

Address: TypeAlias = IPv4Address | IPv6Address

CUSTOMER_BITS = 64
"""The bits of an IPv6 address that name a customer, who may use any address below."""


class TrustedProxies:
    """Proxies in front that are trusted to say where a request comes from.

    Args:
        names: Addresses and networks, as `10.0.0.7`, `10.0.0.0/8` or `fd00::/8`. If there are some,
            a Unix socket is trusted too.

    Raises:
        ValueError: One is neither.
    """

    def __init__(self, names: Sequence[str] = ()) -> None:
        self._networks = tuple(ip_network(name, strict=False) for name in names)

    def __contains__(self, host: str) -> bool:
        """Return whether an address is a proxy's, so that many clients come from it."""
        address = _read(host)
        return address is not None and self._have(address)

    def forwarding_header(self, scope: Scope) -> str | None:
        """Return a header that a proxy has added which is not trusted; `None`: there is none.

        Through such a proxy anybody may come, from an address of this machine.
        """
        connected = scope.get("client")
        is_trusted = connected[0] in self if connected else bool(self._networks)
        if is_trusted:
            return None
        names = (name.decode("latin-1").lower() for name, _ in scope["headers"])
        return next((name for name in names if _is_forwarding(name)), None)

    def _have(self, address: Address) -> bool:
        return any(address in network for network in self._networks)

    def client(self, scope: Scope) -> Address | None:
        """Return the address that a request comes from.

        Returns:
            `None` where it is not known: a Unix socket, or a trusted proxy that names no client.
        """
        connected = scope.get("client")
        peer = _read(connected[0]) if connected else None
        if not self._networks or (peer is not None and not self._have(peer)):
            return peer
        origins = [self._origin(hops) for hops in _forwarded(scope) if hops]
        # A proxy writes one of the headers and hands on the other as the client wrote it.
        return origins[0] if len(set(origins)) == 1 else None

    def _origin(self, hops: list[str]) -> Address | None:
        """Return the last hop that is not trusted; where all are, the first."""
        address = None
        for hop in reversed(hops):
            address = _read(hop.strip().strip('"'))
            if address is None or not self._have(address):
                break
        return address

    def is_elsewhere(self, scope: Scope) -> bool:
        """Return whether a request comes from another machine, or may, where proxies are trusted.

        Without proxies, a request that has no IP address comes over a Unix socket or from this
        process.
        """
        address = self.client(scope)
        return bool(self._networks) if address is None else not address.is_loopback

    def counted(self, scope: Scope) -> str:
        """Return the address that a request comes from, as bounds count it.

        A client that a proxy does not name counts as the proxy; empty over a Unix socket.
        """
        address = self.client(scope) if self._networks else None
        connected = scope.get("client")
        peer = connected[0] if connected else None
        host = peer if address is None else str(address)
        return "" if host is None else counted_address(host)


FORWARDING = frozenset(
    (
        *("forwarded", "via", "x-real-ip", "x-client-ip", "x-cluster-client-ip", "true-client-ip"),
        *("x-original-forwarded-for", "x-original-host", "x-envoy-external-address"),
        *("cf-connecting-ip", "fly-client-ip", "fastly-client-ip", "x-azure-clientip"),
    )
)
"""Headers that proxies add, and browsers and programs do not."""


def _is_forwarding(name: str) -> bool:
    return name in FORWARDING or name.startswith("x-forwarded")


def client_of(peer: str) -> tuple[str, int] | None:
    """Return the address in what gRPC calls a peer: `ipv4:127.0.0.1:50`, `ipv6:%5B::1%5D:50`."""
    kind, _, place = unquote(peer).partition(":")
    host, _, port = place.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    try:
        ip_address(host)
    except ValueError:
        return None
    return (host, int(port)) if kind in ("ipv4", "ipv6") and port.isdigit() else None


def counted_address(host: str) -> str:
    """Return an address as it is counted: an IPv6 one with its whole network.

    What is not an IP address was put there by this process, and stays as it is.
    """
    try:
        address = ip_address(host)
    except ValueError:
        return host
    if not isinstance(address, IPv6Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ip_network((int(address), CUSTOMER_BITS), strict=False))


def _forwarded(scope: Scope) -> tuple[list[str], list[str]]:
    """Return the hops of `X-Forwarded-For` and of `Forwarded` (RFC 7239), the nearest last."""
    plain: list[str] = []
    standard: list[str] = []
    for name, value in scope["headers"]:
        if name == b"x-forwarded-for":
            plain += value.decode("latin-1").split(",")
        elif name == b"forwarded":
            standard += [_for(element) for element in value.decode("latin-1").split(",")]
    return plain, standard


def _for(element: str) -> str:
    """Return the client in an element of `Forwarded`; an address contains no comma."""
    for pair in element.split(";"):
        name, _, value = pair.partition("=")
        if name.strip().lower() == "for":
            return value
    return ""


def _read(text: str) -> Address | None:
    """Read an address, also with a port; `None` if it is none."""
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ip_address(text)
    except ValueError:
        return None
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address
