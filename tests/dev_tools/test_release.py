"""What a release checks before it builds anything; `make release` does the rest."""

from __future__ import annotations

import pytest

from tools.release import ROOT, ReleaseFault, check_changelog, version_of
from tools.site_hooks import in_site

WRITTEN = "# Changelog\n\n## Unreleased\n\n- New.\n\n## 0.1.0 - 2026-01-31\n\n- First.\n"


def test_the_versions_of_all_packages_agree() -> None:
    assert version_of(ROOT).count(".") == 2


def test_a_changelog_without_what_is_new_is_refused() -> None:
    check_changelog(WRITTEN, "0.2.0", is_tagged=False)
    with pytest.raises(ReleaseFault, match=r"write under '## 0\.2\.0'"):
        check_changelog(WRITTEN, "0.2.0", is_tagged=True)
    with pytest.raises(ReleaseFault, match=r"move what is under '## Unreleased' to '## 0\.1\.0'"):
        check_changelog(WRITTEN, "0.1.0", is_tagged=True)


def test_a_tag_needs_the_date_of_its_release() -> None:
    dated = WRITTEN.replace("- New.\n", "")
    check_changelog(dated, "0.1.0", is_tagged=True)
    undated = dated.replace("2026-01-31", "not released yet")
    check_changelog(undated, "0.1.0", is_tagged=False)
    with pytest.raises(ReleaseFault, match=r"write '## 0\.1\.0 - YYYY-MM-DD'"):
        check_changelog(undated, "0.1.0", is_tagged=True)


def test_the_changelog_says_what_the_version_contains() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    check_changelog(text, version_of(ROOT), is_tagged=False)


def test_links_out_of_the_docs_lead_into_the_site_or_the_repository() -> None:
    page = "[a](../README.md#try-it) [b](web.md) [c](../examples/echo) [--x] [default: 1]"
    assert in_site(page, "docs", None) == (
        "[a](overview.md#try-it) [b](web.md) c [--x] \\[default: 1\\]"
    )
    assert "[c](https://x.org/r/blob/main/examples/echo)" in in_site(
        page, "docs", "https://x.org/r"
    )
