"""One address in, the ways to reach it out; what is no address says what to write instead."""

from __future__ import annotations

import pytest

from arp.client.address import parse_address
from arp.client.errors import InvalidAddress


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("unix:/run/user/7/arp.sock", "/run/user/7/arp.sock"),
        ("unix:relative/s", "relative/s"),
        ("unix:///run/s", "/run/s"),
        ("unix:/with space/ü", "/with space/ü"),
    ],
)
def test_a_unix_socket_is_a_path(url: str, path: str) -> None:
    address = parse_address(url)
    assert (address.kinds, address.socket_path) == (("unix",), path)
    assert address.is_loopback
    assert not address.input_url


@pytest.mark.parametrize(
    ("url", "target", "is_encrypted", "is_loopback"),
    [
        ("grpc:127.0.0.1:7001", "127.0.0.1:7001", False, True),
        ("grpc://localhost:7001/", "localhost:7001", False, True),
        ("grpcs:agents.example:443", "agents.example:443", True, False),
        ("grpc:[::1]:7001", "[::1]:7001", False, True),
    ],
)
def test_grpc_is_a_host_and_a_port(
    url: str, target: str, is_encrypted: bool, is_loopback: bool
) -> None:
    address = parse_address(url)
    assert (address.kinds, address.grpc_target) == (("grpc",), target)
    assert (address.is_encrypted, address.is_loopback) == (is_encrypted, is_loopback)


@pytest.mark.parametrize(
    ("url", "token_in_hello", "file_channel"),
    [
        ("http://h", False, "post"),
        ("ws://h", False, "post"),
        ("http+sse://h", False, "post"),
        ("grpc:h:1", False, "call"),
        ("unix:/s", True, "descriptors"),
        ("stdio:agent", False, None),
    ],
)
def test_an_address_says_where_the_token_goes_and_how_files_are_sent(
    url: str, token_in_hello: bool, file_channel: str | None
) -> None:
    """Source: protocol.md 6."""
    address = parse_address(url)
    assert (address.token_in_hello, address.file_channel) == (token_in_hello, file_channel)


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("unix:", "needs a path"),
        ("grpc:", "write grpc:HOST:PORT"),
        ("grpc:host", "write grpc:HOST:PORT"),
        ("grpcs:host:0", "write grpcs:HOST:PORT"),
        ("grpc:host:70000", "Port out of range"),
        ("grpc:host:1/path", "write grpc:HOST:PORT"),
        ("grpc:user@host:1", "write grpc:HOST:PORT"),
        ("ftp://h", "unix:PATH"),
    ],
)
def test_what_is_no_address_says_what_to_write(url: str, says: str) -> None:
    with pytest.raises(InvalidAddress, match=says):
        parse_address(url)
