"""Values of an agent become plain JSON of exact types, or are refused."""

from __future__ import annotations

import enum
import fractions
import math
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from arp.protocol.json_value import is_plain_json
from arp.record.wording import plain


class Text(str):
    """As frameworks give it; what its methods say is not what it holds."""

    def __str__(self) -> str:
        return "something else"

    def isascii(self) -> bool:
        return True


class Colour(enum.StrEnum):
    RED = "red"


class Whole(int):
    pass


class Fraction(float):
    pass


class Table(dict[str, Any]):
    pass


@pytest.mark.parametrize(
    ("given", "made"),
    [
        (
            {Text("k"): [Text("v"), Whole(3), Fraction(1.5), True, None]},
            {"k": ["v", 3, 1.5, True, None]},
        ),
        (Table(a=(Colour.RED,)), {"a": ["red"]}),
        ({3: Decimal("1.5")}, {"3": "1.5"}),
        ({Whole(3): 1}, {"3": 1}),
        ({"\ud800": {"a": "\ud800"}}, {"\ufffd": {"a": "\ufffd"}}),
        ([math.nan, math.inf], [None, None]),
        (fractions.Fraction(1, 2), 0.5),
    ],
)
def test_a_value_becomes_plain_json_of_exact_types(given: Any, made: Any) -> None:
    copied = plain(given)
    assert copied == made
    assert is_plain_json(copied)


def holds_itself() -> list[Any]:
    inner: list[Any] = []
    inner.append(inner)
    return inner


def nested(levels: int) -> Any:
    return [nested(levels - 1)] if levels else 0


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (object(), "object is not a JSON value"),
        (3j, "complex is not a JSON value"),
        ({None: 1}, "NoneType is not a JSON value"),
        ({(1,): 1}, "tuple is not a JSON value"),
        (2**63, "integer beyond 64 bits"),
        (holds_itself(), "nested too deep"),
        (nested(60), "nested deeper than 50"),
        (msgspec.Raw(b'{"text":}'), "malformed"),
    ],
)
def test_what_has_no_json_is_refused(given: Any, says: str) -> None:
    with pytest.raises((TypeError, ValueError), match=says):
        plain(given)
