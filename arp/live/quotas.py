"""Quotas of one user or one address: open sessions, new sessions, bytes of files.

Theory of operation. Each session in memory counts for its owner and for the address that opened it.
Users without a name are counted only by address. So a client that creates too many sessions is
refused long before others run out of room.

The size of a user's files is computed once, at the first upload. From then on the size of each new
file is added, also of files that an agent saves. After the removal of a session, the next upload
computes the size again. Only uploads are refused; files that an agent saves are always stored.
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
    """Number of sessions in memory, and of sessions created in the current minute, by key."""

    def __init__(self, settings: HubSettings, clock: Callable[[], float]) -> None:
        self._settings = settings
        self._clock = clock
        self._open: Counter[Key] = Counter()
        self._made: Counter[Key] = Counter()
        self._window_ends = 0.0

    def full(self, keys: Iterable[Key]) -> Key | None:
        """Return the first key that has reached its limit of sessions in memory."""
        return next((key for key in keys if self._open[key] >= self._most_of(key)), None)

    def check(self, keys: Iterable[Key]) -> None:
        """Check that another session may be created.

        Raises:
            RateLimited: A key has too many open or too many new sessions.
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
        """Count a created session."""
        self._made.update(keys)

    def unmade(self, keys: Iterable[Key]) -> None:
        """Take back the count of a created session that was removed unused."""
        for key in keys:
            _decrement(self._made, key)

    def opened(self, keys: Iterable[Key]) -> None:
        """Count a session that was loaded into memory."""
        self._open.update(keys)

    def left(self, keys: Iterable[Key]) -> None:
        """Take back the count of a session that left memory."""
        for key in keys:
            _decrement(self._open, key)

    def _most_of(self, key: Key) -> int:
        settings = self._settings
        if key.startswith("user "):
            return settings.max_sessions_per_user
        return settings.max_sessions_per_address


def _decrement(counter: Counter[Key], key: Key) -> None:
    # Keys at zero are removed: there may be as many as there are addresses.
    if counter[key] > 1:
        counter[key] -= 1
    else:
        del counter[key]


class FileQuota:
    """Size of the files of each user, in bytes."""

    def __init__(self, blobs: Blobs, store: Store, max_bytes: int) -> None:
        self._blobs = blobs
        self._store = store
        self._max_bytes = max_bytes
        self._stored_bytes: dict[str, int] = {}
        self._reserved: Counter[str] = Counter()
        """Bytes that running uploads have reserved."""

    def grown(self, owner: str, size: int) -> None:
        """Count a new file."""
        if owner in self._stored_bytes:
            self._stored_bytes[owner] += size

    def recount(self, owner: str) -> None:
        """Forget the size of a user's files after a session was removed; count again later."""
        self._stored_bytes.pop(owner, None)

    @asynccontextmanager
    async def room(self, owner: str, size: int) -> AsyncIterator[None]:
        """Reserve room for an upload. Store the file in the `async with` block.

        The reservation ends with the block.

        Raises:
            ResourceLimit: The user's files would exceed the limit.
        """
        held = await self._count(owner) + self._reserved[owner]
        if held + size > self._max_bytes:
            raise ResourceLimit(
                f"the files of your sessions hold {held} of {self._max_bytes} bytes, so {size} "
                "more do not fit; delete sessions whose files you no longer need"
            )
        self._reserved[owner] += size
        try:
            yield
        finally:
            self._reserved[owner] -= size
            if not self._reserved[owner]:
                del self._reserved[owner]

    async def _count(self, owner: str) -> int:
        if owner not in self._stored_bytes:
            ids: list[str] = []
            before: str | None = None
            while page := await self._store.sessions(owner=owner, before=before, limit=_PAGE):
                ids += [meta.id for meta in page]
                before = page[-1].cursor
            held = await self._blobs.total_bytes(ids)
            # A concurrent call may have counted first, and files were added to its result since.
            self._stored_bytes.setdefault(owner, held)
        return self._stored_bytes[owner]
