"""A diff as a unified diff in a code block."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arp.surface import as_code
from arp.surface.as_code import diff_as_code, unified

LINES = "".join(f"line {n}\n" for n in range(1, 10))


def test_a_diff_becomes_a_code_block_in_the_language_diff() -> None:
    diff = {
        "title": "Config",
        "before": "a\nb\nc\n",
        "after": "a\nB\nc\n",
        "before_label": "old.cfg",
        "after_label": "new.cfg",
        "language": "ini",
    }
    assert diff_as_code(diff) == {
        "title": "Config",
        "language": "diff",
        "code": "--- old.cfg\n+++ new.cfg\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c",
    }
    assert diff_as_code({"before": "a", "after": "b"}) == {
        "language": "diff",
        "code": "--- before\n+++ after\n@@ -1 +1 @@\n-a\n+b",
    }


def test_equal_texts_have_no_difference() -> None:
    assert unified("a\n", "a\n", "x", "y") == ["--- x", "+++ y", "(no difference)"]


def test_a_missing_last_line_break_is_said_where_only_one_text_misses_it() -> None:
    assert unified("a\nb", "a\nb\n", "x", "y") == [
        "--- x",
        "+++ y",
        "@@ -1,2 +1,2 @@",
        " a",
        "-b\n\\ No newline at end of file",
        "+b",
    ]
    assert unified("a\n", "b", "x", "y")[-1] == "+b\n\\ No newline at end of file"
    assert unified("", "a", "x", "y") == ["--- x", "+++ y", "@@ -0,0 +1 @@", "+a"]


def test_texts_too_long_to_compare_are_shown_as_replaced_between_their_equal_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(as_code, "MAX_COMPARED", 3)
    after = LINES.replace("line 5\n", "five\n").replace("line 6\n", "six\n")
    assert unified(LINES, after, "x", "y") == [
        "--- x",
        "+++ y",
        "@@ -2,8 +2,8 @@",
        " line 2",
        " line 3",
        " line 4",
        "-line 5",
        "-line 6",
        "+five",
        "+six",
        " line 7",
        " line 8",
        " line 9",
    ]


text = st.text(alphabet="ab\n", max_size=12)


@given(text, text, st.sampled_from([0, 1_000_000]))
def test_what_is_marked_leads_from_one_text_to_the_other(
    before: str, after: str, most: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(as_code, "MAX_COMPARED", most)
        lines = [line.split("\n")[0] for line in unified(before, after, "x", "y")[2:]]
    removed = [line[1:] for line in lines if line.startswith("-")]
    added = [line[1:] for line in lines if line.startswith("+")]
    for line in removed:
        assert line in before.split("\n")
    for line in added:
        assert line in after.split("\n")
    grown = len(after.removesuffix("\n").split("\n")) if after else 0
    shrunk = len(before.removesuffix("\n").split("\n")) if before else 0
    assert len(added) - len(removed) == grown - shrunk
