"""Facts, rows and reads that the cases share."""

from __future__ import annotations

from arp.store.session_list import Match, SessionMeta
from arp.store.store import Page, SessionWrite, Store, append_all
from arp.store.store import facts as facts_of

MAX_SEARCHES = 100
"""Number of pages after which a search is taken to be endless."""


def fact(sequence: int, session_id: str = "s1") -> bytes:
    """Return an encoded fact that names its session and its sequence."""
    return b'{"sessionId":"%s","sequence":%d}' % (session_id.encode(), sequence)


def facts(first: int, last: int, session_id: str = "s1") -> list[bytes]:
    """Return the facts from sequence `first` to `last`, both included."""
    return [fact(sequence, session_id) for sequence in range(first, last + 1)]


def numbered(first: int, last: int, session_id: str = "s1") -> Page:
    """Return the facts from `first` to `last` as `Store.read` returns them."""
    return [(sequence, fact(sequence, session_id)) for sequence in range(first, last + 1)]


def meta(
    session_id: str = "s1", updated_at: str = "2026-11-21T08:00:00Z", **fields: object
) -> SessionMeta:
    """Return the row of a session; `fields` replaces the defaults."""
    defaults: dict[str, object] = {
        "epoch": "e1",
        "owner": "ann",
        "workflow": "explore",
        "title": "Sales",
        "created_at": "2026-11-21T07:00:00Z",
    }
    return SessionMeta(id=session_id, updated_at=updated_at, **(defaults | fields))  # type: ignore[arg-type] # the callers give fields of the right types


async def put(
    store: Store, first: int, last: int, session_id: str = "s1", *, fence: int = 0
) -> None:
    """Append the facts from `first` to `last` in one call.

    Raises:
        StoreError: The session was refused.
    """
    facts_to_append = facts(first, last, session_id)
    await append_all(store, [SessionWrite(session_id, first - 1, facts_to_append, fence=fence)])


async def put_row(store: Store, row: SessionMeta) -> None:
    """Store the row of a session that has no facts."""
    await append_all(store, [SessionWrite(row.id, 0, [], row)])


async def read_all(store: Store, session_id: str = "s1") -> Page:
    """Return all facts of a session."""
    return [entry async for entry in facts_of(store, session_id)]


async def last_of(store: Store, session_id: str) -> int:
    """Return the sequence of the newest fact of a session; 0 if it has none."""
    found = await read_all(store, session_id)
    return found[-1][0] if found else 0


async def search_all(store: Store, *words: str, owner: str = "ann") -> list[Match]:
    """Return all matches of a search, from all of its pages."""
    matches: list[Match] = []
    before: str | None = None
    for _ in range(MAX_SEARCHES):
        page = await store.search(words, owner=owner, before=before)
        matches += page.matches
        before = page.next
        if before is None:
            break
    return matches


async def found_ids(store: Store, *words: str, owner: str = "ann") -> list[str]:
    """Return the ids of all sessions that a search finds."""
    return [match.meta.id for match in await search_all(store, *words, owner=owner)]
