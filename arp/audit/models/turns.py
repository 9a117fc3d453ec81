"""Threads and their turns: what runs, what is queued, how the last one ended.

Theory of operation. A turn is *open* from its submission to its end. Which one runs, and the order
of those in the queue, follow from `turn.*` alone; `queue.changed` then says the order again, and is
believed. Whether a running turn is blocked is not here: that depends on what it waits for
(`requests`), and is put together in `document`.
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
from arp.session.threads import MOST_THREADS

MOST_TURNS: Final = 50
"""Ended turns that are kept: the recent window."""

MOST_WAITING: Final = 200
"""Queued turns: twice what a session takes, since others write facts too."""

UNKNOWN_THREAD: Final = "unavailable"
"""Names the thread of a session whose facts name none so far."""


class TurnModel(Record, rename="camel", omit_defaults=True, kw_only=True):
    """One turn of a thread."""

    turn_id: str
    status: str
    """queued, running, cancelling, completed, failed or cancelled; waiting: it was cut off, and a
    question of it is open."""
    status_reason: str | None = None
    input_type: str | None = None
    input: str | None = None
    """The beginning of what the user said."""
    submitted_at: str | None = None
    started_at: str | None = None
    ended_at: str | None = None
    first_output_at: str | None = None
    output_characters: int = 0
    thought_characters: int = 0
    tool_calls: int = 0
    model: str | None = None
    error: str | None = None
    """What the last `runtime.error` of the turn said."""
    blocked_by_quota: str | None = None
    """The quota that stopped it and has not been lifted."""
    removed: bool = False
    """A rollback took it out of the thread's history."""


class Outcome(Struct, frozen=True, rename="camel", omit_defaults=True):
    """How the turn that ended last did so."""

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
    """What `thread.updated` said, until a turn says otherwise."""
    correlation: JsonObject | None = None
    """What it is elsewhere, such as the session of a runtime outside."""
    active_turn_id: str | None = None
    queue: list[str] = field(default_factory=list)
    turns: RecordWindow[TurnModel] = field(default_factory=lambda: RecordWindow[TurnModel]())
    last_outcome: Outcome | None = None


class ThreadsModel(Struct, rename="camel", omit_defaults=True):
    """Every thread of a session, and how long its turns took."""

    threads: dict[str, Thread] = {}
    older: int = 0
    queue_wait: Durations = field(default_factory=Durations)
    """From submission to start."""
    first_output: Durations = field(default_factory=Durations)
    """From start to the first text."""
    turn_time: Durations = field(default_factory=Durations)
    """From start to end."""

    def of(self, fact: Fact) -> Thread:
        """Return the thread that a fact names, new if it was never heard of."""
        name = fact.thread_id or UNKNOWN_THREAD
        thread = self.threads.get(name)
        if thread is None:
            place = fact.sequence
            thread = Thread(thread_id=name, first_sequence=place, last_sequence=place)
            self.threads[name] = thread
            if len(self.threads) > MOST_THREADS:
                self.older += 1
                del self.threads[_least(self.threads)]
        thread.last_sequence = fact.sequence
        return thread

    def turn(self, fact: Fact) -> TurnModel | None:
        """Return the turn that a fact names, if it is kept; no thread is made for it."""
        thread = self.threads.get(fact.thread_id or UNKNOWN_THREAD)
        return thread.turns.get(fact.turn_id) if thread is not None else None


def _least(threads: dict[str, Thread]) -> str:
    """Name the thread to let go: the one longest silent, those where something runs last."""
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
    """Begin the first thread, which needs no fact of its own."""
    if fact.thread_id is not None:
        threads.of(fact)


def _queue(threads: ThreadsModel, fact: Fact) -> None:
    """Give each thread its part of the queue, which is one for all of them.

    A turn that no thread knows belongs to the one that the fact names.
    """
    if not isinstance(fact.payload.get("queued"), list):
        return
    named, line = threads.of(fact), texts(fact.payload, "queued", MOST_WAITING)
    left = dict.fromkeys(line)
    for thread in threads.threads.values():
        if thread is not named:
            thread.queue = [turn_id for turn_id in line if turn_id in thread.turns.open]
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
        input=_words(submitted),
    )
    thread.told_status = None
    thread.turns.begin(turn_id, turn, MOST_WAITING)
    if turn_id not in thread.queue and len(thread.queue) < MOST_WAITING:
        thread.queue.append(turn_id)


def _words(submitted: JsonObject) -> str | None:
    data = part(submitted, "data")
    return text(data, "text", "transcript", "action")


def _open_turn(thread: Thread, fact: Fact) -> TurnModel:
    """Return the turn that starts or ends, also where no fact says that it was submitted."""
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
    """A cancel is `turn.failed` with `statusReason: "cancelled"` (ledger.md 2)."""
    if fact.type == "turn.completed":
        return "completed"
    if fact.status_reason == "interrupted" and fact.payload.get("status") == "waiting":
        return "waiting"
    return "cancelled" if fact.status_reason == "cancelled" else "failed"


def _answered(threads: ThreadsModel, fact: Fact) -> None:
    """Take how a turn reads that was cut off while it waited, when its last question is closed."""
    turn, ends = threads.turn(fact), fact.payload.get("ends")
    if turn is None or turn.status != "waiting" or ends not in ("completed", "cancelled"):
        return
    thread = threads.of(fact)
    turn.status, turn.last_sequence = ends, fact.sequence
    last = thread.last_outcome
    if last is not None and last.turn_id == turn.turn_id:
        thread.last_outcome = replace(last, status=ends)


def _removed(threads: ThreadsModel, fact: Fact) -> None:
    """Note which turns count no longer, or again: of all threads, as the history is one."""
    threads.of(fact)
    for name, is_removed in (("removedTurns", True), ("restoredTurns", False)):
        for turn_id in texts(fact.payload, name, MOST_TURNS):
            for thread in threads.threads.values():
                turn = thread.turns.get(turn_id)
                if turn is not None:
                    turn.removed = is_removed


# -- what happens in a turn ------------------------------------------------------------------------


def _said(threads: ThreadsModel, fact: Fact) -> None:
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
    """Return the rule of a fact that changes a turn, if that is kept."""

    def rule(threads: ThreadsModel, fact: Fact) -> None:
        turn = threads.turn(fact)
        if turn is not None:
            change(turn, fact)

    return rule


def _thought(turn: TurnModel, fact: Fact) -> None:
    thinking = fact.payload.get("text")
    more = len(thinking) if type(thinking) is str else 0
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
    "action.resolved": _answered,
    "run.status": _in_turn(_run_status),
    "history.rollback.completed": _removed,
    "model.requested": _in_turn(_model),
    "model.completed": _in_turn(_model),
    "model.delta": _said,
    "reasoning.delta": _in_turn(_thought),
    "tool.started": _tool,
    "runtime.error": _in_turn(_error),
    "quota.blocked": _in_turn(_blocked),
    "limit.changed": _unblocked,
}
"""Type of a fact → what it changes here."""
