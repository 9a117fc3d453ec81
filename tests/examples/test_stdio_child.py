"""A parent that drives an agent over pipes, with nothing but the standard library."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from examples.stdio_child import parent

ROOT = Path(__file__).parents[2]


def environment() -> dict[str, str]:
    """What a child needs to find `arp` from a checkout."""
    return {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "HOME": os.environ["HOME"]}


def test_the_parent_shows_every_message_and_the_answer(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples/stdio_child/parent.py"), "be or not be"],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=15,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0].startswith('< {"type":"hello"')
    assert lines[-1] == "The agent said: BE OR NOT BE"
    assert any('"key":"be","value":2' in line for line in lines)
    assert [line[0] for line in lines[:-2]].count(">") == 3
    assert list(tmp_path.iterdir()) == []


def test_a_no_is_an_answer_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.chdir(tmp_path)
    with parent.started(parent.COMMAND) as child:
        assert parent.converse(child, "quiet", yes=False) == "As you like."
    assert '"action": "deny"' in capfd.readouterr().out


def test_a_child_that_exits_is_reported(tmp_path: Path) -> None:
    with (
        pytest.raises(SystemExit, match="went away before its hello"),
        parent.started([sys.executable, "-c", "pass"]) as child,
    ):
        parent.converse(child, "hello", yes=True)


def test_the_parent_needs_nothing_but_the_standard_library() -> None:
    tree = ast.parse(Path(parent.__file__).read_text(encoding="utf-8"))
    imported = {
        (node.module or "").partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
    } | {
        name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names
    }
    assert imported <= sys.stdlib_module_names
