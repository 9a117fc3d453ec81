"""What the pack of a benchmark trial says of it, as lines for a person."""

from __future__ import annotations

from collections.abc import Iterator

from arp.commands.speaking import printable
from arp.ledger.exports.trial_pack import TrialPack
from arp.protocol.json_value import JsonObject


def trial_lines(trial: TrialPack) -> list[str]:
    """Return what a trial was of, what came of it, and where its parts lie."""
    lines = [f"trial {printable(str(trial.benchmark.get('trialId', 'unknown')))}"]
    if trial.status is not None:
        lines[0] += f", {printable(trial.status)}"
    for name, part in (
        ("benchmark", trial.benchmark),
        ("reward", trial.reward),
        ("metrics", trial.metrics),
        ("decision", trial.decision_inputs),
        ("refs", trial.refs),
    ):
        lines += _lines_of(name, part)
    return lines + [f"  {'missing':10} {printable(name)}" for name in trial.missing]


def _lines_of(name: str, part: JsonObject) -> Iterator[str]:
    for field, value in part.items():
        if field != "trialId" and not isinstance(value, dict | list):
            yield f"  {name:10} {printable(field)}: {printable(str(value))}"
