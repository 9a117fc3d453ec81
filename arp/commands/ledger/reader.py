"""`LedgerReader`: what commands need to read sessions and facts.

A server and a ledger file are two implementations: `server_reader` and `file_reader`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Protocol

from msgspec import Meta, Struct

from arp.ledger.chain import Checked


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
    """Reads sessions and their facts.

    Each method raises `ReaderError` if there is no such session, or it cannot be read.
    """

    def sessions(self, limit: int) -> list[ListedSession]:
        """Return the newest sessions."""

    def events(self, session_id: str, after: int, types: Sequence[str]) -> Iterator[bytes]:
        """Yield the facts of a session after a sequence, as far as they are durable."""

    def follow(self, session_id: str, after: int, types: Sequence[str]) -> Iterator[bytes]:
        """Yield them and then each new one, without end."""

    def verify(self, session_id: str) -> Checked:
        """Compare a session's facts with the hashes that the ledger keeps of them."""

    def close(self) -> None:
        """Close the file or the connections."""
