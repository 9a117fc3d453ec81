"""What `Access` takes, and what it refuses where it is written."""

from __future__ import annotations

import re
from typing import Any

import pytest

from arp.access.settings import Access, check_names


@pytest.mark.parametrize(
    ("access", "is_refused"),
    [
        (Access(hosts=("agents.example",)), True),
        (Access(hosts=("127.0.0.1", "Agents.Example")), True),
        (Access(hosts=("192.168.1.7",)), True),
        (Access(hosts=("localhost.example",)), True),
        (Access(hosts=("localhost", "127.0.0.1", "[::1]", "app.localhost")), False),
        (Access(hosts=("agents.example",), token="t"), False),
        (Access(hosts=("agents.example",), authenticate=lambda _: "guest"), False),
        (Access(hosts=("agents.example",), trusted_proxies=("10.0.0.1",)), False),
        (Access(), False),
    ],
)
def test_name_that_others_can_reach_needs_something_that_keeps_them_out(
    access: Access, is_refused: bool
) -> None:
    """Behind a proxy on this machine everybody comes from this machine."""
    if is_refused:
        with pytest.raises(ValueError, match=r"can be reached by others: set --token .*ARP_TOKEN"):
            check_names(access)
    else:
        check_names(access)


@pytest.mark.parametrize(
    ("origin", "is_refused"),
    [
        ("https://page.example", True),
        ("https://page.example:8443", True),
        ("https://localhost.example", True),
        ("https://127.0.0.1.example", True),
        ("null", True),
        ("http://localhost:5173", False),
        ("http://127.0.0.1:5173/", False),
        ("http://[::1]:5173", False),
        ("http://[::1]", False),
        ("https://app.localhost", False),
    ],
)
def test_origin_of_others_needs_something_that_keeps_them_out(
    origin: str, is_refused: bool
) -> None:
    """Such a page runs in a browser of this machine, so a trusted proxy changes nothing."""
    opened = Access(origins=(origin,), trusted_proxies=("127.0.0.1",))
    if is_refused:
        with pytest.raises(ValueError, match=r"pages of others could use .*: set --token"):
            check_names(opened)
    else:
        check_names(opened)
    check_names(Access(origins=(origin,), token="t"))
    check_names(opened, has_tokens=True)


TEXT: Any = "x.example"
"""One text, where a tuple belongs."""
NUMBER: Any = 1000
"""One number, where a tuple belongs."""


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Access(token=""), "Access.token: expected a text without spaces and"),
        (lambda: Access(token="a b"), "Access.token: expected a text without spaces and"),
        (lambda: Access(hosts=("http://x",)), "Access.hosts: expected a host name without scheme"),
        (lambda: Access(hosts=("x:80",)), "without scheme and port, as agents.example.org, got 'x"),
        (lambda: Access(hosts=TEXT), "Access.hosts: expected a tuple of texts, got 'x.exa"),
        (lambda: Access(origins=("*",)), "Access.origins: expected an origin without a path"),
        (lambda: Access(origins=("x.example",)), "got 'x.example'"),
        (lambda: Access(origins=("https://x.example/a",)), "got 'https://x.example/a'"),
        (lambda: Access(trusted_proxies=("proxy",)), "Access.trusted_proxies: expected an address"),
        (lambda: Access(trusted_proxies=("10.0.0.256",)), "as 10.0.0.7 or 10.0.0.0/8, got '10.0"),
        (lambda: Access(trusted_proxies=("10.0.0.0/40",)), "Access.trusted_proxies: expected an"),
        (lambda: Access(trusted_proxies=TEXT), "Access.trusted_proxies: expected a tuple of texts"),
        (lambda: Access(uids=NUMBER), "Access.uids: expected a tuple of numbers, got 1000"),
        (lambda: Access(uids=(-1,)), "Access.uids: expected the number of a user"),
        (lambda: Access(uids=("ada",)), "as `id -u` prints it, got 'ada'"),  # type: ignore[arg-type]
    ],
)
def test_access_that_would_let_nobody_in_is_refused_at_once(make: Any, says: str) -> None:
    """style.md: what was wrong, where, and what to do."""
    with pytest.raises(ValueError, match=re.escape(says)):
        make()


@pytest.mark.parametrize(
    "origin",
    [
        "https://example.org",
        "https://example.org/",
        "http://localhost:5173",
        "http://[::1]:8080",
        "tauri://localhost",
        "chrome-extension://abcdefghijklmnop",
        "null",
    ],
)
def test_origins_that_pages_have_are_taken(origin: str) -> None:
    """Web pages, desktop shells, extensions, sandboxed frames."""
    assert Access(origins=(origin,)).origins == (origin,)
