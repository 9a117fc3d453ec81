"""Facts of benchmarks."""

from __future__ import annotations

from typing import Final

from arp.ledger.fact_family import FactFamily, FactType
from arp.ledger.payload_fields import (
    ATTEMPT,
    DETAIL,
    DURATION_MS,
    REASON,
    Name,
    PayloadField,
    optional,
)
from arp.ledger.record_steps import AddRecord, CustomRule
from arp.protocol.json_value import JsonObject

CONFIGURATION: Final = PayloadField("configuration", JsonObject, "Configuration of a benchmark.")
CRITERIA: Final = PayloadField(
    "criteria", list[Name], "Names of the criteria by which a reward was computed."
)
REWARD: Final = PayloadField("reward", float, "Score of a benchmark trial.")
TASKS: Final = PayloadField("tasks", list[Name], "Ids of tasks.")


BENCHMARK_FACTS: Final = FactFamily(
    "benchmark",
    "A benchmark, its trials, rewards and comparisons.",
    required_ids=["benchmark"],
    types=[
        FactType(
            "benchmark.dataset.resolved", TASKS.optional(), effects=[CustomRule("benchmarks")]
        ),
        FactType(
            "benchmark.configuration.resolved", CONFIGURATION, effects=[CustomRule("benchmarks")]
        ),
        FactType(
            "benchmark.trial.started",
            ATTEMPT.optional(),
            required_ids=["task_id", "run_id", "refs", "thread_id", "turn_id"],
            effects=[CustomRule("benchmarks")],
        ),
        FactType(
            "benchmark.trial.completed",
            DURATION_MS.optional(),
            required_ids=["task_id", "run_id", "refs"],
            effects=[CustomRule("benchmarks")],
        ),
        FactType(
            "benchmark.trial.failed",
            REASON,
            DURATION_MS.optional(),
            required_ids=["task_id", "run_id", "refs"],
            effects=[AddRecord("incidents"), CustomRule("benchmarks")],
        ),
        FactType(
            "benchmark.reward.recorded",
            REWARD,
            *optional(DETAIL, CRITERIA),
            required_ids=["task_id", "run_id", "refs"],
            effects=[CustomRule("benchmarks")],
        ),
        FactType(
            "benchmark.comparison.completed",
            REASON.optional(),
            required_ids=["comparison", "refs"],
            effects=[CustomRule("benchmarks")],
        ),
    ],
)

FAMILIES: Final = (BENCHMARK_FACTS,)
