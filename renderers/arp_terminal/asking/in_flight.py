"""Sent inputs that have no effect yet: inputs without an answer, and the turns that they began.

Theory of operation. The acknowledgement of an input may arrive before or after its effect is on the
screen, because over server-sent events the two use different connections. So an accepted input
stays *unconfirmed* until its turn continues. Until then the screen may show the turn as it was
before the input. An agent may send the echo of an input before the turn continues. So an echo does
not confirm an input, except after a cut, when the message that would confirm it may be lost.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from arp.client.events import Connected, Event, Skipped
from arp.protocol.connection.screen import Screen
from arp.protocol.messages import FINAL_STATUSES, Commit, ErrorMessage, InputAck, TurnMessage

T = TypeVar("T")


class InFlight(Generic[T]):
    """Inputs by id, each with the question that it answers."""

    def __init__(self) -> None:
        self._sent: dict[str, T | None] = {}
        """Inputs that the server has neither accepted nor refused, with their questions."""
        self._turns: set[str] = set()
        """Turns of accepted inputs that may still run."""
        self._unconfirmed: dict[str, str] = {}
        """Turn of each accepted input after which the turn has not continued yet."""
        self._continued_turns: dict[str, set[str]] = {}
        """Turns that have continued since an input was sent, by the id of the input."""
        self._cut: set[str] = set()
        """Inputs that were sent before a cut, after which the events of their turns may be lost."""
        self._acknowledges = False
        """Whether the server answers inputs; a server of the draft does not."""

    def add(self, input_id: str, subject: T | None = None) -> None:
        """Record that an input was sent."""
        self._sent[input_id] = subject

    def subjects(self) -> list[T]:
        """Return the questions that inputs without an acknowledgement answer."""
        return [subject for subject in self._sent.values() if subject is not None]

    def refused(self, message: ErrorMessage) -> T | None:
        """Forget a refused input, and return the question that it answered."""
        input_id = message.payload.id or ""
        self._continued_turns.pop(input_id, None)
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
                    self._continued_turns.clear()

    @property
    def is_empty(self) -> bool:
        """Whether the server has accepted or refused all inputs."""
        return not self._sent

    def is_awaited(self, screen: Screen) -> bool:
        """Return whether a turn waits for an answer that has not been sent yet."""
        if self._sent:
            return False
        self._forget_confirmed(screen)
        answered = set(self._unconfirmed.values())
        turns = screen.turns.values()
        waiting = {turn.id for turn in turns if turn.status == "waiting" and not turn.final}
        return not waiting <= answered

    def is_idle(self, screen: Screen) -> bool:
        """Return whether all inputs are answered and no turn runs or is queued."""
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
        continued = self._continued_turns.pop(ack.id, set())
        if ack.turn_id is not None:
            self._turns.add(ack.turn_id)
            if ours and ack.turn_id not in continued:
                self._unconfirmed[ack.id] = ack.turn_id

    def _continued(self, turn_id: str | None) -> None:
        if turn_id is not None:
            for one in self._sent:
                self._continued_turns.setdefault(one, set()).add(turn_id)
        self._unconfirmed = {
            one: turn for one, turn in self._unconfirmed.items() if turn != turn_id
        }

    def _forget_confirmed(self, screen: Screen) -> None:
        """Drop the inputs from before a cut that have an echo on the screen.

        The message that would have confirmed them may be lost in the cut. Without this the prompt
        would wait for it forever.
        """
        if self._cut and self._unconfirmed:
            echoes = {echo.id for turn in screen.turns.values() for echo in turn.inputs}
            for one in self._cut & echoes:
                self._unconfirmed.pop(one, None)
