"""`WatchedClient`: waits for output in tests; the message of a failed wait shows the screen."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from arp.client.client import ArpClient
from arp.protocol.connection.screen import Screen
from arp.testbed.snapshot import turn_as_text

T = TypeVar("T")


class WatchedClient:
    """A client with a timeout for waits.

    Args:
        client: The client.
        timeout_s: Time in seconds after which a wait fails.
    """

    def __init__(self, client: ArpClient, timeout_s: float) -> None:
        self.client = client
        self.timeout_s = timeout_s

    @property
    def screen(self) -> Screen:
        """The state of the screen."""
        return self.client.screen

    async def until(self, look: Callable[[], T | None], what: str) -> T:
        """Wait for something on the screen.

        Args:
            look: Returns the result of the wait, or `None` to wait longer.
            what: Name of the result in the error message, such as `second table`.

        Raises:
            AssertionError: The result did not appear in time.
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
            message = f"there is no {what} after {self.timeout_s:g} s; the screen shows:\n{shown}"
            raise AssertionError(message) from None
        return found

    def everything(self) -> str:
        """Return all turns on the screen as text."""
        return "\n".join(turn_as_text(self.screen, turn_id) for turn_id in self.screen.turns)
