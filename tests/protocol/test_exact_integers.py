"""No renderer rounds an integer: it goes out as text, or is refused where it counts."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arp.protocol.codec import ENCODINGS, Encoding, encode_json, encode_shown, read_plain, recode
from arp.protocol.components import Component
from arp.protocol.errors import InvalidComponent, InvalidPatch
from arp.protocol.exact_integers import (
    MAX_EXACT,
    exact_cell,
    exact_json,
    is_exact,
    is_large_integer,
    numbers_of,
    rounded_at,
)
from arp.protocol.messages import StateMessage
from arp.protocol.objects.messages import SurfaceCommitRequest
from arp.protocol.objects.wire import ObjectMessage, write
from arp.protocol.validate import check_appended, check_component, check_property

LARGE = 2**53 + 1
LARGEST = 2**63 - 1

PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), LARGEST)
    | st.sampled_from([MAX_EXACT, MAX_EXACT + 1, -MAX_EXACT, -MAX_EXACT - 1])
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text('0123456789"\\-.eE[]{}:, ä'),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def exact(value: Any) -> Any:
    """Return a value as it is to be sent, by the plain rule."""
    if type(value) is int:
        return value if abs(value) <= MAX_EXACT else str(value)
    if isinstance(value, list):
        return [exact(one) for one in value]
    return {name: exact(one) for name, one in value.items()} if isinstance(value, dict) else value


@given(PLAIN)
def test_only_large_integers_become_text_and_nothing_else_changes(value: Any) -> None:
    """W7, in every place of any JSON."""
    assert json.loads(exact_json(encode_json(value))) == exact(value)


@pytest.mark.parametrize(
    ("sent", "shown"),
    [
        (b"9007199254740991", b"9007199254740991"),
        (b"9007199254740992", b'"9007199254740992"'),
        (b"[-9007199254740993,1]", b'["-9007199254740993",1]'),
        (b'"9007199254740993"', b'"9007199254740993"'),
        (b'{"9007199254740993":0}', b'{"9007199254740993":0}'),
        (
            b'["\\"9007199254740993",9007199254740993]',
            b'["\\"9007199254740993","9007199254740993"]',
        ),
        (b"9007199254740993.0", b"9007199254740993.0"),
        (b"0.12345678901234567", b"0.12345678901234567"),
        (b"1234567890123456e3", b"1234567890123456e3"),
    ],
)
def test_what_is_sent(sent: bytes, shown: bytes) -> None:
    assert exact_json(sent) == shown


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_every_encoding_has_the_same_text(encoding: Encoding) -> None:
    message = StateMessage(session_id="s", state={"id": LARGEST})
    (read,) = read_plain(recode(encode_shown(message), encoding), encoding)
    assert read["state"] == {"id": str(LARGEST)}


def test_the_agent_side_sends_text_in_the_object_dialect_and_a_renderer_its_number() -> None:
    message = ObjectMessage(1, "commit", 1, SurfaceCommitRequest(usage={"tokens": LARGE}))
    assert f'{{"tokens":"{LARGE}"}}'.encode() in write(message, "json", is_shown=True)
    assert f'{{"tokens":{LARGE}}}'.encode() in write(message, "json")


def test_exact_values() -> None:
    assert [is_exact(one) for one in (MAX_EXACT, -MAX_EXACT, MAX_EXACT + 1, 1e300, "x", True)] == [
        *(True, True, False, True, True, True)
    ]
    assert [exact_cell(one) for one in (LARGE, -LARGE, 1, None)] == [
        str(LARGE),
        str(-LARGE),
        1,
        None,
    ]


def test_place_of_what_would_be_rounded() -> None:
    assert rounded_at({"a": [1, {"b": LARGE}]}, "x") == "x.a[1].b"
    assert rounded_at({"a": [1, 1e300, "9007199254740993", None]}, "x") is None
    assert rounded_at(LARGE, "x") == "x"


CHART = {"type": "bar", "labels": ["a"], "datasets": [{"data": [1]}]}


def form(**field: Any) -> Component:
    return Component("f", "form", {"fields": [{"name": "n", **field}]})


@pytest.mark.parametrize(
    ("component", "place"),
    [
        (Component("c", "chart", {**CHART, "labels": [LARGE]}), "c.props.labels[0]"),
        (
            Component("c", "chart", {**CHART, "datasets": [{"data": [-LARGE]}]}),
            "c.props.datasets[0].data[0]",
        ),
        (form(field_type="number", value=LARGE), "c.props.fields[0].value"),
        (
            form(field_type="number", validation={"max": LARGE}),
            "c.props.fields[0].validation.max",
        ),
    ],
)
def test_where_a_renderer_calculates_a_large_integer_is_refused(
    component: Component, place: str
) -> None:
    with pytest.raises(InvalidComponent) as refused:
        check_component(component, "c")
    assert str(refused.value).startswith(f"{place}: an integer beyond ±9007199254740991")
    assert "give it as a float" in str(refused.value)


def test_where_it_is_only_shown_it_is_taken() -> None:
    for component in (
        Component("t", "table", {"headers": ["id"], "rows": [[LARGE]]}),
        Component("k", "key-value", {"items": [{"key": "id", "value": LARGE}]}),
        Component("q", "choices", {"options": [{"label": "a", "value": LARGE}]}),
        Component("c", "chart", {**CHART, "datasets": [{"data": [float(LARGE)]}]}),
        form(field_type="select", options=[{"label": "a", "value": LARGE}], value=LARGE),
        form(field_type="number"),
    ):
        assert check_component(component) is component
    assert numbers_of("table", {"rows": [[LARGE]]}, "x") == []


def test_a_patch_of_a_chart_is_refused_too() -> None:
    path = ("datasets", 0, "data")
    with pytest.raises(InvalidPatch, match=r"ops\[0\]: an integer beyond"):
        check_property("chart", (*path, 0), LARGE, "ops[0]")
    with pytest.raises(InvalidPatch, match=r"ops\[0\]\[1\]: an integer beyond"):
        check_appended("chart", path, [1, LARGE], "ops[0]")
    assert check_property("chart", (*path, 0), 2, "ops[0]") == 2
    assert check_property("table", ("rows", 0, 0), LARGE, "ops[0]") == LARGE


def test_text_of_a_large_integer_still_counts_as_a_number() -> None:
    large = [str(LARGE), str(-LARGE), str(MAX_EXACT + 1), "1" * 5_000]
    assert all(map(is_large_integer, large))
    small: list[Any] = [str(MAX_EXACT), "1", "0" * 20, "1234567890123456.5", "", LARGE, None]
    assert not any(map(is_large_integer, small))
