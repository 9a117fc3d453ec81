"""Encodes the facts of one session.

Most facts are text deltas. `FactWriter.text` formats them directly, without a `Fact` object.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import Struct

from arp.ledger.fact import SCHEMA_VERSION, Fact, encode
from arp.ledger.fact_types import check
from arp.protocol.json_value import Json, JsonObject


class TextFact(Struct, eq=False, gc=False):
    """Content of the fact for a text delta, except the time of the fact."""

    sequence: int
    """Sequence number in the session."""
    type: str
    """`model.delta` or `reasoning.delta`."""
    turn_id: str
    """Id of the turn; letters and digits only, because it is not escaped."""
    thread_id: str | None
    """Thread of the turn; `None` means the thread of the writer."""
    json: str
    """The text as a JSON string, with its quotes."""


class FactWriter:
    """Encoder of the facts of one session; it keeps the parts that all these facts share."""

    __slots__ = ("_head", "_runtime_id", "_session_id", "_tail", "_thread_id")

    def __init__(self, runtime_id: str, session_id: str, thread_id: str) -> None:
        self._runtime_id = runtime_id
        self._session_id = session_id
        self._thread_id = thread_id
        self._head = self._tail = ""
        """JSON before and after the text of a delta. Built for the first delta, because most
        sessions are idle."""

    def fact(
        self, at: str, sequence: int, type_name: str, payload: JsonObject, ids: Mapping[str, Json]
    ) -> bytes:
        """Return an encoded fact.

        Args:
            at: Time of the fact (RFC 3339).
            sequence: Sequence number in the session, from 1.
            type_name: Type of the fact, one of `fact_types.FACT_TYPES`.
            payload: Values that encode to JSON.
            ids: Correlation ids by field name.

        Raises:
            ProfileViolation: The type is unknown, or an id that it needs is missing.
        """
        event_id = f"{self._session_id}-{sequence}"
        fact = Fact(
            SCHEMA_VERSION,
            self._runtime_id,
            self._session_id,
            event_id,
            at,
            sequence,
            type_name,
            payload,
            **ids,
        )
        check(fact)
        return encode(fact)

    def text(self, at: str, text: TextFact) -> bytes:
        """Return the encoded fact of a text delta.

        The bytes are the same as those of `fact` with the payload `{"text": …}`.

        Args:
            at: Time of the fact (RFC 3339).
            text: Content of the fact.

        Raises:
            ValueError: `text.json` is empty.
        """
        json, sequence, thread_id = text.json, text.sequence, text.thread_id
        # An empty `json` means that its encoding failed. The line would not be valid JSON, and the
        # log could not be read from here on.
        if not json:
            raise ValueError(f"fact {sequence} of session {self._session_id}: its text is missing")
        if not self._head:
            self._prepare()
        if thread_id is None or thread_id == self._thread_id:
            tail = self._tail
        else:
            tail = _tail_of(thread_id)
        return (
            f'{self._head}{sequence}","timestamp":"{at}","sequence":{sequence},'
            f'"type":"{text.type}","payload":{{"text":{json}{tail}{text.turn_id}"}}'
        ).encode()

    def _prepare(self) -> None:
        runtime, session = _json(self._runtime_id), _json(self._session_id)
        self._head = (
            f'{{"schemaVersion":"{SCHEMA_VERSION}","runtimeId":{runtime},'
            f'"sessionId":{session},"eventId":{session[:-1]}-'
        )
        self._tail = _tail_of(self._thread_id)


def _tail_of(thread_id: str) -> str:
    """Return the JSON between the text and the turn id of a delta."""
    return f'}},"threadId":{_json(thread_id)},"turnId":"'


def _json(text: str) -> str:
    return msgspec.json.encode(text).decode()
