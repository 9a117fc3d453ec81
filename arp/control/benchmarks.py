"""Benchmark trials: begun as turns, scored, exported, compared.

Theory of operation. A trial is a turn with a name: what the agent did is in the facts of the turn,
what it was worth is told from outside. That it ended is recorded when somebody asks for more of it,
from how its turn ended; so nothing has to watch, and a restart forgets no trial.
"""

from __future__ import annotations

from functools import partial

import msgspec

from arp.control.benchmark_requests import (
    ComparedState,
    CompareTrials,
    ExportTrial,
    RecordReward,
    StartTrial,
    TrialName,
    TrialState,
)
from arp.control.desk import Desk
from arp.control.export_requests import ExportState, OfScope
from arp.control.export_run import ExportRun
from arp.control.exports import Exports
from arp.control.pages import fed
from arp.control.turns import StartTurn, Turns
from arp.hub.live import LiveSession
from arp.ledger.exports.comparison import compare
from arp.ledger.exports.manifest import Scope, TrialOf
from arp.ledger.exports.trials import NOT_KNOWN, Trial, TrialBook
from arp.ledger.fact import decode
from arp.ledger.payload_fields import Benchmark, BenchmarkRefs
from arp.protocol.errors import InvalidMessage, SessionBusy, UnknownObject
from arp.record.recorder import Recorder
from arp.session.threads import THREAD

_MARKS = (b'"benchmark"', b'"turn.completed"', b'"turn.failed"')
"""One of these is in the bytes of every fact that a trial is made of."""


class Benchmarks:
    """Trials of sessions that belong to one principal. Answers are given when facts are durable.

    Source: ledger.md 5, the methods of `benchmark/`.
    """

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def start(self, asked: StartTrial) -> TrialState:
        """Begins a trial: a turn, and the facts that say what it is a trial of.

        Raises:
            SessionBusy: A turn runs and the policy is `reject`; nothing has changed.
            InvalidMessage: `benchmark.trialId` is another one; nothing has changed.
            ArpError: The input, the agent or the session is refused; nothing has changed.
        """
        named = asked.benchmark.trial_id
        if named not in (None, asked.trial_id):
            raise InvalidMessage(f"benchmark.trialId: {named!r:.80} is not trialId", detail=named)
        live = await self._desk.open(asked.session_id, asked.workflow)
        async with self._desk.plane.lock(live.id):
            known = (await self._book(live)).trials.get(asked.trial_id)
            if known is not None:
                return TrialState(live.id, known, live.session.sequence, repeated=True)
            run_id = asked.run_id or f"{asked.task_id}.{asked.trial_id}"
            turn = StartTurn(
                session_id=live.id,
                input=asked.input,
                turn_id=asked.turn_id,
                task_id=asked.task_id,
                run_id=run_id,
            )
            turn_id, repeated, effects = Turns(self._desk).submit(live, turn)
            if repeated:
                raise InvalidMessage(f"turnId {turn_id}: another turn has it", detail="turnId")
            self._record_start(live, asked, turn_id, run_id)
            self._desk.carry_out(live, effects)
            return await self._state(live, asked.trial_id)

    def _record_start(
        self, live: LiveSession, asked: StartTrial, turn_id: str, run_id: str
    ) -> None:
        record = self._desk.hub.recorder(live).within(
            thread_id=live.session.threads.of(turn_id),
            turn_id=turn_id,
            benchmark=msgspec.structs.replace(asked.benchmark, trial_id=asked.trial_id),
        )
        record("benchmark.dataset.resolved", {"tasks": [asked.task_id]})
        if asked.configuration is not None:
            record("benchmark.configuration.resolved", {"configuration": asked.configuration})
        ids = {"task_id": asked.task_id, "run_id": run_id, "refs": _refs(asked.refs)}
        record("benchmark.trial.started", {"attempt": asked.attempt}, **ids)

    async def reward(self, asked: RecordReward) -> TrialState:
        """Record what a trial scored, once; before that, how it ended.

        Raises:
            UnknownObject: There is no such trial.
            SessionBusy: Its turn still runs; nothing has changed.
            InvalidMessage: It has another reward already; nothing has changed.
        """
        live = await self._desk.to_change(asked.session_id)
        async with self._desk.plane.lock(live.id):
            trial = _named(await self._book(live), asked.trial_id)
            if trial.reward is not None:
                if trial.reward != asked.reward:
                    raise InvalidMessage(
                        f"trial {asked.trial_id} has the reward {trial.reward} already",
                        detail="reward",
                    )
                return TrialState(live.id, trial, live.session.sequence, repeated=True)
            self._end(live, trial, asked)
            payload = {"reward": asked.reward, "detail": asked.detail}
            self._of_trial(live, trial, asked)("benchmark.reward.recorded", payload)
            return await self._state(live, asked.trial_id)

    def _end(self, live: LiveSession, trial: Trial, asked: RecordReward | None = None) -> None:
        """Record how a trial ended, if that is not recorded yet.

        Raises:
            SessionBusy: Its turn still runs.
        """
        if trial.status != "running":
            return
        status = trial.turn_status
        if status is None:
            raise SessionBusy(f"trial {trial.trial_id}: turn {trial.turn_id} still runs")
        record = self._of_trial(live, trial, asked)
        failure = asked.failure if asked is not None else None
        if failure is not None or status != "completed":
            record("benchmark.trial.failed", {"reason": failure or status})
        else:
            record("benchmark.trial.completed")

    def _of_trial(
        self, live: LiveSession, trial: Trial, asked: RecordReward | None = None
    ) -> Recorder:
        """Return what records facts of a trial."""
        known = msgspec.convert(trial.benchmark, Benchmark)
        regressions = asked.p0_regressions if asked is not None else None
        if regressions is not None:
            known = msgspec.structs.replace(known, p0_regressions=regressions)
        more = msgspec.to_builtins(asked.refs) if asked is not None and asked.refs else {}
        return self._desk.hub.recorder(live).within(
            thread_id=trial.thread_id or THREAD,
            turn_id=trial.turn_id or NOT_KNOWN,
            task_id=trial.task_id,
            run_id=trial.run_id,
            benchmark=known,
            refs=msgspec.convert({**trial.refs, **more}, BenchmarkRefs),
        )

    async def export(self, asked: ExportTrial) -> ExportState:
        """Makes the pack of a trial: its evidence, `trial.json`, and `trajectory.json` in ATIF.

        Raises:
            UnknownObject: There is no such trial.
            ArpError: As `Exports.evidence`.
        """
        live = await self._desk.to_change(asked.session_id)
        async with self._desk.plane.lock(live.id):
            trial = _named(await self._book(live), asked.trial_id)
            if trial.turn_status is not None:
                self._end(live, trial)
        benchmark = msgspec.convert(trial.benchmark, Benchmark)
        named = TrialOf(asked.trial_id, live.session.head.workflow or "agent")
        make = partial(Exports(self._desk).pack, outputs=asked.outputs, trial=named)
        scope = OfScope(session_id=live.id, evidence_id=asked.evidence_id)
        ids = {"benchmark": msgspec.to_builtins(benchmark)}
        about = Scope(turn_id=trial.turn_id)
        return await ExportRun(self._desk, ids).run(scope, "benchmark", make, about)

    async def compare(self, asked: CompareTrials) -> ComparedState:
        """Compare two configurations and record what came of it.

        Raises:
            SessionNotFound, UnknownObject: There is no such session, no such trial.
        """
        live = await self._desk.to_change(asked.session_id)
        books: dict[str, TrialBook] = {}
        baseline = [await self._trial(one, books) for one in asked.baseline]
        candidate = [await self._trial(one, books) for one in asked.candidate]
        found = compare(baseline, candidate, asked.decision)
        newest = candidate[-1]
        benchmark = msgspec.convert(newest.benchmark, Benchmark)
        benchmark = msgspec.structs.replace(
            benchmark,
            trial_id=None,
            role="candidate",
            p0_regressions=found.comparison.p0_regressions,
        )
        refs = asked.refs or BenchmarkRefs(harbor_job=newest.refs.get("harborJobRef", NOT_KNOWN))
        reason = asked.reason or found.decision_input.reason
        ids = {"benchmark": benchmark, "comparison": found.comparison, "refs": refs}
        record = self._desk.hub.recorder(live)
        record("benchmark.comparison.completed", {"reason": reason}, **ids)
        sequence = live.session.sequence
        await live.written()
        return ComparedState(live.id, found.comparison, found.decision_input, sequence)

    async def _trial(self, named: TrialName, books: dict[str, TrialBook]) -> Trial:
        if named.session_id not in books:
            live = await self._desk.live(named.session_id)
            books[named.session_id] = await self._book(live)
        return _named(books[named.session_id], named.trial_id)

    async def _book(self, live: LiveSession) -> TrialBook:
        """Gives all trials of a session, as far as it is durable."""
        await live.written()
        book = TrialBook()

        def take(page: list[tuple[int, bytes]]) -> None:
            for _, body in page:
                if any(mark in body for mark in _MARKS):
                    book.take(decode(body))

        await fed(self._desk.hub.store, live.id, live.session.log.stored, take)
        return book

    async def _state(self, live: LiveSession, trial_id: str) -> TrialState:
        trial = _named(await self._book(live), trial_id)
        return TrialState(live.id, trial, live.session.sequence)


def _named(book: TrialBook, trial_id: str) -> Trial:
    trial = book.trials.get(trial_id)
    if trial is None:
        raise UnknownObject(f"no trial {trial_id!r:.80} in this session", detail="trialId")
    return trial


def _refs(refs: BenchmarkRefs | None) -> BenchmarkRefs:
    """Return refs of which at least one is known, as the profile wants."""
    is_empty = refs is None or not msgspec.to_builtins(refs)
    return BenchmarkRefs(harbor_job=NOT_KNOWN) if refs is None or is_empty else refs
