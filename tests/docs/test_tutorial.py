"""The tutorial does what it says, followed line by line; `make release` installs it first."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.docs.pages import blocks
from tools.follow_tutorial import PAGE, Follower, Mismatch, environment_of


def follower(folder: Path) -> Follower:
    return Follower(folder, installs=False, environment=environment_of(sys.executable))


def test_the_tutorial_is_followed_line_by_line(tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    clone.mkdir()
    page = PAGE.read_text(encoding="utf-8")
    assert all(block.code in page for block in blocks("python", "sh", "text", page=PAGE.name))
    count = follower(clone).follow(page)
    assert count == 15
    assert (tmp_path / "help-desk" / ".arp" / "app.db").is_file()


def test_a_page_that_says_something_else_is_found(tmp_path: Path) -> None:
    page = "```sh\nprintf hello\n```\n\n```text\ngood{}\n```\n"
    with pytest.raises(Mismatch, match="the page says:\ngood"):
        follower(tmp_path).follow(page.format("bye"))


def test_a_command_that_fails_and_code_without_a_file_are_found(tmp_path: Path) -> None:
    with pytest.raises(Mismatch, match="exit code 2"):
        follower(tmp_path).follow("```sh\narp nothing\n```\n")
    with pytest.raises(Mismatch, match="a block of Python has no file"):
        follower(tmp_path).follow("Look:\n\n```python\nx = 1\n```\n")
