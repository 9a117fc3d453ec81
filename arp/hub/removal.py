"""What is removed with a session: its facts and files, and what others keep of it.

Theory of operation. A removal is written down before anything else happens, and again with all that
others keep of the session (`Elsewhere`) before its facts go: they name the sessions of runtimes.
What cannot be removed now is tried again, also after a restart; only then is the note dropped. So a
session that somebody deleted is gone in the end, whenever the server was ended.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Iterable, MutableMapping, Sequence
from typing import Any, Final, Protocol

import msgspec
from msgspec import Struct

from arp.ledger.fact import decode
from arp.live.tasks import ServerTask, Service, start_task
from arp.session.session import Head
from arp.store.errors import StoreError
from arp.store.store import Store, facts

logger = logging.getLogger(__name__)

REMOVE_S: Final = 20.0
"""How long one keeper may take; then it is tried again, and whoever deletes is told so."""
RETRY_S: Final = 60.0
"""After how long it is tried again."""
CACHE_KEY: Final = "arp.elsewhere"
"""Where `turn.cache` has what was made for a session since it came into memory."""


class Elsewhere(Struct, frozen=True):
    """Something that is kept of a session outside of the ledger, such as a runtime's session."""

    keeper: str
    """Who keeps it: the name of a runtime."""
    id: str
    """What the keeper calls it."""


class Remainder(Struct, frozen=True, rename="camel"):
    """Something of a deleted session that is still there."""

    keeper: str
    id: str
    reason: str
    """Why, for people."""
    is_retried: bool
    """Whether the server tries again by itself."""


class NotRemoved(Exception):
    """A keeper could not remove something.

    Args:
        reason: Why, for people.
        can_retry: Whether it may be possible later.
    """

    def __init__(self, reason: str, *, can_retry: bool) -> None:
        super().__init__(reason)
        self.reason, self.can_retry = reason, can_retry


class SessionKeeper(Protocol):
    """Keeps something of sessions outside of the ledger."""

    async def remove(self, kept: Elsewhere) -> bool:
        """Remove something; it may be gone already.

        Returns:
            Whether this keeper is the one that is named.

        Raises:
            NotRemoved: It is still there.
        """


class Removal(Struct, frozen=True):
    """The note of a removal, as the store has it."""

    session_id: str
    epoch: str
    owner: str
    elsewhere: tuple[Elsewhere, ...] | None = None
    """What others keep; `None`: nobody has looked yet."""
    is_gone: bool = False
    """Whether the facts and files are gone."""


def note_elsewhere(cache: MutableMapping[str, Any], kept: Elsewhere) -> None:
    """Note in the cache of a session what was made for it: its fact may not be durable yet."""
    cache.setdefault(CACHE_KEY, []).append(kept)


class Removals:
    """The removals of one ledger.

    Args:
        store: Has their notes.
        keepers: Returns all that keep something of sessions.
        remove_here: Removes the facts and the files of a session, if it is still that of the note.
    """

    def __init__(
        self,
        store: Store,
        keepers: Callable[[], Sequence[SessionKeeper]],
        remove_here: Callable[[Removal], Awaitable[None]],
    ) -> None:
        self._store = store
        self._keepers = keepers
        self._remove_here = remove_here
        self._left: dict[str, Removal] = {}
        """What is to be removed elsewhere, by the name of the note."""
        self._under_way: set[str] = set()
        self._tasks: set[ServerTask[list[Remainder]]] = set()
        self._service = Service("arp-removals", self._retry)

    async def start(self) -> None:
        """Remove the facts of sessions whose removal was cut off; the rest follows by itself.

        Raises:
            StoreError: The notes cannot be read.
        """
        for name, note in (await self._store.removals()).items():
            self._left[name] = msgspec.json.decode(note, type=Removal)
            try:
                await self.remove_facts(name)
            except StoreError as error:
                logger.error("session %s: %s", self._left[name].session_id, error)
        self._service.start()

    async def aclose(self) -> None:
        """End; what is left is tried again after the next start."""
        await self._service.aclose()
        for task in list(self._tasks):
            task.stop()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def begin(self, head: Head) -> str:
        """Write down that a session is to be removed; return the name of the removal.

        Raises:
            StoreError: It cannot be written; nothing has changed.
        """
        name = secrets.token_hex(8)
        removal = Removal(head.session_id, head.epoch, head.owner)
        await self._note(name, removal)
        self._left[name] = removal
        return name

    async def remove_facts(self, name: str, known: Iterable[Elsewhere] = ()) -> None:
        """Remove the facts and files of a session, once what others keep is written down.

        Args:
            name: Of the removal.
            known: What others keep besides, as the memory has it.

        Raises:
            StoreError: The session is still there; it is tried again.
        """
        removal = self._left[name]
        if removal.elsewhere is None:
            every = tuple(dict.fromkeys((*await self._elsewhere(removal), *known)))
            removal = self._left[name] = msgspec.structs.replace(removal, elsewhere=every)
            await self._note(name, removal)
        if not removal.is_gone:
            await self._remove_here(removal)
            self._left[name] = msgspec.structs.replace(removal, is_gone=True)
            await self._note(name, self._left[name])

    async def remove_elsewhere(self, name: str) -> list[Remainder]:
        """Remove what others keep of a session whose facts are gone.

        Returns:
            What is still there.

        Raises:
            StoreError: The note cannot be written; it is tried again.

        Cancel: Safe; the removal goes on.
        """
        task = start_task(self._remove_elsewhere(name), "arp-removal")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return await asyncio.shield(task)

    async def _elsewhere(self, removal: Removal) -> list[Elsewhere]:
        """Return the sessions of runtimes that the facts of a session name."""
        meta = await self._store.session(removal.session_id)
        if meta is None or meta.epoch != removal.epoch:
            return []
        found: list[Elsewhere] = []
        try:
            async for _, body in facts(self._store, removal.session_id):
                if b'"runtimeSessionId"' not in body:
                    continue
                fact = decode(body)
                about = fact.correlation if isinstance(fact.correlation, dict) else {}
                keeper, kept = about.get("runtime"), about.get("runtimeSessionId")
                is_new = fact.type == "thread.started"
                if is_new and isinstance(keeper, str) and isinstance(kept, str):
                    found.append(Elsewhere(keeper, kept))
        except (StoreError, msgspec.DecodeError) as error:
            logger.warning(
                "session %s is deleted, though not all of it can be read: %s; sessions of runtimes "
                "that only its damaged part names stay",
                removal.session_id,
                error,
            )
        return found

    async def _remove_elsewhere(self, name: str) -> list[Remainder]:
        """Remove what others keep; what may be possible later stays in the note."""
        self._under_way.add(name)
        try:
            removal = self._left[name]
            every = removal.elsewhere or ()
            outcomes = await asyncio.gather(*map(self._removed, every))
            kept = tuple(
                one
                for one, outcome in zip(every, outcomes, strict=True)
                if outcome is not None and outcome.is_retried
            )
            if kept:
                self._left[name] = msgspec.structs.replace(removal, elsewhere=kept)
                await self._note(name, self._left[name])
            else:
                del self._left[name]
                await self._store.note_removal(name, None)
            return [outcome for outcome in outcomes if outcome is not None]
        finally:
            self._under_way.discard(name)

    async def _removed(self, kept: Elsewhere) -> Remainder | None:
        """Let whoever keeps something remove it; return it if it is still there."""
        knows, failures = False, list[NotRemoved]()
        for keeper in self._keepers():
            try:
                async with asyncio.timeout(REMOVE_S):
                    is_named = await keeper.remove(kept)
                knows = knows or is_named
            except NotRemoved as failed:
                failures.append(failed)
            except TimeoutError:
                failures.append(NotRemoved(f"no answer within {REMOVE_S:g} s", can_retry=True))
            except Exception:
                logger.exception("%s: session %s is not removed", kept.keeper, kept.id)
                reason = "it failed; the server's log says why"
                failures.append(NotRemoved(reason, can_retry=True))
        if not knows and not failures:
            failures = [NotRemoved("no agent of this app has this runtime", can_retry=True)]
        # Two agents may have runtimes of one name; the session was of one of them.
        failures = [one for one in failures if one.can_retry or not knows]
        if not failures:
            return None
        can_retry = any(one.can_retry for one in failures)
        why = next((one for one in failures if one.can_retry), failures[0]).reason
        logger.warning("%s: session %s is not removed: %s", kept.keeper, kept.id, why)
        return Remainder(kept.keeper, kept.id, why, can_retry)

    async def _retry(self) -> None:
        """Try again, from time to time, what could not be removed."""
        while True:
            for name in [name for name in self._left if name not in self._under_way]:
                try:
                    await self.remove_facts(name)
                    await self._remove_elsewhere(name)
                except StoreError as error:
                    logger.warning("a session is not removed yet: %s", error)
            await asyncio.sleep(RETRY_S)

    async def _note(self, name: str, removal: Removal) -> None:
        await self._store.note_removal(name, msgspec.json.encode(removal).decode())
