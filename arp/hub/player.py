"""Plays the facts of a recording into a live session: whoever is attached sees it happen again.

Theory of operation. Each fact of the recording is recorded anew, in order, with its type, payload
and ids; what shows it follows from that as it did the first time, so that every renderer sees it in
its own way, late ones too. Nothing runs meanwhile: the session counts as busy for good, so that an
input is refused.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final

import msgspec

from arp.audit.evidence.pacing import Pacing
from arp.ledger.fact import Fact
from arp.live.live_session import LiveSession
from arp.protocol.errors import ArpError
from arp.session.projection import StoredChange, restored

_OWN: Final = frozenset(
    (
        "schema_version",
        "runtime_id",
        "session_id",
        "event_id",
        "timestamp",
        "sequence",
        "type",
        "payload",
    )
)

_IDS: Final = tuple(field.name for field in msgspec.structs.fields(Fact) if field.name not in _OWN)


_ENDS: Final = frozenset(("turn.completed", "turn.failed"))


class Player:
    """Plays one recording.

    Args:
        live: A session in which nothing happened yet.
    """

    def __init__(self, live: LiveSession) -> None:
        self._live = live
        live.session.begin_recording()

    async def play(self, facts: Iterable[Fact], speed: float) -> None:
        """Play facts, in order, and return when the last one is shown.

        Args:
            facts: Of one session.
            speed: Times as fast as it was; 0 does not wait at all.

        Raises:
            ArpError: The session left the hub.
        """
        pacing = Pacing(speed)
        for fact in facts:
            pause = pacing.pause(fact)
            if pause:
                await self._live.written()
                await asyncio.sleep(pause)
            self.show(fact)
        await self._live.written()

    def show(self, fact: Fact) -> None:
        """Let a fact happen again; that the session was made has happened already."""
        if fact.type == "session.created":
            return
        if not self._commit(fact):
            ids = {name: getattr(fact, name) for name in _IDS}
            given = {name: value for name, value in ids.items() if value is not None}
            self._live.session.record(fact.type, fact.payload, **given)
            if fact.type in _ENDS:
                self._live.session.evict()
        self._live.mark()

    def _commit(self, fact: Fact) -> bool:
        """Commit what a fact changed on a surface, so that lesser renderers see it too.

        Returns:
            Whether it did. It does not where the recording begins in the middle.
        """
        payload = dict(fact.payload)
        payload.pop("anew", None)  # whether an id comes back shows here as it did there
        if fact.type != "artifact.changed" or "changes" not in payload:
            return False
        try:
            stored = msgspec.convert(payload.pop("changes"), list[StoredChange])
            self._live.session.commit(
                fact.turn_id, payload.pop("surface"), restored(stored), **payload
            )
        except (ArpError, msgspec.ValidationError):
            return False
        return True
