"""The principal of a connection: its user and address, and the keys under which limits count it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from msgspec import Struct
from msgspec.structs import force_setattr

MAX_NAME: Final = 255
"""Maximum length of a user's name in characters, as for `sub` (OpenID Connect Core, 2)."""


def is_name(text: str) -> bool:
    """Return whether a text is a valid user name.

    Logs, lists and facts show names, so two names must not look the same. A name has no control
    characters, no invisible characters, and no spaces at either end.
    """
    return 0 < len(text) <= MAX_NAME and text.isprintable() and text == text.strip()


Key: TypeAlias = str
"""Key of a user or of an address in counters."""


class User(Struct, frozen=True):
    """A user, as returned by `Access.authenticate` and shown in `turn.user`.

    Raises:
        ValueError: The name is not valid; see `is_name`.
        TypeError: The name is not a text, the roles are a single text, the claims are not a
            mapping, or the expiry is not a number.
    """

    name: str = ""
    """Name that owns the sessions; empty if users are not distinguished."""
    display_name: str = ""
    """Name to show to people; the default is `name`."""
    roles: Collection[str] = ()
    """Roles that your agents can check: `if "admin" in turn.user.roles`."""
    claims: Mapping[str, Any] = {}
    """Further data about the user, such as the claims of a signed token."""
    expires_at: float | None = None
    """Time at which the access ends, in seconds since the epoch; open connections are closed then.
    `None` means no end."""

    def __post_init__(self) -> None:
        """Check the fields, and convert subclasses of `str` to plain texts."""
        for field in ("name", "display_name"):
            force_setattr(self, field, _plain_text(field, getattr(self, field)))
        if self.name and not is_name(self.name):
            raise ValueError(
                f"User.name: expected up to {MAX_NAME} printable characters without a blank at "
                f"either end, got {self.name!r:.80}"
            )
        if not self.display_name:
            force_setattr(self, "display_name", self.name)
        if isinstance(self.roles, str) or not isinstance(self.roles, Collection):
            raise TypeError(f"User.roles: expected a list of texts, got {self.roles!r:.60}")
        force_setattr(self, "roles", tuple(_plain_text("roles", role) for role in self.roles))
        if not isinstance(self.expires_at, int | float | None):
            kind = type(self.expires_at).__name__
            raise TypeError(f"User.expires_at: expected seconds since 1970, got {kind}")
        if not isinstance(self.claims, Mapping):
            raise TypeError(f"User.claims: expected a mapping, got {type(self.claims).__name__}")
        # Many turns share this object; a change made by one turn must not reach another.
        force_setattr(self, "claims", MappingProxyType(dict(self.claims)))


class Principal(Struct, frozen=True):
    """The authenticated peer of a connection; each session belongs to one principal."""

    name: str = ""
    address: str = ""
    """Client address under which limits count the peer; empty if they do not count it."""
    known_as: User | None = None
    """User with all known data; `None` if only the name is known."""
    credential: str = ""
    """Credential that admitted the peer, such as `token:ID`; empty if it cannot be revoked."""
    expires_at: float | None = None
    """Time at which the access ends, in seconds since the epoch; `None` means no end."""
    is_admin: bool = False
    """Whether the peer may read the sessions of all users, and stop, disable and remove tools of
    the Tool Agent. It gives no other rights."""

    @property
    def user(self) -> User:
        """The user, with only the name if nothing else is known."""
        return self.known_as or User(self.name)


def keys_of(principal: Principal) -> tuple[Key, ...]:
    """Return the keys under which limits count a principal; empty without user name and address."""
    user = (f"user {principal.name!r}",) if principal.name else ()
    address = (f"address {principal.address}",) if principal.address else ()
    return user + address


def _plain_text(field: str, value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"User.{field}: expected a text, got {type(value).__name__}")
    return str.__str__(value)  # the content of a subclass, even if it overrides `__str__`
