"""`arp feedback`: the ratings of answers by users, as lines, JSON or CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from contextlib import closing

import click
import msgspec

from arp.commands.ledger.reader import LedgerReader
from arp.commands.ledger.reader_options import open_reader, reader_options
from arp.commands.ledger.sessions import MOST
from arp.commands.output import CONTEXT, json_text, printable
from arp.ledger.fact import decode

COLUMNS = ("at", "session", "turn", "rating", "comment")


@click.command(context_settings=CONTEXT)
@click.argument("session", required=False)
@reader_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV with a header.")
def feedback(
    session: str | None,
    url: str,
    ledger: str | None,
    token: str | None,
    as_json: bool,
    as_csv: bool,
) -> None:
    r"""Show how users rated answers, in SESSION or in the newest sessions.

    \b
      arp feedback --ledger app.py
      arp feedback --ledger app.py --csv > feedback.csv
      arp feedback my-session --json
    """
    with closing(open_reader(url, ledger, token)) as reader:
        names = [session] if session else [one.session_id for one in reader.sessions(MOST)]
        rows = [row for name in names for row in _newest_feedback(reader, name)]
    if as_csv:
        out = io.StringIO()
        writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        click.echo(out.getvalue(), nl=False)
        return
    for row in rows:
        if as_json:
            click.echo(json_text(msgspec.json.encode(row)))
        else:
            when = row["at"][:19].replace("T", " ")
            click.echo(printable(" ".join([when, *(row[name] for name in COLUMNS[1:])]).rstrip()))
    if not rows and not as_json:
        click.echo("no feedback")


def _newest_feedback(reader: LedgerReader, session_id: str) -> Iterator[dict[str, str]]:
    """Yield the newest feedback on each turn of a session, except withdrawn feedback."""
    newest: dict[str, dict[str, str]] = {}
    for body in reader.events(session_id, 0, ("session.updated",)):
        fact = decode(body)
        given = fact.payload.get("feedback")
        if not isinstance(given, dict) or fact.turn_id is None:
            continue
        newest.pop(fact.turn_id, None)
        if given.get("rating") != "none":
            newest[fact.turn_id] = {
                "at": fact.timestamp,
                "session": session_id,
                "turn": fact.turn_id,
                "rating": str(given.get("rating", "")),
                "comment": str(given.get("comment", "")),
            }
    yield from newest.values()
