"""How much of something is in use: by one user, from one address, and by all."""

from __future__ import annotations

from collections import Counter

from msgspec import Struct

from arp.hub.directory import Principal
from arp.hub.shares import Key, keys_of
from arp.protocol.errors import RateLimited


class Most(Struct, frozen=True):
    """What may be in use at once."""

    by_user: int
    by_address: int
    by_all: int


class Room:
    """Counts what is in use."""

    def __init__(self, what: str, most: Most) -> None:
        self.used = 0
        self._what = what
        self._most = most
        self._by_key: Counter[Key] = Counter()

    def take(self, keys: tuple[Key, ...], amount: int = 1) -> None:
        """Counts more, unless that is too much.

        Raises:
            RateLimited: One of the keys, or all together, would have too much; nothing is counted.
        """
        most = self._most
        for key in keys:
            bound = most.by_user if key.startswith("user ") else most.by_address
            if self._by_key[key] + amount > bound:
                raise RateLimited(f"{key} has {self._what} up to the bound; try again later")
        if self.used + amount > most.by_all:
            raise RateLimited(f"there are {self._what} up to the bound; try again later")
        self.used += amount
        for key in keys:
            self._by_key[key] += amount

    def give(self, keys: tuple[Key, ...], amount: int = 1) -> None:
        """Counts less again."""
        self.used -= amount
        for key in keys:
            self._by_key[key] -= amount
            if not self._by_key[key]:
                del self._by_key[key]


class Seat:
    """The place of one request or connection: it counts for its address, and for its user."""

    __slots__ = ("_keys", "_room", "address")

    def __init__(self, room: Room, principal: Principal) -> None:
        """Takes the place.

        Raises:
            RateLimited: As `Room.take`.
        """
        self.address = principal.address
        self._room = room
        self._keys = keys_of(principal)
        room.take(self._keys)

    def known(self, name: str) -> None:
        """Counts for a user who has shown a token only now.

        Raises:
            RateLimited: As `Room.take`; it counts for the address alone, as before.
        """
        keys = keys_of(Principal(name, self.address))
        self._room.give(self._keys)
        try:
            self._room.take(keys)
        except RateLimited:
            self._room.take(self._keys)
            raise
        self._keys = keys

    def leave(self) -> None:
        """Gives the place back."""
        self._room.give(self._keys)
