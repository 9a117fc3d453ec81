"""What no server could follow is refused where it is written."""

from __future__ import annotations

import re
from typing import Any

import pytest

from arp import Bounds


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"header_s": 0}, "Bounds.header_s: expected a number above 0"),
        ({"body_s": "30"}, "Bounds.body_s: expected number, got string"),
        ({"max_uploads": 0}, "Bounds.max_uploads: expected a number from 1"),
        ({"max_header_bytes": 10}, "Bounds.max_header_bytes: expected a number from 4096"),
        ({"spare_descriptors": -1}, "Bounds.spare_descriptors: expected a number from 0"),
    ],
)
def test_bound_that_holds_for_nobody_is_refused_by_its_name(
    wrong: dict[str, Any], said: str
) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(said)}$"):
        Bounds(**wrong)
