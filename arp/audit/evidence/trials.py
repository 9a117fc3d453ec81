"""Collect all benchmark trials of a session: configuration, reward and references to the evidence.

The read model keeps only the newest trials, and cuts long values (`models.reading`). Exports and
comparisons need every trial with complete references and details, so they cannot use the records of
the read model. This module reads the facts.
"""

from __future__ import annotations

from typing import Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Struct, field

from arp.audit.evidence.derived import readable
from arp.audit.evidence.manifest import FACTS, TrialOf
from arp.audit.evidence.sections import CorrelationIds
from arp.audit.evidence.trajectory import (
    TRAJECTORY,
    VERSION,
    Agent,
    Trajectory,
    required_field_status,
)
from arp.audit.models.reading import milliseconds, number, text, texts, whole
from arp.ledger.benchmark_names import EXPORT_REFS, NOT_KNOWN, renamed_object
from arp.ledger.fact import SCHEMA_VERSION, Fact
from arp.protocol.errors import LocalError
from arp.protocol.json_value import Json, JsonObject

TRIAL: Final = "trial.json"
"""Name of the part of a pack that holds the trial."""

TIMEOUT: Final = "timeout"
"""`reason` of a trial that failed because it exceeded its time limit."""

TrialStatus: TypeAlias = Literal["running", "completed", "failed"]

OF_HARBOR: Final = ("harborJobRef", "harborTrialRef", "taskTomlRef")
"""References that the profile puts into `benchmark` of a pack. A fact may have them there or in
`refs`."""

REFS: Final = (
    *OF_HARBOR,
    "trajectoryRef",
    "rewardRef",
    "rewardDetailsRef",
    "artifactManifestRef",
    "agentQcReportRef",
)
"""References that complete evidence of a trial must have. Source: evidence.md 6."""

SHOWN_REFS: Final = (*REFS, "harborTrialResultRef", "harborVerifierStdoutRef")
"""References that `refs` of a trial always lists, even if Harbor has no such file."""

EXPORTED: Final = "exported"


class Trial(Struct, kw_only=True, rename="camel", omit_defaults=True):
    """One run of a benchmark task with a configuration."""

    session_id: str
    trial_id: str
    status: TrialStatus = "running"
    task_id: str
    run_id: str
    thread_id: str | None = None
    turn_id: str | None = None
    turn_status: str | None = None
    """Status with which its turn ended; `None` if no end was recorded."""
    benchmark: JsonObject = field(default_factory=lambda: dict[str, Any]())
    refs: JsonObject = field(default_factory=lambda: dict[str, Any]())
    reward: float | None = None
    detail: Json = None
    criteria: list[str] = field(default_factory=lambda: list[str]())
    reason: str | None = None
    p0_regressions: int | None = field(default=None, name="p0QcGateRegressionCount")
    first_sequence: int = 0
    last_sequence: int = 0

    @property
    def has_timed_out(self) -> bool:
        """Whether the trial failed because it exceeded its time limit."""
        return self.status == "failed" and self.reason == TIMEOUT

    @property
    def missing(self) -> list[str]:
        """Names of what the evidence of the trial lacks; empty if it is complete."""
        lacking = [] if self.status != "running" else ["end"]
        if self.reward is None:
            lacking.append("reward")
        named = (name for name in REFS if self.refs.get(name) in (None, NOT_KNOWN))
        return lacking + [f"refs.{name}" for name in named]


def refs_of_pack(path: str) -> dict[str, str]:
    """Return the references to the parts of a trial in its pack.

    Args:
        path: Path of the pack.
    """
    parts = (TRAJECTORY, FACTS)
    return {name: f"{path}#{part}" for name, part in zip(EXPORT_REFS, parts, strict=True)}


class TrialBook:
    """All trials of a session, built from its facts in order. Other facts are ignored."""

    def __init__(self) -> None:
        self.trials: dict[str, Trial] = {}

    def add(self, fact: Fact) -> None:
        """Process the next fact."""
        if fact.type == "evidence.changed":
            self._add_pack_refs(fact)
        if fact.type in ("turn.completed", "turn.failed"):
            self._turn_ended(fact)
        if not fact.type.startswith(("benchmark.trial.", "benchmark.reward.")):
            return
        trial = self._trial(fact)
        trial.last_sequence = fact.sequence
        trial.benchmark = {**trial.benchmark, **renamed_object(fact.benchmark)}
        trial.refs = {
            **{name: trial.benchmark[name] for name in OF_HARBOR if name in trial.benchmark},
            **trial.refs,
            **renamed_object(fact.refs),
        }
        trial.turn_id = fact.turn_id or trial.turn_id
        trial.thread_id = fact.thread_id or trial.thread_id
        regressions = whole(trial.benchmark, "p0QcGateRegressionCount")
        trial.p0_regressions = regressions if regressions is not None else trial.p0_regressions
        match fact.type:
            case "benchmark.trial.completed":
                trial.status = "completed"
            case "benchmark.trial.failed":
                trial.status, trial.reason = "failed", text(fact.payload, "reason")
            case "benchmark.reward.recorded":
                trial.reward = number(fact.payload, "reward")
                trial.detail = fact.payload.get("detail")
                trial.criteria = texts(fact.payload, "criteria")
            case _:
                pass

    def _turn_ended(self, fact: Fact) -> None:
        for trial in self.trials.values():
            if trial.turn_id == fact.turn_id:
                trial.turn_status = text(fact.payload, "status") or "failed"

    def _add_pack_refs(self, fact: Fact) -> None:
        """Add references to an exported pack to its trial; references already set are kept."""
        trial = self.trials.get(_named_trial(fact) or "")
        path = text(renamed_object(fact.refs), "path")
        if trial is not None and path is not None:
            named = {name: ref for name, ref in trial.refs.items() if ref != NOT_KNOWN}
            trial.refs |= {**refs_of_pack(path), **named}

    def _trial(self, fact: Fact) -> Trial:
        run_id = fact.run_id or "unknown"
        name = _named_trial(fact) or run_id
        if name not in self.trials:
            self.trials[name] = Trial(
                session_id=fact.session_id,
                trial_id=name,
                task_id=fact.task_id or "unknown",
                run_id=run_id,
                first_sequence=fact.sequence,
            )
        return self.trials[name]


def _named_trial(fact: Fact) -> str | None:
    """Return the id of the trial that a fact names; `None` if it names none."""
    return text(renamed_object(fact.benchmark), "trialId")


class TrialPart:
    """Makes the part `trial.json` of a pack: one trial in the profile's names, with its facts."""

    def __init__(self, trial_id: str) -> None:
        self._id = trial_id
        self._book = TrialBook()
        self._spine = CorrelationIds()
        self._events: list[JsonObject] = []
        self._measured = TrialMeasurements()

    def add(self, fact: Fact) -> None:
        """Process the next fact."""
        self._measured.add(fact)
        if not fact.type.startswith("benchmark."):
            return
        trial_id = _named_trial(fact) or fact.run_id
        if trial_id not in (None, self._id):
            return
        self._book.add(fact)
        self._spine.add(fact)
        self._events.append(msgspec.to_builtins(fact))

    def extra(self) -> JsonObject:
        """Return the data about the trial that its trajectory contains."""
        trial = self._book.trials.get(self._id)
        if trial is None:
            return {}
        return {"benchmark": trial.benchmark, "taskId": trial.task_id, "runId": trial.run_id}

    def document(self, field_status: JsonObject) -> JsonObject:
        """Return the trial: ids, references, metrics, reward and the facts that they come from.

        Unknown values are `unavailable`. If no fact names a trajectory, the reference is to the one
        in the pack.

        Args:
            field_status: Result of `required_field_status` for the trajectory in the pack.

        Source: evidence.md 6, and the profile's evidence boundary.
        """
        trial = self._book.trials.get(self._id)
        if trial is None:
            return {"schemaVersion": SCHEMA_VERSION, "trialId": self._id, "events": self._events}
        correlation = {**dict.fromkeys(self._spine.states(), NOT_KNOWN), **self._spine.document()}
        trial.refs.setdefault("trajectoryRef", TRAJECTORY)
        trial.refs.setdefault("runtimeTranscriptRef", FACTS)
        refs = {name: trial.refs.get(name, NOT_KNOWN) for name in SHOWN_REFS} | trial.refs
        harbor = {name: refs.pop(name) for name in OF_HARBOR}
        failure = (trial.reason or NOT_KNOWN) if trial.status == "failed" else "none"
        return {
            "schemaVersion": SCHEMA_VERSION,
            "benchmark": {
                "taskId": trial.task_id,
                "trialId": trial.trial_id,
                **dict.fromkeys(("datasetRef", "configurationId"), NOT_KNOWN),
                **trial.benchmark,
                **harbor,
            },
            "runtimeCorrelation": correlation,
            "refs": refs,
            "status": trial.status,
            **({"reason": trial.reason} if trial.reason is not None else {}),
            "metrics": self._metrics(trial),
            "decisionInputs": _decision_inputs(trial, failure),
            "trajectory": {
                "schema": VERSION,
                "ref": trial.refs["trajectoryRef"],
                "exportStatus": EXPORTED,
                "requiredFieldStatus": field_status,
            },
            "reward": _without_none(
                value=trial.reward,
                ref=refs["rewardRef"],
                detailsRef=refs["rewardDetailsRef"],
                detail=trial.detail,
                criteria=trial.criteria,
                failureCategory=failure,
            ),
            "missing": trial.missing,
            "events": self._events,
        }

    def _metrics(self, trial: Trial) -> JsonObject:
        return _without_none(
            reward=trial.reward,
            timeout=trial.has_timed_out,
            evidenceComplete=not trial.missing,
            **self._measured.document(),
        )


class TrialMeasurements:
    """Measurements of a trial's turn, from its facts; a value that no fact gives is `None`."""

    def __init__(self) -> None:
        self._began: str | None = None
        self._duration: float | None = None
        self._tokens: int | None = None
        self._usd: float | None = None
        self._denied: set[str] = set()
        self._files: set[str] = set()

    def add(self, fact: Fact) -> None:
        """Process the next fact."""
        payload = fact.payload
        match fact.type:
            case "turn.started":
                self._began = fact.timestamp
            case "turn.completed" | "turn.failed":
                self._duration = milliseconds(self._began, fact.timestamp)
            case "benchmark.trial.completed" | "benchmark.trial.failed":
                duration_ms = number(payload, "durationMs")
                self._duration = duration_ms if duration_ms is not None else self._duration
            case "cost.recorded":
                counts = [whole(payload, name) for name in ("inputTokens", "outputTokens")]
                for count in (one for one in counts if one is not None):
                    self._tokens = (self._tokens or 0) + count
                amount = number(payload, "amount")
                if payload.get("currency") == "USD" and amount is not None:
                    self._usd = (self._usd or 0) + amount
            case "permission.evaluated" | "permission.resolved" if (
                payload.get("decision") == "deny"
            ):
                self._denied.add(fact.request_id or fact.event_id)
            case "output.spilled" if "file" in payload and fact.output_ref is not None:
                self._files.add(fact.output_ref)
            case _:
                pass

    def document(self) -> JsonObject:
        """Return the figures."""
        return {
            "durationMs": self._duration,
            "deniedSideEffectCount": len(self._denied),
            "tokens": self._tokens,
            "costUsd": self._usd,
            "artifactCount": len(self._files),
        }


def _decision_inputs(trial: Trial, failure: str) -> JsonObject:
    """Return the values that a gate uses for its decision, which is made elsewhere."""
    has_manifest = trial.refs.get("artifactManifestRef") not in (None, NOT_KNOWN)
    is_eligible = not trial.missing and failure == "none" and trial.p0_regressions == 0
    return _without_none(
        p0QcGateRegressionCount=trial.p0_regressions,
        failureCategory=failure,
        promotionEligible=is_eligible,
        artifactManifestPresent=has_manifest,
        trajectoryAtifCompatible=True,
    )


def _without_none(**fields: Json) -> JsonObject:
    return {name: value for name, value in fields.items() if value is not None}


class NoTrial(LocalError):
    """The bytes are not a trial of the profile."""


class TrialPack(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Content of `trial.json`, in the profile's names. Unknown fields are ignored."""

    schema_version: str
    benchmark: JsonObject
    """Dataset, task, trial and configuration, with references to the files of Harbor."""
    runtime_correlation: JsonObject
    refs: JsonObject = {}
    metrics: JsonObject = {}
    decision_inputs: JsonObject = {}
    trajectory: JsonObject = {}
    reward: JsonObject = {}
    status: str | None = None
    missing: list[str] = []
    """Names of what the evidence lacks, if the writer of the file checked it."""


_decoder = msgspec.json.Decoder(TrialPack)


def decode_trial(data: bytes) -> TrialPack:
    """Return the trial from the bytes of `trial.json`.

    Raises:
        NoTrial: It is not JSON, or a field that the profile requires is missing or invalid.
    """
    try:
        return _decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise NoTrial(f"no trial of a benchmark: {error}") from None


class TrialParts:
    """Makes the parts `trial.json` and `trajectory.json` of a pack.

    Args:
        about: Trial named in the manifest. The parts depend only on it and on the facts.
    """

    def __init__(self, about: TrialOf) -> None:
        self._trial = TrialPart(about.trial_id)
        self._trajectory = Trajectory(about.trial_id, Agent(about.agent))

    def add(self, fact: Fact) -> None:
        """Process the next fact."""
        self._trial.add(fact)
        self._trajectory.add(fact)

    def documents(self) -> dict[str, bytes]:
        """Return the parts by name."""
        trajectory = self._trajectory.document(self._trial.extra())
        trial = self._trial.document(required_field_status(trajectory))
        return {TRAJECTORY: readable(trajectory), TRIAL: readable(trial)}
