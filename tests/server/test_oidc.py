"""Signing in at an OpenID Connect provider, over real sockets, and what attackers try there."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import logging
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import msgspec
import pytest
from joserfc.jwk import RSAKey
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from arp import Access, App, Turn
from arp.access.oidc import Oidc
from arp.access.principal import User
from arp.live.settings import HubSettings
from arp.server.application import Application
from arp.server.login.login_file import LoginFile, Seal
from arp.server.login.logins import CREDENTIAL, LoginBook, local_path
from arp.server.login.oidc_provider import Identity
from tests.server.identity_provider import (
    CLIENT,
    SECRET,
    Claims,
    IdentityProvider,
    forged,
    identity_provider,
    text_of,
)
from tests.support.serving import Serving, serving
from tests.support.waiting import becomes


def make(issuer: str, **more: Any) -> App:
    """An app whose users sign in there."""
    oidc = Oidc(issuer, CLIENT, SECRET, admin="groups=arp-admins", roles_claim="groups", **more)
    made = App("Signed in", access=Access(oidc=oidc), settings=HubSettings(stop_grace_s=0.1))

    @made.agent
    async def agent(turn: Turn) -> None:
        """Says who asks, or goes on for ever."""
        user = turn.user
        await turn.say(f"{user.name} {user.display_name} {list(user.roles)}")
        if turn.text == "wait":
            await asyncio.Event().wait()

    return made


@pytest.fixture(scope="module")
def running() -> Iterator[tuple[Serving, IdentityProvider]]:
    with identity_provider() as provider, serving(make(provider.issuer)) as server:
        yield server, provider


@pytest.fixture
def provider(running: tuple[Serving, IdentityProvider]) -> IdentityProvider:
    """As it is when nobody attacks."""
    fresh = IdentityProvider(running[1].issuer, running[1].key)  # making a key takes long
    kept = {name: value for name, value in vars(fresh).items() if name not in ("key", "published")}
    vars(running[1]).update(kept, encode=running[1].sign)
    return running[1]


@pytest.fixture
def server(running: tuple[Serving, IdentityProvider]) -> Serving:
    return running[0]


@pytest.fixture
def logins(server: Serving) -> LoginBook:
    found = server.application.state.logins
    assert found is not None
    return found


def browser(server: Serving) -> httpx.AsyncClient:
    """Keeps cookies, and follows no redirect by itself."""
    return httpx.AsyncClient(base_url=server.http)


async def visit(url: str) -> httpx.Response:
    """Opens an address of the provider."""
    async with httpx.AsyncClient() as client:
        return await client.get(url)


async def go(client: httpx.AsyncClient, url: str) -> httpx.Response:
    """Follows one link as a browser does, with the cookies of that place."""
    headers = {
        "sec-fetch-mode": "navigate",
        "sec-fetch-dest": "document",
        "sec-fetch-site": "cross-site",
    }
    return await client.get(url, headers=headers)


async def to_callback(client: httpx.AsyncClient, after: str = "/") -> str:
    """Signs in at the provider; returns the address to which it sends the browser back."""
    begun = await go(client, f"/_login?next={after}")
    assert begun.status_code == 303
    back = await visit(begun.headers["location"])
    return str(back.headers["location"])


async def sign_in(client: httpx.AsyncClient, after: str = "/") -> httpx.Response:
    return await go(client, await to_callback(client, after))


async def user(client: httpx.AsyncClient) -> Any:
    return (await client.get("/_api/user")).json()["user"]


async def refused(client: httpx.AsyncClient, url: str, reason: str, status: int = 400) -> None:
    """Checks that nobody is signed in by an address, and that the page says why."""
    answer = await go(client, url)
    assert answer.status_code == status
    assert reason in answer.text
    assert not any("arp_login" in value for value in answer.headers.get_list("set-cookie"))
    assert await user(client) is None
    assert (await client.get("/_api/chats")).status_code == 401


# -- the way in and out ---------------------------------------------------------------------------


async def test_person_who_signs_in_is_the_user(server: Serving, provider: IdentityProvider) -> None:
    async with browser(server) as client:
        about = (await client.get("/_api/user")).json()
        assert (about["user"], about["login_url"]) == (None, "/_login?next={next}")
        done = await sign_in(client, "/?session=s")
        assert (done.status_code, done.headers["location"]) == (303, "/?session=s")
        about = (await client.get("/_api/user")).json()
        assert about["user"] == {
            "name": "ann",
            "display_name": "Ann L.",
            "roles": [],
            "is_admin": False,
        }
        assert (about["logout_url"], about["logout_method"]) == ("/_logout", "POST")
        own = {"origin": server.http}
        answered = await client.post("/agent", json={"message": "x"}, headers=own)
        assert answered.json()["text"] == "ann Ann L. []"
    (asked,) = provider.asked
    assert asked["scope"] == "openid profile email"
    assert len(asked["nonce"]) == len(asked["state"]) == 43
    assert asked["redirect_uri"] == f"{server.http}/_login/callback"


async def test_two_people_are_kept_apart(server: Serving, provider: IdentityProvider) -> None:
    own = {"origin": server.http}
    async with browser(server) as ann, browser(server) as bob:
        await sign_in(ann)
        provider.signed_in = "bob"
        await sign_in(bob)
        asked = {"message": "x", "session_id": "of-ann"}
        (await ann.post("/agent", json=asked, headers=own)).raise_for_status()
        assert (await bob.post("/agent", json=asked, headers=own)).status_code == 404
        assert [row["id"] for row in (await bob.get("/_api/chats")).json()] == []
        assert "of-ann" in [row["id"] for row in (await ann.get("/_api/chats")).json()]
        assert (await user(bob))["roles"] == ["staff", "arp-admins", "admin"]


async def test_cookies_are_for_the_server_alone(
    server: Serving, provider: IdentityProvider
) -> None:
    async with browser(server) as client:
        begun = await go(client, "/_login")
        done = await go(client, await to_callback(client))
    (attempt,) = begun.headers.get_list("set-cookie")
    login, gone = done.headers.get_list("set-cookie")
    for cookie in (attempt, login, gone):
        assert "; Path=/; " in cookie
        assert "; HttpOnly; SameSite=Lax" in cookie
    assert login.startswith(f"arp_login_{server.port}=")
    assert "Max-Age=28800" in login
    assert "Max-Age=0" in gone


async def test_cookies_of_a_server_behind_tls_are_secure_and_bound_to_its_host(
    provider: IdentityProvider,
) -> None:
    app = make(provider.issuer, public_url="https://agents.example.org")
    with serving(app) as server:
        async with browser(server) as client:
            begun = await go(client, "/_login")
    query = parse_qs(urlsplit(begun.headers["location"]).query)
    assert query["redirect_uri"] == ["https://agents.example.org/_login/callback"]
    cookie = begun.headers["set-cookie"]
    assert cookie.startswith("__Host-arp_attempt_")
    assert cookie.endswith("; Path=/; Max-Age=600; HttpOnly; SameSite=Lax; Secure")


async def test_signing_out_ends_the_login_and_open_connections_and_that_of_the_provider(
    server: Serving, provider: IdentityProvider
) -> None:
    async with browser(server) as client:
        await sign_in(client)
        cookie = "; ".join(f"{key}={value}" for key, value in client.cookies.items())
        headers = {"cookie": cookie, "origin": server.http}
        async with connect(server.ws, additional_headers=headers) as socket:
            assert json.loads(await socket.recv())["capabilities"]["title"] == "Signed in"
            out = await client.post("/_logout", headers={"origin": server.http})
            with pytest.raises(ConnectionClosed) as closed:
                await socket.recv()
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1008
        assert await user(client) is None
        kept = await client.get("/_api/chats", headers={"cookie": cookie})
        assert kept.status_code == 401
        await visit(out.json()["location"])
    (ended,) = provider.signed_out
    assert ended["client_id"] == CLIENT
    assert ended["post_logout_redirect_uri"] == f"{server.http}/"
    assert ended["id_token_hint"].count(".") == 2


async def test_signing_out_without_a_login_leads_to_the_page(
    server: Serving, provider: IdentityProvider
) -> None:
    async with browser(server) as client:
        assert (await client.post("/_logout")).status_code == 401


async def test_server_without_a_provider_has_no_login() -> None:
    with serving(_plain()) as server:
        async with browser(server) as client:
            for path in ("/_login", "/_login/callback"):
                assert (await client.get(path)).status_code == 404
            assert (await client.post("/_logout")).status_code == 404
            about = (await client.get("/_api/user")).json()
    assert about == {
        "user": {"name": "", "display_name": "", "roles": [], "is_admin": False},
        "login_url": None,
        "logout_url": None,
        "logout_method": "GET",
        "sign_in_text": None,
    }


def _plain() -> App:
    app = App()

    @app.agent
    async def agent(turn: Turn) -> None:
        """Answers."""

    return app


# -- attacks --------------------------------------------------------------------------------------

NOT_BEGUN = "this browser has not begun a login here"


async def test_answer_for_another_browser_signs_nobody_in(
    server: Serving, provider: IdentityProvider
) -> None:
    """An attacker sends their own answer to somebody, who then works under the attacker's name."""
    async with browser(server) as attacker, browser(server) as victim:
        url = await to_callback(attacker)
        await refused(victim, url, NOT_BEGUN)
        await go(victim, "/_login")
        await refused(victim, url, NOT_BEGUN)


@pytest.mark.parametrize("state", ["", "other", "x" * 43])
async def test_wrong_state_signs_nobody_in(
    server: Serving, provider: IdentityProvider, state: str
) -> None:
    provider.answer = lambda query: {**query, "state": state}
    async with browser(server) as client:
        await refused(client, await to_callback(client), NOT_BEGUN)
    assert provider.token_requests == []


async def test_cookie_of_an_attempt_that_was_changed_counts_for_nothing(
    server: Serving, provider: IdentityProvider
) -> None:
    async with browser(server) as client:
        url = await to_callback(client)
        ((name, value),) = client.cookies.items()
        content, _, signature = value.rpartition(".")
        for changed in (f"x{content}.{signature}", f"{content}.{'0' * 64}", content, "", "."):
            client.cookies.clear()
            client.cookies.set(name, changed)
            await refused(client, url, NOT_BEGUN)


async def test_same_answer_a_second_time_signs_nobody_in(
    server: Serving, provider: IdentityProvider
) -> None:
    async with browser(server) as client:
        url = await to_callback(client)
        cookies = dict(client.cookies)
        assert (await go(client, url)).status_code == 303
        client.cookies.clear()
        client.cookies.update(cookies)
        await refused(client, url, NOT_BEGUN)
    assert len(provider.token_requests) == 1


async def test_code_that_was_used_elsewhere_signs_nobody_in(
    server: Serving, provider: IdentityProvider
) -> None:
    async with browser(server) as client:
        url = await to_callback(client)
        provider.codes.clear()
        await refused(client, url, "it refused: invalid_grant")


async def test_stolen_code_is_of_no_use_in_another_attempt(
    server: Serving, provider: IdentityProvider
) -> None:
    """PKCE binds a code to the attempt that asked for it."""
    async with browser(server) as victim, browser(server) as attacker:
        stolen = parse_qs(urlsplit(await to_callback(victim)).query)["code"][0]
        own = await to_callback(attacker)
        code = parse_qs(urlsplit(own).query)["code"][0]
        await refused(attacker, own.replace(code, stolen), "it refused: invalid_grant")


@pytest.mark.parametrize("sender", ["https://evil.example", None])
async def test_answer_of_another_provider_is_not_taken_to_this_one(
    server: Serving, provider: IdentityProvider, sender: str | None
) -> None:
    """The mix-up attack (RFC 9207): the code of one provider is shown to another."""

    def other(query: Claims) -> Claims:
        kept = {key: value for key, value in query.items() if key != "iss"}
        return kept if sender is None else {**kept, "iss": sender}

    provider.answer = other
    async with browser(server) as client:
        await refused(client, await to_callback(client), "the answer came from another provider")
    assert provider.token_requests == []


async def test_provider_that_refuses_signs_nobody_in_and_cannot_write_on_the_page(
    server: Serving, provider: IdentityProvider
) -> None:
    async with browser(server) as client:
        for error, shown in (("access_denied", "access_denied"), ("<b>x", "an error")):
            provider.answer = lambda query, error=error: {  # type: ignore[misc]
                "error": error,
                "state": query["state"],
                "iss": query["iss"],
            }
            await refused(
                client, await to_callback(client), f"the provider refused the login: {shown}."
            )
        provider.answer = lambda query: {key: query[key] for key in ("state", "iss")}
        await refused(client, await to_callback(client), "the answer has no code")


NOW = int(time.time())

WRONG_CLAIMS: dict[str, tuple[Claims, str]] = {
    "nonce of another attempt": ({"nonce": "n" * 43}, "invalid_claim nonce"),
    "no nonce": ({"nonce": None}, "missing_claim nonce"),
    "another audience": ({"aud": "other"}, "invalid_claim aud"),
    "other audiences": ({"aud": ["other", "third"]}, "invalid_claim aud"),
    "several audiences, none is named": ({"aud": [CLIENT, "other"]}, "missing_claim azp"),
    "for another client": ({"aud": [CLIENT, "other"], "azp": "other"}, "invalid_claim azp"),
    "another issuer": ({"iss": "https://evil.example"}, "invalid_claim iss"),
    "no issuer": ({"iss": None}, "missing_claim iss"),
    "expired": ({"exp": NOW - 3600}, "expired_token"),
    "never expires": ({"exp": None}, "missing_claim exp"),
    "from the future": ({"iat": NOW + 3600}, "invalid_claim iat"),
    "not yet": ({"nbf": NOW + 3600}, "invalid_claim nbf"),
    "no subject": ({"sub": None}, "missing_claim sub"),
    "a subject that is no text": ({"sub": 7}, "invalid_claim sub"),
    "an empty subject": ({"sub": ""}, "sub"),
    "of another access token": ({"at_hash": "AAAAAAAAAAAAAAAAAAAAAA"}, "invalid_claim at_hash"),
}


@pytest.mark.parametrize("name", WRONG_CLAIMS)
async def test_id_token_with_wrong_claims_signs_nobody_in(
    server: Serving, provider: IdentityProvider, name: str
) -> None:
    change, says = WRONG_CLAIMS[name]

    def wrong(claims: Claims) -> Claims:
        changed = {**claims, **change}
        return {key: value for key, value in changed.items() if value is not None}

    provider.change = wrong
    async with browser(server) as client:
        await refused(client, await to_callback(client), says)


async def test_several_audiences_are_right_if_this_client_is_named(
    server: Serving, provider: IdentityProvider
) -> None:
    provider.change = lambda claims: {**claims, "aud": [CLIENT, "other"], "azp": CLIENT}
    async with browser(server) as client:
        assert (await sign_in(client)).status_code == 303


@pytest.mark.parametrize("way", ["none", "None", "secret", "public key", "other key", "changed"])
async def test_id_token_that_the_provider_did_not_sign_signs_nobody_in(
    server: Serving, provider: IdentityProvider, way: str
) -> None:
    other = RSAKey.generate_key(2048, {"kid": "one"})
    public = provider.key.as_pem(private=False)
    forge = {
        "none": lambda claims: forged(claims, {"alg": "none"}),
        "None": lambda claims: forged(claims, {"alg": "None", "kid": "one"}),
        "secret": lambda claims: forged(claims, {"alg": "HS256", "kid": "one"}, SECRET.encode()),
        "public key": lambda claims: forged(claims, {"alg": "HS256", "kid": "one"}, public),
        "other key": lambda claims: provider.sign(claims, other),
        "changed": lambda claims: _changed(provider.sign(claims)),
    }
    provider.encode = forge[way]
    async with browser(server) as client:
        await refused(client, await to_callback(client), "its ID token is not valid")


def _changed(token: str) -> str:
    """Return a signed token that says afterwards that it is somebody else's."""
    head, body, signature = token.split(".")
    claims = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    return f"{head}.{text_of(json.dumps({**claims, 'sub': 'bob'}).encode())}.{signature}"


async def test_new_key_of_the_provider_is_found(
    server: Serving, provider: IdentityProvider, logins: LoginBook
) -> None:
    async with browser(server) as client:
        await sign_in(client)
        old = provider.key
        provider.key = RSAKey.generate_key(2048, {"kid": "two", "use": "sig"})
        provider.published = [old, provider.key]
        keys = logins.provider._keys
        assert keys is not None
        logins.provider._keys = (keys[0] - 11, keys[1])  # eleven seconds later
        assert (await sign_in(client)).status_code == 303


async def test_own_login_is_replaced_and_a_cookie_from_elsewhere_is_never_taken_over(
    server: Serving, provider: IdentityProvider
) -> None:
    """Session fixation: the cookie that an attacker has put into the browser stays worthless."""
    name = f"arp_login_{server.port}"
    async with browser(server) as client:
        client.cookies.set(name, "chosen-by-the-attacker")
        first = _login_of(await sign_in(client), name)
        assert first != "chosen-by-the-attacker"
        second = _login_of(await sign_in(client), name)
    async with browser(server) as other:
        for value, status in (
            ("chosen-by-the-attacker", 401),
            (first, 401),
            (second, 200),
            ("", 401),
        ):
            cookie = {"cookie": f"{name}={value}"}
            assert (await other.get("/_api/chats", headers=cookie)).status_code == status


def _login_of(done: httpx.Response, name: str) -> str:
    (cookie,) = (one for one in done.headers.get_list("set-cookie") if one.startswith(name))
    return cookie.partition(";")[0].partition("=")[2]


@pytest.mark.parametrize(
    "after",
    [
        "https://evil.example/",
        "//evil.example/",
        "/\\evil.example",
        "/%5Cevil.example",
        "\\\\evil.example",
        "/\t/evil.example",
        "javascript:alert(1)",
        "evil",
        "",
        "/_login",
        "/_logout",
        "/ä",
    ],
)
async def test_nobody_is_led_to_another_site(
    server: Serving, provider: IdentityProvider, after: str
) -> None:
    async with browser(server) as client:
        begun = await client.get("/_login", params={"next": after})
        back = await visit(begun.headers["location"])
        done = await go(client, back.headers["location"])
    expected = after if after == "/%5Cevil.example" else "/"
    assert done.headers["location"] == expected


def test_mounted_app_leads_to_its_own_place() -> None:
    scope = {"root_path": "/agent"}
    assert local_path("/agent/?session=s", scope) == "/agent/?session=s"
    assert local_path("/admin", scope) == "/agent/"
    assert local_path("/agent/_login", scope) == "/agent/"


async def test_cookie_counts_for_own_pages_alone(
    server: Serving, provider: IdentityProvider
) -> None:
    """T01, T02, T12: a browser sends the cookie with whatever a page asks; a plain client may."""
    async with browser(server) as client:
        await sign_in(client)
        cookie = "; ".join(f"{key}={value}" for key, value in client.cookies.items())
        body = {"message": "x"}
        assert (await client.post("/agent", json=body)).status_code == 401
        evil = {"origin": "https://evil.example"}
        assert (await client.post("/agent", json=body, headers=evil)).status_code == 403
        port = {"origin": f"http://127.0.0.1:{server.port + 1}"}
        assert (await client.post("/agent", json=body, headers=port)).status_code == 403
        cross = {"sec-fetch-site": "cross-site"}
        assert (await client.get("/_api/chats", headers=cross)).status_code == 403
        assert (await client.post("/_logout", headers=evil)).status_code == 403
        assert (await client.get("/_logout")).status_code == 404
        assert await user(client) is not None
    async with connect(server.ws, additional_headers={"cookie": cookie}) as socket:
        shown = json.loads(await socket.recv())["capabilities"]
    assert not shown.get("title")  # nobody, who may show a token


async def test_links_on_other_sites_may_lead_to_the_login_but_not_fetch_it(
    server: Serving, provider: IdentityProvider
) -> None:
    async with browser(server) as client:
        asked = {
            "sec-fetch-site": "cross-site",
            "sec-fetch-mode": "no-cors",
            "sec-fetch-dest": "image",
        }
        assert (await client.get("/_login", headers=asked)).status_code == 403


# -- how long it lasts ----------------------------------------------------------------------------


async def test_login_ends_with_its_time(
    server: Serving, provider: IdentityProvider, logins: LoginBook
) -> None:
    async with browser(server) as client:
        await sign_in(client)
        assert (await client.get("/_api/chats")).status_code == 200
        _newest(logins).until = time.time() - 1
        assert (await client.get("/_api/chats")).status_code == 401


def _newest(logins: LoginBook) -> Any:
    return next(reversed(logins._by_id.values()))


async def test_login_is_renewed_while_the_provider_agrees(
    server: Serving, provider: IdentityProvider, logins: LoginBook
) -> None:
    provider.expires_in = 0.0  # at least a second
    async with browser(server) as client:
        await sign_in(client)
        provider.people["ann"]["groups"] = ["arp-admins"]
        login = _newest(logins)
        await becomes(lambda: time.time() >= login.identity.renew_at)
        assert (await user(client))["is_admin"]
    asked = [form["grant_type"] for form in provider.token_requests]
    assert asked[:2] == ["authorization_code", "refresh_token"]
    assert len(provider.refresh_tokens) == 1  # each counts once


async def test_open_connection_ends_when_the_provider_refuses_to_renew(
    server: Serving, provider: IdentityProvider
) -> None:
    provider.expires_in = 0.0
    async with browser(server) as client:
        await sign_in(client)
        cookie = "; ".join(f"{key}={value}" for key, value in client.cookies.items())
        headers = {"cookie": cookie, "origin": server.http}
        async with connect(server.ws, additional_headers=headers) as socket:
            await socket.recv()
            del provider.people["ann"]
            with pytest.raises(ConnectionClosed) as closed:
                await socket.recv()
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1008
        assert await user(client) is None


async def test_login_goes_on_for_a_while_when_the_provider_is_down(
    server: Serving, provider: IdentityProvider, logins: LoginBook
) -> None:
    async with browser(server) as client:
        provider.expires_in = 3600
        await sign_in(client)
        login = _newest(logins)
        provider.is_down = True
        login.identity = _due(login.identity, 1)
        assert (await client.get("/_api/chats")).status_code == 200
        count = len(provider.token_requests)
        assert (await client.get("/_api/chats")).status_code == 200
        assert len(provider.token_requests) == count  # not with every request
        login.identity = _due(login.identity, 301)
        assert (await client.get("/_api/chats")).status_code == 401


def _due(identity: Any, ago_s: float) -> Any:
    return msgspec.structs.replace(identity, renew_at=time.time() - ago_s)


async def test_login_outlasts_a_restart_and_its_file_tells_nothing(
    provider: IdentityProvider, tmp_path: Path
) -> None:
    """Each server has another port, after which the cookie is named."""
    ledger = f"sqlite:{tmp_path / 'app.db'}"
    provider.expires_in = 3600
    with serving(make(provider.issuer), ledger=ledger) as server:
        async with browser(server) as client:
            await sign_in(client)
            secret = client.cookies[f"arp_login_{server.port}"]
            assert (await user(client))["name"] == "ann"
    file = tmp_path / "app.logins"
    assert file.stat().st_mode & 0o777 == 0o600
    (token,) = provider.refresh_tokens
    for word in (secret, token, "ann", "Ann L."):
        assert word.encode() not in file.read_bytes()
    with serving(make(provider.issuer), ledger=ledger) as server:
        async with browser(server) as client:
            client.cookies.set(f"arp_login_{server.port}", secret[:-1] + "-")
            assert await user(client) is None
            client.cookies.set(f"arp_login_{server.port}", secret)
            assert (await user(client))["display_name"] == "Ann L."
            signed_out = await client.post("/_logout", headers={"origin": server.http})
            assert signed_out.status_code == 200, signed_out.text
            assert "id_token_hint" in signed_out.json()["location"]
            assert await user(client) is None


def _stored(path: Path, oidc: Oidc, secret: str, until: float) -> bytes:
    """Write a login as an earlier process would have; return its key."""
    identity = Identity(User("ann", claims={"sub": "1"}), False, "id", "refresh", None)
    key = hashlib.sha256(secret.encode()).digest()
    file = LoginFile(path)
    file.write(key, until, Seal(secret, oidc).encrypt(identity), time.time())
    file.close()
    return key


async def _known(path: Path, oidc: Oidc) -> str | None:
    """Return whom a new process finds by the cookie."""
    book = LoginBook(oidc, path)
    headers = [(b"host", b"127.0.0.1"), (b"cookie", b"arp_login=a-secret")]
    scope = {"type": "http", "method": "GET", "headers": headers}
    principal = await book.principal(scope)
    await book.aclose()
    return None if principal is None else principal.name


async def test_stored_login_counts_for_its_time_and_the_same_provider_alone(tmp_path: Path) -> None:
    oidc, path = Oidc("https://login.example.org", "arp"), tmp_path / "app.logins"
    assert await _known(path, oidc) is None
    assert not path.exists()
    _stored(path, oidc, "a-secret", time.time() + 60)
    assert await _known(path, oidc) == "ann"
    assert await _known(path, Oidc("https://login.example.com", "arp")) is None
    assert await _known(path, Oidc("https://login.example.org", "arp", admin="a=b")) is None
    _stored(path, oidc, "a-secret", time.time() - 1)
    assert await _known(path, oidc) is None


async def test_login_goes_on_in_memory_if_its_file_cannot_be_written(
    server: Serving, provider: IdentityProvider, logins: LoginBook, tmp_path: Path
) -> None:
    logins._file = LoginFile(tmp_path)  # a folder
    try:
        async with browser(server) as client:
            await sign_in(client)
            assert (await client.get("/_api/chats")).status_code == 200
    finally:
        logins._file = LoginFile(None)


async def test_renewed_token_of_somebody_else_ends_the_login(
    server: Serving, provider: IdentityProvider
) -> None:
    provider.expires_in = 3600
    async with browser(server) as client:
        await sign_in(client)
        logins = server.application.state.logins
        assert logins is not None
        login = _newest(logins)
        provider.change = lambda claims: {**claims, "sub": "bob"}
        login.identity = _due(login.identity, 1)
        assert (await client.get("/_api/chats")).status_code == 401


async def test_address_that_nobody_has_verified_is_no_name(provider: IdentityProvider) -> None:
    with serving(make(provider.issuer, user_claim="email")) as server:
        async with browser(server) as client:
            await sign_in(client)
            assert (await user(client))["name"] == "ann@example.org"
            assert (
                await client.post("/_logout", headers={"origin": server.http})
            ).status_code == 200
            provider.people["ann"]["email_verified"] = False
            await refused(client, await to_callback(client), "has not verified the email")
            provider.signed_in = "bob"
            await refused(client, await to_callback(client), "no claim &#x27;email&#x27;")


@pytest.mark.parametrize(
    "sub",
    ["ann\n", "ann\x00", "an\x1b[2Jn", "\u202enna", "a\u200bnn", " ann", "ann ", "a" * 256, "\x7f"],
)
@pytest.mark.parametrize("claim", ["sub", "user_name"])
async def test_name_that_looks_like_another_signs_nobody_in(
    provider: IdentityProvider, sub: str, claim: str
) -> None:
    """It would stand in logs, lists and facts. Also where another claim names the user."""
    provider.people["ann"]["user_name"] = "ann"
    with serving(make(provider.issuer, user_claim="user_name")) as server:
        async with browser(server) as client:
            provider.change = lambda claims: {**claims, claim: sub}
            await refused(client, await to_callback(client), "has control characters, a blank")


async def test_names_and_roles_for_people_have_no_control_characters(
    provider: IdentityProvider,
) -> None:
    provider.people["ann"] |= {
        "name": "A\x1b[2J",
        "preferred_username": "Ann",
        "groups": ["a\n", "b"],
    }
    with serving(make(provider.issuer)) as server:
        async with browser(server) as client:
            await sign_in(client)
            shown = await user(client)
            assert (shown["display_name"], shown["roles"]) == ("Ann", ["b"])


@pytest.mark.parametrize(
    ("claim", "is_warned"),
    [
        *((claim, True) for claim in ("preferred_username", "name", "nickname")),
        *((claim, False) for claim in ("sub", "email", "oid", "phone_number")),
    ],
)
def test_claim_that_people_can_change_is_warned_of_at_the_start(
    claim: str, is_warned: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """`email` and `phone_number` count only if the provider has verified them."""
    LoginBook(Oidc("https://login.example.org", "arp", user_claim=claim))
    assert ("users can change this claim" in caplog.text) == is_warned


async def test_role_admin_comes_from_the_configured_claim_alone(
    server: Serving, provider: IdentityProvider
) -> None:
    provider.people["ann"]["groups"] = ["admin"]
    async with browser(server) as client:
        await sign_in(client)
        assert (await user(client)) == {
            "name": "ann",
            "display_name": "Ann L.",
            "roles": [],
            "is_admin": False,
        }


# -- a provider that is not there, or not itself --------------------------------------------------


@pytest.mark.parametrize(
    ("described", "says"),
    [
        ({"issuer": "https://evil.example"}, "its description names another issuer"),
        ({"token_endpoint": "http://evil.example/token"}, "its token_endpoint does not use TLS"),
        ({"jwks_uri": "ftp://evil.example"}, "its jwks_uri does not use TLS"),
        ({"authorization_endpoint": None}, "its description cannot be read"),
    ],
)
async def test_description_that_is_not_the_providers_is_not_used(
    described: Claims, says: str, caplog: pytest.LogCaptureFixture
) -> None:
    with identity_provider() as provider, serving(make(provider.issuer)) as server:
        provider.description = described
        async with browser(server) as client:
            answer = await client.get("/_login")
    assert answer.status_code in (400, 502)
    assert says in answer.text
    assert says in caplog.text


async def test_provider_that_is_not_there_is_said(unused_tcp_port: int) -> None:
    with serving(make(f"http://127.0.0.1:{unused_tcp_port}")) as server:
        async with browser(server) as client:
            answer = await client.get("/_login")
    assert answer.status_code == 502
    assert "it cannot be reached: ConnectError" in answer.text


async def test_log_names_who_signed_in_and_no_secret(
    server: Serving, provider: IdentityProvider, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "arp")
    async with browser(server) as client:
        url = await to_callback(client)
        await go(client, url)
        values = [*client.cookies.values(), parse_qs(urlsplit(url).query)["code"][0], SECRET]
    assert "'ann' has signed in" in caplog.text
    assert [value for value in values if value and value in caplog.text] == []


def test_credential_of_no_login_is_not_valid(logins: LoginBook) -> None:
    assert not logins.is_valid(f"{CREDENTIAL}none")


def test_library_that_is_missing_is_said_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "authlib.oauth2.auth", None)
    monkeypatch.delitem(sys.modules, "arp.server.login.oidc_library", raising=False)
    says = r"a login with OIDC needs authlib; install it: pip install .*\[oidc\]"
    with pytest.raises(ValueError, match=says):
        Application(make("https://login.example.org").served())
