"""Write the examples of facts and snapshots, which are produced by running the project.

    python -m tools.gen_fixtures            writes them
    python -m tools.gen_fixtures --check    fails if that would change a byte

Values that differ between runs are left out or replaced by a description: the session's epoch, the
hashes of packs, which depend on it, and the sizes of zip files.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec

from arp.audit.evidence.trajectory import TRAJECTORY
from arp.audit.evidence.trials import TRIAL
from arp.audit.models.read_model import ReadModel
from arp.ledger.fact import Fact
from arp.protocol.json_value import JsonObject
from tools import fixture_run
from tools.generated_files import write_or_check

ROOT = Path(__file__).resolve().parent.parent

FOLDER = "arp/ledger/schemas/fixtures/lime-profile"

PACK = "a" * 64
"""Replacement for the SHA-256 of a zip."""

MANIFEST = "b" * 64
"""Replacement for the SHA-256 of its manifest."""


def main(arguments: list[str]) -> int:
    """Write or check every file; return the exit code."""
    return write_or_check(ROOT, files(), "fixtures", arguments)


def files() -> dict[str, str]:
    """Return every fixture by its path from the root."""
    ran = asyncio.run(fixture_run.run())
    facts = [_settled(fact, ran.zipped) for fact in ran.facts]
    ran = msgspec.structs.replace(ran, facts=facts)
    epoch = facts[0].payload["epoch"]
    return {
        f"{FOLDER}/{name}.json": _text(make(ran)).replace(epoch, "epoch-1")
        for name, make in FIXTURES.items()
    }


def _settled(fact: Fact, zipped: set[str]) -> Fact:
    """Return a fact without the values of an export that differ between runs."""
    if fact.output_ref not in zipped:
        return fact
    text = json.dumps(as_json(fact)).replace(str(fact.output_ref), PACK)
    settled = msgspec.json.decode(text, type=Fact)
    payload = {**settled.payload, "sha256": MANIFEST}
    return msgspec.structs.replace(settled, payload=payload, refs={**settled.refs, "bytes": 4096})


def event(type_name: str) -> Callable[[fixture_run.Ran], JsonObject]:
    """Return a function that selects the first fact of a type."""
    return lambda ran: as_json(next(fact for fact in ran.facts if fact.type == type_name))


def snapshot(ran: fixture_run.Ran) -> JsonObject:
    """Return the snapshot that the read models compute from all facts."""
    model = ReadModel()
    model.fold_all(ran.facts)
    return model.snapshot(fixture_run.AT)


def trial_pack(ran: fixture_run.Ran) -> JsonObject:
    """Return the trajectory in the pack of a trial."""
    trial: JsonObject = json.loads(ran.trial[TRIAL])
    return trial


def trajectory(ran: fixture_run.Ran) -> JsonObject:
    """Return the trajectory in the pack of a trial."""
    trajectory: JsonObject = json.loads(ran.trial[TRAJECTORY])
    return trajectory


def as_json(fact: Fact) -> JsonObject:
    """Return a fact as it is stored in the log."""
    plain: JsonObject = msgspec.to_builtins(fact)
    return plain


def _text(document: JsonObject) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


FIXTURES: dict[str, Callable[[fixture_run.Ran], JsonObject]] = {
    "submit-turn-event": event("turn.submitted"),
    "tool-approval-action-required-event": event("action.required"),
    "task-retry-attempt-failed-event": event("task.attempt.failed"),
    "routing-single-candidate-event": event("routing.single_candidate"),
    "evidence-export-event": event("evidence.changed"),
    "thread-read-snapshot": snapshot,
    "benchmark-trial-pack": trial_pack,
    "benchmark-trial-trajectory": trajectory,
}
"""Function that makes each fixture from the facts of the run."""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
