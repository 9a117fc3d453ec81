"""Playback of a recording in a live session, for every attached renderer.

Theory of operation. Each fact of the recording is recorded again, in order, with its type, payload
and ids. Rendering follows from the facts as it did the first time, so every renderer shows it in
its own profile, even if it connects during the playback. No agent runs. The session counts as busy
until the end, so inputs are refused.
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
from arp.session.recording.projection import StoredChange, restored

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
        live: An empty session.
    """

    def __init__(self, live: LiveSession) -> None:
        self._live = live
        live.session.begin_recording()

    async def play(self, facts: Iterable[Fact], speed: float) -> None:
        """Play facts in order; return when the last one is shown.

        Args:
            facts: Facts of one session.
            speed: Factor of the original speed; 0 means without pauses.

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
        """Record one fact again; the creation of the session is skipped."""
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
        """Commit the change of a surface, so that renderers with simpler profiles see it too.

        Returns:
            Whether it was committed. It is not if the recording does not begin with the session.
        """
        payload = dict(fact.payload)
        # The session itself determines whether the id of an evicted component is reused.
        payload.pop("anew", None)
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
