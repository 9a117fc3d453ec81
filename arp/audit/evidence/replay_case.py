"""A replay case: what was put into a session, and what must come of it again.

Theory of operation. A case is made of facts and compared with facts. Both go through the same
reduction: what differs from run to run (times, process numbers, sizes of packets) is left out, each
id is replaced by its kind and the order in which it appeared, and neighbouring pieces of text are
joined. Then two runs that did the same give equal lists, turn by turn.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec
from msgspec import Struct, field

from arp.audit.evidence.sections import NOT_KNOWN
from arp.audit.models.reading import part, text
from arp.ledger.fact import SCHEMA_VERSION, Fact
from arp.protocol.errors import LocalError
from arp.protocol.json_value import Json, JsonObject

FORMAT: Final = "arp-case-2"

CASE: Final = "case.json"
"""What a case is called."""

COMPARED: Final = (
    "turn.completed",
    "turn.failed",
    "model.delta",
    "reasoning.delta",
    "tool.started",
    "tool.args",
    "tool.result",
    "tool.failed",
    "artifact.",
    "action.",
    "permission.",
    "sandbox.",
    "hook.",
    "task.",
    "process.started",
    "process.completed",
    "process.failed",
    "output.spilled",
    "routing.",
    "cost.",
    "rate_limit.",
    "quota.",
    "subagent.",
    "job.",
    "runtime.error",
)
"""Beginnings of the types that must come again; the others tell of the machinery around."""

VOLATILE: Final = frozenset(
    ("durationMs", "pid", "usage", "inputId", "cwd", "resetsAt", "retryAfterS", "progress")
)
"""Fields of a payload that differ from run to run."""

BEGINNING: Final = frozenset(
    ("task.started", "task.retrying", "task.attempt.started", "job.item.started")
)
"""Facts of the task that a turn is submitted for, by which whoever asks begins the attempt."""

INTERRUPTED: Final = "interrupted"
"""Why a turn ended that a server could not finish."""

_OF_ONE_RUN: Final = frozenset(("digest", "editable", "input"))
"""Fields of facts about a question that differ from run to run: the digest of an input with a
secret is salted, such an input cannot be edited, and an answer has the id that its sender chose."""

_TERMS: Final = ("scope", "reason", "updated_input")
"""What an answer to a permission says besides yes or no."""

_NAMING: Final = frozenset(("id", "target", "component_id", "source_component", "after", "before"))
"""Fields inside a payload that name something; each run may choose other names."""

_TEXT: Final = frozenset(("model.delta", "reasoning.delta"))

_IDS: Final = (
    "turn_id",
    "tool_call_id",
    "action_id",
    "task_id",
    "run_id",
    "request_id",
    "process_id",
    "subagent_id",
    "job_id",
    "job_item_id",
    "artifact_id",
)


class NoCase(LocalError):
    """Bytes that are no replay case of this format."""


class Expected(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A fact, reduced to what must come again."""

    type: str
    ids: dict[str, str]
    payload: JsonObject
    status_reason: str | None = None
    sequence: int = 0
    """Its position in its own log; not compared."""

    def same_as(self, other: Expected) -> bool:
        """Return whether two runs did the same here."""
        return msgspec.structs.replace(self, sequence=0) == msgspec.structs.replace(
            other, sequence=0
        )


class Response(Struct, frozen=True, rename="camel", omit_defaults=True):
    """An answer to a question of the turn: given, or declined."""

    action: str
    """The question, as `Expected.ids` names it."""
    after: int
    """How many of the facts had come before it."""
    input: JsonObject
    """`input_type` and `data`, as they were sent."""


class TurnCase(Struct, frozen=True, rename="camel", omit_defaults=True):
    """One turn: what was asked, answered and expected."""

    turn_id: str
    """In the log that the case is of."""
    input: JsonObject
    """`input_type` and `data`."""
    responses: list[Response] = field(default_factory=lambda: list[Response]())
    """To its questions, in order; those that got none are not in it."""
    is_cancelled: bool = False
    """Somebody stopped it."""
    is_unfinished: bool = False
    """It had not ended, or the server stopped it: what it did until then must come again, and
    whatever follows is not compared."""
    stopped_after: int | None = None
    """How many of the facts had come when somebody wanted it to stop; those behind came of that.
    `None`: all but the last."""
    stopped_characters: int | None = None
    """Of the last of them, if it is a text; `None`: all of it."""
    facts: list[Expected] = field(default_factory=lambda: list[Expected]())
    thread_id: str | None = None
    """Its thread, where that is not the session's first."""

    def is_to_be_stopped(self, found: list[Expected]) -> bool:
        """Return whether all has come again that the turn had done before it was stopped.

        Args:
            found: What came of it again so far.
        """
        if not (self.is_cancelled or self.is_unfinished):
            return False
        after = len(self.facts) if self.is_unfinished else self.stopped_after
        before = len(self.facts[: -1 if after is None else after])
        return self._has_come(before, found, self.stopped_characters)

    def is_due(self, response: Response, found: list[Expected]) -> bool:
        """Return whether everything has come again that had come before an answer."""
        return self._has_come(response.after, found)

    def _has_come(self, count: int, found: list[Expected], characters: int | None = None) -> bool:
        """Return whether the first facts have come again, the last of them with its text."""
        if not count or len(found) < count:
            return not count
        least = _size(self.facts[count - 1]) if characters is None else characters
        return _size(found[count - 1]) >= least

    def has_left(self, found: list[Expected]) -> bool:
        """Return whether the newest fact that can grow no more is not the expected one."""
        place = len(found) - 2
        if place < 0 or (self.is_unfinished and place >= len(self.facts) - 1):
            return False
        return place >= len(self.facts) or not self.facts[place].same_as(found[place])


def _size(fact: Expected) -> int:
    """Return how many characters of a text a fact has."""
    return len(str(fact.payload.get("text", "")))


class Case(Struct, frozen=True, kw_only=True, rename="camel"):
    """A session that can be run again."""

    format: str = FORMAT
    schema_version: str = SCHEMA_VERSION
    session_id: str
    runtime_id: str
    workflow: str
    through: int
    """The last fact that was looked at."""
    turns: list[TurnCase]


class CaseMaker:
    """Makes a case from the facts of a session, in order, or of a part of it."""

    def __init__(self) -> None:
        self._turns: dict[str, TurnCase] = {}
        self._ended: set[str] = set()
        self._begun: dict[str, tuple[str | None, str | None]] = {}
        """Turns → the task and the run that each was submitted for."""
        self._reducer = Reducer()
        self._workflow = ""
        self._runtime_id = self._session_id = "unknown"
        self._through = 0
        self._first_thread: str | None = None

    def take(self, fact: Fact) -> None:
        """Take the next fact."""
        self._through, self._session_id = fact.sequence, fact.session_id
        self._runtime_id = fact.runtime_id
        if fact.type == "session.created":
            self._workflow = text(fact.payload, "workflow") or ""
        self._first_thread = self._first_thread or fact.thread_id
        turn_id = fact.turn_id
        if turn_id is None or turn_id in NOT_KNOWN:
            return
        if fact.type == "turn.submitted":
            thread = fact.thread_id if fact.thread_id != self._first_thread else None
            submitted = part(fact.payload, "input")
            self._turns[turn_id] = TurnCase(turn_id, submitted, thread_id=thread)
            self._begun[turn_id] = fact.task_id, fact.run_id
        turn = self._turns.get(turn_id)
        if turn is None or turn_id in self._ended or self._is_of_the_caller(fact, turn_id):
            return
        if fact.type == "run.status" and fact.status == "cancelling":
            if turn.stopped_after is None:
                self._turns[turn_id] = msgspec.structs.replace(
                    turn,
                    stopped_after=len(turn.facts),
                    stopped_characters=_size(turn.facts[-1]) if turn.facts else None,
                )
            return
        before = len(turn.facts) - int(_marks_a_question(turn.facts[-1:], fact))
        if fact.type in ("turn.completed", "turn.failed"):
            self._ended.add(turn_id)
            if fact.status_reason == INTERRUPTED:
                while turn.facts and _came_of_the_end(turn.facts[-1]):
                    turn.facts.pop()
                self._turns[turn_id] = msgspec.structs.replace(turn, is_unfinished=True)
                return
        if fact.type == "turn.failed" and fact.status_reason == "cancelled":
            self._turns[turn_id] = turn = msgspec.structs.replace(turn, is_cancelled=True)
        self._reducer.add(turn.facts, fact)
        if fact.type == "action.resolved" and isinstance(fact.payload.get("input"), dict):
            named = turn.facts[-1].ids.get("action_id", "unknown")
            turn.responses.append(Response(named, before, _sent(fact.payload["input"])))

    def _is_of_the_caller(self, fact: Fact, turn_id: str) -> bool:
        """Return whether whoever began the turn recorded a fact: the agent will not do it again."""
        task_id, run_id = self._begun[turn_id]
        is_of_run = fact.task_id == task_id and fact.run_id in (None, run_id)
        return fact.type in BEGINNING and run_id is not None and is_of_run

    def case(self) -> Case:
        """Return the case of what was taken."""
        return Case(
            session_id=self._session_id,
            runtime_id=self._runtime_id,
            workflow=self._workflow,
            through=self._through,
            turns=[self._finished(turn) for turn in self._turns.values()],
        )

    def _finished(self, turn: TurnCase) -> TurnCase:
        is_over = turn.turn_id in self._ended and not turn.is_unfinished
        if is_over and turn.is_cancelled:
            return turn
        return msgspec.structs.replace(
            turn, is_unfinished=not is_over, stopped_after=None, stopped_characters=None
        )


def _sent(submitted: JsonObject) -> JsonObject:
    """Return an answer so that it fits the same question of another run."""
    data = part(submitted, "data")
    payload = part(data, "payload")
    if "digest" in payload:  # of the input that was shown then
        rest = {name: value for name, value in payload.items() if name != "digest"}
        data = {**data, "payload": rest}
    return {"input_type": text(submitted, "input_type") or "text", "data": data}


def _marks_a_question(last: list[Expected], resolved: Fact) -> bool:
    """Return whether the last fact shows an answer on the screens: it came of the answer."""
    if resolved.type != "action.resolved" or not last or last[0].type != "artifact.changed":
        return False
    changes = last[0].payload.get("changes")
    first = changes[0] if isinstance(changes, list) and changes else None
    patch = first.get("patch") if isinstance(first, dict) else None
    patch = patch if isinstance(patch, list) else []
    paths = [one.get("path") for one in patch if isinstance(one, dict)]
    return last[0].sequence == resolved.sequence - 1 and "props.state" in paths


def _asked_or_answered(payload: JsonObject) -> JsonObject:
    """Return the payload of a fact about a question without what is of one run only."""
    said = part(part(part(payload, "input"), "data"), "payload")
    terms = {name: said[name] for name in _TERMS if name in said}
    kept = {name: value for name, value in payload.items() if name not in _OF_ONE_RUN}
    return {**kept, "terms": terms} if terms else kept


def _came_of_the_end(fact: Expected) -> bool:
    """Return whether a fact says that something did not end by itself: its turn was interrupted."""
    if fact.type == "runtime.error":  # the server says that it stopped
        return True
    return "cancelled" in [fact.payload.get(name) for name in ("error", "reason", "decision")]


def _ids_of_task(fact: Fact) -> tuple[str, ...]:
    """Return the ids of a fact of a task; older versions told the run of attempts alone."""
    is_of_attempt = fact.type.startswith("task.attempt.")
    return _IDS if is_of_attempt else tuple(name for name in _IDS if name != "run_id")


class Reducer:
    """Reduces facts to what must come again."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._counts: dict[str, int] = {}

    def add(self, facts: list[Expected], fact: Fact) -> None:
        """Add a fact to those of its turn, or to the text before it; pass over the rest."""
        if not fact.type.startswith(COMPARED):
            return
        names = _IDS if not fact.type.startswith("task.") else _ids_of_task(fact)
        ids = {
            name: self._named(name, getattr(fact, name)) for name in names if getattr(fact, name)
        }
        is_of_question = fact.type.startswith(("action.", "permission."))
        told = _asked_or_answered(fact.payload) if is_of_question else fact.payload
        if fact.type == "tool.result":  # counts what was redacted; preview and hash have the rest
            told = {name: value for name, value in told.items() if name != "characters"}
        payload: JsonObject = self._reduced(told)
        last = facts[-1] if facts else None
        if fact.type in _TEXT and last is not None and last.type == fact.type:
            joined = f"{last.payload.get('text', '')}{payload.get('text', '')}"
            facts[-1] = msgspec.structs.replace(last, payload={**last.payload, "text": joined})
            return
        facts.append(Expected(fact.type, ids, payload, fact.status_reason, fact.sequence))

    def _named(self, kind: str, value: str) -> str:
        """Return what replaces an id: its kind, and its number among those of its kind."""
        if value in NOT_KNOWN:
            return value
        if value not in self._names:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            self._names[value] = f"{kind.removesuffix('_id')}#{self._counts[kind]}"
        return self._names[value]

    def _reduced(self, value: Json) -> Json:
        if isinstance(value, dict):
            return {
                name: self._named("name", inner)
                if name in _NAMING and isinstance(inner, str)
                else self._reduced(inner)
                for name, inner in value.items()
                if name not in VOLATILE
            }
        if isinstance(value, list):
            return [self._reduced(inner) for inner in value]
        return self._names.get(value, value) if isinstance(value, str) else value


class Difference(Struct, frozen=True, rename="camel", omit_defaults=True):
    """The first place at which a run is not as the case expects."""

    turn_id: str
    """In the log that the case is of."""
    sequence: int
    """There: of the fact that was expected, or of the last one before."""
    where: str
    """What differs: `type`, `payload.text` …"""
    expected: Json = None
    found: Json = None


def first_difference(expected: TurnCase, found: list[Expected]) -> Difference | None:
    """Compare the facts of a turn with those that came of it again."""
    for place, one in enumerate(expected.facts):
        if place == len(found):
            return Difference(expected.turn_id, one.sequence, "missing", one.type)
        came = found[place]
        if expected.is_unfinished and place == len(expected.facts) - 1:
            came = _begun_like(one, came)
        if not one.same_as(came):
            where, wanted, actual = _differing(one, came)
            return Difference(expected.turn_id, one.sequence, where, wanted, actual)
    if len(found) > len(expected.facts) and not expected.is_unfinished:
        last = expected.facts[-1].sequence if expected.facts else 0
        return Difference(expected.turn_id, last, "added", None, found[len(expected.facts)].type)
    return None


def _begun_like(expected: Expected, found: Expected) -> Expected:
    """Return what came, of a text as much as had been said: an unfinished turn was cut there."""
    if expected.type not in _TEXT or found.type != expected.type:
        return found
    size = len(expected.payload.get("text", ""))
    cut = str(found.payload.get("text", ""))[:size]
    return msgspec.structs.replace(found, payload={**found.payload, "text": cut})


def _differing(expected: Expected, found: Expected) -> tuple[str, Json, Json]:
    """Return which field differs first, and both of its values."""
    mine: Json = {**msgspec.to_builtins(expected), "sequence": 0}
    its: Json = {**msgspec.to_builtins(found), "sequence": 0}
    path: list[str] = []
    names: Iterable[str] = ("type", "statusReason", "payload", "ids")
    while isinstance(mine, dict) and isinstance(its, dict):
        name = next(name for name in names if mine.get(name) != its.get(name))
        path.append(name)
        mine, its = mine.get(name), its.get(name)
        names = {**mine, **its} if isinstance(mine, dict) and isinstance(its, dict) else ()
    return ".".join(path), mine, its


def obstacle(case: Case) -> str | None:
    """Return why a case cannot be run again; `None`: it can.

    A file lies beside the ledger of its session and in no case; a new session has no such file.
    """
    for turn in case.turns:
        data = part(turn.input, "data")
        fields = part(data, "fields").values()
        if data.get("files") or any(isinstance(one, dict) and "sha256" in one for one in fields):
            return f"the input of turn {turn.turn_id} names files, which are in no case"
    return None


_decoder = msgspec.json.Decoder(Case)


def decode_case(data: bytes) -> Case:
    """Read a case.

    Raises:
        NoCase: It is not JSON, lacks something, or is of another format.
    """
    try:
        case = _decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise NoCase(f"no replay case: {error}") from None
    if case.format != FORMAT:
        raise NoCase(f"a case of format {case.format!r:.40}, not {FORMAT}; export it again")
    return case
