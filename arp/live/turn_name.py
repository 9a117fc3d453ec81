"""The turn that the running code belongs to.

It is not in `tasks.py`, because an agent's file imports it with `Turn`, before there is a loop.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar


class TurnName:
    """Identity of the turn that some code belongs to, for log messages about mistakes."""

    __slots__ = ("_reported", "agent", "session_id", "show_details", "turn_id")

    def __init__(
        self,
        agent: str,
        session_id: str,
        turn_id: str,
        show_details: Callable[[str, str], None] = lambda _what, _details: None,
    ) -> None:
        """Identify a turn.

        Args:
            agent: Name of the agent.
            session_id: Id of the session.
            turn_id: Id of the turn.
            show_details: Called with a message and its details; shows both to the connected
                renderers that may see them. May be called in any thread.
        """
        self.agent = agent
        self.session_id = session_id
        self.turn_id = turn_id
        self.show_details = show_details
        self._reported: set[str] = set()

    def __str__(self) -> str:
        """Return agent, turn and session as text."""
        return f"agent {self.agent!r} (turn {self.turn_id} of session {self.session_id!r})"

    def is_new(self, mistake: str) -> bool:
        """Return whether the turn makes this mistake for the first time, so that it is reported."""
        is_new = mistake not in self._reported
        self._reported.add(mistake)
        return is_new


CURRENT_TURN: ContextVar[TurnName | None] = ContextVar("arp_current_turn", default=None)
"""The turn that the running code belongs to; `None` in the server's own code."""
