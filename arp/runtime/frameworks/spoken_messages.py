"""`SpokenMessages`: emits messages that stream at the same time one after the other.

A turn has one text, so the pieces of several messages must not be mixed. The message that began
first is emitted as it streams. Pieces of the other messages wait until it has ended.
"""

from __future__ import annotations

from collections.abc import Callable


class _Message:
    """A message that is being emitted, or waits for the messages before it."""

    __slots__ = ("is_closed_later", "is_over", "message_id", "pieces")

    def __init__(self, message_id: str, is_closed_later: bool) -> None:
        self.message_id, self.is_closed_later = message_id, is_closed_later
        self.pieces: list[Callable[[], None]] = []
        self.is_over = False


class SpokenMessages:
    """Emits messages one after the other, in the order in which they begin.

    A message with `is_closed_later` ends when `end` is called. Any other message ends when the next
    one begins.
    """

    def __init__(self) -> None:
        self._waiting: list[_Message] = []

    def begin(self, message_id: str, *, is_closed_later: bool) -> None:
        """Begin a message, unless it is already open."""
        for one in self._waiting:
            if one.message_id != message_id and not one.is_closed_later:
                one.is_over = True
        if self._find_open(message_id) is None:
            self._waiting.append(_Message(message_id, is_closed_later))
        self._emit_ready()

    def add(
        self, message_id: str, tell: Callable[[], None], *, is_closed_later: bool = False
    ) -> None:
        """Add a piece to a message, which begins if necessary.

        Args:
            message_id: Id of the message.
            tell: Emits the piece; called when the messages before it have ended.
            is_closed_later: Whether `end` will be called for the message.
        """
        if self._find_open(message_id) is None:
            self.begin(message_id, is_closed_later=is_closed_later)
        found = self._find_open(message_id)
        if found is not None:
            found.pieces.append(tell)
        self._emit_ready()

    def end(self, message_id: str) -> None:
        """End a message."""
        found = self._find_open(message_id)
        if found is not None:
            found.is_over = True
        self._emit_ready()

    def is_open(self, message_id: str) -> bool:
        """Return whether a message has begun and not ended."""
        return self._find_open(message_id) is not None

    def flush(self) -> None:
        """End all messages, and emit the pieces that wait."""
        for one in self._waiting:
            one.is_over = True
        self._emit_ready()

    def __enter__(self) -> SpokenMessages:
        return self

    def __exit__(self, *_: object) -> None:
        """Emit all pieces that wait, also if the run was cut off."""
        self.flush()

    def _find_open(self, message_id: str) -> _Message | None:
        ours = (one for one in self._waiting if one.message_id == message_id and not one.is_over)
        return next(ours, None)

    def _emit_ready(self) -> None:
        while self._waiting:
            first = self._waiting[0]
            for tell in first.pieces:
                tell()
            first.pieces.clear()
            if not first.is_over:
                return
            del self._waiting[0]
