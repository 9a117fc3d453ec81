"""Types of the fields in payloads, and the fields that several families of facts have.

A name has the same type and meaning in all facts. A field of only one family is defined in the file
of that family, in `families`.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, TypeAlias

from msgspec import Meta, Struct, field
from msgspec.structs import replace

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
"""What a task waits for."""
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
    """The secrets that one rule found and removed."""

    rule: Name
    """Pattern or name that found them; never a secret itself."""
    count: Ordinal
    """Number of removed secrets."""


class TurnFeedback(Struct, frozen=True, omit_defaults=True):
    """A user's feedback on the answer of a turn."""

    rating: Literal["up", "down", "none"]
    """Rating; `none` withdraws an earlier one."""
    comment: str = ""


class ApprovedFile(Struct, frozen=True, omit_defaults=True):
    """A file that is named in the input of a permission request."""

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
    """Name of the only variable that differs between the candidate and the baseline."""
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


class PayloadField(Struct, frozen=True):
    """A field of payloads."""

    name: str
    type: Any
    meaning: str
    """What the field says: a sentence for the docs."""
    required: bool = True
    """Whether a fact of the type always has it; an optional field is present where it applies."""
    base: PayloadField | None = None
    """The field as other fact types have it, if it has another type in this one (`typed`)."""

    def optional(self) -> PayloadField:
        """Return the field for a fact type where it is optional."""
        return replace(self, required=False)

    def typed(self, kind: Any) -> PayloadField:
        """Return the field for a fact type where it has another type."""
        return replace(self, type=kind, base=self)


def optional(*fields: PayloadField) -> tuple[PayloadField, ...]:
    """Return several fields for a fact type where they are optional."""
    return tuple(one.optional() for one in fields)


# -- fields of several families --

ARGS: Final = PayloadField("args", str, "Arguments of a tool, as a JSON text.")
ATTEMPT: Final = PayloadField("attempt", Ordinal, "Number of the attempt, from 1.")
BYTES: Final = PayloadField(
    "bytes", Count, "Size of the whole content, of which the ledger may have only a part."
)
DECISION: Final = PayloadField("decision", Outcome, "How a question ended.")
DETAIL: Final = PayloadField("detail", Json, "More details.")
DONE: Final = PayloadField("done", Count, "Number of items that are done.")
DURATION_MS: Final = PayloadField("durationMs", Amount, "Duration in milliseconds.")
ERROR: Final = PayloadField("error", str, "Error message for people.")
INPUT: Final = PayloadField("input", JsonObject, "The input of the user: `input_type`, `data`.")
INPUT_ID: Final = PayloadField(
    "inputId", str, "Id of the input, which makes a repeated input harmless."
)
MESSAGE: Final = PayloadField("message", str, "Message for people.")
MIME: Final = PayloadField("mime", str, "Media type.")
MODEL: Final = PayloadField("model", Name, "Name of a model.")
NAME: Final = PayloadField("name", str, "Name for people.")
OBJECTIVE: Final = PayloadField("objective", Name, "Goal of a task or an agent.")
OUTPUTS: Final = PayloadField("outputs", list[Json], "Results: values or references.")
PREVIOUS: Final = PayloadField("previous", Json, "The value before the change.")
PROVIDER: Final = PayloadField("provider", str, "Provider of a model.")
REASON: Final = PayloadField("reason", str, "The reason, for people.")
RETRYABLE: Final = PayloadField("retryable", bool, "Whether the same request may succeed later.")
SHA256: Final = PayloadField("sha256", Sha256, "SHA-256 of the content.")
STATE: Final = PayloadField(
    "state", Export, "How an export ended. In `session.updated`: the `turn.state` of the agent."
)
SURFACE: Final = PayloadField("surface", Name, "Name of a surface.")
TEXT: Final = PayloadField("text", str, "A piece of text.")
THROUGH_SEQUENCE: Final = PayloadField(
    "throughSequence", Count, "Sequence of the last fact that is included."
)
TO: Final = PayloadField("to", Name, "The recipient.")
TOOL: Final = PayloadField("tool", Name, "Name of a tool.")
TOOLS: Final = PayloadField("tools", list[Name], "Names of tools.")
TOTAL: Final = PayloadField("total", Count, "Number of items; for a quota, its size.")
USAGE: Final = PayloadField("usage", JsonObject, "Usage of a model, in the provider's format.")
VALUE: Final = PayloadField("value", Json, "The new value.")

BESIDE: Final[dict[str, Any]] = {
    "benchmark": Benchmark,
    "comparison": Comparison,
    "refs": BenchmarkRefs,
}
"""Types of the objects beside the payload of a `benchmark.` fact, by field name."""
