"""Read models on demand, and kept beside the log: never in the way of a write.

Theory of operation. A model is made when somebody asks: the stored one, and the facts behind it,
folded as far as the log is durable. It stays in a bounded cache and goes on from there the next
time. *Behind* the log, a task of its own stores models again: of sessions that grew by many facts
since, and of those that have just left the memory. So a long session is read in the time of a
short one, and what a crash takes of this is only time: the log has it all.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping

from arp.hub.live import LiveSession
from arp.hub.settings import HubSettings
from arp.hub.tasks import Service
from arp.ledger.fact import decode
from arp.ledger.models.read_model import ReadModel, UnreadableModel
from arp.store.errors import StoreError
from arp.store.store import Store

logger = logging.getLogger(__name__)

NAME = "session"
"""Under which the store keeps this kind of model."""

PAGE = 1000
"""Facts read at once: about what one segment of the store holds."""

SLICE = 200
"""Facts folded before the loop goes on with others: about a millisecond."""

ROUND_S = 2.0
"""How often sessions in memory are looked over."""

SHORT = 250
"""A log as short as this is read as fast as a stored model: none is kept of it."""


async def _nobody(session_id: str, name: str, sequence: int, reason: str) -> None:
    """Stands for who wants to know of repairs where nobody does."""


class _Kept:
    """A model in memory."""

    __slots__ = ("lock", "model")

    def __init__(self) -> None:
        self.model: ReadModel | None = None
        self.lock = asyncio.Lock()


class Models:
    """The read models of a hub's sessions."""

    def __init__(
        self, store: Store, sessions: Mapping[str, LiveSession], settings: HubSettings
    ) -> None:
        self._store = store
        self._sessions = sessions
        self._settings = settings
        self._kept: dict[str, _Kept] = {}
        """Longest unused first."""
        self._stored: dict[str, int] = {}
        """How far the store's copies cover their logs, of sessions in memory or just read."""
        self._broken: dict[str, str] = {}
        """Sessions whose stored model could not be used, with why, until it is stored anew."""
        self.repaired: Callable[[str, str, int, str], Awaitable[None]] = _nobody
        """Is told the session, the name, the sequence and the reason when a model that could not
        be used is stored anew."""
        self._rested: dict[str, None] = {}
        """Sessions that left the memory, or were read from far behind, since the last round."""
        self.service = Service("arp-models", self._run)

    # -- reading ---------------------------------------------------------------------------------

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
            return await self._catch_up(session_id, kept)

    async def _catch_up(self, session_id: str, kept: _Kept) -> ReadModel:
        model = kept.model
        if model is None:
            model = await self._load(session_id)
            self._stored[session_id] = model.sequence
        began, kept.model = model.sequence, None  # should a fold fail, it is made anew
        while page := await self._store.read(session_id, model.sequence, PAGE):
            for start in range(0, len(page), SLICE):
                model.fold_all(decode(body) for _, body in page[start : start + SLICE])
                await asyncio.sleep(0)
        kept.model = model
        if model.sequence - began >= self._settings.model_every_facts:
            self._rested[session_id] = None
        return model

    async def _load(self, session_id: str) -> ReadModel:
        """Return the stored model; an empty one if there is none that can be used."""
        stored = await self._store.load_model(session_id, NAME)
        if stored is None:
            return ReadModel()
        sequence, data = stored
        try:
            model = ReadModel.decode(data)
        except UnreadableModel as error:
            logger.info("session %s: %s", session_id, error)
            self._broken[session_id] = str(error)
            return ReadModel()
        if model.sequence != sequence or model.state.session_id != session_id:
            logger.warning("session %s: a stored model of something else, passed over", session_id)
            self._broken[session_id] = "a stored model of something else"
            return ReadModel()
        return model

    # -- storing ---------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to store models behind the log."""
        self.service.start()

    async def aclose(self) -> None:
        """End it. What is not stored is made from the log again."""
        await self.service.aclose()

    def rest(self, session_id: str) -> None:
        """Record that a session left the memory: its model is stored soon."""
        self._rested[session_id] = None

    def forget(self, session_id: str) -> None:
        """Drop what is in memory of a session that is deleted."""
        for held in (self._kept, self._stored, self._rested, self._broken):
            held.pop(session_id, None)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(ROUND_S)
            await self.keep_up()

    async def keep_up(self) -> None:
        """Store what is due: sessions that rest, and those that grew by `model_every_facts`.

        Before them those whose stored model could not be used.
        """
        every = self._settings.model_every_facts
        for session_id in list(self._broken):
            await self._keep(session_id, 0)
        while self._rested:
            session_id = next(iter(self._rested))
            del self._rested[session_id]
            await self._keep(session_id, SHORT)
        for session_id, live in list(self._sessions.items()):
            if live.stored - self._stored.get(session_id, 0) >= every:
                await self._keep(session_id, every)
        for session_id in self._stored.keys() - self._sessions.keys() - self._kept.keys():
            del self._stored[session_id]

    async def _keep(self, session_id: str, least: int) -> None:
        """Store a session's model if it has grown by so many facts; a failure costs only time."""
        try:
            model = await self.read(session_id)
            sequence = model.sequence
            if sequence - self._stored.get(session_id, 0) < least:
                return
            await self._store.save_model(session_id, NAME, sequence, model.encode())
            self._stored[session_id] = sequence
            reason = self._broken.pop(session_id, None)
            if reason is not None:
                await self.repaired(session_id, NAME, sequence, reason)
        except StoreError as error:
            logger.warning("the model of session %s is not stored: %s", session_id, error)
            self._broken.pop(session_id, None)  # it is tried when others are; not in each round
        except Exception:
            # One session's log must not end the task that serves all.
            logger.exception("the model of session %s cannot be made", session_id)
            self._broken.pop(session_id, None)
