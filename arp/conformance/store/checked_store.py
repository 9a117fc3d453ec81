"""`CheckedStore`: limits the time of each call of a store, and checks the type of its result."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final

from arp.conformance.cases import CaseFailed
from arp.store.errors import StoreError
from arp.store.session_list import SearchPage, SessionMeta
from arp.store.store import Page, Refusals, SessionWrite, Store

CALL_S: Final = 20.0
"""Time in seconds that one call of a store may take."""


class CheckedStore:
    """A store under test.

    Errors of the store pass through. Everything else that is wrong is the failure of the case: an
    exception that is no `StoreError`, a result of another type, or no result within `CALL_S`. So
    any other exception in a case is a fault of the suite.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    @property
    def is_shared(self) -> bool:
        """Whether several processes may have the storage open."""
        return hasattr(self._store, "raise_fence")

    async def open(self) -> None:
        """See `Store.open`."""
        await self._call("open", _is_none)

    async def aclose(self) -> None:
        """See `Store.aclose`."""
        await self._call("aclose", _is_none)

    async def runtime_id(self) -> str:
        """See `Store.runtime_id`."""
        return str(await self._call("runtime_id", _is_text))

    async def append(
        self,
        batch: Sequence[SessionWrite],
        together: Sequence[frozenset[str]] = (),
        *,
        is_awaited: bool = False,
    ) -> Refusals:
        """See `Store.append`."""
        refused: Refusals = await self._call(
            "append", _is_refusals, batch, together, is_awaited=is_awaited
        )
        return refused

    async def read(self, session_id: str, after: int = 0, limit: int = 1000) -> Page:
        """See `Store.read`."""
        page: Page = await self._call("read", _is_page, session_id, after, limit)
        return page

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
        rows: list[SessionMeta] = await self._call(
            "sessions",
            _is_rows,
            owner=owner,
            workflow=workflow,
            pinned=pinned,
            before=before,
            limit=limit,
        )
        return rows

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
        page: SearchPage = await self._call(
            "search",
            lambda result: isinstance(result, SearchPage),
            words,
            owner=owner,
            workflow=workflow,
            pinned=pinned,
            before=before,
            limit=limit,
        )
        return page

    async def session(self, session_id: str) -> SessionMeta | None:
        """See `Store.session`."""
        row: SessionMeta | None = await self._call("session", _is_row, session_id)
        return row

    async def delete(self, session_id: str) -> bool:
        """See `Store.delete`."""
        return bool(await self._call("delete", _is_bool, session_id))

    async def note_removal(self, name: str, note: str | None) -> None:
        """See `Store.note_removal`."""
        await self._call("note_removal", _is_none, name, note)

    async def removals(self) -> dict[str, str]:
        """See `Store.removals`."""
        notes: dict[str, str] = await self._call("removals", _is_notes)
        return notes

    async def open_sessions(self) -> list[str]:
        """See `Store.open_sessions`."""
        ids: list[str] = await self._call("open_sessions", _is_texts)
        return ids

    async def heads(self, session_id: str) -> list[tuple[int, bytes | None]]:
        """See `Store.heads`."""
        heads: list[tuple[int, bytes | None]] = await self._call("heads", _is_heads, session_id)
        return heads

    async def save_model(self, session_id: str, name: str, sequence: int, data: bytes) -> None:
        """See `Store.save_model`."""
        await self._call("save_model", _is_none, session_id, name, sequence, data)

    async def load_model(self, session_id: str, name: str) -> tuple[int, bytes] | None:
        """See `Store.load_model`."""
        model: tuple[int, bytes] | None = await self._call(
            "load_model", _is_model, session_id, name
        )
        return model

    async def raise_fence(self, session_id: str) -> int:
        """See `SharedStore.raise_fence`."""
        return int(await self._call("raise_fence", _is_int, session_id))

    async def fence(self, session_id: str) -> int:
        """See `SharedStore.fence`."""
        return int(await self._call("fence", _is_int, session_id))

    async def _call(
        self, method: str, is_right: Callable[[Any], bool], *args: Any, **options: Any
    ) -> Any:
        """Call a method of the store and return its result.

        Raises:
            StoreError: The store raised it.
            CaseFailed: The store did anything else that is wrong.
        """
        task, limit = asyncio.current_task(), asyncio.timeout(CALL_S)
        try:
            async with limit:
                result = await getattr(self._store, method)(*args, **options)
        except StoreError:
            raise
        except BaseException as error:
            if limit.expired():
                raise CaseFailed(f"Timeout: {method} took longer than {CALL_S:g} s") from None
            if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
                raise
            text = f"{type(error).__name__}: {error}"
            raise CaseFailed(f"{method} raised {text}, which is no StoreError") from error
        if not is_right(result):
            raise CaseFailed(f"{method} returned a value of another type: {result!r:.200}")
        return result


def _is_none(result: Any) -> bool:
    return result is None


def _is_bool(result: Any) -> bool:
    return isinstance(result, bool)


def _is_int(result: Any) -> bool:
    return isinstance(result, int) and not isinstance(result, bool)


def _is_text(result: Any) -> bool:
    return isinstance(result, str)


def _is_texts(result: Any) -> bool:
    return isinstance(result, list) and all(map(_is_text, result))


def _is_refusals(result: Any) -> bool:
    return isinstance(result, dict) and all(
        isinstance(name, str) and isinstance(error, StoreError) for name, error in result.items()
    )


def _is_pair(result: Any) -> bool:
    return isinstance(result, tuple) and len(result) == 2 and _is_int(result[0])


def _is_page(result: Any) -> bool:
    return isinstance(result, list) and all(
        _is_pair(entry) and isinstance(entry[1], bytes) for entry in result
    )


def _is_heads(result: Any) -> bool:
    return isinstance(result, list) and all(
        _is_pair(entry) and isinstance(entry[1], bytes | None) for entry in result
    )


def _is_model(result: Any) -> bool:
    return result is None or (_is_pair(result) and isinstance(result[1], bytes))


def _is_row(result: Any) -> bool:
    return isinstance(result, SessionMeta | None)


def _is_rows(result: Any) -> bool:
    return isinstance(result, list) and all(isinstance(row, SessionMeta) for row in result)


def _is_notes(result: Any) -> bool:
    return isinstance(result, dict) and _is_texts([*result, *result.values()])
