"""`arp conformance`: check a runtime or a store against its contract, or the level of a ledger."""

from __future__ import annotations

import asyncio
import os
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from arp.commands.output import CONTEXT, fail, printable
from arp.commands.target import TargetError, find_callable

if TYPE_CHECKING:
    from arp.conformance.runtime.case import ContractCase
    from arp.conformance.runtime.runtime_under_test import RuntimeFactory
    from arp.conformance.store.store_case import StoreCase
    from arp.conformance.store.store_suite import StoreResult

FAILED = 1
"""Exit code if a case failed."""

USAGE = 2
"""Exit code if the command line is wrong."""

SUITE_FAULT = 3
"""Exit code if the suite itself has a fault, so that the outcome of a case is unknown."""


@click.group(context_settings=CONTEXT)
def conformance() -> None:
    """Check a runtime, a store or a ledger of your own."""


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


@conformance.command("store", context_settings=CONTEXT)
@click.argument("target", metavar="MODULE:FACTORY", required=False)
@click.option("--case", "names", multiple=True, help="Only this case. Repeatable.")
@click.option(
    "--json",
    "json_file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File to write the results to, as JSON.",
)
@click.option(
    "--junit",
    "junit_file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File to write the results to, as JUnit XML.",
)
@click.option("--list", "is_list", is_flag=True, help="List the cases and what each one promises.")
def store_(
    target: str | None,
    names: tuple[str, ...],
    json_file: Path | None,
    junit_file: Path | None,
    is_list: bool,
) -> None:
    r"""Run every case of the contract of stores.

    FACTORY gets an empty directory and returns a StoreUnderTest (arp.conformance). The outcome of a
    case is pass, fail, not advertised (the store does not offer it), not checked (the suite cannot
    check it on this store) or suite fault. The exit code is 0 if no case failed, 1 if a case
    failed, 2 if the command line is wrong, and 3 if the suite has a fault.

    \b
      arp conformance store my_store.conformance:factory
      arp conformance store checks.py:factory --case locked --junit results.xml
      arp conformance store --list
    """
    from arp.conformance.store.store_cases import STORE_CASES

    known = {case.name: case for case in STORE_CASES}
    if unknown := sorted(set(names) - known.keys()):
        fail(f"--case: there is no {unknown[0]}; --list lists the cases", USAGE)
    cases = [case for case in STORE_CASES if not names or case.name in names]
    if is_list:
        _print_lines([(case.name, case.title) for case in cases])
        return
    if target is None:
        fail("name the factory of the store, as in my_store.conformance:factory", USAGE)
    results = _run_store_suite(target, cases, {"json": json_file, "junit": junit_file})
    outcomes = {result.outcome for result in results}
    code = SUITE_FAULT if "suite fault" in outcomes else FAILED if "fail" in outcomes else 0
    if any(result.is_stuck for result in results):
        # Python would wait for the threads of the store when it ends.
        sys.stdout.flush()
        os._exit(code)
    raise SystemExit(code)


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


def _run_store_suite(
    target: str, cases: Sequence[StoreCase], files: Mapping[str, Path | None]
) -> list[StoreResult]:
    """Run the cases, print the outcome of each, and write the reports."""
    from arp.conformance.store.store_report import counts, json_report, junit_report
    from arp.conformance.store.store_suite import StoreResult, StoreSuite

    factory: Any
    try:
        factory = find_callable(target)
    except TargetError as error:
        fail(str(error), USAGE)
    except Exception as error:  # noqa: BLE001 - a module of somebody else may raise anything
        fail(f"{target} cannot be imported: {type(error).__name__}: {error}", USAGE)
    width = max(len(case.name) for case in cases)
    suite, results = StoreSuite(factory), list[StoreResult]()
    for result in suite.results(cases):
        results.append(result)
        note = f"  {printable(result.note)}" if result.note else ""
        click.echo(f"{result.case.name:{width}}  {result.outcome:14}{note}".rstrip())
    summary = ", ".join(f"{count} {outcome}" for outcome, count in counts(results).items())
    click.echo(f"{printable(suite.name or target)}: {summary}")
    reports = {"json": json_report, "junit": junit_report}
    for kind, file in files.items():
        if file is not None:
            try:
                file.write_text(reports[kind](suite.name, results), encoding="utf-8")
            except OSError as error:
                fail(f"--{kind}: {file} cannot be written ({error.strerror})", USAGE)
    return results


def _print_lines(rows: Iterable[tuple[str, str]]) -> None:
    """Print rows in two columns."""
    table = list(rows)
    width = max(len(first) for first, _ in table)
    for first, second in table:
        click.echo(f"{first:{width}}  {second}")
