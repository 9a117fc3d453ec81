"""How much of something is in use: by one user, from one address, and by all."""

from __future__ import annotations

from collections import Counter

from msgspec import Struct

from arp.access.principal import Key, Principal, keys_of
from arp.protocol.errors import RateLimited


class UsageLimits(Struct, frozen=True):
    """How much may be in use at once."""

    by_user: int
    by_address: int
    by_all: int


class UsageCounter:
    """Counts what is in use.

    Args:
        what: What is counted, in the plural, as errors name it.
        limits: How much may be in use at once.
    """

    def __init__(self, what: str, limits: UsageLimits) -> None:
        self.used = 0
        self._what = what
        self._limits = limits
        self._by_key: Counter[Key] = Counter()

    def acquire(self, keys: tuple[Key, ...], amount: int = 1) -> None:
        """Count more, unless that is too much.

        Raises:
            RateLimited: One of the keys, or all together, would have too much; nothing is counted.
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
        """Count less again."""
        self.used -= amount
        for key in keys:
            self._by_key[key] -= amount
            if not self._by_key[key]:
                del self._by_key[key]


class Slot:
    """One request or connection: it counts for its address, and for its user once it has one.

    Raises:
        RateLimited: As `UsageCounter.acquire`.
    """

    __slots__ = ("_counter", "_keys", "address")

    def __init__(self, counter: UsageCounter, principal: Principal) -> None:
        self.address = principal.address
        self._counter = counter
        self._keys = keys_of(principal)
        counter.acquire(self._keys)

    def assign(self, name: str) -> None:
        """Count for a user who has shown a token only now.

        Raises:
            RateLimited: As `UsageCounter.acquire`; it counts for the address alone, as before.
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
        """Count no longer."""
        self._counter.release(self._keys)
