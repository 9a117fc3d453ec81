"""What came over a WebSocket, read afterwards: messages, their text, and how old its marks were."""

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


class Heard(Struct):
    """What one renderer got."""

    messages: int = 0
    """WebSocket messages."""
    text: str = ""
    """All deltas, joined."""
    ages_ms: list[float] = []
    """From `say` to receipt, for each mark."""

    @property
    def tokens(self) -> int:
        """How many tokens came."""
        return len(self.text) // MARK_WIDTH

    def check_whole(self, deltas: int) -> None:
        """Raises unless every token came, once, in order."""
        marks = len(self.ages_ms)
        whole = (
            len(self.text) == MARK_WIDTH * deltas
            and self.text.endswith(END)
            and self.text.count(TOKEN) + marks + 1 == deltas
        )
        if not whole:
            raise AssertionError(
                f"{self.tokens} of {deltas} tokens came; the text ends with {self.text[-20:]!r}"
            )


def hear(chunks: Sequence[Chunk]) -> Heard:
    """Reads what came; the first byte must be the first of a frame."""
    heard, said = Heard(), []
    for at_ns, payload in _frames(chunks):
        heard.messages += 1
        if b'"delta"' not in payload:
            continue
        got = _decode(payload)
        for message in got if isinstance(got, list) else [got]:
            if message.type == "delta":
                text = message.payload.delta
                said.append(text)
                heard.ages_ms += [age_ms(mark, at_ns) for mark in _MARK.findall(text)]
    heard.text = "".join(said)
    return heard


def _frames(chunks: Sequence[Chunk]) -> Iterator[Chunk]:
    """Yield the payload of each text frame, with the time at which its last byte came."""
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
