"""The number of stock phrases in docstrings may only fall, package by package."""

from __future__ import annotations

from tests.structure.source_tree import ROOT
from tools.figures.wording import CEILINGS, docstring_hits_by_package, excess, read_ceilings

LOWER = "python -m tools.measure_tree --write-wording"


def test_no_package_has_more_stock_phrases_than_its_ceiling() -> None:
    ceilings = read_ceilings(ROOT)
    assert ceilings is not None, f"{CEILINGS} is missing; write it: {LOWER}"
    over = excess(ceilings, docstring_hits_by_package(ROOT))
    advice = (
        f"Only `{LOWER}` changes {CEILINGS}, and it never raises a ceiling. If a package was "
        "moved or divided, move its ceiling by hand."
    )
    assert not over, "\n".join([*over, advice])
