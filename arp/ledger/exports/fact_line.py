"""A fact in a pack: one line with its bytes, as the store holds them, and its hash in the chain.

The bytes are found by place and not by parsing: a parser that passes over a space would hide that
one was added.
"""

from __future__ import annotations

import binascii
from typing import Final

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
    told = line[_HASH_AT:_MIDDLE_AT]
    if not is_whole or told != told.lower():
        raise NoFactLine("no line of a fact with its hash")
    try:
        return binascii.unhexlify(told), line[_FACT_AT : -len(_END)]
    except ValueError:
        raise NoFactLine("a hash that is no hex number") from None
