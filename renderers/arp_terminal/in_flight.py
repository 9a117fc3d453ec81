"""What was sent and is not done: inputs without an answer, and turns that they began.

Theory of operation. That an input was taken may be heard before or after what came of it is on the
screen: over server-sent events the two travel on connections of their own. So an input that was
taken stays *untold* until the screen shows that it was: by its echo, or because its turn goes on.
Until then nothing that the screen says of that turn is known to be newer than the input.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from arp.client.events import Event
from arp.protocol.messages import FINAL_STATUSES, Commit, ErrorMessage, InputAck, TurnMessage
from arp.protocol.screen import Screen

T = TypeVar("T")


class InFlight(Generic[T]):
    """Inputs by id, each with what it answers, until the server has taken or refused it."""

    def __init__(self) -> None:
        self._sent: dict[str, T | None] = {}
        self._turns: set[str] = set()
        self._untold: dict[str, str] = {}
        """Inputs that were taken, each with its turn, of which the screen does not yet know."""
        self._acknowledges = False
        """Whether this server answers inputs at all; one of the draft does not."""

    def add(self, input_id: str, subject: T | None = None) -> None:
        """Record that an input was sent."""
        self._sent[input_id] = subject

    def subjects(self) -> list[T]:
        """Return what the inputs without an answer are answers to."""
        return [subject for subject in self._sent.values() if subject is not None]

    def refused(self, message: ErrorMessage) -> T | None:
        """Return what the refused input was an answer to, and forget it."""
        return self._sent.pop(message.payload.id or "", None)

    def hear(self, event: Event) -> None:
        """Record an acknowledgement, and of what shows that an input has had its effect."""
        match event:
            case InputAck():
                self._acknowledges = True
                self._taken(event)
            case TurnMessage() if event.status != "waiting":
                self._goes_on(event.turn_id)
            case Commit(final=True):
                self._goes_on(event.turn_id)
                if not self._acknowledges:
                    self._sent.clear()

    @property
    def is_empty(self) -> bool:
        """Whether the server has taken or refused everything."""
        return not self._sent

    def is_awaited(self, screen: Screen) -> bool:
        """Return whether a turn waits for an answer, and for none of those that were sent."""
        if self._sent:
            return False
        self._forget_told(screen)
        answered = set(self._untold.values())
        turns = screen.turns.values()
        return any(turn.status == "waiting" and turn.id not in answered for turn in turns)

    def is_idle(self, screen: Screen) -> bool:
        """Return whether everything that was sent is answered and no turn runs or waits in line."""
        if self._sent:
            return False
        turns = screen.turns.values()
        self._turns -= {turn.id for turn in turns if turn.final}
        over = {turn.id for turn in turns if turn.final or turn.status in FINAL_STATUSES}
        begun = {turn.id for turn in turns if turn.status is not None}
        return not self._turns and not begun - over

    def _taken(self, ack: InputAck) -> None:
        ours = ack.id in self._sent
        self._sent.pop(ack.id, None)
        if ack.turn_id is not None:
            self._turns.add(ack.turn_id)
            if ours:
                self._untold[ack.id] = ack.turn_id

    def _goes_on(self, turn_id: str | None) -> None:
        self._untold = {one: turn for one, turn in self._untold.items() if turn != turn_id}

    def _forget_told(self, screen: Screen) -> None:
        """Drop the inputs whose echo the screen has."""
        if self._untold:
            echoes = {echo.id for turn in screen.turns.values() for echo in turn.inputs}
            self._untold = {one: turn for one, turn in self._untold.items() if one not in echoes}
