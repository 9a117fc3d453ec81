"""`arp replay CASE --agent`: run a recorded case again, and compare."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path

import click
import msgspec

from arp.app import App
from arp.commands.output import fail, json_text, printable
from arp.control.rerun import Rerun
from arp.ledger.exports.replay_case import Case, Difference, TurnCase, decode_case
from arp.server.application import Application
from arp.server.target import TargetError, find

DIFFERENT = 1
"""Exit code if a case did not come out the same."""


def rerun(place: Path, agent: str, turn_s: float, *, as_json: bool) -> int:
    """Run a case again and print the first difference; return the exit code.

    Args:
        place: Of the case.
        agent: The app that runs it.
        turn_s: How long a turn may take, in seconds.
        as_json: Print the result as JSON.

    Raises:
        NoCase: There is none.
        ArpError: An input is refused that was accepted before.
    """
    case = _case(place)
    try:
        app = find(agent, App)
    except TargetError as error:
        fail(str(error))
    application = Application(app.served(ledger="memory:"))
    with click.progressbar(length=len(case.turns), label="turns", file=sys.stderr) as bar:
        difference = asyncio.run(
            _first_difference(application, case, turn_s, lambda _: bar.update(1))
        )
    if as_json:
        document = {"difference": difference, "turns": len(case.turns)}
        click.echo(json_text(msgspec.json.encode(document)))
    else:
        _print_result(case, difference)
    return 0 if difference is None else DIFFERENT


async def _first_difference(
    application: Application, case: Case, turn_s: float, advance: Callable[[TurnCase], object]
) -> Difference | None:
    try:
        again = Rerun(await application.control(), case, turn_s)
        return await again.first_difference(advance)
    finally:
        await application.aclose()


def _case(place: Path) -> Case:
    try:
        return decode_case(place.read_bytes())
    except OSError as error:
        fail(f"{place}: {error.strerror}")


def _print_result(case: Case, difference: Difference | None) -> None:
    if difference is None:
        click.echo(click.style("same  ", fg="green") + f"{len(case.turns)} turns")
        return
    click.echo(
        click.style("differs ", fg="red")
        + f"turn {printable(difference.turn_id)}, fact {difference.sequence}: "
        + printable(difference.where)
    )
    for name, value in (("expected", difference.expected), ("found", difference.found)):
        click.echo(f"  {name:9}{printable(msgspec.json.encode(value).decode())[:400]}")
