from __future__ import annotations

from typing import Any

import msgspec
import pytest

from arp.client.options import Access, access, check_names, renderer_hello
from arp.protocol.errors import InvalidMessage
from arp.protocol.messages import RendererCapabilities, Viewport

CORE = {
    *("text", "markdown", "status-card", "table", "code-block", "diff", "key-value", "progress"),
    *("chart", "image", "product-cards", "form", "confirm", "choices", "text-input"),
    *("group", "tabs", "split"),
}


def test_renderer_shows_all_core_components_unless_told_otherwise() -> None:
    hello = renderer_hello({})
    assert hello.capabilities.versions() == dict.fromkeys(CORE, 1)
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
    assert access({"token": "abc"}).headers() == {"Authorization": "Bearer abc"}
    assert access({}).headers() == {}
    assert access({"token": ""}).headers() == {}


@pytest.mark.parametrize("token", ["a b", "a\r\nX-Evil: 1", "ü"])
def test_token_that_no_header_can_carry_is_refused_without_repeating_it(token: str) -> None:
    with pytest.raises(InvalidMessage, match="printable ASCII") as refused:
        access({"token": token})
    assert token not in str(refused.value)


def test_token_is_not_in_the_repr() -> None:
    assert "secret" not in repr(Access(token="secret"))
    assert repr(Access()) == "Access(encoding='json', token=None)"


def test_unknown_option_is_refused_as_an_unknown_keyword_is() -> None:
    check_names({"token": "x", "locale": "de"})
    with pytest.raises(TypeError, match=r"unknown options tokn; there are .*token"):
        check_names({"tokn": "x"})
