"""Threads and their turns: the running turn, the queued turns, the last outcome.

Theory of operation. A turn is *open* from its submission to its end. The `turn.*` facts determine
the running turn and the order of the queue. A `queue.changed` fact lists the whole queue and
replaces that order. Whether a running turn is blocked is not decided here: it depends on pending
requests, and `document` combines the two.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from arp.audit.models.reading import added, brief, part, text, texts
from arp.audit.models.records import Durations, Record, RecordWindow, Rule
from arp.ledger.fact import Fact
from arp.protocol.json_value import JsonObject
from arp.session.tracking.threads import MOST_THREADS

MOST_TURNS: Final = 50
"""Number of ended turns that are kept."""

MOST_WAITING: Final = 200
"""Number of queued turns that are kept: twice the maximum of a session, because other programs
write facts too."""

UNKNOWN_THREAD: Final = "unavailable"
"""Id of the thread while no fact of the session has named one."""


class TurnModel(Record, rename="camel", omit_defaults=True, kw_only=True):
    """One turn of a thread."""

    turn_id: str
    status: str
    """Status: queued, running, cancelling, completed, failed or cancelled; waiting if a crash ended
    the turn and one of its questions is still open."""
    status_reason: str | None = None
    input_type: str | None = None
    input: str | None = None
    """Beginning of the user's input."""
    submitted_at: str | None = None
    started_at: str | None = None
    ended_at: str | None = None
    first_output_at: str | None = None
    output_characters: int = 0
    thought_characters: int = 0
    tool_calls: int = 0
    model: str | None = None
    error: str | None = None
    """Message of the last `runtime.error` of the turn."""
    blocked_by_quota: str | None = None
    """Quota that blocks the turn."""
    removed: bool = False
    """Whether a rollback removed it from the history of the thread."""


class Outcome(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Outcome of the turn that ended last."""

    turn_id: str
    status: str
    sequence: int
    at: str
    status_reason: str | None = None
    error: str | None = None


class Thread(Record, rename="camel", omit_defaults=True, kw_only=True):
    """One thread of a session."""

    thread_id: str
    title: str | None = None
    told_status: str | None = None
    """Status of the last `thread.updated`; `None` after the next turn is submitted or starts."""
    correlation: JsonObject | None = None
    """Ids of the thread in other systems, such as the session of an external runtime."""
    active_turn_id: str | None = None
    queue: list[str] = field(default_factory=list)
    turns: RecordWindow[TurnModel] = field(default_factory=lambda: RecordWindow[TurnModel]())
    last_outcome: Outcome | None = None


class ThreadsModel(Struct, rename="camel", omit_defaults=True):
    """The threads of a session, and the durations of their turns."""

    threads: dict[str, Thread] = {}
    older: int = 0
    queue_wait: Durations = field(default_factory=Durations)
    """Times from submission to start."""
    first_output: Durations = field(default_factory=Durations)
    """Times from start to the first text."""
    turn_time: Durations = field(default_factory=Durations)
    """Times from start to end."""

    def of(self, fact: Fact) -> Thread:
        """Return the thread of a fact; begin a new record if there is none."""
        name = fact.thread_id or UNKNOWN_THREAD
        thread = self.threads.get(name)
        if thread is None:
            sequence = fact.sequence
            thread = Thread(thread_id=name, first_sequence=sequence, last_sequence=sequence)
            self.threads[name] = thread
            if len(self.threads) > MOST_THREADS:
                self.older += 1
                del self.threads[_thread_to_evict(self.threads)]
        thread.last_sequence = fact.sequence
        return thread

    def turn(self, fact: Fact) -> TurnModel | None:
        """Return the turn of a fact; `None` if it is not kept. No record is created."""
        thread = self.threads.get(fact.thread_id or UNKNOWN_THREAD)
        return thread.turns.get(fact.turn_id) if thread is not None else None


def _thread_to_evict(threads: dict[str, Thread]) -> str:
    """Return the thread that has had no fact for the longest time; busy threads come last."""
    return min(threads, key=lambda name: (_is_busy(threads[name]), threads[name].last_sequence))


def _is_busy(thread: Thread) -> bool:
    return thread.active_turn_id is not None or bool(thread.queue)


# -- threads ---------------------------------------------------------------------------------------


def _thread(threads: ThreadsModel, fact: Fact) -> None:
    thread = threads.of(fact)
    thread.title = text(fact.payload, "title") or thread.title
    thread.correlation = brief(fact.correlation) or thread.correlation
    status = fact.status or text(fact.payload, "status")
    thread.told_status = status if fact.type == "thread.updated" else thread.told_status


def _session(threads: ThreadsModel, fact: Fact) -> None:
    """Begin the first thread, which has no `thread.started`."""
    if fact.thread_id is not None:
        threads.of(fact)


def _queue(threads: ThreadsModel, fact: Fact) -> None:
    """Give each thread its part of the queue, which all threads of a session share.

    A turn that is not known belongs to the thread of the fact.
    """
    if not isinstance(fact.payload.get("queued"), list):
        return
    named, queued = threads.of(fact), texts(fact.payload, "queued", MOST_WAITING)
    left = dict.fromkeys(queued)
    for thread in threads.threads.values():
        if thread is not named:
            thread.queue = [turn_id for turn_id in queued if turn_id in thread.turns.open]
            for turn_id in thread.queue:
                left.pop(turn_id, None)
    named.queue = list(left)


# -- turns -----------------------------------------------------------------------------------------


def _submitted(threads: ThreadsModel, fact: Fact) -> None:
    thread, turn_id = threads.of(fact), fact.turn_id or ""
    submitted = part(fact.payload, "input")
    turn = TurnModel(
        turn_id=turn_id,
        status="queued",
        first_sequence=fact.sequence,
        last_sequence=fact.sequence,
        submitted_at=fact.timestamp,
        input_type=text(submitted, "input_type"),
        input=_input_text(submitted),
    )
    thread.told_status = None
    thread.turns.begin(turn_id, turn, MOST_WAITING)
    if turn_id not in thread.queue and len(thread.queue) < MOST_WAITING:
        thread.queue.append(turn_id)


def _input_text(submitted: JsonObject) -> str | None:
    data = part(submitted, "data")
    return text(data, "text", "transcript", "action")


def _open_turn(thread: Thread, fact: Fact) -> TurnModel:
    """Return the turn that starts or ends, and remove it from the queue.

    A new record begins if no fact has submitted the turn.
    """
    turn_id = fact.turn_id or ""
    turn = thread.turns.open.get(turn_id)
    if turn is None:
        turn = TurnModel(turn_id=turn_id, status="running", first_sequence=fact.sequence)
        thread.turns.begin(turn_id, turn, MOST_WAITING)
    if turn_id in thread.queue:
        thread.queue.remove(turn_id)
    turn.last_sequence = fact.sequence
    return turn


def _started(threads: ThreadsModel, fact: Fact) -> None:
    thread = threads.of(fact)
    turn = _open_turn(thread, fact)
    turn.status, turn.started_at = "running", fact.timestamp
    threads.queue_wait.add(turn.submitted_at, fact.timestamp)
    thread.told_status = None
    thread.active_turn_id = turn.turn_id


def _ended(threads: ThreadsModel, fact: Fact) -> None:
    thread = threads.of(fact)
    turn = _open_turn(thread, fact)
    turn.status, turn.status_reason = _end_status(fact), fact.status_reason
    turn.ended_at, turn.blocked_by_quota = fact.timestamp, None
    threads.turn_time.add(turn.started_at, fact.timestamp)
    thread.turns.end(turn.turn_id, MOST_TURNS)
    thread.last_outcome = Outcome(
        turn.turn_id, turn.status, fact.sequence, fact.timestamp, turn.status_reason, turn.error
    )
    if thread.active_turn_id == turn.turn_id:
        thread.active_turn_id = None


def _end_status(fact: Fact) -> str:
    """Return the status of a turn after its end.

    A cancelled turn ends by `turn.failed` with `statusReason: "cancelled"` (ledger.md 2).
    """
    if fact.type == "turn.completed":
        return "completed"
    if fact.status_reason == "interrupted" and fact.payload.get("status") == "waiting":
        return "waiting"
    return "cancelled" if fact.status_reason == "cancelled" else "failed"


def _question_closed(threads: ThreadsModel, fact: Fact) -> None:
    """Set the final status of a turn that a crash ended, when its last question is closed."""
    turn, ends = threads.turn(fact), fact.payload.get("ends")
    if turn is None or turn.status != "waiting" or ends not in ("completed", "cancelled"):
        return
    thread = threads.of(fact)
    turn.status, turn.last_sequence = ends, fact.sequence
    last = thread.last_outcome
    if last is not None and last.turn_id == turn.turn_id:
        thread.last_outcome = replace(last, status=ends)


def _removed(threads: ThreadsModel, fact: Fact) -> None:
    """Mark the turns that a rollback removed or restored. It concerns all threads."""
    threads.of(fact)
    for name, is_removed in (("removedTurns", True), ("restoredTurns", False)):
        for turn_id in texts(fact.payload, name, MOST_TURNS):
            for thread in threads.threads.values():
                turn = thread.turns.get(turn_id)
                if turn is not None:
                    turn.removed = is_removed


# -- facts within a turn ---------------------------------------------------------------------------


def _output(threads: ThreadsModel, fact: Fact) -> None:
    turn = threads.turn(fact)
    if turn is None:
        return
    output = fact.payload.get("text")
    more = len(output) if type(output) is str else 0
    turn.output_characters = added(turn.output_characters, more)
    turn.last_sequence = fact.sequence
    if turn.first_output_at is None:
        turn.first_output_at = fact.timestamp
        threads.first_output.add(turn.started_at, fact.timestamp)


def _in_turn(change: Callable[[TurnModel, Fact], None]) -> Rule:
    """Return the rule of a fact that changes its turn, if the turn is kept."""

    def rule(threads: ThreadsModel, fact: Fact) -> None:
        turn = threads.turn(fact)
        if turn is not None:
            change(turn, fact)

    return rule


def _reasoning(turn: TurnModel, fact: Fact) -> None:
    piece = fact.payload.get("text")
    more = len(piece) if type(piece) is str else 0
    turn.thought_characters = added(turn.thought_characters, more)
    turn.last_sequence = fact.sequence


def _model(turn: TurnModel, fact: Fact) -> None:
    turn.model = text(fact.payload, "model") or turn.model
    turn.blocked_by_quota = None


def _tool(threads: ThreadsModel, fact: Fact) -> None:
    turn = threads.turn(fact)
    if turn is not None:
        turn.tool_calls += 1
        turn.last_sequence = fact.sequence


def _error(turn: TurnModel, fact: Fact) -> None:
    turn.error = text(fact.payload, "error", "message") or turn.error


def _run_status(turn: TurnModel, fact: Fact) -> None:
    if turn.ended_at is None and fact.status == "cancelling":
        turn.status, turn.last_sequence = "cancelling", fact.sequence


def _blocked(turn: TurnModel, fact: Fact) -> None:
    if turn.ended_at is None:
        turn.blocked_by_quota = text(fact.payload, "quota") or "unknown"


def _unblocked(threads: ThreadsModel, fact: Fact) -> None:
    lifted = text(fact.payload, "limit")
    for thread in threads.threads.values():
        turn = thread.turns.open.get(thread.active_turn_id or "")
        if turn is not None and turn.blocked_by_quota == lifted:
            turn.blocked_by_quota = None


RULES: Final[dict[str, Rule]] = {
    "session.created": _session,
    "thread.started": _thread,
    "thread.updated": _thread,
    "queue.changed": _queue,
    "turn.submitted": _submitted,
    "turn.started": _started,
    "turn.completed": _ended,
    "turn.failed": _ended,
    "action.resolved": _question_closed,
    "run.status": _in_turn(_run_status),
    "history.rollback.completed": _removed,
    "model.requested": _in_turn(_model),
    "model.completed": _in_turn(_model),
    "model.delta": _output,
    "reasoning.delta": _in_turn(_reasoning),
    "tool.started": _tool,
    "runtime.error": _in_turn(_error),
    "quota.blocked": _in_turn(_blocked),
    "limit.changed": _unblocked,
}
"""Fact type → rule that changes `ThreadsModel`."""
