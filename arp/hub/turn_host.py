"""What the hub does for one turn: the author's `Turn` asks for it, the runner gives it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

from arp.access.principal import User
from arp.hub.delivery import Viewer
from arp.protocol.messages import FileRef
from arp.record.outputs import OutputStore
from arp.session.session import Session

T = TypeVar("T")

MAX_UNWRITTEN = 16 << 10
"""Characters that a turn may send before it waits for the ledger to take them."""


class TurnHost(Protocol):
    """Where a turn runs."""

    @property
    def session(self) -> Session:
        """The session that the turn belongs to."""
        ...

    @property
    def user(self) -> User:
        """Who began the turn."""
        ...

    @property
    def cache(self) -> dict[str, Any]:
        """The agent's objects for this session, in memory."""
        ...

    @property
    def viewers(self) -> Iterable[Viewer]:
        """The renderers that are attached now."""
        ...

    @property
    def outputs(self) -> OutputStore:
        """Where large outputs are kept."""
        ...

    @property
    def is_stopping(self) -> bool:
        """Whether the turn was stopped, or the server stops."""
        ...

    def changed(self) -> None:
        """Have what was recorded written and delivered. To be called after every change."""

    def text_added(self, size: int) -> bool:
        """As `changed`, behind so many characters of text; return whether to wait for `room`."""
        ...

    async def room(self) -> None:
        """Wait until what is recorded now is on its way to the disk."""

    async def unless_gone(self, future: asyncio.Future[T]) -> T:
        """Wait for a future; raise the reason if the session leaves the hub before."""
        ...

    async def read_file(self, sha256: str) -> bytes:
        """Return the content of a file of the session."""
        ...

    async def save_file(self, name: str, content: bytes | os.PathLike[str], mime: str) -> FileRef:
        """Keep a file of the agent."""
        ...

    def span_of_tool(self, call_id: str) -> AbstractContextManager[None]:
        """Run the code of a tool in its span."""
        ...
