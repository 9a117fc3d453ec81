"""A cookie for files ends by itself, and fits the place where the app is mounted."""

from __future__ import annotations

from typing import Any

from arp.access.principal import Principal
from arp.server.login.file_cookie import LIFE_S, FileCookie

NOW_S = 1_800_000_000.0


def scope(cookie: str, path: str = "/_api/blobs/x", method: str = "GET", **more: Any) -> Any:
    """A request with a cookie."""
    headers = [(b"cookie", cookie.encode())]
    return {"type": "http", "path": path, "method": method, "headers": headers, **more}


def test_cookie_ends_after_an_hour() -> None:
    cookies = FileCookie()
    value = cookies.header(scope(""), Principal("ada"), NOW_S).partition(";")[0]
    assert cookies.principal(scope(value), NOW_S + LIFE_S - 1) == Principal("ada")
    assert cookies.principal(scope(value), NOW_S + LIFE_S) is None


def test_cookie_of_another_server_or_process_opens_nothing() -> None:
    value = FileCookie().header(scope(""), Principal("ada"), NOW_S).partition(";")[0]
    assert FileCookie().principal(scope(value), NOW_S) is None


def test_cookie_fits_the_mount_and_the_scheme() -> None:
    cookies = FileCookie()
    mounted = scope("", root_path="/agent", scheme="https")
    told = cookies.header(mounted, Principal("ä"), NOW_S)
    assert "; Path=/agent/_api/blobs; " in told
    assert told.endswith("; Secure")
    value = told.partition(";")[0]
    below = scope(value, "/agent/_api/blobs/x", root_path="/agent")
    assert cookies.principal(below, NOW_S) == Principal("ä")


def test_cookie_opens_reading_of_files_alone() -> None:
    cookies = FileCookie()
    value = cookies.header(scope(""), Principal(), NOW_S).partition(";")[0]
    assert cookies.principal(scope(value, method="POST"), NOW_S) is None
    assert cookies.principal(scope(value, "/_api/chats"), NOW_S) is None
    assert cookies.principal(scope(value, method="HEAD"), NOW_S) == Principal()
