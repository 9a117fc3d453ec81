"""`arp evidence`: create, check and show packs of evidence.

Each command imports its code when it is called, so that `arp` itself starts fast.
"""

from __future__ import annotations

from pathlib import Path

import click

from arp.commands.ledger.reader_options import ledger_location, reader_options
from arp.commands.output import CONTEXT, fail

BAD = 1
"""Exit code of `verify` if the pack was changed after the export, or if this cannot be excluded."""


@click.group(context_settings=CONTEXT)
def evidence() -> None:
    """Export what happened in a session, check an export, or show its content."""


@evidence.command(context_settings=CONTEXT)
@click.argument("session")
@reader_options
@click.option(
    "--to",
    "-o",
    "target",
    type=click.Path(path_type=Path),
    help="File to write: FILE.zip; with --ledger also a new directory.",
)
@click.option(
    "--as",
    "form",
    type=click.Choice(["pack", "case", "review"]),
    default="pack",
    show_default=True,
    help="Form of the export: a pack, a case for arp replay, or a Markdown review to fill in.",
)
@click.option("--turn", "turn_id", help="Export only this turn.")
@click.option("--task", "task_id", help="Export only this task.")
@click.option("--no-outputs", is_flag=True, help="List large outputs, but do not include them.")
@click.option("--json", "as_json", is_flag=True, help="Print the manifest as JSON.")
def export(
    url: str, ledger: str | None, token: str | None, target: Path | None, **options: str | bool
) -> None:
    r"""Export what happened in SESSION.

    The server creates the export and records it in its ledger. With --ledger, this command creates
    the export from the file and does not change the file.

    \b
      arp evidence export my-session --to my-session.zip
      arp evidence export my-session --ledger app.py --turn t3
    """
    from msgspec import convert

    from arp.commands.ledger.packs import ExportOptions, export_session

    as_json = bool(options.pop("as_json"))
    export_options = convert(options, ExportOptions)
    export_session(export_options, (url, ledger, token), target, as_json=as_json)


@evidence.command(context_settings=CONTEXT)
@click.argument("pack", type=click.Path(path_type=Path))
@click.option(
    "--sha256",
    "expected",
    help="SHA-256 of the manifest, from the ledger or from the exporter.",
)
@click.option(
    "--ledger",
    callback=ledger_location,
    help="Compare with the session in this ledger: sqlite:PATH, postgresql://…, or a target "
    "(app.py).",
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def verify(pack: Path, expected: str | None, ledger: str | None, as_json: bool) -> None:
    r"""Check that PACK is what was exported, or name the first bad fact.

    \b
      arp evidence verify my-session.zip
      arp evidence verify my-session.zip --ledger app.py
    """
    from arp.commands.ledger.packs import print_report, verify_pack

    report = verify_pack(pack, expected, ledger)
    print_report(report, as_json=as_json)
    raise SystemExit(BAD if report.broken or report.unproven else 0)


@evidence.command(context_settings=CONTEXT)
@click.argument("pack", type=click.Path(path_type=Path))
@click.option("--part", help="Print this part, with every character visible.")
@click.option(
    "--to",
    "-o",
    "target",
    type=click.Path(path_type=Path),
    help="With --part: write the part to this file, byte for byte.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the manifest as JSON.")
def show(pack: Path, part: str | None, target: Path | None, as_json: bool) -> None:
    r"""List the content of PACK without checking it; use `verify` to check it.

    \b
      arp evidence show my-session.zip
      arp evidence show my-session.zip --part tool_calls.json
      arp evidence show my-session.zip --part outputs/8a5e… --to chart.png
    """
    from arp.commands.ledger.packs import show_pack

    if target is not None and part is None:
        fail("--to writes a part to a file: name the part with --part")
    show_pack(pack, part, target, as_json=as_json)
