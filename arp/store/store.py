"""The interface of stores, and the values that are appended to a store."""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator, Awaitable, Sequence
from contextlib import aclosing
from typing import Final, Protocol, TypeAlias, runtime_checkable

import msgspec

from arp.store.errors import FactUnreadable, InvalidWrite, StoreError
from arp.store.session_list import SearchPage, SessionMeta, TurnText

Page: TypeAlias = list[tuple[int, bytes]]
"""Consecutive facts of one session, in order: sequence and encoded fact of each."""

Refusals: TypeAlias = dict[str, StoreError]
"""Sessions of a batch that were not stored, each with the reason."""

PAGE_FACTS: Final = 500
"""Number of facts that `pages` and `facts` read in one call."""

PAGE_BYTES: Final = 4 * 2**20
"""Maximum size of a page in bytes; a single larger fact is a page of its own."""


class SessionWrite(msgspec.Struct, frozen=True, gc=False):
    """New facts of one session, to append after its last stored fact."""

    session_id: str
    """Id of the session; printable and not empty."""
    expected_sequence: int
    """Sequence of the last stored fact; 0 for a new session."""
    facts: list[bytes]
    """Encoded facts with the sequences from `expected_sequence + 1` on; may be empty."""
    meta: SessionMeta | None = None
    """New row of the session; `None` leaves the stored row unchanged."""
    texts: Sequence[TurnText] = ()
    """Texts of turns that ended; a newer text of a turn replaces the older one."""
    fence: int = 0
    """Fence of the session, from `SharedStore.raise_fence`; 0 if it was never raised.

    Stores that only one process can open at a time ignore it.
    """


class Store(Protocol):
    """Stores the facts of sessions. Safe for many tasks of one event loop."""

    async def open(self) -> None:
        """Open the store, with all facts that were acknowledged before a crash.

        Raises:
            StoreLocked: Another process is using it.
            StoreUnavailable: It cannot be opened, or a newer version wrote it. Nothing changed.
        """

    async def aclose(self) -> None:
        """Finish the waiting calls and close the store. May be called again."""

    async def runtime_id(self) -> str:
        """Return the id of the runtime that this ledger belongs to.

        The id is created with the ledger, or when an older ledger is opened for the first time.
        """
        ...

    def append(
        self,
        batch: Sequence[SessionWrite],
        together: Sequence[frozenset[str]] = (),
        *,
        is_awaited: bool = False,
    ) -> Awaitable[Refusals]:
        """Make the writes of `batch` durable, each session by itself.

        All writes of one session are stored, or none of them. Waiting calls share one transaction.
        Line breaks between the tokens of a fact are replaced by spaces; nothing else is changed.

        Args:
            batch: New facts. A session may occur several times.
            together: Sets of session ids of the batch. The sessions of a set are stored together
                or not at all. Sets that share a session count as one set.
            is_awaited: Whether something waits for these facts to be durable, such as a tool that
                starts. Other facts, such as text, may wait some milliseconds, so that a
                transaction stores more of them.

        Returns:
            The sessions that are not stored, with the reason: `SequenceConflict` if the session is
            not at its `expected_sequence`, `SessionMoved` if `fence` is not its fence,
            `StoreDamaged`, or `InvalidWrite` (see `check_append`). Empty if everything is stored.

        Raises:
            StoreUnwritable: The disk or the database refuses writes. Until it accepts them again,
                calls fail immediately. The facts may or may not be stored.

        Cancel: The facts may still be stored. Read the last sequence before appending again.
        """

    async def read(self, session_id: str, after: int = 0, limit: int = 1000) -> Page:
        """Return up to `limit` facts after sequence `after`, in order, without gaps.

        To read all facts, use `facts` or `pages`.

        Returns:
            An empty page if the session is unknown or has no more facts. Fewer facts than `limit`
            if the page reaches `PAGE_BYTES`, or if the next fact is damaged.

        Raises:
            StoreDamaged: The first fact after `after` is damaged.
            FactUnreadable: The checksum of that fact is right, but it is not a JSON object.
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
        """Return the rows of sessions, newest update first.

        Args:
            owner: Owner of the sessions; `None` means any.
            workflow: Workflow of the sessions; `None` means any.
            pinned: `True` for pinned sessions only, `False` for the others only, `None` for all.
            before: `cursor` of the last row of the previous page; any text is allowed.
            limit: Maximum number of rows, clamped to 1 … `MAX_PAGE`.
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

        One call examines a bounded number of sessions, newest update first.

        Args:
            words: Words that `session_list.words_of` returned.
            owner: Owner of the sessions.
            workflow: See `sessions`.
            pinned: See `sessions`.
            before: `next` of the previous page.
            limit: See `sessions`.
        """

    async def session(self, session_id: str) -> SessionMeta | None:
        """Return the row of one session, or `None`."""

    async def delete(self, session_id: str) -> bool:
        """Delete the row, facts, texts and models of a session; return whether it had any of them.

        Raises:
            StoreUnwritable: The disk or the database refuses writes. The session may be deleted or
                not; nothing is half deleted.
        """

    async def note_removal(self, name: str, note: str | None) -> None:
        """Store a note about something that must still be removed; it replaces an older note.

        Args:
            name: Name of the removal.
            note: Any text; `None` deletes the note, because the removal is done.

        Raises:
            StoreUnwritable: The disk or the database refuses writes. The older note may or may not
                be replaced.
        """

    async def removals(self) -> dict[str, str]:
        """Return the notes of all removals that are not done, by name, oldest first."""
        ...

    async def open_sessions(self) -> list[str]:
        """Return the ids of the sessions with an `active` row, in order of id."""

    async def heads(self, session_id: str) -> list[tuple[int, bytes | None]]:
        """Return the stored hashes of a session's chain, in order.

        A store may keep no hashes, or only those of some facts, such as the last fact of each
        segment. `arp.ledger.chain.links` computes the hash of a fact from that of the fact before.

        Returns:
            Sequence and hash of each such fact. The hash is `None` if it was not stored, and empty
            if the stored hash is damaged.
        """

    async def save_model(self, session_id: str, name: str, sequence: int, data: bytes) -> None:
        """Make a read model of a session durable; it replaces the older one.

        A model that covers fewer facts than the stored one is not stored. `delete` deletes the
        models of a session too.

        Args:
            session_id: Id of a session that has facts.
            name: Kind of the model; one model of each kind is stored.
            sequence: Sequence of the last fact that the model covers.
            data: Content; `load_model` returns the same bytes.

        Raises:
            SequenceConflict: The model covers more facts than the session has; nothing changes.
            StoreUnwritable: The disk or the database refuses writes. The older model may or may not
                be replaced.

        Cancel: The model may still be stored.
        """

    async def load_model(self, session_id: str, name: str) -> tuple[int, bytes] | None:
        """Return the sequence that a model covers and its data, which were saved together.

        Returns:
            `None` if there is no model. Empty data if the stored data is damaged: then rebuild
            the model from the facts and save it.
        """


@runtime_checkable
class SharedStore(Store, Protocol):
    """A store that several processes may have open at the same time.

    Each session has a fence: a number that only rises. The process that raised it last is the owner
    of the session, and only the owner may write to it. The store compares the fence of each write
    with the fence of its session in the statement that stores the write. So no write of an earlier
    owner is stored after `raise_fence` has returned, however long the write was delayed.
    """

    async def raise_fence(self, session_id: str) -> int:
        """Raise the fence of a session and return it; 1 for a session without a fence.

        The session need not exist. `delete` keeps the fence, because an earlier owner may still
        write to the id.

        Raises:
            InvalidWrite: No session can have this id.
            StoreUnwritable: The fence may or may not have risen.
        """
        ...

    async def fence(self, session_id: str) -> int:
        """Return the fence of a session; 0 if it was never raised."""
        ...


async def append_all(store: Store, batch: Sequence[SessionWrite]) -> None:
    """Append facts; raise the error of the first session that is refused.

    Raises:
        StoreError: See `Store.append`. The other sessions of the batch are stored.
    """
    for error in (await store.append(batch)).values():
        raise error


async def pages(
    store: Store, session_id: str, after: int = 0, through: int | None = None
) -> AsyncGenerator[Page, None]:
    """Yield the facts of a session in pages. Only one page at a time is in memory.

    Args:
        store: Store of the facts.
        session_id: Id of the session; an unknown session has no facts.
        after: Sequence before the first fact.
        through: Sequence of the last fact. `None` reads to the end, including facts that are
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
    """Yield the facts of a session, each as its sequence and the encoded fact.

    Args:
        store: Store of the facts.
        session_id: Id of the session.
        after: See `pages`.
        through: See `pages`.

    Raises:
        StoreDamaged: The next fact is damaged; all facts before it were yielded.
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
        InvalidWrite: A fact is not a JSON object; the session id is empty or not printable; `meta`
            belongs to another session; `owner`, `workflow` or `updated_at` has a NUL; or a text
            has a lone surrogate, which cannot be encoded.
    """
    checked, decode = 0, _object_decoder.decode
    try:
        for fact in append.facts:
            decode(fact)
            # The decoder does not look at the texts that it skips.
            if not fact.isascii():
                fact.decode()
            checked += 1
    except (*_UNDECODABLE, UnicodeDecodeError) as error:
        sequence = append.expected_sequence + checked + 1
        raise InvalidWrite(f"fact {sequence} of session {append.session_id}: {error}") from None
    if not append.session_id or not append.session_id.isprintable():
        raise InvalidWrite(f"session id {append.session_id!r:.80} is empty or not printable")
    meta = append.meta
    if meta is not None and meta.id != append.session_id:
        raise InvalidWrite(f"meta of session {meta.id!r:.80} in an append to {append.session_id}")
    if meta is not None and "\0" in meta.owner + meta.workflow + meta.updated_at:
        raise InvalidWrite(f"session {meta.id}: NUL in owner, workflow or updated_at")
    try:
        if append.texts:
            msgspec.json.encode(append.texts)
        if meta is not None:
            msgspec.json.encode(meta)
    except UnicodeEncodeError as error:
        raise InvalidWrite(f"session {append.session_id}: {error}") from None


class _Object(msgspec.Struct, gc=False):
    """Any JSON object. Its content is checked, but not decoded.

    This takes 0.2 µs per fact; decoding the content would take 1 µs.
    """


_object_decoder = msgspec.json.Decoder(_Object)

_UNDECODABLE: Final = (msgspec.DecodeError, RecursionError)
"""What decoding can raise; `RecursionError` if arrays or objects are nested too deeply."""


def readable_prefix(session_id: str, page: Page) -> Page:
    """Return the beginning of a page: at most `PAGE_BYTES`, and JSON objects only.

    A first fact above `PAGE_BYTES` is returned alone.

    Raises:
        FactUnreadable: The first fact of the page is not a JSON object.
    """
    size = 0
    for index, (sequence, fact) in enumerate(page):
        size += len(fact)
        # Never cut before the first fact: an empty page would mean the end of the session.
        if size > PAGE_BYTES and index:
            return page[:index]
        try:
            _object_decoder.decode(fact)
        except _UNDECODABLE as error:
            if index:
                return page[:index]
            raise FactUnreadable(session_id, sequence, str(error)) from None
    return page


def one_line(facts: list[bytes]) -> list[bytes]:
    """Replace the line breaks of facts by spaces; in JSON they occur only between tokens."""
    return [fact.replace(b"\n", b" ") if b"\n" in fact else fact for fact in facts]
