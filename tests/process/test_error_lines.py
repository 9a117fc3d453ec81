"""Standard error of programs: no secret and no control character, however it is cut."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from arp.process.error_lines import MAX_CHARACTERS, MAX_LINES, ErrorLines

TOKEN = "ghp_" + "Ab3" * 12
KEY = "-----BEGIN PRIVATE KEY-----\nMIIBVgIBADANBgkq\nhkiG9w0BAQEF\n-----END PRIVATE KEY-----\n"
TEXT = (
    f"\x1b[31mfailed\x1b[0m é {TOKEN} password hunter2-hunter2\n{KEY}"
    "\x1b]0;t\x07\x9b2J\n\n 10%\r  last\x01"
)


def lines_of(*pieces: bytes) -> list[str]:
    """Return the lines of what came in pieces."""
    found: list[str] = []
    lines = ErrorLines(["hunter2-hunter2"], found.append)
    for piece in pieces:
        lines.receive(piece)
    lines.end()
    assert found[-MAX_LINES:] == list(lines.newest)
    return found


def test_lines_have_no_secret_and_every_character_is_visible() -> None:
    lines = lines_of(TEXT.encode())
    assert lines == [
        "failed é ghp_[redacted] password [redacted]",
        "-----BEGIN PRIVATE KEY-----[redacted]-----END PRIVATE KEY-----",
        "last␁",
    ]


@given(st.lists(st.integers(0, len(TEXT.encode())), max_size=8))
def test_no_cut_lets_a_part_of_a_secret_through(cuts: list[int]) -> None:
    data, places = TEXT.encode(), [0, *sorted(cuts), None]
    lines = "\n".join(lines_of(*(data[a:b] for a, b in pairwise(places))))
    for part in (TOKEN[4:12], "hunter2", "MIIBVgIB", "hkiG9w0", "\x1b", "\x9b"):
        assert part not in lines
    assert "failed é" in lines
    assert lines.endswith("last␁")


def test_a_long_line_is_cut_and_a_text_that_is_no_utf_8_is_read() -> None:
    long, odd = lines_of(b"x" * 100_000 + b"\n\xff\xfe\n")
    assert len(long) == MAX_CHARACTERS
    assert odd == "��"
