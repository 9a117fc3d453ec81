"""`LedgerReader`: the interface that commands use to read sessions and facts.

There are two implementations: `server_reader` for a server, `file_reader` for a ledger file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Protocol

from msgspec import Meta, Struct

from arp.ledger.chain import ChainCheck


class ReaderError(Exception):
    """The ledger cannot be read; the message says why, and what to do."""


class ListedSession(Struct, frozen=True, rename="camel"):
    """One row of the list of sessions."""

    session_id: str
    workflow: str = ""
    title: str = ""
    updated_at: str = ""
    turns: Annotated[int, Meta(ge=0)] = 0
    sequence: Annotated[int, Meta(ge=0)] = 0
    active: bool = False


class LedgerReader(Protocol):
    """Reads sessions and their facts.

    Each method raises `ReaderError` if the session does not exist or cannot be read.
    """

    def sessions(self, limit: int) -> list[ListedSession]:
        """Return the newest sessions, at most `limit`."""

    def events(self, session_id: str, after: int, types: Sequence[str]) -> Iterator[bytes]:
        """Yield the durable facts of a session after the sequence `after`.

        Args:
            session_id: Id of the session.
            after: Sequence before the first fact.
            types: Types or families of the facts; empty means all.
        """

    def follow(self, session_id: str, after: int, types: Sequence[str]) -> Iterator[bytes]:
        """Yield the same facts as `events`, and then each new fact, without end."""

    def verify(self, session_id: str) -> ChainCheck:
        """Compare the facts of a session with the hashes in the ledger."""

    def close(self) -> None:
        """Close the file or the connections."""
