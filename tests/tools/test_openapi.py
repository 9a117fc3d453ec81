"""What the OpenAPI document says holds: schemathesis asks the server whatever it likes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings

from tests.tools.serving_routes import ToolHouse, tool_house

IS_SOAK = settings().max_examples > 100
CASES = 1_000 if IS_SOAK else 10
"""Requests for each operation; other ones each time in `make soak`."""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ToolHouse]:
    with tool_house(tmp_path_factory.mktemp("data")) as made:
        yield made


@pytest.mark.hypothesis
def test_every_answer_is_as_the_document_says(served: ToolHouse) -> None:
    """Status, content type, headers and schema of each answer; no server error."""
    schema = schemathesis.openapi.from_url(f"{served.url}/openapi.json")
    seen = []
    for result in schema.get_all_operations():
        operation: Any = result.ok()  # type: ignore[union-attr]  # an error of ours raises here

        @settings(
            max_examples=CASES,
            deadline=None,
            derandomize=not IS_SOAK,
            database=None,
            phases=[Phase.explicit, Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy())
        def check(case: Any) -> None:
            case.call_and_validate()

        check()
        seen.append(operation.label)
    assert len(seen) == 11
