"""What is printed cannot be taken back: only what is over may be cut off."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arp_terminal.drawing import markdown as markdown_module
from arp_terminal.drawing import pieces as pieces_module
from arp_terminal.drawing.markdown import MAX_SOURCE, markdown
from arp_terminal.drawing.pieces import (
    MarkdownCut,
    draw_markdown,
    finished,
    is_open_fence,
    lines_over,
)
from arp_terminal.options import Options
from arp_terminal.painter import Painter

WORDS = (
    "word ",
    "more\n",
    "two words\n",
    "\n",
    "```\n",
    "*b*",
    "*",
    "- item\n",
    "# head\n",
    "x_y",
    "---\n",
    "`c` ",
    "3 * 4 ",
)


@pytest.mark.parametrize(
    ("source", "over"),
    [
        ("", ""),
        ("still growing", ""),
        ("a line\n", ""),
        ("a paragraph\n\n", "a paragraph\n\n"),
        ("one\n\ntwo", "one\n\n"),
        ("# head\n", "# head\n"),
        ("# head", ""),
        ("text\n---", ""),
        ("```py\ncode\n", ""),
        ("```py\ncode\n```", ""),
        ("```py\ncode\n```\n", "```py\ncode\n```\n"),
        ("````\n```\n", ""),
        ("| a |\n|---|\n| 1 |\n", ""),
        ("| a |\n|---|\n| 1 |\n\n", "| a |\n|---|\n| 1 |\n\n"),
        ("> quote\n", ""),
        ("> quote\n\n", "> quote\n\n"),
        ("- a", ""),
        ("- a\n\n", ""),
        ("- a\n\ntext", "- a\n\n"),
        ("one\r\n\r\ntwo", "one\r\n\r\n"),
        ("a\rb\n\nc", "a\rb\n\n"),
    ],
)
def test_blocks_are_over_when_nothing_can_change_them(source: str, over: str) -> None:
    assert source[: finished(source).offset] == over


def test_all_items_of_a_list_but_the_last_are_over() -> None:
    assert finished("- a\n- b") == MarkdownCut(4, tight=True)
    assert finished("- a\n\n- b") == MarkdownCut(5, tight=False)
    assert finished("1. x\n1. y\n1. z") == MarkdownCut(10, tight=True, number=3)
    assert finished("5) x\n6) y") == MarkdownCut(5, tight=True, number=6)
    assert finished("1. y\n1. z", number=2) == MarkdownCut(5, tight=True, number=3)


def test_a_block_without_end_is_cut_all_the_same() -> None:
    source = "word\n" * MAX_SOURCE
    assert 0 < finished(source).offset <= MAX_SOURCE
    assert finished("x" * (MAX_SOURCE + 5)).offset == MAX_SOURCE


def test_a_long_text_is_cut_at_its_blocks() -> None:
    source = "a paragraph\n\n" * 6000
    assert source[: finished(source).offset].endswith("a paragraph\n\n")


def test_an_open_fence_is_known() -> None:
    assert is_open_fence("text\n```\ncode")
    assert not is_open_fence("```\ncode\n```\n")
    assert not is_open_fence("text")


BLOCKS = st.sampled_from(
    [
        "word ",
        "**bold** ",
        "\n",
        "\n\n",
        "# head\n",
        "```\n",
        "code()\n",
        "> quote\n",
        "| a | b |\n|---|---|\n",
        "| 1 | 2 |\n",
        "---\n",
        "<div>\n",
        "$5 *",
    ]
)


@given(st.lists(BLOCKS, max_size=12), st.lists(BLOCKS, max_size=6))
def test_what_is_cut_off_looks_the_same_whatever_comes_behind(
    before: list[str], behind: list[str]
) -> None:
    """T8: nothing that was printed would look different in the whole text."""
    source = "".join(before)
    cut = finished(source).offset
    whole = shown(source + "".join(behind))
    assert whole[: len(shown(source[:cut]))] == shown(source[:cut])


def shown(source: str) -> list[str]:
    chosen = Options(colour=False)
    lines = Painter(chosen).lines(markdown(source, chosen))
    return lines if any(lines) else []


@pytest.mark.parametrize(
    ("source", "over"),
    [
        ("one line", ""),
        ("one line\n", ""),
        ("one\ntwo", "one\n"),
        ("one\ntwo\nthree", "one\ntwo\n"),
        ("one\n12:30 two", "one\n"),
        ("one\n1", ""),
        ("one\n1. two", ""),
        ("one\n- two", ""),
        ("one\n---", ""),
        ("one\n|", ""),
        ("an *open\nmark", ""),
        ("a *closed* one\nmark", "a *closed* one\n"),
        ("a `b\nc", ""),
        ("a [b\nc", ""),
        ("snake_case 2 * 3\nnext", "snake_case 2 * 3\n"),
        ("good\nan *open\nmark", "good\n"),
        ("broken\\\nhard", ""),
        ("```py\na = 1\n", "```py\na = 1\n"),
        ("```py\na = 1\n\n\nb", "```py\na = 1\n"),
        ("```py\n", ""),
        ("```py\n\n", ""),
        ("- a\n  b\n  c", ""),
        ("> a\nb", ""),
    ],
)
def test_lines_are_over_when_nothing_can_change_them(source: str, over: str) -> None:
    assert source[: lines_over(source).offset] == over


def test_code_goes_on_behind_a_line_of_it() -> None:
    assert lines_over("```py\na\nb") == MarkdownCut(8, tight=True, fence="```py\n")
    assert lines_over("b\nc", "```py\n") == MarkdownCut(2, tight=True, fence="```py\n")
    assert lines_over("```\n", "```py\n") == MarkdownCut(0)
    assert finished("b\n```\n", fence="```py\n") == MarkdownCut(6)
    assert finished("b\n```\n\nnext", fence="```py\n") == MarkdownCut(7)
    assert finished("b\nc", fence="```py\n") == MarkdownCut(0)


@given(st.lists(st.sampled_from(WORDS), max_size=30).map("".join))
def test_text_by_lines_looks_as_it_does_at_once(source: str) -> None:
    """But for empty lines it is the same paper."""
    pieces: list[tuple[str, str]] = []
    rest, fence, place = source, "", 0
    for end in range(len(source) + 1):
        rest = source[place:end]
        while (cut := _cut(rest, fence)).offset:
            pieces.append((rest[: cut.offset], fence))
            place += cut.offset
            rest, fence = rest[cut.offset :], cut.fence
    pieces.append((rest, fence))
    painter = Painter(Options(width=40, colour=False))
    by_line = [
        line
        for piece, opened in pieces
        if piece.strip()
        for line in painter.lines(markdown(piece.rstrip("\r\n"), painter.options, None, opened))
    ]
    at_once = painter.lines(markdown(source.strip("\r\n"), painter.options))
    assert [line for line in by_line if line] == [line for line in at_once if line]


def _cut(source: str, fence: str) -> MarkdownCut:
    cut = finished(source, None, fence)
    return cut if cut.offset else lines_over(source, fence)


@pytest.mark.parametrize("before", ["", "text\n\n", "| x |\n|---|\n| 1 |\n\n"])
def test_long_code_and_long_tables_are_not_torn(
    before: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither in one component nor in text that grows.

    The limit is smaller than the real one, at which each case takes seconds.
    """
    limit = 4 << 10
    monkeypatch.setattr(markdown_module, "MAX_SOURCE", limit)
    monkeypatch.setattr(pieces_module, "MAX_SOURCE", limit)
    count = limit // 5
    code = "".join(f"row {n}\n\n" for n in range(count))
    quoted = "".join(f"> row {n}\n" for n in range(count))
    table = "".join(f"| {n} | cell |\n" for n in range(count))
    for block in (
        f"```py\n{code}```",
        f"> ```\n{quoted}> ```",
        f"| a | b |\n|---|---|\n{table}",
    ):
        options = Options(colour=False, max_rows=None)
        drawn = Painter(options).lines(draw_markdown(f"{before}{block}\n\n*end*", options))
        assert drawn[-1] == "end"
        assert not [line for line in drawn if "```" in line or "|--" in line or "| cell" in line]
        rows = [line for line in drawn if "row " in line or "cell" in line]
        assert len(rows) == count
        assert all(line.startswith(("  row", "▎   row")) or "cell" in line for line in rows)


def test_a_growing_block_is_cut_with_what_opened_it() -> None:
    source = "```py\n" + "x = 1\n" * MAX_SOURCE
    cut = finished(source)
    assert (cut.fence, cut.tight) == ("```py\n", True)
    assert finished(source[cut.offset :], None, cut.fence).fence == "```py\n"
    rows = "| a |\n|---|\n" + "| 1 |\n" * MAX_SOURCE
    assert finished(rows).fence == "| a |\n|---|\n"


WHOLE_BLOCKS = st.lists(
    st.one_of(
        st.builds("word {}\n\n".format, st.integers(0, 99)),
        st.builds("## head {}\n\n".format, st.integers(0, 99)),
        st.builds(
            lambda count, mark: f"{mark}py\n" + "x = 1\n" * count + f"{mark}\n\n",
            st.integers(1, 30),
            st.sampled_from(["```", "~~~~"]),
        ),
        st.builds(lambda count: "> quoted  \n" * count + "\n", st.integers(1, 20)),
        st.builds(lambda count: "- item\n" * count + "\n<!-- -->\n\n", st.integers(1, 20)),
        st.builds(lambda count: "$$\n" + "x + y\n" * count + "$$\n\n", st.integers(1, 4)),
    ),
    min_size=1,
    max_size=8,
)


@given(WHOLE_BLOCKS, st.integers(60, 200))
def test_a_text_that_is_cut_anywhere_shows_the_same_lines(blocks: list[str], limit: int) -> None:
    """The limit decides where the cuts are; blocks longer than it are cut within."""
    source, options = "".join(blocks), Options(colour=False, max_rows=None)
    with pytest.MonkeyPatch.context() as patch:
        whole = Painter(options).lines(draw_markdown(source, options))
        patch.setattr("arp_terminal.drawing.pieces.MAX_SOURCE", limit)
        cut = Painter(options).lines(draw_markdown(source, options))
    assert [line for line in cut if line.strip()] == [line for line in whole if line.strip()]
