"""Python objects as authors hand them over: what frameworks make, and what nobody should."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import math
import pathlib
import types
import uuid
from collections.abc import Callable, Iterator
from typing import Any, Final
from unittest.mock import NonCallableMagicMock

import msgspec
from hypothesis import strategies as st

from arp import Component, ui


class Rude(Exception):
    """What the methods of `Refusing` raise."""


class Odd(str):
    """As the message text of LangChain."""

    def __str__(self) -> str:
        return "not what it holds"

    def isascii(self) -> bool:
        return True


class OddWhole(int):
    pass


class OddFraction(float):
    pass


class OddBytes(bytes):
    pass


class OddDict(dict[Any, Any]):
    pass


class OddList(list[Any]):
    pass


class Colour(enum.StrEnum):
    RED = "red"


class Size(enum.IntEnum):
    LARGE = 3


class Plain(enum.Enum):
    ONE = object()


class Pair(collections.namedtuple("Pair", "a b")):
    pass


class Row(msgspec.Struct):
    a: Any = 1


@dataclasses.dataclass
class Record:
    a: Any = 1


class Refusing:
    """Raises wherever somebody looks."""

    def _refuse(self, *_: object) -> Any:
        raise Rude

    __repr__ = __str__ = __eq__ = __hash__ = __bool__ = __len__ = __iter__ = _refuse
    __int__ = __index__ = __float__ = __fspath__ = __getitem__ = __contains__ = _refuse


class Lying:
    """Says that it is a text."""

    @property
    def __class__(self) -> Any:
        return str

    @__class__.setter
    def __class__(self, _: Any) -> None:
        raise Rude


def loop_of_lists() -> list[Any]:
    made: list[Any] = [1]
    made.append(made)
    return made


def loop_of_dicts() -> dict[str, Any]:
    made: dict[str, Any] = {"a": 1}
    made["b"] = made
    return made


def deep(levels: int = 3_000) -> Any:
    made: Any = 0
    for _ in range(levels):
        made = [made]
    return made


def counted() -> Iterator[int]:
    yield from (1, 2)


EXACT: Final[list[tuple[Callable[[], Any], Any]]] = [
    (lambda: Odd("x"), "x"),
    (lambda: Odd("é"), "é"),
    (lambda: Odd("stdout"), "stdout"),
    (lambda: Colour.RED, "red"),
    (lambda: OddWhole(3), 3),
    (lambda: Size.LARGE, 3),
    (lambda: OddFraction(0.5), 0.5),
    (lambda: OddDict(a=Odd("b")), {"a": "b"}),
    (lambda: {Odd("a"): OddWhole(1)}, {"a": 1}),
    (lambda: OddList([Odd("x")]), ["x"]),
    (lambda: collections.OrderedDict(a=1), {"a": 1}),
]
"""What counts as what it holds, and what that is."""

OTHERS: Final[list[Callable[[], Any]]] = [
    lambda: None,
    lambda: True,
    lambda: -1,
    lambda: 2**63,
    lambda: 2**64,
    lambda: -(2**200),
    lambda: 1.5,
    lambda: math.nan,
    lambda: -math.inf,
    lambda: 3j,
    lambda: decimal.Decimal("1.5"),
    lambda: decimal.Decimal("NaN"),
    lambda: fractions.Fraction(1, 3),
    lambda: "",
    lambda: "x" * 20_000,
    lambda: "\0",
    lambda: "\ud800",
    lambda: Odd("\udfff"),
    lambda: "a\u2028b\n",
    lambda: {"\ud800": "\ud800"},
    lambda: b"x",
    lambda: OddBytes(b"\xff"),
    lambda: bytearray(b"x"),
    lambda: memoryview(b"x"),
    lambda: [],
    lambda: (),
    lambda: {},
    lambda: {1, 2},
    lambda: frozenset(("a",)),
    lambda: {None: 1},
    lambda: {(1,): 1},
    lambda: {1: "a", "1": "b"},
    lambda: {OddWhole(1): 1},
    lambda: {True: 1},
    lambda: range(3),
    counted,
    lambda: {"a": 1}.items(),
    lambda: collections.UserString("x"),
    lambda: collections.UserDict(a=1),
    lambda: collections.deque([1]),
    lambda: types.MappingProxyType({"a": 1}),
    lambda: types.SimpleNamespace(a=1),
    lambda: Pair(1, Odd("x")),
    lambda: Plain.ONE,
    lambda: datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC),
    lambda: datetime.date(2026, 1, 2),
    lambda: datetime.timedelta(days=1),
    lambda: uuid.UUID(int=1),
    lambda: pathlib.PurePosixPath("/tmp/x"),
    lambda: Row(Odd("x")),
    lambda: Record(object()),
    lambda: Record(Odd("x")),
    lambda: msgspec.UNSET,
    lambda: msgspec.Raw(b'{"text":}'),
    lambda: msgspec.Raw(b'{"a":1}'),
    object,
    lambda: object,
    lambda: len,
    lambda: lambda: 1,
    lambda: math,
    lambda: ...,
    lambda: ValueError("x"),
    Refusing,
    Lying,
    lambda: NonCallableMagicMock(spec=str),
    lambda: NonCallableMagicMock(),
    loop_of_lists,
    loop_of_dicts,
    deep,
    lambda: ui.text("x"),
    lambda: Component("", "nothing", {}),
    lambda: Component(Odd("i"), Odd("text"), OddDict(content=Odd("x"))),
    lambda: Component(3, None, object()),  # type: ignore[arg-type]  # the mistake
    lambda: Component("", "group", {"children": 3}),
    lambda: Component("", "tabs", {"tabs": [3, {"component": {}}]}),
    lambda: Component("", "split", {}),
    lambda: Component("", "text", {"content": "x"}, fallback=3),  # type: ignore[arg-type]  # the same
    lambda: ui.step("a", "done"),
]
"""What else there is: shown rightly, or refused."""

ODD: Final = [*(make for make, _ in EXACT), *OTHERS]

odd = st.recursive(
    st.sampled_from(ODD),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda made: lambda: [make() for make in made])
        | st.dictionaries(st.sampled_from(["a", Odd("b"), 3]), inner, max_size=2).map(
            lambda made: lambda: {name: make() for name, make in made.items()}
        )
    ),
    max_leaves=4,
)
"""Makers of odd objects, and of lists and dicts of them."""
