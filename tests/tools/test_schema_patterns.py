"""Patterns of schemas that are not trusted end soon, or are refused."""

from __future__ import annotations

import pytest
from jsonschema import Draft202012Validator
from jsonschema.validators import extend

from arp.tools.errors import InvalidToolMeta
from arp.tools.registry.schema_patterns import MAX_PATTERN_TEXT, check_patterns, try_pattern


@pytest.mark.parametrize(
    "pattern",
    [
        r"^(a|a)*$",
        r"(a+)+$",
        r"^(\w+\s?)*$",
        r"((a{1,9}){9,})",
        r"(.)\1",
        r"(?=(a+)+)b",
        r"(?:ab|cd)+",
    ],
)
def test_pattern_that_can_take_forever_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidToolMeta, match="input_schema: pattern"):
        check_patterns({"properties": {"x": {"pattern": pattern}}}, "input_schema")
    with pytest.raises(InvalidToolMeta, match="pattern"):
        check_patterns({"patternProperties": {pattern: {}}}, "input_schema")


@pytest.mark.parametrize("pattern", [r"^[a-z]+$", r"^(png|jpe?g)$", r"\d{4}-\d{2}", r"^\w+@\w+$"])
def test_usual_pattern_is_taken(pattern: str) -> None:
    check_patterns({"items": [{"pattern": pattern}]}, "input_schema")


def test_pattern_is_tried_on_texts_of_bounded_length_alone() -> None:
    kind = extend(Draft202012Validator, {"pattern": try_pattern})  # type: ignore[no-untyped-call]
    checker = kind({"pattern": "^a+$"})
    assert [error.message for error in checker.iter_errors("aab")] == [
        "'aab' does not match '^a+$'"
    ]
    assert not list(checker.iter_errors("a" * MAX_PATTERN_TEXT))
    assert not list(checker.iter_errors(7))
    (error,) = checker.iter_errors("a" * (MAX_PATTERN_TEXT + 1))
    assert error.message == f"it has more than {MAX_PATTERN_TEXT} characters, with a pattern"
