"""Hooks of MkDocs: pages of the root, the logo, the landing page, and links out of `docs/`.

The pages are written for readers of the repository: they link to `../README.md` and to source
files. In the site, the pages of the root are pages too. A link to any other file becomes a link
into the repository if its address is known (`DOCS_REPOSITORY`), and plain text otherwise.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent

FROM_ROOT = {
    "README.md": "overview.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "DECISIONS.md": "decisions.md",
    "SECURITY.md": "security.md",
}
"""Pages of the root, with their names in the site."""

LOGO = ROOT / "web/page/src/icon.svg"
LANDING = "index.md"

LINK = re.compile(r"(?<!!)\[(?P<text>(?:[^\[\]]|\[[^\]]*\]\([^)]*\))*?)\]\((?P<to>[^)\s]+)\)")
IN_HTML = re.compile(r"(?P<name>src|srcset|href)=\"docs/")
BRACKETS = re.compile(r"\[((?:default|env): [^\[\]]*|\d+<=x<=\d+)\](?!\()")
"""Notes about flags in the help of commands (default, variable, range); MkDocs would read them as
references."""
FENCE = re.compile(r"(^```.*?^```$)", re.DOTALL | re.MULTILINE)
OUTSIDE = ("http://", "https://", "mailto:", "#")


def on_files(files: Any, config: Any) -> Any:
    """Add the pages of the root, and the logo of the product."""
    from mkdocs.structure.files import File

    for source, name in FROM_ROOT.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        content = IN_HTML.sub(r'\g<name>="', in_site(text, "", config["repo_url"]))
        files.append(File.generated(config, name, content=content))
    logo = LOGO.read_text(encoding="utf-8")
    files.append(File.generated(config, config["theme"]["logo"], content=logo))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Rewrite the links of a page of `docs/`, and hide the sidebars of the landing page."""
    if page.file.src_uri in FROM_ROOT.values():
        return markdown
    if page.file.src_uri == LANDING:
        page.meta |= {"hide": ["navigation", "toc"], "title": "One agent, every screen"}
    return in_site(markdown, "docs", config["repo_url"])


def on_page_content(html: str, page: Any, config: Any, files: Any) -> str:
    """Mark the content of the landing page for its styles."""
    return f'<div class="arp-landing">{html}</div>' if page.file.src_uri == LANDING else html


def in_site(text: str, folder: str, repository: str | None) -> str:
    """Return a page with its links adapted to the site.

    Args:
        text: Text of the page.
        folder: Folder of the page in the repository.
        repository: Address of the repository; `None` or empty if it is not known.
    """

    def replace(found: re.Match[str]) -> str:
        link = found["to"]
        if link.startswith(OUTSIDE):
            return found[0]
        place, mark, anchor = link.partition("#")
        path = posixpath.normpath(posixpath.join(folder, place))
        if path in FROM_ROOT:
            return f"[{found['text']}]({FROM_ROOT[path]}{mark}{anchor})"
        if path.startswith("docs/"):
            return f"[{found['text']}]({path.removeprefix('docs/')}{mark}{anchor})"
        if repository:
            return f"[{found['text']}]({repository.rstrip('/')}/blob/main/{path})"
        return found["text"]

    parts = FENCE.split(text)
    return "".join(
        part if number % 2 else BRACKETS.sub(r"\[\1\]", LINK.sub(replace, part))
        for number, part in enumerate(parts)
    )
