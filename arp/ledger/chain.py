"""The hash chain of a session's facts: each hash covers a fact and the hash before it.

Theory of operation. One hash covers a whole history. If the newest hash is also kept elsewhere (in
the manifest of a pack, in the segments of the store), a comparison detects a fact that was changed,
removed, moved, added, or copied from another session. The chain has no key: a person who can
rewrite the facts *and* every kept hash can make a valid chain.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from typing import Final, TypeAlias

from msgspec import Struct

from arp.protocol.errors import LocalError

HASH_BYTES: Final = 32
"""Length of a SHA-256."""

_DOMAIN: Final = b"arp-chain-1"
"""Prefix that separates these hashes from other uses of SHA-256 and from later kinds of chain."""


Kept: TypeAlias = Sequence[tuple[int, bytes | None]]
"""Sequence numbers and kept hashes of facts, in order; `None` if the store has no hash of a fact.
"""


class ChainBroken(LocalError):
    """Facts do not match their kept hashes. The facts before them are intact."""

    def __init__(self, first: int, through: int, reason: str) -> None:
        where = f"fact {first}" if first == through else f"one of the facts {first} to {through}"
        super().__init__(
            f"{where} {reason}; restore the ledger from a backup, or compare it with an evidence "
            "pack of that time: arp evidence verify PACK --ledger"
        )
        self.first = first
        self.broken = Break(first, through, self.message)


def genesis(session_id: str, epoch: str) -> bytes:
    """Return the hash that comes before the first fact of a session's log.

    Args:
        session_id: Id of the session.
        epoch: Id of this log of the session (protocol.md 2.3).
    """
    # The lengths keep two different pairs of names from giving the same bytes.
    names = [_DOMAIN, session_id.encode(), epoch.encode()]
    return sha256(b"".join(b"%d:%s" % (len(name), name) for name in names)).digest()


def link(previous: bytes, fact: bytes) -> bytes:
    """Return the hash of a fact, which also covers all facts before it.

    Args:
        previous: Hash of the previous fact, or `genesis`.
        fact: The fact, as the bytes in the store.
    """
    return sha256(previous + fact).digest()


def links(previous: bytes, facts: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the hash of each fact, in order.

    Args:
        previous: Hash of the fact before the first one, or `genesis`.
        facts: Consecutive facts, in order.
    """
    for fact in facts:
        previous = sha256(previous + fact).digest()
        yield previous


def head(previous: bytes, facts: Iterable[bytes]) -> bytes:
    """Return the hash of the last fact; `previous` if there are no facts."""
    for fact in facts:
        previous = sha256(previous + fact).digest()
    return previous


class Break(Struct, frozen=True):
    """A range of facts that do not match their kept hashes."""

    sequence: int
    """Sequence number of the first fact that may be wrong."""
    through: int
    """Sequence number of the last fact that may be wrong."""
    reason: str


class ChainCheck(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Result of comparing the facts of a session with their kept hashes."""

    session_id: str
    facts: int
    """Number of facts that were read."""
    kept_through: int
    """Sequence number of the last fact that a kept hash covers; later facts have no hash yet."""
    head: str
    """Hash of the last fact in hex. It covers all facts and can be noted elsewhere."""
    broken: Break | None = None
    """The mismatch; `None` if every fact that a kept hash covers is unchanged."""


class KeptCheck:
    """Compares the facts of a session with their kept hashes, from the first fact on.

    Args:
        session_id: Id of the session.
        epoch: Id of this log of the session.
        kept: Kept hashes of some of its facts. Without any hash, nothing is compared.
    """

    def __init__(self, session_id: str, epoch: str, kept: Kept) -> None:
        self.head = genesis(session_id, epoch)
        """Hash of the last fact that was read."""
        self.sequence = 0
        """Sequence number of that fact."""
        self.kept_through = 0
        """Sequence number of the last fact with a matching hash; later facts are not checked yet.
        """
        is_kept = any(digest is not None for _, digest in kept)
        self._kept = list(reversed(kept)) if is_kept else []

    def compare(self, facts: Iterable[bytes]) -> None:
        """Compare the next facts with their kept hashes.

        Args:
            facts: The next facts, as the bytes in the store.

        Raises:
            ChainBroken: A fact does not match its kept hash, or its kept hash was removed.
        """
        for fact in facts:
            self.head = sha256(self.head + fact).digest()
            self.sequence += 1
            if self._kept and self._kept[-1][0] == self.sequence:
                self._compare_hash(self._kept.pop()[1])

    def _compare_hash(self, digest: bytes | None) -> None:
        first = self.kept_through + 1
        # A store keeps all hashes of a session or none. A single missing hash was removed, perhaps
        # together with a change of its fact.
        if digest is None:
            raise ChainBroken(first, self.sequence, "cannot be checked: its hash was removed")
        if digest != self.head:
            raise ChainBroken(first, self.sequence, "is not what it was when its hash was kept")
        self.kept_through = self.sequence

    def finish(self) -> None:
        """Finish the comparison: there are no more facts.

        Raises:
            ChainBroken: Hashes are left, so their facts are missing.
        """
        if self._kept:
            raise ChainBroken(self.sequence + 1, self._kept[0][0], "is missing")

    def checked(self, session_id: str, broken: Break | None = None) -> ChainCheck:
        """Return the result.

        Args:
            session_id: Id of the session.
            broken: The mismatch that ended the comparison; `None` if there was none.
        """
        return ChainCheck(session_id, self.sequence, self.kept_through, self.head.hex(), broken)
