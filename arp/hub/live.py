"""A session in memory, with the agent that works in it and the renderers that watch.

Theory of operation. The writer *gathers*: what was recorded becomes facts. When they are durable it
*delivers*: frames to renderers, then what else was waiting for durability (acknowledgements,
starting a turn). So nothing is seen that is not durable.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct

from arp.hub.delivery import Delivery, Join
from arp.hub.settings import HubSettings
from arp.hub.viewer import Action, Viewer
from arp.session.emission import Drained
from arp.session.session import Session

if TYPE_CHECKING:
    from arp.hub.turn import Turn


class Gathered(Struct, frozen=True):
    """What one write to the ledger carries for one session."""

    live: LiveSession
    expected: int
    drained: Drained
    joins: list[Join]
    actions: list[Action]


class LiveSession:
    """One session and everything that is attached to it now."""

    def __init__(
        self, session: Session, settings: HubSettings, mark: Callable[[LiveSession], None]
    ) -> None:
        self.session = session
        self.delivery = Delivery(session, settings, self.mark)
        self.turn: Turn | None = None
        self.task: asyncio.Task[None] | None = None
        """The agent that works in `turn`."""
        self.used_at = 0.0
        """When it last did something, on the loop's clock."""
        self.dirty = False
        self.closed = False
        """It has left the hub: nothing of it is written any more."""
        self.unwritten = 0
        """Characters said since the last write."""
        self._mark = mark
        self._actions: list[Action] = []

    @property
    def id(self) -> str:
        """The session's id."""
        return self.session.head.session_id

    @property
    def viewers(self) -> dict[str, Viewer]:
        """The renderers that are there, by id."""
        return self.delivery.viewers

    @property
    def idle(self) -> bool:
        """Tells whether nobody watches and nothing is going on."""
        return not (self.viewers or self.dirty or self.session.active or self.session.has_recorded)

    def mark(self) -> None:
        """Asks for a write, soon."""
        if not self.dirty and not self.closed:
            self.dirty = True
            self._mark(self)

    def after_write(self, action: Action) -> None:
        """Does something when all that is recorded so far is durable."""
        self._actions.append(action)
        self.mark()

    def attach(self, viewer: Viewer) -> None:
        """Lets a renderer join at the next write."""
        viewer.live = self
        self.delivery.attach(viewer)

    def detach(self, viewer: Viewer) -> None:
        """Forgets a renderer; nothing else changes."""
        viewer.live = None
        self.delivery.detach(viewer)

    def gather(self, at: str) -> Gathered:
        """Takes what is to be written now, and prepares those who join."""
        self.dirty = False
        self.unwritten = 0
        if self.turn is not None:
            self.turn.flush()
        log = self.session.log
        drained = log.drain(at)
        joins = self.delivery.gather()
        actions, self._actions = self._actions, []
        return Gathered(self, log.stored, drained, joins, actions)

    def deliver(self, gathered: Gathered) -> None:
        """Shows what has become durable, and does what waited for it."""
        drained = gathered.drained
        self.session.log.stored = drained.place.seq
        self.delivery.deliver(drained.emissions, drained.place)
        for join in gathered.joins:
            self.delivery.finish(join)
        for action in gathered.actions:
            action()
