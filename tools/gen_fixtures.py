"""Writes the examples of facts and snapshots, made by running the project.

    python -m tools.gen_fixtures            writes them
    python -m tools.gen_fixtures --check    fails if that would change a byte

What differs from run to run, the session's epoch, is written as `epoch-1`.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec

from arp.ledger.fact import SCHEMA_VERSION, Fact
from arp.ledger.models.read_model import ReadModel
from arp.protocol.json_value import JsonObject
from tools import fixture_run

ROOT = Path(__file__).resolve().parent.parent

FOLDER = "schemas/agentruntime/fixtures/lime-profile"

UNAVAILABLE = "unavailable"


def main(arguments: list[str]) -> int:
    """Writes or checks every file; returns the exit code."""
    check = "--check" in arguments
    stale = []
    for name, text in files().items():
        path = ROOT / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(name)
            if not check:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
    for name in stale:
        print(f"fixtures: {name} {'is out of date; run make fixtures' if check else 'written'}")
    return 1 if stale and check else 0


def files() -> dict[str, str]:
    """Gives every fixture by its path from the root."""
    facts = asyncio.run(fixture_run.run())
    epoch = facts[0].payload["epoch"]
    return {
        f"{FOLDER}/{name}.json": _text(make(facts)).replace(epoch, "epoch-1")
        for name, make in FIXTURES.items()
    }


def event(type_name: str) -> Callable[[list[Fact]], JsonObject]:
    """Gives what takes the first fact of a type."""
    return lambda facts: as_json(next(fact for fact in facts if fact.type == type_name))


def snapshot(facts: list[Fact]) -> JsonObject:
    """Gives what the read models make of all facts."""
    model = ReadModel()
    model.fold_all(facts)
    return model.snapshot(fixture_run.AT)


def trial_pack(facts: list[Fact]) -> JsonObject:
    """Gives the facts of the one benchmark trial, and what they hang together by."""
    trial = [fact for fact in facts if fact.type.startswith("benchmark.")]
    last = next(fact for fact in trial if fact.type == "benchmark.reward.recorded")
    return {
        "schemaVersion": SCHEMA_VERSION,
        "runtimeCorrelation": {
            "runtimeId": last.runtime_id,
            "sessionId": last.session_id,
            "threadId": last.thread_id,
            "turnId": last.turn_id,
            "taskId": last.task_id,
            "runId": last.run_id,
            "traceId": last.trace_id or UNAVAILABLE,
        },
        "benchmark": last.benchmark,
        "refs": last.refs,
        "reward": last.payload,
        "events": [as_json(fact) for fact in trial],
    }


def as_json(fact: Fact) -> JsonObject:
    """Gives a fact as it stands in the log."""
    plain: JsonObject = msgspec.to_builtins(fact)
    return plain


def _text(document: JsonObject) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


FIXTURES: dict[str, Callable[[list[Fact]], JsonObject]] = {
    "submit-turn-event": event("turn.submitted"),
    "tool-approval-action-required-event": event("action.required"),
    "task-retry-attempt-failed-event": event("task.attempt.failed"),
    "routing-single-candidate-event": event("routing.single_candidate"),
    "evidence-export-event": event("evidence.changed"),
    "thread-read-snapshot": snapshot,
    "benchmark-trial-pack": trial_pack,
}
"""Each fixture and what makes it of the facts of the run."""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
