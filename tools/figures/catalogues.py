"""Lists that a person edits for a new component, transport or fact type.

A file that names nearly all components is a list of components, and each new component has to be
added to it. Counting such files shows how many edits are the same for every component. The files
that are about one component only (its drawing, its style, its test) are not counted.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping, Sequence
from statistics import median

from tools.figures.source import SourceFile

NEARLY_ALL = 0.8
"""Share of the names above which a file counts as a list of them."""


def component_names(files: Iterable[SourceFile]) -> list[str]:
    """Return the types of the core components, from the table in `protocol/catalog.py`."""
    for file in files:
        if file.name == "arp/protocol/catalog.py":
            return [
                str(node.args[0].value)
                for node in file.nodes
                if isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id == "ComponentSpec"
                and node.args
                and isinstance(node.args[0], ast.Constant)
            ]
    return []


def transports(files: Iterable[SourceFile]) -> list[str]:
    """Return the transports, from the type `Kind` in `client/address.py`."""
    return [
        str(part.value)
        for file in files
        if file.name == "arp/client/address.py"
        for node in file.nodes
        if isinstance(node, ast.AnnAssign)
        and isinstance(node.target, ast.Name)
        and node.target.id == "Kind"
        for part in ast.walk(node)
        if isinstance(part, ast.Constant)
    ]


def fact_types(files: Iterable[SourceFile]) -> list[str]:
    """Return the types of facts, from the rows in `arp/ledger/families/`."""
    return sorted(
        str(node.args[0].value)
        for file in files
        if file.name.startswith("arp/ledger/families/")
        for node in file.nodes
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "FactType"
        and node.args
        and isinstance(node.args[0], ast.Constant)
    )


def spellings(name: str) -> re.Pattern[str]:
    """Return a pattern of the spellings of `status-card`: `status_card`, `StatusCard` and more."""
    words = re.split(r"[-_]", name)
    flexible = r"[-_]?".join(f"[{word[0].upper()}{word[0]}]{word[1:]}" for word in words)
    return re.compile(rf"(?<![A-Za-z]){flexible}(?![a-z])")


def lists_of(names: Sequence[str], files: Iterable[SourceFile]) -> list[str]:
    """Return the files that people write and that name nearly all of some things."""
    patterns = [spellings(name) for name in names]
    least = NEARLY_ALL * len(patterns)
    return [
        file.name
        for file in files
        if patterns
        and not file.is_generated
        and sum(pattern.search(file.text) is not None for pattern in patterns) >= least
    ]


def edits_per_fact_type(types: Sequence[str], files: Sequence[SourceFile]) -> float:
    """Return the median number of files that name a type of fact in a string."""
    named: Mapping[str, set[str]] = {one: set() for one in types}
    for file in files:
        if file.is_generated:
            continue
        for node in file.nodes:
            if isinstance(node, ast.Constant) and node.value in named:
                named[str(node.value)].add(file.name)
    return median(len(some) for some in named.values()) if named else 0
