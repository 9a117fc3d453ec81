"""What was sent and is not done: inputs without an answer, and turns that they began.

Theory of operation. The acknowledgement of an input may arrive before or after its effect is on the
screen: over server-sent events the two use different connections. So an accepted input stays
*unconfirmed* until its turn continues. An agent may send the echo of an input before that, so an
echo confirms only after a cut, when the rest may have been missed. Until then nothing that the
screen shows of that turn is known to be newer than the input.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from arp.client.events import Connected, Event, Skipped
from arp.protocol.messages import FINAL_STATUSES, Commit, ErrorMessage, InputAck, TurnMessage
from arp.protocol.screen import Screen

T = TypeVar("T")


class InFlight(Generic[T]):
    """Inputs by id, each with what it answers, until the server has accepted or refused it."""

    def __init__(self) -> None:
        self._sent: dict[str, T | None] = {}
        self._turns: set[str] = set()
        self._unconfirmed: dict[str, str] = {}
        """Accepted inputs, each with its turn, whose turn has not gone on yet."""
        self._gone_on: dict[str, set[str]] = {}
        """Turns that have gone on since an input was sent, by the id of the input."""
        self._cut: set[str] = set()
        """Inputs behind which events may have been missed: how their turns went on."""
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
        input_id = message.payload.id or ""
        self._gone_on.pop(input_id, None)
        return self._sent.pop(input_id, None)

    def receive(self, event: Event) -> None:
        """Record an acknowledgement, or an event that shows the effect of an input."""
        match event:
            case Connected() | Skipped():
                self._cut = {*self._sent, *self._unconfirmed}
            case InputAck():
                self._acknowledges = True
                self._accepted(event)
            case TurnMessage() if event.status != "waiting":
                self._continued(event.turn_id)
            case Commit(final=True):
                self._continued(event.turn_id)
                if not self._acknowledges:
                    self._sent.clear()
                    self._gone_on.clear()

    @property
    def is_empty(self) -> bool:
        """Whether the server has accepted or refused everything."""
        return not self._sent

    def is_awaited(self, screen: Screen) -> bool:
        """Return whether a turn waits for an answer, and for none of those that were sent."""
        if self._sent:
            return False
        self._forget_confirmed(screen)
        answered = set(self._unconfirmed.values())
        turns = screen.turns.values()
        waiting = {turn.id for turn in turns if turn.status == "waiting" and not turn.final}
        return not waiting <= answered

    def is_idle(self, screen: Screen) -> bool:
        """Return whether everything that was sent is answered and no turn runs or is queued."""
        if self._sent:
            return False
        turns = screen.turns.values()
        self._turns -= {turn.id for turn in turns if turn.final}
        over = {turn.id for turn in turns if turn.final or turn.status in FINAL_STATUSES}
        begun = {turn.id for turn in turns if turn.status is not None}
        return not self._turns and not begun - over

    def _accepted(self, ack: InputAck) -> None:
        ours = ack.id in self._sent
        self._sent.pop(ack.id, None)
        gone_on = self._gone_on.pop(ack.id, set())
        if ack.turn_id is not None:
            self._turns.add(ack.turn_id)
            if ours and ack.turn_id not in gone_on:
                self._unconfirmed[ack.id] = ack.turn_id

    def _continued(self, turn_id: str | None) -> None:
        if turn_id is not None:
            for one in self._sent:
                self._gone_on.setdefault(one, set()).add(turn_id)
        self._unconfirmed = {
            one: turn for one, turn in self._unconfirmed.items() if turn != turn_id
        }

    def _forget_confirmed(self, screen: Screen) -> None:
        """Drop the inputs whose echo the screen has, where nothing else tells of their effect.

        Otherwise an echo says nothing yet: an agent may send it before its turn goes on.
        """
        if self._cut and self._unconfirmed:
            echoes = {echo.id for turn in screen.turns.values() for echo in turn.inputs}
            for one in self._cut & echoes:
                self._unconfirmed.pop(one, None)
