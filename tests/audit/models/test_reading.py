"""Reading what anyone may have written: what is not as expected is as if not there."""

from __future__ import annotations

from typing import Any

import pytest

from arp.audit.models.reading import (
    MOST,
    added,
    brief,
    flag,
    milliseconds,
    number,
    part,
    text,
    texts,
    values,
    whole,
)


@pytest.mark.parametrize(
    ("payload", "found"),
    [
        ({"a": "yes", "b": "no"}, "yes"),
        ({"a": "", "b": "no"}, "no"),
        ({"a": 1, "b": "no"}, "no"),
        ({"a": "x" * 201}, "x" * 200),
        ({}, None),
    ],
)
def test_the_first_text_that_is_there_is_taken_and_cut(
    payload: dict[str, Any], found: str | None
) -> None:
    assert text(payload, "a", "b") == found


@pytest.mark.parametrize(
    ("value", "counts", "numbers"),
    [
        (3, 3, 3),
        (0, 0, 0),
        (-1, None, -1),
        (2.5, None, 2.5),
        (True, None, None),
        ("3", None, None),
        (MOST + 1, None, None),
        (-MOST - 1, None, None),
        (None, None, None),
    ],
)
def test_what_is_no_number_of_a_sensible_size_is_not_there(
    value: Any, counts: int | None, numbers: float | None
) -> None:
    assert whole({"n": value}, "n") == counts
    assert number({"n": value}, "n") == numbers


def test_only_true_and_false_are_flags() -> None:
    assert flag({"f": False}, "f") is False
    assert flag({"f": 0}, "f") is None


def test_of_a_list_only_its_texts_are_taken_and_no_more_than_asked() -> None:
    assert texts({"l": ["a", 1, "", "b" * 300, None]}, "l") == ["a", "b" * 200]
    assert texts({"l": ["a"] * 30}, "l") == ["a"] * 20
    assert texts({"l": ["a"] * 30}, "l", 25) == ["a"] * 25
    assert texts({"l": "a"}, "l") == []


def test_of_a_list_of_values_each_is_kept_short() -> None:
    assert values({"l": [1, "x" * 300, {"a": [None]}]}, "l") == [1, "x" * 200, {"a": [None]}]
    assert values({"l": {"a": 1}}, "l") == []
    assert len(values({"l": [0] * 30}, "l")) == 20


def test_a_part_is_an_object_or_an_empty_one() -> None:
    assert part({"p": {"a": 1}}, "p") == {"a": 1}
    assert part({"p": [1]}, "p") == {}
    assert part("no object", "p") == {}


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        (None, None),
        (True, True),
        ("x" * 300, "x" * 200),
        (7, 7),
        (0.5, 0.5),
        (10**20, None),
        ({"a": [1, {"b": None}]}, {"a": [1, {"b": None}]}),
        (["y" * 2_000], '["' + "y" * 198),
        (["ü" * 2_000], '["' + "ü" * 99),
    ],
)
def test_a_value_is_kept_as_it_is_or_as_the_beginning_of_its_text(value: Any, kept: Any) -> None:
    assert brief(value) == kept


def test_a_value_that_nests_deep_is_kept_as_text() -> None:
    deep: list[Any] = []
    for _ in range(100):
        deep = [deep]
    assert brief(deep) == "[" * 101 + "]" * 99


def test_counting_stops_where_readers_of_json_would_round() -> None:
    assert added(1, 2) == 3
    assert added(1, None) == 1
    assert added(MOST, 1) == MOST


@pytest.mark.parametrize(
    ("began", "ended", "took"),
    [
        ("2026-01-02T03:04:05.000000Z", "2026-01-02T03:04:06.500000Z", 1500),
        ("2026-01-02T03:04:05Z", "2026-01-02T04:04:05+01:00", 0),
        ("2026-01-02T03:04:06Z", "2026-01-02T03:04:05Z", 0),
        (None, "2026-01-02T03:04:05Z", None),
        ("2026-01-02T03:04:05Z", None, None),
        ("yesterday", "2026-01-02T03:04:05Z", None),
        ("2026-01-02T03:04:05", "2026-01-02T03:04:05Z", None),
    ],
)
def test_the_time_between_two_moments_is_known_or_not(
    began: str | None, ended: str | None, took: int | None
) -> None:
    assert milliseconds(began, ended) == took
