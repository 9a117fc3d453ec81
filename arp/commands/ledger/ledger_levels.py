"""`arp conformance ledger`: read facts and snapshots, judge them, and print the report."""

from __future__ import annotations

import json
from contextlib import closing

import click
import msgspec

from arp.audit.models.read_model import ReadModel
from arp.commands.ledger.reader import LedgerReader
from arp.commands.ledger.reader_options import open_reader
from arp.commands.output import fail, json_text, printable
from arp.conformance.ledger.ledger_levels import LEVELS, LedgerJudge, LedgerReport, judge_lines
from arp.ledger.fact import decode
from arp.protocol.errors import LocalError
from arp.store.location import ledger_to_read

MOST_SESSIONS = 1000
"""Maximum number of sessions to read if the caller names none; the newest are read."""

SHOWN = 20
"""Maximum number of faults to print as text."""

_LINES = (".jsonl", ".ndjson", ".json")


def judge_ledger(source: str, sessions: tuple[str, ...], token: str | None) -> LedgerReport:
    """Judge a ledger and return the report with the level that it reaches.

    Args:
        source: SOURCE of `arp conformance ledger`.
        sessions: Ids of the sessions to judge; empty means all.
        token: Token for the server.

    Raises:
        ReaderError: The ledger cannot be read.
    """
    judge = LedgerJudge()
    if source == "-" or source.endswith(_LINES):
        try:
            with click.open_file(source, "rb") as file:
                judge_lines(judge, file)
        except OSError as error:
            fail(f"{source}: {error.strerror}")
        return judge.report()
    is_server = source.startswith(("http://", "https://"))
    ledger = None if is_server else ledger_to_read(source)
    with closing(open_reader(source, ledger, token)) as reader:
        names = sessions or tuple(one.session_id for one in reader.sessions(MOST_SESSIONS))
        for name in names:
            _judge_session(judge, reader, name)
    return judge.report()


def _judge_session(judge: LedgerJudge, reader: LedgerReader, session_id: str) -> None:
    """Judge the facts of a session, and the snapshot that is built from them."""
    model: ReadModel | None = ReadModel()
    for body in reader.events(session_id, 0, ()):
        judge_lines(judge, [body])
        try:
            if model is not None:
                model.fold(decode(body))
        except (msgspec.DecodeError, LocalError):
            model = None  # `judge_lines` has recorded the fault; there is no snapshot of such a log
    if model is not None:
        judge.check(json.loads(json.dumps(model.snapshot())))


def print_report(report: LedgerReport, *, as_json: bool) -> None:
    """Print a report."""
    if as_json:
        click.echo(json_text(msgspec.json.encode(report)))
        return
    is_reached = report.level is not None
    for level in LEVELS:
        count = report.fault_counts[level]
        is_reached = is_reached and count == 0
        word, colour = ("reached", "green") if is_reached else ("missed", "red")
        counted = f"  {count} faults" if count else ""
        click.echo(f"{level:14}{click.style(f'{word:7}', fg=colour)}{counted}")
    for fault in report.faults[:SHOWN]:
        where = f"{fault.where}: " if fault.where else ""
        place = f"{fault.session_id} {fault.sequence} {fault.about}"
        click.echo(f"  {printable(f'{place}: {where}{fault.problem}')}")
    more = sum(report.fault_counts.values()) - min(len(report.faults), SHOWN)
    if more:
        click.echo(f"  … and {more} more; --json has up to 1,000")
    click.echo(f"{report.facts} facts of {len(report.types)} types, {report.snapshots} snapshots")
