"""What was sent and is not done: inputs without an answer, and turns that they began."""

from __future__ import annotations

from typing import Generic, TypeVar

from arp.client.events import Event
from arp.protocol.messages import FINAL_STATUSES, Commit, ErrorMessage, InputAck
from arp.protocol.screen import Screen

T = TypeVar("T")


class InFlight(Generic[T]):
    """Inputs by id, each with what it answers, until the server has taken or refused it."""

    def __init__(self) -> None:
        self._sent: dict[str, T | None] = {}
        self._turns: set[str] = set()
        self._acknowledges = False
        """Whether this server answers inputs at all; one of the draft does not."""

    def add(self, input_id: str, subject: T | None = None) -> None:
        """Takes note that an input was sent."""
        self._sent[input_id] = subject

    def subjects(self) -> list[T]:
        """Gives what the inputs without an answer are answers to."""
        return [subject for subject in self._sent.values() if subject is not None]

    def refused(self, message: ErrorMessage) -> T | None:
        """Gives what the refused input was an answer to, and forgets it."""
        return self._sent.pop(message.payload.id or "", None)

    def hear(self, event: Event) -> None:
        """Takes note of an acknowledgement."""
        match event:
            case InputAck():
                self._acknowledges = True
                self._sent.pop(event.id, None)
                if event.turn_id is not None:
                    self._turns.add(event.turn_id)
            case Commit(final=True) if not self._acknowledges:
                self._sent.clear()

    @property
    def is_empty(self) -> bool:
        """Whether the server has taken or refused everything."""
        return not self._sent

    def is_idle(self, screen: Screen) -> bool:
        """Tells whether everything that was sent is answered and no turn runs or waits in line."""
        if self._sent:
            return False
        turns = screen.turns.values()
        self._turns -= {turn.id for turn in turns if turn.final}
        over = {turn.id for turn in turns if turn.final or turn.status in FINAL_STATUSES}
        begun = {turn.id for turn in turns if turn.status is not None}
        return not self._turns and not begun - over
