"""What a manifest says, as lines for a person."""

from __future__ import annotations

import click

from arp.commands.speaking import printable
from arp.ledger.exports.manifest import Gap, Manifest


def manifest_lines(manifest: Manifest) -> list[str]:
    """Gives what a manifest says, as lines for a person."""
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
    named = click.style(f"{'gap':20}", fg="yellow")
    return f"  {named} {printable(gap.part)}: {printable(gap.reason)}{where}"
