"""Charts as text: bars, shares, lines, areas, points."""

from __future__ import annotations

import pytest

from arp.protocol.component import Component
from arp.protocol.json_value import Json
from arp_terminal.chart import amount
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
           1           2.5           4
        """
    )


def test_points_may_bring_their_own_x() -> None:
    pairs = chart("scatter", [], [[1, 1], [2, 2], [4, 4]], unicode=False)
    named = chart("scatter", [], [{"x": x, "y": x} for x in (1, 2, 4)], unicode=False)
    assert pairs == named == chart("scatter", [1, 2, 4], [1, 2, 4], unicode=False)


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
