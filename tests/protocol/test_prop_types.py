"""The bounds of strings in props: addresses, colours, languages (protocol.md 3)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from arp.protocol.prop_types import Color, ImageSource, Language, Link, Ratio

BLOB = "/_api/blobs/0f3a-b.png"
ADDRESSES = ["http://a", "https://a.example/b?c=d#e", "HTTPS://A.example", "https://ä.example/ü"]
DATA = ["data:image/png;base64,aGk=", "data:image/webp;base64,aGkh", "data:image/gif;base64,YQ=="]

HOSTILE = [
    "",
    "javascript:alert(1)",
    "JaVaScRiPt:alert(1)",
    "java\nscript:alert(1)",
    " https://a",
    "https://a\n",
    "https://a b",
    "https://a\u202eb",
    "https://a\u200bb",
    'https://a"b',
    "https://a<b",
    "https://a\\b",
    "https://",
    "vbscript:x",
    "file:///etc/passwd",
    "ftp://a",
    "//a.example/b",
    "/b",
    "b.png",
    "data:text/html;base64,aGk=",
    "data:image/svg+xml;base64,aGk=",
    "data:image/png,raw",
    "data:image/png;base64,aGk=\n",
    "blob:https://a",
    "/_api/blobs/",
    "/_api/blobs/..",
    "/_api/blobs/a/../b",
    "/_api/blobs/a?b",
    "/_api/chats/a",
]


def takes(kind: Any, value: str) -> bool:
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return False
    return True


@pytest.mark.parametrize("value", [*ADDRESSES, BLOB, "mailto:a@b.example", "MAILTO:a@b.example"])
def test_a_link_leads_to_the_web_to_mail_or_to_a_blob(value: str) -> None:
    assert takes(Link, value)


@pytest.mark.parametrize("value", [*ADDRESSES, BLOB, *DATA])
def test_an_image_comes_from_the_web_from_data_or_from_a_blob(value: str) -> None:
    assert takes(ImageSource, value)


@pytest.mark.parametrize("value", HOSTILE)
def test_every_other_address_is_refused(value: str) -> None:
    assert not takes(Link, value)
    assert not takes(ImageSource, value)


def test_a_link_is_no_data_and_an_image_no_mail() -> None:
    assert not takes(Link, DATA[0])
    assert not takes(ImageSource, "mailto:a@b.example")


@pytest.mark.parametrize(
    "value", ["#fff", "#36A2EB", "#36a2ebcc", "teal", "chart-1", "rgb(1, 2, 3)", "hsla(9,5%,5%,.5)"]
)
def test_a_colour_is_hex_a_name_or_a_function_of_numbers(value: str) -> None:
    assert takes(Color, value)


@pytest.mark.parametrize(
    "value",
    [
        "",
        "#ff",
        "#fffffffff",
        "red;",
        "red\n",
        "url(//a.example/b)",
        "expression(1)",
        "rgb(url(x))",
        "var(--a)",
        "r" * 33,
    ],
)
def test_a_colour_is_nothing_else(value: str) -> None:
    assert not takes(Color, value)


@pytest.mark.parametrize("value", ["python", "C++", "c#", "objective-c", "f" * 32])
def test_a_language_is_a_short_name(value: str) -> None:
    assert takes(Language, value)


@pytest.mark.parametrize("value", ["", "a b", 'x" onload="', "../x", "python\n", "f" * 33])
def test_a_language_is_nothing_else(value: str) -> None:
    assert not takes(Language, value)


def test_a_ratio_is_two_numbers_from_1_to_99() -> None:
    assert takes(Ratio, "1:99")
    assert not any(takes(Ratio, value) for value in ("0:1", "1:100", "1", "1:2:3", "1:2\n"))
