"""Benchmark trials: start them as turns, record their scores, export and compare them.

Theory of operation. A trial is a turn with a name. The facts of the turn say what the agent did;
the score comes from outside. The end of a trial is recorded by the next call about it, from the
status of its turn. So no background task watches a trial, and a restart loses none.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct, field

from arp.audit.evidence.comparison import DecisionInput, compare
from arp.audit.evidence.manifest import Scope, TrialOf
from arp.audit.evidence.trials import Trial, TrialBook
from arp.control.context import ControlContext
from arp.control.exports import Exports, ExportState, ScopeParams
from arp.control.facts import feed
from arp.control.method import Id, Reason, SessionParams, TurnId, method
from arp.control.turns import StartTurn, TurnInput, Turns
from arp.ledger.benchmark_names import NOT_KNOWN, RENAMED
from arp.ledger.fact import decode
from arp.ledger.payload_fields import Benchmark, BenchmarkRefs, Comparison, Count
from arp.live.live_session import LiveSession
from arp.protocol.errors import InvalidMessage, SessionBusy, UnknownObject
from arp.protocol.json_value import Json, JsonObject
from arp.record.recorder import Recorder
from arp.session.tracking.threads import THREAD
from arp.store.store import Page

_MARKS = (b'"benchmark"', b'"turn.completed"', b'"turn.failed"')
"""The bytes of every fact about a trial contain one of these."""


# -- requests and answers --------------------------------------------------------------------------


class BenchmarkParams(SessionParams, frozen=True, kw_only=True):
    """Parameters of a method about benchmarks."""

    @classmethod
    def check_names(cls, method: str, params: JsonObject) -> None:
        """Refuse old names of fields in `benchmark` and `refs`; they would be ignored otherwise.

        Raises:
            InvalidMessage: A field has its old name. The text names the new one.
        """
        for part in ("benchmark", "refs"):
            given = params.get(part)
            for name in given if isinstance(given, dict) else ():
                if name in RENAMED:
                    raise InvalidMessage(
                        f"{method}: {part}.{name}: it is now called {RENAMED[name]}",
                        detail=f"{part}.{name}",
                    )


class StartTrial(BenchmarkParams, frozen=True, kw_only=True):
    """Parameters of `benchmark/trial/start`: the agent works on a task of a dataset."""

    trial_id: Id
    """Id of the trial. A call with an existing id changes nothing."""
    benchmark: Benchmark
    """Description of the benchmark; its `trialId` must be absent or equal to `trial_id`."""
    task_id: Id
    run_id: Id | None = None
    """Id of the run; `None` makes an id from those of the task and the trial."""
    input: TurnInput
    turn_id: TurnId | None = None
    """Id of the turn; `None` makes an id."""
    workflow: Id | None = None
    """Agent of a new session."""
    refs: BenchmarkRefs | None = None
    """Addresses of the trial's files, if they are already known."""
    configuration: JsonObject | None = None
    """Configuration of the run."""
    attempt: Annotated[int, Meta(ge=1, description="a whole number from 1")] | None = None


class TrialParams(BenchmarkParams, frozen=True, kw_only=True):
    """Parameters of a method about one trial."""

    trial_id: Id


Criteria = Annotated[tuple[Id, ...], Meta(max_length=100, description="at most 100 names")]


class RecordReward(TrialParams, frozen=True, kw_only=True):
    """Parameters of `benchmark/reward/record`: the score of a trial."""

    reward: float
    detail: Json = None
    criteria: Criteria = ()
    """Names of the criteria that the reward was computed from."""
    failure: Reason | None = None
    """Reason of a failure that the status of the turn does not show, such as `timeout`."""
    refs: BenchmarkRefs | None = None
    """Addresses of further files of the trial."""
    p0_regressions: Count | None = field(default=None, name="p0QcGateRegressionCount")
    """Number of first-priority gates that no longer pass, according to the QC report."""


class ExportTrial(TrialParams, frozen=True, kw_only=True):
    """Parameters of `benchmark/trial/export`: the pack of a trial."""

    evidence_id: Id | None = None
    """Id of the export. A call with an existing id changes nothing. `None` makes an id."""
    outputs: bool = True


class TrialName(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Reference to a trial of a session."""

    session_id: Id
    trial_id: Id


Trials = Annotated[
    tuple[TrialName, ...], Meta(min_length=1, max_length=1000, description="1 to 1000 trials")
]


class CompareTrials(BenchmarkParams, frozen=True, kw_only=True):
    """Parameters of `benchmark/compare`; the result is recorded in the session `sessionId`."""

    baseline: Trials
    candidate: Trials
    decision: Literal["promote", "revert", "hold"] | None = None
    """Decision; `None` means the recommended one."""
    reason: Reason | None = None
    refs: BenchmarkRefs | None = None


class TrialState(Struct, frozen=True, rename="camel", omit_defaults=True):
    """The state of a trial."""

    session_id: str
    trial: Trial
    sequence: int
    """Sequence number of the session's newest fact at the time of the answer."""
    repeated: bool = False
    """Whether the call changed nothing, because it was made before."""


class ComparisonState(Struct, frozen=True, rename="camel"):
    """A comparison, as the ledger records it."""

    session_id: str
    comparison: Comparison
    decision_input: DecisionInput
    sequence: int


# -- methods ---------------------------------------------------------------------------------------


class Benchmarks:
    """Trials in the sessions of one principal. When a method returns, its facts are durable.

    Source: evidence.md 6.
    """

    def __init__(self, context: ControlContext) -> None:
        self._context = context

    @method("benchmark/trial/start")
    async def start(self, request: StartTrial) -> TrialState:
        """Start a turn for a trial; record its dataset, task and configuration.

        Raises:
            SessionBusy: A turn runs and the policy is `reject`; nothing has changed.
            InvalidMessage: `benchmark.trialId` differs from `trialId`, or another turn has the id
                `turnId`; nothing has changed.
            ArpError: The input, the agent or the session is refused; nothing has changed.
        """
        named = request.benchmark.trial_id
        if named not in (None, request.trial_id):
            raise InvalidMessage(f"benchmark.trialId: {named!r:.80} is not trialId", detail=named)
        live = await self._context.open(request.session_id, request.workflow)
        async with self._context.plane.lock(live.id):
            known = (await self._book(live)).trials.get(request.trial_id)
            if known is not None:
                return TrialState(live.id, known, live.session.sequence, repeated=True)
            run_id = request.run_id or f"{request.task_id}.{request.trial_id}"
            turn = StartTurn(
                session_id=live.id,
                input=request.input,
                turn_id=request.turn_id,
                task_id=request.task_id,
                run_id=run_id,
            )
            turn_id, repeated, effects = Turns(self._context).submit(live, turn)
            if repeated:
                raise InvalidMessage(f"turnId {turn_id}: another turn has it", detail="turnId")
            self._record_start(live, request, turn_id, run_id)
            self._context.carry_out(live, effects)
            return await self._state(live, request.trial_id)

    def _record_start(
        self, live: LiveSession, request: StartTrial, turn_id: str, run_id: str
    ) -> None:
        record = self._context.hub.recorder(live).within(
            thread_id=live.session.threads.of(turn_id),
            turn_id=turn_id,
            benchmark=msgspec.structs.replace(request.benchmark, trial_id=request.trial_id),
        )
        record("benchmark.dataset.resolved", {"tasks": [request.task_id]})
        if request.configuration is not None:
            record("benchmark.configuration.resolved", {"configuration": request.configuration})
        ids = {"task_id": request.task_id, "run_id": run_id, "refs": _refs(request.refs)}
        record("benchmark.trial.started", {"attempt": request.attempt}, **ids)

    @method("benchmark/reward/record")
    async def reward(self, request: RecordReward) -> TrialState:
        """Record the end of a trial if it is not yet recorded, then its only score.

        Raises:
            UnknownObject: There is no such trial.
            SessionBusy: Its turn still runs; nothing has changed.
            InvalidMessage: It already has another reward; nothing has changed.
        """
        live = await self._context.to_change(request.session_id)
        async with self._context.plane.lock(live.id):
            trial = _find_trial(await self._book(live), request.trial_id)
            if trial.reward is not None:
                if trial.reward != request.reward:
                    raise InvalidMessage(
                        f"trial {request.trial_id} already has the reward {trial.reward}",
                        detail="reward",
                    )
                return TrialState(live.id, trial, live.session.sequence, repeated=True)
            self._end(live, trial, request)
            payload = {
                "reward": request.reward,
                "detail": request.detail,
                "criteria": list(request.criteria) or None,
            }
            record = self._trial_recorder(live, trial, request)
            record("benchmark.reward.recorded", payload)
            return await self._state(live, request.trial_id)

    def _end(self, live: LiveSession, trial: Trial, request: RecordReward | None = None) -> None:
        """Record the end of a trial, unless it is already recorded.

        Raises:
            SessionBusy: Its turn still runs.
        """
        if trial.status != "running":
            return
        status = trial.turn_status
        if status is None:
            raise SessionBusy(f"trial {trial.trial_id}: turn {trial.turn_id} still runs")
        record = self._trial_recorder(live, trial, request)
        failure = request.failure if request is not None else None
        if failure is not None or status != "completed":
            record("benchmark.trial.failed", {"reason": failure or status})
        else:
            record("benchmark.trial.completed")

    def _trial_recorder(
        self, live: LiveSession, trial: Trial, request: RecordReward | None = None
    ) -> Recorder:
        """Return a recorder that adds the ids, benchmark and refs of a trial to each fact."""
        known = msgspec.convert(trial.benchmark, Benchmark)
        regressions = request.p0_regressions if request is not None else None
        if regressions is not None:
            known = msgspec.structs.replace(known, p0_regressions=regressions)
        more = msgspec.to_builtins(request.refs) if request is not None and request.refs else {}
        return self._context.hub.recorder(live).within(
            thread_id=trial.thread_id or THREAD,
            turn_id=trial.turn_id or NOT_KNOWN,
            task_id=trial.task_id,
            run_id=trial.run_id,
            benchmark=known,
            refs=msgspec.convert({**trial.refs, **more}, BenchmarkRefs),
        )

    @method("benchmark/trial/export")
    async def export(self, request: ExportTrial) -> ExportState:
        """Make the pack of a trial: its evidence, `trial.json`, and `trajectory.json` in ATIF.

        Raises:
            UnknownObject: There is no such trial.
            ArpError: See `Exports.evidence`.
        """
        live = await self._context.to_change(request.session_id)
        async with self._context.plane.lock(live.id):
            trial = _find_trial(await self._book(live), request.trial_id)
            if trial.turn_status is not None:
                self._end(live, trial)
        benchmark = msgspec.convert(trial.benchmark, Benchmark)
        named = TrialOf(request.trial_id, live.session.workflow or "agent")
        exports = Exports(self._context, {"benchmark": msgspec.to_builtins(benchmark)})
        params = ScopeParams(session_id=live.id, evidence_id=request.evidence_id)
        scope = Scope(turn_id=trial.turn_id)
        return await exports.export(
            params, "benchmark", scope, outputs=request.outputs, trial=named
        )

    @method("benchmark/compare")
    async def compare(self, request: CompareTrials) -> ComparisonState:
        """Compare two configurations and record the result.

        Raises:
            UnknownObject: One of the trials does not exist.
        """
        live = await self._context.to_change(request.session_id)
        books: dict[str, TrialBook] = {}
        baseline = [await self._trial(one, books) for one in request.baseline]
        candidate = [await self._trial(one, books) for one in request.candidate]
        found = compare(baseline, candidate, request.decision)
        newest = candidate[-1]
        benchmark = msgspec.convert(newest.benchmark, Benchmark)
        benchmark = msgspec.structs.replace(
            benchmark,
            trial_id=None,
            role="candidate",
            p0_regressions=found.comparison.p0_regressions,
        )
        refs = request.refs or BenchmarkRefs(harbor_job=newest.refs.get("harborJobRef", NOT_KNOWN))
        reason = request.reason or found.decision_input.reason
        ids = {"benchmark": benchmark, "comparison": found.comparison, "refs": refs}
        record = self._context.hub.recorder(live)
        record("benchmark.comparison.completed", {"reason": reason}, **ids)
        sequence = live.session.sequence
        await live.written()
        return ComparisonState(live.id, found.comparison, found.decision_input, sequence)

    async def _trial(self, named: TrialName, books: dict[str, TrialBook]) -> Trial:
        if named.session_id not in books:
            source = await self._context.read(named.session_id)
            books[named.session_id] = await self._read_book(named.session_id, source.stored)
        return _find_trial(books[named.session_id], named.trial_id)

    async def _book(self, live: LiveSession) -> TrialBook:
        """Return all trials in the durable facts of a session."""
        await live.written()
        return await self._read_book(live.id, live.stored)

    async def _read_book(self, session_id: str, through: int) -> TrialBook:
        book = TrialBook()

        def read_page(page: Page) -> None:
            for _, body in page:
                if any(mark in body for mark in _MARKS):
                    book.add(decode(body))

        await feed(self._context.hub.store, session_id, through, read_page)
        return book

    async def _state(self, live: LiveSession, trial_id: str) -> TrialState:
        trial = _find_trial(await self._book(live), trial_id)
        return TrialState(live.id, trial, live.session.sequence)


def _find_trial(book: TrialBook, trial_id: str) -> Trial:
    trial = book.trials.get(trial_id)
    if trial is None:
        raise UnknownObject(f"no trial {trial_id!r:.80} in this session", detail="trialId")
    return trial


def _refs(refs: BenchmarkRefs | None) -> BenchmarkRefs:
    """Return refs with at least one entry, as the profile requires."""
    is_empty = refs is None or not msgspec.to_builtins(refs)
    return BenchmarkRefs(harbor_job=NOT_KNOWN) if refs is None or is_empty else refs
