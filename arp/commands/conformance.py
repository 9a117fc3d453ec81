"""`arp conformance`: check a runtime against its contract, or the level of a ledger."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from arp.commands.output import CONTEXT, fail, printable
from arp.commands.target import TargetError, find_callable

if TYPE_CHECKING:
    from arp.conformance.runtime.case import ContractCase
    from arp.conformance.runtime.runtime_under_test import RuntimeFactory

FAILED = 1
"""Exit code if a case failed."""


@click.group(context_settings=CONTEXT)
def conformance() -> None:
    """Check a runtime or a ledger of your own."""


@conformance.command("runtime", context_settings=CONTEXT)
@click.argument("target", metavar="MODULE:FACTORY")
@click.option("--case", "names", multiple=True, help="Only this case. Repeatable.")
@click.option(
    "--matrix",
    type=click.Path(path_type=Path, dir_okay=False),
    help="JSON file to add the outcomes to; it may have those of other runtimes.",
)
def runtime_(target: str, names: tuple[str, ...], matrix: Path | None) -> None:
    r"""Run every case of the contract of agent runtimes.

    FACTORY gets an empty directory and returns a RuntimeUnderTest (arp.conformance). The outcome of
    a case is native, synthetic (ARP made up an event that the case needs), Unimplemented or failed.
    The exit code is 1 if a case failed.

    \b
      arp conformance runtime my_runtime.conformance:factory
      arp conformance runtime checks.py:factory --case cancel --matrix outcomes.json
    """
    from arp.conformance.runtime.runtime_cases import CASES

    try:
        factory = find_callable(target)
    except TargetError as error:
        fail(str(error))
    known = {case.name: case for case in CASES}
    if unknown := sorted(set(names) - known.keys()):
        fail(f"--case: there is no {unknown[0]}; there are {', '.join(known)}", 2)
    cases = tuple(case for case in CASES if not names or case.name in names)
    if not asyncio.run(_print_outcomes(factory, cases, matrix)):
        raise SystemExit(FAILED)


@conformance.command("ledger", context_settings=CONTEXT)
@click.argument("source")
@click.option("--session", "sessions", multiple=True, help="Only this session. Repeatable.")
@click.option("--token", envvar="ARP_TOKEN", help="The server's token.  [env: ARP_TOKEN]")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
def ledger_(source: str, sessions: tuple[str, ...], token: str | None, as_json: bool) -> None:
    r"""Print the level of the Lime profile that a ledger reaches, and the faults of higher levels.

    SOURCE is a file of facts and snapshots (JSON, one per line; - is the standard input), a ledger
    (sqlite:PATH, postgresql://…, or the target that was served), or the address of a server. The
    exit code is 1 if the ledger does not reach the profile core.

    \b
      arp conformance ledger facts.jsonl
      arp conformance ledger app.py --session my-session
      arp events my-session --json | arp conformance ledger -
    """
    from arp.commands.ledger.ledger_levels import judge_ledger, print_report

    report = judge_ledger(source, sessions, token)
    print_report(report, as_json=as_json)
    if report.level not in ("profile core", "extension"):
        raise SystemExit(FAILED)


async def _print_outcomes(
    factory: RuntimeFactory | Any, cases: tuple[ContractCase, ...], matrix: Path | None
) -> bool:
    """Run the cases and print the outcome of each; return whether none failed."""
    from arp.conformance.runtime.runtime_matrix import write_outcomes
    from arp.conformance.runtime.runtime_suite import run_suite

    width = max(len(case.name) for case in cases)
    counts: Counter[str] = Counter()
    outcomes: dict[str, str] = {}
    runtime = ""
    async for name, result in run_suite(factory, cases):
        runtime = name
        counts[result.outcome] += 1
        outcomes[result.case.name] = result.summary
        note = f"  {printable(result.note)}" if result.note else ""
        click.echo(f"{result.case.name:{width}}  {result.outcome:13}{note}")
    click.echo(
        f"{printable(runtime)}: {', '.join(f'{count} {name}' for name, count in counts.items())}"
    )
    if matrix is not None:
        write_outcomes(matrix, runtime, outcomes)
    return not counts["failed"]
