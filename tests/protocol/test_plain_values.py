"""Python values become plain JSON, or are refused by their place."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from fractions import Fraction
from typing import Any, NamedTuple
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arp.protocol.components import Component
from arp.protocol.errors import InvalidComponent, InvalidMessage
from arp.protocol.json_value import check_plain_json, is_plain_json
from arp.protocol.plain_values import component_to_plain, to_plain


class Word(StrEnum):
    A = "a"


class Number(IntEnum):
    ONE = 1


class Kind(Enum):
    PAIR = (1, 2)


class Point(NamedTuple):
    x: int
    y: float


class OwnText(str):
    __slots__ = ()


class OwnInt(int):
    pass


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text()
    | st.binary()
    | st.dates(),
    lambda inner: (
        st.lists(inner) | st.tuples(inner) | st.dictionaries(st.text() | st.integers(), inner)
    ),
)


PandasMissing = type("NAType", (), {"__module__": "pandas._libs.missing"})
"""What stands for a value that is missing, as `pandas.NA` does."""


@given(anything)
def test_the_fast_check_agrees_with_the_one_that_explains(value: Any) -> None:
    try:
        check_plain_json(value)
    except InvalidMessage:
        assert not is_plain_json(value)
    else:
        assert is_plain_json(value)


@given(st.integers(0, 4), st.integers(0, 4), st.booleans())
def test_both_checks_count_levels_alike(levels: int, depth: int, objects: bool) -> None:
    value: Any = 0
    for _ in range(levels):
        value = {"a": value} if objects else [value]
    assert is_plain_json(value, depth) == (levels <= depth)


@given(anything)
def test_what_is_made_plain_is_plain(value: Any) -> None:
    try:
        plain = to_plain(value, "v")
    except InvalidComponent as error:
        plain = error.message
    assert is_plain_json(plain)


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (None, None),
        (True, True),
        ("a", "a"),
        (1, 1),
        (-1.5, -1.5),
        (math.nan, None),
        (Word.A, "a"),
        (Number.ONE, 1),
        (Kind.PAIR, [1, 2]),
        (OwnText("x"), "x"),
        (PandasMissing(), None),
        (OwnInt(3), 3),
        (Fraction(1, 2), 0.5),
        (Decimal("0.1"), 0.1),
        (Decimal("7"), 7),
        (Decimal("7.00"), 7),
        (Decimal("0.1234567890123456789"), "0.1234567890123456789"),
        (Decimal("1E+999999"), "1E+999999"),
        (Decimal("99999999999999999999"), "99999999999999999999"),
        (Decimal("NaN"), None),
        (date(2026, 11, 21), "2026-11-21"),
        (datetime(2026, 11, 21, 9, 30, tzinfo=UTC), "2026-11-21T09:30:00+00:00"),
        (time(9, 30), "09:30:00"),
        (timedelta(hours=1), "1:00:00"),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (Point(1, 2.5), [1, 2.5]),
        ((1, (2,)), [1, [2]]),
        (range(3), [0, 1, 2]),
        ({"b": 1, "a": (2,)}, {"b": 1, "a": [2]}),
        (OrderedDict(a=1), {"a": 1}),
        ({Word.A: 1}, {"a": 1}),
        ({"a": 1}.keys(), ["a"]),
    ],
)
def test_convenient_python_has_one_plain_form(value: Any, plain: Any) -> None:
    made = to_plain(value, "v")
    assert made == plain
    assert type(made) is type(plain)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (math.inf, "v: inf is not a JSON number"),
        (Decimal("-Infinity"), "v: -Infinity is not a JSON number"),
        (2**63, "v: integer beyond 64 bits; write it as a string"),
        (b"x", "v: bytes is not a JSON value"),
        ({1, 2}, "v: set is not a JSON value"),
        (object(), "v: object is not a JSON value"),
        ({1: 2}, "v: object key 1 is not a string"),
        ({"a": [0, b""]}, "v.a[1]: bytes is not a JSON value"),
    ],
)
def test_what_has_no_plain_form_is_refused_by_its_place(value: Any, message: str) -> None:
    with pytest.raises(InvalidComponent) as refused:
        to_plain(value, "v")
    assert refused.value.message == message


def test_a_list_in_itself_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(InvalidComponent, match="nested deeper than 50 levels"):
        to_plain(loop, "v")


def test_nothing_is_shared_with_what_was_given() -> None:
    rows = [[1]]
    plain = to_plain({"rows": rows}, "v")
    rows[0].append(2)
    assert plain == {"rows": [[1]]}


def test_a_component_becomes_the_object_of_the_wire() -> None:
    inner = Component("", "text", {"content": "x"})
    component = Component("m", "x-acme-map", {"at": (1, 2)}, 2, inner)
    assert component_to_plain(component, "c") == {
        "id": "m",
        "type": "x-acme-map",
        "props": {"at": [1, 2]},
        "version": 2,
        "fallback": {"id": "", "type": "text", "props": {"content": "x"}},
    }
    assert to_plain([inner], "c") == [{"id": "", "type": "text", "props": {"content": "x"}}]


def test_any_mapping_is_an_object() -> None:
    class Settings(Mapping[str, int]):
        def __getitem__(self, key: str) -> int:
            return 1

        def __iter__(self) -> Iterator[str]:
            return iter(("a",))

        def __len__(self) -> int:
            return 1

    assert to_plain(Settings(), "v") == {"a": 1}


class Odd(str):
    """A text that no encoder takes."""


def test_component_of_odd_texts_is_plain_and_what_is_none_is_refused() -> None:
    plain = component_to_plain(Component(Odd("i"), Odd("text"), {"content": Odd("x")}), "c")
    assert plain == {"id": "i", "type": "text", "props": {"content": "x"}}
    assert is_plain_json(plain)
    wrong: Any = 3
    with pytest.raises(InvalidComponent, match=r"c\.fallback: expected a component, got int"):
        component_to_plain(Component("", "text", {}, fallback=wrong), "c")
