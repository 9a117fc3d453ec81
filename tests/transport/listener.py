"""A viewer that only counts how often it is told that its outbox has drained."""

from __future__ import annotations

from arp.live.delivery import Viewer
from arp.transport.queue_outbox import QueueOutbox


class _Counting(Viewer):
    __slots__ = ("listener",)

    def __init__(self, listener: Listener) -> None:
        super().__init__("v", QueueOutbox(), "json")
        self.listener = listener

    def drained(self) -> None:
        self.listener.told += 1


class Listener:
    """Counts."""

    def __init__(self) -> None:
        self.told = 0
        self.viewer = _Counting(self)
