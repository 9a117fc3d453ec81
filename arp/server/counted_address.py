"""Where a request comes from, as bounds count it."""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address, ip_network

from arp.transport.websocket import Scope

CUSTOMER_BITS = 64
"""Of an IPv6 address: what one client has to itself, and may take any address of."""


def peer_address(scope: Scope) -> str:
    """Return the address at the other end of the connection; empty over a Unix socket."""
    client = scope.get("client")
    return counted_address(client[0]) if client else ""


def counted_address(host: str) -> str:
    """Gives an address as it is counted: an IPv6 one with its whole network.

    What is no IP address was put there by this process, and stays as it is.
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
