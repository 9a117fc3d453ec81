"""The threads of a session, and the thread of each turn.

Theory of operation. A session has one thread at first; others are created by a request. The turns
of all threads share one queue and run one after the other. A thread only separates the history:
its turns know the earlier turns of the same thread. Turns of the first thread are not recorded
here, and turns of other threads only while they are in memory.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Final

from msgspec import Struct

from arp.protocol.errors import ResourceLimit, UnknownObject

THREAD = "main"
"""Name of the first thread of a session."""

MOST_THREADS: Final = 20
"""Maximum number of threads of a session, the first one included; read models keep as many."""


class KeptThreads(Struct, frozen=True, array_like=True):
    """The threads in a stored state."""

    begun: list[str]
    turns: dict[str, str]


class Threads:
    """The threads of a session, and the threads of the turns in memory."""

    __slots__ = ("begun", "turns")

    def __init__(self) -> None:
        self.begun: dict[str, None] = {}
        """Names of the threads besides the first one, oldest first."""
        self.turns: dict[str, str] = {}
        """Thread of each turn in memory that is not in the first thread."""

    def of(self, turn_id: str | None) -> str:
        """Return the thread of a turn; the first thread for `None` and for turns not in memory."""
        return self.turns.get(turn_id or "", THREAD)

    def __contains__(self, name: object) -> bool:
        return name == THREAD or name in self.begun

    def new_name(self) -> str:
        """Return a free name for a thread."""
        number = len(self.begun) + 2
        while f"thread-{number}" in self:
            number += 1
        return f"thread-{number}"

    def check(self, name: str) -> None:
        """Check that a thread exists.

        Raises:
            UnknownObject: There is no thread with this name.
        """
        if name not in self:
            raise UnknownObject(
                f"no thread {name!r:.80} in this session; begin it with agentSession/thread/start",
                detail="threadId",
            )

    def check_room(self) -> None:
        """Check that another thread may be created.

        Raises:
            ResourceLimit: The session has `MOST_THREADS` threads.
        """
        if self._is_full:
            raise ResourceLimit(
                f"a session has {MOST_THREADS} threads at most; begin another session",
                detail="threadId",
            )

    @property
    def _is_full(self) -> bool:
        return len(self.begun) + 1 >= MOST_THREADS

    def begin(self, name: str) -> None:
        """Add a thread. A thread beyond the maximum is ignored, and turns cannot join it."""
        if name != THREAD and not self._is_full:
            self.begun[name] = None

    def join(self, turn_id: str, name: str | None) -> None:
        """Record the thread of a turn; `None` means the first thread."""
        if name not in (None, THREAD):
            self.turns[turn_id] = name

    def keep(self, turns: Container[str]) -> None:
        """Forget all turns except the given ones."""
        if self.turns:
            gone = [turn_id for turn_id in self.turns if turn_id not in turns]
            for turn_id in gone:
                del self.turns[turn_id]

    def follow(self, other: Threads) -> None:
        """Adopt the turns of a session that was built from the same facts for another branch."""
        self.turns.clear()
        self.turns.update(other.turns)

    @property
    def kept(self) -> KeptThreads:
        """The threads, and the thread of each turn, in the form that a stored state contains."""
        return KeptThreads(list(self.begun), self.turns)

    def fill(self, kept: KeptThreads) -> None:
        """Restore a stored state."""
        self.begun.update(dict.fromkeys(kept.begun))
        self.turns.update(kept.turns)
