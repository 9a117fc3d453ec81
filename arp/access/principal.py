"""Who is at the other end of a connection, and for whom that counts."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

Key: TypeAlias = str
"""One user, or one address."""


class Principal(Struct, frozen=True):
    """Who is at the other end of a connection; sessions belong to one."""

    name: str = ""
    address: str = ""
    """From where; empty where bounds do not count it."""


def keys_of(principal: Principal) -> tuple[Key, ...]:
    """Return for whom a principal counts; empty where neither a user nor an address is known."""
    user = (f"user {principal.name!r}",) if principal.name else ()
    address = (f"address {principal.address}",) if principal.address else ()
    return user + address
