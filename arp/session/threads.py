"""The threads of a session: which there are, and to which of them each turn belongs.

Theory of operation. A session begins with one thread; others are begun on purpose. Turns of all
threads stand in one line and run one after the other; what a thread keeps apart is what its turns
know of those before. Only turns of further threads are noted, and only while they are in memory.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Final

from msgspec import Struct

from arp.protocol.errors import ResourceLimit, UnknownObject

THREAD = "main"
"""The thread with which a session begins."""

MOST_THREADS: Final = 20
"""Threads of a session, the first one included; read models keep as many."""


class KeptThreads(Struct, frozen=True, array_like=True):
    """What a stored state holds of them."""

    begun: list[str]
    turns: dict[str, str]


class Threads:
    """Which threads there are, and whose turns those in memory are."""

    __slots__ = ("begun", "turns")

    def __init__(self) -> None:
        self.begun: dict[str, None] = {}
        """Those besides the first, in order."""
        self.turns: dict[str, str] = {}
        """Turns in memory that belong to one of these."""

    def of(self, turn_id: str | None) -> str:
        """Return the thread of a turn; the first one of no turn, and of turns not in memory."""
        return self.turns.get(turn_id or "", THREAD)

    def __contains__(self, name: object) -> bool:
        return name == THREAD or name in self.begun

    def new_name(self) -> str:
        """Return a name that no thread has."""
        number = len(self.begun) + 2
        while f"thread-{number}" in self:
            number += 1
        return f"thread-{number}"

    def check(self, name: str) -> None:
        """Guarantee that there is a thread of that name.

        Raises:
            UnknownObject: There is none.
        """
        if name not in self:
            raise UnknownObject(
                f"no thread {name!r:.80} in this session; begin it with agentSession/thread/start",
                detail="threadId",
            )

    def check_room(self) -> None:
        """Guarantee that one more may be begun.

        Raises:
            ResourceLimit: There are as many as a snapshot tells.
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
        """Take note of a thread; of too many the newest are no threads that turns may join."""
        if name != THREAD and not self._is_full:
            self.begun[name] = None

    def join(self, turn_id: str, name: str | None) -> None:
        """Take note that a turn belongs to a thread; `None` is the first one."""
        if name not in (None, THREAD):
            self.turns[turn_id] = name

    def keep(self, turns: Container[str]) -> None:
        """Forget the turns that are not among these."""
        if self.turns:
            gone = [turn_id for turn_id in self.turns if turn_id not in turns]
            for turn_id in gone:
                del self.turns[turn_id]

    def follow(self, other: Threads) -> None:
        """Go on with the turns that another session of the same facts has in memory."""
        self.turns.clear()
        self.turns.update(other.turns)

    @property
    def kept(self) -> KeptThreads:
        """What a stored state holds."""
        return KeptThreads(list(self.begun), self.turns)

    def fill(self, kept: KeptThreads) -> None:
        """Take what a stored state holds."""
        self.begun.update(dict.fromkeys(kept.begun))
        self.turns.update(kept.turns)
