"""A replay case: the inputs of a session, and the facts that a replay must produce again.

Theory of operation. A case is made from the facts of a recording, and a replay is compared by its
facts. Both are reduced in the same way: values that differ from run to run (such as durations and
process ids) are removed, each id is replaced by its kind and its order of appearance, and adjacent
pieces of text are joined. Two runs with the same behaviour then give equal lists, turn by turn.
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
"""File name of a case."""

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
"""Prefixes of the types that a replay must produce again; other facts describe the server."""

VOLATILE: Final = frozenset(
    ("durationMs", "pid", "usage", "inputId", "cwd", "resetsAt", "retryAfterS", "progress")
)
"""Payload fields that differ from run to run."""

BEGINNING: Final = frozenset(
    ("task.started", "task.retrying", "task.attempt.started", "job.item.started")
)
"""Types of the facts that a caller of a turn records when it begins an attempt of a task."""

INTERRUPTED: Final = "interrupted"
"""`statusReason` of a turn that the server could not finish."""

_RUN_SPECIFIC: Final = frozenset(("digest", "editable", "input"))
"""Fields of facts about a question that differ from run to run. The digest of an input with a
secret is salted, such an input cannot be edited, and the id of an answer is chosen by its sender.
"""

_TERMS: Final = ("scope", "reason", "updated_input")
"""Payload fields of an answer to a permission question, besides yes or no."""

_NAMING: Final = frozenset(("id", "target", "component_id", "source_component", "after", "before"))
"""Payload fields that hold a name; each run may choose other names."""

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
    """The bytes are not a replay case of this format."""


class ExpectedFact(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A fact, reduced to what a replay must produce again."""

    type: str
    ids: dict[str, str]
    payload: JsonObject
    status_reason: str | None = None
    sequence: int = 0
    """Sequence number in its own log; not compared."""

    def same_as(self, other: ExpectedFact) -> bool:
        """Return whether two facts are equal, apart from their sequence numbers."""
        return msgspec.structs.replace(self, sequence=0) == msgspec.structs.replace(
            other, sequence=0
        )


class Response(Struct, frozen=True, rename="camel", omit_defaults=True):
    """An answer to a question of the turn; it may decline the question."""

    action: str
    """Name of the question in `ExpectedFact.ids`."""
    after: int
    """Number of the turn's facts before the answer."""
    input: JsonObject
    """`input_type` and `data` of the answer."""


class TurnCase(Struct, frozen=True, rename="camel", omit_defaults=True):
    """One turn: its input, its answers and its expected facts."""

    turn_id: str
    """Turn id in the recording."""
    input: JsonObject
    """`input_type` and `data` of the input."""
    responses: list[Response] = field(default_factory=lambda: list[Response]())
    """Answers to the turn's questions, in order. Unanswered questions have no entry."""
    is_cancelled: bool = False
    """Whether the turn was cancelled."""
    is_unfinished: bool = False
    """Whether the turn had not ended, or was stopped by the server. The replay must repeat its
    facts; later facts are not compared."""
    stopped_after: int | None = None
    """Number of facts before the cancel request; the later facts are its consequences. `None` means
    all facts but the last."""
    stopped_characters: int | None = None
    """Length in characters of the last fact before the cancel request, if it is a text; `None`
    means its full length."""
    facts: list[ExpectedFact] = field(default_factory=lambda: list[ExpectedFact]())
    thread_id: str | None = None
    """Thread of the turn; `None` means the first thread of the session."""

    def is_to_be_stopped(self, found: list[ExpectedFact]) -> bool:
        """Return whether the replay has reached the point where the recorded turn was stopped.

        Args:
            found: Facts of the replayed turn so far.
        """
        if not (self.is_cancelled or self.is_unfinished):
            return False
        after = len(self.facts) if self.is_unfinished else self.stopped_after
        before = len(self.facts[: -1 if after is None else after])
        return self._has_found(before, found, self.stopped_characters)

    def is_due(self, response: Response, found: list[ExpectedFact]) -> bool:
        """Return whether the replay has reached the point where an answer was given."""
        return self._has_found(response.after, found)

    def _has_found(
        self, count: int, found: list[ExpectedFact], characters: int | None = None
    ) -> bool:
        """Return whether the first `count` facts were found.

        Args:
            count: Number of expected facts.
            found: Facts of the replayed turn so far.
            characters: Minimum text length of the last of them; `None` means its full text.
        """
        if not count or len(found) < count:
            return not count
        least = _size(self.facts[count - 1]) if characters is None else characters
        return _size(found[count - 1]) >= least

    def has_left(self, found: list[ExpectedFact]) -> bool:
        """Return whether the replay deviates from the expected facts.

        Only the newest complete fact is compared: the one before the last, because text may still
        be appended to the last.
        """
        index = len(found) - 2
        if index < 0 or (self.is_unfinished and index >= len(self.facts) - 1):
            return False
        return index >= len(self.facts) or not self.facts[index].same_as(found[index])


def _size(fact: ExpectedFact) -> int:
    """Return the length of a fact's text in characters."""
    return len(str(fact.payload.get("text", "")))


class Case(Struct, frozen=True, kw_only=True, rename="camel"):
    """A recorded session that can be replayed."""

    format: str = FORMAT
    schema_version: str = SCHEMA_VERSION
    session_id: str
    runtime_id: str
    workflow: str
    through: int
    """Sequence number of the last fact that was read."""
    turns: list[TurnCase]


class CaseMaker:
    """Makes a case from the facts of a session, or of a part of it, in order."""

    def __init__(self) -> None:
        self._turns: dict[str, TurnCase] = {}
        self._ended: set[str] = set()
        self._submitted_for: dict[str, tuple[str | None, str | None]] = {}
        """Task id and run id that each turn was submitted for, by turn id."""
        self._reducer = Reducer()
        self._workflow = ""
        self._runtime_id = self._session_id = "unknown"
        self._through = 0
        self._first_thread: str | None = None

    def add(self, fact: Fact) -> None:
        """Process the next fact."""
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
            self._submitted_for[turn_id] = fact.task_id, fact.run_id
        turn = self._turns.get(turn_id)
        if turn is None or turn_id in self._ended or self._is_from_caller(fact, turn_id):
            return
        if fact.type == "run.status" and fact.status == "cancelling":
            if turn.stopped_after is None:
                self._turns[turn_id] = msgspec.structs.replace(
                    turn,
                    stopped_after=len(turn.facts),
                    stopped_characters=_size(turn.facts[-1]) if turn.facts else None,
                )
            return
        # The fact that marks the component as answered comes before `action.resolved` but is caused
        # by the answer. If it counted, a replay would wait for it and never answer.
        before = len(turn.facts) - int(_marks_answered(turn.facts[-1:], fact))
        if fact.type in ("turn.completed", "turn.failed"):
            self._ended.add(turn_id)
            if fact.status_reason == INTERRUPTED:
                # These facts say what the shutdown cut off; a replay will not be cut off there.
                while turn.facts and _is_from_interruption(turn.facts[-1]):
                    turn.facts.pop()
                self._turns[turn_id] = msgspec.structs.replace(turn, is_unfinished=True)
                return
        if fact.type == "turn.failed" and fact.status_reason == "cancelled":
            self._turns[turn_id] = turn = msgspec.structs.replace(turn, is_cancelled=True)
        self._reducer.add(turn.facts, fact)
        if fact.type == "action.resolved" and isinstance(fact.payload.get("input"), dict):
            named = turn.facts[-1].ids.get("action_id", "unknown")
            turn.responses.append(
                Response(named, before, _replayable_answer(fact.payload["input"]))
            )

    def _is_from_caller(self, fact: Fact, turn_id: str) -> bool:
        """Return whether a fact was recorded by the caller that submitted the turn.

        The agent will not record this fact in a replay.
        """
        task_id, run_id = self._submitted_for[turn_id]
        is_of_run = fact.task_id == task_id and fact.run_id in (None, run_id)
        return fact.type in BEGINNING and run_id is not None and is_of_run

    def case(self) -> Case:
        """Return the case made from the facts so far."""
        return Case(
            session_id=self._session_id,
            runtime_id=self._runtime_id,
            workflow=self._workflow,
            through=self._through,
            turns=[self._completed_case(turn) for turn in self._turns.values()],
        )

    def _completed_case(self, turn: TurnCase) -> TurnCase:
        is_over = turn.turn_id in self._ended and not turn.is_unfinished
        if is_over and turn.is_cancelled:
            return turn
        return msgspec.structs.replace(
            turn, is_unfinished=not is_over, stopped_after=None, stopped_characters=None
        )


def _replayable_answer(submitted: JsonObject) -> JsonObject:
    """Return an answer in a form that fits the same question of another run."""
    data = part(submitted, "data")
    payload = part(data, "payload")
    if "digest" in payload:  # it refers to the input that was shown in the recording
        rest = {name: value for name, value in payload.items() if name != "digest"}
        data = {**data, "payload": rest}
    return {"input_type": text(submitted, "input_type") or "text", "data": data}


def _marks_answered(last: list[ExpectedFact], resolved: Fact) -> bool:
    """Return whether the last fact marks the component of the resolved question as answered."""
    if resolved.type != "action.resolved" or not last or last[0].type != "artifact.changed":
        return False
    changes = last[0].payload.get("changes")
    first = changes[0] if isinstance(changes, list) and changes else None
    patch = first.get("patch") if isinstance(first, dict) else None
    patch = patch if isinstance(patch, list) else []
    paths = [one.get("path") for one in patch if isinstance(one, dict)]
    return last[0].sequence == resolved.sequence - 1 and "props.state" in paths


def _comparable_question(payload: JsonObject) -> JsonObject:
    """Return the payload of a fact about a question without the fields that differ between runs."""
    answer = part(part(part(payload, "input"), "data"), "payload")
    terms = {name: answer[name] for name in _TERMS if name in answer}
    kept = {name: value for name, value in payload.items() if name not in _RUN_SPECIFIC}
    return {**kept, "terms": terms} if terms else kept


def _is_from_interruption(fact: ExpectedFact) -> bool:
    """Return whether a fact is a consequence of the interruption of its turn."""
    if fact.type == "runtime.error":  # the server reports its shutdown
        return True
    return "cancelled" in [fact.payload.get(name) for name in ("error", "reason", "decision")]


def _ids_of_task(fact: Fact) -> tuple[str, ...]:
    """Return the id fields to compare in a fact of a task.

    Older versions recorded the run id only for attempts, so it is compared only there.
    """
    is_of_attempt = fact.type.startswith("task.attempt.")
    return _IDS if is_of_attempt else tuple(name for name in _IDS if name != "run_id")


class Reducer:
    """Reduces facts to what a replay must produce again."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._counts: dict[str, int] = {}

    def add(self, facts: list[ExpectedFact], fact: Fact) -> None:
        """Append a fact to those of its turn, or join its text to the last one.

        Facts of types that are not compared are ignored.
        """
        if not fact.type.startswith(COMPARED):
            return
        names = _IDS if not fact.type.startswith("task.") else _ids_of_task(fact)
        ids = {
            name: self._placeholder(name, getattr(fact, name))
            for name in names
            if getattr(fact, name)
        }
        is_of_question = fact.type.startswith(("action.", "permission."))
        compared = _comparable_question(fact.payload) if is_of_question else fact.payload
        if fact.type == "tool.result":
            # The count includes redacted text; preview and hash cover the rest.
            compared = {name: value for name, value in compared.items() if name != "characters"}
        payload: JsonObject = self._reduced(compared)
        last = facts[-1] if facts else None
        if fact.type in _TEXT and last is not None and last.type == fact.type:
            joined = f"{last.payload.get('text', '')}{payload.get('text', '')}"
            facts[-1] = msgspec.structs.replace(last, payload={**last.payload, "text": joined})
            return
        facts.append(ExpectedFact(fact.type, ids, payload, fact.status_reason, fact.sequence))

    def _placeholder(self, kind: str, value: str) -> str:
        """Return the replacement of an id: its kind and its order of appearance in that kind."""
        if value in NOT_KNOWN:
            return value
        if value not in self._names:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            self._names[value] = f"{kind.removesuffix('_id')}#{self._counts[kind]}"
        return self._names[value]

    def _reduced(self, value: Json) -> Json:
        if isinstance(value, dict):
            return {
                name: self._placeholder("name", inner)
                if name in _NAMING and isinstance(inner, str)
                else self._reduced(inner)
                for name, inner in value.items()
                if name not in VOLATILE
            }
        if isinstance(value, list):
            return [self._reduced(inner) for inner in value]
        return self._names.get(value, value) if isinstance(value, str) else value


class Difference(Struct, frozen=True, rename="camel", omit_defaults=True):
    """The first difference between a replay and its case."""

    turn_id: str
    """Turn id in the recording."""
    sequence: int
    """Sequence number in the recording of the expected fact, or of the last expected fact if the
    replay has more."""
    where: str
    """Path of the field that differs, such as `payload.text`; `missing` or `added` for a fact."""
    expected: Json = None
    found: Json = None


def first_difference(expected: TurnCase, found: list[ExpectedFact]) -> Difference | None:
    """Return the first difference between a turn and its replay; `None` if there is none."""
    for index, one in enumerate(expected.facts):
        if index == len(found):
            return Difference(expected.turn_id, one.sequence, "missing", one.type)
        actual_fact = found[index]
        if expected.is_unfinished and index == len(expected.facts) - 1:
            actual_fact = _cut_to_length(one, actual_fact)
        if not one.same_as(actual_fact):
            where, wanted, actual = _differing(one, actual_fact)
            return Difference(expected.turn_id, one.sequence, where, wanted, actual)
    if len(found) > len(expected.facts) and not expected.is_unfinished:
        last = expected.facts[-1].sequence if expected.facts else 0
        return Difference(expected.turn_id, last, "added", None, found[len(expected.facts)].type)
    return None


def _cut_to_length(expected: ExpectedFact, found: ExpectedFact) -> ExpectedFact:
    """Return the found fact with its text cut to the expected length.

    The text of an unfinished turn was cut off in the recording, so only its beginning is compared.
    """
    if expected.type not in _TEXT or found.type != expected.type:
        return found
    size = len(expected.payload.get("text", ""))
    cut = str(found.payload.get("text", ""))[:size]
    return msgspec.structs.replace(found, payload={**found.payload, "text": cut})


def _differing(expected: ExpectedFact, found: ExpectedFact) -> tuple[str, Json, Json]:
    """Return the path of the first field that differs, its expected and its found value."""
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
    """Return why a case cannot be replayed; `None` if it can.

    Uploaded files are stored outside the ledger and are not part of a case, so a new session does
    not have them.
    """
    for turn in case.turns:
        data = part(turn.input, "data")
        fields = part(data, "fields").values()
        if data.get("files") or any(isinstance(one, dict) and "sha256" in one for one in fields):
            return f"the input of turn {turn.turn_id} names files, which are in no case"
    return None


_decoder = msgspec.json.Decoder(Case)


def decode_case(data: bytes) -> Case:
    """Return the case from its JSON bytes.

    Raises:
        NoCase: It is not JSON, a field is missing or invalid, or the format is another one.
    """
    try:
        case = _decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise NoCase(f"no replay case: {error}") from None
    if case.format != FORMAT:
        raise NoCase(f"a case of format {case.format!r:.40}, not {FORMAT}; export it again")
    return case
