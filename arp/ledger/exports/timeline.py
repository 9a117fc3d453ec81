"""The timeline of a pack: a line for each thing that happened, one for each run of deltas."""

from __future__ import annotations

from typing import Final

import msgspec

from arp.ledger.exports.sections import ids_of
from arp.ledger.fact import Fact
from arp.ledger.models.reading import text
from arp.protocol.json_value import JsonObject

MANY: Final = frozenset(
    ("model.delta", "reasoning.delta", "tool.progress", "process.output", "process.input")
)
"""Types of which neighbours of one turn share a line."""

_SAID: Final = ("error", "reason", "message", "objective", "decision", "tool", "model", "hook")
"""What of a payload a line tells: the first of these that there is."""

_encoder = msgspec.json.Encoder()


class Timeline:
    """Lines of a timeline, from facts in order."""

    def __init__(self) -> None:
        self._open: JsonObject | None = None
        """A line to which the next fact may still be added."""

    def take(self, fact: Fact) -> bytes:
        """Return the lines that a fact completes; often none or one."""
        held = self._open
        if held is not None and fact.type in MANY and _goes_on(held, fact):
            held["throughSequence"] = fact.sequence
            held["count"] = held.get("count", 1) + 1
            return b""
        done, self._open = self.finish(), _entry(fact)
        return done

    def finish(self) -> bytes:
        """Return the last line."""
        held, self._open = self._open, None
        return b"" if held is None else _encoder.encode(held) + b"\n"


def _entry(fact: Fact) -> JsonObject:
    entry: JsonObject = {"sequence": fact.sequence, "timestamp": fact.timestamp, "type": fact.type}
    said = text(fact.payload, *_SAID)
    return {**entry, **ids_of(fact), **({"said": said} if said is not None else {})}


def _goes_on(held: JsonObject, fact: Fact) -> bool:
    return (held["type"], held.get("turnId"), held.get("toolCallId")) == (
        fact.type,
        fact.turn_id,
        fact.tool_call_id,
    )
