"""Mutants for the cases about lists, searches, models, removals and deletions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from arp.store.memory import MemoryStore
from arp.store.session_list import Match, SearchPage, SessionMeta, TurnText, fold
from arp.store.store import Refusals
from tests.conformance.mutant_stores import Units, Writes, found_by, replace


@found_by("row_as_written")
class LostFieldStore(MemoryStore):
    def _with_last_sequence(self, meta: SessionMeta) -> SessionMeta:
        return replace(super()._with_last_sequence(meta), is_named=False)


@found_by("last_sequence")
class CallersSequenceStore(MemoryStore):
    def _with_last_sequence(self, meta: SessionMeta) -> SessionMeta:
        return meta


@found_by("row_unchanged")
class LostRowStore(MemoryStore):
    async def append(
        self, batch: Writes, together: Units = (), *, is_awaited: bool = False
    ) -> Refusals:
        for write in batch:
            if write.meta is None:
                self._metas.pop(write.session_id, None)
        return await super().append(batch, together)


@found_by("last_row")
class FirstRowStore(MemoryStore):
    async def append(
        self, batch: Writes, together: Units = (), *, is_awaited: bool = False
    ) -> Refusals:
        refused = await super().append(batch, together)
        for write in reversed(batch):
            if write.meta is not None:
                self._metas[write.session_id] = write.meta
        return refused


@found_by("no_row")
class EveryRowStore(MemoryStore):
    async def append(
        self, batch: Writes, together: Units = (), *, is_awaited: bool = False
    ) -> Refusals:
        for write in batch:
            empty = SessionMeta(write.session_id, "", "", "", "", "", "")
            self._metas.setdefault(write.session_id, empty)
        return await super().append(batch, together)


@found_by("newest_first")
class OldestFirstStore(MemoryStore):
    async def sessions(self, **options: Any) -> list[SessionMeta]:
        return (await super().sessions(**options))[::-1]


@found_by("order_of_ids")
class LanguageOrderStore(MemoryStore):
    async def open_sessions(self) -> list[str]:
        return sorted(await super().open_sessions(), key=str.lower)


@found_by("filters")
class AnyOwnerStore(MemoryStore):
    async def sessions(self, *, owner: str | None = None, **options: Any) -> list[SessionMeta]:
        return await super().sessions(owner=owner or None, **options)


@found_by("pinned")
class PinnedOrAllStore(MemoryStore):
    async def sessions(self, *, pinned: bool | None = None, **options: Any) -> list[SessionMeta]:
        return await super().sessions(pinned=pinned or None, **options)


@found_by("cursors")
class RepeatingStore(MemoryStore):
    async def sessions(self, *, before: str | None = None, **options: Any) -> list[SessionMeta]:
        return await super().sessions(before=before and f"{before}~", **options)


@found_by("odd_cursors")
class StrictCursorStore(MemoryStore):
    async def sessions(self, *, before: str | None = None, **options: Any) -> list[SessionMeta]:
        if before is not None:
            _, _ = before.split("~")
        return await super().sessions(before=before, **options)


@found_by("list_limits")
class NoRowsStore(MemoryStore):
    async def sessions(self, *, limit: int = 50, **options: Any) -> list[SessionMeta]:
        return (await super().sessions(limit=limit, **options))[: max(limit, 0)]


@found_by("row_moves")
class FirstOwnerStore(MemoryStore):
    async def append(
        self, batch: Writes, together: Units = (), *, is_awaited: bool = False
    ) -> Refusals:
        owners = {name: meta.owner for name, meta in self._metas.items()}
        refused = await super().append(batch, together)
        for name, owner in owners.items():
            self._metas[name] = replace(self._metas[name], owner=owner)
        return refused


@found_by("open_sessions")
class EverOpenStore(MemoryStore):
    def __init__(self) -> None:
        super().__init__()
        self.ever_open: set[str] = set()

    async def open_sessions(self) -> list[str]:
        self.ever_open |= set(await super().open_sessions())
        return sorted(self.ever_open)


@found_by("title_or_text")
class NoTitlesStore(MemoryStore):
    def _match(self, meta: SessionMeta, words: Sequence[str]) -> Match | None:
        return super()._match(replace(meta, title=""), words)


@found_by("every_word")
class AnyWordStore(MemoryStore):
    def _match(self, meta: SessionMeta, words: Sequence[str]) -> Match | None:
        matches = [MemoryStore._match(self, meta, [word]) for word in words]
        return next((match for match in matches if match is not None), None)


@found_by("any_case")
class AsciiStore(MemoryStore):
    def _match(self, meta: SessionMeta, words: Sequence[str]) -> Match | None:
        texts = " ".join(self._texts.get(meta.id, {}).values())
        is_found = all(word.isascii() or word in texts for word in words)
        return super()._match(meta, words) if is_found else None


@found_by("literal_words")
class WildcardStore(MemoryStore):
    def _match(self, meta: SessionMeta, words: Sequence[str]) -> Match | None:
        texts = fold(" ".join([meta.title, *self._texts.get(meta.id, {}).values()]))
        patterns = [re.escape(word).replace("_", ".") for word in words]
        return Match(meta) if all(re.search(one, texts) for one in patterns) else None


@found_by("match_of_a_turn")
class OldestTurnStore(MemoryStore):
    def _match(self, meta: SessionMeta, words: Sequence[str]) -> Match | None:
        texts = self._texts.get(meta.id, {})
        self._texts[meta.id] = dict(reversed(texts.items()))
        try:
            return super()._match(meta, words)
        finally:
            self._texts[meta.id] = texts


@found_by("search_filters")
class EveryOwnerStore(MemoryStore):
    is_searching = False

    async def search(self, words: Sequence[str], **options: Any) -> SearchPage:
        self.is_searching = True
        try:
            return await super().search(words, **options)
        finally:
            self.is_searching = False

    async def sessions(self, *, owner: str | None = None, **options: Any) -> list[SessionMeta]:
        return await super().sessions(owner=None if self.is_searching else owner, **options)


@found_by("search_pages")
class OnePageStore(MemoryStore):
    async def search(self, words: Sequence[str], **options: Any) -> SearchPage:
        return replace(await super().search(words, **options), next=None)


@found_by("text_replaced")
class EveryTextStore(MemoryStore):
    def _store_texts(self, session_id: str, texts: Sequence[TurnText]) -> None:
        count = len(self._texts.get(session_id, ()))
        new = [TurnText(f"{one.turn_id}-{count}", one.text) for one in texts]
        super()._store_texts(session_id, new)


@found_by("model_as_saved")
class TextModelStore(MemoryStore):
    async def save_model(self, session_id: str, name: str, sequence: int, data: bytes) -> None:
        text = data.decode(errors="replace")
        await super().save_model(session_id, name, sequence, text.encode())


@found_by("model_names")
class OneModelStore(MemoryStore):
    async def save_model(self, session_id: str, name: str, sequence: int, data: bytes) -> None:
        await super().save_model(session_id, "model", sequence, data)

    async def load_model(self, session_id: str, name: str) -> tuple[int, bytes] | None:
        return await super().load_model(session_id, "model")


@found_by("newer_model")
class LastModelStore(MemoryStore):
    async def save_model(self, session_id: str, name: str, sequence: int, data: bytes) -> None:
        self._models.pop((session_id, name), None)
        await super().save_model(session_id, name, sequence, data)


@found_by("same_sequence_model")
class FirstModelStore(MemoryStore):
    async def save_model(self, session_id: str, name: str, sequence: int, data: bytes) -> None:
        if self._models.get((session_id, name), (0, b""))[0] != sequence:
            await super().save_model(session_id, name, sequence, data)


@found_by("model_ahead")
class AnyModelStore(MemoryStore):
    async def save_model(self, session_id: str, name: str, sequence: int, data: bytes) -> None:
        self._models[session_id, name] = sequence, data


@found_by("removal_notes")
class EmptyNoteStore(MemoryStore):
    async def note_removal(self, name: str, note: str | None) -> None:
        await super().note_removal(name, note or "")


@found_by("order_of_removals")
class SortedNotesStore(MemoryStore):
    async def removals(self) -> dict[str, str]:
        return dict(sorted((await super().removals()).items()))


@found_by("deleted_facts")
class KeptFactsStore(MemoryStore):
    async def delete(self, session_id: str) -> bool:
        kept = dict(self._facts)
        was_stored = await super().delete(session_id)
        self._facts.update(kept)
        return was_stored


@found_by("deleted_row")
class KeptRowStore(MemoryStore):
    async def delete(self, session_id: str) -> bool:
        kept = dict(self._metas)
        was_stored = await super().delete(session_id)
        self._metas.update(kept)
        return was_stored


@found_by("deleted_texts")
class KeptTextsStore(MemoryStore):
    async def delete(self, session_id: str) -> bool:
        kept = dict(self._texts)
        was_stored = await super().delete(session_id)
        self._texts.update(kept)
        return was_stored


@found_by("deleted_models")
class KeptModelsStore(MemoryStore):
    async def delete(self, session_id: str) -> bool:
        kept = dict(self._models)
        was_stored = await super().delete(session_id)
        self._models.update(kept)
        return was_stored


@found_by("other_sessions")
class PrefixStore(MemoryStore):
    async def delete(self, session_id: str) -> bool:
        names = [name for name in self._facts if name.startswith(session_id)]
        return any([await MemoryStore.delete(self, name) for name in names])


@found_by("id_used_again")
class RememberingStore(MemoryStore):
    def __init__(self) -> None:
        super().__init__()
        self.deleted: dict[str, int] = {}

    async def delete(self, session_id: str) -> bool:
        self.deleted[session_id] = self._last_of(session_id)
        return await super().delete(session_id)

    def _last_of(self, session_id: str) -> int:
        return super()._last_of(session_id) + self.deleted.get(session_id, 0)


@found_by("result_of_delete")
class AlwaysTrueStore(MemoryStore):
    async def delete(self, session_id: str) -> bool:
        await super().delete(session_id)
        return True
