"""What can be set about a hub is refused where it is written, not when it first matters."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest

from arp.live.settings import HubSettings


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"policy": "drop"}, "HubSettings.policy: 'drop' is not one of queue, reject, interrupt"),
        ({"policy": None}, "HubSettings.policy: "),
        ({"idle_s": 0}, "HubSettings.idle_s: expected a number above 0"),
        ({"idle_s": "5"}, "HubSettings.idle_s: expected number, got string"),
        ({"max_sessions": 0}, "HubSettings.max_sessions: expected a number from 1"),
        ({"max_sessions": 1.5}, "HubSettings.max_sessions: expected whole number, got fraction"),
        ({"high_water_bytes": 10}, "HubSettings.high_water_bytes: expected a number from 1024"),
        ({"max_replay": -1}, "HubSettings.max_replay: expected a number from 0"),
        ({"limits": {}}, "HubSettings.limits: expected Limits(…), got a dict"),
    ],
)
def test_a_value_that_no_hub_could_follow_is_refused_by_name(
    given: dict[str, Any], says: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(says)):
        HubSettings(**given)
    with pytest.raises(ValueError, match=re.escape(says)):
        msgspec.structs.replace(HubSettings(), **given)


def test_whole_numbers_do_for_seconds() -> None:
    assert HubSettings(idle_s=5, policy="interrupt").idle_s == 5
