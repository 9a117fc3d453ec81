"""The store in memory, for tests and for embedding: nothing survives the process."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from arp.store.batch import plan_batch, refuse_invalid
from arp.store.errors import SequenceConflict, StoreClosed
from arp.store.session_list import (
    Match,
    SearchPage,
    SessionMeta,
    TurnText,
    excerpt,
    fold,
    missing_words,
    page_limit,
    split_cursor,
)
from arp.store.store import (
    Page,
    Refusals,
    SessionWrite,
    new_runtime_id,
    one_line,
    readable_prefix,
)


class MemoryStore:
    """A `Store` that keeps its facts until the process ends."""

    def __init__(self) -> None:
        self._facts: dict[str, list[bytes]] = {}
        self._metas: dict[str, SessionMeta] = {}
        self._texts: dict[str, dict[str, str]] = {}
        self._models: dict[tuple[str, str], tuple[int, bytes]] = {}
        self._removals: dict[str, str] = {}
        self._is_open = False
        self._runtime_id = new_runtime_id()

    async def open(self) -> None:
        """See `Store.open`."""
        self._is_open = True

    async def aclose(self) -> None:
        """See `Store.aclose`. The stored facts are available again after the next `open`."""
        self._is_open = False

    async def runtime_id(self) -> str:
        """See `Store.runtime_id`."""
        self._check_open()
        return self._runtime_id

    async def append(
        self,
        batch: Sequence[SessionWrite],
        together: Sequence[frozenset[str]] = (),
        *,
        is_awaited: bool = False,
    ) -> Refusals:
        """See `Store.append`. Never raises `StoreUnwritable`, since there is no disk."""
        self._check_open()
        refused = refuse_invalid(batch)
        writes, _ = plan_batch(batch, together, refused, self._last_of)
        for append in writes:
            if append.facts:
                self._facts.setdefault(append.session_id, []).extend(one_line(append.facts))
            if append.meta is not None:
                self._metas[append.session_id] = append.meta
            self._store_texts(append.session_id, append.texts)
        return refused

    async def read(self, session_id: str, after: int = 0, limit: int = 1000) -> Page:
        """See `Store.read`."""
        self._check_open()
        after, limit = max(after, 0), max(limit, 1)
        facts = self._facts.get(session_id, [])
        return readable_prefix(session_id, list(enumerate(facts[after : after + limit], after + 1)))

    async def sessions(
        self,
        *,
        owner: str | None = None,
        workflow: str | None = None,
        pinned: bool | None = None,
        before: str | None = None,
        limit: int = 50,
    ) -> list[SessionMeta]:
        """See `Store.sessions`."""
        self._check_open()
        cursor = split_cursor(before) if before is not None else None
        rows = [
            meta
            for meta in self._metas.values()
            if (owner is None or meta.owner == owner)
            and (workflow is None or meta.workflow == workflow)
            and (pinned is None or meta.pinned == pinned)
            and (cursor is None or (meta.updated_at, meta.id) < cursor)
        ]
        rows.sort(key=lambda meta: (meta.updated_at, meta.id), reverse=True)
        return [self._with_last_sequence(meta) for meta in rows[: page_limit(limit)]]

    async def search(
        self,
        words: Sequence[str],
        *,
        owner: str,
        workflow: str | None = None,
        pinned: bool | None = None,
        before: str | None = None,
        limit: int = 50,
    ) -> SearchPage:
        """See `Store.search`."""
        page_size, matches, last = page_limit(limit), list[Match](), before
        while page := await self.sessions(
            owner=owner, workflow=workflow, pinned=pinned, before=last
        ):
            for meta in page:
                last = meta.cursor
                match = self._match(meta, words)
                if match is not None:
                    matches.append(match)
                if len(matches) == page_size:
                    return SearchPage(matches, last)
        return SearchPage(matches, None)

    def _match(self, meta: SessionMeta, words: Sequence[str]) -> Match | None:
        missing = missing_words(meta.title, words)
        if not missing:
            return Match(meta)
        texts = self._texts.get(meta.id, {})
        newest = list(reversed(texts.items()))
        turns = [
            next(((turn_id, text) for turn_id, text in newest if word in fold(text)), None)
            for word in missing
        ]
        if turns[0] is None or None in turns:
            return None
        turn_id, text = turns[0]
        return Match(meta, turn_id, excerpt(text, missing[0]))

    async def session(self, session_id: str) -> SessionMeta | None:
        """See `Store.session`."""
        self._check_open()
        meta = self._metas.get(session_id)
        return self._with_last_sequence(meta) if meta else None

    async def delete(self, session_id: str) -> bool:
        """See `Store.delete`."""
        self._check_open()
        facts = self._facts.pop(session_id, None)
        meta = self._metas.pop(session_id, None)
        self._texts.pop(session_id, None)
        self._models = {key: model for key, model in self._models.items() if key[0] != session_id}
        return facts is not None or meta is not None

    async def note_removal(self, name: str, note: str | None) -> None:
        """See `Store.note_removal`."""
        self._check_open()
        self._removals.pop(name, None)
        if note is not None:
            self._removals[name] = note

    async def removals(self) -> dict[str, str]:
        """See `Store.removals`."""
        self._check_open()
        return dict(self._removals)

    async def open_sessions(self) -> list[str]:
        """See `Store.open_sessions`."""
        self._check_open()
        return sorted(meta.id for meta in self._metas.values() if meta.active)

    async def heads(self, session_id: str) -> list[tuple[int, bytes | None]]:
        """Return an empty list, since no hash is stored; see `Store.heads`."""
        self._check_open()
        return []

    async def save_model(self, session_id: str, name: str, sequence: int, data: bytes) -> None:
        """See `Store.save_model`."""
        self._check_open()
        last = len(self._facts.get(session_id, ()))
        if not 0 < sequence <= last:
            raise SequenceConflict(session_id, sequence, last)
        if self._models.get((session_id, name), (0, b""))[0] <= sequence:
            self._models[session_id, name] = sequence, data

    async def load_model(self, session_id: str, name: str) -> tuple[int, bytes] | None:
        """See `Store.load_model`."""
        self._check_open()
        return self._models.get((session_id, name))

    def _store_texts(self, session_id: str, texts: Sequence[TurnText]) -> None:
        if texts:
            stored = self._texts.setdefault(session_id, {})
            for one in texts:
                # Remove the old text first: assigning to an existing key would keep its position,
                # and the search expects the newest turn last.
                stored.pop(one.turn_id, None)
                stored[one.turn_id] = one.text

    def _check_open(self) -> None:
        if not self._is_open:
            raise StoreClosed

    def _last_of(self, session_id: str) -> int:
        return len(self._facts.get(session_id, ()))

    def _with_last_sequence(self, meta: SessionMeta) -> SessionMeta:
        return msgspec.structs.replace(meta, last_sequence=len(self._facts.get(meta.id, ())))
