"""Where sessions and facts come from: a server, or a ledger file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Protocol

from msgspec import Meta, Struct

from arp.ledger.chain import Checked


class SourceError(Exception):
    """What is wrong, and what to do; nothing more can be read."""


class SessionRow(Struct, frozen=True, rename="camel"):
    """A session in a list."""

    session_id: str
    workflow: str = ""
    title: str = ""
    updated_at: str = ""
    turns: Annotated[int, Meta(ge=0)] = 0
    sequence: Annotated[int, Meta(ge=0)] = 0
    active: bool = False


class Source(Protocol):
    """Sessions and their facts, to be read."""

    def sessions(self, limit: int) -> list[SessionRow]:
        """Gives the newest sessions.

        Raises:
            SourceError: They cannot be read.
        """

    def events(self, session_id: str, after: int, types: Sequence[str]) -> Iterator[bytes]:
        """Gives the facts of a session behind a sequence, as far as they are durable.

        Raises:
            SourceError: There is no such session, or it cannot be read.
        """

    def follow(self, session_id: str, after: int, types: Sequence[str]) -> Iterator[bytes]:
        """Gives them and then each new one, without end.

        Raises:
            SourceError: As `events`.
        """

    def verify(self, session_id: str) -> Checked:
        """Compare a session's facts with the hashes that the ledger keeps of them.

        Raises:
            SourceError: There is no such session, or it cannot be read.
        """

    def close(self) -> None:
        """Lets go of what is open."""
