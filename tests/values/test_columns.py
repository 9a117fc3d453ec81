"""Data of each library, as a table shows it."""

from __future__ import annotations

import dataclasses
import sqlite3
import subprocess
import sys
from collections import namedtuple
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import msgspec
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pydantic
import pytest

from arp import ui
from arp.protocol.errors import InvalidComponent
from arp.protocol.json_value import JsonObject
from arp.values.columns import MAX_COLUMNS, columns_of


def shown(*given: Any, **more: Any) -> JsonObject:
    """Return the props of a table."""
    return ui.table(*given, **more).props


def table(headers: list[str], *rows: Any) -> JsonObject:
    """Return the props that are expected."""
    return {"headers": headers, "rows": list(rows)}


class Model(pydantic.BaseModel):
    name: str
    price: Decimal
    since: date | None = None

    @pydantic.computed_field  # type: ignore[prop-decorator] # of pydantic
    @property
    def loud(self) -> str:
        return self.name.upper()


@dataclasses.dataclass
class Record:
    name: str
    tags: list[str]


class Struct(msgspec.Struct):
    name: str
    size: int | None = None


Named = namedtuple("Named", "name size")


# -- pandas ----------------------------------------------------------------------------------------


def test_data_frame_of_pandas_with_everything_that_may_be_missing() -> None:
    frame = pd.DataFrame(
        {
            "day": pd.to_datetime(["2026-01-01", None]),
            "at": pd.to_datetime(["2026-01-01 09:30", "2026-01-01 00:00"]),
            "sales": [1.5, float("nan")],
            "count": pd.array([1, None], dtype="Int64"),
            "name": ["a", None],
            "price": [Decimal("1.10"), Decimal("NaN")],
            "limit": [float("inf"), -float("inf")],
            "kind": pd.Categorical(["x", "y"]),
            "took": pd.to_timedelta(["90s", None]),
            "ok": [True, False],
            "parts": [[1, 2], {"a": 1}],
        }
    )
    morning, midnight = "2026-01-01 09:30:00", "2026-01-01 00:00:00"
    assert shown(frame) == table(
        list(frame.columns),
        ["2026-01-01", morning, 1.5, 1, "a", 1.1, "∞", "x", "0 days 00:01:30", True, "[1, 2]"],
        [None, midnight, None, None, None, None, "−∞", "y", None, False, '{"a": 1}'],
    )


def test_times_with_a_zone_stay_times() -> None:
    frame = pd.DataFrame({"at": pd.to_datetime(["2026-01-01"]).tz_localize("UTC")})
    assert shown(frame) == table(["at"], ["2026-01-01 00:00:00+00:00"])


def test_index_of_pandas_shows_if_it_says_something() -> None:
    plain = pd.DataFrame({"a": [1, 2, 3]})
    assert shown(plain) == table(["a"], [1], [2], [3])
    assert shown(plain[plain.a > 1]) == table(["a"], [2], [3])
    assert shown(plain[plain.a > 1], index=True) == table(["index", "a"], [1, 2], [2, 3])
    named = plain.set_index(pd.Index([7, 8, 9], name="id"))
    assert shown(named) == table(["id", "a"], [7, 1], [8, 2], [9, 3])
    assert shown(named, index=False) == table(["a"], [1], [2], [3])
    texts = plain.set_index(pd.Index(["x", "y", "z"]))
    assert shown(texts) == table(["index", "a"], ["x", 1], ["y", 2], ["z", 3])
    days = plain.set_index(pd.date_range("2026-01-01", periods=3, name="day"))
    assert shown(days)["rows"][0] == ["2026-01-01", 1]


def test_multi_index_in_rows_and_columns() -> None:
    frame = pd.DataFrame(
        {("2026", "Jan"): [1, 2], ("2026", "Feb"): [3, 4]},
        index=pd.MultiIndex.from_tuples([("N", 1), ("S", 2)], names=["region", "shop"]),
    )
    assert shown(frame) == table(
        ["region", "shop", "2026 / Jan", "2026 / Feb"], ["N", 1, 1, 3], ["S", 2, 2, 4]
    )


def test_two_columns_of_one_name_and_columns_that_are_numbers() -> None:
    frame = pd.DataFrame([[1, 2]], columns=["a", "a"])
    assert shown(frame) == table(["a", "a"], [1, 2])
    assert shown(pd.DataFrame([[1, 2]])) == table(["0", "1"], [1, 2])


def test_series_of_pandas() -> None:
    assert shown(pd.Series([1, 2])) == table(["value"], [1], [2])
    counts = pd.Series(["x", "y", "x"], name="kind").value_counts()
    assert shown(counts) == table(["kind", "count"], ["x", 2], ["y", 1])


def test_empty_frames_keep_their_headers() -> None:
    assert shown(pd.DataFrame({"a": []})) == table(["a"])
    assert shown(pl.DataFrame({"a": []})) == table(["a"])
    assert shown(pd.DataFrame()) == table([])


# -- polars, pyarrow, numpy ------------------------------------------------------------------------


def test_data_frame_of_polars() -> None:
    frame = pl.DataFrame(
        {"day": [date(2026, 1, 1), None], "price": [Decimal("1.5"), None], "parts": [[1], []]}
    )
    rows = [["2026-01-01", 1.5, "[1]"], [None, None, "[]"]]
    assert shown(frame) == table(["day", "price", "parts"], *rows)
    assert shown(pl.Series("a", [1, None])) == table(["a"], [1], [None])
    with pytest.raises(InvalidComponent, match=r"ui\.table: a LazyFrame .* pass frame\.collect"):
        ui.table(frame.lazy())


def test_table_of_pyarrow() -> None:
    made = pa.table({"a": [1, None], "at": [datetime(2026, 1, 1, 5, tzinfo=UTC), None]})
    rows = [[1, "2026-01-01 05:00:00+00:00"], [None, None]]
    assert shown(made) == table(["a", "at"], *rows)
    assert shown(made.to_batches()[0]) == table(["a", "at"], *rows)


def test_arrays_of_numpy() -> None:
    assert shown(np.array([1.5, np.nan])) == table(["value"], [1.5], [None])
    assert shown(np.array([[1, 2], [3, 4]])) == table(["0", "1"], [1, 2], [3, 4])
    assert shown(["x", "y"], np.array([[1, 2]])) == table(["x", "y"], [1, 2])
    kinds = np.array([(1, "x")], dtype=[("n", "i4"), ("s", "U5")])
    assert shown(kinds) == table(["n", "s"], [1, "x"])
    days = np.array(["2026-01-01", "NaT"], dtype="datetime64[ns]")
    assert shown(days) == table(["value"], ["2026-01-01"], [None])
    with pytest.raises(InvalidComponent, match="an array of 2 × 2 × 2 has more than two dim"):
        ui.table(np.zeros((2, 2, 2)))


# -- objects ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([{"a": 1}, {"b": 2}], table(["a", "b"], [1, None], [None, 2])),
        (
            [Model(name="x", price=Decimal("1.50"), since=date(2026, 1, 2))],
            table(["name", "price", "since", "loud"], ["x", 1.5, "2026-01-02", "X"]),
        ),
        ([Record("x", ["a"])], table(["name", "tags"], ["x", '["a"]'])),
        ((Struct("x"), Struct("y", 2)), table(["name", "size"], ["x", None], ["y", 2])),
        ([Named("x", 1)], table(["name", "size"], ["x", 1])),
        ({"a": [1, 2], "b": ["x", "y"]}, table(["a", "b"], [1, "x"], [2, "y"])),
        ({"a": np.array([1, 2])}, table(["a"], [1], [2])),
        (({"n": one} for one in range(2)), table(["n"], [0], [1])),
    ],
)
def test_lists_of_objects(given: Any, expected: JsonObject) -> None:
    assert shown(given) == expected


def test_rows_of_sqlite() -> None:
    database = sqlite3.connect(":memory:")
    database.row_factory = sqlite3.Row
    rows = database.execute("select 1 as a, 'x' as b")
    assert shown(rows) == table(["a", "b"], [1, "x"])
    database.close()


def test_headers_select_columns_of_data() -> None:
    frame = pd.DataFrame({"a": [1], "b": [2], "c": [3]})
    assert shown(["c", "a"], frame) == table(["c", "a"], [3, 1])
    assert shown(["name"], [Record("x", [])]) == table(["name"], ["x"])
    assert shown("Title", frame) == {"title": "Title"} | table(["a", "b", "c"], [1, 2, 3])
    with pytest.raises(InvalidComponent, match="headers: no column 'sales_eur'; there are: a, b"):
        ui.table(["sales_eur"], frame)
    with pytest.raises(InvalidComponent, match="no column 'nmae'; did you mean 'name'"):
        ui.table(["nmae"], [{"name": 1}])


# -- limits ----------------------------------------------------------------------------------------


def test_large_data_are_cut_and_the_title_says_so() -> None:
    frame = pd.DataFrame({"a": range(50_000)})
    first = ui.table(frame).props
    assert (len(first["rows"]), first["title"]) == (1_000, "First 1,000 of 50,000 rows")
    assert shown(frame, title="Sales", limit=2)["title"] == "Sales (first 2 of 50,000 rows)"
    assert shown(pl.DataFrame({"a": range(9)}), limit=2)["rows"] == [[0], [1]]
    assert shown(pa.table({"a": range(9)}), limit=2)["rows"] == [[0], [1]]
    assert shown([{"a": 1}] * 5, limit=2)["title"] == "First 2 of 5 rows"
    wide = shown(np.zeros((1, MAX_COLUMNS + 1)))
    assert wide["title"] == "First 100 of 101 columns"
    assert len(wide["headers"]) == len(wide["rows"][0]) == MAX_COLUMNS
    tab = ui.table_tab("All", frame, limit=3)
    assert (tab["name"], len(tab["rows"])) == ("All (first 3 of 50,000 rows)", 3)


def test_long_cell_ends_with_an_ellipsis_and_bytes_are_counted() -> None:
    (row,) = shown([{"text": "x" * 5_000, "raw": b"\0" * 2_000, "big": 2**70}])["rows"]
    assert row == ["x" * 999 + "…", "2,000 bytes", str(2**70)]


@pytest.mark.parametrize("value", [None, 3, "text", b"x", [], [[1]], [1], {}, {"a": 1}, object()])
def test_what_has_no_columns_has_none(value: Any) -> None:
    assert columns_of(value) is None


def test_no_library_is_imported_for_it() -> None:
    """In a process of its own: this one has them all."""
    code = """if True:
        import sys
        from arp import ui
        from arp.values.display import display_of
        ui.table([{"a": 1}]); ui.chart("bar", [1, 2]); display_of({"a": object()})
        heavy = "pandas polars pyarrow numpy matplotlib PIL plotly pydantic"
        print(*[one for one in heavy.split() if one in sys.modules])
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
