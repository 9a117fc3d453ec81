"""The project's own files, read as text and as syntax, for the tests of its structure."""

from __future__ import annotations

import ast
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TypeVar

Node = TypeVar("Node", bound=ast.AST)

ROOT = Path(__file__).resolve().parents[2]

NOT_OURS = {".git", ".venv", ".venv-lowest", "node_modules", "dist", "build", "__pycache__"}
"""Folders that are never part of the source, for a tree that is not a git checkout."""


@dataclass(frozen=True)
class Module:
    """One file of source; only of Python also the syntax."""

    path: Path

    @property
    def name(self) -> str:
        """Path from the root, as messages name it."""
        return self.path.relative_to(ROOT).as_posix()

    @cached_property
    def lines(self) -> list[str]:
        return self.path.read_text(encoding="utf-8").splitlines()

    @cached_property
    def syntax(self) -> ast.Module:
        return ast.parse("\n".join(self.lines), filename=self.name)

    @property
    def is_generated(self) -> bool:
        """Whether a program wrote it; such a file says so in its first line."""
        return bool(self.lines) and self.lines[0].startswith(("# Generated", "// Generated"))

    def walk(self, kind: type[Node]) -> Iterator[Node]:
        return (node for node in ast.walk(self.syntax) if isinstance(node, kind))


def modules(*folders: str) -> list[Module]:
    """Every Python file that people wrote below `folders`, in order of path."""
    found = [_module(path) for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]
    return [module for module in found if not module.is_generated]


@cache
def _module(path: Path) -> Module:
    """Return the same object for each caller, so that a file is parsed once."""
    return Module(path)


def packages() -> list[Path]:
    """Return the folders of the top-level packages of `arp`, in order of name."""
    return sorted(path.parent for path in (ROOT / "arp").glob("*/__init__.py"))


def committed_files() -> list[Path]:
    """Every file that is or would be committed; without git, every file that looks like ours."""
    if (ROOT / ".git").exists() and shutil.which("git"):
        listing = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            check=True,
            capture_output=True,
        ).stdout
        paths = [ROOT / name for name in listing.decode().split("\0") if name]
    else:
        paths = [
            path for path in ROOT.rglob("*") if not NOT_OURS & set(path.relative_to(ROOT).parts)
        ]
    return [path for path in paths if path.is_file()]
