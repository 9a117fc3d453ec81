"""What a caller gives is checked where it is given, and says what to write instead."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from arp.client.address import Address, parse_address
from arp.client.errors import InvalidAddress
from arp.client.options import Backoff, LinkSettings, check_names, link_settings, renderer_hello
from arp.protocol.catalog import CATALOG
from arp.protocol.errors import InvalidMessage
from arp.protocol.messages import RendererCapabilities, Viewport


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
    with pytest.raises(InvalidAddress, match="is only for stdio:"):
        parse_address("http://h", ["python"])


def test_ceiling_doubles_from_1_to_16_seconds() -> None:
    backoff = Backoff(draw=lambda: 1.0)
    assert [backoff.delay_s(n) for n in range(7)] == [1, 2, 4, 8, 16, 16, 16]
    assert backoff.delay_s(10**9) == 16


def test_jitter_is_full() -> None:
    assert Backoff(draw=lambda: 0.0).delay_s(3) == 0
    assert Backoff(draw=lambda: 0.25).delay_s(3) == 2


def test_bounds_can_be_set() -> None:
    backoff = Backoff(first_s=0.5, most_s=3, draw=lambda: 1.0)
    assert [backoff.delay_s(n) for n in range(4)] == [0.5, 1, 2, 3]


def test_renderer_shows_all_core_components_unless_told_otherwise() -> None:
    hello = renderer_hello({})
    assert hello.capabilities.versions() == dict.fromkeys(CATALOG, 1)
    assert "resume" in hello.capabilities.features
    assert "frame-ack" not in hello.capabilities.features
    assert hello.resume is None


def test_hello_says_what_was_set_and_never_the_token() -> None:
    hello = renderer_hello(
        {
            "session_id": "s 1",
            "capabilities": RendererCapabilities(["text"], ["frame-ack"]),
            "viewport": Viewport(80, 24),
            "locale": "de-CH",
            "time_zone": "Europe/Zurich",
            "theme": "dark",
            "token": "secret",
        }
    )
    assert msgspec.to_builtins(hello) == {
        "v": 1,
        "type": "hello",
        "session_id": "s 1",
        "capabilities": {"components": ["text"], "features": ["frame-ack"], "limits": {}},
        "viewport": {"width": 80, "height": 24},
        "locale": "de-CH",
        "time_zone": "Europe/Zurich",
        "theme": "dark",
    }


@pytest.mark.parametrize(
    "options",
    [
        {"session_id": ""},
        {"session_id": "ä"},
        {"session_id": "x" * 129},
        {"locale": "x" * 65},
        {"viewport": Viewport(-1, 5)},
    ],
)
def test_value_that_a_server_would_refuse_is_refused_here(options: Any) -> None:
    with pytest.raises(InvalidMessage, match=rf"message\.{next(iter(options))}"):
        renderer_hello(options)


def test_token_travels_in_a_header() -> None:
    assert link_settings({"token": "abc"}).headers() == {"Authorization": "Bearer abc"}
    assert link_settings({}).headers() == {}
    assert link_settings({"token": ""}).headers() == {}


@pytest.mark.parametrize("token", ["a b", "a\r\nX-Evil: 1", "ü"])
def test_token_that_no_header_can_carry_is_refused_without_repeating_it(token: str) -> None:
    with pytest.raises(InvalidMessage, match="printable ASCII") as refused:
        link_settings({"token": token})
    assert token not in str(refused.value)


def test_token_is_not_in_the_repr() -> None:
    assert "secret" not in repr(LinkSettings(token="secret"))
    assert repr(LinkSettings()) == "LinkSettings(encoding='json', token=None)"


def test_unknown_option_is_refused_as_an_unknown_keyword_is() -> None:
    check_names({"token": "x", "locale": "de"})
    with pytest.raises(TypeError, match=r"unknown options tokn; there are .*token"):
        check_names({"tokn": "x"})
