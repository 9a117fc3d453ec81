"""Markdown as terminal text."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from arp_terminal.drawing.markdown import markdown, shown_address
from arp_terminal.drawing.pieces import finished, lines_over
from arp_terminal.options import Options
from arp_terminal.painter import Painter
from tests.renderers.terminal.drawing import drawn, picture


def shown(source: str, width: int = 40, *, colour: bool = False, unicode: bool = True) -> str:
    chosen = Options(width=width, colour=colour, unicode=unicode)
    return "\n".join(Painter(chosen).lines(markdown(source, chosen)))


def test_headings_of_the_first_level_are_underlined() -> None:
    assert shown("# Weather\n## Rain\ntext") == picture(
        """
        Weather
        ━━━━━━━

        Rain

        text
        """
    )


def test_words_are_styled_and_their_marks_are_gone() -> None:
    lines = shown("**bold** *it* ~~no~~ `code`", colour=True)
    assert lines == ("\x1b[1mbold\x1b[0m \x1b[3mit\x1b[0m \x1b[9mno\x1b[0m \x1b[33mcode\x1b[0m")


def test_a_link_shows_its_text_and_its_true_address() -> None:
    source = "[your bank](https://evil.example/login)"
    assert shown(source, 60) == "your bank (https://evil.example/login)"
    assert shown("<https://a.example>") == "https://a.example"
    assert shown("<a@b.example>") == "a@b.example"


def test_an_image_shows_what_it_is_of_and_where_it_is() -> None:
    assert shown("![a cat](https://a.example/c.png)") == "▣ a cat (https://a.example/c.png)"


@pytest.mark.parametrize(
    ("address", "full"),
    [
        ("/_api/blobs/sabc/1/out.csv", "https://a.example/below/_api/blobs/sabc/1/out.csv"),
        ("/other", "https://a.example/other"),
        ("more.html", "https://a.example/below/more.html"),
        ("https://b.example/", "https://b.example/"),
        ("mailto:c@d.example", "mailto:c@d.example"),
        ("#part", "#part"),
        ("http://[", "http://["),
    ],
)
def test_an_address_is_shown_with_the_server_that_it_belongs_to(address: str, full: str) -> None:
    chosen = Options(server="https://a.example/below")
    assert shown_address(address, chosen) == full
    assert shown_address(address, Options()) == address


def test_a_link_that_the_parser_refuses_stays_as_it_is_written() -> None:
    assert shown("[x](javascript:alert(1))") == "[x](javascript:alert(1))"


def test_html_is_shown_and_not_read() -> None:
    assert shown("a <b>b</b>\n\n<script>x</script>") == "a <b>b</b>\n\n<script>x</script>"


def test_lists_nest_and_number() -> None:
    source = "- one\n- two\n  - inner\n\n3. third\n4. fourth"
    assert shown(source) == picture(
        """
        • one
        • two
          ◦ inner

        3. third
        4. fourth
        """
    )
    assert shown("- one", unicode=False) == "- one"


def test_list_items_wrap_behind_their_marker() -> None:
    assert shown("- " + "word " * 9, 24) == "• word word word word\n  word word word word\n  word"


def test_loose_lists_have_empty_lines() -> None:
    assert shown("- a\n\n- b") == "• a\n\n• b"


def test_quotes_have_a_rail() -> None:
    assert shown("> said\n> so") == "▎ said\n▎ so"


def test_code_keeps_its_lines_and_names_its_language() -> None:
    assert shown("```python\nx = 1\n\ny = 2\n```") == picture(
        """
        python
          x = 1

          y = 2
        """
    )
    assert shown("    indented\n    code") == "  indented\n  code"


def test_code_is_highlighted() -> None:
    lines = shown("```python\nreturn 12\n```", colour=True).split("\n")
    assert lines[1] == "  \x1b[35mreturn\x1b[0m \x1b[36m12\x1b[0m"


def test_a_language_that_is_not_known_is_plain() -> None:
    assert shown("```\x1b[31m\nx\n```", colour=True) == "\x1b[2m␛[31m\x1b[0m\n  x"


def test_tables_align_as_they_say() -> None:
    source = "| name | n |\n|---|--:|\n| **a** | 1 |\n| bb | 22 |"
    assert shown(source) == picture(
        """
        name   n
        ────  ──
        a      1
        bb    22
        """
    )


def test_a_newline_in_a_paragraph_stays_a_newline() -> None:
    assert shown("one\ntwo  \nthree") == "one\ntwo\nthree"


def test_a_definition_of_a_link_is_not_lost() -> None:
    """Text comes in pieces: the definition may stand in another piece than the link."""
    assert shown("[x][1]\n\n[1]: https://a.example") == "[x][1]\n\n[1]: https://a.example"


def test_a_numbered_list_goes_on_where_the_piece_before_ended() -> None:
    chosen = Options(colour=False)
    assert Painter(chosen).lines(markdown("1. x\n1. y", chosen, 7)) == ["7. x", "8. y"]


def test_markdown_that_costs_too_much_is_shown_as_it_is_written() -> None:
    assert shown("# " + "x" * (64 << 10), 80).startswith("#\nxxx")


def test_hostile_nesting_ends() -> None:
    """W81, T51: quotes and lists ten thousand deep, brackets without end."""
    for source in (">" * 10_000, "- " * 10_000, "[" * 10_000, "*" * 10_000, "`" * 10_001):
        assert shown(source, 80) is not None


@pytest.mark.parametrize(("source", "shown"), [("42.", "42."), ("a\n\n7)", "a\n\n7."), ("- ", "•")])
def test_an_item_without_text_shows_its_marker(source: str, shown: str) -> None:
    """CommonMark reads `42.` as a list; as an answer it must not vanish."""
    assert drawn("markdown", content=source) == shown


EMPHASIS = json.loads(
    (Path(__file__).parents[3] / "schemas/cases/emphasis.json").read_text("utf-8")
)
SIGNS = {"3": ("<i>", "</i>"), "1": ("<b>", "</b>"), "9": ("<s>", "</s>"), "33": ("`", "`")}


@pytest.mark.parametrize(("source", "wanted"), [case[1:] for case in EMPHASIS])
def test_emphasis_needs_no_blanks_where_a_script_has_none(source: str, wanted: str) -> None:
    """schemas/cases/emphasis.json: the same rule as in the page."""
    found = ""
    for code, word, plain in re.findall(
        r"\x1b\[([\d;]+)m(.*?)\x1b\[0m|([^\x1b]+)", shown(source, 80, colour=True)
    ):
        signs = [SIGNS[one] for one in SIGNS if one in code.split(";")]
        found += "".join(sign[0] for sign in signs) + word + plain
        found += "".join(sign[1] for sign in reversed(signs))
    assert found == wanted


@pytest.mark.parametrize(
    "source",
    [
        r"The root \(x_1 = \frac{-b \pm \sqrt{b^2}}{2a}\) and \(\{y_1\}\).",
        r"$$\begin{pmatrix} a & b \\ c & d \end{pmatrix}$$",
        "\\[\nf(x) = \\{ x \\,|\\, x > 0 \\}\n\n- y * z * 2\n\\]",
        r"Inline $$a_1\;b_1$$ and \[a\_b\] too.",
        r"With one dollar: $\{a_1, b_1\}$.",
        "$$\na \\\\\n= b\n$$",
    ],
)
def test_a_formula_keeps_its_backslashes(source: str) -> None:
    """CommonMark would take `\\{` for an escape, `_` for emphasis, and `-` for a list."""
    assert shown(source, 80) == source
    assert shown(f"> {source}".replace("\n", "\n> "), 80) == "\n".join(
        f"▎ {line}".rstrip() for line in source.split("\n")
    )


def test_what_only_begins_like_a_formula_is_text() -> None:
    assert shown("It costs $5\\_000 or $6, $$ no \\*formula\\*", 80) == (
        "It costs $5_000 or $6, $$ no *formula*"
    )
    assert shown("\\\\(*x*\\\\)", 80) == "\\(x\\)"
    assert shown("$$\n*x*", 80) == "$$\nx"
    assert shown("\\(" * 20_000, 80).startswith("(((")


def test_a_formula_is_never_cut() -> None:
    """It is over at its end, or when it is too long to be one."""
    assert finished("a\n\n$$\nx\n\ny\n").offset == 3
    assert finished("$$\nx\n\ny\n$$\n").offset == 11
    assert finished("$$\nx\n\n" + "y\n\n" * 3000).offset > 0
    assert lines_over("a \\(b\nc", "").offset == 0
    assert lines_over("a \\(b\\)\nc \\\\(d", "").offset == 8
