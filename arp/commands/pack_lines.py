"""The manifest of a pack, and the trial that a pack may be about, as lines for a person."""

from __future__ import annotations

from collections.abc import Iterator

import click

from arp.commands.output import printable
from arp.evidence.manifest import Gap, Manifest
from arp.evidence.trials import TrialPack
from arp.protocol.json_value import JsonObject


def manifest_lines(manifest: Manifest) -> list[str]:
    """Return what a manifest says: its scope, the state of each section and output, and gaps."""
    chain = manifest.chain
    lines = [
        click.style(f"{manifest.kind} {printable(manifest.evidence_id)}", bold=True),
        f"session {printable(chain.session_id)}, facts {chain.first} to {chain.through}",
        f"made {printable(manifest.created_at)}",
    ]
    for part, state in manifest.sections.items():
        colour = {"exported": "green", "missing_correlation": "yellow"}.get(state)
        lines.append(f"  {click.style(f'{state:20}', fg=colour)} {printable(part)}")
    for output in manifest.outputs:
        size = f"{output.bytes} bytes" if output.bytes is not None else ""
        lines.append(f"  {output.state:20} output {printable(output.output_ref)} {size}")
    return lines + [_gap_line(gap) for gap in manifest.gaps]


def _gap_line(gap: Gap) -> str:
    places = ", ".join(map(str, gap.sequences)) + (" …" if gap.count > len(gap.sequences) else "")
    where = f" (facts {places})" if gap.sequences else ""
    label = click.style(f"{'gap':20}", fg="yellow")
    return f"  {label} {printable(gap.part)}: {printable(gap.reason)}{where}"


def trial_lines(trial: TrialPack) -> list[str]:
    """Return the dataset and task of a trial, its result, and where its parts are."""
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
        lines += _field_lines(name, part)
    return lines + [f"  {'missing':10} {printable(name)}" for name in trial.missing]


def _field_lines(name: str, part: JsonObject) -> Iterator[str]:
    for field, value in part.items():
        if field != "trialId" and not isinstance(value, dict | list):
            yield f"  {name:10} {printable(field)}: {printable(str(value))}"
