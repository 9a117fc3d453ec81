"""An output of any length is kept in bounded memory, and its JSON objects are emitted."""

from __future__ import annotations

import pytest

from arp.process.bounded_output import BoundedOutput


def test_a_short_output_is_kept_whole() -> None:
    output = BoundedOutput(10)
    output.add(b"12345")
    output.add(b"67890")
    assert output.text() == "1234567890"


def test_of_a_long_output_the_beginning_and_the_end_are_kept() -> None:
    output = BoundedOutput(8)
    for number in range(10):
        output.add(b"%d" % number * 10)
    assert output.text() == "0000\n[… 92 bytes left out …]\n9999"
    assert output.written == 100


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64])
def test_objects_among_the_lines_are_emitted_however_the_bytes_are_split(size: int) -> None:
    text = b'begin\n{"a": 1}\n\n  {"b": 2}\nnot {this}\n{"c"\n{"last": 3}'
    got: list[bytes] = []
    output = BoundedOutput(1_000, got.append)
    for at in range(0, len(text), size):
        output.add(text[at : at + size])
    output.end()
    assert got == [b'{"a": 1}', b'  {"b": 2}', b'{"c"', b'{"last": 3}']
    assert output.text() == text.decode()


def test_a_program_cannot_keep_us_busy_with_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arp.process.bounded_output.MAX_LINES", 3)
    monkeypatch.setattr("arp.process.bounded_output.MAX_LINE", 9)
    got: list[bytes] = []
    output = BoundedOutput(100, got.append)
    output.add(b'{"long": 1}\n' + b"y\n" * 10_000 + b"{}\n" * 10_000)
    output.add(b"{}\n{}")
    output.end()
    assert got == [b'{"long": ', b"{}", b"{}"]
