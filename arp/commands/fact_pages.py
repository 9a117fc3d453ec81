"""A session's facts in pages with their sequences; large outputs from beside a ledger file."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from itertools import islice

import msgspec

from arp.commands.source import Source, SourceError
from arp.ledger.fact import decode
from arp.ledger.models.reading import text
from arp.store.blobs import BlobStore
from arp.store.location import path_of

PAGE = 500
"""Facts in one."""

Page = list[tuple[int, bytes]]


def pages(source: Source, session_id: str) -> Iterator[Page]:
    """Gives the facts of a session from the first on; the log has no holes.

    Raises:
        SourceError: There is no such session, or it cannot be read.
    """
    facts = enumerate(source.events(session_id, 0, ()), 1)
    while page := list(islice(facts, PAGE)):
        yield page


def epoch_of(source: Source, session_id: str) -> str:
    """Gives the epoch of a session's log, which its first fact tells.

    Raises:
        SourceError: There is no such session, it is empty, or it cannot be read.
    """
    first = next(source.events(session_id, 0, ()), None)
    if first is None:
        raise SourceError(f"session {session_id!r:.80} has no facts yet")
    try:
        epoch = text(decode(first).payload, "epoch")
    except msgspec.DecodeError as error:
        raise SourceError(f"fact 1 of session {session_id!r:.80} is none: {error}") from error
    if epoch is None:
        raise SourceError(f"fact 1 of session {session_id!r:.80} names no epoch")
    return epoch


def output_reader(ledger: str | None, session_id: str) -> Callable[[str], bytes] | None:
    """Gives what reads a session's large outputs; `None` where no ledger file is to look beside."""
    path = path_of(ledger) if ledger is not None else None
    if path is None:
        return None
    files = BlobStore(path.with_suffix(".blobs")).of(session_id)
    return lambda ref: asyncio.run(files.read(ref))
