"""`arp evidence verify` and `show`: check a pack, and print what is in it."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path

import click
import msgspec

from arp.commands.file_reader import FileReader
from arp.commands.output import json_text, printable
from arp.commands.pack_lines import manifest_lines, trial_lines
from arp.evidence.checking import Beside, Report, check_pack, compare_with_ledger
from arp.evidence.export import write_new
from arp.evidence.fact_lines import Broken
from arp.evidence.pack import Pack
from arp.evidence.trials import TRIAL, decode_trial
from arp.protocol.json_value import JsonObject
from arp.protocol.safe_text import sanitise


def verified(place: Path, expected: str | None, ledger: str | None) -> Report:
    """Check a pack.

    Args:
        place: Of the pack.
        expected: SHA-256 that its manifest must have.
        ledger: Of the file to compare it with.

    Raises:
        NoPack: There is none that could be checked.
        ReaderError: The ledger cannot be read.
    """
    with Pack(place) as opened:
        report = _checked(opened)
        beside = _compared(opened, ledger) if ledger is not None else Beside([], is_noted=False)
    broken = report.broken + beside.broken
    is_right = expected is not None and expected.lower() == report.manifest_sha256
    if expected is not None and not is_right:
        broken.append(Broken("manifest.json", f"its SHA-256 is {report.manifest_sha256}"))
    # A manifest that is known to be the exported one proves all of its parts.
    unproven = None if is_right or beside.is_noted else report.unproven
    return msgspec.structs.replace(report, broken=broken, unproven=unproven)


def _checked(pack: Pack) -> Report:
    size = sum(part.bytes for part in pack.manifest.parts)
    with click.progressbar(length=size, label="checking", file=sys.stderr) as bar:
        return check_pack(pack, bar.update)


def _compared(pack: Pack, ledger: str) -> Beside:
    session_id = pack.manifest.chain.session_id
    with closing(FileReader(ledger)) as reader:
        epoch, heads = reader.epoch(session_id), reader.heads(session_id)
        return compare_with_ledger(pack, epoch, reader.events(session_id, 0, ()), heads)


def print_report(report: Report, *, as_json: bool) -> None:
    """Print what a check found."""
    if as_json:
        document: JsonObject = {**msgspec.to_builtins(report), "first_bad": report.first_bad}
        click.echo(json_text(msgspec.json.encode(document)))
        return
    for one in report.broken:
        click.echo(click.style("bad   ", fg="red") + printable(str(one)))
    if report.first_bad is not None:
        click.echo(f"first bad sequence: {report.first_bad}")
    if report.unproven is not None:
        click.echo(click.style("unproven  ", fg="yellow") + report.unproven)
        click.echo(
            "their hashes are those of the manifest; give its own: --sha256, or --ledger of a "
            "server that made the pack"
        )
    elif not report.broken:
        click.echo(
            click.style("good  ", fg="green") + f"{report.facts} facts, {report.parts} parts"
        )
    click.echo(f"manifest sha256 {report.manifest_sha256}")


def show_pack(place: Path, part: str | None, target: Path | None, *, as_json: bool) -> None:
    """Print what is in a pack, or one of its parts.

    Args:
        place: Of the pack.
        part: To print; `None` prints the manifest.
        target: Write the part there, byte for byte, and do not print it.
        as_json: Print the manifest as JSON.

    Raises:
        LocalError: There is no such pack, or no such part; or it cannot be written.
    """
    with Pack(place) as opened:
        if part is not None and target is not None:
            write_new(target, opened.read(part))
        elif part is not None:
            click.echo(_shown(part, opened.read(part)), nl=False)
        elif as_json:
            click.echo(json_text(msgspec.json.encode(opened.manifest)))
        else:
            lines = manifest_lines(opened.manifest)
            if opened.manifest.kind == "benchmark":
                lines += trial_lines(decode_trial(opened.read(TRIAL)))
            for line in lines:
                click.echo(line)


def _shown(part: str, data: bytes) -> str:
    """Return a part as text in which every character is visible; JSON keeps its value."""
    if part.endswith((".json", ".jsonl")):
        return json_text(data)
    return sanitise(data.decode("utf-8", "replace"))
