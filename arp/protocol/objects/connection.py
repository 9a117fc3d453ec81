"""One end of a connection in the object dialect, without I/O.

Theory of operation. `send` takes a message of this end and raises if it is not possible now; then
nothing has changed. `receive` takes a frame and never raises: a message that is refused changes
nothing and is answered with an error on the display, which names the object, the code and the `seq`
of the message. Only what makes going on pointless is a `Failed`. `data_to_send` returns the frames
that are to be sent since it was called last, answers of the connection itself among them.

A message for an object that this end has ended is dropped: it was under way. Time comes in as an
argument, in seconds of any clock that does not go back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Literal, TypeAlias

from msgspec import Struct

from arp.protocol.agent_connection import MAX_REJECTED, Failed
from arp.protocol.codec import Encoding
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
    """A message of the peer was refused; the error is on its way to it."""

    error: ArpError
    object_id: int
    op: str = ""
    serial_no: int | None = None


ObjectEvent: TypeAlias = ObjectMessage | RefusedMessage | Failed

_FOCUS = (InputFocusEvent, InputUnfocusEvent)

OPERATIONS: dict[type[Struct], tuple[str, str, Operation]] = {
    operation.payload: (interface.name, name, operation)
    for interface in INTERFACES.values()
    for table in (interface.requests, interface.events)
    for name, operation in table.items()
}
"""The interface, the name and the operation of each struct."""


class ObjectConnection:
    """What both ends do alike.

    Args:
        objects: Of this connection.
        sends: What this end sends.
        encoding: Of all frames.
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
        """Return the frames that wait, in order; they do not wait any more."""
        frames, self._frames = self._frames, []
        return frames

    def send(self, object_id: int, payload: Struct, now_s: float = 0.0) -> int:
        """Send a message.

        Args:
            object_id: The object that it is sent on.
            payload: The struct of a request or event.
            now_s: The time.

        Returns:
            Its number: the `seq` of its envelope.

        Raises:
            ArpError: It is not possible now, with the code that the peer would answer. Nothing has
                changed, and nothing is sent.
        """
        _, op, _ = OPERATIONS[type(payload)]
        operation = self.objects.operation(object_id, op, self._sends)
        if operation.payload is not type(payload):
            wrong = f"object {object_id} takes no {type(payload).__name__}"
            raise InvalidMethod(wrong, detail=op)
        number = self._sent_no + 1
        frame = self._written(ObjectMessage(object_id, op, number, payload))
        ended = self.objects.ended_by(object_id) if operation.destroys else []
        self._change(self._sends, object_id, operation, payload, number, now_s)
        ended += self.objects.taken_back()
        self._sent_no = number
        self._frames.append(frame)
        if ended:
            self._have_ended(ended)
        return number

    def _written(self, message: ObjectMessage) -> bytes:
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

    def _change(
        self,
        kind: Kind,
        object_id: int,
        operation: Operation,
        payload: Struct,
        number: int,
        now_s: float,
    ) -> None:
        take = self.objects.request if kind == "requests" else self.objects.event
        take(object_id, operation, payload, number, now_s)

    def _have_ended(self, ended: list[int]) -> None:
        """Is called with the ids of objects that this end has ended."""
        self.objects.remember_dead(ended)

    def _were_ended(self, ended: list[int]) -> None:
        """Is called with the ids of objects that the peer has ended."""

    # -- in --------------------------------------------------------------------------------------

    def receive(self, frame: bytes | str, now_s: float = 0.0) -> list[ObjectEvent]:
        """Take one frame and return what it means, in order. Never raises.

        Args:
            frame: One WebSocket message, line, or body.
            now_s: The time.
        """
        return list(self.each(frame, now_s))

    def each(self, frame: bytes | str, now_s: float = 0.0) -> Iterator[ObjectEvent]:
        """Yield what `receive` returns, each before the next message is taken.

        So what its user sends in answer to one goes before the answers to the next. All of it is to
        be read.
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
        yield from self._each_of(read(data, self.encoding), now_s)

    def take(
        self, envelopes: Iterable[ObjectEnvelope | RefusedEnvelope], now_s: float = 0.0
    ) -> list[ObjectEvent]:
        """Take the envelopes of a frame that was read before; as `receive`."""
        return list(self._each_of(envelopes, now_s))

    def _each_of(
        self, envelopes: Iterable[ObjectEnvelope | RefusedEnvelope], now_s: float
    ) -> Iterator[ObjectEvent]:
        for envelope in envelopes:
            if self.life == ConnectionLife.FAILED:
                break
            yield from self._take(envelope, now_s)

    def _take(self, envelope: ObjectEnvelope | RefusedEnvelope, now_s: float) -> list[ObjectEvent]:
        number = envelope.serial_no
        if number is not None:
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
            return [*self._taken(envelope, now_s)]
        except ArpError as error:
            return self._refuse(RefusedEnvelope(error, envelope.object_id, number), envelope.op)

    def _taken(self, envelope: ObjectEnvelope, now_s: float) -> list[ObjectMessage]:
        object_id, objects = envelope.object_id, self.objects
        if object_id in objects.dead and object_id not in objects.entries:
            made = self._receives == "events" and envelope.op == "surface_acquired"
            if not made:
                return []  # it was on its way when the object ended
        operation = objects.operation(object_id, envelope.op, self._receives)
        payload = payload_of(envelope, operation.payload)
        if isinstance(payload, _FOCUS) and payload.surface_id in objects.dead:
            return []
        ended = objects.ended_by(object_id) if operation.destroys else []
        self._change(self._receives, object_id, operation, payload, envelope.serial_no, now_s)
        ended += objects.taken_back()
        if ended:
            self._were_ended(ended)
        return [ObjectMessage(object_id, envelope.op, envelope.serial_no, payload)]

    def _refuse(self, refused: RefusedEnvelope, op: str = "") -> list[ObjectEvent]:
        self._rejected += 1
        refused.error.__traceback__ = None  # it would keep what the message held
        if self._rejected > MAX_REJECTED:
            return [self._fail(1008, f"more than {MAX_REJECTED} messages were refused")]
        if op != "error":  # no error is answered with an error
            self._answer(refused.object_id, refused.error, refused.serial_no)
        return [RefusedMessage(refused.error, refused.object_id, op, refused.serial_no)]

    def _answer(self, object_id: int, error: ArpError, number: int | None) -> None:
        kind = DisplayErrorRequest if self._sends == "requests" else DisplayErrorEvent
        with suppress(ResourceLimit):  # a peer that takes no message of 200 bytes is told nothing
            self.send(DISPLAY, kind(object_id, int(error.code), error.message, number))

    def _fail(self, code: int, reason: str) -> Failed:
        self.life = CONNECTION_LIFE[self.life]["fail"]
        return Failed(code, reason)
