"""The inputs that this client made, and what became of each."""

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
"""Room for the session and the id of an input, which join it when it is sent."""

MOST_PENDING = 1000
"""Inputs without an answer, after which no more are taken: more than a person types offline."""

MOST_OUTCOMES = 1000
"""Answers remembered for those who ask late."""


class Inputs:
    """Which inputs wait for an answer, and the answers to the newest of the others."""

    def __init__(self) -> None:
        self.newest: str | None = None
        """The id made last."""
        self._pending: set[str] = set()
        self._outcomes: dict[str, InputAck | ErrorMessage] = {}
        self._turns: dict[str, str] = {}

    def open(self, message: Input, most_bytes: int) -> str:
        """Return a new id for an input, after checking that the server can take it.

        Raises:
            InvalidMessage: Not what an `input` may be; names the place. Nothing has changed.
            ResourceLimit: It is too long, or too many wait for an answer. Nothing has changed.
        """
        check_input(message, most_bytes)
        if len(self._pending) >= MOST_PENDING:
            raise ResourceLimit(f"{MOST_PENDING} inputs wait for an answer; wait for some of them")
        self.newest = secrets.token_urlsafe(16)
        self._pending.add(self.newest)
        return self.newest

    def hear(self, event: Event) -> None:
        """Record an event that answers one of them."""
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
        """Return an input's acknowledgement; `None` while there is no answer.

        Raises:
            UnknownObject: No input of this client, or one of very long ago.
            ArpError: It was refused; the class of the error's code.
        """
        found = self._outcomes.get(input_id)
        if isinstance(found, InputAck):
            return found
        if found is not None:
            raise coded_error(found.payload)
        if input_id not in self._pending:
            raise UnknownObject(
                f"no input {input_id!r} of this client waits or was answered lately"
            )
        return None

    def turn_of(self, input_id: str) -> str | None:
        """Return the turn that an input began or answered, once it is known."""
        return self._turns.get(input_id)

    def _settle(self, input_id: str, outcome: InputAck | ErrorMessage) -> None:
        if input_id in self._pending:
            self._pending.discard(input_id)
            _remember(self._outcomes, input_id, outcome)

    def _note_turn(self, input_id: str, turn_id: str) -> None:
        if input_id in self._pending or input_id in self._outcomes:
            _remember(self._turns, input_id, turn_id)


def check_input(message: Input, most_bytes: int) -> None:
    """Check that the server can read an input: one that it refuses is not to be sent each time.

    Raises:
        InvalidMessage: Names the place.
        ResourceLimit: Longer than `most_bytes`, with the ids that are yet to come.
    """
    check_plain_json(message.data, "data")
    try:
        frame = encode_json(message)
    except UnicodeEncodeError:
        raise InvalidMessage("input: half a surrogate pair is no text; replace it") from None
    _DECODER.decode(frame)
    if len(frame) + IDS_BYTES > most_bytes:
        raise ResourceLimit(
            f"input of {len(frame)} bytes; the server takes {most_bytes - IDS_BYTES}"
        )


def most_bytes(agent: AgentHello | None, limit: str) -> int:
    """Return a limit of the agent side; the protocol's own where it sent none."""
    own: int = getattr(_LIMITS, limit)
    most = agent.capabilities.limits.get(limit) if agent is not None else None
    return most if isinstance(most, int) and most > 0 else own


def _remember(table: dict[str, V], key: str, value: V) -> None:
    table[key] = value
    if len(table) > MOST_OUTCOMES:
        del table[next(iter(table))]
