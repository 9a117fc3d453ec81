"""Who is at the other end of a connection, and for whom that counts."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from msgspec import Struct
from msgspec.structs import force_setattr

MAX_NAME: Final = 255
"""Characters of a user's name, as of `sub` (OpenID Connect Core, 2)."""


def is_name(text: str) -> bool:
    """Return whether a text can be a user's name.

    Logs, lists and facts show names, so two names must not look the same: a name has no control
    characters, no invisible characters, and no blank at either end.
    """
    return 0 < len(text) <= MAX_NAME and text.isprintable() and text == text.strip()


Key: TypeAlias = str
"""One user, or one address."""


class User(Struct, frozen=True):
    """A user, as `Access.authenticate` knows them and `turn.user` shows them.

    Raises:
        ValueError: The name is too long, or has control characters or invisible characters.
        TypeError: The name is no text, the roles are one text, the claims are no mapping, or the
            time is no number.
    """

    name: str = ""
    """Sessions belong to it; empty where nothing tells one user from another."""
    display_name: str = ""
    """For people; the name if it is not given."""
    roles: Collection[str] = ()
    """What your agents may look at: `if "admin" in turn.user.roles`."""
    claims: Mapping[str, Any] = {}
    """Whatever else is known, such as the claims of a signed token."""
    expires_at: float | None = None
    """Until when they may come in, in seconds since 1970; open connections are closed then."""

    def __post_init__(self) -> None:
        """Check what an author wrote, and make plain texts of subclasses of `str`."""
        for field in ("name", "display_name"):
            force_setattr(self, field, _text(field, getattr(self, field)))
        if self.name and not is_name(self.name):
            raise ValueError(
                f"User.name: expected up to {MAX_NAME} printable characters without a blank at "
                f"either end, got {self.name!r:.80}"
            )
        if not self.display_name:
            force_setattr(self, "display_name", self.name)
        if isinstance(self.roles, str) or not isinstance(self.roles, Collection):
            raise TypeError(f"User.roles: expected a list of texts, got {self.roles!r:.60}")
        force_setattr(self, "roles", tuple(_text("roles", role) for role in self.roles))
        if not isinstance(self.expires_at, int | float | None):
            kind = type(self.expires_at).__name__
            raise TypeError(f"User.expires_at: expected seconds since 1970, got {kind}")
        if not isinstance(self.claims, Mapping):
            raise TypeError(f"User.claims: expected a mapping, got {type(self.claims).__name__}")
        # One user is shown to many turns: what one of them writes must not reach another.
        force_setattr(self, "claims", MappingProxyType(dict(self.claims)))


class Principal(Struct, frozen=True):
    """Who is at the other end of a connection; sessions belong to one."""

    name: str = ""
    address: str = ""
    """From where; empty where bounds do not count it."""
    known_as: User | None = None
    """What the hook said of the user; `None` where the name is all that is known."""
    credential: str = ""
    """What let them in, as `token:ID`; empty where that cannot be revoked."""
    expires_at: float | None = None
    """Until when they may come in, in seconds since 1970."""
    is_admin: bool = False
    """Whether they may read the sessions of all users, and stop, disable and remove tools of the
    Tool Agent; nothing more."""

    @property
    def user(self) -> User:
        """The user, by the name alone if no more is known."""
        return self.known_as or User(self.name)


def keys_of(principal: Principal) -> tuple[Key, ...]:
    """Return for whom a principal counts; empty where neither a user nor an address is known."""
    user = (f"user {principal.name!r}",) if principal.name else ()
    address = (f"address {principal.address}",) if principal.address else ()
    return user + address


def _text(field: str, value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"User.{field}: expected a text, got {type(value).__name__}")
    return str.__str__(value)  # of a subclass, what it holds
