"""What a name in a payload means: one type and one meaning, whichever fact it stands in.

`payloads` says which fact has which of them.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, TypeAlias

from msgspec import Meta, Struct, field

from arp.protocol.json_value import Json, JsonObject

Count: TypeAlias = Annotated[int, Meta(ge=0, description="a whole number from 0")]
Ordinal: TypeAlias = Annotated[int, Meta(ge=1, description="a whole number from 1")]
Amount: TypeAlias = Annotated[float, Meta(ge=0, description="a number from 0")]
Share: TypeAlias = Annotated[float, Meta(ge=0, le=1, description="a number from 0 to 1")]
Name: TypeAlias = Annotated[str, Meta(min_length=1, description="a text that is not empty")]
Sha256: TypeAlias = Annotated[
    str, Meta(pattern=r"^[0-9a-f]{64}\Z", description="64 lower-case hex digits")
]
Currency: TypeAlias = Annotated[
    str, Meta(pattern=r"^[A-Z]{3}\Z", description="three capital letters of ISO 4217")
]

Verdict: TypeAlias = Literal["allow", "deny", "ask"]
"""What a permission rule says of a use."""
Resolution: TypeAlias = Literal["allow", "deny", "cancelled", "expired"]
"""What became of a permission that was asked for; only `allow` is an approval."""
Outcome: TypeAlias = Literal["answered", "cancelled", "expired"]
"""What became of a question."""
AuthorityKind: TypeAlias = Literal["rule", "mode", "hook", "hostPolicy", "person"]
Need: TypeAlias = Literal["input", "permission", "resource"]
"""What a waiting task waits for."""
Export: TypeAlias = Literal["exported", "not_applicable", "unsupported", "missing_correlation"]
ExportKind: TypeAlias = Literal["evidence", "replay", "review", "benchmark"]
Stream: TypeAlias = Literal["stdout", "stderr"]


class Authority(Struct, frozen=True):
    """Who decided on a permission."""

    kind: AuthorityKind
    name: Name
    """Of the rule, mode, hook or host policy; for a person `user` or whom the host knows."""


class Candidate(Struct, frozen=True, omit_defaults=True):
    """A model that routing could take."""

    model: Name
    provider: str | None = None
    excluded: str | None = None
    """Why it cannot be taken; absent where it can."""


class Finding(Struct, frozen=True):
    """Something that was taken out of what a fact would have held."""

    rule: Name
    """The pattern or name that found it, never what was found."""
    count: Ordinal


class Verification(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """What a check of an export found."""

    outcome: Literal["passed", "failed", "unknown"]
    first_bad: Ordinal | None = None
    """Sequence of the first fact that is not what it was."""


class Delivery(Struct, frozen=True, omit_defaults=True):
    """Whether the outcome of a task reached whom it is for."""

    state: Literal["pending", "delivered", "failed", "not_applicable"]
    to: str | None = None


class Benchmark(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Which trial a benchmark fact is of: what `benchmark` beside the payload holds."""

    dataset_id: Name
    dataset_version: Name
    configuration_id: str | None = None
    trial_id: str | None = None
    role: Literal["baseline", "candidate", "control"] | None = None
    changed_variable: str | None = field(default=None, name="singleChangedVariable")
    """The single thing in which the candidate differs from the baseline."""
    p0_regressions: Count | None = field(default=None, name="p0QcGateRegressionCount")
    """How many gates of the first priority hold no longer."""
    dataset_ref: str | None = None
    task_id: str | None = None
    harbor_job: str | None = field(default=None, name="harborJobRef")
    harbor_trial: str | None = field(default=None, name="harborTrialRef")


class BenchmarkRefs(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Where a benchmark's parts lie: what `refs` beside the payload holds."""

    harbor_job: str | None = field(default=None, name="harborJobRef")
    harbor_trial: str | None = field(default=None, name="harborTrialRef")
    task_toml: str | None = field(default=None, name="taskTomlRef")
    trajectory: str | None = field(default=None, name="trajectoryRef")
    reward: str | None = field(default=None, name="rewardRef")
    reward_details: str | None = field(default=None, name="rewardDetailsRef")
    artifact_manifest: str | None = field(default=None, name="artifactManifestRef")
    qc_report: str | None = field(default=None, name="agentQcReportRef")
    runtime_transcript: str | None = field(default=None, name="runtimeTranscriptRef")
    harbor_trial_result: str | None = field(default=None, name="harborTrialResultRef")
    harbor_verifier_stdout: str | None = field(default=None, name="harborVerifierStdoutRef")


class Comparison(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """What came of comparing two configurations: `comparison` beside the payload."""

    baseline: Name
    """Configuration id."""
    candidate: Name
    mean_reward_delta: float
    """Candidate less baseline; above 0 the candidate is better."""
    timeout_rate_delta: float
    """Share of the trials that timed out, candidate less baseline."""
    evidence_completeness: Share = field(name="evidenceCompletenessRate")
    """Of the trials, those whose evidence is whole."""
    p0_regressions: Count = field(name="p0QcGateRegressionCount")
    decision: Literal["promote", "revert", "hold"]


FIELDS: Final[dict[str, tuple[Any, str]]] = {
    "amount": (Amount, "Money, in `currency`."),
    "anew": (
        bool,
        "An id that left with an old turn is used again.",
    ),
    "answer": (Json, "As every renderer may see it; a password is in no fact."),
    "args": (str, "What a tool is called with, as a JSON text."),
    "artifacts": (list[Name], "Ids of artifacts."),
    "askedBy": (Name, "The rule that wants a person asked."),
    "attempt": (Ordinal, "Which attempt it is, from 1."),
    "blockedBy": (list[Name], "Ids of what stands in the way."),
    "branch": (Name, "Id of a turn whose branch shows from now on."),
    "bytes": (Count, "Size of the whole, of which a preview or a part is kept here."),
    "cachedInputTokens": (Count, "Of the input tokens, those that were read from a cache."),
    "candidates": (list[Candidate], "Models that routing could take, or why not."),
    "changes": (list[JsonObject], "Of a surface: each a `render` or a `patch`."),
    "characters": (Count, "Length of the whole text."),
    "code": (int, "Of the protocol's list of errors."),
    "command": (list[str] | str, "Program and arguments, or one line for a shell."),
    "component": (JsonObject, "The input component that asks."),
    "configuration": (JsonObject, "What a benchmark is run with."),
    "currency": (Currency, "Three capital letters of ISO 4217."),
    "cwd": (str, "Working directory of a process."),
    "decidedBy": (Authority, "Whose rule the decision follows."),
    "decision": (Outcome, "What became of a question."),
    "delivery": (Delivery, "Whether the outcome reached whom it is for."),
    "deniedBy": (Authority, "Who denied; stands there exactly if the decision is `deny`."),
    "dependsOn": (list[Name], "Ids of tasks that must be completed before; all of them."),
    "detail": (Json, "What else is known."),
    "direction": (Literal["in", "out"], "Seen from the session."),
    "done": (Count, "How many are done."),
    "durationMs": (Amount, "Milliseconds that it took."),
    "edits": (Name, "Id of the turn of which this one is another version."),
    "encoding": (str, "Of a renderer's messages."),
    "epoch": (str, "One life of a session's log."),
    "error": (str, "What a person may read of an error."),
    "event": (str, "What a hook was called for."),
    "evidenceRefs": (list[Name], "Ids of evidence."),
    "exitCode": (int, "Of a process."),
    "failed": (Count, "How many failed."),
    "failedModel": (Name, "The model that could not be used."),
    "features": (list[str], "Of a renderer."),
    "file": (JsonObject, "A file that the agent keeps: `id`, `name`, `size`, `mime`, `sha256`."),
    "findings": (list[Finding], "What was taken out, by rule."),
    "finishReason": (str, "Why a model stopped, in its own words."),
    "fraction": (Share, "How much is done, from 0 to 1."),
    "fromSequence": (Ordinal, "First fact of a range."),
    "gaps": (list[str], "Known gaps that apply."),
    "grant": (JsonObject, "What is allowed for the whole session: `tool`, `rule`."),
    "hook": (Name, "Name of a hook."),
    "input": (JsonObject, "What the user did: `input_type`, `data`."),
    "inputId": (str, "Idempotency key of the input that it came by."),
    "inputTokens": (Count, "Tokens that a model read."),
    "keptBytes": (Count, "How much of the whole is kept."),
    "kind": (ExportKind, "Of an export."),
    "limit": (Name, "Name of a limit."),
    "maxTokens": (Ordinal, "Size of a model's context."),
    "message": (str, "What a person may read."),
    "mime": (str, "Media type."),
    "mode": (str, "Mode of a sandbox, in the host's words."),
    "model": (Name, "Name of a model."),
    "name": (str, "For people."),
    "network": (bool, "Whether the network may be used."),
    "objective": (Name, "What a piece of work is to achieve."),
    "operation": (Name, "What was tried."),
    "outputTokens": (Count, "Tokens that a model wrote."),
    "outputs": (list[Json], "What came of it: values or refs."),
    "owner": (str, "To whom a session belongs."),
    "paused": (bool, "Whether the queue is paused until somebody resumes it."),
    "pid": (Ordinal, "Number that the system gave a process."),
    "pinned": (bool, "Whether a session is kept at hand."),
    "policy": (Name, "Name of a policy."),
    "position": (Ordinal, "Place in the queue, from 1."),
    "preview": (str, "Beginning of the whole."),
    "previous": (Json, "The value before."),
    "profile": (JsonObject, "What a task asks of a model."),
    "provider": (str, "Who runs a model."),
    "queued": (list[Name], "Ids of the queued turns, in order."),
    "quota": (Name, "Name of a quota."),
    "readModel": (Name, "Name of a read model."),
    "readable": (list[str], "Paths that may be read."),
    "reason": (str, "Why, for people."),
    "remaining": (float, "What is left of a quota, in `unit`."),
    "removedTurns": (list[Name], "Ids of the turns that no longer count."),
    "renderer": (JsonObject, "What the renderer said of itself: locale, time zone, theme, size."),
    "resetsAt": (str, "When a limit or quota is new, RFC 3339."),
    "restoredTurns": (list[Name], "Ids of the turns that count again."),
    "resumes": (bool, "Whether the turn goes on with it."),
    "retryAfterS": (Amount, "Seconds to wait before trying again."),
    "retryable": (bool, "Whether the same may work when tried again."),
    "reward": (float, "Score of a benchmark trial."),
    "sandbox": (Name, "Name of a sandbox profile."),
    "sha256": (Sha256, "Of the bytes, 64 lower-case hex digits."),
    "signal": (str, "That ended a process."),
    "source": (str, "Where something came from."),
    "sources": (list[Json], "What a context was made of."),
    "state": (Export, "How an export ended; of a session, what the agent keeps as `turn.state`."),
    "status": (Literal["completed", "failed", "cancelled"], "How a turn ended."),
    "stream": (Stream, "Of a process."),
    "summary": (str, "What takes the place of what was left out."),
    "surface": (Name, "Name of a surface."),
    "target": (str, "At what it was tried."),
    "tasks": (list[Name], "Ids of tasks."),
    "text": (str, "Text."),
    "throughSequence": (Count, "Last fact that is covered."),
    "timeoutS": (Amount, "Seconds that were allowed."),
    "title": (str, "For people."),
    "to": (Name, "To whom."),
    "toSequence": (Count, "The newest fact that still counts."),
    "tokens": (Count, "Size of a context."),
    "tokensAfter": (Count, "Size of a context after a compaction."),
    "tokensBefore": (Count, "Size of a context before a compaction."),
    "tool": (Name, "Name of a tool."),
    "tools": (list[Name], "Names of tools."),
    "total": (Count, "How many there are in all; of a quota, its size."),
    "unit": (str, "What a quota counts."),
    "usage": (JsonObject, "What a model used, in its own words."),
    "value": (Json, "The value now."),
    "verification": (Verification, "What a check found."),
    "waitingFor": (Need, "What a task waits for."),
    "workflow": (str, "Name of the agent."),
    "writable": (list[str], "Paths that may be written."),
}
"""Name in a payload → its type and its meaning."""

KINDS: Final[dict[str, Any]] = {
    "object": JsonObject,
    "verdict": Verdict,
    "resolution": Resolution,
}
"""Types that a row of `payloads` gives a name of its own in place of the one above."""

BESIDE: Final[dict[str, Any]] = {
    "benchmark": Benchmark,
    "comparison": Comparison,
    "refs": BenchmarkRefs,
}
"""Objects that stand in a fact of `benchmark.` beside its payload, by field name."""
