"""How many bytes the files of one user's sessions may hold.

Theory of operation. What a user holds is counted once, when the first upload asks; from then on
each file that is new is added, whoever puts it there. When a session is removed, the next upload
counts again. Only uploads are refused: what an agent has made is kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
)
from pathlib import Path

from arp.protocol.errors import ResourceLimit
from arp.store.blobs import Blob, Blobs, Files
from arp.store.store import Store

_PAGE = 1000

OwnerOf = Callable[[str], str | None]
"""Tells to whom a session in memory belongs."""


class Quota:
    """`Blobs` that count for users what they hold."""

    def __init__(self, blobs: Blobs, store: Store, owner_of: OwnerOf, max_bytes: int) -> None:
        self._blobs = blobs
        self._store = store
        self._owner_of = owner_of
        self._max_bytes = max_bytes
        self._held: dict[str, int] = {}
        self._promised: Counter[str] = Counter()
        """To uploads that are being stored."""

    def of(self, session_id: str) -> Files:
        """As `Blobs.of`."""
        return _Counted(self._blobs.of(session_id), lambda size: self._grown(session_id, size))

    def removing(self, session_id: str) -> AbstractAsyncContextManager[None]:
        """As `Blobs.removing`; to be followed by `recount`."""
        return self._blobs.removing(session_id)

    def aside(self) -> AbstractContextManager[Path]:
        """As `Blobs.aside`."""
        return self._blobs.aside()

    async def held(self, session_ids: Collection[str]) -> int:
        """As `Blobs.held`."""
        return await self._blobs.held(session_ids)

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

    def _grown(self, session_id: str, size: int) -> None:
        owner = self._owner_of(session_id)
        if owner is None:
            self._held.clear()  # it left the memory: each is counted again when it matters
        elif owner in self._held:
            self._held[owner] += size


class _Counted:
    """The files of one session; each that is new is counted."""

    __slots__ = ("_files", "_grown")

    def __init__(self, files: Files, grown: Callable[[int], None]) -> None:
        self._files = files
        self._grown = grown

    async def put(self, stream: AsyncIterator[bytes], *, max_bytes: int) -> Blob:
        """As `Files.put`."""
        blob = await self._files.put(stream, max_bytes=max_bytes)
        if blob.is_new:
            self._grown(blob.size)
        return blob

    async def read(self, blob_id: str) -> bytes:
        """As `Files.read`."""
        return await self._files.read(blob_id)

    def path(self, blob_id: str) -> Path | None:
        """As `Files.path`."""
        return self._files.path(blob_id)
