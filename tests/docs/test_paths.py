"""Every path of a file or folder of this repository that a page names exists."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, README, ROOT

TOP = ("arp", "docs", "examples", "renderers", "schemas", "tests", "tools", "web")
"""Folders of the repository whose files pages name with their whole path."""

PAGES = [
    README,
    *DOCS,
    *(ROOT / name for name in ("CONTRIBUTING.md", "DECISIONS.md", "SECURITY.md")),
    *sorted((ROOT / "examples").glob("**/*.md")),
    *sorted((ROOT / "tests").glob("**/README.md")),
    *sorted((ROOT / "web").glob("**/README.md")),
]
OURS = [page for page in PAGES if "node_modules" not in page.parts]

SHORT = sorted(path.parent.name for path in (ROOT / "arp").glob("*/__init__.py"))
"""Packages of `arp` that pages also name without it, as in `turn/tool.py`."""

TO_WRITE = {"arp/server/ports/tcp_port.py", "arp/client/links/tcp_link.py"}
"""Files of the examples in `docs/architecture.md`, which the reader is to write."""

BUILT = ("web/elements/dist/",)
"""Folders that a build makes."""

_SPAN = re.compile(r"`([^`\n]+)`")
_PATH = re.compile(r"(?<![\w./:~@<-])([\w.-]+(?:/[\w.*-]+)+/?|[\w.-]+/)(?![\w/:{<])")


def paths(text: str) -> Iterator[str]:
    """Return the paths in code spans that begin with a folder of the repository or of `arp`."""
    for span in _SPAN.findall(re.sub(r"```.*?```", "", text, flags=re.DOTALL)):
        for path in _PATH.findall(span):
            first, _, rest = path.partition("/")
            if (first in TOP and rest) or (first in SHORT and path.endswith(".py")):
                yield path.rstrip(".")


def exists(page: Path, path: str) -> bool:
    """Return whether a path exists: from the root, in `arp`, or in a folder above its page."""
    if path in TO_WRITE or path.startswith(BUILT):
        return True
    bases = [*page.relative_to(ROOT).parents, Path("arp")]
    return any(next((ROOT / base).glob(path.rstrip("/")), None) is not None for base in bases)


@pytest.mark.parametrize("page", OURS, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_paths_that_a_page_names_exist(page: Path) -> None:
    named = paths(page.read_text(encoding="utf-8"))
    missing = sorted({path for path in named if not exists(page, path)})
    assert not missing, f"{page.relative_to(ROOT)} names what does not exist: {missing}"


def test_a_path_that_leads_nowhere_is_found() -> None:
    text = "See `arp/nowhere.py`, `hub/turn.py`, `tests/hub/` and `turn/tool.py`; not `text/plain`."
    found = list(paths(text))
    assert found == ["arp/nowhere.py", "hub/turn.py", "tests/hub/", "turn/tool.py"]
    assert [exists(README, path) for path in found] == [False, False, True, True]


def test_pages_name_paths() -> None:
    """Without this, a pattern that finds nothing would pass."""
    assert len(list(paths((ROOT / "docs/architecture.md").read_text(encoding="utf-8")))) > 80
