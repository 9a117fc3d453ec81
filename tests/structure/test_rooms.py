"""Each room tells what it is for, and holds its code in files that are named."""

from __future__ import annotations

import ast

from tests.structure.source_tree import ROOT, rooms

MOST_README_LINES = 79
"""A room's README stays under 80 lines."""


def test_init_of_a_room_is_a_docstring_and_nothing_else() -> None:
    wrong = []
    for room in rooms():
        body = ast.parse((room / "__init__.py").read_text(encoding="utf-8")).body
        only_docstring = len(body) == 1 and isinstance(body[0], ast.Expr)
        if not (only_docstring and isinstance(body[0].value, ast.Constant)):  # type: ignore[attr-defined] # an Expr, see above
            wrong.append(f"arp/{room.name}/__init__.py")
    assert not wrong, f"Move the code into a file named after what it defines: {wrong}"


def test_each_room_has_a_readme_under_80_lines() -> None:
    wrong = []
    for room in rooms():
        readme = room / "README.md"
        if not readme.is_file():
            wrong.append(f"arp/{room.name}/README.md is missing")
        elif len(readme.read_text(encoding="utf-8").splitlines()) > MOST_README_LINES:
            wrong.append(f"arp/{room.name}/README.md has 80 lines or more")
    assert not wrong, f"Purpose, reading order, invariants, what it must not do: {wrong}"


def test_tests_mirror_the_rooms() -> None:
    missing = [room.name for room in rooms() if not (ROOT / "tests" / room.name).is_dir()]
    assert not missing, f"Rooms without tests/<room>/: {missing}"
