"""`arp events`: what happened in a session, fact by fact."""

from __future__ import annotations

import shutil
import sys
from contextlib import closing

import click
import msgspec

from arp.commands.fact_line import fact_line
from arp.commands.reading import open_source, reading_options
from arp.commands.source import SourceError
from arp.commands.speaking import CONTEXT, fail, json_text, printable
from arp.ledger.chain import Checked

BAD = 1
"""Exit code of `--verify` if facts are not what they were."""


@click.command(context_settings=CONTEXT)
@click.argument("session")
@reading_options
@click.option("--after", type=click.IntRange(0), default=0, help="Only facts behind this one.")
@click.option(
    "--type", "types", multiple=True, help="Only this type (tool.failed) or family. Repeatable."
)
@click.option("--follow", "-f", is_flag=True, help="Go on with each new fact, until Ctrl-C.")
@click.option(
    "--verify",
    is_flag=True,
    help="Compare the facts with the hashes that the ledger keeps of them.",
)
@click.option("--json", "as_json", is_flag=True, help="Facts as they are stored, one a line.")
def events(
    session: str,
    url: str,
    ledger: str | None,
    token: str | None,
    after: int,
    types: tuple[str, ...],
    follow: bool,
    verify: bool,
    as_json: bool,
) -> None:
    r"""Show what happened in SESSION.

    \b
      arp events my-session --follow
      arp events my-session --type tool --type turn.failed
      arp events my-session --ledger app.py --json
      arp events my-session --ledger app.py --verify
    """
    width = max(shutil.get_terminal_size((100, 24)).columns, 40)
    try:
        with closing(open_source(url, ledger, token)) as source:
            if verify:
                found = source.verify(session)
                _tell(found, as_json=as_json)
                raise SystemExit(BAD if found.broken is not None else 0)
            read = source.follow if follow else source.events
            for fact in read(session, after, types):
                click.echo(json_text(fact) if as_json else fact_line(fact, width))
                if follow:
                    sys.stdout.flush()
    except SourceError as error:
        fail(str(error))


def _tell(found: Checked, *, as_json: bool) -> None:
    """Say what came of comparing a session with the hashes that are kept of it."""
    if as_json:
        click.echo(json_text(msgspec.json.encode(found)))
        return
    if found.broken is not None:
        click.echo(click.style("bad   ", fg="red") + printable(found.broken.reason))
        click.echo(f"first bad sequence: {found.broken.sequence}")
        return
    click.echo(click.style("good  ", fg="green") + f"{found.facts} facts")
    if found.kept_through < found.facts:
        first = found.kept_through + 1
        click.echo(f"no hash is kept yet of the facts {first} to {found.facts}")
    click.echo(f"head {found.facts} {found.head}")
