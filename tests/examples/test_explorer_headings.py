"""What the explorer calls the columns of a result."""

from __future__ import annotations

import headings
import pytest


@pytest.mark.parametrize(
    ("alias", "shown"),
    [
        ("month", "month"),
        ("avg_temp_max", "average daily high (°C)"),
        ("max_precipitation", "highest precipitation (mm)"),
        ("count_wind", "number of wind"),
        ("distinct_Origin", "number of different Origin"),
        ("Weight_in_lbs", "weight (lb)"),
        ("Miles_per_Gallon", "Miles per Gallon"),
        ("avg_", "avg "),
        ("count", "count"),
    ],
)
def test_columns_have_words_and_units(alias: str, shown: str) -> None:
    assert headings.heading(alias) == shown


@pytest.mark.parametrize(
    ("names", "sentence", "start"),
    [
        ([], "", ""),
        (["daily high"], "daily high", ""),
        (
            ["average daily high", "average daily low"],
            "average daily high and low",
            "average daily ",
        ),
        (["average wind", "total wind"], "average wind and total wind", ""),
        (["wind", "wind"], "wind and wind", ""),
        (["a (x y)", "a (x z)"], "a (x y) and a (x z)", ""),
        (["number of a", "number of b", "number of c"], "number of a, b and c", "number of "),
    ],
)
def test_words_that_all_names_begin_with_are_said_once(
    names: list[str], sentence: str, start: str
) -> None:
    assert headings.shared_start(names) == start
    assert headings.joined(names) == sentence


def test_a_legend_leaves_out_what_its_title_says() -> None:
    names = ["average daily high (°C)", "average daily low (°C)"]
    assert headings.in_legend(names, "Average daily high and low by month") == [
        "high (°C)",
        "low (°C)",
    ]
    assert headings.in_legend(names, "Weather") == names
