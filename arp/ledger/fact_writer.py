"""Writes the facts of one session; those of text, the most of all, without an object each."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from arp.ledger.fact import SCHEMA_VERSION, Fact, encode
from arp.ledger.fact_types import check
from arp.protocol.json_value import Json, JsonObject


class FactWriter:
    """Knows what is the same in every fact of a session."""

    __slots__ = ("_head", "_runtime_id", "_session_id", "_thread_id", "_turn")

    def __init__(self, runtime_id: str, session_id: str, thread_id: str) -> None:
        self._runtime_id = runtime_id
        self._session_id = session_id
        self._thread_id = thread_id
        self._head = self._turn = ""
        """What stands before and behind a text; made for the first: most sessions are idle."""

    def fact(
        self, at: str, sequence: int, type_name: str, payload: JsonObject, ids: Mapping[str, Json]
    ) -> bytes:
        """Return a fact, encoded.

        Args:
            at: RFC 3339.
            sequence: Its place in the session, from 1.
            type_name: Of the closed list.
            payload: Values that encode to JSON.
            ids: Correlation ids by field name.

        Raises:
            ProfileViolation: An id that its type needs is missing.
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

    def text(
        self,
        at: str,
        sequence: int,
        type_name: str,
        turn_id: str,
        text: str,
        thread_id: str | None = None,
    ) -> bytes:
        """Return the fact of a text, the same bytes as `fact` with a payload of `{"text": …}`.

        Args:
            at: RFC 3339.
            sequence: Its place in the session.
            type_name: `model.delta` or `reasoning.delta`.
            turn_id: Letters and digits.
            text: The text as a JSON string, quotes and all.
            thread_id: Of the turn; `None` is that of the writer.

        Raises:
            ValueError: It is empty: making it failed, and without it the fact is no JSON.
        """
        if not text:
            raise ValueError(f"fact {sequence} of session {self._session_id}: its text is missing")
        if not self._head:
            self._prepare()
        if thread_id is None or thread_id == self._thread_id:
            turn = self._turn
        else:
            turn = _turn_of(thread_id)
        return (
            f'{self._head}{sequence}","timestamp":"{at}","sequence":{sequence},'
            f'"type":"{type_name}","payload":{{"text":{text}{turn}{turn_id}"}}'
        ).encode()

    def _prepare(self) -> None:
        runtime, session = _json(self._runtime_id), _json(self._session_id)
        self._head = (
            f'{{"schemaVersion":"{SCHEMA_VERSION}","runtimeId":{runtime},'
            f'"sessionId":{session},"eventId":{session[:-1]}-'
        )
        self._turn = _turn_of(self._thread_id)


def _turn_of(thread_id: str) -> str:
    return f'}},"threadId":{_json(thread_id)},"turnId":"'


def _json(text: str) -> str:
    return msgspec.json.encode(text).decode()
