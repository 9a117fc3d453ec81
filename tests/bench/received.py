"""Decode the bytes of a WebSocket afterwards: messages, their text, and the ages of its marks."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate

import msgspec
from msgspec import Struct

from tests.bench.crowd import Chunk
from tests.bench.plan import END, MARK_WIDTH, TOKEN, age_ms

_TEXT_FRAME = 0x81
_MARK = re.compile(r"@\d{5}")


class _Payload(Struct, frozen=True):
    delta: str = ""


class _Message(Struct, frozen=True):
    type: str = ""
    payload: _Payload = _Payload()


_decode = msgspec.json.Decoder(_Message | list[_Message]).decode


class Received(Struct):
    """What one renderer received."""

    messages: int = 0
    """WebSocket messages."""
    text: str = ""
    """All deltas, joined."""
    ages_ms: list[float] = []
    """From `say` to receipt, for each mark."""

    @property
    def tokens(self) -> int:
        """The number of tokens."""
        return len(self.text) // MARK_WIDTH

    def check_complete(self, deltas: int) -> None:
        """Check that every token was received once, in order.

        Raises:
            AssertionError: Tokens are missing or repeated.
        """
        marks = len(self.ages_ms)
        is_complete = (
            len(self.text) == MARK_WIDTH * deltas
            and self.text.endswith(END)
            and self.text.count(TOKEN) + marks + 1 == deltas
        )
        if not is_complete:
            raise AssertionError(
                f"received {self.tokens} of {deltas} tokens; the text ends with {self.text[-20:]!r}"
            )


def decode(chunks: Sequence[Chunk]) -> Received:
    """Decode received bytes, which must start with the first byte of a frame."""
    received, deltas = Received(), []
    for at_ns, payload in _frames(chunks):
        received.messages += 1
        if b'"delta"' not in payload:
            continue
        decoded = _decode(payload)
        for message in decoded if isinstance(decoded, list) else [decoded]:
            if message.type == "delta":
                text = message.payload.delta
                deltas.append(text)
                received.ages_ms += [age_ms(mark, at_ns) for mark in _MARK.findall(text)]
    received.text = "".join(deltas)
    return received


def _frames(chunks: Sequence[Chunk]) -> Iterator[Chunk]:
    """Yield the payload of each text frame, with the time at which its last byte arrived."""
    data = b"".join(piece for _, piece in chunks)
    ends = list(accumulate(len(piece) for _, piece in chunks))
    at = 0
    while at + 2 <= len(data):
        kind, size = data[at], data[at + 1]
        start = at + 2
        if size >= 126:
            width = 2 if size == 126 else 8
            size = int.from_bytes(data[start : start + width], "big")
            start += width
        at = start + size
        if at > len(data):
            break
        if kind == _TEXT_FRAME:
            yield chunks[bisect_left(ends, at)][0], data[start:at]
