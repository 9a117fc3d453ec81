"""`Oidc`: the settings of a login at an OpenID Connect provider."""

from __future__ import annotations

import re
from typing import Annotated, Final, TypeAlias
from urllib.parse import urlsplit

from msgspec import Meta, Struct

from arp.protocol.limits import Seconds
from arp.protocol.validate import check_fields

Named: TypeAlias = Annotated[str, Meta(min_length=1, description="a text that is not empty")]

ServerUrl: TypeAlias = Annotated[
    str,
    Meta(
        pattern=r"^https?://[A-Za-z0-9._~%\[\]:-]+(?:/[A-Za-z0-9._~%/-]*)?\Z",
        description="an address with https://, as https://login.example.org",
    ),
]
"""Address of a provider, or of this server as browsers see it."""

AdminClaim: TypeAlias = Annotated[
    str, Meta(pattern=r"^[^=\s]+=[^\s].*\Z", description="CLAIM=VALUE, as groups=arp-admins")
]

LOOPBACK: Final = re.compile(r"127\.0\.0\.1|localhost|::1")


class Oidc(Struct, frozen=True):
    """A login at an OpenID Connect provider.

    Raises:
        ValueError: A field has an impossible value, or an address has no TLS.
    """

    issuer: ServerUrl
    """Address of the provider, spelled exactly as the provider publishes it."""
    client_id: Named
    """Client id of this server at the provider."""
    client_secret: Named | None = None
    """Client secret of this server at the provider; `None` for a public client."""
    scopes: tuple[Named, ...] = ("openid", "profile", "email")
    """Scopes to request from the provider."""
    user_claim: Named = "sub"
    """Claim used as `User.name`. `email` and `phone_number` count only if the provider has verified
    them. The value has up to 255 printable characters, like `sub`."""
    roles_claim: Named | None = None
    """Claim used as `User.roles`, a text or a list of texts; `None` means no roles."""
    admin: AdminClaim | None = None
    """Claim and value that make a user an admin, such as `groups=arp-admins`. A list claim must
    contain the value."""
    login_s: Seconds = 8 * 3600.0
    """Maximum duration of a login in seconds; the provider may end it earlier."""
    public_url: ServerUrl | None = None
    """Address of this server as browsers see it; `None` uses the address of each request."""

    def __post_init__(self) -> None:
        """Refuse settings that cannot work, and addresses that would send secrets unencrypted."""
        check_fields(self)
        if "openid" not in self.scopes:
            raise ValueError("Oidc.scopes: expected openid among them")
        for name in ("issuer", "public_url"):
            address = getattr(self, name)
            if address is not None and not is_protected(address):
                raise ValueError(f"Oidc.{name}: expected https://, got {address!r:.100}")


def is_protected(address: str) -> bool:
    """Return whether data sent to an address is protected: by TLS, or because it is loopback."""
    parts = urlsplit(address)
    on_loopback = LOOPBACK.fullmatch(parts.hostname or "") is not None
    return parts.scheme == "https" or (parts.scheme == "http" and on_loopback)
