"""Archive of turns that left a session's memory, stored in pages beside the log.

A page holds fifty turns by number. A turn is stored as it was when it left memory; it does not
change after that. Pages are a cache like states: a page that is missing, damaged or of another
version is read from the log again.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

import msgspec
from msgspec import Struct

from arp.protocol.components import Component
from arp.protocol.connection.screen import TurnScreen
from arp.session.session import Head
from arp.session.state import STATE_VERSION
from arp.session.tracking.window import PastTurn
from arp.store.store import Store

logger = logging.getLogger(__name__)

PAGE_TURNS = 50
"""Turns per page; equals the default page size of the history."""


class _Page(Struct, frozen=True):
    version: int
    epoch: str
    turns: list[tuple[int, TurnScreen, list[Component]]]
    """Turns in order: number, turn and output."""


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(_Page)


class Archive:
    """Stored turns of a hub's sessions."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def save(self, head: Head, sequence: int, turns: Iterable[PastTurn]) -> None:
        """Add turns to the archive.

        Args:
            head: Head of their session.
            sequence: Sequence of a durable fact at which they had left memory.
            turns: Turns in any order; a turn that is already stored is replaced.

        Raises:
            StoreError: See `Store.save_model`; some pages may be stored.
        """
        pages: dict[int, dict[int, PastTurn]] = {}
        for past in turns:
            pages.setdefault(_page_of(past.number), {})[past.number] = past
        for number, added in sorted(pages.items()):
            merged = await self._page(head, number) | added
            data = _encoder.encode(
                _Page(
                    STATE_VERSION,
                    head.epoch,
                    [(each, merged[each].turn, merged[each].output) for each in sorted(merged)],
                )
            )
            await self._store.save_model(head.session_id, _name(number), sequence, data)

    async def read(self, head: Head, numbers: Iterable[int]) -> dict[int, PastTurn]:
        """Return the archived turns with these numbers; others are missing from the result.

        Raises:
            StoreError: The store cannot be read.
        """
        wanted = set(numbers)
        found: dict[int, PastTurn] = {}
        for page in sorted({_page_of(number) for number in wanted}):
            turns = await self._page(head, page)
            found |= {number: past for number, past in turns.items() if number in wanted}
        return found

    async def _page(self, head: Head, number: int) -> dict[int, PastTurn]:
        stored = await self._store.load_model(head.session_id, _name(number))
        if stored is None:
            return {}
        try:
            page = _decoder.decode(stored[1])
        except (msgspec.DecodeError, RecursionError) as error:
            logger.warning("session %s: a page of turns is damaged: %s", head.session_id, error)
            return {}
        if (page.version, page.epoch) != (STATE_VERSION, head.epoch):
            return {}
        return {each: PastTurn(each, turn, output) for each, turn, output in page.turns}


def _page_of(number: int) -> int:
    return (number - 1) // PAGE_TURNS


def _name(page: int) -> str:
    return f"turns/{page}"
