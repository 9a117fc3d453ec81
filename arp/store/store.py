"""The interface of every store, and what is appended to it."""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator, Awaitable, Sequence
from contextlib import aclosing
from typing import Final, Protocol, TypeAlias

import msgspec

from arp.store.errors import FactUnreadable
from arp.store.session_list import SearchPage, SessionMeta, TurnText

Page: TypeAlias = list[tuple[int, bytes]]
"""Facts of one session in order, without holes: sequence and encoded fact."""

PAGE_FACTS: Final = 500
"""Facts that `pages` and `facts` read at once."""

PAGE_BYTES: Final = 4 * 2**20
"""Facts of one page have at most this size together; a single larger fact is a page."""


class SessionWrite(msgspec.Struct, frozen=True):
    """Facts of one session that follow the last one stored."""

    session_id: str
    """Printable and not empty."""
    expected_sequence: int
    """The last sequence that is stored already; 0 for a new session."""
    facts: list[bytes]
    """Encoded facts with the sequences `expected_sequence + 1` and on; may be empty."""
    meta: SessionMeta | None = None
    """The session's new row, or `None` to leave it as it is."""
    texts: Sequence[TurnText] = ()
    """The texts of turns that ended; a newer text of the same turn replaces the older."""


class Store(Protocol):
    """Where facts live. Safe for many tasks of one event loop."""

    async def open(self) -> None:
        """Make the store ready: what was acknowledged before a crash is there.

        Raises:
            StoreLocked: Another process has it.
            StoreUnavailable: It cannot be opened, or a newer version wrote it. Nothing changed.
        """

    async def aclose(self) -> None:
        """End the store; what waits is written first. Harmless when repeated."""

    async def runtime_id(self) -> str:
        """Return the name of the runtime that this ledger belongs to.

        It is made with the ledger, or when an older ledger is opened for the first time.
        """
        ...

    def append(self, batch: Sequence[SessionWrite]) -> Awaitable[None]:
        """Make all of `batch` durable, or nothing of it. Calls that wait share one transaction.

        Line breaks between the tokens of a fact become spaces; nothing else is changed.

        Raises:
            SequenceConflict: A session is not at its `expected_sequence`.
            StoreUnwritable: The disk refuses; until it is back, calls fail at once and reads go on.
            StoreDamaged: A session of the batch is damaged.
            ValueError: As `check_append`.

        Cancel: The facts may still be stored. Read the last sequence before appending again.
        """

    async def read(self, session_id: str, after: int = 0, limit: int = 1000) -> Page:
        """Return up to `limit` facts after sequence `after`, in order, without holes.

        To read all of them use `facts` or `pages`.

        Returns:
            None if the session is unknown or has no more. Fewer than `limit` where they have
            `PAGE_BYTES` together.

        Raises:
            StoreDamaged: The very next fact is damaged (those before it are given); it is a
                `FactUnreadable` if the fact is what was written, and no JSON.
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
            owner: Only those of this owner; `None` means everybody's.
            workflow: Only those of this workflow; `None` means any.
            pinned: Only those that are pinned, or only those that are not; `None` means both.
            before: The `cursor` of the last row of the page before; any text is harmless.
            limit: 1 to `MAX_PAGE`; what is outside is brought inside.
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
        """Return the sessions that have each word in their title or in the texts of their turns.

        One call searches a bounded number of sessions, newest update first.

        Args:
            words: As `session_list.words_of` returns them.
            owner: As in `sessions`; the rest too.
            workflow: As in `sessions`.
            pinned: As in `sessions`.
            before: The `next` of the page before.
            limit: As in `sessions`.
        """

    async def session(self, session_id: str) -> SessionMeta | None:
        """Return the row of one session, or `None`."""

    async def delete(self, session_id: str) -> bool:
        """Remove the session's row and facts for good; return whether there was anything.

        Raises:
            StoreUnwritable: The disk refuses; the session is still there.
        """

    async def open_sessions(self) -> list[str]:
        """Return the ids of the sessions whose row says `active`, in order of id."""

    async def heads(self, session_id: str) -> list[tuple[int, bytes | None]]:
        """Return every stored hash of the session's chain: sequences, and hashes of facts.

        The hashes of other facts are made from the one before with `arp.ledger.chain.links`.

        Returns:
            In order. `None`: the hash should be stored and is not.
        """

    async def save_model(self, session_id: str, name: str, sequence: int, data: bytes) -> None:
        """Store what was made of a session's facts, durably, in the place of the one before.

        One that covers less than the stored one changes nothing. It is deleted with the session.

        Args:
            session_id: Of a session that has facts.
            name: Of the kind of model; one of each is stored.
            sequence: Of the last fact that it covers.
            data: As `load_model` returns it.

        Raises:
            SequenceConflict: It covers more than the session has; nothing changes.
            StoreUnwritable: The disk refuses; the one before is still there.

        Cancel: It may still be stored.
        """

    async def load_model(self, session_id: str, name: str) -> tuple[int, bytes] | None:
        """Return the sequence that a model covers and its data, as they were saved together.

        Returns:
            `None` if there is none. The data is empty if it is damaged: make it again from the
            facts, and save it.
        """


async def pages(
    store: Store, session_id: str, after: int = 0, through: int | None = None
) -> AsyncGenerator[Page, None]:
    """Yield the facts of a session in pages; one page at a time is in memory.

    Args:
        store: Holds the facts.
        session_id: Of the session; an unknown one has no facts.
        after: The first fact is the one after this sequence.
        through: The sequence of the last fact; `None` reads to the end, with facts that are
            appended meanwhile.

    Raises:
        StoreDamaged: The next fact is damaged; all before it were yielded.
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
    """Return a name that no other ledger has."""
    return f"arp-{secrets.token_hex(8)}"


def check_append(append: SessionWrite) -> None:
    """Refuse what some store could not hold, or could not return.

    Raises:
        ValueError: A fact that is no JSON object, a session id that is empty or not printable, a
            meta of another session, a NUL in what the list of sessions is sorted and filtered by,
            or a text with half a character (a lone surrogate), which no encoding has.
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
    """Any JSON object; its content is checked and dropped."""


_object_decoder = msgspec.json.Decoder(_Object)


def readable(session_id: str, found: Page) -> Page:
    """Return a page of facts: up to the first that is no JSON object, and up to `PAGE_BYTES`.

    Raises:
        FactUnreadable: It is the very first.
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
    """Return the facts without line breaks, which in JSON are only between tokens."""
    return [fact.replace(b"\n", b" ") if b"\n" in fact else fact for fact in facts]
