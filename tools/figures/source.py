"""Source files of a tree, read as text, tokens and syntax; nothing of the tree is imported."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

SKIPPED_FOLDERS = {"node_modules", "dist", "__pycache__", "static", "golden", ".venv"}
"""Folders without source that people write. `build` is not one of them: `arp/tools/build` is
source."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class SourceFile:
    """A file of source."""

    name: str
    """Path from the root, with `/`."""
    text: str

    @cached_property
    def lines(self) -> list[str]:
        """The lines of the text."""
        return self.text.splitlines()

    @cached_property
    def syntax(self) -> ast.Module:
        """The syntax tree; for Python only."""
        return ast.parse(self.text, filename=self.name)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """All nodes of the syntax tree."""
        return list(ast.walk(self.syntax))

    @cached_property
    def comments(self) -> list[tuple[int, str]]:
        """Line number and text of each `#` comment; for Python only."""
        tokens = tokenize.generate_tokens(io.StringIO(self.text).readline)
        return [(one.start[0], one.string) for one in tokens if one.type == tokenize.COMMENT]

    @cached_property
    def documentation(self) -> list[ast.Constant]:
        """Docstrings, and the strings below fields and constants that document them."""
        return [
            node.value
            for node in self.nodes
            if isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ]

    @property
    def is_generated(self) -> bool:
        """Whether a program wrote the file; its first line says so."""
        return bool(re.match(r"(#|//|/\*+)\s*Generated", self.text))

    @property
    def folder(self) -> str:
        """The folder of the file, from the root."""
        return self.name.rpartition("/")[0]

    def classes(self) -> Iterator[ast.ClassDef]:
        """Yield every class, nested ones included."""
        return (node for node in self.nodes if isinstance(node, ast.ClassDef))

    def functions(self) -> Iterator[Function]:
        """Yield every function and method, nested ones included."""
        return (
            node for node in self.nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        )


def read_files(root: Path, folder: str, *suffixes: str) -> list[SourceFile]:
    """Return the files below a folder with one of the suffixes, sorted by path.

    Args:
        root: Root of the tree.
        folder: Folder, relative to the root; a missing folder has no files.
        suffixes: Suffixes such as `.py`.
    """
    found = []
    for path in sorted((root / folder).rglob("*")):
        below = path.relative_to(root)
        if path.suffix in suffixes and not SKIPPED_FOLDERS & set(below.parts) and path.is_file():
            found.append(SourceFile(below.as_posix(), path.read_text(encoding="utf-8")))
    return found


def code_lines(file: SourceFile) -> tuple[int, int]:
    """Return the number of lines of code and the number of lines of imports.

    Docstrings, comments and blank lines count as neither.
    """
    strings = {n for node in file.documentation for n in _lines_of(node)}
    imports = {
        number
        for node in file.nodes
        if isinstance(node, ast.Import | ast.ImportFrom)
        for number in _lines_of(node)
    }
    written = {
        number
        for number, line in enumerate(file.lines, 1)
        if line.strip() and not line.lstrip().startswith("#")
    }
    return len(written - strings - imports), len(written & imports)


def _lines_of(node: ast.stmt | ast.expr) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def constants_in(node: ast.AST) -> Sequence[str | bytes]:
    """Return the strings and bytes inside a node, parts of f-strings included."""
    return [
        inner.value
        for inner in ast.walk(node)
        if isinstance(inner, ast.Constant) and isinstance(inner.value, str | bytes)
    ]
