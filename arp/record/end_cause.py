"""`EndCause`: why the server ends a turn before its agent is done.

An agent hears of each of them by the same `CancelledError`. What it cleans up then depends on the
cause: a cancel withdraws what the turn asks, a stop of the server leaves it for the next process.
The cause is in `TurnHost.end_cause`, and it is the message of the `CancelledError`.
"""

from __future__ import annotations

from enum import StrEnum


class EndCause(StrEnum):
    """Why a turn is ended from outside."""

    CANCELLED = "cancelled"
    """Somebody cancelled it, or the next input took its place. What it asks is withdrawn."""
    SERVER_STOPS = "the server stopped"
    """The server stops. What it asks stays open, and the answer goes to the next process."""
    SESSION_LEFT = "the session was closed"
    """Its session was deleted, or had a fault. What it asks is withdrawn."""

    @classmethod
    def of(cls, error: BaseException) -> EndCause | None:
        """Return the cause that an error names; `None`: it comes from elsewhere."""
        told = error.args[0] if len(error.args) == 1 else None
        return told if isinstance(told, EndCause) else None
