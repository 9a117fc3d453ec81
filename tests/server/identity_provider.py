"""A small OpenID Connect provider: real keys, codes that count once, PKCE, refresh tokens.

It checks what a real one checks, and on request does what an attacker would.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlencode

from joserfc import jwt
from joserfc.jwk import RSAKey
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from tests.support.asgi_serving import serving_asgi

Claims = dict[str, Any]

CLIENT, SECRET = "arp", "secret-of-the-client"


class IdentityProvider:
    """What it knows and does; tests change it while it runs."""

    def __init__(self, issuer: str, key: RSAKey | None = None) -> None:
        self.issuer = issuer
        self.key = key or RSAKey.generate_key(2048, {"kid": "one", "use": "sig"})
        self.published = [self.key]
        self.people: dict[str, Claims] = {
            "ann": {"name": "Ann L.", "email": "ann@example.org", "email_verified": True},
            "bob": {"name": "Bob", "groups": ["staff", "arp-admins"]},
        }
        self.signed_in: str | None = "ann"
        """Who answers at once; `None`: a page asks who it is."""
        self.codes: dict[str, Claims] = {}
        self.refresh_tokens: dict[str, str] = {}
        self.expires_in: float | None = None
        """Of access tokens; without it there is no refresh token."""
        self.description: Claims = {}
        self.asked: list[Claims] = []
        """The authorization requests."""
        self.token_requests: list[Claims] = []
        self.signed_out: list[Claims] = []
        self.change: Callable[[Claims], Claims] = lambda claims: claims
        """What becomes of the claims of an ID token."""
        self.encode: Callable[[Claims], str] = self.sign
        self.answer: Callable[[Claims], Claims] = lambda query: query
        """What becomes of the answer that the browser takes back."""
        self.is_down = False

    def sign(self, claims: Claims, key: RSAKey | None = None) -> str:
        key = key or self.key
        return jwt.encode({"alg": "RS256", "kid": key.kid}, claims, key)

    def routes(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/.well-known/openid-configuration", self._describe),
                Route("/keys", self._keys),
                Route("/authorize", self._authorize),
                Route("/token", self._token, methods=["POST"]),
                Route("/end", self._end),
            ]
        )

    async def _describe(self, _: Request) -> Response:
        return JSONResponse(
            {
                "issuer": self.issuer,
                "authorization_endpoint": f"{self.issuer}/authorize",
                "token_endpoint": f"{self.issuer}/token",
                "jwks_uri": f"{self.issuer}/keys",
                "end_session_endpoint": f"{self.issuer}/end",
                "id_token_signing_alg_values_supported": ["RS256"],
                "authorization_response_iss_parameter_supported": True,
                **self.description,
            }
        )

    async def _keys(self, _: Request) -> Response:
        return JSONResponse({"keys": [key.as_dict(private=False) for key in self.published]})

    async def _authorize(self, request: Request) -> Response:
        query = dict(request.query_params)
        self.asked.append(query)
        assert query["client_id"] == CLIENT
        assert query["response_type"] == "code"
        assert query["code_challenge_method"] == "S256"
        person = query.pop("person", self.signed_in)
        if person is None:
            links = (
                f'<a href="?{urlencode({**query, "person": one})}">{one}</a> '
                for one in self.people
            )
            return HTMLResponse(f"<!doctype html><title>Provider</title>{''.join(links)}")
        code = secrets.token_urlsafe(16)
        self.codes[code] = {**query, "person": person}
        answer = {"code": code, "state": query["state"], "iss": self.issuer}
        return RedirectResponse(f"{query['redirect_uri']}?{urlencode(self.answer(answer))}", 303)

    async def _token(self, request: Request) -> Response:
        form = {key: str(value) for key, value in (await request.form()).items()}
        self.token_requests.append(form)
        if self.is_down:
            return JSONResponse({}, 503)
        sent = base64.b64decode(request.headers["authorization"].removeprefix("Basic "))
        if sent.decode() != f"{CLIENT}:{SECRET}":
            return JSONResponse({"error": "invalid_client"}, 401)
        if form["grant_type"] == "refresh_token":
            person = self.refresh_tokens.pop(form["refresh_token"], None)
            nonce = None
        else:
            found = self.codes.pop(form["code"], {})
            digest = hashlib.sha256(form["code_verifier"].encode()).digest()
            is_right = found.get("code_challenge") == text_of(digest)
            is_right = is_right and found.get("redirect_uri") == form["redirect_uri"]
            person, nonce = (found["person"], found["nonce"]) if is_right else (None, None)
        if person is None or person not in self.people:
            return JSONResponse({"error": "invalid_grant"}, 400)
        return JSONResponse(self._tokens(person, nonce))

    def _tokens(self, person: str, nonce: str | None) -> Claims:
        now = int(time.time())
        claims = {
            "iss": self.issuer,
            "aud": CLIENT,
            "sub": person,
            "iat": now,
            "exp": now + 300,
            **({} if nonce is None else {"nonce": nonce}),
            **self.people[person],
        }
        answer = {
            "access_token": secrets.token_urlsafe(8),
            "token_type": "Bearer",
            "id_token": self.encode(self.change(claims)),
        }
        if self.expires_in is None:
            return answer
        refresh_token = secrets.token_urlsafe(16)
        self.refresh_tokens[refresh_token] = person
        return {**answer, "expires_in": self.expires_in, "refresh_token": refresh_token}

    async def _end(self, request: Request) -> Response:
        query = dict(request.query_params)
        self.signed_out.append(query)
        return RedirectResponse(query["post_logout_redirect_uri"], 303)


def forged(claims: Claims, header: Claims, secret: bytes | None = None) -> str:
    """Return a token that the provider did not sign: without a signature, or with a secret."""
    head, body = text_of(json.dumps(header).encode()), text_of(json.dumps(claims).encode())
    signed = f"{head}.{body}"
    mac = b"" if secret is None else hmac.digest(secret, signed.encode(), "sha256")
    return f"{signed}.{text_of(mac)}"


def text_of(data: bytes) -> str:
    """Return bytes as base64url without padding."""
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


@contextmanager
def identity_provider() -> Iterator[IdentityProvider]:
    """Serves a provider until the block ends."""
    listener = socket.create_server(("127.0.0.1", 0))
    provider = IdentityProvider(f"http://127.0.0.1:{listener.getsockname()[1]}")
    with serving_asgi(provider.routes(), listener):
        yield provider
