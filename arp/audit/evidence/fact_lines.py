"""Lines of `facts.jsonl`: each holds the stored bytes of a fact and its hash in the chain.

A line is split at fixed offsets, not parsed as JSON. A parser skips whitespace, so it would hide a
space that was added later.
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
    """The line does not have the form that `fact_line` writes."""


def fact_line(chain_hash: bytes, fact: bytes) -> bytes:
    """Return the line of a fact: a JSON object and a line break.

    Args:
        chain_hash: Hash of the fact, as returned by `chain.link`.
        fact: Stored bytes of the fact, without line breaks.
    """
    return b"".join((_HEAD, chain_hash.hex().encode(), _MIDDLE, fact, _END))


def split_line(line: bytes) -> tuple[bytes, bytes]:
    """Return the hash and the fact's bytes from a line, which must include its line break.

    Raises:
        NoFactLine: The line has another form, or is cut off.
    """
    is_whole = (
        line.startswith(_HEAD)
        and line[_MIDDLE_AT:_FACT_AT] == _MIDDLE
        and line.endswith(_END)
        and len(line) > _FACT_AT + len(_END)
    )
    digits = line[_HASH_AT:_MIDDLE_AT]
    # `unhexlify` accepts upper case, so a changed digit such as "A" for "a" would go unnoticed.
    if not is_whole or digits != digits.lower():
        raise NoFactLine("no line of a fact with its hash")
    try:
        return binascii.unhexlify(digits), line[_FACT_AT : -len(_END)]
    except ValueError:
        raise NoFactLine("a hash that is no hex number") from None


class PackDefect(Struct, frozen=True):
    """A defect of a pack: something differs from what was exported."""

    part: str
    reason: str
    sequence: int | None = None
    """Sequence number of the first bad fact; `None` if the defect is not in a fact."""

    def __str__(self) -> str:
        """Return the defect as a sentence."""
        location = f"fact {self.sequence}" if self.sequence is not None else self.part
        return f"{location}: {self.reason}"


class _Position(Struct, rename="camel"):
    sequence: int
    session_id: str


_decoder = msgspec.json.Decoder(_Position)


class FactCheck:
    """Checks the facts of a pack, line by line."""

    def __init__(self, expected: Chain) -> None:
        self._expected = expected
        self._hash = bytes.fromhex(expected.previous)
        self._next = expected.first

    def begin(self) -> PackDefect | None:
        """Check that a chain that starts at fact 1 starts with the genesis hash of the session."""
        expected = self._expected
        genesis = chain.genesis(expected.session_id, expected.epoch)
        if expected.first == 1 and self._hash != genesis:
            reason = "the chain does not begin as that of this session and epoch"
            return PackDefect(FACTS, reason, 1)
        return None

    def line(self, line: bytes) -> PackDefect | None:
        """Check the next line, which includes its line break.

        Returns:
            The defect, after which no later line can be trusted; `None` if the line is good.
        """
        sequence, expected = self._next, self._expected
        if sequence > expected.through:
            return PackDefect(FACTS, f"was added; the pack ends at {expected.through}", sequence)
        try:
            kept, fact = split_line(line)
        except NoFactLine:
            return PackDefect(FACTS, "its line is damaged", sequence)
        self._hash = chain.link(self._hash, fact)
        wrong = self._check_position(fact, sequence)
        if wrong is not None:
            return PackDefect(FACTS, wrong, sequence)
        if kept != self._hash:
            return PackDefect(FACTS, "it is not what it was when its hash was made", sequence)
        self._next += 1
        return None

    def _check_position(self, fact: bytes, sequence: int) -> str | None:
        try:
            found = _decoder.decode(fact)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return "it cannot be read"
        if found.session_id != self._expected.session_id:
            return f"it is of session {found.session_id!r:.80}"
        if found.sequence != sequence:
            return f"fact {found.sequence} is in its place"
        return None

    def end(self) -> PackDefect | None:
        """Check that no facts are missing at the end and that the chain ends at its head."""
        expected = self._expected
        if self._next <= expected.through:
            return PackDefect(FACTS, f"it is missing, and all up to {expected.through}", self._next)
        if self._hash.hex() != expected.head:
            reason = "the chain does not end as the manifest says: from somewhere up to here it "
            return PackDefect(
                FACTS, f"{reason}was made again", max(expected.through, expected.first)
            )
        return None
