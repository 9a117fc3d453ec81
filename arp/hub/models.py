"""Read models on demand, and kept beside the log: never in the way of a write.

Theory of operation. A model is made when somebody asks: the stored one, and the facts behind it,
folded as far as the log is durable. It stays in a bounded cache and goes on from there the next
time. So a long session is read in the time of a short one.
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


class _Kept:
    """A model in memory."""

    __slots__ = ("lock", "model")

    def __init__(self) -> None:
        self.model: ReadModel | None = None
        self.lock = asyncio.Lock()


class Models(Cache):
    """The read models of a hub's sessions."""

    name, what = "session", "model"

    def __init__(
        self,
        store: Store,
        sessions: Mapping[str, LiveSession],
        settings: HubSettings,
        noted: Noted | None = None,
    ) -> None:
        super().__init__(store, sessions, settings, noted)
        self._kept: dict[str, _Kept] = {}
        """Longest unused first."""

    async def read(self, session_id: str) -> ReadModel:
        """Return a session's model, as far as its log is durable now.

        It goes on folding later: take what you need of it before you await anything.

        Args:
            session_id: Whoever asks may see it; that is looked after elsewhere. One that does not
                exist has an empty model.

        Raises:
            StoreError: The log cannot be read.

        Cancel: Safe.
        """
        kept = self._kept.pop(session_id, None) or _Kept()
        self._kept[session_id] = kept
        while len(self._kept) > self._settings.models_in_memory:
            del self._kept[next(iter(self._kept))]
        async with kept.lock:
            model = kept.model or await self._load(session_id)
            began, kept.model = model.sequence, None  # should a fold fail, it is made anew
            try:
                await self._fold(session_id, model)
            except UnreadableModel as error:
                if not began:
                    raise
                self._pass_over(session_id, str(error))
                model, began = ReadModel(), 0
                await self._fold(session_id, model)
            kept.model = model
        if model.sequence - began >= self._settings.model_every_facts:
            self._rested.setdefault(session_id)
        return model

    async def _fold(self, session_id: str, model: ReadModel) -> None:
        """Fold the facts behind a model.

        Raises:
            StoreError: The log cannot be read.
            UnreadableModel: The model does not take them.
        """
        async with aclosing(slices(self._store, session_id, model.sequence)) as found:
            async for facts in found:
                try:
                    model.fold_all(facts)
                except Exception as error:
                    # The facts were checked when they were written. So the stored model is wrong:
                    # its records are plain objects, which decoding does not look into.
                    raise UnreadableModel(f"a fact does not fit the model: {error!r}") from error

    async def _load(self, session_id: str) -> ReadModel:
        """Return the stored model; an empty one if there is none that can be used."""
        stored = await self._stored_model(session_id)
        if stored is None:
            return ReadModel()
        try:
            model = ReadModel.decode(stored[1])
        except UnreadableModel as error:
            self._pass_over(session_id, str(error))
            return ReadModel()
        if model.sequence != stored[0] or model.state.session_id != session_id:
            self._pass_over(session_id, "a stored model of something else")
            return ReadModel()
        return model

    def forget(self, session_id: str) -> None:
        """As `Cache.forget`."""
        super().forget(session_id)
        self._kept.pop(session_id, None)

    async def _make(
        self, session_id: str, live: LiveSession | None, least: int
    ) -> tuple[int, bytes] | None:
        model = await self.read(session_id)
        if not self._has_grown(session_id, model.sequence, least):
            return None
        return model.sequence, model.encode()

    def _is_at_hand(self, session_id: str) -> bool:
        return session_id in self._sessions or session_id in self._kept
