"""Benchmark trials: the same task again and again, with one variable changed."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from arp.ledger.payload_fields import Benchmark, BenchmarkRefs, Comparison
from arp.protocol.json_value import Json, JsonObject
from arp.record.scope import FactScope
from arp.record.wording import check_kind


class BenchmarkRun:
    """A benchmark with one configuration; given by `turn.record.benchmark(benchmark)`."""

    __slots__ = ("_scope", "benchmark")

    def __init__(self, scope: FactScope, benchmark: Benchmark) -> None:
        check_kind(benchmark, Benchmark, "benchmark")
        self.benchmark = benchmark
        self._scope = scope.within(benchmark=as_json(benchmark))

    def dataset(self, tasks: Sequence[str] = ()) -> None:
        """Notes which dataset it is; `tasks` are the ids of those that are run."""
        payload = {"tasks": list(tasks) or None}
        self._scope.record("benchmark.dataset.resolved", payload)

    def configuration(self, **settings: Json) -> None:
        """Notes with what it is run."""
        payload = {"configuration": settings}
        self._scope.record("benchmark.configuration.resolved", payload)

    def trial(self, task_id: str, run_id: str, refs: BenchmarkRefs) -> Trial:
        """Gives a trial, which is one run of one task.

        Args:
            task_id: Of the benchmark's task.
            run_id: Of the run.
            refs: Where its parts lie, as far as that is known before.
        """
        return Trial(self._scope.within(task_id=task_id, run_id=run_id), refs)

    def compared(
        self, comparison: Comparison, refs: BenchmarkRefs, reason: str | None = None
    ) -> None:
        """Notes what came of comparing it with another configuration, and what was decided."""
        check_kind(comparison, Comparison, "comparison")
        check_kind(refs, BenchmarkRefs, "refs")
        self._scope.record(
            "benchmark.comparison.completed",
            {"reason": reason},
            comparison=as_json(comparison),
            refs=as_json(refs),
        )


class Trial:
    """One trial."""

    __slots__ = ("_scope", "refs")

    def __init__(self, scope: FactScope, refs: BenchmarkRefs) -> None:
        self.refs = refs
        """Where its parts lie; assign more as they come to be."""
        self._scope = scope

    def started(self, attempt: int | None = None) -> None:
        """Notes that it has begun."""
        self._record("benchmark.trial.started", attempt=attempt)

    def completed(self, duration_ms: float | None = None) -> None:
        """Notes that it ran to its end."""
        self._record("benchmark.trial.completed", durationMs=duration_ms)

    def failed(self, reason: str, duration_ms: float | None = None) -> None:
        """Notes that it did not; `reason` is `timeout` where it took too long."""
        self._record("benchmark.trial.failed", reason=reason, durationMs=duration_ms)

    def reward(self, reward: float, detail: Json = None) -> None:
        """Notes its score."""
        self._record("benchmark.reward.recorded", reward=reward, detail=detail)

    def _record(self, type_name: str, **payload: Json) -> None:
        check_kind(self.refs, BenchmarkRefs, "refs")
        self._scope.record(type_name, payload, refs=as_json(self.refs))


def as_json(value: msgspec.Struct) -> JsonObject:
    """Gives a struct as a fact holds it, without what is not known."""
    made: JsonObject = msgspec.to_builtins(value)
    return made
