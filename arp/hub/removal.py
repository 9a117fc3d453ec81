"""Deletion of a session: its facts and files, and what runtimes keep for it.

Theory of operation. A deletion is noted in the store before anything else happens. Before the facts
are removed, the note is extended by everything that others keep for the session (`ExternalRecord`),
because only the facts name it. What cannot be removed is tried again, also after a restart; the
note is dropped last. So a deletion is always finished, even if the server stops in between.
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
"""Seconds that one attempt of a keeper may take; after that it is reported and repeated later."""
RETRY_S: Final = 60.0
"""Seconds between two attempts."""
CACHE_KEY: Final = "arp.elsewhere"
"""Key in `turn.cache` of what was created for a session since it was loaded."""


class ExternalRecord(Struct, frozen=True):
    """Something that is kept for a session outside of the ledger, such as a runtime's session."""

    keeper: str
    """Name of the runtime that keeps it."""
    id: str
    """Id that the keeper uses."""


class Remainder(Struct, frozen=True, rename="camel"):
    """Something that a runtime still keeps for a deleted session, because its removal failed."""

    keeper: str
    id: str
    reason: str
    """Reason, for people."""
    is_retried: bool
    """Whether the server tries again by itself."""


class RemovalFailed(Exception):
    """A keeper could not remove something.

    Args:
        reason: Reason, for people.
        can_retry: Whether a later attempt may succeed.
    """

    def __init__(self, reason: str, *, can_retry: bool) -> None:
        super().__init__(reason)
        self.reason, self.can_retry = reason, can_retry


class SessionKeeper(Protocol):
    """Owner of data that belongs to sessions and is outside of the ledger."""

    async def remove(self, kept: ExternalRecord) -> bool:
        """Remove something, which may be gone already.

        Returns:
            Whether this keeper is the one that `kept` names.

        Raises:
            RemovalFailed: It still exists.
        """


class Removal(Struct, frozen=True):
    """Note in the store about an unfinished deletion."""

    session_id: str
    epoch: str
    owner: str
    elsewhere: tuple[ExternalRecord, ...] | None = None
    """What others keep; `None` if the facts have not been searched for it yet."""
    is_gone: bool = False
    """Whether the facts and files are gone."""


def note_elsewhere(cache: MutableMapping[str, Any], kept: ExternalRecord) -> None:
    """Record in the cache of a session what was created for it; its fact may not be durable yet."""
    cache.setdefault(CACHE_KEY, []).append(kept)


class Removals:
    """Deletions of one ledger.

    Args:
        store: Store of the notes.
        keepers: Returns all keepers.
        remove_here: Removes facts and files of a session, if its epoch is still that of the note.
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
        self._unfinished: dict[str, Removal] = {}
        """Unfinished deletions, by name of the note."""
        self._under_way: set[str] = set()
        self._tasks: set[ServerTask[list[Remainder]]] = set()
        self._service = Service("arp-removals", self._retry)

    async def start(self) -> None:
        """Resume unfinished deletions: remove the facts now, the rest in the background.

        Raises:
            StoreError: The notes cannot be read.
        """
        for name, note in (await self._store.removals()).items():
            self._unfinished[name] = msgspec.json.decode(note, type=Removal)
            try:
                await self.remove_facts(name)
            except StoreError as error:
                logger.error("session %s: %s", self._unfinished[name].session_id, error)
        self._service.start()

    async def aclose(self) -> None:
        """Stop deleting; unfinished deletions are resumed at the next start."""
        await self._service.aclose()
        for task in list(self._tasks):
            task.stop()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def begin(self, head: Head) -> str:
        """Store a note that a session is to be deleted; return the name of the note.

        Raises:
            StoreError: The note cannot be written; nothing has changed.
        """
        name = secrets.token_hex(8)
        removal = Removal(head.session_id, head.epoch, head.owner)
        await self._save_note(name, removal)
        self._unfinished[name] = removal
        return name

    async def remove_facts(self, name: str, known: Iterable[ExternalRecord] = ()) -> None:
        """Remove facts and files of a session, after noting what others keep for it.

        Args:
            name: Name of the note.
            known: What others keep in addition, according to the session in memory.

        Raises:
            StoreError: The session still exists; the removal is tried again.
        """
        removal = self._unfinished[name]
        if removal.elsewhere is None:
            every = tuple(dict.fromkeys((*await self._find_elsewhere(removal), *known)))
            removal = self._unfinished[name] = msgspec.structs.replace(removal, elsewhere=every)
            await self._save_note(name, removal)
        if not removal.is_gone:
            await self._remove_here(removal)
            self._unfinished[name] = msgspec.structs.replace(removal, is_gone=True)
            await self._save_note(name, self._unfinished[name])

    async def remove_elsewhere(self, name: str) -> list[Remainder]:
        """Remove what others keep for a session whose facts are removed.

        Returns:
            What still exists.

        Raises:
            StoreError: The note cannot be written; it is tried again.

        Cancel: Safe; the removal continues.
        """
        task = start_task(self._remove_elsewhere(name), "arp-removal")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return await asyncio.shield(task)

    async def _find_elsewhere(self, removal: Removal) -> list[ExternalRecord]:
        """Return the runtime sessions that the facts of a session name."""
        meta = await self._store.session(removal.session_id)
        if meta is None or meta.epoch != removal.epoch:
            return []
        found: list[ExternalRecord] = []
        try:
            async for _, body in facts(self._store, removal.session_id):
                # Only few facts name a runtime session, and decoding all of them would be slow.
                if b'"runtimeSessionId"' not in body:
                    continue
                fact = decode(body)
                about = fact.correlation if isinstance(fact.correlation, dict) else {}
                keeper, kept = about.get("runtime"), about.get("runtimeSessionId")
                is_new = fact.type == "thread.started"
                if is_new and isinstance(keeper, str) and isinstance(kept, str):
                    found.append(ExternalRecord(keeper, kept))
        except (StoreError, msgspec.DecodeError) as error:
            logger.warning(
                "session %s is deleted, but a part of it cannot be read: %s; runtime sessions that "
                "only this part names are not removed",
                removal.session_id,
                error,
            )
        return found

    async def _remove_elsewhere(self, name: str) -> list[Remainder]:
        """Remove what others keep; the note keeps what may be removable later."""
        self._under_way.add(name)
        try:
            removal = self._unfinished[name]
            every = removal.elsewhere or ()
            outcomes = await asyncio.gather(*map(self._remove_one, every))
            kept = tuple(
                one
                for one, outcome in zip(every, outcomes, strict=True)
                if outcome is not None and outcome.is_retried
            )
            if kept:
                self._unfinished[name] = msgspec.structs.replace(removal, elsewhere=kept)
                await self._save_note(name, self._unfinished[name])
            else:
                del self._unfinished[name]
                await self._store.note_removal(name, None)
            return [outcome for outcome in outcomes if outcome is not None]
        finally:
            self._under_way.discard(name)

    async def _remove_one(self, kept: ExternalRecord) -> Remainder | None:
        """Ask the keepers to remove something; return it if it still exists."""
        knows, failures = False, list[RemovalFailed]()
        for keeper in self._keepers():
            try:
                async with asyncio.timeout(REMOVE_S):
                    is_named = await keeper.remove(kept)
                knows = knows or is_named
            except RemovalFailed as failed:
                failures.append(failed)
            except TimeoutError:
                failures.append(RemovalFailed(f"no answer within {REMOVE_S:g} s", can_retry=True))
            except Exception:
                logger.exception("%s: session %s is not removed", kept.keeper, kept.id)
                reason = "the removal failed; the server's log has the reason"
                failures.append(RemovalFailed(reason, can_retry=True))
        if not knows and not failures:
            failures = [RemovalFailed("no agent of this app has this runtime", can_retry=True)]
        # Two agents may have runtimes of the same name; only one of them has this session. A
        # final failure of the other one does not count.
        failures = [one for one in failures if one.can_retry or not knows]
        if not failures:
            return None
        can_retry = any(one.can_retry for one in failures)
        why = next((one for one in failures if one.can_retry), failures[0]).reason
        logger.warning("%s: session %s is not removed: %s", kept.keeper, kept.id, why)
        return Remainder(kept.keeper, kept.id, why, can_retry)

    async def _retry(self) -> None:
        """Retry unfinished deletions periodically."""
        while True:
            for name in [name for name in self._unfinished if name not in self._under_way]:
                try:
                    await self.remove_facts(name)
                    await self._remove_elsewhere(name)
                except StoreError as error:
                    logger.warning("a session is not removed yet: %s", error)
            await asyncio.sleep(RETRY_S)

    async def _save_note(self, name: str, removal: Removal) -> None:
        await self._store.note_removal(name, msgspec.json.encode(removal).decode())
