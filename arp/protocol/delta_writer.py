"""Writes the deltas of one session as JSON, without an object each: there are so many."""

from __future__ import annotations

import msgspec


class DeltaWriter:
    """Knows what is the same in every delta of a session."""

    __slots__ = ("_head", "session_id")

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        self._head = ""
        """What every delta begins with; made for the first, since most sessions are idle."""

    def delta(
        self, seq: int, turn_id: str, text: str, target: str | None = None, kind: str | None = None
    ) -> bytes:
        """Return the same bytes as `encode_json(Delta(…))`.

        Args:
            seq: Its place in the session.
            turn_id: Letters and digits.
            text: The text as a JSON string, quotes and all.
            target: As in `DeltaPayload`; letters, digits and a slash.
            kind: As in `DeltaPayload`.
        """
        if not self._head:
            session = msgspec.json.encode(self.session_id).decode()
            self._head = f'{{"type":"delta","v":1,"session_id":{session},"seq":'
        more = f',"target":"{target}"' if target is not None else ""
        if kind is not None:
            more += f',"kind":"{kind}"'
        return (
            f'{self._head}{seq},"turn_id":"{turn_id}","payload":{{"delta":{text}{more}}}}}'
        ).encode()
