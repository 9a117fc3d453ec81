"""Odd data frames: each column, name and index is shown as it is, or refused with what to do.

Each entry is a frame, the table of it, and the bar chart of it; a text is a part of the refusal.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import PurePosixPath
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from arp import ui
from arp.protocol.errors import InvalidComponent
from arp.protocol.json_value import Json


class Odd(NamedTuple):
    """A frame, and what shows of it."""

    name: str
    make: Callable[[], Any]
    table: tuple[list[str], list[list[Json]]] | str
    """Headers and rows, or a part of the refusal."""
    chart: tuple[list[Json], list[tuple[str, list[Json]]]] | str
    """Labels and series, or a part of the refusal."""


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


def two(values: Any, dtype: Any = None) -> pd.DataFrame:
    """Return a frame of two rows with a column of names and one of these values."""
    return pd.DataFrame({"m": ["a", "b"], "v": pd.Series(values, dtype=dtype)})


ODD = [
    Odd(
        "int64",
        lambda: two([1, 2]),
        (["m", "v"], [["a", 1], ["b", 2]]),
        (["a", "b"], [("v", [1, 2])]),
    ),
    Odd(
        "int64 large",
        lambda: two([2**53 + 1, 1]),
        (["m", "v"], [["a", "9007199254740993"], ["b", 1]]),
        "y: column 'v' has 9007199254740993, an integer beyond ±900719925474099",
    ),
    Odd(
        "uint64 largest",
        lambda: two([2**64 - 1, 0], "uint64"),
        (["m", "v"], [["a", "18446744073709551615"], ["b", 0]]),
        "y: column 'v' has 18446744073709551615, an integer beyond ±90071992547",
    ),
    Odd(
        "int8",
        lambda: two([-128, 127], "int8"),
        (["m", "v"], [["a", -128], ["b", 127]]),
        (["a", "b"], [("v", [-128, 127])]),
    ),
    Odd(
        "Int64 NA",
        lambda: two([1, None], "Int64"),
        (["m", "v"], [["a", 1], ["b", None]]),
        (["a", "b"], [("v", [1, None])]),
    ),
    Odd(
        "float32",
        lambda: two([0.1, 2], "float32"),
        (["m", "v"], [["a", 0.1], ["b", 2.0]]),
        (["a", "b"], [("v", [0.1, 2.0])]),
    ),
    Odd(
        "Float32 NA",
        lambda: two([0.1, None], "Float32"),
        (["m", "v"], [["a", 0.1], ["b", None]]),
        (["a", "b"], [("v", [0.1, None])]),
    ),
    Odd(
        "float16",
        lambda: two([0.1, 2], "float16"),
        (["m", "v"], [["a", 0.1], ["b", 2.0]]),
        (["a", "b"], [("v", [0.1, 2.0])]),
    ),
    Odd(
        "inf",
        lambda: two([float("inf"), 1.5]),
        (["m", "v"], [["a", "∞"], ["b", 1.5]]),
        (["a", "b"], [("v", [None, 1.5])]),
    ),
    Odd(
        "nan",
        lambda: two([float("nan"), 1.5]),
        (["m", "v"], [["a", None], ["b", 1.5]]),
        (["a", "b"], [("v", [None, 1.5])]),
    ),
    Odd(
        "neg zero",
        lambda: two([-0.0, 1e300]),
        (["m", "v"], [["a", -0.0], ["b", 1e300]]),
        (["a", "b"], [("v", [-0.0, 1e300])]),
    ),
    Odd(
        "tiny",
        lambda: two([5e-324, 1]),
        (["m", "v"], [["a", 5e-324], ["b", 1.0]]),
        (["a", "b"], [("v", [5e-324, 1.0])]),
    ),
    Odd(
        "bool",
        lambda: two([True, False]),
        (["m", "v"], [["a", True], ["b", False]]),
        "column 'v' is of True and False; draw counts or numbers, as with df[…]",
    ),
    Odd(
        "boolean NA",
        lambda: two([True, None], "boolean"),
        (["m", "v"], [["a", True], ["b", None]]),
        "column 'v' is of True and False; draw counts or numbers, as with df[…]",
    ),
    Odd(
        "mixed",
        lambda: two([1, "a"], object),
        (["m", "v"], [["a", 1], ["b", "a"]]),
        "none of the columns m, v has numbers to draw; make some first, as with",
    ),
    Odd(
        "decimal",
        lambda: two([Decimal("1.50"), Decimal("2")]),
        (["m", "v"], [["a", 1.5], ["b", 2]]),
        (["a", "b"], [("v", [1.5, 2.0])]),
    ),
    Odd(
        "decimal long",
        lambda: two([Decimal("33.3333333333333333"), Decimal("20")]),
        (["m", "v"], [["a", "33.3333333333333333"], ["b", 20]]),
        (["a", "b"], [("v", [33.333333333333336, 20.0])]),
    ),
    Odd(
        "decimal nan",
        lambda: two([Decimal("NaN"), Decimal("Infinity")]),
        (["m", "v"], [["a", None], ["b", "∞"]]),
        (["a", "b"], [("v", [None, None])]),
    ),
    Odd(
        "decimal huge",
        lambda: two([Decimal("1E+400"), Decimal("12345678901234567890")]),
        (["m", "v"], [["a", "1E+400"], ["b", "12345678901234567890"]]),
        "y: column 'v' has 1E+400, which is too large for a float; divide the",
    ),
    Odd(
        "timedelta",
        lambda: two(pd.to_timedelta(["90s", "1D"])),
        (["m", "v"], [["a", "0 days 00:01:30"], ["b", "1 days 00:00:00"]]),
        "column 'v' is of durations; draw numbers, as with df[…].dt.total_secon",
    ),
    Odd(
        "timedelta NaT",
        lambda: two(pd.to_timedelta(["90s", None])),
        (["m", "v"], [["a", "0 days 00:01:30"], ["b", None]]),
        "column 'v' is of durations; draw numbers, as with df[…].dt.total_secon",
    ),
    Odd(
        "datetime",
        lambda: two(pd.to_datetime(["2026-01-01", "2026-01-02 10:00"], format="ISO8601")),
        (["m", "v"], [["a", "2026-01-01 00:00:00"], ["b", "2026-01-02 10:00:00"]]),
        "none of the columns m, v has numbers to draw; make some first, as with",
    ),
    Odd(
        "datetime ns",
        lambda: two(
            pd.to_datetime(["2026-01-01 00:00:00.000000001", "2026-01-02"], format="ISO8601")
        ),
        (["m", "v"], [["a", "2026-01-01 00:00:00.000000001"], ["b", "2026-01-02 00:00:00"]]),
        "none of the columns m, v has numbers to draw; make some first, as with",
    ),
    Odd(
        "datetime tz",
        lambda: two(pd.to_datetime(["2026-01-01", "2026-01-02"]).tz_localize("Europe/Oslo")),
        (["m", "v"], [["a", "2026-01-01 00:00:00+01:00"], ["b", "2026-01-02 00:00:00+01:00"]]),
        "none of the columns m, v has numbers to draw; make some first, as with",
    ),
    Odd(
        "NaT",
        lambda: two(pd.to_datetime(["2026-01-01", None])),
        (["m", "v"], [["a", "2026-01-01"], ["b", None]]),
        "none of the columns m, v has numbers to draw; make some first, as with",
    ),
    Odd(
        "period",
        lambda: two(pd.PeriodIndex(["2026-01", "2026-02"], freq="M")),
        (["m", "v"], [["a", "2026-01"], ["b", "2026-02"]]),
        "none of the columns m, v has numbers to draw; make some first, as with",
    ),
    Odd(
        "interval",
        lambda: two(pd.IntervalIndex.from_breaks([0, 1, 2])),
        (["m", "v"], [["a", "(0, 1]"], ["b", "(1, 2]"]]),
        "none of the columns m, v has numbers to draw; make some first, as with",
    ),
    Odd(
        "category",
        lambda: two(["x", None], "category"),
        (["m", "v"], [["a", "x"], ["b", None]]),
        "none of the columns m, v has numbers to draw; make some first, as with",
    ),
    Odd(
        "category ints",
        lambda: two([3, 1], "category"),
        (["m", "v"], [["a", 3], ["b", 1]]),
        (["a", "b"], [("v", [3, 1])]),
    ),
    Odd(
        "string NA",
        lambda: two(["x", None], "string"),
        (["m", "v"], [["a", "x"], ["b", None]]),
        "none of the columns m, v has numbers to draw; make some first, as with",
    ),
    Odd(
        "digits",
        lambda: two(["1", "2"]),
        (["m", "v"], [["a", "1"], ["b", "2"]]),
        "none of the columns m, v has numbers to draw; make some first, as with",
    ),
    Odd(
        "arrow int",
        lambda: two([1, None], "int64[pyarrow]"),
        (["m", "v"], [["a", 1], ["b", None]]),
        (["a", "b"], [("v", [1, None])]),
    ),
    Odd(
        "arrow decimal",
        lambda: two(pd.array([Decimal("1.10"), None], dtype=pd.ArrowDtype(pa.decimal128(10, 2)))),
        (["m", "v"], [["a", 1.1], ["b", None]]),
        (["a", "b"], [("v", [1.1, None])]),
    ),
    Odd(
        "arrow list",
        lambda: two(pd.array([[1, 2], None], dtype=pd.ArrowDtype(pa.list_(pa.int64())))),
        (["m", "v"], [["a", "[1, 2]"], ["b", None]]),
        "none of the columns m, v has numbers to draw; make some first, as with",
    ),
    Odd(
        "complex",
        lambda: two([1 + 2j, 0j]),
        (["m", "v"], [["a", "(1+2j)"], ["b", "0j"]]),
        "none of the columns m, v has numbers to draw; make some first, as with",
    ),
    Odd(
        "bytes",
        lambda: two([b"\0\1", b""], object),
        (["m", "v"], [["a", "2 bytes"], ["b", "0 bytes"]]),
        "none of the columns m, v has numbers to draw; make some first, as with",
    ),
    Odd(
        "lists",
        lambda: two([[1, [2]], ()], object),
        (["m", "v"], [["a", "[1, [2]]"], ["b", "[]"]]),
        "none of the columns m, v has numbers to draw; make some first, as with",
    ),
    Odd(
        "dicts",
        lambda: two([{"a": 1}, {}], object),
        (["m", "v"], [["a", '{"a": 1}'], ["b", "{}"]]),
        "none of the columns m, v has numbers to draw; make some first, as with",
    ),
    Odd(
        "int keys",
        lambda: two([{1: 2}, {None: 1}], object),
        (["m", "v"], [["a", '{"1": 2}'], ["b", '{"None": 1}']]),
        "none of the columns m, v has numbers to draw; make some first, as with",
    ),
    Odd(
        "sets",
        lambda: two([{1}, frozenset()], object),
        (["m", "v"], [["a", "[1]"], ["b", "[]"]]),
        "none of the columns m, v has numbers to draw; make some first, as with",
    ),
    Odd(
        "None",
        lambda: two([None, None], object),
        (["m", "v"], [["a", None], ["b", None]]),
        "none of the columns m, v has numbers to draw; make some first, as with",
    ),
    Odd(
        "enums",
        lambda: two([Colour.RED, Colour.BLUE], object),
        (["m", "v"], [["a", "red"], ["b", "blue"]]),
        "none of the columns m, v has numbers to draw; make some first, as with",
    ),
    Odd(
        "int enums",
        lambda: two([Level.LOW, Level.HIGH], object),
        (["m", "v"], [["a", 1], ["b", 2]]),
        (["a", "b"], [("v", [1, 2])]),
    ),
    Odd(
        "fractions",
        lambda: two([Fraction(1, 4), Fraction(2)], object),
        (["m", "v"], [["a", "1/4"], ["b", "2"]]),
        (["a", "b"], [("v", [0.25, 2.0])]),
    ),
    Odd(
        "uuid",
        lambda: two([UUID(int=1), None], object),
        (["m", "v"], [["a", "00000000-0000-0000-0000-000000000001"], ["b", None]]),
        "none of the columns m, v has numbers to draw; make some first, as with",
    ),
    Odd(
        "paths",
        lambda: two([PurePosixPath("/a"), None], object),
        (["m", "v"], [["a", "/a"], ["b", None]]),
        "none of the columns m, v has numbers to draw; make some first, as with",
    ),
    Odd(
        "numpy scalars",
        lambda: two([np.float64(1.5), np.int64(2)], object),
        (["m", "v"], [["a", 1.5], ["b", 2]]),
        (["a", "b"], [("v", [1.5, 2])]),
    ),
    Odd(
        "numpy float32 scalars",
        lambda: two([np.float32(0.1), np.float32(2)], object),
        (["m", "v"], [["a", 0.1], ["b", 2.0]]),
        (["a", "b"], [("v", [0.1, 2.0])]),
    ),
    Odd(
        "numpy dates",
        lambda: two([np.datetime64("2026-01-01"), np.datetime64("NaT")], object),
        (["m", "v"], [["a", "2026-01-01"], ["b", None]]),
        "none of the columns m, v has numbers to draw; make some first, as with",
    ),
    Odd(
        "numpy durations",
        lambda: two([np.timedelta64(90, "s"), np.timedelta64("NaT")], object),
        (["m", "v"], [["a", "0:01:30"], ["b", None]]),
        "column 'v' is of durations; draw numbers, as with df[…].dt.total_secon",
    ),
    Odd(
        "numpy arrays",
        lambda: two([np.array([1, 2]), np.array([])], object),
        (["m", "v"], [["a", "[1, 2]"], ["b", "[]"]]),
        "none of the columns m, v has numbers to draw; make some first, as with",
    ),
    Odd(
        "dates",
        lambda: two([date(2026, 1, 1), None], object),
        (["m", "v"], [["a", "2026-01-01"], ["b", None]]),
        "none of the columns m, v has numbers to draw; make some first, as with",
    ),
    Odd(
        "times",
        lambda: two([time(9, 30), None], object),
        (["m", "v"], [["a", "09:30:00"], ["b", None]]),
        "none of the columns m, v has numbers to draw; make some first, as with",
    ),
    Odd(
        "long text",
        lambda: two(["x" * 2000, ""], object),
        (["m", "v"], [["a", "x" * 999 + "…"], ["b", ""]]),
        "none of the columns m, v has numbers to draw; make some first, as with",
    ),
    Odd(
        "surrogate",
        lambda: two(["a\ud800", "b"], object),
        (["m", "v"], [["a", "a�"], ["b", "b"]]),
        "none of the columns m, v has numbers to draw; make some first, as with",
    ),
    Odd(
        "lines",
        lambda: two(["a\nb\tc", "\u202eabc"], object),
        (["m", "v"], [["a", "a\nb\tc"], ["b", "\u202eabc"]]),
        "none of the columns m, v has numbers to draw; make some first, as with",
    ),
    Odd(
        "huge ints",
        lambda: two([10**30, -(10**30)], object),
        (
            ["m", "v"],
            [["a", "1000000000000000000000000000000"], ["b", "-1000000000000000000000000000000"]],
        ),
        "y: column 'v' has 1000000000000000000000000000000, an integer beyond ±",
    ),
    Odd(
        "types",
        lambda: two([int, ValueError("x")], object),
        (["m", "v"], [["a", "<class 'int'>"], ["b", "x"]]),
        "none of the columns m, v has numbers to draw; make some first, as with",
    ),
    Odd(
        "sparse",
        lambda: two(pd.arrays.SparseArray([0, 1])),
        (["m", "v"], [["a", 0], ["b", 1]]),
        (["a", "b"], [("v", [0, 1])]),
    ),
    Odd(
        "NA objects",
        lambda: two([pd.NA, pd.NaT], object),
        (["m", "v"], [["a", None], ["b", None]]),
        "none of the columns m, v has numbers to draw; make some first, as with",
    ),
    Odd(
        "duplicate names",
        lambda: pd.DataFrame([["a", 1, 2]], columns=["m", "v", "v"]),
        (["m", "v", "v"], [["a", 1, 2]]),
        (["a"], [("v", [1]), ("v", [2])]),
    ),
    Odd(
        "three alike",
        lambda: pd.DataFrame([[1, 2, 3]], columns=["v", "v", "v"]),
        (["v", "v", "v"], [[1, 2, 3]]),
        ([1], [("v", [1]), ("v", [2]), ("v", [3])]),
    ),
    Odd(
        "no name",
        lambda: pd.DataFrame([["a", 1]], columns=["m", None]),
        (["m", "(unnamed)"], [["a", 1]]),
        (["a"], [("(unnamed)", [1])]),
    ),
    Odd(
        "NaN name",
        lambda: pd.DataFrame([["a", 1]], columns=["m", float("nan")]),
        (["m", "(unnamed)"], [["a", 1]]),
        (["a"], [("(unnamed)", [1])]),
    ),
    Odd(
        "None and NaN",
        lambda: pd.DataFrame([[1, 2]], columns=pd.Index([None, float("nan")], dtype=object)),
        (["(unnamed)", "(unnamed)"], [[1, 2]]),
        ([1], [("(unnamed)", [1]), ("(unnamed)", [2])]),
    ),
    Odd(
        "zero and None",
        lambda: pd.DataFrame([[1, 2]], columns=pd.Index([0, None], dtype=object)),
        (["0", "(unnamed)"], [[1, 2]]),
        ([1], [("0", [1]), ("(unnamed)", [2])]),
    ),
    Odd(
        "1 and '1'",
        lambda: pd.DataFrame([["a", 1, 2]], columns=["m", 1, "1"]),
        (["m", "1", "1"], [["a", 1, 2]]),
        (["a"], [("1", [1]), ("1", [2])]),
    ),
    Odd(
        "True and 'True'",
        lambda: pd.DataFrame([["a", 1, 2]], columns=["m", True, "True"]),
        (["m", "True", "True"], [["a", 1, 2]]),
        (["a"], [("True", [1]), ("True", [2])]),
    ),
    Odd(
        "empty name",
        lambda: pd.DataFrame([["a", 1]], columns=["m", ""]),
        (["m", ""], [["a", 1]]),
        (["a"], [("", [1])]),
    ),
    Odd(
        "False name",
        lambda: pd.DataFrame([["a", 1]], columns=["m", False]),
        (["m", "False"], [["a", 1]]),
        (["a"], [("False", [1])]),
    ),
    Odd(
        "numbers",
        lambda: pd.DataFrame([["a", 1]]),
        (["0", "1"], [["a", 1]]),
        (["a"], [("1", [1])]),
    ),
    Odd(
        "float names",
        lambda: pd.DataFrame([["a", 1]], columns=["m", 1.5]),
        (["m", "1.5"], [["a", 1]]),
        (["a"], [("1.5", [1])]),
    ),
    Odd(
        "date names",
        lambda: pd.DataFrame([[1, 2]], columns=pd.to_datetime(["2026-01-01", "2026-02-01"])),
        (["2026-01-01 00:00:00", "2026-02-01 00:00:00"], [[1, 2]]),
        ([1], [("2026-01-01 00:00:00", [1]), ("2026-02-01 00:00:00", [2])]),
    ),
    Odd(
        "tuples",
        lambda: pd.DataFrame(
            [[1, 2]], columns=pd.MultiIndex.from_tuples([("x", "a"), ("x", None)])
        ),
        (["x / a", "x / (unnamed)"], [[1, 2]]),
        ([1], [("x / a", [1]), ("x / (unnamed)", [2])]),
    ),
    Odd(
        "duplicate tuples",
        lambda: pd.DataFrame([[1, 2]], columns=pd.MultiIndex.from_tuples([("x", "a"), ("x", "a")])),
        (["x / a", "x / a"], [[1, 2]]),
        ([1], [("x / a", [1]), ("x / a", [2])]),
    ),
    Odd(
        "large name",
        lambda: pd.DataFrame([["a", 1]], columns=["m", 2**60]),
        (["m", "1152921504606846976"], [["a", 1]]),
        (["a"], [("1152921504606846976", [1])]),
    ),
    Odd(
        "index dup",
        lambda: pd.DataFrame({"v": [1, 2]}, index=["a", "a"]),
        (["index", "v"], [["a", 1], ["a", 2]]),
        (["a", "a"], [("v", [1, 2])]),
    ),
    Odd(
        "index NaN",
        lambda: pd.DataFrame({"v": [1, 2]}, index=["a", None]),
        (["index", "v"], [["a", 1], [None, 2]]),
        (["a", ""], [("v", [1, 2])]),
    ),
    Odd(
        "index like column",
        lambda: pd.DataFrame({"v": [1, 2]}, index=pd.Index([3, 4], name="v")),
        (["v", "v"], [[3, 1], [4, 2]]),
        ([3, 4], [("v", [1, 2])]),
    ),
    Odd(
        "index large",
        lambda: pd.DataFrame({"v": [1]}, index=pd.Index([2**60], name="id")),
        (["id", "v"], [["1152921504606846976", 1]]),
        (["1152921504606846976"], [("v", [1])]),
    ),
    Odd(
        "multiindex",
        lambda: pd.DataFrame(
            {"v": [1, 2]}, index=pd.MultiIndex.from_tuples([("a", 1), ("a", None)])
        ),
        (["index", "index", "v"], [["a", 1.0, 1], ["a", None, 2]]),
        (["a / 1.0", "a / "], [("v", [1, 2])]),
    ),
    Odd(
        "no rows",
        lambda: pd.DataFrame({"m": [], "v": []}),
        (["m", "v"], []),
        "the data has no rows; show a text instead, or name the columns with y=",
    ),
    Odd(
        "no columns",
        lambda: pd.DataFrame(index=[1, 2]),
        ([], []),
        "the data has no rows; show a text instead, or name the columns with y=",
    ),
    Odd(
        "nothing",
        lambda: pd.DataFrame(),
        ([], []),
        "the data has no rows; show a text instead, or name the columns with y=",
    ),
    Odd(
        "series dup",
        lambda: pd.Series([1, 2], index=["a", "a"], name=None),
        (["index", "value"], [["a", 1], ["a", 2]]),
        (["a", "a"], [("value", [1, 2])]),
    ),
    Odd(
        "pl decimal",
        lambda: pl.DataFrame({"m": ["a", "b"], "v": [Decimal("1.10"), None]}),
        (["m", "v"], [["a", 1.1], ["b", None]]),
        (["a", "b"], [("v", [1.1, None])]),
    ),
    Odd(
        "pl duration",
        lambda: pl.DataFrame({"m": ["a"], "v": [timedelta(seconds=90)]}),
        (["m", "v"], [["a", "0:01:30"]]),
        "column 'v' is of durations; draw numbers, as with df[…].dt.total_secon",
    ),
    Odd(
        "pl list",
        lambda: pl.DataFrame({"m": ["a"], "v": [[1, 2]]}),
        (["m", "v"], [["a", "[1, 2]"]]),
        "none of the columns m, v has numbers to draw; make some first, as with",
    ),
    Odd(
        "pl struct",
        lambda: pl.DataFrame({"m": ["a"], "v": [{"x": 1}]}),
        (["m", "v"], [["a", '{"x": 1}']]),
        "none of the columns m, v has numbers to draw; make some first, as with",
    ),
    Odd(
        "pl categorical",
        lambda: pl.DataFrame({"m": ["a", "b"], "v": pl.Series(["x", "y"], dtype=pl.Categorical)}),
        (["m", "v"], [["a", "x"], ["b", "y"]]),
        "none of the columns m, v has numbers to draw; make some first, as with",
    ),
    Odd(
        "pl binary",
        lambda: pl.DataFrame({"m": ["a"], "v": [b"12"]}),
        (["m", "v"], [["a", "2 bytes"]]),
        "none of the columns m, v has numbers to draw; make some first, as with",
    ),
    Odd(
        "pl u64",
        lambda: pl.DataFrame({"m": ["a"], "v": pl.Series([2**64 - 1], dtype=pl.UInt64)}),
        (["m", "v"], [["a", "18446744073709551615"]]),
        "y: column 'v' has 18446744073709551615, an integer beyond ±90071992547",
    ),
    Odd(
        "pl i128",
        lambda: pl.DataFrame({"m": ["a"], "v": pl.Series([2**100], dtype=pl.Int128)}),
        (["m", "v"], [["a", "1267650600228229401496703205376"]]),
        "y: column 'v' has 1267650600228229401496703205376, an integer beyond ±",
    ),
    Odd(
        "pl f32",
        lambda: pl.DataFrame({"m": ["a"], "v": pl.Series([0.1], dtype=pl.Float32)}),
        (["m", "v"], [["a", 0.1]]),
        (["a"], [("v", [0.1])]),
    ),
    Odd(
        "pl date",
        lambda: pl.DataFrame({"m": [date(2026, 1, 1)], "v": [1]}),
        (["m", "v"], [["2026-01-01", 1]]),
        (["2026-01-01"], [("v", [1])]),
    ),
    Odd(
        "pl time",
        lambda: pl.DataFrame({"m": [time(9)], "v": [1]}),
        (["m", "v"], [["09:00:00", 1]]),
        (["09:00:00"], [("v", [1])]),
    ),
    Odd(
        "pl tz",
        lambda: pl.DataFrame({"m": [datetime(2026, 1, 1, tzinfo=UTC)], "v": [1]}),
        (["m", "v"], [["2026-01-01 00:00:00+00:00", 1]]),
        (["2026-01-01 00:00:00+00:00"], [("v", [1])]),
    ),
    Odd(
        "pl null",
        lambda: pl.DataFrame({"m": ["a"], "v": [None]}),
        (["m", "v"], [["a", None]]),
        "none of the columns m, v has numbers to draw; make some first, as with",
    ),
    Odd(
        "pl bool",
        lambda: pl.DataFrame({"m": ["a"], "v": [True]}),
        (["m", "v"], [["a", True]]),
        "column 'v' is of True and False; draw counts or numbers, as with df[…]",
    ),
    Odd(
        "pl object",
        lambda: pl.DataFrame({"m": ["a"], "v": pl.Series([object], dtype=pl.Object)}),
        (["m", "v"], [["a", "<class 'object'>"]]),
        "none of the columns m, v has numbers to draw; make some first, as with",
    ),
    Odd(
        "pa decimal",
        lambda: pa.table({"m": ["a"], "v": pa.array([Decimal("1.10")], pa.decimal128(10, 2))}),
        (["m", "v"], [["a", 1.1]]),
        (["a"], [("v", [1.1])]),
    ),
    Odd(
        "pa dict",
        lambda: pa.table({"m": pa.array(["a"]).dictionary_encode(), "v": [1]}),
        (["m", "v"], [["a", 1]]),
        (["a"], [("v", [1])]),
    ),
    Odd(
        "pa map",
        lambda: pa.table(
            {"m": ["a"], "v": pa.array([[("x", 1)]], pa.map_(pa.string(), pa.int64()))}
        ),
        (["m", "v"], [["a", '[["x", 1]]']]),
        "none of the columns m, v has numbers to draw; make some first, as with",
    ),
    Odd(
        "pa ns",
        lambda: pa.table({"m": pa.array([1], pa.timestamp("ns")), "v": [1]}),
        (["m", "v"], [["1970-01-01 00:00:00.000000001", 1]]),
        (["1970-01-01 00:00:00.000000001"], [("v", [1])]),
    ),
    Odd(
        "pa duration",
        lambda: pa.table({"m": ["a"], "v": pa.array([90], pa.duration("s"))}),
        (["m", "v"], [["a", "0:01:30"]]),
        "column 'v' is of durations; draw numbers, as with df[…].dt.total_secon",
    ),
    Odd(
        "pa u64",
        lambda: pa.table({"m": ["a"], "v": pa.array([2**64 - 1], pa.uint64())}),
        (["m", "v"], [["a", "18446744073709551615"]]),
        "y: column 'v' has 18446744073709551615, an integer beyond ±90071992547",
    ),
    Odd(
        "pa f32",
        lambda: pa.table({"m": ["a"], "v": pa.array([0.1], pa.float32())}),
        (["m", "v"], [["a", 0.1]]),
        (["a"], [("v", [0.1])]),
    ),
    Odd(
        "pa dup",
        lambda: pa.table([["a"], [1], [2]], names=["m", "v", "v"]),
        (["m", "v", "v"], [["a", 1, 2]]),
        (["a"], [("v", [1]), ("v", [2])]),
    ),
    Odd(
        "pa null",
        lambda: pa.table({"m": ["a"], "v": pa.nulls(1)}),
        (["m", "v"], [["a", None]]),
        "none of the columns m, v has numbers to draw; make some first, as with",
    ),
    Odd(
        "pa half",
        lambda: pa.table({"m": ["a"], "v": pa.array([np.float16(0.1)], pa.float16())}),
        (["m", "v"], [["a", 0.1]]),
        (["a"], [("v", [0.1])]),
    ),
    Odd(
        "np f16",
        lambda: np.array([0.1, 2], dtype="float16"),
        (["value"], [[0.1], [2.0]]),
        ([1, 2], [("value", [0.1, 2.0])]),
    ),
    Odd(
        "np f32",
        lambda: np.array([[0.1, 2]], dtype="float32"),
        (["0", "1"], [[0.1, 2.0]]),
        ([1], [("0", [0.1]), ("1", [2.0])]),
    ),
    Odd(
        "np bool",
        lambda: np.array([True, False]),
        (["value"], [[True], [False]]),
        "column 'value' is of True and False; draw counts or numbers, as with d",
    ),
    Odd(
        "np td",
        lambda: np.array([90, 1], dtype="timedelta64[s]"),
        (["value"], [["0:01:30"], ["0:00:01"]]),
        "column 'value' is of durations; draw numbers, as with df[…].dt.total_s",
    ),
    Odd(
        "np td ns",
        lambda: np.array([90], dtype="timedelta64[ns]"),
        (["value"], [["90 nanoseconds"]]),
        "none of the columns value has numbers to draw; make some first, as wit",
    ),
    Odd(
        "np ns",
        lambda: np.array(["2026-01-01T00:00:00.000000001"], dtype="datetime64[ns]"),
        (["value"], [["2026-01-01 00:00:00.000000001"]]),
        "none of the columns value has numbers to draw; make some first, as wit",
    ),
    Odd(
        "np complex",
        lambda: np.array([1 + 2j]),
        (["value"], [["(1+2j)"]]),
        "none of the columns value has numbers to draw; make some first, as wit",
    ),
    Odd(
        "np object",
        lambda: np.array([1, "a", None], dtype=object),
        (["value"], [[1], ["a"], [None]]),
        "none of the columns value has numbers to draw; make some first, as wit",
    ),
    Odd(
        "np structured",
        lambda: np.array([("a", 2**60)], dtype=[("m", "U1"), ("v", "i8")]),
        (["m", "v"], [["a", "1152921504606846976"]]),
        "y: column 'v' has 1152921504606846976, an integer beyond ±900719925474",
    ),
    Odd(
        "np 0d",
        lambda: np.array(5),
        (["value"], [[5]]),
        ([1], [("value", [5])]),
    ),
    Odd(
        "np empty",
        lambda: np.array([]),
        (["value"], []),
        "the data has no rows; show a text instead, or name the columns with y=",
    ),
    Odd(
        "np 3d",
        lambda: np.zeros((1, 1, 1)),
        "ui.table: an array of 1 × 1 × 1 has more than two dimensions",
        "an array of 1 × 1 × 1 has more than two dimensions; pass a part of it",
    ),
    Odd(
        "np longdouble",
        lambda: np.array([0.1], dtype="longdouble"),
        (["value"], [[0.1]]),
        ([1], [("value", [0.1])]),
    ),
]


def test_there_are_a_hundred() -> None:
    assert len({one.name for one in ODD}) == len(ODD) >= 100


@pytest.mark.parametrize("odd", ODD, ids=[one.name for one in ODD])
def test_table_of_an_odd_frame_is_right_or_refused(odd: Odd) -> None:
    frame = odd.make()
    if isinstance(odd.table, str):
        with pytest.raises(InvalidComponent) as refused:
            ui.table(frame)
        assert str(refused.value).startswith(odd.table)
        return
    props = ui.table(frame).props
    assert (props["headers"], props["rows"]) == odd.table


@pytest.mark.parametrize("odd", ODD, ids=[one.name for one in ODD])
def test_chart_of_an_odd_frame_is_right_or_refused_with_what_to_do(odd: Odd) -> None:
    frame = odd.make()
    if isinstance(odd.chart, str):
        with pytest.raises(InvalidComponent) as refused:
            ui.chart("bar", frame)
        assert str(refused.value).startswith(f"ui.chart: {odd.chart}")
        return
    props = ui.chart("bar", frame).props
    assert props["labels"] == odd.chart[0]
    assert [(one["label"], one["data"]) for one in props["datasets"]] == odd.chart[1]
