"""One address for each client, however it is written."""

from __future__ import annotations

import pytest

from arp.server.counted_address import counted_address, peer_address


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
    assert peer_address({"client": (host, 1)}) == counted


def test_unix_socket_has_no_address() -> None:
    assert peer_address({"client": None}) == peer_address({}) == ""
