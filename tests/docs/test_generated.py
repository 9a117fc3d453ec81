"""What the docs take from the code is what the code says now."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.pages import PAGES
from tools import gen_docs


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_generated_parts_are_up_to_date(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert gen_docs.generate(text) == text, "run make gen"


def test_a_part_that_is_out_of_date_is_written_anew() -> None:
    stale = "<!-- generated: include:examples/echo/app.py -->\n\nold\n\n<!-- end -->\n"
    written = gen_docs.generate(stale)
    assert 'app = App(title="Echo"' in written
    assert "old" not in written
    assert gen_docs.generate(written) == written


def test_what_a_component_becomes_is_made_of_the_block_before() -> None:
    page = (
        "```python\nui.key_value({'Rows': 12})\n```\n\n"
        "<!-- generated: degraded: -->\n<!-- end -->\n"
    )
    assert "```text\nRows: 12\n```" in gen_docs.generate(page)


def test_a_part_that_nobody_makes_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="no part 'colours'; there are components, props"):
        gen_docs.generate("<!-- generated: colours -->\n<!-- end -->")


def test_a_check_changes_no_byte_and_says_which_page_is_stale(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- generated: flags:render -->\n<!-- end -->\n")
    monkeypatch.setattr(gen_docs, "ROOT", tmp_path)
    monkeypatch.setattr(gen_docs, "pages", lambda: [page])
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/index.md").write_text("| read a page | [page.md](page.md) |\n")
    (tmp_path / "llms.txt").write_text(gen_docs.llms_text())
    assert gen_docs.main(["--check"]) == 1
    assert page.read_text() == "<!-- generated: flags:render -->\n<!-- end -->\n"
    assert capsys.readouterr().out == "docs: page.md is out of date; run make gen\n"
    assert gen_docs.main([]) == 0
    assert "--width" in page.read_text()
    assert gen_docs.main(["--check"]) == 0
