"""The first command that a newcomer runs: it installs once, and says what is missing."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.structure.source_tree import ROOT

SCRIPT = ROOT / "tools" / "bootstrap.py"


@pytest.fixture
def bootstrap() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bootstrap", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree whose environment was made, with nothing installed yet."""
    for name in ("pyproject.toml", "requirements-dev.txt", "tools/bootstrap.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("as it was")
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".venv" / "bin" / "python").symlink_to(sys.executable)
    return tmp_path


def record(bootstrap: ModuleType, tree: Path, *sets: str) -> None:
    """Writes down that `sets` are installed, as an installation does at its end."""
    done = dict.fromkeys(sets, bootstrap.digest(tree))
    (tree / ".venv" / "bootstrap.json").write_text(json.dumps(done))


def test_nothing_is_installed_before_it_was_recorded(bootstrap: ModuleType, tree: Path) -> None:
    assert not bootstrap.is_installed(tree, "run")
    record(bootstrap, tree, "run")
    assert bootstrap.is_installed(tree, "run")
    assert not bootstrap.is_installed(tree, "dev")


@pytest.mark.parametrize("name", ["pyproject.toml", "requirements-dev.txt", "tools/bootstrap.py"])
def test_a_changed_input_is_installed_again(bootstrap: ModuleType, tree: Path, name: str) -> None:
    record(bootstrap, tree, "run", "dev")
    (tree / name).write_text("changed")
    assert not bootstrap.is_installed(tree, "run")
    assert not bootstrap.is_installed(tree, "dev")


def test_an_interpreter_that_went_away_is_noticed(bootstrap: ModuleType, tree: Path) -> None:
    record(bootstrap, tree, "run")
    python = tree / ".venv" / "bin" / "python"
    python.unlink()
    python.symlink_to(tree / "gone")
    assert not bootstrap.is_installed(tree, "run")


def test_a_tree_that_was_moved_is_installed_again(bootstrap: ModuleType, tree: Path) -> None:
    record(bootstrap, tree, "run")
    moved = tree.rename(tree.with_name("moved"))
    assert not bootstrap.is_installed(moved, "run")


@pytest.mark.parametrize(
    ("wanted", "there"),
    [("run", ["run"]), ("model", ["run", "model"]), ("dev", ["run", "model", "dev"])],
)
def test_a_set_includes_the_smaller_ones(
    bootstrap: ModuleType,
    tree: Path,
    monkeypatch: pytest.MonkeyPatch,
    wanted: str,
    there: list[str],
) -> None:
    monkeypatch.setattr(bootstrap, "is_usable", lambda _: True)
    monkeypatch.setattr(bootstrap, "install_packages", lambda *_: None)
    bootstrap.install(tree, wanted)
    assert [name for name in ("run", "model", "dev") if bootstrap.is_installed(tree, name)] == there


@pytest.mark.parametrize("torn", ["", "{", "[]", "7"])
def test_a_torn_record_counts_as_nothing(bootstrap: ModuleType, tree: Path, torn: str) -> None:
    (tree / ".venv" / "bootstrap.json").write_text(torn)
    assert not bootstrap.is_installed(tree, "run")


def test_a_python_on_path_that_does_not_run_is_passed_over(
    bootstrap: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, exit_code in (("python3.14", 127), ("python3.13", 1), ("python3.12", 0)):
        shim = tmp_path / name
        shim.write_text(f"#!/bin/sh\nexit {exit_code}\n")
        shim.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert bootstrap.newer_python() == str(tmp_path / "python3.12")


def test_no_python_that_is_new_enough_is_refused_with_the_way_out(
    bootstrap: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(bootstrap.Refused, match=r"needs Python 3\.11 or newer.*\n.*PYTHON=/path"):
        bootstrap.newer_python()


def test_a_python_without_ensurepip_is_refused_with_the_package_to_install(
    bootstrap: ModuleType, tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(bootstrap, "find_spec", {"venv": object()}.get)
    with pytest.raises(bootstrap.Refused, match="apt-get install python3-venv"):
        bootstrap.make_environment(tree)


def test_a_wrong_argument_is_answered_with_the_usage(
    bootstrap: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bootstrap.main(["everything"]) == 2
    assert "run|model|dev" in capsys.readouterr().err


def test_a_failed_command_is_followed_by_the_next(bootstrap: ModuleType, tmp_path: Path) -> None:
    fails = [sys.executable, "-c", "print('no network'); raise SystemExit(1)"]
    works = [sys.executable, "-c", ""]
    assert bootstrap.run_first_that_works([fails, works], tmp_path) is None
    told = bootstrap.run_first_that_works([fails, fails], tmp_path)
    assert told == "  no network\n  all of it: .venv/bootstrap.log"


def test_all_that_a_failed_command_printed_is_kept_in_a_log(
    bootstrap: ModuleType, tmp_path: Path
) -> None:
    script = "print(*range(1, 21), sep='\\n'); raise SystemExit(3)"
    told = bootstrap.run_first_that_works([[sys.executable, "-c", script]], tmp_path)
    shown = [*range(13, 21), "all of it: .venv/bootstrap.log"]
    assert told == "\n".join(f"  {line}" for line in shown)
    kept = (tmp_path / ".venv" / "bootstrap.log").read_text().splitlines()
    assert kept[0].startswith(f"$ {sys.executable} -c ")
    assert kept[1:] == [*map(str, range(1, 21)), "(exit code 3)", ""]


def test_where_no_log_can_be_kept_the_closing_lines_still_come(
    bootstrap: ModuleType, tmp_path: Path
) -> None:
    (tmp_path / ".venv").write_text("in the way")
    fails = [sys.executable, "-c", "print('no network'); raise SystemExit(1)"]
    assert bootstrap.run_first_that_works([fails], tmp_path) == "  no network"


def test_what_a_link_leads_to_is_left_as_it_is(bootstrap: ModuleType, tmp_path: Path) -> None:
    others = tmp_path / "others" / ".venv"
    others.mkdir(parents=True)
    (others / "kept").touch()
    root = tmp_path / "root"
    root.mkdir()
    (root / ".venv").symlink_to(others)
    bootstrap.make_environment(root)
    assert not (root / ".venv").is_symlink()
    assert (root / ".venv" / "bin" / "python").exists()
    assert (others / "kept").exists()
