"""Changed, added and removed rows are found, by a key that is found too."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from compare import as_texts, compare_rows, find_key
from connection import Cell, Result
from errors import ExplorerError


def table(columns: str, *rows: Sequence[Cell]) -> Result:
    """All rows of a table with these columns, separated by spaces."""
    return Result("SELECT", tuple(columns.split()), [list(row) for row in rows], False, 0.0)


OLD = table("day kind n", ["mon", "a", 1], ["tue", "b", 2], ["wed", "c", 3])
NEW = table("day kind n", ["mon", "a", 1], ["tue", "b", 9], ["thu", "d", 4])


def test_rows_are_matched_by_their_key() -> None:
    differences = compare_rows(OLD, NEW)
    assert differences.key == ("day",)
    assert differences.changed == ((("tue", "b", 2), ("tue", "b", 9)),)
    assert differences.removed == (("wed", "c", 3),)
    assert differences.added == (("thu", "d", 4),)
    assert differences.sentence == "1 changed, 1 added, 1 removed."


def test_the_texts_hold_the_rows_that_differ_and_no_others() -> None:
    before, after = as_texts(compare_rows(OLD, NEW))
    assert before == "day,kind,n\ntue,b,2\nwed,c,3\n"
    assert after == "day,kind,n\ntue,b,9\nthu,d,4\n"


def test_equal_tables_have_no_differences() -> None:
    differences = compare_rows(OLD, OLD)
    assert (differences.count, differences.sentence) == (0, "Every row is the same.")


def test_columns_may_stand_in_another_order_and_case() -> None:
    moved = table("N DAY kind", [1, "mon", "a"], [2, "tue", "b"], [3, "wed", "c"])
    assert compare_rows(OLD, moved).count == 0


def test_columns_of_one_side_only_are_reported_and_left_out() -> None:
    more = table("day n extra", ["mon", 1, "x"], ["tue", 2, "y"], ["wed", 3, "z"])
    differences = compare_rows(OLD, more)
    assert (differences.only_old, differences.only_new) == (("kind",), ("extra",))
    assert (differences.count, differences.sentence) == (0, "No row differs.")


def test_a_key_may_have_two_columns() -> None:
    old = table("city year n", ["x", 2012, 1], ["x", 2013, 1], ["y", 2012, 1])
    new = table("city year n", ["x", 2012, 1], ["x", 2013, 7], ["y", 2012, 1])
    differences = compare_rows(old, new)
    assert differences.key == ("city", "year")
    assert differences.changed == ((("x", 2013, 1), ("x", 2013, 7)),)


def test_without_a_key_complete_rows_are_counted() -> None:
    old = table("a", ["x"], ["x"], ["y"])
    new = table("a", ["x"], ["y"], ["y"])
    differences = compare_rows(old, new)
    assert differences.key == ()
    assert (differences.removed, differences.added) == ((("x",),), (("y",),))


def test_fractions_and_gaps_are_no_key() -> None:
    rows: list[tuple[Cell, ...]] = [(1.5, None, "a"), (2.5, "x", "b")]
    assert find_key(("weight", "note", "code"), rows, rows) == (2,)


def test_a_column_that_is_called_a_key_is_preferred() -> None:
    rows: list[tuple[Cell, ...]] = [("p", 1), ("q", 2)]
    assert find_key(("label", "item_id"), rows, rows) == (1,)


def test_tables_without_a_common_column_cannot_be_compared() -> None:
    with pytest.raises(ExplorerError, match="no column in common"):
        compare_rows(OLD, table("x", [1]))


def test_of_very_many_changes_the_first_200_are_shown() -> None:
    old = table("id n", *[[number, 0] for number in range(300)])
    new = table("id n", *[[number, 1] for number in range(300)])
    differences = compare_rows(old, new)
    before, _ = as_texts(differences)
    assert (differences.count, before.count("\n")) == (300, 201)
