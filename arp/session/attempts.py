"""Attempts at tasks: an attempt that began during a turn ends with that turn.

Theory of operation. A turn may be submitted for a run of a task. If an attempt of that run starts
while the turn is not over, the attempt belongs to the turn, and the end of the turn ends it unless
another fact has done so. If another turn is submitted for the same run, the attempt passes to that
turn instead. An attempt that started before the turn is not touched: its own creator ends it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from arp.protocol.json_value import JsonObject

ATTEMPT_FACTS: Final = frozenset(
    ("task.attempt.started", "task.attempt.completed", "task.attempt.failed")
)

ATTEMPT_IDS: Final = (
    "task_id",
    "run_id",
    "job_id",
    "job_item_id",
    "parent_task_id",
    "root_task_id",
)
"""Fields of the correlation ids that all facts of one attempt share."""

_RUN: Final = frozenset(("task_id", "run_id"))


class TurnAttempt(Struct, frozen=True, omit_defaults=True):
    """The run that a turn was submitted for, and the attempt of the turn."""

    ids: dict[str, str]
    number: int = 0
    """Number of the attempt that started during the turn; 0 if none did."""

    @property
    def run(self) -> tuple[str, str]:
        """Ids of task and run."""
        return self.ids["task_id"], self.ids["run_id"]

    def end_facts(self, reason: str | None) -> list[tuple[str, JsonObject]]:
        """Return types and payloads of the facts that end the attempt.

        Args:
            reason: Reason of a failure; `None` completes the attempt.
        """
        if not self.number:
            return []
        how = "completed" if reason is None else "failed"
        payload: JsonObject = {"attempt": self.number}
        if reason is not None:
            payload["reason"] = reason
        families = ["task.attempt"]
        if self.ids.keys() >= {"job_id", "job_item_id"}:
            families.append("job.item")
        return [(f"{family}.{how}", payload) for family in families]


class TurnAttempts(dict[str, TurnAttempt]):
    """Runs and attempts of the turns that are not over, by turn."""

    def follow(
        self, type_name: str, turn_id: str | None, payload: JsonObject, ids: Mapping[str, Any]
    ) -> None:
        """Apply a fact; most facts are not about a run.

        Args:
            type_name: Type of the fact.
            turn_id: Turn of the fact; `None` if it has none.
            payload: Payload of the fact.
            ids: Other correlation ids of the fact, by field name.
        """
        if type_name in ATTEMPT_FACTS or type_name == "turn.submitted":
            named = {name: ids[name] for name in ATTEMPT_IDS if ids.get(name)}
            if turn_id is not None and type_name == "turn.submitted":
                if named.keys() >= _RUN:
                    self[turn_id] = TurnAttempt(named)
            elif named.keys() >= _RUN:
                self._follow_attempt(type_name, turn_id, payload, named)
        elif turn_id is not None and turn_id in self and _ends_a_turn(type_name, payload):
            ended = self.pop(turn_id)
            # The attempt passes to another turn for the same run. Otherwise nothing would end it.
            for name, known in self.items():
                if ended.number and known.run == ended.run:
                    self[name] = TurnAttempt(ended.ids, ended.number)
                    break

    def goes_on(self, attempt: TurnAttempt) -> bool:
        """Return whether another turn for the same run continues the attempt."""
        return any(known.run == attempt.run for known in self.values())

    def _follow_attempt(
        self, type_name: str, turn_id: str | None, payload: JsonObject, ids: dict[str, str]
    ) -> None:
        """Apply a fact of an attempt: its start joins it to its turn, its end removes it."""
        run = ids["task_id"], ids["run_id"]
        for name, known in list(self.items()):
            if known.run != run:
                continue
            if type_name != "task.attempt.started":
                del self[name]
            elif name == turn_id:
                number = payload.get("attempt")
                self[name] = TurnAttempt(ids, number if isinstance(number, int) else 1)


def _ends_a_turn(type_name: str, payload: JsonObject) -> bool:
    """Return whether a fact ends a turn; a turn that is shown as waiting has not ended."""
    if type_name in ("turn.completed", "turn.failed"):
        return payload.get("status") != "waiting"
    return type_name == "action.resolved" and "ends" in payload
