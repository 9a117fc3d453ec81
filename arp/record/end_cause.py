"""`EndCause`: why the server ends a turn before its agent has finished.

An agent receives the same `CancelledError` for each cause, but the cleanup depends on the cause: a
cancel withdraws the open questions of the turn; a stop of the server or a move of the session
leaves them open for another process. The cause is in `TurnHost.end_cause`, and it is the argument
of the `CancelledError`.
"""

from __future__ import annotations

from enum import StrEnum


class EndCause(StrEnum):
    """Reason why a turn is ended from outside."""

    CANCELLED = "cancelled"
    """The turn was cancelled, or the next input replaced it. Its open questions are withdrawn."""
    SERVER_STOPS = "the server stopped"
    """The server stops. Open questions stay open, and their answers go to the next process."""
    SESSION_MOVED = "another process serves the session now"
    """Another process owns the session now. Open questions stay open; it receives the answers."""
    SESSION_LEFT = "the session was closed"
    """The session was deleted or had a fault. Open questions are withdrawn."""

    @property
    def leaves_open(self) -> bool:
        """Whether the turn and its questions stay open, for another process to continue."""
        return self in (EndCause.SERVER_STOPS, EndCause.SESSION_MOVED)

    @classmethod
    def of(cls, error: BaseException) -> EndCause | None:
        """Return the cause that an error carries; `None` if it was raised for another reason."""
        cause = error.args[0] if len(error.args) == 1 else None
        return cause if isinstance(cause, EndCause) else None
