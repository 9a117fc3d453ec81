"""The hash chain over a session's facts: each hash covers the fact and the hash before it.

So one hash stands for a whole history. Who keeps the newest one elsewhere (a pack's manifest, the
store's segments) can tell that a fact was changed, left out, moved, added, or comes from another
session. There is no key in it: who may rewrite facts *and* every hash kept of them can make a chain
that holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from itertools import zip_longest
from typing import Final

HASH_BYTES: Final = 32
"""Of SHA-256."""

_DOMAIN: Final = b"arp-chain-1"
"""Tells these hashes from any other SHA-256, and this way of chaining from a later one."""


def genesis(session_id: str, epoch: str) -> bytes:
    """Gives the hash that stands before the first fact of one life of a session's log.

    Args:
        session_id: Of the session.
        epoch: Names that life of its log (protocol.md 2.3).
    """
    names = [_DOMAIN, session_id.encode(), epoch.encode()]
    return sha256(b"".join(b"%d:%s" % (len(name), name) for name in names)).digest()


def link(previous: bytes, fact: bytes) -> bytes:
    """Gives the hash of a fact, which covers everything before it.

    Args:
        previous: Of the fact before, or `genesis`.
        fact: The bytes that the store holds.
    """
    return sha256(previous + fact).digest()


def links(previous: bytes, facts: Iterable[bytes]) -> Iterator[bytes]:
    """Gives the hash of each fact, in order.

    Args:
        previous: Of the fact before the first, or `genesis`.
        facts: Neighbours, in order.
    """
    for fact in facts:
        previous = sha256(previous + fact).digest()
        yield previous


def head(previous: bytes, facts: Iterable[bytes]) -> bytes:
    """Gives the hash of the last fact; `previous` if there is none."""
    for fact in facts:
        previous = sha256(previous + fact).digest()
    return previous


def first_break(
    previous: bytes, facts: Iterable[bytes], hashes: Sequence[bytes], first: int = 1
) -> int | None:
    """Gives the first sequence at which facts are not those whose hashes were kept.

    Args:
        previous: The hash before the first fact, from where it can be believed; `genesis`.
        facts: As they were found, in order.
        hashes: As they were kept, one for each fact that there was.
        first: Sequence of the first fact.

    Returns:
        `None` if every fact is there, unchanged and in its place. Of a tail cut off: the first
        sequence that is missing; of facts added behind: the first of them.
    """
    pairs = zip_longest(links(previous, facts), hashes)
    return next((place for place, (found, kept) in enumerate(pairs, first) if found != kept), None)
