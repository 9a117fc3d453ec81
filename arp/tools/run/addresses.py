"""HTTP clients that connect only to public addresses and to allowed private addresses."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import ssl
from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit

import httpcore
import httpx

from arp.tools.errors import InvalidToolMeta, ToolRefused

IpAddress: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
IpNetwork: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

RESOLVE_S: Final = 10.0
MAX_REDIRECTS: Final = 5
MAX_URL: Final = 2_048
MAX_ADDRESSES: Final = 4

_PRIVATE_V4: Final = [
    ipaddress.IPv4Network(text)
    for text in (
        "0.0.0.0/8",  # "this network"; Linux treats 0.0.0.0 as the local machine
        "10.0.0.0/8",
        "100.64.0.0/10",  # carrier-grade NAT (RFC 6598)
        "127.0.0.0/8",
        "169.254.0.0/16",  # link-local, includes the metadata services of cloud providers
        "172.16.0.0/12",
        "192.0.0.0/24",  # protocol assignments
        "192.0.2.0/24",  # documentation; so are two of the networks below
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, and broadcast
    )
]
_GLOBAL_V6: Final = ipaddress.IPv6Network("2000::/3")
"""Global unicast addresses; all others are local, mapped, translated or reserved."""
_PRIVATE_V6: Final = [
    ipaddress.IPv6Network(text)
    for text in (
        "2001::/23",  # protocol assignments, Teredo, ORCHID
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4: an IPv4 address inside
        "3fff::/20",  # documentation
    )
]


def is_public(address: IpAddress) -> bool:
    """Return whether an address is public on the Internet."""
    if isinstance(address, ipaddress.IPv4Address):
        return not any(address in network for network in _PRIVATE_V4)
    if address.ipv4_mapped is not None:
        return is_public(address.ipv4_mapped)
    return address in _GLOBAL_V6 and not any(address in network for network in _PRIVATE_V6)


class AddressRules:
    """Addresses that may be reached.

    Args:
        allowed: Private addresses that may be reached: hosts, addresses or networks. A suffix
            `:PORT` limits an entry to that port.

    Raises:
        InvalidToolMeta: An entry is not a host, address or network.
    """

    def __init__(self, allowed: Iterable[str] = ()) -> None:
        self._hosts: set[tuple[str, int | None]] = set()
        self._networks: list[tuple[IpNetwork, int | None]] = []
        for text in allowed:
            host, port = _host_and_port(text)
            try:
                self._networks.append((ipaddress.ip_network(host, strict=False), port))
            except ValueError:
                if "/" in host or not host:
                    raise InvalidToolMeta(f"{text!r:.80} is no host, address or network") from None
                self._hosts.add((_plain(host), port))

    def allows(self, host: str, address: IpAddress, port: int) -> bool:
        """Return whether a connection may be made.

        Args:
            host: Host as written in the URL.
            address: Address that the host resolved to.
            port: Port of the connection.
        """
        if is_public(address):
            return True
        if {(_plain(host), port), (_plain(host), None)} & self._hosts:
            return True
        mapped = getattr(address, "ipv4_mapped", None) or address
        return any(
            mapped in network and allowed_port in (None, port)
            for network, allowed_port in self._networks
            if network.version == mapped.version
        )


def check_url(url: str, rules: AddressRules) -> str:
    """Return a URL if nothing in its text is forbidden.

    Raises:
        ToolRefused: The URL is not `http` or `https`, contains a user name, or names a private
            address.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise ToolRefused(f"{url!r:.120} is no address: {error}") from error
    if len(url) > MAX_URL or any(ord(character) < 33 for character in url):
        raise ToolRefused(f"{url!r:.120} is no address: it is too long, or has spaces in it")
    if parts.scheme not in ("http", "https") or not host:
        raise ToolRefused(f"{url!r:.120} is refused: write http://HOST/… or https://HOST/…")
    if "@" in parts.netloc or "\\" in url:
        raise ToolRefused("an address with a user in it is refused")
    literal = _literal(host)
    port = port or (443 if parts.scheme == "https" else 80)
    if literal is not None and not rules.allows(host, literal, port):
        raise _refused(host, port)
    if _plain(host).endswith("localhost") and not rules.allows(host, _LOOPBACK, port):
        raise _refused(host, port)
    return url


def checked_client(
    rules: AddressRules, timeout_s: float, follow_redirects: bool = False
) -> httpx.AsyncClient:
    """Return a client that checks every connection; the caller closes it.

    A forbidden request raises `ToolRefused`.

    Args:
        rules: Addresses that may be reached.
        timeout_s: Limit for connecting, for each write and for each read, in seconds.
        follow_redirects: Whether to follow up to `MAX_REDIRECTS` redirects.
    """
    return httpx.AsyncClient(
        transport=CheckedTransport(rules),
        timeout=timeout_s,
        follow_redirects=follow_redirects,
        max_redirects=MAX_REDIRECTS,
        trust_env=False,
    )


class CheckedTransport(httpx.AsyncHTTPTransport):
    """Transport of httpx that checks its connections.

    Args:
        rules: Addresses that may be reached.
    """

    def __init__(self, rules: AddressRules) -> None:
        super().__init__(trust_env=False)
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=ssl.create_default_context(),
            max_connections=100,
            max_keepalive_connections=20,
            keepalive_expiry=5.0,
            network_backend=_CheckedBackend(rules),
        )


class _CheckedBackend(httpcore.AsyncNetworkBackend):
    """Network backend that checks addresses before it connects."""

    def __init__(self, rules: AddressRules) -> None:
        self._rules = rules
        self._backend = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 # the interface has it
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        failed: Exception = httpcore.ConnectError(f"{host}:{port} has no address")
        for address in await resolved_and_allowed(self._rules, host, port):
            try:
                return await self._backend.connect_tcp(
                    str(address), port, timeout, local_address, socket_options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failed = error
        raise failed

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ASYNC109 # the interface has it
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        raise ToolRefused("sockets of this machine are not reached by an address")

    async def sleep(self, seconds: float) -> None:
        await self._backend.sleep(seconds)


async def resolved_and_allowed(rules: AddressRules, host: str, port: int) -> Sequence[IpAddress]:
    """Return the addresses of a host that may be connected to, at most `MAX_ADDRESSES`.

    Raises:
        ToolRefused: None of the addresses is allowed.
        httpcore.ConnectError: The host cannot be resolved.
    """
    usable = [one for one in await _resolved(host, port) if rules.allows(host, one, port)]
    if not usable:
        raise _refused(host, port)
    return usable[:MAX_ADDRESSES]


async def _resolved(host: str, port: int) -> Sequence[IpAddress]:
    """Return the addresses of a host; raise `httpcore.ConnectError` if it has none."""
    try:
        async with asyncio.timeout(RESOLVE_S):
            found = await asyncio.get_running_loop().getaddrinfo(
                host, port, type=socket.SOCK_STREAM
            )
    except (OSError, UnicodeError) as error:  # includes TimeoutError
        raise httpcore.ConnectError(f"{host} cannot be resolved: {error}") from error
    return [ipaddress.ip_address(str(one[4][0]).partition("%")[0]) for one in found]


_LOOPBACK: Final = ipaddress.IPv4Address("127.0.0.1")


def _literal(host: str) -> IpAddress | None:
    """Return the address that a host denotes; `None` if the host is a name.

    `inet_aton` accepts other notations of an address too, such as `127.1`, as the system does.
    """
    try:
        return ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        pass
    try:
        return ipaddress.IPv4Address(socket.inet_aton(_plain(host)))
    except (OSError, UnicodeError):
        return None


def _host_and_port(text: str) -> tuple[str, int | None]:
    """Split `HOST`, `HOST:PORT`, `[V6]:PORT` or a network."""
    host, port = text.strip(), ""
    if host.startswith("["):
        host, _, rest = host[1:].partition("]")
        port = rest.removeprefix(":")
    elif host.count(":") == 1:
        host, _, port = host.partition(":")
    if port and not (port.isascii() and port.isdigit() and int(port) < 65536):
        raise InvalidToolMeta(f"{text!r:.80} has no port that can be one")
    return host, int(port) if port else None


def _plain(host: str) -> str:
    return host.lower().rstrip(".").strip("[]")


def _refused(host: str, port: int) -> ToolRefused:
    return ToolRefused(
        f"{host:.120} port {port} is refused: it is no address of the Internet; an operator allows "
        "private ones by TOOL_AGENT_API_PRIVATE_HOSTS"
    )
