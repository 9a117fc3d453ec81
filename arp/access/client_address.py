"""Which address a request comes from, also through trusted proxies, and how it is counted.

A proxy appends the address of its client to those that are in the request already. So the list is
read from its end: addresses of trusted proxies are hops, and the first other address is the
client's. Everything before it was written by the client, and may be forged.
"""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from typing import TypeAlias

from arp.access.incoming import Scope

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network

CUSTOMER_BITS = 64
"""The bits of an IPv6 address that name a customer, who may use any address below."""


def networks(names: Sequence[str]) -> tuple[Network, ...]:
    """Read addresses and networks, as `10.0.0.7`, `10.0.0.0/8` or `fd00::/8`.

    Raises:
        ValueError: One is neither.
    """
    return tuple(ip_network(name, strict=False) for name in names)


def client_address(scope: Scope, trusted: Sequence[Network] = ()) -> Address | None:
    """Return the address that a request comes from.

    Args:
        scope: Of the request.
        trusted: Proxies that are believed. If there are some, a Unix socket is believed too.

    Returns:
        `None` where it is not known: a Unix socket, or a trusted proxy that names no client.
    """
    client = scope.get("client")
    peer = _read(client[0]) if client else None
    if not trusted or (peer is not None and not _is_within(peer, trusted)):
        return peer
    origins = [_origin(hops, trusted) for hops in _forwarded(scope) if hops]
    # A proxy writes one of the headers and hands on the other as the client wrote it.
    return origins[0] if len(set(origins)) == 1 else None


def is_elsewhere(scope: Scope, trusted: Sequence[Network] = ()) -> bool:
    """Return whether a request comes from another machine, or may, where proxies are trusted.

    Without proxies, a request that has no IP address comes over a Unix socket or from this
    process.
    """
    address = client_address(scope, trusted)
    return bool(trusted) if address is None else not address.is_loopback


def is_trusted(host: str, trusted: Sequence[Network]) -> bool:
    """Return whether an address is a trusted proxy's."""
    address = _read(host)
    return address is not None and _is_within(address, trusted)


def peer_address(scope: Scope) -> str:
    """Return the address at the other end of the connection; empty over a Unix socket."""
    client = scope.get("client")
    return counted_address(client[0]) if client else ""


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


def _origin(hops: list[str], trusted: Sequence[Network]) -> Address | None:
    """Return the last hop that is not trusted; where all are, the first."""
    address = None
    for hop in reversed(hops):
        address = _read(hop.strip().strip('"'))
        if address is None or not _is_within(address, trusted):
            break
    return address


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


def _is_within(address: Address, trusted: Sequence[Network]) -> bool:
    return any(address in network for network in trusted)
