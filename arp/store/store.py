"""The interface of every store, and the values that are appended to it."""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator, Awaitable, Sequence
from contextlib import aclosing
from typing import Final, Protocol, TypeAlias

import msgspec

from arp.store.errors import FactUnreadable
from arp.store.session_list import SearchPage, SessionMeta, TurnText

Page: TypeAlias = list[tuple[int, bytes]]
"""Facts of one session in order, without gaps: sequence and encoded fact."""

PAGE_FACTS: Final = 500
"""Facts that `pages` and `facts` read in one call."""

PAGE_BYTES: Final = 4 * 2**20
"""Most bytes of all facts of a page; a single larger fact is a page of its own."""


class SessionWrite(msgspec.Struct, frozen=True):
    """New facts of one session, which follow the last one stored."""

    session_id: str
    """Printable and not empty."""
    expected_sequence: int
    """The sequence of the last stored fact; 0 for a new session."""
    facts: list[bytes]
    """Encoded facts with the sequences from `expected_sequence + 1` on; may be empty."""
    meta: SessionMeta | None = None
    """The session's new row, or `None` to leave it as it is."""
    texts: Sequence[TurnText] = ()
    """The texts of turns that ended; a newer text of the same turn replaces the older one."""


class Store(Protocol):
    """Stores facts, by session. Safe for many tasks of one event loop."""

    async def open(self) -> None:
        """Open the store, with all facts that were acknowledged before a crash.

        Raises:
            StoreLocked: Another process has it.
            StoreUnavailable: It cannot be opened, or a newer version wrote it. Nothing changed.
        """

    async def aclose(self) -> None:
        """Write what is waiting and close the store. May be repeated."""

    async def runtime_id(self) -> str:
        """Return the id of the runtime that this ledger belongs to.

        It is created with the ledger, or when an older ledger is opened for the first time.
        """
        ...

    def append(self, batch: Sequence[SessionWrite]) -> Awaitable[None]:
        """Make all of `batch` durable, or none of it. Waiting calls share one transaction.

        Line breaks between the tokens of a fact become spaces; nothing else is changed.

        Raises:
            SequenceConflict: A session is not at its `expected_sequence`.
            StoreUnwritable: The disk refuses; until it works again, calls fail at once, and reads
                still work.
            StoreDamaged: A session of the batch is damaged.
            ValueError: As `check_append`.

        Cancel: The facts may still be stored. Read the last sequence before appending again.
        """

    async def read(self, session_id: str, after: int = 0, limit: int = 1000) -> Page:
        """Return up to `limit` facts after sequence `after`, in order, without gaps.

        To read all of them use `facts` or `pages`.

        Returns:
            An empty page if the session is unknown or has no more facts. Fewer facts than `limit`
            if they have `PAGE_BYTES` together, or the next one is damaged.

        Raises:
            StoreDamaged: The first fact after `after` is damaged; `FactUnreadable` if its checksum
                is right but it is no JSON.
        """

    async def sessions(
        self,
        *,
        owner: str | None = None,
        workflow: str | None = None,
        pinned: bool | None = None,
        before: str | None = None,
        limit: int = 50,
    ) -> list[SessionMeta]:
        """Return the sessions, newest update first.

        Args:
            owner: Only sessions of this owner; `None` means any.
            workflow: Only sessions of this workflow; `None` means any.
            pinned: Only pinned sessions, or only those that are not; `None` means both.
            before: The `cursor` of the last row of the previous page; any text is allowed.
            limit: 1 to `MAX_PAGE`; other values are clamped to that range.
        """

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
        """Return the sessions that have every word in their title or in the texts of their turns.

        One call searches a bounded number of sessions, newest update first.

        Args:
            words: As `session_list.words_of` returns them.
            owner: As in `sessions`.
            workflow: As in `sessions`.
            pinned: As in `sessions`.
            before: The `next` of the previous page.
            limit: As in `sessions`.
        """

    async def session(self, session_id: str) -> SessionMeta | None:
        """Return the row of one session, or `None`."""

    async def delete(self, session_id: str) -> bool:
        """Remove the session's row, facts, texts and models; return whether it had any.

        Raises:
            StoreUnwritable: The disk refuses; the session is still stored.
        """

    async def note_removal(self, name: str, note: str | None) -> None:
        """Write down that something is to be removed, durably, in place of an older note.

        Args:
            name: Of the removal.
            note: Any text; `None`: it is done.

        Raises:
            StoreUnwritable: The disk refuses; the older note is still stored.
        """

    async def removals(self) -> dict[str, str]:
        """Return the notes of all removals that are not done, by their names, oldest first."""
        ...

    async def open_sessions(self) -> list[str]:
        """Return the ids of the sessions whose row is `active`, in order of id."""

    async def heads(self, session_id: str) -> list[tuple[int, bytes | None]]:
        """Return the stored hashes of the session's chain.

        The hashes of other facts are computed from the previous one with `arp.ledger.chain.links`.

        Returns:
            Sequence and hash of a fact, in order; the hash is `None` if it is missing.
        """

    async def save_model(self, session_id: str, name: str, sequence: int, data: bytes) -> None:
        """Store a read model of a session, durably, and replace the older one.

        A model that covers less than the stored one changes nothing. `delete` removes it.

        Args:
            session_id: A session that has facts.
            name: The kind of model; one of each kind is stored.
            sequence: The sequence of the last fact that it covers.
            data: As `load_model` returns it.

        Raises:
            SequenceConflict: It covers more facts than the session has; nothing changes.
            StoreUnwritable: The disk refuses; the older model is still stored.

        Cancel: It may still be stored.
        """

    async def load_model(self, session_id: str, name: str) -> tuple[int, bytes] | None:
        """Return the sequence that a model covers and its data, as they were saved together.

        Returns:
            `None` if there is no model. The data is empty if it is damaged: build the model again
            from the facts, and save it.
        """


async def pages(
    store: Store, session_id: str, after: int = 0, through: int | None = None
) -> AsyncGenerator[Page, None]:
    """Yield the facts of a session in pages; one page at a time is in memory.

    Args:
        store: Has the facts.
        session_id: The session; an unknown one has no facts.
        after: The first fact is the one after this sequence.
        through: The sequence of the last fact; `None` reads to the end, including facts that are
            appended meanwhile.

    Raises:
        StoreDamaged: The next fact is damaged; all facts before it were yielded.
    """
    while through is None or after < through:
        limit = PAGE_FACTS if through is None else min(PAGE_FACTS, through - after)
        page = await store.read(session_id, after, limit)
        if not page:
            return
        after = page[-1][0]
        yield page


async def facts(
    store: Store, session_id: str, after: int = 0, through: int | None = None
) -> AsyncGenerator[tuple[int, bytes], None]:
    """Yield sequence and encoded fact of each fact of a session, as `pages` reads them.

    Raises:
        StoreDamaged: As `pages`.
    """
    async with aclosing(pages(store, session_id, after, through)) as found:
        async for page in found:
            for entry in page:
                yield entry


def new_runtime_id() -> str:
    """Return a random id for a new ledger."""
    return f"arp-{secrets.token_hex(8)}"


def check_append(append: SessionWrite) -> None:
    """Check that every store can store and return a write.

    Raises:
        ValueError: A fact is no JSON object, the session id is empty or not printable, the meta is
            of another session, a field by which sessions are sorted or filtered has a NUL, or a
            text has a lone surrogate, which cannot be encoded.
    """
    checked, read = 0, _object_decoder.decode
    try:
        for fact in append.facts:
            read(fact)
            checked += 1
    except msgspec.DecodeError as error:
        sequence = append.expected_sequence + checked + 1
        raise ValueError(f"fact {sequence} of session {append.session_id}: {error}") from None
    if append.texts:
        msgspec.json.encode(append.texts)
    if not append.session_id or not append.session_id.isprintable():
        raise ValueError(f"session id {append.session_id!r:.80} is empty or not printable")
    meta = append.meta
    if meta is None:
        return
    if meta.id != append.session_id:
        raise ValueError(f"meta of session {meta.id!r:.80} in an append to {append.session_id}")
    if "\0" in meta.owner or "\0" in meta.workflow or "\0" in meta.updated_at:
        raise ValueError(f"session {meta.id}: NUL in owner, workflow or updated_at")
    msgspec.json.encode(meta)


class _Object(msgspec.Struct, gc=False):
    """Any JSON object; its content is checked and dropped.

    It takes 0.2 µs per fact; a decoded object would take 1 µs.
    """


_object_decoder = msgspec.json.Decoder(_Object)


def readable(session_id: str, found: Page) -> Page:
    """Return the beginning of a page, up to `PAGE_BYTES` and to the first fact that is no JSON.

    Raises:
        FactUnreadable: The first fact of the page is no JSON object.
    """
    size = 0
    for place, (sequence, fact) in enumerate(found):
        size += len(fact)
        if size > PAGE_BYTES and place:
            return found[:place]
        try:
            _object_decoder.decode(fact)
        except msgspec.DecodeError as error:
            if place:
                return found[:place]
            raise FactUnreadable(session_id, sequence, str(error)) from None
    return found


def one_line(facts: list[bytes]) -> list[bytes]:
    """Return the facts without line breaks; in JSON they are only between tokens."""
    return [fact.replace(b"\n", b" ") if b"\n" in fact else fact for fact in facts]
