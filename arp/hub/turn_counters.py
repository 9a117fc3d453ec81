"""What a turn counts: the ids that it gave, and what it took."""

from __future__ import annotations

import msgspec

from arp.protocol.errors import ResourceLimit
from arp.protocol.json_value import Json, JsonObject
from arp.record.wording import plain

MAX_USAGE_BYTES = 4 << 10
"""As JSON; a few numbers and a name are a hundredth of it."""


class TurnCounters:
    """The counters of one turn."""

    __slots__ = ("_components", "_tools", "usage")

    def __init__(self) -> None:
        self.usage: JsonObject = {}
        """What was recorded so far; never changed in place."""
        self._components = 0
        self._tools = 0

    def next_component(self) -> int:
        """Return the number of the next component without a name; 1 is the first."""
        self._components += 1
        return self._components

    def next_tool(self) -> int:
        """Return the number of the next tool call; 1 is the first."""
        self._tools += 1
        return self._tools

    def add(self, used: JsonObject) -> None:
        """Add numbers to what is there; anything else takes its place.

        Raises:
            ResourceLimit: All of it would be more than `MAX_USAGE_BYTES`; nothing changed.
            TypeError, ValueError: It cannot be written as JSON; nothing changed.
        """
        used = plain(used)
        summed = plain(
            self.usage | {name: _sum(self.usage.get(name), one) for name, one in used.items()}
        )
        encoded = msgspec.json.encode(summed)
        if len(encoded) > MAX_USAGE_BYTES:
            raise ResourceLimit(f"usage: {len(encoded)} bytes; at most {MAX_USAGE_BYTES}")
        self.usage = summed


def _sum(before: Json, more: Json) -> Json:
    if _is_number(before) and _is_number(more):
        return before + more
    return more


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
