"""Determine the client address of a request, also behind trusted proxies.

A proxy appends the address of its client to the addresses already in the request. So the list is
read from its end: addresses of trusted proxies are skipped, and the first other address is the
client's. The client wrote everything before it and may have forged it.
"""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import TypeAlias
from urllib.parse import unquote

from arp.access.incoming import Scope

Address: TypeAlias = IPv4Address | IPv6Address

CUSTOMER_BITS = 64
"""Prefix length of an IPv6 network that belongs to one customer, who may use all its addresses."""


class TrustedProxies:
    """Proxies that are trusted to report the client address of a request.

    Args:
        names: Addresses and networks, such as `10.0.0.7`, `10.0.0.0/8` or `fd00::/8`. If there is
            at least one, connections over a Unix socket are trusted too.

    Raises:
        ValueError: A name is neither an address nor a network.
    """

    def __init__(self, names: Sequence[str] = ()) -> None:
        self._networks = tuple(ip_network(name, strict=False) for name in names)

    def __contains__(self, host: str) -> bool:
        """Return whether an address belongs to a trusted proxy, which may have many clients."""
        address = _parse_address(host)
        return address is not None and self._includes(address)

    def forwarding_header(self, scope: Scope) -> str | None:
        """Return the name of a header added by a proxy that is not trusted, or `None`.

        Such a proxy on this machine makes requests of any client look local.
        """
        connected = scope.get("client")
        is_trusted = connected[0] in self if connected else bool(self._networks)
        if is_trusted:
            return None
        names = (name.decode("latin-1").lower() for name, _ in scope["headers"])
        return next((name for name in names if _is_forwarding(name)), None)

    def _includes(self, address: Address) -> bool:
        return any(address in network for network in self._networks)

    def client(self, scope: Scope) -> Address | None:
        """Return the client address of a request.

        Returns:
            `None` if it is not known: the request came over a Unix socket, or a trusted proxy names
            no client or contradicts itself.
        """
        connected = scope.get("client")
        peer = _parse_address(connected[0]) if connected else None
        if not self._networks or (peer is not None and not self._includes(peer)):
            return peer
        origins = [self._origin(hops) for hops in _forwarded(scope) if hops]
        # A proxy writes one of the two headers and passes on the other one, which the client may
        # have forged. If they differ, neither can be trusted.
        return origins[0] if len(set(origins)) == 1 else None

    def _origin(self, hops: list[str]) -> Address | None:
        """Return the last hop that is not a trusted proxy; if all are trusted, the first hop."""
        address = None
        for hop in reversed(hops):
            address = _parse_address(hop.strip().strip('"'))
            if address is None or not self._includes(address):
                break
        return address

    def is_elsewhere(self, scope: Scope) -> bool:
        """Return whether a request comes from another machine.

        A request without a known address counts as coming from another machine if there are trusted
        proxies. Without them, it came over a Unix socket or from this process.
        """
        address = self.client(scope)
        return bool(self._networks) if address is None else not address.is_loopback

    def counted(self, scope: Scope) -> str:
        """Return the address under which limits count a request; empty over a Unix socket.

        A client that its proxy does not name is counted under the address of the proxy.
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
"""Headers that proxies add, but browsers and other programs do not."""


def _is_forwarding(name: str) -> bool:
    return name in FORWARDING or name.startswith("x-forwarded")


def client_of(peer: str) -> tuple[str, int] | None:
    """Return address and port of a gRPC peer such as `ipv4:127.0.0.1:50` or `ipv6:%5B::1%5D:50`."""
    kind, _, location = unquote(peer).partition(":")
    host, _, port = location.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    try:
        ip_address(host)
    except ValueError:
        return None
    return (host, int(port)) if kind in ("ipv4", "ipv6") and port.isdigit() else None


def counted_address(host: str) -> str:
    """Return the key under which an address is counted; IPv6 addresses count by network.

    A host that is not an IP address was set by this process and is returned unchanged.
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
    """Return the hops of `X-Forwarded-For` and of `Forwarded` (RFC 7239), nearest hop last."""
    plain: list[str] = []
    standard: list[str] = []
    for name, value in scope["headers"]:
        if name == b"x-forwarded-for":
            plain += value.decode("latin-1").split(",")
        elif name == b"forwarded":
            standard += [
                _client_of_element(element) for element in value.decode("latin-1").split(",")
            ]
    return plain, standard


def _client_of_element(element: str) -> str:
    """Return the client in an element of `Forwarded`, or an empty string."""
    for pair in element.split(";"):
        name, _, value = pair.partition("=")
        if name.strip().lower() == "for":
            return value
    return ""


def _parse_address(text: str) -> Address | None:
    """Return an address from text that may include a port; `None` if it is not an address."""
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
