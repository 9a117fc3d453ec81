"""What a name in a payload means: one type and one meaning, in all facts.

`fact_types.ROWS` says which fact has which of them.
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
Scope: TypeAlias = Literal["once", "session"]
"""How far an approval goes."""
Outcome: TypeAlias = Literal["answered", "declined", "cancelled", "expired"]
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


class TurnFeedback(Struct, frozen=True, omit_defaults=True):
    """What a user thinks of the answer of a turn."""

    rating: Literal["up", "down", "none"]
    """`none`: it was taken back."""
    comment: str = ""


class ApprovedFile(Struct, frozen=True, omit_defaults=True):
    """A file that the input of a permission names."""

    path: Name
    """Behind all links."""
    bytes: Count
    sha256: Sha256 | None = None
    """Of its content; absent: it is too large, cannot be read, or holds a secret."""


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
    """Id of the data set."""
    dataset_version: Name
    """Its version."""
    configuration_id: str | None = None
    """Id of the configuration."""
    trial_id: str | None = None
    """Id of the trial."""
    role: Literal["baseline", "candidate", "control"] | None = None
    """Role of the configuration in a comparison."""
    changed_variable: str | None = field(default=None, name="singleChangedVariable")
    """The one variable in which the candidate differs from the baseline."""
    p0_regressions: Count | None = field(default=None, name="p0QcGateRegressionCount")
    """How many gates of the highest priority failed that passed before."""
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
    """Configuration id of the baseline."""
    candidate: Name
    """Configuration id of the candidate."""
    mean_reward_delta: float
    """Mean reward of the candidate minus that of the baseline; above 0 the candidate is better."""
    timeout_rate_delta: float
    """Share of trials that timed out, candidate minus baseline."""
    evidence_completeness: Share = field(name="evidenceCompletenessRate")
    """Share of the trials with complete evidence."""
    p0_regressions: Count = field(name="p0QcGateRegressionCount")
    """How many gates of the highest priority failed that passed before."""
    decision: Literal["promote", "revert", "hold"]
    """The decision about the candidate."""


FIELDS: Final[dict[str, tuple[Any, str]]] = {
    "amount": (Amount, "Amount of money, in `currency`."),
    "anew": (
        bool,
        "True if the id of a component in an evicted turn is used for a new one.",
    ),
    "answer": (Json, "The answer as renderers may see it. A password is in no fact."),
    "answers": (
        JsonObject,
        "The question without a turn that this answers: `actionId`, `name`, `value`, `declined`.",
    ),
    "args": (str, "Arguments of a tool, as a JSON text."),
    "artifacts": (list[Name], "Ids of artifacts."),
    "askedBy": (Name, "The rule that requires a person's decision."),
    "attempt": (Ordinal, "Number of the attempt, from 1."),
    "blockedBy": (list[Name], "Ids of what blocks the task."),
    "branch": (Name, "Id of a turn. Its branch is shown from now on."),
    "bytes": (Count, "Size of the whole content, of which the ledger may have only a part."),
    "cachedInputTokens": (Count, "Input tokens that were read from a cache."),
    "candidates": (
        list[Candidate],
        "Models that could be used; `excluded` says why one could not.",
    ),
    "changes": (list[JsonObject], "Changes of a surface, each a `render` or a `patch`."),
    "characters": (Count, "Length of the whole text, in characters."),
    "closed": (
        Literal["user", "agent", "timeout", "parent", "transferred"],
        "Why the surface was closed.",
    ),
    "code": (int, "Error code of the protocol."),
    "command": (list[str] | str, "A program with its arguments, or one line for a shell."),
    "commands": (
        list[JsonObject],
        "Slash commands of the session: `name`, `description`, `hint`, `choices`.",
    ),
    "component": (JsonObject, "The input component that asks the question."),
    "configuration": (JsonObject, "Configuration of a benchmark."),
    "criteria": (list[Name], "Names of the criteria by which a reward was computed."),
    "currency": (Currency, "Three capital letters of ISO 4217."),
    "cwd": (str, "Working directory of a process."),
    "decidedBy": (Authority, "Whose rule the decision follows."),
    "decision": (Outcome, "How a question ended."),
    "delivery": (Delivery, "Whether the result reached its recipient."),
    "deniedBy": (Authority, "Who denied. Present if and only if the decision is `deny`."),
    "dependsOn": (list[Name], "Ids of the tasks that must be completed before this one."),
    "detail": (Json, "More details."),
    "digest": (
        Sha256,
        "SHA-256 of the input shown or approved, as JSON; one with a secret is salted.",
    ),
    "direction": (Literal["in", "out"], "Direction of a message, seen from the session."),
    "done": (Count, "How many items are done."),
    "durationMs": (Amount, "Duration in milliseconds."),
    "editable": (bool, "Whether the answer may have another input than the one shown."),
    "edited": (bool, "True if another input was approved than the one shown."),
    "edits": (Name, "Id of the turn of which this turn is another version."),
    "encoding": (str, "Encoding of a renderer's messages."),
    "ends": (
        Literal["completed", "cancelled"],
        "How a turn reads from now on that was cut off while this question was open.",
    ),
    "epoch": (str, "Id of one life of a session's log."),
    "error": (str, "Error message for people."),
    "event": (str, "The event for which a hook was called."),
    "evidenceRefs": (list[Name], "Ids of evidence."),
    "exitCode": (int, "Exit code of a process."),
    "expiresAt": (str, "From when on no answer counts (RFC 3339)."),
    "failed": (Count, "How many items failed."),
    "failedModel": (Name, "The model that could not be used."),
    "features": (list[str], "Features of a renderer."),
    "feedback": (TurnFeedback, "What a user thinks of the answer of the turn."),
    "file": (JsonObject, "A file that the agent saved: `id`, `name`, `size`, `mime`, `sha256`."),
    "files": (
        list[ApprovedFile],
        "Files that the input of a permission names: `path`, `bytes`, `sha256`.",
    ),
    "findings": (list[Finding], "Secrets that were removed: the rules and how often each matched."),
    "finishReason": (str, "Why a model stopped, in the provider's words."),
    "fraction": (Share, "Progress from 0 to 1."),
    "fromSequence": (Ordinal, "Sequence of the first fact of a range."),
    "fromSession": (
        Name,
        "The session that gave the surface away, maybe on another server.",
    ),
    "gaps": (list[str], "Known gaps of an export."),
    "grant": (JsonObject, "Permission for the rest of the session: `tool`, `rule`."),
    "hook": (Name, "Name of a hook."),
    "info": (
        JsonObject,
        "A surface: `role`, `title`, `parent`, `component`, `row`, `anchor`, `fullscreen` …",
    ),
    "input": (JsonObject, "The input of the user: `input_type`, `data`."),
    "inputId": (str, "Id of the input, which makes a repeated input harmless."),
    "inputTokens": (Count, "Tokens that a model read."),
    "keptBytes": (Count, "Bytes that are stored."),
    "kind": (ExportKind, "Kind of an export."),
    "leaving": (
        JsonObject,
        "The request to hand the surface over (`to_session`, …); empty: it stays.",
    ),
    "limit": (Name, "Name of a limit."),
    "maxTokens": (Ordinal, "Maximum size of a model's context."),
    "message": (str, "Message for people."),
    "messages": (list[Json], "What a model gets, oldest first, in the runtime's words."),
    "messagesLeftOut": (Ordinal, "Older messages that were too large to record."),
    "mime": (str, "Media type."),
    "mode": (str, "Mode of a sandbox, in the host's words."),
    "model": (Name, "Name of a model."),
    "name": (str, "Name for people."),
    "network": (bool, "Whether the sandbox allows network access."),
    "objective": (Name, "What a task or an agent is to achieve."),
    "operation": (Name, "The operation that was attempted."),
    "origin": (str, "The program that began the turn, if no user did."),
    "outputTokens": (Count, "Tokens that a model wrote."),
    "outputs": (list[Json], "Results: values or references."),
    "owner": (str, "The user to whom a session belongs."),
    "parameters": (JsonObject, "Parameters of a request to a model, in the runtime's words."),
    "paused": (bool, "Whether the queue is paused until somebody resumes it."),
    "pid": (Ordinal, "Process id of the operating system."),
    "pinned": (bool, "Whether a session is pinned to the top of the list."),
    "policy": (Name, "Name of a policy."),
    "position": (Ordinal, "Place in the queue, from 1."),
    "preview": (str, "Beginning of the whole content."),
    "previous": (Json, "The value before the change."),
    "profile": (JsonObject, "What a task requires of a model."),
    "provider": (str, "Provider of a model."),
    "queued": (list[Name], "Ids of the queued turns, in order."),
    "quota": (Name, "Name of a quota."),
    "readModel": (Name, "Name of a read model."),
    "readable": (list[str], "Paths that a sandbox may read."),
    "reason": (str, "The reason, for people."),
    "remaining": (float, "Rest of a quota, in `unit`."),
    "removedTurns": (list[Name], "Ids of the turns that are not shown any more."),
    "renderer": (
        JsonObject,
        "What the renderer sent about itself: locale, time zone, theme, viewport.",
    ),
    "resetsAt": (str, "When a limit or quota is reset (RFC 3339)."),
    "restoredTurns": (list[Name], "Ids of the turns that are shown again."),
    "resumes": (bool, "Whether the turn continues with this answer."),
    "retryAfterS": (Amount, "Seconds to wait before the next attempt."),
    "retryable": (bool, "Whether the same request may succeed later."),
    "reward": (float, "Score of a benchmark trial."),
    "role": (
        Literal["popup", "overlay"],
        "What the surface is, if it is no toplevel: renderers without overlays need a snapshot.",
    ),
    "sandbox": (Name, "Name of a sandbox profile."),
    "scope": (Scope, "How far an approval goes: this use, or the rest of the session."),
    "sessionRule": (Name, "What an approval for the session allows, as it was shown."),
    "settings": (JsonObject, "What the user set for the session; see `App(session_settings=…)`."),
    "sha256": (Sha256, "SHA-256 of the content."),
    "sharedState": (JsonObject, "The `turn.shared_state` of the agent, which renderers get."),
    "signal": (str, "Signal that ended a process."),
    "source": (str, "Origin of reconstructed data."),
    "sources": (list[Json], "Parts of a model's context."),
    "state": (Export, "How an export ended. In `session.updated`: the `turn.state` of the agent."),
    "status": (
        Literal["completed", "failed", "cancelled", "waiting"],
        "How a turn ended; `waiting`: it was cut off while a question of it was open.",
    ),
    "stream": (Stream, "Output stream of a process."),
    "summary": (str, "Text that replaces the removed part of a context."),
    "surface": (Name, "Name of a surface."),
    "target": (str, "The object of the attempted operation."),
    "tasks": (list[Name], "Ids of tasks."),
    "text": (str, "A piece of text."),
    "throughSequence": (Count, "Sequence of the last fact that is included."),
    "timeoutS": (Amount, "Timeout in seconds."),
    "title": (str, "Title for people."),
    "to": (Name, "The recipient."),
    "toSequence": (Count, "Sequence of the newest fact that is still in effect."),
    "tokens": (Count, "Size of a context."),
    "tokensAfter": (Count, "Size of a context after a compaction."),
    "tokensBefore": (Count, "Size of a context before a compaction."),
    "tool": (Name, "Name of a tool."),
    "tools": (list[Name], "Names of tools."),
    "total": (Count, "How many items there are; of a quota, its size."),
    "unit": (str, "Unit of a quota."),
    "usage": (JsonObject, "What a model used, in the provider's words."),
    "value": (Json, "The new value."),
    "verification": (Verification, "Result of a check."),
    "viewer": (Name, "An admin who read a session of another user."),
    "waitingFor": (Need, "What a task is waiting for."),
    "workflow": (str, "Name of the agent."),
    "writable": (list[str], "Paths that a sandbox may write."),
}
"""Name in a payload → its type and its meaning."""

KINDS: Final[dict[str, Any]] = {
    "object": JsonObject,
    "verdict": Verdict,
    "resolution": Resolution,
}
"""Types that a row of `fact_types` gives a name of its own in place of the one above."""

BESIDE: Final[dict[str, Any]] = {
    "benchmark": Benchmark,
    "comparison": Comparison,
    "refs": BenchmarkRefs,
}
"""Objects that stand in a fact of `benchmark.` beside its payload, by field name."""
