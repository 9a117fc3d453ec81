"""A session's facts in pages, for what reads all of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from arp.store.store import Store

PAGE = 500
"""Facts in one."""

Page = list[tuple[int, bytes]]


async def pages(store: Store, session_id: str, through: int) -> AsyncGenerator[Page, None]:
    """Gives the facts of a session from the first on, with their sequences, up to a sequence.

    Raises:
        StoreDamaged: The next fact does not pass its checksum.
    """
    after = 0
    while after < through:
        page = await store.read(session_id, after, min(PAGE, through - after))
        if not page:
            return
        after = page[-1][0]
        yield page


async def fed(store: Store, session_id: str, through: int, take: Callable[[Page], object]) -> None:
    """Hands all facts up to a sequence to somebody, in a thread: the loop goes on meanwhile.

    Raises:
        StoreDamaged: As `pages`.
    """
    async with aclosing(pages(store, session_id, through)) as several:
        async for page in several:
            await asyncio.to_thread(take, page)
