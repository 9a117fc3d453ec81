"""Nothing but public addresses is reached, in whatever form a private one comes."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpcore
import httpx
import pytest

from arp.tools.errors import InvalidToolMeta, ToolRefused
from arp.tools.run.addresses import AddressRules, check_url, checked_client, is_public

NETWORKS = [
    *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16"),
    *("172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16"),
    *("198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4"),
]
"""Networks of which the first, the last and a middle address are tried, in each form."""

ODD = [
    *("localhost", "LOCALHOST", "localhost.", "foo.localhost", "127.1", "127.0.1", "0", "0.0"),
    *(
        "0x7f.1",
        "0x7f.0.0.1",
        "0x7F000001",
        "017700000001",
        "0177.0.0.1",
        "0177.0.0.01",
        "127.0.0.1.",
    ),
    *(
        "2130706433",
        "3232235777",
        "0xa9fea9fe",
        "2852039166",
        "169.254.169.254",
        "0251.0376.0251.0376",
    ),
    *("[::]", "[::1]", "[0:0:0:0:0:0:0:1]", "[::ffff:7f00:1]", "[::127.0.0.1]", "[fe80::1]"),
    *("[fc00::1]", "[fd12:3456:789a::1]", "[fec0::1]", "[ff02::1]", "[100::1]", "[2001:db8::1]"),
    *("[2001::1]", "[2001:10::1]", "[2002:7f00:1::]", "[2002:c0a8:101::1]", "[3fff::1]"),
    *("[64:ff9b::7f00:1]", "[64:ff9b:1::a00:1]", "[5f00::1]", "[4000::1]", "[::ffff:0:127.0.0.1]"),
]
"""Further forms of private addresses, as a URL has them."""


def forms() -> list[str]:
    """Return private addresses as URLs can have them."""
    found = list(ODD)
    for text in NETWORKS:
        network = ipaddress.IPv4Network(text)
        for number in (0, network.num_addresses // 2, network.num_addresses - 1):
            address = network[number]
            found += [
                str(address),
                str(int(address)),
                hex(int(address)),
                ".".join(f"0{part:o}" for part in address.packed),
                f"[::ffff:{address}]",
                f"[64:ff9b::{address}]",
                f"[2002:{address.packed[:2].hex()}:{address.packed[2:].hex()}::1]",
            ]
    return found


def test_there_are_more_than_200_forms() -> None:
    assert len(set(forms())) > 300


@pytest.mark.parametrize("allow", [AddressRules(), AddressRules(["10.20.30.40", "build.internal"])])
async def test_no_form_of_a_private_address_is_connected_to(
    allow: AddressRules, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The text is not looked at here: what the socket would connect to is."""

    async def connected(self: Any, host: str, port: int, *rest: Any) -> Any:
        raise AssertionError(f"connected to {host}")

    monkeypatch.setattr("httpcore.AnyIOBackend.connect_tcp", connected)
    reached = []
    async with checked_client(allow, 2) as client:
        for form in forms():
            try:
                await client.get(f"http://{form}/")
            except (ToolRefused, httpx.ConnectError, httpx.InvalidURL):
                continue
            except AssertionError as error:
                reached.append((form, str(error)))
    assert reached == []


def test_what_can_be_seen_in_a_url_is_refused_before() -> None:
    passed = []
    for form in forms():
        try:
            passed.append(check_url(f"http://{form}:8080/x", AddressRules()))
        except ToolRefused:
            continue
    assert passed == []


@pytest.mark.parametrize(
    "url",
    [
        *("ftp://example.com/", "file:///etc/passwd", "gopher://example.com/", "example.com", ""),
        *("http://", "http:///x", "https://user@example.com/", "https://a:b@example.com/"),
        *(
            "http://example.com\\@127.0.0.1/",
            "http://example.com/ x",
            "http://example.com/\r\nX: y",
        ),
        *("http://[::1", "http://example.com:99999/", "unix:///run/docker.sock", "//example.com/"),
        "http://example.com/" + "x" * 3000,
    ],
)
def test_what_is_no_address_of_http_is_refused(url: str) -> None:
    with pytest.raises(ToolRefused):
        check_url(url, AddressRules())


@pytest.mark.parametrize(
    "address", ["1.1.1.1", "93.184.215.14", "2606:4700::1111", "9.255.255.255"]
)
def test_public_addresses_are_public(address: str) -> None:
    assert is_public(ipaddress.ip_address(address))


def test_an_operator_allows_a_host_a_network_or_one_port() -> None:
    rules = AddressRules(["build.internal", "10.0.0.0/8", "127.0.0.1:8080", "[::1]:9000"])
    ten, one = ipaddress.ip_address("10.1.2.3"), ipaddress.ip_address("127.0.0.1")
    six = ipaddress.ip_address("::1")
    assert rules.allows("x.example", ten, 1)
    assert rules.allows("Build.Internal.", ipaddress.ip_address("192.168.1.1"), 1)
    assert not rules.allows("other.internal", ipaddress.ip_address("192.168.1.1"), 1)
    assert rules.allows("127.0.0.1", one, 8080)
    assert not rules.allows("127.0.0.1", one, 8081)
    assert rules.allows("localhost", six, 9000)
    assert not rules.allows("localhost", six, 9001)
    assert rules.allows("x", ipaddress.ip_address("::ffff:10.1.2.3"), 1)


@pytest.mark.parametrize("text", ["10.0.0.0/99", "", "host:port", "host:99999"])
def test_what_is_no_host_cannot_be_allowed(text: str) -> None:
    with pytest.raises(InvalidToolMeta):
        AddressRules([text])


@asynccontextmanager
async def server(answer: bytes) -> AsyncIterator[tuple[int, list[bytes]]]:
    """A server of 127.0.0.1 that gives one answer; its port, and what it was asked."""
    asked: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(answer)
        await writer.drain()
        writer.close()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield listening.sockets[0].getsockname()[1], asked
    finally:
        listening.close()
        await listening.wait_closed()


def ok(text: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(text), text)


async def test_an_allowed_server_answers() -> None:
    async with server(ok(b"hello")) as (port, asked):
        async with checked_client(AddressRules([f"127.0.0.1:{port}"]), 5) as client:
            answer = await client.get(f"http://127.0.0.1:{port}/x")
        assert answer.text == "hello"
        assert len(asked) == 1


async def test_a_redirect_to_a_private_address_is_not_followed() -> None:
    async with server(ok(b"secret")) as (inner, asked):
        location = (
            b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:%d/\r\ncontent-length: 0\r\n\r\n"
        )
        async with server(location % inner) as (outer, _):
            rules = AddressRules([f"127.0.0.1:{outer}"])
            async with checked_client(rules, 5, follow_redirects=True) as client:
                with pytest.raises(ToolRefused, match=f"127.0.0.1 port {inner}"):
                    await client.get(f"http://127.0.0.1:{outer}/")
        assert asked == []


async def test_a_name_that_resolves_to_something_else_the_second_time_is_not_reached(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Rebinding: the address that was checked is the one that is connected to."""
    answers = [["93.184.215.14"], ["127.0.0.1"]]
    asked = []
    connected = []

    async def resolve(self: Any, host: str, port: int, **rest: Any) -> Any:
        asked.append(host)
        return [(socket.AF_INET, 1, 6, "", (one, port)) for one in answers[min(len(asked), 2) - 1]]

    async def connect(self: Any, host: str, port: int, *rest: Any) -> Any:
        connected.append(host)
        raise httpcore.ConnectError("nobody is there")

    monkeypatch.setattr("asyncio.base_events.BaseEventLoop.getaddrinfo", resolve)
    monkeypatch.setattr("httpcore.AnyIOBackend.connect_tcp", connect)
    async with checked_client(AddressRules(), 2) as client:
        with pytest.raises(httpx.ConnectError):
            await client.get("http://rebinding.example/")
        with pytest.raises(ToolRefused):
            await client.get("http://rebinding.example/")
    assert connected == ["93.184.215.14"]


async def test_of_several_addresses_the_private_ones_are_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    connected = []

    async def resolve(self: Any, host: str, port: int, **rest: Any) -> Any:
        return [(socket.AF_INET, 1, 6, "", (one, port)) for one in ("127.0.0.1", "1.1.1.1")]

    async def connect(self: Any, host: str, port: int, *rest: Any) -> Any:
        connected.append(host)
        raise httpcore.ConnectError("nobody is there")

    monkeypatch.setattr("asyncio.base_events.BaseEventLoop.getaddrinfo", resolve)
    monkeypatch.setattr("httpcore.AnyIOBackend.connect_tcp", connect)
    async with checked_client(AddressRules(), 2) as client:
        with pytest.raises(httpx.ConnectError):
            await client.get("http://both.example/")
    assert connected == ["1.1.1.1"]


async def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async with server(ok(b"by the proxy")) as (port, asked):
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{port}")
        async with checked_client(AddressRules(), 2) as client:
            with pytest.raises(ToolRefused):
                await client.get("http://10.0.0.1/")
        assert asked == []
