"""The OpenID Connect provider: requests to it, and checks of its answers.

Theory of operation. The provider describes itself (discovery) and publishes its keys. No answer is
trusted before it is checked. The description must name the configured issuer, and every address in
it must use TLS or be on this machine. An ID token must be signed by one of the keys with an
asymmetric algorithm; `oidc_library` checks that, and is imported only if there is a provider.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import httpx
import msgspec
from msgspec import Struct

from arp.access.guard import ADMIN
from arp.access.oidc import Oidc, is_protected
from arp.access.principal import MAX_NAME, User, is_name

if TYPE_CHECKING:
    from joserfc.jwk import KeySet

logger = logging.getLogger(__name__)

TIMEOUT_S: Final = 10.0
DESCRIBED_S: Final = 3600.0
"""Lifetime in seconds of the cached description and keys of a provider."""

KEYS_S: Final = 10.0
"""Shortest time in seconds between two requests for the keys because of an unknown key."""

MAX_ANSWER_BYTES: Final = 1 << 20


class ProviderFailed(Exception):
    """The provider failed, refused a request, or sent an answer that is not valid.

    Args:
        reason: Text for the log and the user; it never contains a secret.
        is_final: Whether the provider refused; otherwise the same request may succeed later.
    """

    def __init__(self, reason: str, *, is_final: bool = True) -> None:
        super().__init__(reason)
        self.is_final = is_final


class Description(Struct, frozen=True):
    """Metadata of a provider (OpenID Connect Discovery 3)."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    end_session_endpoint: str | None = None
    token_endpoint_auth_methods_supported: tuple[str, ...] = ("client_secret_basic",)
    id_token_signing_alg_values_supported: tuple[str, ...] = ("RS256",)
    authorization_response_iss_parameter_supported: bool = False


class _TokenAnswer(Struct, frozen=True):
    access_token: str
    id_token: str | None = None
    refresh_token: str | None = None
    expires_in: float | None = None


class Identity(Struct, frozen=True):
    """A user who signed in, and the tokens to renew the login."""

    user: User
    is_admin: bool
    id_token: str
    refresh_token: str | None
    renew_at: float | None
    """Time of the next renewal, in seconds since the epoch; `None` means never."""


class Provider:
    """Client of one provider.

    Args:
        oidc: Settings of the provider.

    Raises:
        ValueError: authlib is not installed.
    """

    def __init__(self, oidc: Oidc) -> None:
        import arp.server.login.oidc_library  # noqa: F401  # without authlib, the start must fail

        if oidc.user_claim in CHANGEABLE:
            logger.warning(
                "user_claim=%r: at many providers, users can change this claim and so get the "
                "sessions of another user; use sub, unless your provider forbids such changes",
                oidc.user_claim,
            )
        self._oidc = oidc
        self._client: httpx.AsyncClient | None = None
        self._described: tuple[float, Description] | None = None
        self._keys: tuple[float, KeySet] | None = None

    async def aclose(self) -> None:
        """Close the connections; the next request opens a new one."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def sign_in_url(self, redirect_uri: str, state: str, nonce: str, verifier: str) -> str:
        """Return the address at which a user signs in."""
        from arp.server.login.oidc_library import sign_in_url

        endpoint = (await self._describe()).authorization_endpoint
        more = {"redirect_uri": redirect_uri, "state": state, "nonce": nonce}
        return sign_in_url(self._oidc, endpoint, verifier, **more)

    async def check_sender(self, issuer: str | None) -> None:
        """Check the issuer in an answer, so that no other provider can have sent it (RFC 9207).

        Raises:
            ProviderFailed: The issuer differs, or it is missing although the provider declares
                that it always sends it.
        """
        described = await self._describe()
        is_missing = issuer is None and described.authorization_response_iss_parameter_supported
        if is_missing or (issuer is not None and issuer != described.issuer):
            raise ProviderFailed("the answer came from another provider")

    async def sign_in(self, code: str, redirect_uri: str, verifier: str, nonce: str) -> Identity:
        """Exchange the code that the provider gave the browser for the identity of the user.

        Raises:
            ProviderFailed: The code or the ID token is not valid.
        """
        fields = {"redirect_uri": redirect_uri, "code": code, "code_verifier": verifier}
        answer = await self._tokens("authorization_code", **fields)
        if answer.id_token is None:
            raise ProviderFailed("the provider sent no ID token")
        claims = await self._claims(answer.id_token, answer.access_token, nonce)
        return self._identity(claims, answer.id_token, answer, None)

    async def renew(self, known: Identity, subject: str) -> Identity:
        """Return the current identity of a user who signed in before.

        Args:
            known: Identity up to now.
            subject: `sub` of the user; it never changes.

        Raises:
            ProviderFailed: The provider refuses, or cannot be reached.
        """
        answer = await self._tokens("refresh_token", refresh_token=known.refresh_token or "")
        # A provider may renew without a new ID token (OpenID Connect Core 12.2); nothing changes.
        if answer.id_token is None:
            return msgspec.structs.replace(
                known,
                refresh_token=answer.refresh_token or known.refresh_token,
                renew_at=_renew_at(answer, known.refresh_token),
            )
        claims = await self._claims(answer.id_token, answer.access_token, None)
        if claims["sub"] != subject:
            raise ProviderFailed("the renewed ID token belongs to another user")
        return self._identity(claims, answer.id_token, answer, known.refresh_token)

    async def sign_out_url(self, id_token: str, back: str) -> str | None:
        """Return the address at which a browser signs out; `None` if the provider has none."""
        try:
            described = await self._describe()
        except ProviderFailed:
            return None
        if described.end_session_endpoint is None:
            return None
        query = {
            "client_id": self._oidc.client_id,
            "id_token_hint": id_token,
            "post_logout_redirect_uri": back,
        }
        return str(httpx.URL(described.end_session_endpoint).copy_merge_params(query))

    # -- checked answers ---------------------------------------------------------------------------

    async def _describe(self) -> Description:
        now = time.monotonic()
        if self._described is not None and now < self._described[0] + DESCRIBED_S:
            return self._described[1]
        url = f"{self._oidc.issuer.rstrip('/')}/.well-known/openid-configuration"
        content = await self._ask("GET", url)
        described: Description = _decoded(content, Description, "its description")
        if described.issuer != self._oidc.issuer:
            raise ProviderFailed(f"its description names another issuer: {described.issuer!r:.200}")
        for name in Description.__struct_fields__:
            value = getattr(described, name)
            if name.endswith(("_endpoint", "_uri")) and value and not is_protected(value):
                raise ProviderFailed(f"its {name} does not use TLS")
        self._described = (now, described)
        return described

    async def _key_set(self, *, again: bool = False) -> KeySet:
        from arp.server.login.oidc_library import read_keys

        now = time.monotonic()
        # Tokens with unknown keys must not make the server request the keys each time.
        age_s = math.inf if self._keys is None else now - self._keys[0]
        if self._keys is None or age_s > (KEYS_S if again else DESCRIBED_S):
            described = await self._describe()
            found = _decoded(await self._ask("GET", described.jwks_uri), dict, "its keys")
            try:
                self._keys = (now, read_keys(found))
            except ValueError as error:
                raise ProviderFailed(str(error), is_final=False) from None
        return self._keys[1]

    async def _claims(self, id_token: str, access_token: str, nonce: str | None) -> dict[str, Any]:
        """Return the claims of an ID token after all checks.

        Raises:
            ProviderFailed: A claim is not valid. The reason names the claim, never its value.
        """
        from arp.server.login.oidc_library import claims_of

        described = await self._describe()
        algorithms = frozenset(described.id_token_signing_alg_values_supported)
        expected = {
            "iss": described.issuer,
            "client_id": self._oidc.client_id,
            "access_token": access_token,
            "nonce": nonce,
        }
        for again in (False, True):  # the provider may have changed its keys since the last request
            keys = await self._key_set(again=again)
            try:
                return claims_of(id_token, keys, algorithms, expected)
            except ValueError as error:
                reason = str(error)
        raise ProviderFailed(reason)

    def _identity(
        self,
        claims: Mapping[str, Any],
        id_token: str,
        answer: _TokenAnswer,
        refresh_token: str | None,
    ) -> Identity:
        oidc, name = self._oidc, _name(claims, self._oidc.user_claim)
        _name(claims, "sub")  # must exist, because a renewal compares it
        verified = VERIFIED.get(oidc.user_claim)
        if verified is not None and claims.get(verified) is not True:
            # Otherwise a user could enter the address of another user and get their sessions.
            raise ProviderFailed(f"the provider has not verified the {oidc.user_claim}")
        is_admin = _is_admin(oidc, claims)
        named = [one for one in _texts(claims.get(oidc.roles_claim or "")) if is_name(one)]
        roles = [role for role in named if role != ADMIN or is_admin]
        if is_admin and ADMIN not in roles:
            roles.append(ADMIN)
        shown = [one for one in map(claims.get, _NAMES) if isinstance(one, str) and is_name(one)]
        user = User(name, next(iter(shown), name), roles, claims)
        refresh_token = answer.refresh_token or refresh_token
        return Identity(user, is_admin, id_token, refresh_token, _renew_at(answer, refresh_token))

    # -- requests ----------------------------------------------------------------------------------

    async def _tokens(self, grant_type: str, **more: str) -> _TokenAnswer:
        from arp.server.login.oidc_library import token_request

        described = await self._describe()
        methods = described.token_endpoint_auth_methods_supported
        request = token_request(self._oidc, described.token_endpoint, methods, grant_type, **more)
        answer: _TokenAnswer = _decoded(
            await self._ask("POST", *request), _TokenAnswer, "its tokens"
        )
        return answer

    async def _ask(
        self, method: str, url: str, headers: dict[str, str] | None = None, body: str = ""
    ) -> bytes:
        """Send a request and return the body of the answer. Redirects are not followed.

        Raises:
            ProviderFailed: The provider cannot be reached, refuses, or its answer is too large.
        """
        if self._client is None:
            self._client = httpx.AsyncClient(timeout=TIMEOUT_S, follow_redirects=False)
        all_headers = {"accept": "application/json", **(headers or {})}
        content = b""
        try:
            async with self._client.stream(
                method, url, headers=all_headers, content=body
            ) as answer:
                async for chunk in answer.aiter_bytes():
                    content += chunk
                    if len(content) > MAX_ANSWER_BYTES:
                        raise ProviderFailed("its answer is too large", is_final=False)
        except httpx.HTTPError as error:
            reason = f"it cannot be reached: {type(error).__name__}"
            raise ProviderFailed(reason, is_final=False) from None
        if answer.status_code != 200:
            is_final = 400 <= answer.status_code < 500 and answer.status_code not in (408, 429)
            raise ProviderFailed(f"it refused: {_refusal(content, answer)}", is_final=is_final)
        return content


VERIFIED: Final = {"email": "email_verified", "phone_number": "phone_number_verified"}
"""Claims that are accepted only if another claim says that the provider verified them."""

CHANGEABLE: Final = frozenset(
    (
        *("name", "given_name", "family_name", "middle_name", "nickname", "preferred_username"),
        *("profile", "picture", "website", "gender", "birthdate", "zoneinfo", "locale", "address"),
    )
)
"""Claims that users may edit themselves (OpenID Connect Core, 5.1 and 5.7)."""

_NAMES: Final = ("name", "preferred_username", "email")
"""Claims that may contain the display name, preferred ones first."""


def _name(claims: Mapping[str, Any], claim: str) -> str:
    """Return a claim that names a user.

    Raises:
        ProviderFailed: The claim is missing, or it is not a valid user name (`is_name`).
    """
    name = claims.get(claim)
    if not isinstance(name, str) or not name:
        raise ProviderFailed(f"its ID token has no claim {claim!r}")
    if not is_name(name):
        raise ProviderFailed(
            f"its claim {claim!r} has control characters, a blank at an end, or more than "
            f"{MAX_NAME} characters"
        )
    return name


def subject_of(identity: Identity) -> str:
    """Return the `sub` of an identity."""
    return str(identity.user.claims["sub"])


def _is_admin(oidc: Oidc, claims: Mapping[str, Any]) -> bool:
    claim, _, wanted = (oidc.admin or "").partition("=")
    return bool(claim) and wanted in _texts(claims.get(claim))


def _texts(value: object) -> list[str]:
    """Return a claim as a list of texts. Its value may be one text or a list."""
    several = value if isinstance(value, list | tuple) else (value,)
    return [one for one in several if isinstance(one, str) and one]


def _renew_at(answer: _TokenAnswer, refresh_token: str | None) -> float | None:
    has_token = answer.refresh_token or refresh_token
    if answer.expires_in is None or not has_token:
        return None
    return time.time() + max(answer.expires_in, 1.0)


def _decoded(content: bytes, kind: Any, what: str) -> Any:
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.DecodeError, RecursionError):
        raise ProviderFailed(f"{what} cannot be read", is_final=False) from None


def _refusal(content: bytes, answer: httpx.Response) -> str:
    """Return the code of an error answer. Its text may contain anything, so it is not used."""
    try:
        code = msgspec.json.decode(content)["error"]
    except (msgspec.DecodeError, KeyError, TypeError, RecursionError):
        code = None
    is_word = isinstance(code, str) and code.isascii() and code.replace("_", "").isalnum()
    return str(code)[:40] if is_word else f"HTTP {answer.status_code}"
