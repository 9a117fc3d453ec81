"""Types and meanings of the fields in payloads. A name has the same type and meaning in all facts.

`fact_types.ROWS` lists the fields of each fact type.
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
"""Decision of a permission rule about a tool call."""
Resolution: TypeAlias = Literal["allow", "deny", "cancelled", "expired"]
"""Outcome of a permission request; only `allow` is an approval."""
Scope: TypeAlias = Literal["once", "session"]
"""Scope of an approval."""
Outcome: TypeAlias = Literal["answered", "declined", "cancelled", "expired"]
"""Outcome of a question."""
AuthorityKind: TypeAlias = Literal["rule", "mode", "hook", "hostPolicy", "person"]
Need: TypeAlias = Literal["input", "permission", "resource"]
"""Kind of thing that a task is waiting for."""
Export: TypeAlias = Literal["exported", "not_applicable", "unsupported", "missing_correlation"]
ExportKind: TypeAlias = Literal["evidence", "replay", "review", "benchmark"]
Stream: TypeAlias = Literal["stdout", "stderr"]


class Authority(Struct, frozen=True):
    """The rule, mode, hook, policy or person that decided on a permission."""

    kind: AuthorityKind
    name: Name
    """Name of the rule, mode, hook or host policy; for a person `user`, or the host's name for the
    person."""


class Candidate(Struct, frozen=True, omit_defaults=True):
    """A model that routing considered."""

    model: Name
    provider: str | None = None
    excluded: str | None = None
    """Reason why it cannot be used; absent if it can."""


class Finding(Struct, frozen=True):
    """A secret that was removed from a fact."""

    rule: Name
    """Pattern or name that found it; never the secret itself."""
    count: Ordinal


class TurnFeedback(Struct, frozen=True, omit_defaults=True):
    """A user's feedback on the answer of a turn."""

    rating: Literal["up", "down", "none"]
    """Rating; `none` withdraws an earlier one."""
    comment: str = ""


class ApprovedFile(Struct, frozen=True, omit_defaults=True):
    """A file that the input of a permission names."""

    path: Name
    """Path with all links resolved."""
    bytes: Count
    sha256: Sha256 | None = None
    """SHA-256 of its content; absent if it is too large, cannot be read, or contains a secret."""


class Verification(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Result of a check of an export."""

    outcome: Literal["passed", "failed", "unknown"]
    first_bad: Ordinal | None = None
    """Sequence number of the first fact that was changed."""


class Delivery(Struct, frozen=True, omit_defaults=True):
    """Whether the result of a task reached its recipient."""

    state: Literal["pending", "delivered", "failed", "not_applicable"]
    to: str | None = None


class Benchmark(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Trial of a benchmark fact: the content of `benchmark` beside the payload."""

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
    """Number of gates of the highest priority that failed now and passed before."""
    dataset_ref: str | None = None
    task_id: str | None = None
    harbor_job: str | None = field(default=None, name="harborJobRef")
    harbor_trial: str | None = field(default=None, name="harborTrialRef")


class BenchmarkRefs(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Locations of the parts of a benchmark: the content of `refs` beside the payload."""

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
    """Result of comparing two configurations: the content of `comparison` beside the payload."""

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
    """Number of gates of the highest priority that failed now and passed before."""
    decision: Literal["promote", "revert", "hold"]
    """The decision about the candidate."""


FIELDS: Final[dict[str, tuple[Any, str]]] = {
    "amount": (Amount, "Amount of money, in `currency`."),
    "anew": (
        bool,
        "True if a new component reuses the id of a component in an evicted turn.",
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
    "decidedBy": (Authority, "The rule, mode, hook, policy or person that decided."),
    "decision": (Outcome, "How a question ended."),
    "delivery": (Delivery, "Whether the result reached its recipient."),
    "deniedBy": (
        Authority,
        "What or who denied. Present if and only if the decision is `deny`.",
    ),
    "dependsOn": (list[Name], "Ids of the tasks that must be completed before this one."),
    "detail": (Json, "More details."),
    "digest": (
        Sha256,
        "SHA-256 of the input shown or approved, as JSON; one with a secret is salted.",
    ),
    "direction": (Literal["in", "out"], "Direction of a message, seen from the session."),
    "done": (Count, "Number of items that are done."),
    "durationMs": (Amount, "Duration in milliseconds."),
    "editable": (bool, "Whether the answer may change the input that was shown."),
    "edited": (bool, "True if the approved input differs from the one shown."),
    "edits": (Name, "Id of the turn that this turn is a new version of."),
    "encoding": (str, "Encoding of a renderer's messages."),
    "ends": (
        Literal["completed", "cancelled"],
        "Final status of a turn that a crash ended while this question was open.",
    ),
    "epoch": (str, "Id of one life of a session's log."),
    "error": (str, "Error message for people."),
    "event": (str, "The event for which a hook was called."),
    "evidenceRefs": (list[Name], "Ids of evidence."),
    "exitCode": (int, "Exit code of a process."),
    "expiresAt": (str, "Deadline (RFC 3339); later answers are refused."),
    "failed": (Count, "Number of items that failed."),
    "failedModel": (Name, "The model that could not be used."),
    "features": (list[str], "Features of a renderer."),
    "feedback": (TurnFeedback, "A user's feedback on the answer of the turn."),
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
        "The request to transfer the surface (`to_session`, …); empty if the surface stays.",
    ),
    "limit": (Name, "Name of a limit."),
    "maxTokens": (Ordinal, "Maximum size of a model's context."),
    "message": (str, "Message for people."),
    "messages": (
        list[Json],
        "Messages that a model receives, oldest first, in the runtime's format.",
    ),
    "messagesLeftOut": (Ordinal, "Older messages that were too large to record."),
    "mime": (str, "Media type."),
    "mode": (str, "Mode of a sandbox, in the host's words."),
    "model": (Name, "Name of a model."),
    "name": (str, "Name for people."),
    "network": (bool, "Whether the sandbox allows network access."),
    "objective": (Name, "Goal of a task or an agent."),
    "operation": (Name, "The operation that was attempted."),
    "origin": (str, "The program that began the turn, if no user did."),
    "outputTokens": (Count, "Tokens that a model wrote."),
    "outputs": (list[Json], "Results: values or references."),
    "owner": (str, "The user to whom a session belongs."),
    "parameters": (JsonObject, "Parameters of a request to a model, in the runtime's format."),
    "paused": (bool, "Whether the queue is paused until a user resumes it."),
    "pid": (Ordinal, "Process id of the operating system."),
    "pinned": (bool, "Whether a session is pinned to the top of the list."),
    "policy": (Name, "Name of a policy."),
    "position": (Ordinal, "Position in the queue, from 1."),
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
        "Role of a surface that is not a toplevel: renderers without overlays need a snapshot.",
    ),
    "sandbox": (Name, "Name of a sandbox profile."),
    "scope": (Scope, "Scope of an approval: this call, or the rest of the session."),
    "sessionRule": (Name, "What an approval for the session allows, as it was shown."),
    "settings": (JsonObject, "The user's settings of the session; see `App(session_settings=…)`."),
    "sha256": (Sha256, "SHA-256 of the content."),
    "sharedState": (JsonObject, "The `turn.shared_state` of the agent, which renderers receive."),
    "signal": (str, "Signal that ended a process."),
    "source": (str, "Origin of reconstructed data."),
    "sources": (list[Json], "Parts of a model's context."),
    "state": (Export, "How an export ended. In `session.updated`: the `turn.state` of the agent."),
    "status": (
        Literal["completed", "failed", "cancelled", "waiting"],
        "How a turn ended; `waiting`: a crash ended it while one of its questions was open.",
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
    "total": (Count, "Number of items; for a quota, its size."),
    "unit": (str, "Unit of a quota."),
    "usage": (JsonObject, "Usage of a model, in the provider's format."),
    "value": (Json, "The new value."),
    "verification": (Verification, "Result of a check."),
    "viewer": (Name, "An admin who read a session of another user."),
    "waitingFor": (Need, "What a task is waiting for."),
    "workflow": (str, "Name of the agent."),
    "writable": (list[str], "Paths that a sandbox may write."),
}
"""Name of a field → its type and its meaning."""

KINDS: Final[dict[str, Any]] = {
    "object": JsonObject,
    "verdict": Verdict,
    "resolution": Resolution,
}
"""Kind in a row of `fact_types` (`x:kind`) → type that replaces the one in `FIELDS`."""

BESIDE: Final[dict[str, Any]] = {
    "benchmark": Benchmark,
    "comparison": Comparison,
    "refs": BenchmarkRefs,
}
"""Types of the objects beside the payload of a `benchmark.` fact, by field name."""
