"""A client whose screen tests wait for, with a message that says what shows when it is in vain."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from arp.client.client import ArpClient
from arp.protocol.screen import Screen
from arp.testbed.snapshot import turn_as_text

T = TypeVar("T")


class WatchedClient:
    """A client, and how long a test waits for what it is to show.

    Args:
        client: The client.
        timeout_s: Then a wait fails.
    """

    def __init__(self, client: ArpClient, timeout_s: float) -> None:
        self.client = client
        self.timeout_s = timeout_s

    @property
    def screen(self) -> Screen:
        """All that shows."""
        return self.client.screen

    async def until(self, look: Callable[[], T | None], what: str) -> T:
        """Wait until something shows.

        Args:
            look: Returns what is waited for, or `None`.
            what: For the message, such as `a second table`.

        Raises:
            AssertionError: It did not show in time.
            ArpError: The connection has ended for good.
        """
        events = self.client.events()
        try:
            async with asyncio.timeout(self.timeout_s):
                while (found := look()) is None:
                    if self.client.failure is not None:
                        raise self.client.failure
                    await anext(events, None)
        except TimeoutError:
            shown = self.everything() or "nothing"
            told = f"there is no {what} after {self.timeout_s:g} s; what shows:\n{shown}"
            raise AssertionError(told) from None
        return found

    def everything(self) -> str:
        """Return all that shows as text."""
        return "\n".join(turn_as_text(self.screen, turn_id) for turn_id in self.screen.turns)
