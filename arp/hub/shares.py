"""How many sessions one user and one address may have and make: fewer than there may be in all.

Theory of operation. Each session in memory counts for the user to whom it belongs and for the
address from which it was asked for; a user without a name is everybody, and is no bound. So who
makes too many is refused long before there is no room for the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from arp.access.principal import Key
from arp.hub.settings import HubSettings
from arp.protocol.errors import RateLimited

WINDOW_S = 60.0


class Shares:
    """Counts the sessions in memory, and those that were made in this minute, by key."""

    def __init__(self, settings: HubSettings, clock: Callable[[], float]) -> None:
        self._settings = settings
        self._clock = clock
        self._open: Counter[Key] = Counter()
        self._made: Counter[Key] = Counter()
        self._window_ends = 0.0

    def full(self, keys: Iterable[Key]) -> Key | None:
        """Return the first key that has as many sessions in memory as it may have."""
        return next((key for key in keys if self._open[key] >= self._most_of(key)), None)

    def check(self, keys: Iterable[Key]) -> None:
        """Check that another session may be made.

        Raises:
            RateLimited: One of the keys has or made too many.
        """
        full = self.full(keys)
        if full is not None:
            raise RateLimited(
                f"{full} has {self._open[full]} open sessions, as many as it may have; "
                "close some, or try again later"
            )
        now, most = self._clock(), self._settings.max_new_sessions_per_minute
        if now >= self._window_ends:
            self._made.clear()
            self._window_ends = now + WINDOW_S
        busy = next((key for key in keys if self._made[key] >= most), None)
        if busy is not None:
            raise RateLimited(f"{busy} made {most} sessions within a minute; try again in a minute")

    def made(self, keys: Iterable[Key]) -> None:
        """Count a session that was made."""
        self._made.update(keys)

    def unmade(self, keys: Iterable[Key]) -> None:
        """Take back a session that was made, and went before it cost anything."""
        for key in keys:
            _take_one(self._made, key)

    def opened(self, keys: Iterable[Key]) -> None:
        """Count a session that came into memory."""
        self._open.update(keys)

    def left(self, keys: Iterable[Key]) -> None:
        """Take back a session that left the memory."""
        for key in keys:
            _take_one(self._open, key)

    def _most_of(self, key: Key) -> int:
        settings = self._settings
        if key.startswith("user "):
            return settings.max_sessions_per_user
        return settings.max_sessions_per_address


def _take_one(counter: Counter[Key], key: Key) -> None:
    if counter[key] > 1:
        counter[key] -= 1
    else:
        del counter[key]
