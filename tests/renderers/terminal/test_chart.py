"""Charts as text: bars, shares, lines, areas, points."""

from __future__ import annotations

from typing import Any

import pytest

from arp.protocol.components import Component
from arp.protocol.json_value import Json
from arp_terminal.drawing.chart import amount
from tests.renderers.terminal.drawing import drawn, painted, picture, widest


def chart(kind: str, labels: list[Json], *data: Json, cells: int = 30, **more: Json) -> str:
    unicode = bool(more.pop("unicode", True))
    datasets = [one if isinstance(one, dict) else {"data": one} for one in data]
    return drawn(
        "chart", cells, unicode, _type=kind, labels=labels, datasets=datasets, height=100, **more
    )


def test_bars_stand_behind_their_labels_with_their_values() -> None:
    series = {"label": "2012", "data": [100, 50]}
    assert chart("bar", ["Jan", "February"], series, title="Rain") == picture(
        """
        Rain
        █ 2012
        Jan       ████████████████ 100
        February  ████████ 50
        """
    )


def test_bars_below_zero_stand_left_of_it_and_a_gap_is_no_zero() -> None:
    assert chart("bar", ["a", "b", "c", "d"], [10, -10, None, 0]) == picture(
        """
        a              ███████████ 10
        b  ████████████ -10
        c               –
        d               0
        """
    )


def test_bars_of_several_series_differ_without_colour() -> None:
    both = {"label": "x", "data": [3]}, {"label": "y", "data": [1.5]}
    assert chart("bar", ["a"], *both) == picture(
        """
        █ x   ▓ y
        a  ███████████████████████ 3
           ▓▓▓▓▓▓▓▓▓▓▓▓ 1.5
        """
    )
    assert chart("bar", ["a"], *both, unicode=False) == picture(
        """
        # x   = y
        a  ####################### 3
           ============ 1.5
        """
    )


def test_a_pie_is_shares_in_per_cent() -> None:
    assert chart("pie", ["Chrome", "Safari"], [3, 1], cells=40) == picture(
        """
        Chrome  ███████████████▊       75.0 %  3
        Safari  █████▎                 25.0 %  1
        """
    )


def test_a_line_has_axes_with_round_ticks() -> None:
    assert chart("line", ["a", "b", "c"], [0, 10, 5], title="T") == picture(
        """
        T
        10 ┤           ⡠⠒⠉⠒⠢⢄⣀
           │        ⣀⠔⠉       ⠉⠑⠒⠤⢄⡀
         5 ┤     ⢀⠔⠊               ⠈⠉⠒
           │  ⢀⡠⠊⠁
         0 ┤⡠⠔⠁
           └──────────────────────────
            a           b            c
        """
    )


def test_lines_of_several_series_differ_without_colour_and_a_gap_stays_open() -> None:
    both = {"label": "x", "data": [0, 10, 5]}, {"label": "y", "data": [5, None, 5]}
    assert chart("line", ["a", "b", "c"], *both) == picture(
        """
        ● x   ▲ y
        10 ┤           ●●●●●●●
           │        ●●●       ●●●●●●
         5 ┤▲    ●●●               ●●▲
           │  ●●●●
         0 ┤●●●
           └──────────────────────────
            a           b            c
        """
    )


def test_an_area_is_filled_down_to_zero() -> None:
    assert chart("area", ["a", "b"], [1, 2]) == picture(
        """
        2 ┤                ⢀⣀⣀⣠⣤⣤⣴⣶⣶⣾⣿
          │    ⢀⣀⣀⣠⣤⣤⣴⣶⣶⣾⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿
        1 ┤⣶⣾⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿
          │⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿
        0 ┤⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿
          └───────────────────────────
           a                         b
        """
    )


def test_points_stand_at_their_x_values() -> None:
    """A scatter has its x values as labels: 4 is twice as far from 2 as 2 is from 1."""
    assert chart("scatter", [1, 2, 4], [1, 2, 4], unicode=False) == picture(
        """
        4 +                          *
          |
        2 +         *
          |*
        0 +
          +---------------------------
           1        2       3        4
        """
    )


def test_points_may_bring_their_own_x() -> None:
    pairs = chart("scatter", [], [[1, 1], [2, 2], [4, 4]], unicode=False)
    named = chart("scatter", [], [{"x": x, "y": x} for x in (1, 2, 4)], unicode=False)
    assert pairs == named == chart("scatter", [1, 2, 4], [1, 2, 4], unicode=False)


def test_the_numbers_under_points_are_round_and_ungrouped() -> None:
    drawing = chart("scatter", [1953, 1962, 2001.5], [1, 2, 4], cells=60, unicode=False)
    assert drawing.split("\n")[-1].split() == [
        *("1950", "1960", "1970", "1980", "1990", "2000", "2010")
    ]
    tiny = chart("scatter", [0.00012, 0.00043], [1, 2], cells=60, unicode=False)
    assert tiny.split("\n")[-1].split()[:3] == ["0.0001", "0.0002", "0.0003"]


def test_titles_and_unit_of_bars_stand_over_labels_and_behind_values() -> None:
    data = {"label": "2025", "data": [120.5, 95]}
    titles: dict[str, Json] = {"x_title": "Month", "y_title": "Sales", "unit": "USD"}
    assert chart("bar", ["January", "May"], data, cells=40, **titles) == picture(
        """
        █ 2025
        Month    Sales
        January  █████████████████████ 120.5 USD
        May      ████████████████▌ 95 USD
        """
    )
    assert chart("bar", ["a"], [5], unit="%").endswith(" 5%")
    long = chart("bar", ["a"], [5], y_title="Way", unit="light years").split("\n")
    assert long == ["   Way (light years)", "a  █████████████████████████ 5"]


def test_titles_and_unit_of_a_plot_stand_over_and_under_it() -> None:
    titles: dict[str, Json] = {"x_title": "Month", "y_title": "Sales", "unit": "USD"}
    lines = chart("line", ["Jan", "Feb"], [0, 10], unicode=False, **titles).split("\n")
    assert lines[0] == "Sales (USD)"
    assert lines[1].startswith("10 +")
    assert lines[-1] == " " * 14 + "Month"
    assert chart("line", ["Jan", "Feb"], [0, 10], unit="kg").startswith("kg\n10 ┤")


def test_titles_and_unit_of_a_pie_stand_over_it_and_behind_values() -> None:
    titles: dict[str, Json] = {"x_title": "Browser", "y_title": "Visits", "unit": "M"}
    assert chart("pie", ["Chrome", "Safari"], [3, 1], cells=40, **titles) == picture(
        """
        Browser: Visits
        Chrome  ██████████████▎      75.0 %  3 M
        Safari  ████▊                25.0 %  1 M
        """
    )


@pytest.mark.parametrize("kind", ["line", "bar", "pie", "scatter", "area"])
def test_titles_of_any_shape_and_length_stay_on_their_line(kind: str) -> None:
    odds: list[Any] = ["x" * 200, "日" * 90, "a\nb\x1b[31m", 7, None, ["x"], {}]
    for odd in odds:
        lines = chart(kind, ["a", "b"], [1, 2], x_title=odd, y_title=odd, unit=odd).split("\n")
        assert widest(lines) <= 30
        assert "\x1b" not in "".join(lines)


@pytest.mark.parametrize("kind", ["line", "bar", "pie", "scatter", "area"])
def test_every_kind_takes_what_has_no_shape(kind: str) -> None:
    """T30: one point, all zero, all gaps, nothing, huge, tiny, more points than cells."""
    for data in (
        [7],
        [0, 0],
        [None],
        [],
        [1e99, -1e99],
        [1e300, 1],
        [5e-324, 0],
        [1e16, 1e16 + 2],
        [10**400],
        list(range(5000)),
        ["x", True, {}, []],
    ):
        for unicode in (True, False):
            lines = chart(kind, ["a"], data, unicode=unicode).split("\n")
            assert widest(lines) <= 30


def test_no_data_says_so() -> None:
    assert chart("bar", ["a"], [None]) == "no data"
    assert chart("line", []) == "no data"


def test_colours_tell_series_apart_where_there_are_any() -> None:
    props = {
        "type": "bar",
        "labels": ["a"],
        "datasets": [{"label": "x", "data": [1]}, {"label": "y", "data": [1]}],
    }
    lines = painted(Component("c", "chart", props), width=20)
    assert lines[1] == "a  \x1b[36m" + "█" * 15 + "\x1b[0m 1"
    assert lines[2] == "   \x1b[35m" + "█" * 15 + "\x1b[0m 1"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (1234567, "1,234,567"),
        (1234.5, "1,234.5"),
        (2.0, "2"),
        (0.123456, "0.123"),
        (-3.14159, "-3.14"),
        (1e20, "1e+20"),
        (1e-9, "1e-09"),
    ],
)
def test_numbers_are_written_for_people(value: float, shown: str) -> None:
    assert amount(value) == shown


def test_long_labels_of_a_pie_and_of_bars_stay_different() -> None:
    towns = ("North", "South", "East", "West")
    for width in (80, 40):
        for kind in ("pie", "bar"):
            names = [f"Department of Extremely Important Affairs {one}" for one in towns]
            data = [{"label": "n", "data": [1, 2, 3, 4]}]
            lines = drawn("chart", width, _type=kind, labels=names, datasets=data)
            assert all(one in lines for one in towns)
            assert max(map(len, lines.splitlines())) <= width
