"""State machines of a turn and of the queue of turns.

Theory of operation. The tables in this file define every legal transition. The events are facts:
`TurnQueue.follow` applies a fact when it is recorded and again when it is replayed from the log, so
both end in the same state.

A turn:

    OUT ──submitted──► QUEUED ──started──► RUNNING ◄──resolved── WAITING
     ▲                    │                   │  └────required──────►│
     └────────────────────┴─ completed, failed┴───────────────────────┘

A turn is `OUT` before its first fact and after its end. The screen shows how it ended (completed,
failed or cancelled). If a crash ended a turn with an open question, the turn is `OUT` as well: it
ended by `turn.failed` with the reason `interrupted`, and the queue does not wait for it. It is
shown as waiting until the `action.resolved` of its last question gives its final status. A new
version of a turn (an edit, or a repeated request) is a turn of its own. The older version is over,
and `tracking/branches` decides which of them is shown.

The queue of a session is in one of four states:

    IDLE    no turn runs, none is queued
    READY   no turn runs, and the first queued turn may start; never lasts beyond one step
    BUSY    one turn runs, the others are queued in the order of their arrival
    PAUSED  no turn runs: an agent failed, and the queue waits until a user resumes it

`TURN_EVENTS` and `QUEUE_STEPS` define what is possible in each state. Input from a renderer is
checked against them before anything is recorded. A fact that violates them raises
`IllegalTransition`: a bug in this package if the fact is being recorded, an unreadable log if it is
being replayed.
"""

from __future__ import annotations

from enum import StrEnum, auto
from typing import Literal, TypeAlias

from arp.protocol.errors import LocalError
from arp.protocol.json_value import JsonObject

Policy: TypeAlias = Literal["queue", "reject", "interrupt"]
"""Treatment of an input while a turn runs: `queue` queues it, `reject` refuses it with BUSY, and
`interrupt` queues it and cancels the running turn."""


class TurnPhase(StrEnum):
    """State of a turn in this machine; the status that is shown may differ."""

    OUT = auto()
    QUEUED = auto()
    RUNNING = auto()
    WAITING = auto()


class QueueState(StrEnum):
    """State of the queue of a session."""

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
        # A crash ends a turn but not its questions: they are answered or expire afterwards.
        "action.resolved": OUT,
    },
    QUEUED: {
        "queue.changed": QUEUED,  # the input of the queued turn was edited
        "turn.started": RUNNING,
        "turn.failed": OUT,
    },
    RUNNING: {**_ASKS, **_ENDS},
    WAITING: {**_ASKS, **_ENDS},
}
"""State → legal fact of the turn → next state."""

Step: TypeAlias = Literal["start", "pause", "edit", "switch", "recover"]
"""Steps of a session. `start`: the first queued turn starts. `pause`: the queue is paused. `edit`:
a new version of an earlier turn begins. `switch`: an existing version is shown, with the turns
after it. `recover`: the session is recovered after a crash."""

QUEUE_STEPS: dict[QueueState, frozenset[Step]] = {
    IDLE: frozenset(("edit", "switch")),
    READY: frozenset(("start", "pause", "recover")),
    BUSY: frozenset(("recover",)),
    # An edit moves the queued turns behind the new version. A switch shows a version that already
    # has turns after it, so there is no position for the queued turns.
    PAUSED: frozenset(("edit",)),
}
"""State → legal steps, besides new turns and ends of turns."""


class IllegalTransition(LocalError):
    """A fact is not legal in the state of its turn."""


class TurnQueue:
    """The running and queued turns of one session, and their states."""

    __slots__ = ("_is_waiting", "is_paused", "queue", "running")

    def __init__(self) -> None:
        self.running: str | None = None
        self.queue: list[str] = []
        """Ids of the queued turns, in the order in which they will run."""
        self.is_paused = False
        """Whether an agent failed and the queue has not been resumed since."""
        self._is_waiting = False

    @property
    def state(self) -> QueueState:
        """State of the queue."""
        if self.running is not None:
            return BUSY
        if not self.queue:
            return IDLE
        return PAUSED if self.is_paused else READY

    @property
    def is_active(self) -> bool:
        """Whether a turn is running or about to start, so that a crash now would need recovery."""
        return "recover" in QUEUE_STEPS[self.state]

    def may(self, step: Step) -> bool:
        """Return whether a step is legal now."""
        return step in QUEUE_STEPS[self.state]

    def starts_with_next(self, resume: bool) -> bool:
        """Return whether the first queued turn starts as soon as one more turn is submitted.

        Args:
            resume: Whether the new turn resumes a paused queue.
        """
        return self.running is None and (resume or not self.is_paused)

    def state_of(self, turn_id: str) -> TurnPhase:
        """Return the state of a turn; `OUT` for an unknown turn."""
        if turn_id == self.running:
            return WAITING if self._is_waiting else RUNNING
        return QUEUED if turn_id in self.queue else OUT

    def set(self, running: str | None, queue: list[str], is_paused: bool, is_waiting: bool) -> None:
        """Replace the whole state without a fact, for example by a stored one."""
        self.running, self.queue = running, queue
        self.is_paused, self._is_waiting = is_paused, is_waiting

    def payload(self, queue: list[str], pause: bool = False) -> JsonObject:
        """Return the payload of a `queue.changed`.

        Args:
            queue: The queue after this fact.
            pause: Whether to pause the queue. A paused queue stays paused either way, but an empty
                queue is never paused.
        """
        # An empty queue is never paused. Otherwise the next turn of a program, which does not
        # resume the queue, would wait until a user does.
        is_paused = bool(queue) and (pause or self.is_paused)
        return {"queued": list(queue), "paused": True} if is_paused else {"queued": list(queue)}

    def leave(self) -> None:
        """Clear the running turn without a fact, because the session has left memory."""
        self.set(None, self.queue, self.is_paused, is_waiting=False)

    def resume(self) -> None:
        """Resume a paused queue, so that its first turn may start."""
        self.is_paused = False

    def follow(self, type_name: str, turn_id: str | None, payload: JsonObject) -> None:
        """Apply a fact.

        Args:
            type_name: Type of the fact, one of `TURN_EVENTS`.
            turn_id: Turn of the fact; `None` for a `queue.changed` about the queue alone.
            payload: Payload of the fact.

        Raises:
            IllegalTransition: The fact is not legal in the state of its turn; nothing has changed.
        """
        if turn_id is not None:
            before = self.state_of(turn_id)
            after = TURN_EVENTS[before].get(type_name)
            # The table knows one turn at a time. A second running turn would replace the first in
            # `running`, and the first could never end.
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

    def _move(self, turn_id: str, before: TurnPhase, after: TurnPhase) -> None:
        if before is QUEUED:
            self.queue.remove(turn_id)
        if after is QUEUED:
            self.queue.append(turn_id)
        elif after is not OUT:
            # Resuming the queue is not a fact. On replay, the start of a queued turn is the only
            # sign of it; without this line a restart would pause the queue again.
            self.is_paused = self.is_paused and before is not QUEUED
            self.running, self._is_waiting = turn_id, after is WAITING
        elif turn_id == self.running:
            self.running, self._is_waiting = None, False
