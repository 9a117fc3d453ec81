"""Each package says what it is for, and has its code in files with names of their own."""

from __future__ import annotations

import ast

from tests.structure.source_tree import ROOT, packages

MOST_README_LINES = 40
"""A README has at most 40 lines: purpose, reading order, invariants, what it must not do."""


def test_init_of_a_package_is_a_docstring_and_nothing_else() -> None:
    wrong = []
    for package in packages():
        for init in sorted(package.rglob("__init__.py")):
            body = ast.parse(init.read_text(encoding="utf-8")).body
            only_docstring = len(body) == 1 and isinstance(body[0], ast.Expr)
            if not (only_docstring and isinstance(body[0].value, ast.Constant)):  # type: ignore[attr-defined] # an Expr, see above
                wrong.append(init.relative_to(ROOT).as_posix())
    assert not wrong, f"Move the code into a file named after what it defines: {wrong}"


def test_each_package_has_a_readme() -> None:
    missing = [package.name for package in packages() if not (package / "README.md").is_file()]
    assert not missing, f"Purpose, reading order, invariants, what it must not do: {missing}"


def test_no_readme_of_a_package_has_more_than_40_lines() -> None:
    over = [
        readme.relative_to(ROOT).as_posix()
        for package in packages()
        for readme in sorted(package.rglob("README.md"))
        if len(readme.read_text(encoding="utf-8").splitlines()) > MOST_README_LINES
    ]
    assert not over, f"Remove what a docstring says already: {over}"


def test_tests_mirror_the_packages() -> None:
    missing = [
        package.name for package in packages() if not (ROOT / "tests" / package.name).is_dir()
    ]
    assert not missing, f"Packages without tests/<package>/: {missing}"
