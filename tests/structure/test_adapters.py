"""An adapter of a framework only translates: what adapters share is in `TaskRuntime`."""

from __future__ import annotations

import ast

import pytest

from tests.structure.source_tree import ROOT

MAX_CODE_LINES = 200


def code_lines(source: str) -> int:
    """Count the lines of a module without imports, docstrings, comments and blank lines."""
    left_out: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        is_import = isinstance(node, ast.Import | ast.ImportFrom)
        is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if is_import or is_docstring:
            assert isinstance(node, ast.stmt)
            left_out.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return sum(
        bool(line.strip()) and not line.lstrip().startswith("#") and number not in left_out
        for number, line in enumerate(source.splitlines(), 1)
    )


def test_code_lines_are_counted() -> None:
    source = '"""What it is."""\n\nimport os\n\n# why\nX = 1\n"""About X."""\nY = (\n    2\n)\n'
    assert code_lines(source) == 4


@pytest.mark.parametrize("name", ["ag_ui", "langgraph", "openai_agents", "pydantic_ai"])
def test_adapter_of_a_framework_is_short(name: str) -> None:
    source = (ROOT / "arp" / "runtime" / f"{name}.py").read_text(encoding="utf-8")
    assert code_lines(source) <= MAX_CODE_LINES
