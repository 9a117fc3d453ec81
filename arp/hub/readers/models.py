"""Read models on demand, stored beside the log so that no write waits for them.

Theory of operation. A model is made on request: the stored model plus the facts after it, as far as
the log is durable. It stays in a bounded cache, and the next request continues from it. So a long
session is read as fast as a short one.

The session need not be in memory. But if its stored model is unusable, the model is only rebuilt,
not replaced, until the session is in memory: the replacement is evidence of damage, which has to be
recorded in the session, and reading must not load a session.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import aclosing

from arp.audit.models.read_model import ReadModel, UnreadableModel
from arp.live.cache import Cache, Noted, slices
from arp.live.live_session import LiveSession
from arp.live.settings import HubSettings
from arp.store.store import Store


class _Entry:
    """A read model in memory, with the lock of its fold."""

    __slots__ = ("lock", "model")

    def __init__(self) -> None:
        self.model: ReadModel | None = None
        self.lock = asyncio.Lock()


class Models(Cache):
    """Read models of a hub's sessions."""

    name, what = "session", "model"

    def __init__(
        self,
        store: Store,
        sessions: Mapping[str, LiveSession],
        settings: HubSettings,
        noted: Noted | None = None,
    ) -> None:
        super().__init__(store, sessions, settings, noted)
        self._entries: dict[str, _Entry] = {}
        """Models in memory by session id, least recently used first."""

    async def read(self, session_id: str) -> ReadModel:
        """Return a session's model, up to the newest durable fact.

        Later calls fold more facts into the same object: use it before the next await.

        Args:
            session_id: Id of the session. The caller has checked the permission to read it. The
                model of a missing session is empty.

        Raises:
            StoreError: The log cannot be read.

        Cancel: Safe.
        """
        kept = self._entries.pop(session_id, None) or _Entry()
        self._entries[session_id] = kept
        while len(self._entries) > self._settings.models_in_memory:
            del self._entries[next(iter(self._entries))]
        async with kept.lock:
            model = kept.model or await self._load(session_id)
            # The entry is empty during the fold: a fold that fails halfway leaves a wrong model.
            began, kept.model = model.sequence, None
            try:
                await self._fold(session_id, model)
            except UnreadableModel as error:
                # This fold began without a stored model, so the facts themselves are wrong.
                if not began:
                    raise
                self._mark_unusable(session_id, str(error))
                model, began = ReadModel(), 0
                await self._fold(session_id, model)
            kept.model = model
        if model.sequence - began >= self._settings.model_every_facts:
            self._evicted.setdefault(session_id)
        return model

    async def _fold(self, session_id: str, model: ReadModel) -> None:
        """Fold the facts after a model.

        Raises:
            StoreError: The log cannot be read.
            UnreadableModel: The facts do not fit the model.
        """
        async with aclosing(slices(self._store, session_id, model.sequence)) as found:
            async for facts in found:
                try:
                    model.fold_all(facts)
                except Exception as error:
                    # The facts were checked when they were written, so the stored model is wrong:
                    # its records are plain objects, which decoding does not check.
                    raise UnreadableModel(f"a fact does not fit the model: {error!r}") from error

    async def _load(self, session_id: str) -> ReadModel:
        """Return the stored model, or an empty one if it is missing or unusable."""
        stored = await self._stored_model(session_id)
        if stored is None:
            return ReadModel()
        try:
            model = ReadModel.decode(stored[1])
        except UnreadableModel as error:
            self._mark_unusable(session_id, str(error))
            return ReadModel()
        if model.sequence != stored[0] or model.state.session_id != session_id:
            self._mark_unusable(session_id, "a stored model of something else")
            return ReadModel()
        return model

    def forget(self, session_id: str) -> None:
        """Drop what is known of a deleted session; see `Cache.forget`."""
        super().forget(session_id)
        self._entries.pop(session_id, None)

    async def _make(
        self, session_id: str, live: LiveSession | None, least: int
    ) -> tuple[int, bytes] | None:
        if session_id in self._unusable and session_id not in self._sessions:
            return None
        model = await self.read(session_id)
        if not self._has_grown(session_id, model.sequence, least):
            return None
        return model.sequence, model.encode()

    def _is_tracked(self, session_id: str) -> bool:
        return session_id in self._sessions or session_id in self._entries
