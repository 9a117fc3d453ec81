"""A class name occurs once in `arp/`: it says what the thing is, wherever it is read."""

from __future__ import annotations

import ast
from collections import defaultdict

from tests.structure.source_tree import modules


def class_names(syntax: ast.Module) -> set[str]:
    """Return the names of all classes of a module, without leading underscores."""
    return {node.name.lstrip("_") for node in ast.walk(syntax) if isinstance(node, ast.ClassDef)}


def test_no_class_name_occurs_in_two_modules() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for module in modules("arp"):
        for name in class_names(module.syntax):
            places[name].append(module.name)
    double = {name: where for name, where in sorted(places.items()) if len(where) > 1}
    listed = [f"{name}: {', '.join(where)}" for name, where in double.items()]
    assert not listed, "Give one of them a name that says its subject:\n  " + "\n  ".join(listed)


def test_private_and_nested_classes_count() -> None:
    source = "class _File:\n    class Part: ...\ndef f():\n    class Inner: ...\n"
    assert class_names(ast.parse(source)) == {"File", "Part", "Inner"}
