"""A fact in a pack: one line with its bytes, as the store holds them, and its hash in the chain.

The bytes are found by place and not by parsing: a parser that passes over a space would hide that
one was added.
"""

from __future__ import annotations

import binascii
from typing import Final

import msgspec
from msgspec import Struct

from arp.audit.evidence.manifest import FACTS, Chain
from arp.ledger import chain
from arp.ledger.chain import HASH_BYTES
from arp.protocol.errors import LocalError

_HEAD: Final = b'{"hash":"'
_MIDDLE: Final = b'","fact":'
_END: Final = b"}\n"

_HASH_AT: Final = len(_HEAD)
_MIDDLE_AT: Final = _HASH_AT + 2 * HASH_BYTES
_FACT_AT: Final = _MIDDLE_AT + len(_MIDDLE)


class NoFactLine(LocalError):
    """A line that is not one that `fact_line` writes."""


def fact_line(chain_hash: bytes, fact: bytes) -> bytes:
    """Return the line of a fact, a JSON object with its line break.

    Args:
        chain_hash: Of the fact, as `chain.link` gives it.
        fact: Its bytes, without a line break in them.
    """
    return b"".join((_HEAD, chain_hash.hex().encode(), _MIDDLE, fact, _END))


def split_line(line: bytes) -> tuple[bytes, bytes]:
    """Return the hash and the bytes of the fact of a line, with its line break.

    Raises:
        NoFactLine: It is another kind of line, or only the beginning of one.
    """
    is_whole = (
        line.startswith(_HEAD)
        and line[_MIDDLE_AT:_FACT_AT] == _MIDDLE
        and line.endswith(_END)
        and len(line) > _FACT_AT + len(_END)
    )
    digits = line[_HASH_AT:_MIDDLE_AT]
    if not is_whole or digits != digits.lower():
        raise NoFactLine("no line of a fact with its hash")
    try:
        return binascii.unhexlify(digits), line[_FACT_AT : -len(_END)]
    except ValueError:
        raise NoFactLine("a hash that is no hex number") from None


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
