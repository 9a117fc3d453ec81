"""Where a request comes from: an address that a client writes counts for nothing."""

from __future__ import annotations

from typing import Any

import pytest

from arp.access.client_address import TrustedProxies, counted_address

TRUSTED = TrustedProxies(["127.0.0.1", "10.0.0.0/8", "fd00::/8"])

XFF, FORWARDED = "x-forwarded-for", "forwarded"


def scope(client: str | None, *headers: tuple[str, str]) -> dict[str, Any]:
    raw = [(name.encode(), value.encode("latin-1")) for name, value in headers]
    return {"headers": raw, "client": (client, 50_000) if client is not None else None}


CASES: list[tuple[str | None, list[tuple[str, str]], str | None]] = [
    # not through a trusted proxy: the address of the connection
    ("203.0.113.9", [], "203.0.113.9"),
    ("203.0.113.9", [(XFF, "127.0.0.1")], "203.0.113.9"),
    ("::ffff:203.0.113.9", [], "203.0.113.9"),
    # through one: the last that is no trusted hop
    ("127.0.0.1", [(XFF, "203.0.113.9")], "203.0.113.9"),
    ("::ffff:127.0.0.1", [(XFF, "203.0.113.9")], "203.0.113.9"),
    ("127.0.0.1", [(XFF, "127.0.0.1, 203.0.113.9")], "203.0.113.9"),
    ("127.0.0.1", [(XFF, "198.51.100.1, 203.0.113.9, 10.1.2.3")], "203.0.113.9"),
    ("127.0.0.1", [(XFF, "127.0.0.1"), (XFF, "203.0.113.9"), (XFF, "10.1.2.3")], "203.0.113.9"),
    ("127.0.0.1", [(XFF, "203.0.113.9:4711")], "203.0.113.9"),
    ("127.0.0.1", [(XFF, "2001:db8::7")], "2001:db8::7"),
    ("fd00::1", [(XFF, "[2001:db8::7]:4711")], "2001:db8::7"),
    ("127.0.0.1", [(XFF, "::ffff:203.0.113.9")], "203.0.113.9"),
    # all are trusted: who began
    ("127.0.0.1", [(XFF, "127.0.0.1")], "127.0.0.1"),
    ("127.0.0.1", [(XFF, "10.0.0.5, 10.0.0.6")], "10.0.0.5"),
    # nobody is named
    ("127.0.0.1", [], None),
    ("127.0.0.1", [(XFF, "")], None),
    ("127.0.0.1", [(XFF, "127.0.0.1, unknown")], None),
    ("127.0.0.1", [(XFF, "127.0.0.1, ")], None),
    ("127.0.0.1", [(XFF, "127.0.0.1 203.0.113.9")], None),
    # a Unix socket: a proxy of this machine has it
    (None, [], None),
    (None, [(XFF, "203.0.113.9")], "203.0.113.9"),
    # RFC 7239
    ("127.0.0.1", [(FORWARDED, "for=203.0.113.9")], "203.0.113.9"),
    ("127.0.0.1", [(FORWARDED, 'for=127.0.0.1, For="[2001:db8::7]:80";proto=http')], "2001:db8::7"),
    (
        "127.0.0.1",
        [(FORWARDED, "proto=https;for=203.0.113.9;by=10.0.0.1, for=10.0.0.2")],
        "203.0.113.9",
    ),
    ("127.0.0.1", [(FORWARDED, "for=127.0.0.1, for=_hidden")], None),
    ("127.0.0.1", [(FORWARDED, "for=127.0.0.1, proto=https")], None),
    ("127.0.0.1", [(FORWARDED, 'for="127.0.0.1'), (FORWARDED, "for=203.0.113.9")], "203.0.113.9"),
    # the proxy wrote one of them, the client the other
    ("127.0.0.1", [(XFF, "203.0.113.9"), (FORWARDED, "for=127.0.0.1")], None),
    ("127.0.0.1", [(XFF, "127.0.0.1"), (FORWARDED, "for=203.0.113.9")], None),
    ("127.0.0.1", [(XFF, "203.0.113.9"), (FORWARDED, "for=203.0.113.9")], "203.0.113.9"),
]


@pytest.mark.parametrize(("client", "headers", "expected"), CASES)
def test_address_is_the_last_that_is_no_trusted_proxy(
    client: str | None, headers: list[tuple[str, str]], expected: str | None
) -> None:
    address = TRUSTED.client(scope(client, *headers))
    assert (str(address) if address is not None else None) == expected


@pytest.mark.parametrize("client", ["127.0.0.1", "203.0.113.9", None, "", "testclient"])
def test_forwarded_addresses_count_for_nothing_without_a_trusted_proxy(client: str | None) -> None:
    forged = scope(client, (XFF, "198.51.100.1"), (FORWARDED, "for=198.51.100.1"))
    assert TrustedProxies().client(forged) == TrustedProxies().client(scope(client))


@pytest.mark.parametrize(
    ("client", "headers", "with_proxies", "without"),
    [
        ("127.0.0.1", [], True, False),
        ("127.0.0.1", [(XFF, "203.0.113.9")], True, False),
        ("127.0.0.1", [(XFF, "127.0.0.1")], False, False),
        ("203.0.113.9", [(XFF, "127.0.0.1")], True, True),
        (None, [], True, False),
        ("testclient", [], True, False),
    ],
)
def test_what_a_trusted_proxy_does_not_tell_is_from_elsewhere(
    client: str | None, headers: list[tuple[str, str]], with_proxies: bool, without: bool
) -> None:
    request = scope(client, *headers)
    assert TRUSTED.is_elsewhere(request) is with_proxies
    assert TrustedProxies().is_elsewhere(request) is without


# -- as it is counted ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("host", "counted"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:aaaa::1", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:bbbb::9", "2001:db8:1:2::/64"),
        ("2001:db8:1:3::1", "2001:db8:1:3::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("testclient", "testclient"),
    ],
)
def test_address_of_version_six_counts_with_its_network(host: str, counted: str) -> None:
    """Whoever has one of these has all of them."""
    assert counted_address(host) == counted
    assert TrustedProxies().counted({"client": (host, 1)}) == counted


def test_unix_socket_has_no_address() -> None:
    assert TrustedProxies().counted({"client": None}) == TrustedProxies().counted({}) == ""
