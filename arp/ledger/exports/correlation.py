"""The correlation spine of an export: the seven ids by which it can be joined to anything else."""

from __future__ import annotations

from typing import Final

from arp.ledger.exports.sections import NOT_KNOWN
from arp.ledger.fact import Fact
from arp.ledger.payload_fields import Export
from arp.protocol.json_value import JsonObject

SPINE: Final = {
    "runtimeId": "runtime_id",
    "sessionId": "session_id",
    "threadId": "thread_id",
    "turnId": "turn_id",
    "taskId": "task_id",
    "runId": "run_id",
    "traceId": "trace_id",
}
"""The profile's spelling → the field of a fact (ledger.md 5)."""

MOST_IDS: Final = 1000
"""Of one kind that are listed."""


class CorrelationIds:
    """Gathers the ids of the facts that are exported."""

    def __init__(self) -> None:
        self._seen: dict[str, dict[str, None]] = {name: {} for name in SPINE}
        self._not_known: set[str] = set()
        self._newest_runtime = ""

    def take(self, fact: Fact) -> None:
        """Take a fact."""
        self._newest_runtime = fact.runtime_id
        for written, name in SPINE.items():
            value: str | None = getattr(fact, name)
            if value is None:
                continue
            if value in NOT_KNOWN:
                self._not_known.add(written)
            elif len(self._seen[written]) < MOST_IDS:
                self._seen[written][value] = None

    def document(self) -> JsonObject:
        """Return each id that there is: `turnId` if there is one, `turnIds` if there are several.

        Of several runtimes that wrote a session the newest is `runtimeId` besides: it has the
        session now, and the profile wants one.
        """
        spine: JsonObject = {}
        for name, seen in self._seen.items():
            if len(seen) == 1:
                spine[name] = next(iter(seen))
            elif seen:
                spine[f"{name}s"] = list(seen)
                if name == "runtimeId":
                    spine[name] = self._newest_runtime
        return spine

    def states(self) -> dict[str, Export]:
        """Return of each of the seven whether it is told, does not apply, or is not known."""
        return {name: self._state(name) for name in SPINE}

    def _state(self, name: str) -> Export:
        if self._seen[name]:
            return "exported"
        return "missing_correlation" if name in self._not_known else "not_applicable"
