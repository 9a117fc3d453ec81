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
from arp.session.recording.recorded import RecordedFact

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


class TurnAttempts(dict[str, TurnAttempt]):
    """Runs and attempts of the turns that are not over, by turn."""

    def add_turn(self, turn_id: str, ids: Mapping[str, Any]) -> None:
        """Add a submitted turn, if it is for a run.

        Args:
            turn_id: The turn.
            ids: Correlation ids of its first fact, by field name.
        """
        named = _attempt_ids(ids)
        if named.keys() >= _RUN:
            self[turn_id] = TurnAttempt(named)

    def apply_attempt(
        self, type_name: str, turn_id: str | None, payload: JsonObject, ids: Mapping[str, Any]
    ) -> None:
        """Apply a fact of an attempt: its start joins it to its turn, its end removes it.

        Args:
            type_name: Type of the fact, `task.attempt.started`, `.completed` or `.failed`.
            turn_id: Turn of the fact; `None` if it has none.
            payload: Payload of the fact.
            ids: Other correlation ids of the fact, by field name.
        """
        named = _attempt_ids(ids)
        if not named.keys() >= _RUN:
            return
        run = named["task_id"], named["run_id"]
        for name, known in list(self.items()):
            if known.run != run:
                continue
            if type_name != "task.attempt.started":
                del self[name]
            elif name == turn_id:
                number = payload.get("attempt")
                self[name] = TurnAttempt(named, number if isinstance(number, int) else 1)

    def remove_turn(self, turn_id: str) -> None:
        """Remove a turn that is over. A turn that is shown as waiting is not over."""
        ended = self.pop(turn_id, None)
        if ended is None or not ended.number:
            return
        # The attempt passes to another turn for the same run. Otherwise nothing would end it.
        for name, known in self.items():
            if known.run == ended.run:
                self[name] = TurnAttempt(ended.ids, ended.number)
                break

    def end_facts(
        self, attempt: TurnAttempt | None, turn_id: str, thread_id: str, reason: str | None
    ) -> list[RecordedFact]:
        """Return the facts that end the attempt of a turn that is over.

        Args:
            attempt: The attempt; `None` if the turn is for no task or the attempt has ended.
            turn_id: The turn, which was removed.
            thread_id: Thread of the turn.
            reason: Reason of a failure; `None` completes the attempt.
        """
        if attempt is None or not attempt.number:
            return []
        # Another turn for the same run continues the attempt; that turn will end it.
        if any(known.run == attempt.run for known in self.values()):
            return []
        how = "completed" if reason is None else "failed"
        payload: JsonObject = {"attempt": attempt.number}
        if reason is not None:
            payload["reason"] = reason
        families = ["task.attempt"]
        if attempt.ids.keys() >= {"job_id", "job_item_id"}:
            families.append("job.item")
        ids = {**attempt.ids, "thread_id": thread_id, "turn_id": turn_id}
        return [RecordedFact(f"{family}.{how}", payload, {**ids}) for family in families]


def _attempt_ids(ids: Mapping[str, Any]) -> dict[str, str]:
    """Return the ids that all facts of one attempt share."""
    return {name: ids[name] for name in ATTEMPT_IDS if ids.get(name)}
