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
        ("count_wind", "number wind"),
        ("distinct_Origin", "number of different Origin"),
        ("Weight_in_lbs", "weight (lb)"),
        ("Miles_per_Gallon", "Miles per Gallon"),
        ("avg_", "avg "),
        ("count", "count"),
    ],
)
def test_columns_have_words_and_units(alias: str, shown: str) -> None:
    assert headings.heading(alias) == shown
