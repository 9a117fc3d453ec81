"""`arp events`: what happened in a session, with a line for each fact."""

from __future__ import annotations

import shutil
import sys
from contextlib import closing
from typing import Any

import click
import msgspec

from arp.commands.ledger.reader_options import open_reader, reader_options
from arp.commands.output import CONTEXT, cut, json_text, printable
from arp.ledger.chain import ChainCheck
from arp.ledger.fact import Fact, decode

BAD = 1
"""Exit code of `--verify` if facts have changed."""

_UNNAMED = ("error", "reason", "text", "message", "preview", "objective", "title", "decision")
"""Fields of a payload that are printed without their names."""

_ABOUT = ("turn_id", "task_id", "run_id", "tool_call_id", "action_id", "process_id", "job_item_id")
"""Ids that may be printed, in this order; the first two that a fact has are printed."""

_BAD = ("failed", "error", "blocked", "violation", "lost", "timed_out", "not_possible", "hit")
_GOOD = ("completed", "result", "exported")

_COLOURS = {
    "turn": "cyan",
    "tool": "blue",
    "process": "blue",
    "action": "yellow",
    "permission": "yellow",
    "task": "magenta",
    "job": "magenta",
    "model": "bright_black",
    "reasoning": "bright_black",
    "channel": "bright_black",
}


@click.command(context_settings=CONTEXT)
@click.argument("session")
@reader_options
@click.option(
    "--after", type=click.IntRange(0), default=0, help="Only facts after this sequence number."
)
@click.option(
    "--type",
    "types",
    multiple=True,
    help="Only this type (tool.failed) or family (tool). Repeatable.",
)
@click.option("--follow", "-f", is_flag=True, help="Continue with new facts until Ctrl-C.")
@click.option(
    "--verify",
    is_flag=True,
    help="Compare the facts with the hashes in the ledger.",
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print the stored facts, one JSON object per line."
)
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
    with closing(open_reader(url, ledger, token)) as reader:
        if verify:
            found = reader.verify(session)
            _print_check(found, as_json=as_json)
            raise SystemExit(BAD if found.broken is not None else 0)
        read = reader.follow if follow else reader.events
        for fact in read(session, after, types):
            click.echo(json_text(fact) if as_json else fact_line(fact, width))
            if follow:
                sys.stdout.flush()


def _print_check(found: ChainCheck, *, as_json: bool) -> None:
    """Print the result of comparing a session with its stored hashes."""
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
        click.echo(f"no hash is stored yet for the facts {first} to {found.facts}")
    click.echo(f"head {found.facts} {found.head}")


def fact_line(body: bytes, width: int) -> str:
    """Return a fact as a coloured line for a terminal. Bytes that are not a fact become text.

    Args:
        body: The fact as it is stored.
        width: Number of columns of the terminal, at least 40.
    """
    try:
        fact = decode(body)
    except msgspec.DecodeError:
        return cut(printable(body.decode("utf-8", "replace")), width)
    sequence, time = f"{fact.sequence:>7}", fact.timestamp[11:23]
    about = " ".join(_about(fact))
    head = f"{sequence}  {time:12}  {fact.type:24} "
    content = cut(f"{about}  {gist(fact)}".strip(), max(width - len(head), 20))
    label = click.style(f"{printable(fact.type):24}", fg=_colour(fact.type))
    return f"{sequence}  {click.style(f'{printable(time):12}', dim=True)}  {label} {content}"


def _about(fact: Fact) -> list[str]:
    return [printable(getattr(fact, name)) for name in _ABOUT if getattr(fact, name)][:2]


def _colour(name: str) -> str | None:
    if name.endswith(_BAD):
        return "red"
    if name.endswith(_GOOD):
        return "green"
    return _COLOURS.get(name.partition(".")[0])


def gist(fact: Fact) -> str:
    """Return a summary of the payload of a fact."""
    payload: dict[str, Any] = fact.payload
    parts = [fact.status_reason or ""]
    user_input = payload.get("input")
    if isinstance(user_input, dict):
        parts.append(_short(user_input.get("data")))
    for name, value in payload.items():
        if name in ("input", "component", "changes") or value in (None, "", [], {}):
            continue
        parts.append(_short(value) if name in _UNNAMED else f"{name}={_short(value)}")
    return " ".join(part for part in parts if part)


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return cut(printable(text), 120)
