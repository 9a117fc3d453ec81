"""A page that is not built from its sources is told, without Node.js."""

from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path

import pytest

from tools.check_page import hash_of_sources, problems


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    """A small tree of sources, and what was built from it."""
    web, static = tmp_path / "web", tmp_path / "static"
    for name in ("core/src/a.ts", "page/index.html"):
        (web / name).parent.mkdir(parents=True, exist_ok=True)
        (web / name).write_text(name, encoding="utf-8")
    static.mkdir()
    (static / "inspect").mkdir()
    script = b"let a = 1;"
    (static / "a.js").write_bytes(script)
    (static / "a.js.gz").write_bytes(gzip.compress(script))
    made = {"sha256": hashlib.sha256(script).hexdigest(), "gz": 1}
    manifest = {"sources": hash_of_sources(web), "files": {"a.js": made}}
    (static / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    return web, static


def test_a_page_that_is_built_from_its_sources_has_no_problems(places: tuple[Path, Path]) -> None:
    assert problems(*places) == []


def test_a_changed_source_is_told(places: tuple[Path, Path]) -> None:
    web, static = places
    (web / "core/src/a.ts").write_text("other", encoding="utf-8")
    assert problems(web, static) == ["is not built from what lies in web/; run make web"]


def test_a_new_source_is_told(places: tuple[Path, Path]) -> None:
    web, static = places
    (web / "core/src/b.ts").write_text("", encoding="utf-8")
    assert problems(web, static) == ["is not built from what lies in web/; run make web"]


def test_a_file_that_was_edited_by_hand_is_told(places: tuple[Path, Path]) -> None:
    web, static = places
    (static / "a.js").write_bytes(b"let a = 2;")
    assert problems(web, static) == ["a.js is not what was built; run make web"]


def test_a_compressed_file_with_other_content_is_told(places: tuple[Path, Path]) -> None:
    web, static = places
    (static / "a.js.gz").write_bytes(gzip.compress(b"let a = 2;"))
    assert problems(web, static) == ["a.js.gz holds something else; run make web"]


def test_files_too_many_and_too_few_are_told(places: tuple[Path, Path]) -> None:
    web, static = places
    (static / "old.js").write_bytes(b"")
    (static / "a.js.gz").unlink()
    assert problems(web, static) == [
        "old.js is not in the manifest; run make web",
        "a.js.gz is missing; run make web",
    ]
