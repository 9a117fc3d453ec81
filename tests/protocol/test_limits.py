"""The limits are those that the protocol names, and none can be set to nothing."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from arp.protocol.limits import Limits, RendererLimits


def test_limits_are_those_of_the_protocol() -> None:
    """protocol.md 4."""
    assert msgspec.to_builtins(Limits()) == {
        "max_surfaces": 10,
        "max_components_per_commit": 100,
        "max_pending_commits": 2,
        "max_patch_ops": 50,
        "max_component_depth": 3,
        "max_message_bytes": 1_048_576,
        "max_upload_bytes": 26_214_400,
    }


@pytest.mark.parametrize("name", Limits.__struct_fields__)
def test_no_limit_is_below_one(name: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({name: 0}, Limits)


def test_a_renderer_has_no_limits_unless_it_says_so() -> None:
    assert msgspec.json.encode(RendererLimits()) == b"{}"


@pytest.mark.parametrize(
    "wrong",
    [{"max_commits_per_s": 0}, {"max_message_bytes": 1023}, {"max_table_rows": 0}],
)
def test_a_limit_that_nothing_could_keep_to_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(wrong, RendererLimits)
