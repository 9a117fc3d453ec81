from __future__ import annotations

import pytest

from arp.client.address import Address, parse_address
from arp.client.errors import InvalidAddress


@pytest.mark.parametrize(
    ("url", "endpoint", "kinds"),
    [
        ("http://h:1", "h:1/_arp/v1", ("websocket", "sse")),
        ("http://h:1/", "h:1/_arp/v1", ("websocket", "sse")),
        ("http://h:1/mounted/here/", "h:1/mounted/here/_arp/v1", ("websocket", "sse")),
        ("http://h/x/_arp/v1", "h/x/_arp/v1", ("websocket", "sse")),
        ("http+sse://h", "h/_arp/v1", ("sse",)),
        ("ws://h", "h/_arp/v1", ("websocket",)),
        ("ws://h:1/_arp/v1", "h:1/_arp/v1", ("websocket",)),
        ("ws://h:1/elsewhere", "h:1/elsewhere", ("websocket",)),
        ("http://[::2]:80", "[::2]:80/_arp/v1", ("websocket", "sse")),
    ],
)
def test_each_scheme_gives_its_transports_and_urls(
    url: str, endpoint: str, kinds: tuple[str, ...]
) -> None:
    address = parse_address(url)
    assert address.kinds == kinds
    assert address.websocket_url == f"ws://{endpoint}"
    assert address.events_url == f"http://{endpoint}/events"
    assert address.input_url == f"http://{endpoint}/input"


@pytest.mark.parametrize("url", ["https://h", "wss://h", "https+sse://h"])
def test_secure_schemes_stay_secure(url: str) -> None:
    address = parse_address(url)
    assert address.websocket_url == "wss://h/_arp/v1"
    assert address.events_url == "https://h/_arp/v1/events"


def test_query_is_kept_and_fragment_is_not() -> None:
    address = parse_address("http://h/a?tenant=7#top")
    assert address.websocket_url == "ws://h/a/_arp/v1?tenant=7"
    assert address.events_url == "http://h/a/_arp/v1/events?tenant=7"


def test_transport_overrides_the_scheme() -> None:
    assert parse_address("http://h", transport="sse").kinds == ("sse",)
    assert parse_address("ws://h", transport="sse").kinds == ("sse",)
    assert parse_address("http://h", transport="websocket").kinds == ("websocket",)


@pytest.mark.parametrize(
    ("host", "is_loopback"),
    [
        ("localhost", True),
        ("app.localhost", True),
        ("127.9.9.9", True),
        ("[::1]", True),
        ("10.0.0.1", False),
        ("localhost.example.com", False),
    ],
)
def test_loopback_is_known_by_name_and_number(host: str, is_loopback: bool) -> None:
    assert parse_address(f"http://{host}:8080").is_loopback is is_loopback


def test_stdio_takes_a_command() -> None:
    assert parse_address("stdio:", ["python", "a b.py"]) == Address(
        ("stdio",), command=("python", "a b.py")
    )


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("localhost:8080", "write http://HOST:PORT"),
        ("ftp://h", "not an address"),
        ("http://", "not an address"),
        ("http://h:notaport", "http://h:notaport: Port"),
        ("http://h:99999", "Port out of range"),
        ("http://[::1", "Invalid IPv6"),
        ("", "not an address"),
    ],
)
def test_what_is_no_address_is_refused_with_what_to_write(url: str, said: str) -> None:
    with pytest.raises(InvalidAddress, match=said):
        parse_address(url)


def test_secret_in_the_address_is_refused_without_repeating_it() -> None:
    with pytest.raises(InvalidAddress, match="token=") as refused:
        parse_address("https://user:hunter2@h/")
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize("command", [None, [], "python agent.py"])
def test_stdio_without_a_command_list_is_refused(command: list[str] | str | None) -> None:
    with pytest.raises(InvalidAddress, match=r"command=\[program"):
        parse_address("stdio:", command)


def test_command_with_another_scheme_is_refused() -> None:
    with pytest.raises(InvalidAddress, match="goes with stdio: alone"):
        parse_address("http://h", ["python"])
