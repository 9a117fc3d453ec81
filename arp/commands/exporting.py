"""`arp evidence export`: by a server, which notes it, or from a ledger file as it is."""

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

from arp.commands.fact_pages import Page, epoch_of, output_reader, pages
from arp.commands.file_ledger import FileLedger
from arp.commands.manifest_lines import manifest_lines
from arp.commands.source import Source, SourceError
from arp.commands.speaking import json_text, printable
from arp.evidence.documents import CaseExport, ReviewExport, write_new
from arp.evidence.export import EvidenceExport, Order, range_of
from arp.evidence.pack import NoPack, Pack
from arp.evidence.pack_writer import ZIP
from arp.ledger.exports.manifest import Manifest, Scope
from arp.protocol.json_value import JsonObject

_SUFFIXES = {"pack": "evidence.zip", "case": "case.json", "review": "review.md"}

_METHODS = {"pack": "evidence/export", "case": "replay/export", "review": "review/export"}


class Made(Struct, frozen=True):
    """What was exported."""

    path: Path
    sha256: str
    manifest: Manifest | None = None
    """Of a pack."""


class Wish(Struct, frozen=True, kw_only=True):
    """What is to be exported."""

    session: str
    form: str
    turn_id: str | None
    task_id: str | None
    no_outputs: bool

    @property
    def scope(self) -> Scope:
        """Gives what of the session is meant."""
        return Scope(turn_id=self.turn_id, task_id=self.task_id)


def export_session(
    wish: Wish, source: tuple[str, str | None, str | None], target: Path | None, *, as_json: bool
) -> None:
    """Exports a session, and tells what came of it.

    Args:
        wish: What is wanted.
        source: Address of a server, location of a ledger file (which is read if there is one),
            token.
        target: Where it shall lie; `None` gives it a name in the working directory.
        as_json: The manifest of a pack is told as JSON.

    Raises:
        SourceError, LocalError: There is nothing to export, or it cannot be read or written.
    """
    url, ledger, token = source
    target = target or Path(f"{_file_name(wish.session)}.{_SUFFIXES[wish.form]}")
    made = (
        _by_server(url, token, wish, target) if ledger is None else _from_file(ledger, wish, target)
    )
    if made.manifest is not None and as_json:
        click.echo(json_text(msgspec.json.encode(made.manifest)))
        return
    if made.manifest is not None:
        for line in manifest_lines(made.manifest):
            click.echo(line)
        click.echo(f"manifest sha256 {made.sha256}")
    click.echo(click.style(printable(str(made.path)), bold=True))


def _file_name(session: str) -> str:
    return "".join(one if one.isalnum() or one in "-_" else "_" for one in session)[:80]


def _by_server(url: str, token: str | None, wish: Wish, target: Path) -> Made:
    from arp.commands.served_exports import ask, fetch

    if wish.form == "pack" and target.suffix != ZIP:
        raise SourceError(f"{target}: a server gives a zip; name it {target}{ZIP}")
    ids = {"sessionId": wish.session, "turnId": wish.turn_id, "taskId": wish.task_id}
    params: JsonObject = {name: value for name, value in ids.items() if value is not None}
    if wish.form == "pack":
        params["outputs"] = not wish.no_outputs
    made = ask(url, token, _METHODS[wish.form], params)
    fetch(url, token, made.file, target)
    if wish.form != "pack":
        return Made(target, made.sha256)
    try:
        with Pack(target) as pack:
            return Made(target, made.sha256, pack.manifest)
    except NoPack as error:
        raise SourceError(error.message) from error


def _from_file(ledger: str, wish: Wish, target: Path) -> Made:
    with closing(FileLedger(ledger)) as source:
        order = _order(source, wish)
        if wish.form == "pack":
            return _pack(source, order, target, ledger)
        write_new(target, _document(source, order, wish.form))
        return Made(target, "")


def _order(source: Source, wish: Wish) -> Order:
    now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return Order(
        session_id=wish.session,
        epoch=epoch_of(source, wish.session),
        evidence_id=f"evidence-{secrets.token_hex(8)}",
        created_at=now,
        scope=wish.scope,
        has_outputs=not wish.no_outputs,
    )


def _pages(source: FileLedger, session_id: str) -> Iterator[Page]:
    """Give the facts of a session, each page when it was compared with the hashes that are kept.

    Raises:
        ChainBroken: A fact is not what it was when its hash was kept.
    """
    check = source.kept_check(session_id)
    for page in pages(source, session_id):
        check.take(fact for _, fact in page)
        yield page
    check.finish()


def _pack(source: FileLedger, order: Order, target: Path, ledger: str) -> Made:
    found = range_of(order.scope, _pages(source, order.session_id))
    with (
        EvidenceExport(order, target, found) as under_way,
        click.progressbar(
            _pages(source, order.session_id), label="facts", file=sys.stderr
        ) as told_pages,
    ):
        for page in told_pages:
            under_way.take(page)
        made = under_way.finish(output_reader(ledger, order.session_id))
        return Made(made.path, made.sha256, made.manifest)


def _document(source: FileLedger, order: Order, form: str) -> bytes:
    """Gives a case or a review."""
    found = range_of(order.scope, _pages(source, order.session_id))
    making = CaseExport(order.scope, found) if form == "case" else ReviewExport(order, found)
    with click.progressbar(
        _pages(source, order.session_id), label="facts", file=sys.stderr
    ) as told_pages:
        for page in told_pages:
            making.take(page)
    return making.finish()
