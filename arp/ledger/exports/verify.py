"""Whether the facts of a pack are those that were exported, and where they begin not to be.

Theory of operation. Three things are known of each fact: its bytes and the hash before it make
its hash; its bytes say which sequence it has and whose it is; and the manifest says where the chain
begins and ends. Whoever changes a fact and leaves the hashes is found at once, at that fact;
whoever makes new hashes is found by what the bytes say, or at the end of the chain.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

from arp.ledger import chain
from arp.ledger.exports.fact_line import NoFactLine, split_line
from arp.ledger.exports.manifest import FACTS, Chain


class Broken(Struct, frozen=True):
    """Something that is not as it was exported."""

    part: str
    reason: str
    sequence: int | None = None
    """Of the first fact that is not what it was; `None` if no fact is bad."""

    def __str__(self) -> str:
        """Return it as a sentence."""
        place = f"fact {self.sequence}" if self.sequence is not None else self.part
        return f"{place}: {self.reason}"


class _Placed(Struct, rename="camel"):
    sequence: int
    session_id: str


_decoder = msgspec.json.Decoder(_Placed)


class FactCheck:
    """Checks the facts of a pack, line by line."""

    def __init__(self, expected: Chain) -> None:
        self._expected = expected
        self._hash = bytes.fromhex(expected.previous)
        self._next = expected.first

    def begin(self) -> Broken | None:
        """Check the beginning of the chain."""
        expected = self._expected
        genesis = chain.genesis(expected.session_id, expected.epoch)
        if expected.first == 1 and self._hash != genesis:
            reason = "the chain does not begin as that of this session and epoch"
            return Broken(FACTS, reason, 1)
        return None

    def line(self, line: bytes) -> Broken | None:
        """Check the next line, with its line break.

        Returns:
            What is wrong; then nothing behind it can be believed. `None` if nothing is.
        """
        place, expected = self._next, self._expected
        if place > expected.through:
            return Broken(FACTS, f"was added; the pack ends at {expected.through}", place)
        try:
            kept, fact = split_line(line)
        except NoFactLine:
            return Broken(FACTS, "its line is damaged", place)
        self._hash = chain.link(self._hash, fact)
        wrong = self._read(fact, place)
        if wrong is not None:
            return Broken(FACTS, wrong, place)
        if kept != self._hash:
            return Broken(FACTS, "it is not what it was when its hash was made", place)
        self._next += 1
        return None

    def _read(self, fact: bytes, place: int) -> str | None:
        try:
            found = _decoder.decode(fact)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return "it cannot be read"
        if found.session_id != self._expected.session_id:
            return f"it is of session {found.session_id!r:.80}"
        if found.sequence != place:
            return f"fact {found.sequence} stands in its place"
        return None

    def end(self) -> Broken | None:
        """Check that nothing is missing at the end."""
        expected = self._expected
        if self._next <= expected.through:
            return Broken(FACTS, f"it is missing, and all up to {expected.through}", self._next)
        if self._hash.hex() != expected.head:
            reason = "the chain does not end as the manifest says: from somewhere up to here it "
            return Broken(FACTS, f"{reason}was made again", max(expected.through, expected.first))
        return None
