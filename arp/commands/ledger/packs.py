"""What `arp evidence` does: make packs of evidence, check them, and print what is in them.

A pack is made by a server, which records it, or from a ledger file as it is.
"""

from __future__ import annotations

import secrets
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import click
import msgspec
from msgspec import Struct

from arp.audit.evidence.checking import Beside, Report, check_pack, compare_with_ledger
from arp.audit.evidence.export import (
    ExportRun,
    Order,
    write_new,
)
from arp.audit.evidence.fact_lines import Broken
from arp.audit.evidence.manifest import Gap, Manifest, Scope
from arp.audit.evidence.pack import NoPack, Pack
from arp.audit.evidence.pack_writer import ZIP
from arp.audit.evidence.trials import TRIAL, TrialPack, decode_trial
from arp.commands.ledger.file_reader import FileReader
from arp.commands.ledger.reader import ReaderError
from arp.commands.output import json_text, printable
from arp.ledger.payload_fields import ExportKind
from arp.protocol.json_value import JsonObject
from arp.protocol.safe_text import sanitise

# -- make ----------------------------------------------------------------------------------------

_SUFFIXES = {"pack": "evidence.zip", "case": "case.json", "review": "review.md"}

_KINDS: dict[str, ExportKind] = {"pack": "evidence", "case": "replay", "review": "review"}


class WrittenExport(Struct, frozen=True):
    """An export that was written."""

    path: Path
    sha256: str
    manifest: Manifest | None = None
    """Of a pack."""


class ExportOptions(Struct, frozen=True, kw_only=True):
    """What to export."""

    session: str
    form: str
    turn_id: str | None
    task_id: str | None
    no_outputs: bool


def export_session(
    options: ExportOptions,
    source: tuple[str, str | None, str | None],
    target: Path | None,
    *,
    as_json: bool,
) -> None:
    """Export a session, and print the result.

    Args:
        options: What to export.
        source: Address of a server, location of a ledger file (which is read if there is one),
            token.
        target: Where to write it; `None` picks a name in the working directory.
        as_json: Print the manifest of a pack as JSON.

    Raises:
        ReaderError, LocalError: There is nothing to export, or it cannot be read or written.
    """
    url, ledger, token = source
    target = target or Path(f"{_file_name(options.session)}.{_SUFFIXES[options.form]}")
    if ledger is None:
        written = _by_server(url, token, options, target)
    else:
        written = _from_file(ledger, options, target)
    if written.manifest is not None and as_json:
        click.echo(json_text(msgspec.json.encode(written.manifest)))
        return
    if written.manifest is not None:
        for line in manifest_lines(written.manifest):
            click.echo(line)
        click.echo(f"manifest sha256 {written.sha256}")
    click.echo(click.style(printable(str(written.path)), bold=True))


def _file_name(session: str) -> str:
    return "".join(one if one.isalnum() or one in "-_" else "_" for one in session)[:80]


def _by_server(url: str, token: str | None, options: ExportOptions, target: Path) -> WrittenExport:
    from arp.commands.ledger.server_reader import ServerReader

    if options.form == "pack" and target.suffix != ZIP:
        raise ReaderError(f"{target}: a server gives a zip; name it {target}{ZIP}")
    ids = {"sessionId": options.session, "turnId": options.turn_id, "taskId": options.task_id}
    params: JsonObject = {name: value for name, value in ids.items() if value is not None}
    if options.form == "pack":
        params["outputs"] = not options.no_outputs
    with closing(ServerReader(url, token)) as server:
        made = server.export(f"{_KINDS[options.form]}/export", params)
        server.download(made.file, target)
    if options.form != "pack":
        return WrittenExport(target, made.sha256)
    try:
        with Pack(target) as pack:
            return WrittenExport(target, made.sha256, pack.manifest)
    except NoPack as error:
        raise ReaderError(error.message) from error


def _from_file(ledger: str, options: ExportOptions, target: Path) -> WrittenExport:
    with closing(FileReader(ledger)) as reader:
        order = Order(
            session_id=options.session,
            epoch=reader.epoch(options.session),
            evidence_id=f"evidence-{secrets.token_hex(8)}",
            created_at=datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            kind=_KINDS[options.form],
            scope=Scope(turn_id=options.turn_id, task_id=options.task_id),
            has_outputs=not options.no_outputs,
        )
        run = ExportRun(order, target, reader.output_reader(options.session))
        with closing(run.passes()) as passes:
            for take in passes:
                facts = reader.checked_pages(options.session)
                with click.progressbar(facts, label="facts", file=sys.stderr) as pages:
                    for page in pages:
                        take(page)
        assert run.made is not None
        return WrittenExport(target, run.made.sha256, run.made.manifest)


# -- check ---------------------------------------------------------------------------------------


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


# -- lines for a person --------------------------------------------------------------------------


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
