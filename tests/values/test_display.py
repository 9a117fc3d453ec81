"""What any value shows as."""

from __future__ import annotations

import dataclasses
from typing import Any

import pandas as pd
import pytest
from PIL import Image

from arp import Component, ui
from arp.protocol.errors import InvalidComponent
from arp.values.display import as_component, components_of, display_of


@dataclasses.dataclass
class Point:
    x: int
    y: int


class Own:
    def __arp__(self) -> Component:
        return ui.text("own")


class Chart:
    """Of a library that has no way of its own."""


class Better(Chart):
    pass


def kinds(value: Any) -> list[str]:
    return [one.type for one in components_of(value, "turn.show")]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("hi", ["text"]),
        (ui.text("hi"), ["text"]),
        ([ui.text("a"), "b", Own()], ["text", "text", "text"]),
        ({"type": "text", "props": {"content": "x"}}, ["text"]),
        ({"name": "x"}, ["key-value"]),
        (Point(1, 2), ["key-value"]),
        ([Point(1, 2), Point(3, 4)], ["table"]),
        ([{"a": 1}], ["table"]),
        (pd.DataFrame({"a": [1]}), ["table"]),
        ([pd.DataFrame({"a": [1]}), "and", Point(1, 2)], ["table", "text", "key-value"]),
        (Image.new("RGB", (2, 2)), ["image"]),
        (Own(), ["text"]),
        ([], []),
        ((one for one in ("a", "b")), ["text", "text"]),
    ],
)
def test_each_kind_of_value(value: Any, expected: list[str]) -> None:
    assert kinds(value) == expected


def test_object_shows_names_with_values() -> None:
    made = as_component(Point(1, 2), "turn.show")
    assert made.props == {"items": [{"key": "x", "value": 1}, {"key": "y", "value": 2}]}


def test_large_frame_says_that_it_is_cut() -> None:
    made = as_component(pd.DataFrame({"a": range(2_000)}), "turn.show")
    assert made.props["title"] == "First 1,000 of 2,000 rows"


def test_registered_converter_counts_for_subclasses_and_by_name() -> None:
    with pytest.raises(InvalidComponent, match="expected a component, got Chart"):
        as_component(Chart(), "turn.show")

    @ui.converter(f"{__name__}.Chart")
    def named(chart: Chart) -> Component:
        return ui.text("by name")

    assert as_component(Chart(), "turn.show").props["content"] == "by name"

    @ui.converter(Chart)
    def typed(chart: Chart) -> Component:
        return ui.text(type(chart).__name__)

    assert as_component(Better(), "turn.show").props["content"] == "Better"
    assert kinds([Better(), "x"]) == ["text", "text"]
    with pytest.raises(TypeError, match=r"ui\.converter: expected a type or its full name, got 3"):
        ui.converter(3)  # type: ignore[arg-type] # the mistake


def test_a_converter_that_returns_no_component_is_reported() -> None:
    class Odd:
        pass

    ui.converter(Odd)(lambda odd: 3)
    with pytest.raises(InvalidComponent, match="the converter of Odd returned int"):
        as_component(Odd(), "turn.show")


@pytest.mark.parametrize(
    "value", [None, 3, 1.5, True, b"x", object(), int, [[1]], {"type": "text"}]
)
def test_what_is_nothing_to_show_is_refused(value: Any) -> None:
    with pytest.raises(InvalidComponent, match=r"turn\.show: expected a component, got "):
        list(components_of(value, "turn.show"))


def test_text_and_numbers_of_tools_are_no_component() -> None:
    assert [display_of(one) for one in ("x", 3, None, [1])] == [None] * 4
