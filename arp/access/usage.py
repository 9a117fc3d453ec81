"""Count the use of a resource by each user, from each address, and in total, within limits."""

from __future__ import annotations

from collections import Counter

from msgspec import Struct

from arp.access.principal import Key, Principal, keys_of
from arp.protocol.errors import RateLimited


class UsageLimits(Struct, frozen=True):
    """Maximum amounts in use at once."""

    by_user: int
    by_address: int
    by_all: int


class UsageCounter:
    """Counts a resource in use.

    Args:
        what: Name of the resource in error messages, in the plural.
        limits: Maximum amounts in use at once.
    """

    def __init__(self, what: str, limits: UsageLimits) -> None:
        self.used = 0
        self._what = what
        self._limits = limits
        self._by_key: Counter[Key] = Counter()

    def acquire(self, keys: tuple[Key, ...], amount: int = 1) -> None:
        """Add an amount to the keys and to the total.

        Raises:
            RateLimited: A key or the total would exceed its limit; nothing is added.
        """
        limits = self._limits
        for key in keys:
            limit = limits.by_user if key.startswith("user ") else limits.by_address
            if self._by_key[key] + amount > limit:
                raise RateLimited(f"{key} has {self._what} up to the bound; try again later")
        if self.used + amount > limits.by_all:
            raise RateLimited(f"there are {self._what} up to the bound; try again later")
        self.used += amount
        for key in keys:
            self._by_key[key] += amount

    def release(self, keys: tuple[Key, ...], amount: int = 1) -> None:
        """Subtract an amount that was acquired."""
        self.used -= amount
        for key in keys:
            self._by_key[key] -= amount
            if not self._by_key[key]:
                del self._by_key[key]


class Slot:
    """One counted request or connection; it counts for its address, and for its user if known.

    Raises:
        RateLimited: A limit of the counter is reached; nothing is counted.
    """

    __slots__ = ("_counter", "_keys", "address")

    def __init__(self, counter: UsageCounter, principal: Principal) -> None:
        self.address = principal.address
        self._counter = counter
        self._keys = keys_of(principal)
        counter.acquire(self._keys)

    def assign(self, name: str) -> None:
        """Count the connection for a user who sent a token after the handshake.

        Raises:
            RateLimited: A limit of the counter is reached; the count is unchanged.
        """
        keys = keys_of(Principal(name, self.address))
        self._counter.release(self._keys)
        try:
            self._counter.acquire(keys)
        except RateLimited:
            self._counter.acquire(self._keys)
            raise
        self._keys = keys

    def release(self) -> None:
        """Remove the request or connection from the counter."""
        self._counter.release(self._keys)
