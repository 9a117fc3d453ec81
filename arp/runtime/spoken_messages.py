"""`SpokenMessages`: messages that stream at the same time are told one after the other.

A turn has one text. Pieces of several messages, told as they come, would be mixed in it. So the
message that began first is told as it streams, and what comes of the others waits until it is over.
"""

from __future__ import annotations

from collections.abc import Callable


class _Message:
    """A message that is told, or waits until those before it are over."""

    __slots__ = ("deltas", "is_closed_later", "is_over", "message_id")

    def __init__(self, message_id: str, is_closed_later: bool) -> None:
        self.message_id, self.is_closed_later = message_id, is_closed_later
        self.deltas: list[str] = []
        self.is_over = False


class SpokenMessages:
    """Tells messages one after the other, in the order in which they begin.

    A message that an event closes is over then; any other one as soon as another begins.
    """

    def __init__(self, tell: Callable[[str, str], None]) -> None:
        self._tell = tell
        self._waiting: list[_Message] = []

    def begin(self, message_id: str, *, is_closed_later: bool) -> None:
        """Take that a message begins; if it is open already, that changes nothing."""
        for one in self._waiting:
            if one.message_id != message_id and not one.is_closed_later:
                one.is_over = True
        if self._found(message_id) is None:
            self._waiting.append(_Message(message_id, is_closed_later))
        self._go_on()

    def add(self, message_id: str, delta: str) -> None:
        """Take more of a message."""
        if self._found(message_id) is None:
            self.begin(message_id, is_closed_later=False)
        found = self._found(message_id)
        if found is not None:
            found.deltas.append(delta)
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

    def _found(self, message_id: str) -> _Message | None:
        ours = (one for one in self._waiting if one.message_id == message_id and not one.is_over)
        return next(ours, None)

    def _go_on(self) -> None:
        while self._waiting:
            first = self._waiting[0]
            for delta in first.deltas:
                self._tell(first.message_id, delta)
            first.deltas.clear()
            if not first.is_over:
                return
            del self._waiting[0]
