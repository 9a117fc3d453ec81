"""Where commands read sessions and facts: from a server, or from a ledger file.

Both are a `LedgerReader`; `open_reader` picks one by the options that every such command has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any, Protocol, TypeVar

import click
from msgspec import Meta, Struct

from arp.ledger.chain import Checked

DEFAULT_URL = "http://127.0.0.1:8080"

F = TypeVar("F", bound=Callable[..., Any])


class ReaderError(Exception):
    """What is wrong, and what to do; nothing more can be read."""


class ListedSession(Struct, frozen=True, rename="camel"):
    """A session in a list."""

    session_id: str
    workflow: str = ""
    title: str = ""
    updated_at: str = ""
    turns: Annotated[int, Meta(ge=0)] = 0
    sequence: Annotated[int, Meta(ge=0)] = 0
    active: bool = False


class LedgerReader(Protocol):
    """Reads sessions and their facts."""

    def sessions(self, limit: int) -> list[ListedSession]:
        """Return the newest sessions.

        Raises:
            ReaderError: They cannot be read.
        """

    def events(self, session_id: str, after: int, types: Sequence[str]) -> Iterator[bytes]:
        """Yield the facts of a session after a sequence, as far as they are durable.

        Raises:
            ReaderError: There is no such session, or it cannot be read.
        """

    def follow(self, session_id: str, after: int, types: Sequence[str]) -> Iterator[bytes]:
        """Yield them and then each new one, without end.

        Raises:
            ReaderError: As `events`.
        """

    def verify(self, session_id: str) -> Checked:
        """Compare a session's facts with the hashes that the ledger keeps of them.

        Raises:
            ReaderError: There is no such session, or it cannot be read.
        """

    def close(self) -> None:
        """Close the file or the connections."""


def open_reader(url: str, ledger: str | None, token: str | None) -> LedgerReader:
    """Return a reader of the ledger file if one is named, else of the server.

    Raises:
        ReaderError: It is no ledger file, or no address.
    """
    if ledger is not None:
        from arp.commands.file_reader import FileReader

        return FileReader(ledger)
    from arp.commands.server_reader import ServerReader

    return ServerReader(url, token)


def reader_options(command: F) -> F:
    """Add `--url`, `--ledger` and `--token` to a command."""
    for option in (
        click.option("--token", envvar="ARP_TOKEN", help="The server's token.  [env: ARP_TOKEN]"),
        click.option(
            "--ledger",
            callback=ledger_location,
            help="Read this ledger file, not a server: sqlite:PATH, or the target that was served "
            "(app.py).",
        ),
        click.option(
            "--url",
            envvar="ARP_URL",
            default=DEFAULT_URL,
            show_default=True,
            help="The server to ask.  [env: ARP_URL]",
        ),
    ):
        command = option(command)
    return command


def ledger_location(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
    """Return the location of a ledger that is named by its place or by a target; for click."""
    if value is None:
        return None
    from arp.store.default_ledger import ledger_to_read

    return ledger_to_read(value)
