"""A fact stands in a pack byte for byte."""

from __future__ import annotations

import pytest

from arp.audit.evidence.fact_lines import NoFactLine, fact_line, split_line

HASH = bytes(range(32))
LINE = b'{"hash":"' + HASH.hex().encode() + b'","fact":{"a": 1 }}\n'


def test_a_line_has_the_hash_and_the_very_bytes() -> None:
    assert fact_line(HASH, b'{"a": 1 }') == LINE
    assert split_line(LINE) == (HASH, b'{"a": 1 }')


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"\n",
        LINE[:-1],
        LINE[:40],
        b" " + LINE,
        LINE.replace(b"fact", b"fict"),
        LINE.replace(b"00", b"0g", 1),
        LINE.replace(b"0a", b"0A", 1),
        b'{"hash":"' + b"0" * 64 + b'","fact":}\n',
    ],
)
def test_any_other_line_is_refused(line: bytes) -> None:
    with pytest.raises(NoFactLine):
        split_line(line)
