"""What a hook that authenticates sees of a request."""

from __future__ import annotations

from typing import Any

import pytest

from arp.access.incoming import IncomingConnection


def request(*headers: tuple[str, str], **more: Any) -> IncomingConnection:
    raw = [(name.encode(), value.encode("utf-8")) for name, value in headers]
    return IncomingConnection({"type": "http", "headers": raw, "path": "/", **more})


def test_headers_are_found_in_any_case() -> None:
    """RFC 9110, 5.1."""
    headers = request(("x-user", "ada")).headers
    assert (headers["X-User"], headers.get("x-user"), headers.get("x")) == ("ada", "ada", None)
    assert dict(headers) == {"x-user": "ada"}
    assert len(headers) == 1


def test_several_headers_of_one_name_are_one_list() -> None:
    """RFC 9110, 5.3: none hides another, so a client's cannot stand for a proxy's."""
    headers = request(("x-user", "eve"), ("x-user", "ada"), ("cookie", "a=1"), ("cookie", "b=2"))
    assert headers.headers == {"x-user": "eve, ada", "cookie": "a=1; b=2"}
    assert headers.cookies == {"a": "1", "b": "2"}


@pytest.mark.parametrize(
    ("header", "cookies"),
    [
        ("a=1", {"a": "1"}),
        (' a = "x y" ; b=', {"a": "x y", "b": ""}),
        ("a=1; bad; b[]={}; c=x=y; =v", {"a": "1", "b[]": "{}", "c": "x=y", "": "v"}),
        ("a=1; a=2", {"a": "2"}),
        ('a="', {"a": '"'}),
        ("", {}),
    ],
)
def test_cookies_are_read_past_those_that_are_none(header: str, cookies: dict[str, str]) -> None:
    """One odd cookie of another application must not hide the others."""
    assert request(("cookie", header)).cookies == cookies


@pytest.mark.parametrize(
    ("header", "token"),
    [
        ("Bearer a", "a"),
        ("bearer  pässwört ", "pässwört"),
        ("Bearer", ""),
        ("Basic a", ""),
        ("", ""),
    ],
)
def test_token_is_that_of_a_bearer(header: str, token: str) -> None:
    """RFC 6750, 2.1."""
    assert request(("authorization", header)).token == token


def test_token_of_a_hello_stands_for_that_of_the_header() -> None:
    """Any text may come in a hello."""
    scope = {"type": "websocket", "headers": [(b"authorization", b"Bearer old")]}
    connection = IncomingConnection(scope, token="ключ")
    assert (connection.token, connection.headers["authorization"]) == ("ключ", "Bearer ключ")
    assert connection.kind == "websocket"


def test_query_and_path_are_those_below_the_mount() -> None:
    """A mounted app sees what its own routes see."""
    connection = request(path="/agent/_api/chats", root_path="/agent", query_string=b"a=1&a=2&b=")
    assert connection.path == "/_api/chats"
    assert connection.query == {"a": "2", "b": ""}
    assert connection.scope["root_path"] == "/agent"


def test_what_a_way_in_does_not_have_is_empty() -> None:
    """A Unix socket has neither headers nor a path."""
    connection = IncomingConnection({})
    assert (connection.path, connection.client, connection.token, connection.kind) == ("",) * 4
    assert (connection.headers, connection.cookies, connection.query) == ({}, {}, {})
