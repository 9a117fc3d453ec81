"""`arp sessions`: list the sessions; `arp delete`: delete one."""

from __future__ import annotations

import shutil
from contextlib import closing

import click
import msgspec

from arp.commands.ledger.reader import ListedSession
from arp.commands.ledger.reader_options import (
    DEFAULT_URL,
    URL_VARIABLE,
    open_reader,
    reader_options,
)
from arp.commands.output import CONTEXT, cut, json_text, printable

MOST = 200
"""Maximum number of sessions to list."""


@click.command(context_settings=CONTEXT)
@reader_options
@click.option(
    "--limit",
    type=click.IntRange(1, MOST),
    default=50,
    show_default=True,
    help="Maximum number of sessions to list.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
def sessions(url: str, ledger: str | None, token: str | None, limit: int, as_json: bool) -> None:
    r"""List sessions, newest first.

    \b
      arp sessions
      arp sessions --url http://127.0.0.1:8090 --json
      arp sessions --ledger app.py
    """
    with closing(open_reader(url, ledger, token)) as reader:
        rows = reader.sessions(limit)
    if as_json:
        for row in rows:
            click.echo(json_text(msgspec.json.encode(row)))
        return
    for line in table(rows, shutil.get_terminal_size((100, 24)).columns):
        click.echo(line)


@click.command(context_settings=CONTEXT)
@click.argument("session")
@click.option(
    "--url",
    envvar=URL_VARIABLE,
    default=DEFAULT_URL,
    show_default=True,
    help="Server with the session.  [env: ARP_URL]",
)
@click.option("--token", envvar="ARP_TOKEN", help="The server's token.  [env: ARP_TOKEN]")
def delete(session: str, url: str, token: str | None) -> None:
    r"""Delete SESSION: its facts, its files, and the data of runtimes about it.

    The exit code is 1 if a runtime could not delete its data.

    \b
      arp delete my-session
      arp delete my-session --url http://127.0.0.1:8090
    """
    from arp.commands.ledger.server_reader import ServerReader

    with closing(ServerReader(url, token)) as server:
        remains = server.delete(session)
    click.echo(f"deleted {printable(session)}")
    for one in remains:
        retry = "; the server tries again" if one.is_retried else ""
        data = printable(f"{one.keeper}: session {one.id}")
        click.echo(f"{data} is still there: {printable(one.reason)}{retry}", err=True)
    if remains:
        raise SystemExit(1)


def table(rows: list[ListedSession], width: int) -> list[str]:
    """Return sessions as lines for a terminal with `width` columns."""
    if not rows:
        return ["no sessions"]
    id_width = max(len("SESSION"), *(len(printable(row.session_id)) for row in rows))
    head = f"{'SESSION':{id_width}}  {'UPDATED':19}  {'TURNS':>5}  {'FACTS':>7}  "
    lines = [click.style(f"{head}TITLE", bold=True)]
    for row in rows:
        when = row.updated_at[:19].replace("T", " ")
        start = f"{printable(row.session_id):{id_width}}  {printable(when):19}  "
        counts = f"{row.turns:>5}  {row.sequence:>7}  "
        title = cut(printable(row.title), max(width - len(start) - len(counts), 20))
        mark = click.style(" ●", fg="green") if row.active else ""
        lines.append(f"{click.style(start, fg='cyan')}{counts}{title}{mark}")
    return lines
