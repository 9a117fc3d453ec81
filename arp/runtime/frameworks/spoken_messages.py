"""`SpokenMessages`: messages that stream at the same time are told one after the other.

A turn has one text. Pieces of several messages, told as they come, would be mixed in it. So the
message that began first is told as it streams, and what comes of the others waits until it is over.
"""

from __future__ import annotations

from collections.abc import Callable


class _Message:
    """A message that is told, or waits until those before it are over."""

    __slots__ = ("is_closed_later", "is_over", "message_id", "pieces")

    def __init__(self, message_id: str, is_closed_later: bool) -> None:
        self.message_id, self.is_closed_later = message_id, is_closed_later
        self.pieces: list[Callable[[], None]] = []
        self.is_over = False


class SpokenMessages:
    """Tells messages one after the other, in the order in which they begin.

    A message that an event closes is over then; any other one as soon as another begins.
    """

    def __init__(self) -> None:
        self._waiting: list[_Message] = []

    def begin(self, message_id: str, *, is_closed_later: bool) -> None:
        """Take that a message begins; if it is open already, that changes nothing."""
        for one in self._waiting:
            if one.message_id != message_id and not one.is_closed_later:
                one.is_over = True
        if self._found(message_id) is None:
            self._waiting.append(_Message(message_id, is_closed_later))
        self._go_on()

    def add(
        self, message_id: str, tell: Callable[[], None], *, is_closed_later: bool = False
    ) -> None:
        """Take more of a message, which begins if it has not: `tell` is called when it may."""
        if self._found(message_id) is None:
            self.begin(message_id, is_closed_later=is_closed_later)
        found = self._found(message_id)
        if found is not None:
            found.pieces.append(tell)
        self._go_on()

    def end(self, message_id: str) -> None:
        """Take that a message is over."""
        found = self._found(message_id)
        if found is not None:
            found.is_over = True
        self._go_on()

    def is_open(self, message_id: str) -> bool:
        """Return whether more of a message may come."""
        return self._found(message_id) is not None

    def flush(self) -> None:
        """Tell all that waits."""
        for one in self._waiting:
            one.is_over = True
        self._go_on()

    def __enter__(self) -> SpokenMessages:
        return self

    def __exit__(self, *_: object) -> None:
        """Tell all that waits, also of a run that was cut off."""
        self.flush()

    def _found(self, message_id: str) -> _Message | None:
        ours = (one for one in self._waiting if one.message_id == message_id and not one.is_over)
        return next(ours, None)

    def _go_on(self) -> None:
        while self._waiting:
            first = self._waiting[0]
            for tell in first.pieces:
                tell()
            first.pieces.clear()
            if not first.is_over:
                return
            del self._waiting[0]
