"""Each kind of field takes what renderers send for it, and refuses the rest by its name."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arp.protocol.components import Field, Option
from arp.protocol.errors import InvalidAnswer
from arp.surface.form_fields import OfferedOptions, check_fields, said

FILE = {"id": "f1", "name": "a.pdf", "size": 3, "mime": "application/pdf", "sha256": "00"}


def field(kind: str = "text", **more: Any) -> Field:
    options = {"options": ["S", {"label": "Medium", "value": 2}]} if kind == "select" else {}
    return msgspec.convert({"name": "f", "field_type": kind, **options, **more}, Field)


def checked(value: Any, kind: str = "text", **more: Any) -> Any:
    return check_fields([field(kind, **more)], {"f": value})["f"]


def refused(value: Any, kind: str = "text", **more: Any) -> str:
    with pytest.raises(InvalidAnswer) as error:
        checked(value, kind, **more)
    return error.value.message


@pytest.mark.parametrize(
    ("kind", "value", "taken"),
    [
        ("text", "a", "a"),
        ("text", " ", " "),
        ("textarea", "a\nb", "a\nb"),
        ("password", "p", "p"),
        ("email", " ann@example.com ", "ann@example.com"),
        ("email", "a@b", "a@b"),
        ("number", 1, 1),
        ("number", -1.5, -1.5),
        ("number", " 12 ", 12),
        ("number", "+1.5e3", 1500.0),
        ("date", "2024-02-29", "2024-02-29"),
        ("date", " 2024-02-29\n", "2024-02-29"),
        ("checkbox", True, True),
        ("checkbox", False, False),
        ("checkbox", "on", True),
        ("checkbox", " No ", False),
        ("select", "S", "S"),
        ("select", 2, 2),
        ("select", 2.0, 2),
        ("select", "2", 2),
        ("select", "medium", 2),
        ("file", FILE, FILE),
        ("file", {**FILE, "path": "/etc/passwd"}, FILE),
    ],
)
def test_what_fits_is_taken_in_one_form(kind: str, value: Any, taken: Any) -> None:
    result = checked(value, kind)
    assert result == taken
    assert type(result) is type(taken)


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        ("text", 1, "fields.f: expected text, got number"),
        ("textarea", [], "fields.f: expected text, got array"),
        ("email", "ann", 'fields.f: expected an e-mail address, got "ann"'),
        ("email", "a@@b", 'fields.f: expected an e-mail address, got "a@@b"'),
        ("email", "a b@c", 'fields.f: expected an e-mail address, got "a b@c"'),
        ("email", "a@b." + "c" * 300, "fields.f: expected an e-mail address, got "),
        ("email", 1, "fields.f: expected text, got number"),
        ("number", "abc", 'fields.f: expected a number, got "abc"'),
        ("number", "1_000", 'fields.f: expected a number, got "1_000"'),
        ("number", "nan", 'fields.f: expected a number, got "nan"'),
        ("number", "9" * 65, "fields.f: expected a number, got "),
        ("number", "1e999", "fields.f: the number is too large"),
        ("number", "9" * 20, "fields.f: the number is too large"),
        ("number", True, "fields.f: expected a number, got boolean"),
        ("date", "2023-02-29", 'fields.f: expected a date as YYYY-MM-DD, got "2023-02-29"'),
        ("date", "20230228", "fields.f: expected a date as YYYY-MM-DD"),
        ("date", 20230228, "fields.f: expected a date as YYYY-MM-DD, got number"),
        ("checkbox", "perhaps", 'fields.f: expected true or false, got "perhaps"'),
        ("checkbox", 1, "fields.f: expected true or false, got number"),
        ("select", "L", 'fields.f: "L" is not offered; choose one of S, Medium'),
        ("select", True, "fields.f: boolean is not offered; choose one of S, Medium"),
        ("file", "a.pdf", "fields.f: expected object, got string"),
        ("file", {"id": "f1"}, "fields.f.name: missing"),
    ],
)
def test_what_does_not_fit_is_refused_by_its_name(kind: str, value: Any, message: str) -> None:
    assert refused(value, kind).startswith(message)


@pytest.mark.parametrize("nothing", [None, ""])
def test_nothing_is_none_or_unticked_unless_it_is_required(nothing: Any) -> None:
    assert checked(nothing) is None
    assert checked(nothing, "number") is None
    assert checked(nothing, "checkbox") is False
    assert check_fields([field()], {}) == {"f": None}
    assert refused(nothing, required=True) == "fields.f: missing; this field is required"
    with pytest.raises(InvalidAnswer, match=r"fields\.f: missing"):
        check_fields([field(required=True)], {})


def test_a_required_checkbox_must_be_ticked() -> None:
    assert checked("yes", "checkbox", required=True) is True
    assert refused(False, "checkbox", required=True) == "fields.f: must be ticked"


@pytest.mark.parametrize(
    ("kind", "rules", "fits", "fails", "message"),
    [
        ("number", {"min": 2}, 2, 1, "fields.f: 1 is below 2, the least allowed"),
        ("number", {"max": 2.5}, "2.5", 3, "fields.f: 3 is above 2.5, the most allowed"),
        (
            "date",
            {"min": "2026-01-01"},
            "2026-01-01",
            "2025-12-31",
            "fields.f: 2025-12-31 is below 2026-01-01, the least allowed",
        ),
        ("text", {"min_length": 2}, "ab", "a", "fields.f: needs at least 2 characters, has 1"),
        ("text", {"max_length": 2}, "ab", "abc", "fields.f: takes at most 2 characters, has 3"),
    ],
)
def test_validation_holds(
    kind: str, rules: dict[str, Any], fits: Any, fails: Any, message: str
) -> None:
    checked(fits, kind, validation=rules)
    assert refused(fails, kind, validation=rules) == message
    own = {**rules, "message": "Not like that"}
    assert refused(fails, kind, validation=own) == "fields.f: Not like that"


def test_a_password_is_never_repeated() -> None:
    rules = {"min_length": 9}
    assert "s3cret" not in refused("s3cret", "password", validation=rules)
    assert refused(["s3cret"], "password") == "fields.f: expected text, got array"


def test_a_field_that_there_is_not_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(InvalidAnswer) as error:
        check_fields([msgspec.convert({"name": "age"}, Field)], {"aeg": 1})
    assert error.value.message == 'fields.aeg: no such field; did you mean "age"?'
    assert error.value.detail == "fields.aeg"


def test_an_option_is_found_by_its_value_before_its_label() -> None:
    offered = OfferedOptions(["b", Option("a", "b"), Option("b", "c"), Option("x", 1.5)])
    assert offered.find("b") == "b"
    assert offered.find("A") == Option("a", "b")
    assert offered.find(1.5) == offered.find("1.5") == Option("x", 1.5)
    assert offered.find(2) is None
    assert offered.find(None) is None


def test_a_refused_value_is_cut() -> None:
    assert said("x" * 100) == f'"{"x" * 40}"'
    assert said({}) == "object"


@given(
    st.sampled_from(
        ["text", "textarea", "select", "checkbox", "number", "date", "email", "password", "file"]
    ),
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.lists(st.integers())
    | st.dictionaries(st.text(), st.integers()),
)
def test_any_value_is_taken_or_refused(kind: str, value: Any) -> None:
    try:
        once = checked(value, kind)
    except InvalidAnswer:
        return
    assert checked(once, kind) == once


@pytest.mark.parametrize(
    "value", [2**53, -(2**53), "9007199254740993", "9007199254740993.0", " -9007199254740992 "]
)
def test_number_of_which_digits_would_be_lost_is_refused(value: Any) -> None:
    """Where it came from, a double may have rounded it already."""
    with pytest.raises(InvalidAnswer, match=r"fields\.n: the number is too large to stay exact"):
        check_fields([Field("n", field_type="number")], {"n": value})


@pytest.mark.parametrize("value", [2**53 - 1, 6.022e23, "6.022e23", "9007199254740991", 1e300])
def test_number_that_is_exact_or_meant_to_be_rounded_is_taken(value: Any) -> None:
    taken = check_fields([Field("n", field_type="number")], {"n": value})
    assert taken == {"n": float(value) if "e" in str(value) else int(value)}
