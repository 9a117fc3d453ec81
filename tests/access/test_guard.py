"""Who may come in: one function decides for every route, on the raw request (T01 to T04, T09)."""

from __future__ import annotations

import os
from typing import Any

import pytest

from arp.access.guard import Guard
from arp.access.incoming import IncomingConnection
from arp.access.principal import Principal, User
from arp.access.settings import Access

Headers = list[tuple[bytes, bytes]]


def scope(*headers: tuple[str, str]) -> dict[str, Any]:
    raw: Headers = [(name.encode(), value.encode("latin-1")) for name, value in headers]
    return {"type": "http", "headers": raw, "path": "/", "method": "GET"}


def status(guard: Guard, *headers: tuple[str, str]) -> int | None:
    refused = guard.check_source(scope(*headers))
    return refused.status if refused else None


HOSTS = [
    ("127.0.0.1", None),
    ("127.0.0.1:8080", None),
    ("localhost:1", None),
    ("LOCALHOST:8080", None),
    ("[::1]:8080", None),
    ("[::1]", None),
    ("agent.example", None),
    ("agent.example:443", None),
    ("attacker.test", 421),
    ("attacker.test:8080", 421),
    ("localhost.evil", 421),
    ("localhost.", 421),
    ("127.0.0.1.evil", 421),
    ("2130706433", 421),
    ("0x7f000001", 421),
    ("0177.0.0.1", 421),
    ("127.1", 421),
    ("0.0.0.0:8080", 421),
    ("[::ffff:127.0.0.1]", 421),
    ("::1", 421),
    ("", 421),
    (":8080", 421),
    ("127.0.0.1:", 421),
    ("127.0.0.1:80:80", 421),
    ("127.0.0.1:x", 421),
    ("127.0.0.1:٨٠".encode().decode("latin-1"), 421),
    ("a/?x=", 421),
    ("127.0.0.1/evil", 421),
    ("user@127.0.0.1", 421),
    ("127.0.0.1 ", 421),
    ("agent.example.evil", 421),
]


@pytest.mark.parametrize(("host", "refused"), HOSTS)
def test_host_must_be_one_of_ours(host: str, refused: int | None) -> None:
    """T03, T04: a rebound DNS name is none; on by default, also on loopback."""
    guard = Guard(Access(hosts=("Agent.Example",)))
    assert status(guard, ("host", host)) == refused


@pytest.mark.parametrize("hosts", [[], ["127.0.0.1", "127.0.0.1"], ["127.0.0.1", "evil"]])
def test_host_must_stand_there_exactly_once(hosts: list[str]) -> None:
    """T03: none, or two of them."""
    assert status(Guard(Access()), *[("host", host) for host in hosts]) == 421


ORIGINS = [
    ("http://127.0.0.1:8080", None),
    ("https://127.0.0.1:8080", None),
    ("HTTP://127.0.0.1:8080", None),
    ("https://page.example", None),
    ("https://page.example:8443", None),
    ("null", 403),
    ("", 403),
    ("http://evil.example", 403),
    ("http://127.0.0.1", 403),
    ("http://127.0.0.1:8081", 403),
    ("http://localhost:8080", 403),
    ("http://localhost.evil:8080", 403),
    ("http://127.0.0.1.evil:8080", 403),
    ("http://127.0.0.1:8080.evil", 403),
    ("http://127.0.0.1:8080/", 403),
    ("http://127.0.0.1:8080/path", 403),
    ("http://127.0.0.1:8080?", 403),
    ("http://127.0.0.1.:8080", 403),
    ("http://user@127.0.0.1:8080", 403),
    ("http://127.0.0.1:8080@evil.example", 403),
    ("ftp://127.0.0.1:8080", 403),
    ("file://", 403),
    ("chrome-extension://abc", 403),
    ("127.0.0.1:8080", 403),
    ("//127.0.0.1:8080", 403),
    ("http://[", 403),
    ("http://[::1", 403),
    ("http://page.example", 403),
    ("https://page.example.evil", 403),
    ("https://page.example:443", 403),
]


@pytest.mark.parametrize(("origin", "refused"), ORIGINS)
def test_origin_must_be_our_own_or_listed(origin: str, refused: int | None) -> None:
    """T01: exactly; whoever sends none is no browser page of another site."""
    guard = Guard(Access(origins=("https://Page.example/", "https://page.example:8443")))
    assert status(guard, ("host", "127.0.0.1:8080"), ("origin", origin)) == refused


def test_two_origins_are_refused() -> None:
    """T01: also where each of them would do."""
    own = ("origin", "http://127.0.0.1:8080")
    assert status(Guard(Access()), ("host", "127.0.0.1:8080"), own, own) == 403


def test_request_without_an_origin_passes() -> None:
    """T02: programs send none; the token is asked of them besides."""
    assert status(Guard(Access()), ("host", "127.0.0.1:8080")) is None


OWN, LISTED = "http://127.0.0.1:8080", "https://page.example"

FETCHES: list[tuple[str, dict[str, str], int | None]] = [
    ("/_api/chats", {}, None),
    ("/_api/chats", {"site": "same-origin"}, None),
    ("/_api/chats", {"site": "none"}, None),
    ("/_api/chats", {"site": "SAME-ORIGIN"}, None),
    ("/_api/chats", {"site": "cross-site"}, 403),
    ("/_api/chats", {"site": "same-site"}, 403),
    ("/_api/chats", {"site": "whatever"}, 403),
    ("/_api/chats", {"site": ""}, 403),
    ("/", {"site": "cross-site", "mode": "no-cors"}, 403),
    # with an origin
    ("/_api/chats", {"site": "cross-site", "origin": LISTED}, None),
    ("/_api/chats", {"site": "same-site", "origin": LISTED}, None),
    ("/_api/chats", {"site": "same-origin", "origin": OWN}, None),
    ("/_api/chats", {"site": "cross-site", "origin": OWN}, 403),
    # a link that somebody follows
    ("/", {"site": "cross-site", "mode": "navigate", "dest": "document"}, None),
    ("/_inspect", {"site": "same-site", "mode": "navigate", "dest": "document"}, None),
    ("/_api/blobs/s/x/a.txt", {"site": "same-site", "mode": "navigate", "dest": "document"}, None),
    ("/", {"site": "cross-site", "mode": "navigate", "dest": "iframe"}, 403),
    ("/", {"site": "cross-site", "mode": "navigate"}, 403),
    ("/_arp/v1/events", {"site": "cross-site", "mode": "navigate", "dest": "document"}, 403),
    ("/_api/chats", {"site": "cross-site", "mode": "navigate", "dest": "document"}, 403),
]


@pytest.mark.parametrize("prefix", ["", "/deep/agent"])
@pytest.mark.parametrize(("path", "fetch", "refused"), FETCHES)
def test_pages_of_other_sites_get_nothing_that_has_no_origin(
    prefix: str, path: str, fetch: dict[str, str], refused: int | None
) -> None:
    """A picture, a script, `fetch` with `no-cors`: there browsers send no `Origin`."""
    guard = Guard(Access(origins=(LISTED,)), ("/", "/_inspect", "/_api/blobs/"))
    names = {"site": "sec-fetch-site", "mode": "sec-fetch-mode", "dest": "sec-fetch-dest"}
    headers = [(names.get(name, name), value) for name, value in fetch.items()]
    request = scope(("host", "127.0.0.1:8080"), *headers)
    answer = guard.check_source(request | {"path": prefix + path, "root_path": prefix})
    assert (answer.status if answer else None) == refused


def test_link_from_elsewhere_posts_nothing() -> None:
    """A form of another site has an `Origin`; where a browser leaves it out, it is refused too."""
    headers = [("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")]
    request = scope(("host", "127.0.0.1"), *headers, ("sec-fetch-dest", "document"))
    assert Guard(Access()).check_source(request) is None
    assert Guard(Access()).check_source(request | {"method": "POST"}) is not None


CARRIERS: list[tuple[list[tuple[str, str]], bool]] = [
    ([("authorization", "Bearer s3cret")], True),
    ([("authorization", "bearer s3cret")], True),
    ([("authorization", "Bearer   s3cret ")], True),
    ([("authorization", "Bearer S3CRET")], False),
    ([("authorization", "Bearer s3cre")], False),
    ([("authorization", "Bearer s3crett")], False),
    ([("authorization", "Bearer ")], False),
    ([("authorization", "Bearer")], False),
    ([("authorization", "s3cret")], False),
    ([("authorization", "Basic s3cret")], False),
    ([("authorization", "Bearer s3cret"), ("authorization", "Bearer s3cret")], False),
    ([("cookie", "token=s3cret")], False),
    ([("x-api-key", "s3cret")], False),
    ([("sec-websocket-protocol", "s3cret")], False),
    ([], False),
]


@pytest.mark.parametrize(("headers", "known"), CARRIERS)
async def test_token_counts_in_one_place_alone(headers: list[tuple[str, str]], known: bool) -> None:
    """T02, T09: `Authorization: Bearer`; a cookie would be sent by any page."""
    guard = Guard(Access(token="s3cret"))
    principal = await guard.principal(scope(*headers))
    assert (principal is not None) is known


async def test_token_may_hold_any_character() -> None:
    """Headers carry bytes."""
    guard = Guard(Access(token="pässwört"))
    raw = {"headers": [(b"authorization", "Bearer pässwört".encode())]}
    assert await guard.principal(raw) == Principal()
    assert await guard.check_token("pässwört", scope()) == Principal()
    assert await guard.check_token("passwort", scope()) is None


async def test_without_token_and_hook_everyone_is_the_same_nobody() -> None:
    """On loopback, that is: the command line refuses other addresses."""
    guard = Guard(Access())
    assert await guard.principal(scope()) == Principal("")
    assert await guard.check_token("anything", scope()) == Principal("")


async def test_hook_tells_who_asks_and_stands_before_the_token() -> None:
    """A token in a hello stands in the headers of the handshake, as if it had come there."""
    seen: list[dict[str, str]] = []

    def authenticate(connection: IncomingConnection) -> str | None:
        seen.append(dict(connection.headers))
        return {"a": "ada"}.get(connection.token)

    guard = Guard(Access(token="s3cret", authenticate=authenticate))
    by_header = await guard.principal(scope(("host", "h"), ("authorization", "Bearer a")))
    by_hello = await guard.check_token("a", scope(("host", "h"), ("authorization", "Basic x")))
    by_token = await guard.principal(scope(("authorization", "Bearer s3cret")))
    assert (by_header, by_hello, by_token) == (Principal("ada"), Principal("ada"), None)
    assert seen[0] == seen[1] == {"host": "h", "authorization": "Bearer a"}


async def test_hook_gets_the_address_behind_trusted_proxies() -> None:
    """What the client itself wrote counts for nothing."""
    seen: list[str] = []
    access = Access(
        authenticate=lambda connection: seen.append(connection.client),
        trusted_proxies=("10.0.0.0/8",),
    )
    forwarded = scope(("x-forwarded-for", "1.1.1.1, 203.0.113.9"))
    for client in ("10.0.0.1", "203.0.113.8"):
        assert await Guard(access).principal(forwarded | {"client": (client, 1)}) is None
    assert await Guard(access).principal(scope()) is None
    assert seen == ["203.0.113.9", "203.0.113.8", ""]


async def test_hook_may_be_a_coroutine() -> None:
    """It may ask a data base."""

    async def authenticate(_: IncomingConnection) -> str | None:
        return "ada"

    assert await Guard(Access(authenticate=authenticate)).principal(scope()) == Principal("ada")


async def test_hook_may_say_more_of_a_user_than_the_name() -> None:
    """Sessions belong to the name; agents see the rest."""
    ada = User("ada", "Ada L.", ["admin"], {"team": 7})
    found = await Guard(Access(authenticate=lambda _: ada)).principal(scope())
    assert found is not None
    assert (found.name, found.user) == ("ada", ada)
    assert Principal("bob").user == User("bob")


class Odd(str):
    """As the user's name of a framework."""


async def test_name_of_a_user_is_a_plain_text() -> None:
    """It stands in facts."""
    found = await Guard(Access(authenticate=lambda _: Odd("ada"))).principal(scope())
    assert found == Principal("ada")
    assert found is not None
    assert type(found.name) is str


@pytest.mark.parametrize("answer", [RuntimeError("down"), True, 7, b"ada", "a\n", "a" * 256])
async def test_hook_that_fails_lets_nobody_in(
    answer: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Fail closed, and say so in the log."""

    def authenticate(_: IncomingConnection) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    guard = Guard(Access(authenticate=authenticate))
    assert await guard.principal(scope()) is None
    assert await guard.check_token("a", scope()) is None
    assert "the authenticate hook failed" in caplog.text


# -- where a request comes from --------------------------------------------------------------------

OPEN, WITH_TOKEN = Guard(Access()), Guard(Access(token="t"))

CLIENTS: list[tuple[Any, int | None]] = [
    (("127.0.0.1", 50_000), None),
    (("127.8.8.8", 50_000), None),
    (("::1", 50_000, 0, 0), None),
    (("::ffff:127.0.0.1", 50_000), None),
    (None, None),
    (("", 0), None),
    (("testclient", 50_000), None),
    (("192.168.1.7", 50_000), 403),
    (("203.0.113.9", 50_000), 403),
    (("0.0.0.0", 50_000), 403),
    (("2001:db8::1", 50_000), 403),
    (("::ffff:203.0.113.9", 50_000), 403),
]


@pytest.mark.parametrize(("client", "expected"), CLIENTS)
def test_app_without_token_and_hook_serves_its_own_machine_alone(
    client: Any, expected: int | None
) -> None:
    """A `Host` header is what the sender writes; an address is not."""
    request = scope(("host", "127.0.0.1")) | {"client": client}
    refused = OPEN.check_source(request)
    assert (refused.status if refused else None) == expected
    assert refused is None or "give App an Access(token=" in refused.reason
    assert WITH_TOKEN.check_source(request) is None


FORWARDED = [
    ("x-forwarded-for", "127.0.0.1"),
    ("x-forwarded-host", "agents.example"),
    ("x-forwarded-server", "proxy.example"),
    ("x-forwarded-proto", "https"),
    ("X-Forwarded-Anything", ""),
    ("forwarded", "for=127.0.0.1"),
    ("via", "1.1 proxy"),
    ("x-real-ip", "127.0.0.1"),
    ("cf-connecting-ip", "203.0.113.9"),
]


@pytest.mark.parametrize(("name", "value"), FORWARDED)
def test_open_app_is_not_served_through_a_proxy_that_nobody_has_named(
    name: str, value: str
) -> None:
    """Whatever the header says: its sender may have written it. Over every transport."""
    here: dict[str, Any] = {"client": ("127.0.0.1", 1), "http_version": "1.1"}
    request = scope(("host", "127.0.0.1"), (name, value)) | here
    for refused in (Guard(Access()).check_source(request), Guard(Access()).check_peer(request)):
        assert refused is not None
        assert refused.status == 403
        assert f"came through a proxy ({name.lower()})" in refused.reason
        assert "--trust-proxy ADDRESS" in refused.reason
    elsewhere = Guard(Access(trusted_proxies=("10.0.0.7",)))
    assert elsewhere.check_source(request) is not None
    over_socket = request | {"client": None}
    assert Guard(Access()).check_source(over_socket) is not None
    assert WITH_TOKEN.check_source(request) is None


def test_open_app_is_not_served_over_http_1_0() -> None:
    """nginx speaks it to its backend, with the backend's name in `Host` and no other header."""
    request = scope(("host", "127.0.0.1:8080")) | {"client": ("127.0.0.1", 1)}
    refused = Guard(Access()).check_source(request | {"http_version": "1.0"})
    assert refused is not None
    assert "came through a proxy (HTTP/1.0)" in refused.reason
    assert Guard(Access()).check_source(request | {"http_version": "1.1"}) is None
    assert WITH_TOKEN.check_source(request | {"http_version": "1.0"}) is None


def test_first_visitor_from_elsewhere_is_logged_and_no_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A scanner must not fill the log."""
    guard = Guard(Access())
    for _ in range(3):
        guard.check_source(scope(("host", "127.0.0.1")) | {"client": ("203.0.113.9", 1)})
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "give App an Access(token=" in caplog.text


@pytest.mark.parametrize(
    ("forwarded", "expected"),
    [("203.0.113.9", 403), ("127.0.0.1, 203.0.113.9", 403), ("127.0.0.1", None), (None, 403)],
)
def test_app_behind_a_trusted_proxy_serves_its_own_machine_alone(
    forwarded: str | None, expected: int | None
) -> None:
    """All come from the proxy's address; without a word of it nobody is local."""
    guard = Guard(Access(hosts=("agents.example",), trusted_proxies=("127.0.0.1",)))
    headers = [("host", "agents.example")]
    headers += [("x-forwarded-for", forwarded)] if forwarded is not None else []
    refused = guard.check_source(scope(*headers) | {"client": ("127.0.0.1", 1)})
    assert (refused.status if refused else None) == expected


def test_guard_counts_by_the_address_behind_a_trusted_proxy() -> None:
    guard = Guard(Access(token="t", trusted_proxies=("10.0.0.0/8",)))
    request = scope(("x-forwarded-for", "203.0.113.9")) | {"client": ("10.0.0.1", 1)}
    assert guard.proxies.counted(request) == "203.0.113.9"
    assert guard.proxies.counted(scope() | {"client": ("203.0.113.8", 1)}) == "203.0.113.8"
    assert guard.proxies.counted(scope() | {"client": ("10.0.0.1", 1)}) == "10.0.0.1"
    forwarded = scope(("x-forwarded-for", "2001:db8::7")) | {"client": ("10.0.0.1", 1)}
    assert guard.proxies.counted(forwarded) == "2001:db8::/64"
    assert [host in guard.proxies for host in ("10.9.9.9", "203.0.113.9", "")] == [
        True,
        False,
        False,
    ]
    assert "127.0.0.1" not in Guard(Access()).proxies


@pytest.mark.parametrize(
    ("access", "uid", "is_refused"),
    [
        (Access(), os.geteuid(), False),
        (Access(token="t"), os.geteuid(), False),
        (Access(), 54_321, True),
        (Access(token="t"), 54_321, True),
        (Access(uids=(54_321,)), 54_321, False),
        (Access(uids=(54_321,)), os.geteuid(), False),
        (Access(uids=(54_321,)), 54_322, True),
        (Access(trusted_proxies=("10.0.0.1",)), os.geteuid(), False),
    ],
)
def test_over_a_unix_socket_the_user_must_be_ours_or_listed(
    access: Access, uid: int, is_refused: bool
) -> None:
    """A token is asked for besides: this says who may show one."""
    refused = Guard(access).check_peer({"type": "unix", "headers": [], "uid": uid})
    assert (refused is not None) == is_refused
    assert refused is None or refused.status == 403


@pytest.mark.parametrize(("client", "expected"), CLIENTS)
def test_over_grpc_an_open_app_serves_its_own_machine_alone(
    client: Any, expected: int | None
) -> None:
    """It has neither `Host` nor `Origin`; the address counts as over HTTP."""
    request = {"type": "grpc", "headers": [], "client": client}
    refused = OPEN.check_peer(request)
    assert (refused.status if refused else None) == expected
    assert WITH_TOKEN.check_peer(request) is None
