"""The parts of a login that authlib does: OAuth 2.0 requests, and checks of ID tokens.

authlib is used without its HTTP client, which needs a different HTTP library than this package.
Only `oidc_provider` imports this file, and only if there is a provider.
"""

from __future__ import annotations

import time
from typing import Any, Final

from arp.access.oidc import Oidc

try:
    from authlib.oauth2.auth import ClientAuth
    from authlib.oauth2.rfc6749.parameters import prepare_grant_uri, prepare_token_request
    from authlib.oauth2.rfc7636 import create_s256_code_challenge
    from authlib.oidc.core import CodeIDToken
    from joserfc import jwt
    from joserfc.errors import JoseError
    from joserfc.jwk import KeySet
except ModuleNotFoundError as error:
    raise ValueError(
        f"a login with OIDC needs {(error.name or 'authlib').partition('.')[0]}; install it: "
        'pip install "agent-rendering-protocol[oidc]"'
    ) from error

ALGORITHMS: Final = frozenset(
    (
        *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
        *("ES256", "ES384", "ES512", "EdDSA", "Ed25519"),
    )
)
"""Accepted signature algorithms of ID tokens, all asymmetric.

With `none` or a shared secret, others than the provider could make a token too.
"""

LEEWAY_S: Final = 60
"""Difference in seconds that is accepted between the clocks of the provider and the server."""


def sign_in_url(oidc: Oidc, endpoint: str, verifier: str, **more: str) -> str:
    """Return the address of an authorization request with PKCE (RFC 7636)."""
    url: str = prepare_grant_uri(
        endpoint,
        oidc.client_id,
        "code",
        scope=" ".join(oidc.scopes),
        code_challenge=create_s256_code_challenge(verifier),
        code_challenge_method="S256",
        **more,
    )
    return url


def token_request(
    oidc: Oidc, endpoint: str, methods: tuple[str, ...], grant_type: str, **more: str
) -> tuple[str, dict[str, str], str]:
    """Return the address, the headers and the body of a request for tokens."""
    method = "none"
    if oidc.client_secret is not None:
        wanted = ("client_secret_basic", "client_secret_post")
        method = next((one for one in wanted if one in methods), wanted[0])
    headers = {"content-type": "application/x-www-form-urlencoded"}
    body = prepare_token_request(grant_type, **more)
    auth = ClientAuth(oidc.client_id, oidc.client_secret, method)
    url, headers, body = auth.prepare("POST", endpoint, headers, body)
    return url, headers, body


def read_keys(found: dict[str, Any]) -> KeySet:
    """Return the signature keys of a provider.

    Raises:
        ValueError: The keys cannot be parsed.
    """
    try:
        usable = [key for key in found.get("keys", ()) if _is_for_signing(key)]
        return KeySet.import_key_set({"keys": usable})
    except (JoseError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"its keys cannot be read: {type(error).__name__}") from None


def claims_of(
    id_token: str, keys: KeySet, algorithms: frozenset[str], expected: dict[str, str | None]
) -> dict[str, Any]:
    """Return the claims of an ID token after all checks (OpenID Connect Core 3.1.3.7).

    Args:
        id_token: The encoded token.
        keys: Keys of the provider.
        algorithms: Algorithms that the provider declares.
        expected: Required values of `iss`, `client_id` and `access_token`, and of `nonce` if the
            token must have one.

    Raises:
        ValueError: The token is not valid; the text names the claim but does not quote the token.
    """
    options = {
        "iss": {"essential": True, "value": expected["iss"]},
        "aud": {"essential": True, "value": expected["client_id"]},
        "sub": {"essential": True},
    }
    try:
        token = jwt.decode(id_token, keys, algorithms=sorted(ALGORITHMS & algorithms))
        claims = CodeIDToken(token.claims, token.header, options, expected)
        claims.validate(now=int(time.time()), leeway=LEEWAY_S)
    except (JoseError, ValueError, TypeError) as error:
        code = getattr(error, "error", "") or type(error).__name__
        claim = getattr(error, "claim", "")
        raise ValueError(f"its ID token is not valid: {code} {claim}".rstrip()) from None
    return dict(claims)


def _is_for_signing(key: dict[str, Any]) -> bool:
    return key.get("kty") in ("RSA", "EC", "OKP") and key.get("use") != "enc"
