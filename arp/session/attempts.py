"""Attempts at tasks that turns were started for: each ends with its turn, if nobody ended it.

A turn is submitted for a run; the attempt is the turn's own if its first fact comes while the turn
is not over. While another turn is submitted for the same run, the attempt goes on with that one. An
attempt that had begun before the turn belongs to whoever began it.
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
"""Correlations that the facts of one attempt share, by field name."""

_RUN: Final = frozenset(("task_id", "run_id"))


class TurnAttempt(Struct, frozen=True, omit_defaults=True):
    """The run that a turn was submitted for."""

    ids: dict[str, str]
    number: int = 0
    """Of the attempt that began with the turn; 0: none did."""

    @property
    def run(self) -> tuple[str, str]:
        """Task and run."""
        return self.ids["task_id"], self.ids["run_id"]

    def end_facts(self, reason: str | None) -> list[tuple[str, JsonObject]]:
        """Return types and payloads of the facts that end the attempt.

        Args:
            reason: Why it failed; `None` completes it.
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
    """The runs of turns that are not over, by turn."""

    def follow(
        self, type_name: str, turn_id: str | None, payload: JsonObject, ids: Mapping[str, Any]
    ) -> None:
        """Take over what a fact says of the run of a turn.

        Args:
            type_name: Of the fact; most types say nothing of a run.
            turn_id: Of the fact; `None`: it names none.
            payload: Of the fact.
            ids: Its other correlation ids, by field name.
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
            for name, known in self.items():
                if ended.number and known.run == ended.run:  # the attempt goes on with that turn
                    self[name] = TurnAttempt(ended.ids, ended.number)
                    break

    def goes_on(self, attempt: TurnAttempt) -> bool:
        """Return whether another turn is for the same run."""
        return any(known.run == attempt.run for known in self.values())

    def _follow_attempt(
        self, type_name: str, turn_id: str | None, payload: JsonObject, ids: dict[str, str]
    ) -> None:
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
    """Return whether a turn is over with a fact; one that waits for an answer is not."""
    if type_name in ("turn.completed", "turn.failed"):
        return payload.get("status") != "waiting"
    return type_name == "action.resolved" and "ends" in payload
