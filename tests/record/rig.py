"""A session in a test's hand, and what it has recorded."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from hashlib import sha256
from typing import Any

from arp.ledger.fact import Fact, decode
from arp.protocol.errors import ArpError, SurfaceDestroyed
from arp.protocol.limits import Limits
from arp.record.outputs import OutputStore
from arp.record.recorder import Recorder
from arp.record.scope import FactScope
from arp.session.session import Head, Session

AT = "2026-11-21T08:00:00.000000Z"

TURN = {"thread_id": "main", "turn_id": "t1"}

COMMON = ("schema_version", "runtime_id", "session_id", "event_id", "timestamp", "sequence")


class Recording:
    """A session in which facts are recorded; its ids begin with the sequence of the first, 1."""

    def __init__(self, ids: dict[str, Any] | None = None) -> None:
        self.session = Session(Head("s", "e"), Limits())
        self.marked = 0
        """How often a write was asked for."""
        self.kept: dict[str, bytes] = {}
        """What was kept beside the ledger, by SHA-256."""
        self.refusal: ArpError | None = None
        """What keeping something raises."""
        self.over: ArpError | None = None
        """What recording something raises."""
        scope = FactScope(self.session, TURN if ids is None else ids, self._before, self._after)
        self.scope = scope
        self.record = Recorder(scope, OutputStore(self._keep, self._read, asyncio.to_thread))

    def _before(self) -> None:
        if self.over is not None:
            raise self.over

    def _after(self) -> None:
        self.marked += 1

    async def _keep(self, stream: AsyncIterator[bytes]) -> str:
        if self.refusal is not None:
            raise self.refusal
        data = b"".join([chunk async for chunk in stream])
        name = sha256(data).hexdigest()
        self.kept[name] = data
        return name

    async def _read(self, name: str) -> bytes:
        return self.kept[name]

    def turn_is_lost(self) -> None:
        """Ends the turn while something goes on in it, and raises what that raises then."""
        self.over = SurfaceDestroyed("turn t1 is over")
        raise KeyError

    def facts(self) -> list[Fact]:
        """Takes the facts since the last time."""
        return [decode(body) for body in self.session.drain(AT).facts]

    def told(self) -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
        """Takes them as type, payload and ids, without those of the turn."""
        return [(fact.type, fact.payload, ids_of(fact)) for fact in self.facts()]


def ids_of(fact: Fact) -> dict[str, Any]:
    """Return a fact's correlations, without those of the turn of these tests."""
    names = [name for name in fact.__struct_fields__ if name not in (*COMMON, "type", "payload")]
    ids = {name: getattr(fact, name) for name in names if getattr(fact, name) is not None}
    return {name: value for name, value in ids.items() if TURN.get(name) != value}
