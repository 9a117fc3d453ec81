"""What may happen now: the life of a turn, and the queue that turns wait in.

Theory of operation. Rule 1: whatever decides what may happen to a turn stands in this file, in the
manner of `h11/_state.py`. Rule 2: the events are facts. A session that records a fact and one that
reads it from the log walk the same tables (`TurnQueue.follow`), so that both stand alike behind it.

A turn:

    OUT ──submitted──► QUEUED ──started──► RUNNING ◄──resolved── WAITING
     ▲                    │                   │  └────required──────►│
     └────────────────────┴─ completed, failed┴───────────────────────┘

A turn is `OUT` before its first fact and when it is over. How it ended (completed, failed or
cancelled) stands on the screen. One that was cut off while a question of it was open is over too,
and nothing waits behind it: it ends by `turn.failed`, as interrupted, but reads as waiting until
the `action.resolved` of its last question says how it reads from then on. A newer version of a
turn, by an edit or because somebody asked again, is a turn of its own: the older one is over, and
`branches` says which of them shows.

The queue of a session is in one of four states:

    IDLE    nothing runs, nothing is queued
    READY   nothing runs, and the first queued turn may start; only while something else happens
    BUSY    one turn runs, the others are queued in the order in which they came
    PAUSED  nothing runs: an agent failed, and the queue stays until somebody resumes it

`TURN_EVENTS` and `QUEUE_STEPS` say what is possible in which state. What a renderer sends is
checked against them before anything is recorded; what is recorded against them is our own mistake,
and raises `IllegalTransition`.
"""

from __future__ import annotations

from enum import StrEnum, auto
from typing import Literal, TypeAlias

from arp.protocol.errors import LocalError
from arp.protocol.json_value import JsonObject

Policy: TypeAlias = Literal["queue", "reject", "interrupt"]
"""What becomes of an input while a turn runs: it is queued; it is refused with BUSY; or it is
queued and the running turn is cancelled."""


class TurnPhase(StrEnum):
    """How far a turn is."""

    OUT = auto()
    QUEUED = auto()
    RUNNING = auto()
    WAITING = auto()


class QueueState(StrEnum):
    """What the turns of a session do, taken together."""

    IDLE = auto()
    READY = auto()
    BUSY = auto()
    PAUSED = auto()


OUT, QUEUED, RUNNING, WAITING = TurnPhase
IDLE, READY, BUSY, PAUSED = QueueState

_ENDS = {"turn.completed": OUT, "turn.failed": OUT}
_ASKS = {"action.required": WAITING, "action.resolved": RUNNING}

TURN_EVENTS: dict[TurnPhase, dict[str, TurnPhase]] = {
    OUT: {
        "turn.submitted": QUEUED,
        # A question that a crash left open is answered or expires when its turn is over.
        "action.resolved": OUT,
    },
    QUEUED: {
        "queue.changed": QUEUED,  # with another input
        "turn.started": RUNNING,
        "turn.failed": OUT,
    },
    RUNNING: {**_ASKS, **_ENDS},
    WAITING: {**_ASKS, **_ENDS},
}
"""State → fact of the turn that may follow → state behind it."""

Step: TypeAlias = Literal["start", "pause", "edit", "switch", "recover"]
"""Start the first queued turn; pause the queue; begin another version of an earlier turn; show
another version with the turns behind it; mend or go on with what a crash left."""

QUEUE_STEPS: dict[QueueState, frozenset[Step]] = {
    IDLE: frozenset(("edit", "switch")),
    READY: frozenset(("start", "pause", "recover")),
    BUSY: frozenset(("recover",)),
    # Queued turns go along to another version; but one that is shown has its own turns behind it.
    PAUSED: frozenset(("edit",)),
}
"""State → what is possible besides new turns and their ends."""


class IllegalTransition(LocalError):
    """A fact was recorded that its turn cannot have now."""


class TurnQueue:
    """The turns of one session that are not over."""

    __slots__ = ("_is_waiting", "is_active", "is_paused", "queue", "running", "state")

    def __init__(self) -> None:
        self.running: str | None = None
        self.queue: list[str] = []
        """In the order in which they will run."""
        self.is_paused = False
        """An agent failed, and nobody has resumed the queue since."""
        self.state = QueueState.IDLE
        """What they do, taken together."""
        self.is_active = False
        """A crash now would leave something to mend: a turn runs, or is about to."""
        self._is_waiting = False

    def may(self, step: Step) -> bool:
        """Return whether something is possible now."""
        return step in QUEUE_STEPS[self.state]

    def state_of(self, turn_id: str) -> TurnPhase:
        """Return how far a turn is."""
        if turn_id == self.running:
            return WAITING if self._is_waiting else RUNNING
        return QUEUED if turn_id in self.queue else OUT

    def set(self, running: str | None, queue: list[str], is_paused: bool, is_waiting: bool) -> None:
        """Continue where stored turns stood."""
        self.running, self.queue = running, queue
        self.is_paused, self._is_waiting = is_paused, is_waiting
        self._update()

    def resume(self) -> None:
        """Let the first queued turn start though an agent failed."""
        if self.is_paused:
            self.is_paused = False
            self._update()

    def follow(self, type_name: str, turn_id: str | None, payload: JsonObject) -> None:
        """Take over what a fact changes.

        Args:
            type_name: Of the fact; one that `TURN_EVENTS` has.
            turn_id: Of the fact. `None`: of a `queue.changed` that is about the queue alone.
            payload: Of the fact.

        Raises:
            IllegalTransition: Its turn cannot have it now; nothing has changed.
        """
        if turn_id is not None:
            before = self.state_of(turn_id)
            after = TURN_EVENTS[before].get(type_name)
            begins_second = after is RUNNING and self.running not in (None, turn_id)
            if after is None or begins_second:
                raise IllegalTransition(
                    f"{type_name} of turn {turn_id!r:.80}, which is {before.name}; "
                    f"the queue is {self.state.name}"
                )
            if after is not before:
                self._move(turn_id, before, after)
        if type_name == "queue.changed":
            self.queue = list(payload["queued"])
            self.is_paused = bool(payload.get("paused", False))
        self._update()

    def _move(self, turn_id: str, before: TurnPhase, after: TurnPhase) -> None:
        if before is QUEUED:
            self.queue.remove(turn_id)
        if after is QUEUED:
            self.queue.append(turn_id)
        elif after is not OUT:
            self.is_paused = self.is_paused and before is not QUEUED
            self.running, self._is_waiting = turn_id, after is WAITING
        elif turn_id == self.running:
            self.running, self._is_waiting = None, False

    def _update(self) -> None:
        if self.running is not None:
            self.state = BUSY
        elif not self.queue:
            self.state = IDLE
        else:
            self.state = PAUSED if self.is_paused else READY
        self.is_active = self.may("recover")
