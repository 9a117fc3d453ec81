"""Options of the commands that read a ledger: the server to ask, or the ledger to read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from arp.commands.ledger.reader import LedgerReader

DEFAULT_URL = "http://127.0.0.1:8080"

URL_VARIABLE = "ARP_URL"
"""Environment variable with the address of the server."""

F = TypeVar("F", bound=Callable[..., Any])


def reader_options(command: F) -> F:
    """Add `--url`, `--ledger` and `--token` to a command."""
    for option in (
        click.option("--token", envvar="ARP_TOKEN", help="The server's token.  [env: ARP_TOKEN]"),
        click.option(
            "--ledger",
            callback=ledger_location,
            help="Ledger to read instead of asking a server: sqlite:PATH, postgresql://…, or the "
            "target that was served (app.py).",
        ),
        click.option(
            "--url",
            envvar=URL_VARIABLE,
            default=DEFAULT_URL,
            show_default=True,
            help="Server to ask.  [env: ARP_URL]",
        ),
    ):
        command = option(command)
    return command


def ledger_location(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
    """Convert an option's value, a location or a target, to a ledger location (click callback)."""
    if value is None:
        return None
    from arp.store.location import ledger_to_read

    return ledger_to_read(value)


def open_reader(url: str, ledger: str | None, token: str | None) -> LedgerReader:
    """Return a reader of a ledger, or of the server if no ledger is named.

    Args:
        url: Address of the server.
        ledger: Location of the ledger, or `None`.
        token: Token for the server.

    Raises:
        ReaderError: The location has no ledger, or the address is not valid.
    """
    if ledger is not None:
        from arp.commands.ledger.file_reader import FileReader

        return FileReader(ledger)
    from arp.commands.ledger.server_reader import ServerReader

    return ServerReader(url, token)
