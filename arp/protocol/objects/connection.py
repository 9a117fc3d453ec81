"""Both sides of a connection in the object dialect: what they have in common, without I/O.

Theory of operation. `send` enqueues a message, or raises and changes nothing. `receive` parses a
frame and never raises: a refused message changes nothing and is answered by an error on the
display, with the object, the code and the `seq` of the message. A connection that cannot continue
returns `ConnectionFailure`. `data_to_send` returns and dequeues the frames to send, including the
answers of the connection itself.

A message for an object that this side has ended is ignored, because the peer sent it before it knew
of the end. Time is an argument, in seconds of any monotonic clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Literal, TypeAlias

from msgspec import Struct

from arp.protocol.codec import Encoding
from arp.protocol.connection.agent_connection import MAX_REJECTED, ConnectionFailure
from arp.protocol.errors import ArpError, InvalidMessage, InvalidMethod, ResourceLimit
from arp.protocol.objects.messages import (
    INTERFACES,
    DisplayErrorEvent,
    DisplayErrorRequest,
    InputFocusEvent,
    InputUnfocusEvent,
    Operation,
)
from arp.protocol.objects.model import Objects
from arp.protocol.objects.states import CONNECTION_LIFE, ConnectionLife
from arp.protocol.objects.wire import (
    DISPLAY,
    ObjectEnvelope,
    ObjectMessage,
    RefusedEnvelope,
    payload_of,
    read,
    write,
)

Kind: TypeAlias = Literal["requests", "events"]


class RefusedMessage(Struct, frozen=True):
    """A message of the peer was refused; the error that answers it is enqueued."""

    error: ArpError
    object_id: int
    op: str = ""
    serial_no: int | None = None


ObjectEvent: TypeAlias = ObjectMessage | RefusedMessage | ConnectionFailure

_FOCUS = (InputFocusEvent, InputUnfocusEvent)

OPERATIONS: dict[type[Struct], tuple[str, str, Operation]] = {
    operation.payload: (interface.name, name, operation)
    for interface in INTERFACES.values()
    for table in (interface.requests, interface.events)
    for name, operation in table.items()
}
"""Interface name, operation name and operation of each payload struct."""


class ObjectConnection:
    """Common part of both sides of a connection.

    Args:
        objects: The objects of this connection.
        sends: Kind of messages that this side sends: the agent side requests, the renderer events.
        encoding: Encoding of all frames.
    """

    def __init__(self, objects: Objects, sends: Kind, encoding: Encoding) -> None:
        self.objects = objects
        self.encoding: Encoding = encoding
        self.life: str = ConnectionLife.OPEN
        self._sends: Kind = sends
        self._receives: Kind = "events" if sends == "requests" else "requests"
        self._sent_no = 0
        self._received_no = 0
        self._rejected = 0
        self._max_received_bytes = objects.limits.max_message_bytes
        self._frames: list[bytes] = []

    # -- out -------------------------------------------------------------------------------------

    def data_to_send(self) -> list[bytes]:
        """Dequeue the frames to send and return them in order."""
        frames, self._frames = self._frames, []
        return frames

    def send(self, object_id: int, payload: Struct, now_s: float = 0.0) -> int:
        """Enqueue a message.

        Args:
            object_id: Target of the message.
            payload: The struct of a request or event.
            now_s: The time.

        Returns:
            The number of the message: the `seq` of its envelope.

        Raises:
            ArpError: The message is not allowed now. The error has the code that the peer would
                answer. Nothing has changed and nothing is enqueued.
        """
        _, op, _ = OPERATIONS[type(payload)]
        operation = self.objects.operation(object_id, op, self._sends)
        if operation.payload is not type(payload):
            wrong = f"object {object_id} takes no {type(payload).__name__}"
            raise InvalidMethod(wrong, detail=op)
        number = self._sent_no + 1
        # Encode first: a message that is applied here but cannot be sent would make the objects of
        # the two sides differ.
        frame = self._encode(ObjectMessage(object_id, op, number, payload))
        ended = self.objects.ended_by(object_id) if operation.destroys else []
        self._apply(self._sends, object_id, operation, payload, number, now_s)
        ended += self.objects.pop_undone()
        self._sent_no = number
        self._frames.append(frame)
        if ended:
            self._on_ended_here(ended)
        return number

    def _encode(self, message: ObjectMessage) -> bytes:
        """Return a message as a frame.

        Raises:
            InvalidMessage: It cannot be encoded.
            ResourceLimit: It is larger than the peer accepts.
        """
        try:
            is_shown = self._sends == "requests"
            frame = write(message, self.encoding, is_shown=is_shown)
        except (UnicodeEncodeError, TypeError, OverflowError, ValueError) as error:
            wrong = f"{message.op}: cannot be encoded: {error!s:.100}"
            raise InvalidMessage(wrong, detail=message.op) from None
        most = self.objects.limits.max_message_bytes
        if len(frame) > most:
            wrong = f"{message.op}: message of {len(frame)} bytes; at most {most}"
            raise ResourceLimit(wrong, detail="max_message_bytes")
        return frame

    def _apply(
        self,
        kind: Kind,
        object_id: int,
        operation: Operation,
        payload: Struct,
        number: int,
        now_s: float,
    ) -> None:
        apply = self.objects.request if kind == "requests" else self.objects.event
        apply(object_id, operation, payload, number, now_s)

    def _on_ended_here(self, ended: list[int]) -> None:
        """Handle the end of objects that this side has ended."""
        self.objects.remember_dead(ended)

    def _on_ended_by_peer(self, ended: list[int]) -> None:
        """Handle the end of objects that the peer has ended."""

    # -- in --------------------------------------------------------------------------------------

    def receive(self, frame: bytes | str, now_s: float = 0.0) -> list[ObjectEvent]:
        """Parse and apply one frame; return its events in order. Never raises.

        Args:
            frame: One WebSocket message, line, or body.
            now_s: The time.
        """
        return list(self.each(frame, now_s))

    def each(self, frame: bytes | str, now_s: float = 0.0) -> Iterator[ObjectEvent]:
        """Apply the messages of a frame one by one; yield the events of each before the next.

        This lets the caller answer a message before the connection itself answers a later one. The
        caller must exhaust the iterator: messages after the last yielded event are not applied.
        """
        if self.life == ConnectionLife.FAILED:
            return
        data = frame.encode("utf-8", "replace") if isinstance(frame, str) else frame
        most = self._max_received_bytes
        if len(data) > most:
            error = ResourceLimit(
                f"message of {len(data)} bytes; at most {most}", detail="max_message_bytes"
            )
            yield from self._refuse(RefusedEnvelope(error))
            return
        yield from self._each_event(read(data, self.encoding), now_s)

    def receive_parsed(
        self, envelopes: Iterable[ObjectEnvelope | RefusedEnvelope], now_s: float = 0.0
    ) -> list[ObjectEvent]:
        """Apply the envelopes of an already parsed frame; return its events like `receive`."""
        return list(self._each_event(envelopes, now_s))

    def _each_event(
        self, envelopes: Iterable[ObjectEnvelope | RefusedEnvelope], now_s: float
    ) -> Iterator[ObjectEvent]:
        for envelope in envelopes:
            if self.life == ConnectionLife.FAILED:
                break
            yield from self._receive_envelope(envelope, now_s)

    def _receive_envelope(
        self, envelope: ObjectEnvelope | RefusedEnvelope, now_s: float
    ) -> list[ObjectEvent]:
        number = envelope.serial_no
        if number is not None:
            # Errors and acknowledgements name messages by number: after a repeated number, both
            # sides would disagree about which message is meant.
            if number <= self._received_no:
                reason = (
                    f"message.seq: {number} does not rise; the last one was {self._received_no}"
                )
                self._answer(envelope.object_id, InvalidMessage(reason), number)
                return [self._fail(1002, reason)]
            self._received_no = number
        if isinstance(envelope, RefusedEnvelope):
            return self._refuse(envelope)
        try:
            return [*self._accept(envelope, now_s)]
        except ArpError as error:
            return self._refuse(RefusedEnvelope(error, envelope.object_id, number), envelope.op)

    def _accept(self, envelope: ObjectEnvelope, now_s: float) -> list[ObjectMessage]:
        """Apply a message; return it, or nothing if it was sent to an object that has ended.

        Raises:
            ArpError: The message is refused. Nothing has changed.
        """
        object_id, objects = envelope.object_id, self.objects
        if object_id in objects.dead and object_id not in objects.entries:
            # `surface_acquired` creates a new object with this id, so the old object is irrelevant.
            creates = self._receives == "events" and envelope.op == "surface_acquired"
            if not creates:
                return []  # sent before the peer knew that the object had ended
        operation = objects.operation(object_id, envelope.op, self._receives)
        payload = payload_of(envelope, operation.payload)
        if isinstance(payload, _FOCUS) and payload.surface_id in objects.dead:
            return []  # the same; these two messages name their surface in the payload
        ended = objects.ended_by(object_id) if operation.destroys else []
        self._apply(self._receives, object_id, operation, payload, envelope.serial_no, now_s)
        ended += objects.pop_undone()
        if ended:
            self._on_ended_by_peer(ended)
        return [ObjectMessage(object_id, envelope.op, envelope.serial_no, payload)]

    def _refuse(self, refused: RefusedEnvelope, op: str = "") -> list[ObjectEvent]:
        self._rejected += 1
        refused.error.__traceback__ = None  # it would keep the message in memory
        if self._rejected > MAX_REJECTED:
            return [self._fail(1008, f"more than {MAX_REJECTED} messages were refused")]
        if op != "error":  # two sides could otherwise answer each other's errors for ever
            self._answer(refused.object_id, refused.error, refused.serial_no)
        return [RefusedMessage(refused.error, refused.object_id, op, refused.serial_no)]

    def _answer(self, object_id: int, error: ArpError, number: int | None) -> None:
        kind = DisplayErrorRequest if self._sends == "requests" else DisplayErrorEvent
        with suppress(ResourceLimit):  # a peer whose limit is below 200 bytes gets no answer
            self.send(DISPLAY, kind(object_id, int(error.code), error.message, number))

    def _fail(self, code: int, reason: str) -> ConnectionFailure:
        self.life = CONNECTION_LIFE[self.life]["fail"]
        return ConnectionFailure(code, reason)
