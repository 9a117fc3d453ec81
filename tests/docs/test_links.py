"""Every link leads somewhere, and every page can be reached."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, PAGES, README, ROOT, anchors, links

OUTSIDE = ("http://", "https://", "mailto:")
MORE = [ROOT / name for name in ("CHANGELOG.md", "CONTRIBUTING.md", "DECISIONS.md", "SECURITY.md")]


@pytest.mark.parametrize("page", [*PAGES, *MORE], ids=lambda page: page.name)
def test_links_resolve(page: Path) -> None:
    broken = [
        link for link in links(page) if not link.startswith(OUTSIDE) and not leads(page, link)
    ]
    assert not broken


def leads(page: Path, link: str) -> bool:
    """Whether a relative link names a file that there is, and a heading in it."""
    place, _, anchor = link.partition("#")
    target = (page.parent / place).resolve() if place else page
    if not target.exists():
        return False
    return not anchor or anchor in anchors(target)


def test_every_page_of_the_docs_is_in_the_index() -> None:
    index = ROOT / "docs/index.md"
    assert {page.name for page in DOCS} - {"index.md"} <= set(links(index))


def test_every_page_of_the_docs_is_in_the_site_and_in_llms_txt() -> None:
    names = {page.name for page in DOCS}
    site = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert names <= set(re.findall(r"^ +- [^:\n]+: (\S+\.md)$", site, re.MULTILINE))
    listed = (ROOT / "llms.txt").read_text(encoding="utf-8")
    assert {name for name in names if f"/{name}" not in listed} == {"index.md"}


def test_the_readme_leads_to_the_docs() -> None:
    wanted = {"agents.md", "components.md", "server.md", "client.md", "protocol.md", "index.md"}
    linked = {link.partition("#")[0] for link in links(README)}
    assert {f"docs/{name}" for name in wanted} <= linked


def test_a_link_to_nowhere_is_found() -> None:
    assert not leads(README, "docs/nowhere.md")
    assert not leads(README, "docs/agents.md#no-such-heading")
    assert leads(README, "docs/agents.md#text-and-components")
