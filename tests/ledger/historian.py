"""Writes lawful facts of one session, and knows what is going on in it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from arp.ledger.fact import SCHEMA_VERSION, Fact, decode, encode
from arp.ledger.fact_types import check

BEGAN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


class Historian:
    """Writes facts of one session, and knows what is going on in it."""

    def __init__(self, session_id: str = "s") -> None:
        self.facts: list[Fact] = []
        """As the store gives them back."""
        self.chance = Random(0)
        """Of the step that is taken now."""
        self.running: str | None = None
        self.queue: list[str] = []
        self.turns: list[str] = []
        self.open: dict[str, list[dict[str, str]]] = {}
        """What began and has not ended, by kind: the ids that its facts carry."""
        self._session_id = session_id
        self._at = BEGAN
        self._made: dict[str, int] = {}
        made = {"epoch": "e1", "workflow": "agent", "owner": "ann"}
        self.add("session.created", made, thread_id="main")

    def add(self, type_name: str, payload: dict[str, Any] | None = None, **ids: Any) -> Fact:
        """Writes a fact, which must be lawful."""
        sequence = len(self.facts) + 1
        self._at += timedelta(milliseconds=self.chance.randrange(2_000))
        fact = Fact(
            SCHEMA_VERSION,
            "arp",
            self._session_id,
            f"{self._session_id}-{sequence}",
            self._at.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            sequence,
            type_name,
            payload or {},
            **ids,
        )
        check(fact)
        self.facts.append(decode(encode(fact)))
        return self.facts[-1]

    def in_turn(self, type_name: str, payload: dict[str, Any] | None = None, **ids: Any) -> Fact:
        """Writes a fact of the running turn, or of the last one, or of one that is unknown."""
        turn_id = self.running or (self.turns[-1] if self.turns else "unknown")
        return self.add(type_name, payload, **{"thread_id": "main", "turn_id": turn_id} | ids)

    def name(self, kind: str) -> str:
        """Return a new id."""
        self._made[kind] = self._made.get(kind, 0) + 1
        return f"{kind}{self._made[kind]}"

    def number(self, most: int = 5_000) -> int:
        """Return a number from 1."""
        return self.chance.randint(1, most)

    def word(self) -> str:
        """Return a word that a person may read."""
        words = ("all is well", "no", "größer", "日本", "a" * 300, 'say "hello"\n', "s3cr3t?")
        return self.chance.choice(words)

    def maybe(self, **fields: Any) -> dict[str, Any]:
        """Gives some of the fields: those that a fact need not have."""
        return {name: value for name, value in fields.items() if self.chance.random() < 0.5}

    def begin(self, kind: str, **ids: str) -> dict[str, str]:
        """Takes note of something that began."""
        self.open.setdefault(kind, []).append(ids)
        return ids

    def some(self, kind: str) -> dict[str, str] | None:
        """Gives something of a kind that has not ended."""
        found = self.open.get(kind)
        return self.chance.choice(found) if found else None

    def end(self, kind: str) -> dict[str, str] | None:
        """Takes something of a kind that has not ended: it ends now."""
        found = self.open.get(kind)
        return found.pop(self.chance.randrange(len(found))) if found else None
