"""`arp evidence export`: by a server, which records it, or from a ledger file as it is."""

from __future__ import annotations

import secrets
import sys
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import click
import msgspec
from msgspec import Struct

from arp.commands.file_reader import FileReader
from arp.commands.output import json_text, printable
from arp.commands.pack_lines import manifest_lines
from arp.commands.reader import ReaderError
from arp.evidence.export import CaseExport, EvidenceExport, Order, ReviewExport, range_of, write_new
from arp.evidence.manifest import Manifest, Scope
from arp.evidence.pack import NoPack, Pack
from arp.evidence.pack_writer import ZIP
from arp.protocol.json_value import JsonObject

_SUFFIXES = {"pack": "evidence.zip", "case": "case.json", "review": "review.md"}

_METHODS = {"pack": "evidence/export", "case": "replay/export", "review": "review/export"}


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
    from arp.commands.server_reader import ServerReader

    if options.form == "pack" and target.suffix != ZIP:
        raise ReaderError(f"{target}: a server gives a zip; name it {target}{ZIP}")
    ids = {"sessionId": options.session, "turnId": options.turn_id, "taskId": options.task_id}
    params: JsonObject = {name: value for name, value in ids.items() if value is not None}
    if options.form == "pack":
        params["outputs"] = not options.no_outputs
    with closing(ServerReader(url, token)) as server:
        made = server.export(_METHODS[options.form], params)
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
        order = _order(reader, options)
        if options.form == "pack":
            return _write_pack(reader, order, target)
        write_new(target, _document(reader, order, options.form))
        return WrittenExport(target, "")


def _order(reader: FileReader, options: ExportOptions) -> Order:
    now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return Order(
        session_id=options.session,
        epoch=reader.epoch(options.session),
        evidence_id=f"evidence-{secrets.token_hex(8)}",
        created_at=now,
        scope=Scope(turn_id=options.turn_id, task_id=options.task_id),
        has_outputs=not options.no_outputs,
    )


def _write_pack(reader: FileReader, order: Order, target: Path) -> WrittenExport:
    found = range_of(order.scope, reader.checked_pages(order.session_id))
    with EvidenceExport(order, target, found) as export:
        _feed(reader, order, export)
        pack = export.finish(reader.output_reader(order.session_id))
        return WrittenExport(pack.path, pack.sha256, pack.manifest)


def _document(reader: FileReader, order: Order, form: str) -> bytes:
    """Return a case or a review."""
    found = range_of(order.scope, reader.checked_pages(order.session_id))
    export = CaseExport(order.scope, found) if form == "case" else ReviewExport(order, found)
    _feed(reader, order, export)
    return export.finish()


def _feed(
    reader: FileReader, order: Order, export: EvidenceExport | CaseExport | ReviewExport
) -> None:
    """Give an export every fact, with a progress bar."""
    facts = reader.checked_pages(order.session_id)
    with click.progressbar(facts, label="facts", file=sys.stderr) as pages:
        for page in pages:
            export.take(page)
