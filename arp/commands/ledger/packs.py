"""The work of `arp evidence`: create packs of evidence, check them, and print their content.

A server creates a pack and records it, or this process creates it from a ledger file.
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

from arp.audit.evidence.checking import LedgerComparison, Report, check_pack, compare_with_ledger
from arp.audit.evidence.export import (
    ExportRun,
    Order,
    write_new,
)
from arp.audit.evidence.fact_lines import PackDefect
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

# -- create --------------------------------------------------------------------------------------

_SUFFIXES = {"pack": "evidence.zip", "case": "case.json", "review": "review.md"}

_KINDS: dict[str, ExportKind] = {"pack": "evidence", "case": "replay", "review": "review"}


class WrittenExport(Struct, frozen=True):
    """An export that was written."""

    path: Path
    sha256: str
    manifest: Manifest | None = None
    """Manifest, if the export is a pack."""


class ExportOptions(Struct, frozen=True, kw_only=True):
    """The selection and the form of an export."""

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
        options: Selection and form of the export.
        source: Address of a server, location of a ledger file, and token. If there is a ledger
            file, the server is not asked.
        target: File to write; `None` selects a name in the working directory.
        as_json: Whether to print the manifest of a pack as JSON.

    Raises:
        ReaderError, LocalError: There is nothing to export, or the session cannot be read, or the
            file cannot be written.
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
        export = server.export(f"{_KINDS[options.form]}/export", params)
        server.download(export.file, target)
    if options.form != "pack":
        return WrittenExport(target, export.sha256)
    try:
        with Pack(target) as pack:
            return WrittenExport(target, export.sha256, pack.manifest)
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
            # An export may read the facts several times; each pass has its own function.
            for process_page in passes:
                facts = reader.checked_pages(options.session)
                with click.progressbar(facts, label="facts", file=sys.stderr) as pages:
                    for page in pages:
                        process_page(page)
        assert run.made is not None
        return WrittenExport(target, run.made.sha256, run.made.manifest)


# -- check ---------------------------------------------------------------------------------------


def verify_pack(path: Path, expected: str | None, ledger: str | None) -> Report:
    """Check a pack.

    Args:
        path: Path of the pack.
        expected: SHA-256 that the manifest must have; `None` if it is unknown.
        ledger: Location of the ledger file to compare the pack with; `None` for no comparison.

    Raises:
        NoPack: The path is not a pack that can be checked.
        ReaderError: The ledger cannot be read.
    """
    with Pack(path) as pack:
        report = _check(pack)
        comparison = (
            _compare_with(ledger, pack)
            if ledger is not None
            else LedgerComparison([], is_noted=False)
        )
    broken = report.broken + comparison.broken
    is_right = expected is not None and expected.lower() == report.manifest_sha256
    if expected is not None and not is_right:
        broken.append(PackDefect("manifest.json", f"its SHA-256 is {report.manifest_sha256}"))
    # The manifest has the hashes of all parts. If it is known to be the exported one, all parts
    # are proven too.
    unproven = None if is_right or comparison.is_noted else report.unproven
    return msgspec.structs.replace(report, broken=broken, unproven=unproven)


def _check(pack: Pack) -> Report:
    size = sum(part.bytes for part in pack.manifest.parts)
    with click.progressbar(length=size, label="checking", file=sys.stderr) as bar:
        return check_pack(pack, bar.update)


def _compare_with(ledger: str, pack: Pack) -> LedgerComparison:
    """Compare a pack with the session in a ledger file."""
    session_id = pack.manifest.chain.session_id
    with closing(FileReader(ledger)) as reader:
        epoch, heads = reader.epoch(session_id), reader.heads(session_id)
        return compare_with_ledger(pack, epoch, reader.events(session_id, 0, ()), heads)


def print_report(report: Report, *, as_json: bool) -> None:
    """Print the result of a check."""
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
            "the hashes agree with the manifest, but the manifest itself is not proven; give its "
            "hash with --sha256, or the ledger of the server that created the pack with --ledger"
        )
    elif not report.broken:
        click.echo(
            click.style("good  ", fg="green") + f"{report.facts} facts, {report.parts} parts"
        )
    click.echo(f"manifest sha256 {report.manifest_sha256}")


def show_pack(path: Path, part: str | None, target: Path | None, *, as_json: bool) -> None:
    """Print the content of a pack, or one of its parts.

    Args:
        path: Path of the pack.
        part: Name of the part to print; `None` prints the manifest.
        target: File to write the part to, byte for byte, instead of printing it.
        as_json: Whether to print the manifest as JSON.

    Raises:
        LocalError: There is no such pack or no such part, or the file cannot be written.
    """
    with Pack(path) as pack:
        if part is not None and target is not None:
            write_new(target, pack.read(part))
        elif part is not None:
            click.echo(_visible_text(part, pack.read(part)), nl=False)
        elif as_json:
            click.echo(json_text(msgspec.json.encode(pack.manifest)))
        else:
            lines = manifest_lines(pack.manifest)
            if pack.manifest.kind == "benchmark":
                lines += trial_lines(decode_trial(pack.read(TRIAL)))
            for line in lines:
                click.echo(line)


def _visible_text(part: str, data: bytes) -> str:
    """Return a part as text with every character visible. The value of JSON does not change."""
    if part.endswith((".json", ".jsonl")):
        return json_text(data)
    return sanitise(data.decode("utf-8", "replace"))


# -- lines for a person --------------------------------------------------------------------------


def manifest_lines(manifest: Manifest) -> list[str]:
    """Return a manifest as lines: its scope, the state of each section and output, and its gaps."""
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
    """Return a trial as lines: its dataset and task, its result, and its references."""
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
