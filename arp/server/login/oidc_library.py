"""What authlib does of a login: the requests of OAuth 2.0, and the checks of an ID token.

authlib is used without its HTTP client, which needs another library than the rest of this package.
Only `oidc_provider` imports this file, when there is a provider.
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
"""With which an ID token may be signed. With `none` or a shared secret anybody could write one."""

LEEWAY_S: Final = 60
"""So much may the clocks of the two differ."""


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
    """Return the keys of a provider with which it may sign.

    Raises:
        ValueError: They cannot be read.
    """
    try:
        usable = [key for key in found.get("keys", ()) if _is_for_signing(key)]
        return KeySet.import_key_set({"keys": usable})
    except (JoseError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"its keys cannot be read: {type(error).__name__}") from None


def claims_of(
    id_token: str, keys: KeySet, algorithms: frozenset[str], expected: dict[str, str | None]
) -> dict[str, Any]:
    """Return what an ID token says, if all of it is valid (OpenID Connect Core 3.1.3.7).

    Args:
        id_token: As it came.
        keys: Of the provider.
        algorithms: With which the provider says that it signs.
        expected: `iss`, `client_id`, `access_token`, and `nonce` where there must be one.

    Raises:
        ValueError: It is not valid; the text names the claim, and nothing that is in the token.
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
