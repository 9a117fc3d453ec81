"""What may be asked about benchmarks, and what is answered."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from arp.control.asked import Id, OfSession, Reason, TurnId
from arp.control.turns import TurnInput
from arp.ledger.benchmark_names import RENAMED
from arp.ledger.exports.comparison import DecisionInput
from arp.ledger.exports.trials import Trial
from arp.ledger.payload_fields import Benchmark, BenchmarkRefs, Comparison, Count
from arp.protocol.errors import InvalidMessage
from arp.protocol.json_value import Json, JsonObject


def check_names(method: str, params: JsonObject) -> None:
    """Refuse names of `benchmark` and `refs` that have others now; they would be passed over.

    Raises:
        InvalidMessage: The message says what the field is called now.
    """
    for part in ("benchmark", "refs"):
        given = params.get(part)
        for name in given if isinstance(given, dict) else ():
            if name in RENAMED:
                raise InvalidMessage(
                    f"{method}: {part}.{name}: it is called {RENAMED[name]} now",
                    detail=f"{part}.{name}",
                )


class StartTrial(OfSession, frozen=True, kw_only=True):
    """Asks for a trial: a turn in which the agent works on a task of a dataset."""

    trial_id: Id
    """A call with an id that there is changes nothing."""
    benchmark: Benchmark
    """Its `trialId` is the one above."""
    task_id: Id
    run_id: Id | None = None
    """`None` makes one."""
    input: TurnInput
    turn_id: TurnId | None = None
    """What the turn is to be called."""
    workflow: Id | None = None
    """The agent of a new session."""
    refs: BenchmarkRefs | None = None
    """Where its parts lie, as far as that is known before."""
    configuration: JsonObject | None = None
    """With what it is run."""
    attempt: Annotated[int, Meta(ge=1, description="a whole number from 1")] | None = None


class OfTrial(OfSession, frozen=True, kw_only=True):
    """Parameters of a method about one trial."""

    trial_id: Id


class RecordReward(OfTrial, frozen=True, kw_only=True):
    """Says what a trial scored."""

    reward: float
    detail: Json = None
    failure: Reason | None = None
    """Why the trial failed, where its turn does not tell: `timeout` where it took too long."""
    refs: BenchmarkRefs | None = None
    """Where more of its parts lie."""
    p0_regressions: Count | None = field(default=None, name="p0QcGateRegressionCount")
    """How many gates of the first priority hold no longer, by its QC report."""


class ExportTrial(OfTrial, frozen=True, kw_only=True):
    """Asks for the pack of a trial."""

    evidence_id: Id | None = None
    """As for `evidence/export`."""
    outputs: bool = True


class TrialName(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Names a trial."""

    session_id: Id
    trial_id: Id


Trials = Annotated[
    tuple[TrialName, ...], Meta(min_length=1, max_length=1000, description="1 to 1000 trials")
]


class CompareTrials(OfSession, frozen=True, kw_only=True):
    """Asks how a configuration does beside another one; the answer is a fact of `sessionId`."""

    baseline: Trials
    candidate: Trials
    decision: Literal["promote", "revert", "hold"] | None = None
    """What was decided; `None` takes what is recommended."""
    reason: Reason | None = None
    refs: BenchmarkRefs | None = None


class TrialState(Struct, frozen=True, rename="camel", omit_defaults=True):
    """How a trial stands."""

    session_id: str
    trial: Trial
    sequence: int
    """The session's newest fact when this was said."""
    repeated: bool = False
    """It was so before: the call changed nothing."""


class ComparedState(Struct, frozen=True, rename="camel"):
    """A comparison, as it is in the ledger."""

    session_id: str
    comparison: Comparison
    decision_input: DecisionInput
    sequence: int
