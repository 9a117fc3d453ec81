"""What one user or one address may have: open sessions, new sessions, bytes of files.

Theory of operation. Each session in memory counts for the user to whom it belongs and for the
address from which it was asked for; a user without a name is everybody, and is no bound. So who
makes too many is refused long before there is no room for the others.

What the files of a user hold is counted once, when the first upload asks; from then on each file
that is new is added, whoever puts it there. When a session is removed, the next upload counts
again. Only uploads are refused: what an agent has made is kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager

from arp.access.principal import Key
from arp.live.settings import HubSettings
from arp.protocol.errors import RateLimited, ResourceLimit
from arp.store.blobs import Blobs
from arp.store.store import Store

WINDOW_S = 60.0

_PAGE = 1000


class SessionQuota:
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


class FileQuota:
    """How many bytes the files of each user hold."""

    def __init__(self, blobs: Blobs, store: Store, max_bytes: int) -> None:
        self._blobs = blobs
        self._store = store
        self._max_bytes = max_bytes
        self._held: dict[str, int] = {}
        self._promised: Counter[str] = Counter()
        """To uploads that are being stored."""

    def grown(self, owner: str, size: int) -> None:
        """Count a file that is new."""
        if owner in self._held:
            self._held[owner] += size

    def recount(self, owner: str) -> None:
        """Let what a user holds be counted again: a session of theirs was removed."""
        self._held.pop(owner, None)

    @asynccontextmanager
    async def room(self, owner: str, size: int) -> AsyncIterator[None]:
        """Keep room for an upload, for a block that stores it.

        Raises:
            ResourceLimit: The user holds too much.
        """
        held = await self._count(owner) + self._promised[owner]
        if held + size > self._max_bytes:
            raise ResourceLimit(
                f"the files of your sessions hold {held} of {self._max_bytes} bytes, so {size} "
                "more do not fit; delete sessions whose files you no longer need"
            )
        self._promised[owner] += size
        try:
            yield
        finally:
            self._promised[owner] -= size
            if not self._promised[owner]:
                del self._promised[owner]

    async def _count(self, owner: str) -> int:
        if owner not in self._held:
            ids: list[str] = []
            before: str | None = None
            while page := await self._store.sessions(owner=owner, before=before, limit=_PAGE):
                ids += [meta.id for meta in page]
                before = page[-1].cursor
            held = await self._blobs.held(ids)
            self._held.setdefault(owner, held)  # who counted meanwhile may have stored since
        return self._held[owner]
