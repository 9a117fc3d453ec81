"""The page's logic that needs no document, tested where its tests are written: in Node.js."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TESTS = sorted((ROOT / "web" / "page" / "tests").glob("*.test.mjs"))
OLDEST_NODE = (20, 19)
"""From here on Node takes a `.js` file with `import` in it for the module that it is."""


@pytest.mark.node
@pytest.mark.timeout(60)
def test_the_tests_in_node_pass(requires: Callable[[str], str]) -> None:
    node = requires("node")
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout
    if tuple(map(int, version.strip().lstrip("v").split(".")[:2])) < OLDEST_NODE:
        pytest.skip(f"needs Node.js 20.19 or newer, this is {version.strip()}")
    run = subprocess.run(
        [node, "--test", "--test-reporter=tap", *map(str, TESTS)],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-5000:] + run.stderr[-1000:]
    passed = re.search(r"^# pass (\d+)$", run.stdout, re.MULTILINE)
    assert passed is not None
    assert int(passed[1]) >= 70


def test_the_page_contains_no_inline_script_or_style_and_nothing_from_elsewhere() -> None:
    """The server's policy would refuse them; here one learns it without a browser."""
    page = (ROOT / "arp" / "server" / "static" / "index.html").read_text(encoding="utf-8")
    assert re.findall(r"<script(?![^>]* src=)", page) == []
    assert re.findall(r"<style|\sstyle=|\son\w+=", page) == []
    assert re.findall(r"(?:src|href)=\"(?!_static/|#|\./)[^\"]*", page) == []


def test_no_file_of_the_page_parses_html_or_runs_text() -> None:
    sinks = re.compile(
        r"\.(?:inner|outer)HTML|insertAdjacentHTML|document\.write|\beval\(|new Function|DOMParser"
        r"|createContextualFragment|srcdoc|setHTMLUnsafe"
    )
    found = [
        path.name
        for path in (ROOT / "arp" / "server" / "static").glob("*.js")
        if sinks.search(path.read_text(encoding="utf-8"))
    ]
    assert found == []
