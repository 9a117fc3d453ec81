"""The inputs of a client, and the outcome of each."""

from __future__ import annotations

import secrets
from typing import TypeVar

from arp.client.errors import coded_error
from arp.client.events import Event
from arp.protocol.codec import encode_json, renderer_decoder
from arp.protocol.errors import InvalidMessage, ResourceLimit, UnknownObject
from arp.protocol.json_value import check_plain_json
from arp.protocol.limits import Limits
from arp.protocol.messages import AgentHello, ErrorMessage, Input, InputAck, InputEcho

_DECODER = renderer_decoder("json")
_LIMITS = Limits()

V = TypeVar("V")

IDS_BYTES = 256
"""Bytes reserved for the session id and the input id, which are added when an input is sent."""

MOST_PENDING = 1000
"""Maximum number of inputs without an answer: more than a person types offline."""

MOST_OUTCOMES = 1000
"""Number of answers that are kept for later calls."""


class Inputs:
    """The inputs that wait for an answer, and the newest answers.

    An input waits from `open` until `apply` receives its acknowledgement or the error that refuses
    it.
    """

    def __init__(self) -> None:
        self.newest: str | None = None
        """Id of the newest input."""
        self._pending: set[str] = set()
        self._outcomes: dict[str, InputAck | ErrorMessage] = {}
        self._turns: dict[str, str] = {}

    def open(self, message: Input, most_bytes: int) -> str:
        """Check that the server can read an input, and return a new id for it.

        Args:
            message: The input.
            most_bytes: Maximum size of the encoded input that the server accepts.

        Raises:
            InvalidMessage: The input is not valid; the message names the field. Nothing changed.
            ResourceLimit: The input is too large, or too many inputs wait for an answer. Nothing
                changed.
        """
        check_input(message, most_bytes)
        if len(self._pending) >= MOST_PENDING:
            raise ResourceLimit(f"{MOST_PENDING} inputs wait for an answer; wait for some of them")
        self.newest = secrets.token_urlsafe(16)
        self._pending.add(self.newest)
        return self.newest

    def apply(self, event: Event) -> None:
        """Record an event that answers an input; ignore others."""
        match event:
            case InputAck(id=input_id):
                self._settle(input_id, event)
                if event.turn_id is not None:
                    self._note_turn(input_id, event.turn_id)
            case ErrorMessage() if event.payload.id is not None:
                self._settle(event.payload.id, event)
            case InputEcho(id=str(input_id), turn_id=str(turn_id)):
                self._note_turn(input_id, turn_id)

    def outcome(self, input_id: str) -> InputAck | None:
        """Return the acknowledgement of an input; `None` while there is no answer.

        Raises:
            UnknownObject: This client has not sent the input, or its answer is not kept any more.
            ArpError: The input was refused; the class has the code of the error.
        """
        outcome = self._outcomes.get(input_id)
        if isinstance(outcome, InputAck):
            return outcome
        if outcome is not None:
            raise coded_error(outcome.payload)
        if input_id not in self._pending:
            raise UnknownObject(
                f"this client has no input {input_id!r} that waits or was answered recently"
            )
        return None

    def turn_of(self, input_id: str) -> str | None:
        """Return the id of the turn that an input started or answered; `None` if unknown."""
        return self._turns.get(input_id)

    def _settle(self, input_id: str, outcome: InputAck | ErrorMessage) -> None:
        if input_id in self._pending:
            self._pending.discard(input_id)
            _remember(self._outcomes, input_id, outcome)

    def _note_turn(self, input_id: str, turn_id: str) -> None:
        if input_id in self._pending or input_id in self._outcomes:
            _remember(self._turns, input_id, turn_id)


def check_input(message: Input, most_bytes: int) -> None:
    """Check that the server can read an input.

    An input that the server cannot read would be sent again after each reconnection.

    Raises:
        InvalidMessage: The input is not valid; the message names the field.
        ResourceLimit: The input, with the ids to be added, is larger than `most_bytes`.
    """
    check_plain_json(message.data, "data")
    try:
        frame = encode_json(message)
    except UnicodeEncodeError:
        raise InvalidMessage("input: half a surrogate pair is no text; replace it") from None
    _DECODER.decode(frame)
    if len(frame) + IDS_BYTES > most_bytes:
        raise ResourceLimit(
            f"input of {len(frame)} bytes; the server accepts {most_bytes - IDS_BYTES}"
        )


def most_bytes(agent: AgentHello | None, limit: str) -> int:
    """Return a limit of the agent side; the default of the protocol if it sent none."""
    default: int = getattr(_LIMITS, limit)
    most = agent.capabilities.limits.get(limit) if agent is not None else None
    return most if isinstance(most, int) and most > 0 else default


def _remember(table: dict[str, V], key: str, value: V) -> None:
    table[key] = value
    if len(table) > MOST_OUTCOMES:
        del table[next(iter(table))]
