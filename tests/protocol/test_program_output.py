"""The output of programs: colours, progress and links are read as a terminal would."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arp.protocol.framing.program_output import printed
from arp.protocol.safe_text import sanitise

CASES = json.loads(
    (Path(__file__).parents[2] / "schemas/cases/program_output.json").read_text("utf-8")
)


@pytest.mark.parametrize(("text", "shown"), [case[1:] for case in CASES], ids=lambda _: "")
def test_output_is_shown_as_it_is_at_its_end(text: str, shown: str) -> None:
    """schemas/cases/program_output.json"""
    assert printed(text) == shown


SIGNS = st.sampled_from(
    [
        *("\x1b", "\x1b[", "\x1b]8;;", "\x9b", "\x9d", "\x07", "\x1b\\", "\r", "\n", "\b", "\x00"),
        *(
            "m",
            "K",
            "2K",
            "A",
            "J",
            "1J",
            "9G",
            "`",
            "E",
            "F",
            "D",
            "31",
            "word",
            "日本",
            "😀",
            ";",
        ),
    ]
)


@given(st.lists(SIGNS, max_size=40).map("".join))
def test_no_sequence_of_a_terminal_is_left_and_reading_twice_changes_nothing(text: str) -> None:
    """Whatever the output is."""
    shown = printed(text)
    assert not set(shown) & set("\x00\x07\x08\r\x1b\x90\x9b\x9c\x9d")
    assert printed(shown) == shown
    assert sanitise(shown) == shown.expandtabs(1)


@pytest.mark.parametrize(
    "text",
    [
        "\x1b]" * 100_000,
        "\x1bP\x1b" * 100_000,
        "x" * 300_000 + "\x1b[1K" * 30_000,
        ("x" * 900 + "\x1b[1K\x1b[2Ky") * 300,
        "\x1b[" + "1" * 300_000,
        "\n" * 50_000 + "\x1b[A\x1b[J\n" * 50_000,
        "a\r" * 150_000,
    ],
    ids=lambda text: repr(text[:6]),
)
def test_cost_of_hostile_output_follows_its_length(text: str) -> None:
    """Quadratic reading of these would take minutes."""
    began = time.monotonic()
    printed(text)
    assert time.monotonic() - began < 10
