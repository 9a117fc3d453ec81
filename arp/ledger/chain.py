"""The hash chain over a session's facts: each hash covers the fact and the hash before it.

So one hash covers a whole history. Who keeps the newest one elsewhere (a pack's manifest, the
store's segments) can tell that a fact was changed, left out, moved, added, or comes from another
session. There is no key in it: who may rewrite facts *and* every hash kept of them can make a chain
that holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from typing import Final, TypeAlias

from msgspec import Struct

from arp.protocol.errors import LocalError

HASH_BYTES: Final = 32
"""Of SHA-256."""

_DOMAIN: Final = b"arp-chain-1"
"""Tells these hashes from any other SHA-256, and this way of chaining from a later one."""


Kept: TypeAlias = Sequence[tuple[int, bytes | None]]
"""Sequences of facts with their hashes, in order, as a store keeps them; `None`: it keeps none."""


class ChainBroken(LocalError):
    """Facts are not those of which hashes were kept. What was taken before them is good."""

    def __init__(self, first: int, through: int, reason: str) -> None:
        place = f"fact {first}" if first == through else f"one of the facts {first} to {through}"
        super().__init__(
            f"{place} {reason}; restore the ledger from a backup, or look what differs from a pack "
            "of that time: arp evidence verify PACK --ledger"
        )
        self.first = first
        self.broken = Break(first, through, self.message)


def genesis(session_id: str, epoch: str) -> bytes:
    """Return the hash before the first fact of one life of a session's log.

    Args:
        session_id: Of the session.
        epoch: Names that life of its log (protocol.md 2.3).
    """
    names = [_DOMAIN, session_id.encode(), epoch.encode()]
    return sha256(b"".join(b"%d:%s" % (len(name), name) for name in names)).digest()


def link(previous: bytes, fact: bytes) -> bytes:
    """Return the hash of a fact, which covers everything before it.

    Args:
        previous: Of the fact before, or `genesis`.
        fact: The bytes that the store holds.
    """
    return sha256(previous + fact).digest()


def links(previous: bytes, facts: Iterable[bytes]) -> Iterator[bytes]:
    """Return the hash of each fact, in order.

    Args:
        previous: Of the fact before the first, or `genesis`.
        facts: Neighbours, in order.
    """
    for fact in facts:
        previous = sha256(previous + fact).digest()
        yield previous


def head(previous: bytes, facts: Iterable[bytes]) -> bytes:
    """Return the hash of the last fact; `previous` if there is none."""
    for fact in facts:
        previous = sha256(previous + fact).digest()
    return previous


class Break(Struct, frozen=True):
    """Where facts are not those of which hashes were kept."""

    sequence: int
    """The first fact that may be bad."""
    through: int
    """The last one that may be."""
    reason: str


class Checked(Struct, frozen=True, rename="camel", omit_defaults=True):
    """What came of comparing a session with the hashes that were kept of it."""

    session_id: str
    facts: int
    """That were looked at."""
    kept_through: int
    """The last one that a kept hash covers; those behind it have none yet."""
    head: str
    """Hash of the last one, in hex: it covers all of them, for whoever writes it down."""
    broken: Break | None = None
    """`None`: each fact that a kept hash covers is what it was."""


class KeptCheck:
    """Compares the facts of a session, from the first on, with the hashes that were kept of them.

    Args:
        session_id: Of the session.
        epoch: Names that life of its log.
        kept: Of some of its facts. A session of which none is kept has nothing to compare.
    """

    def __init__(self, session_id: str, epoch: str, kept: Kept) -> None:
        self.head = genesis(session_id, epoch)
        """Hash of the last fact that was taken."""
        self.sequence = 0
        """Of that fact."""
        self.kept_through = 0
        """The last fact whose hash was compared: nothing is known of those behind it."""
        is_kept = any(digest is not None for _, digest in kept)
        self._kept = list(reversed(kept)) if is_kept else []

    def take(self, facts: Iterable[bytes]) -> None:
        """Take the next facts, as they were found.

        Raises:
            ChainBroken: They are not what they were.
        """
        for fact in facts:
            self.head = sha256(self.head + fact).digest()
            self.sequence += 1
            if self._kept and self._kept[-1][0] == self.sequence:
                self._compare(self._kept.pop()[1])

    def _compare(self, digest: bytes | None) -> None:
        first = self.kept_through + 1
        if digest is None:  # a store keeps the hashes of a session from the first on, or none
            raise ChainBroken(first, self.sequence, "cannot be checked: its hash was removed")
        if digest != self.head:
            raise ChainBroken(first, self.sequence, "is not what it was when its hash was kept")
        self.kept_through = self.sequence

    def finish(self) -> None:
        """Take note that there are no more facts.

        Raises:
            ChainBroken: Facts are missing whose hashes were kept.
        """
        if self._kept:
            raise ChainBroken(self.sequence + 1, self._kept[0][0], "is missing")

    def checked(self, session_id: str, broken: Break | None = None) -> Checked:
        """Return what was found.

        Args:
            session_id: Of the session.
            broken: What ended the check, where something did.
        """
        return Checked(session_id, self.sequence, self.kept_through, self.head.hex(), broken)
