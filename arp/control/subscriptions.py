"""What one client follows: each subscription a task with a place of its own.

Theory of operation. A subscription reads facts behind its place and sends them one by one, as long
as its client takes them; it keeps nothing else. So one that does not read costs its place.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing

from msgspec import Struct

from arp.control.asked import Asked, Id, Kinds, OfSession, Sequence
from arp.control.desk import Desk
from arp.control.follow import follow, wanted
from arp.control.jsonrpc import event_frame, notification
from arp.control.refusals import rpc_error
from arp.hub.live import LiveSession
from arp.hub.viewer import Outbox
from arp.protocol.errors import ArpError, ResourceLimit, UnknownObject
from arp.protocol.json_value import JsonObject
from arp.store.store import Store

MOST_SUBSCRIPTIONS = 64


class Subscribe(OfSession, frozen=True, kw_only=True):
    """Asks to be told each fact of a session."""

    after: Sequence | None = None
    """The last fact that the caller has; `None` wants a snapshot, and what comes after it."""
    epoch: Id | None = None
    """Of the log that `after` is of; of another one a snapshot comes instead."""
    types: Kinds = ()


class Unsubscribe(Asked, frozen=True, kw_only=True):
    """Asks not to be told any more."""

    subscription_id: Id


class Subscribed(Struct, frozen=True, rename="camel", omit_defaults=True):
    """What a subscription begins with."""

    subscription_id: str
    session_id: str
    epoch: str
    after: int
    """Facts come behind this."""
    resume: str
    """`events`: they go on where the caller is; `snapshot`: they go on behind `snapshot`."""
    snapshot: JsonObject | None = None


class Subscriptions:
    """The subscriptions of one client.

    Args:
        store: Holds the facts.
        outbox: Where they go.
        room: Waits until the client takes more.
    """

    def __init__(self, store: Store, outbox: Outbox, room: Callable[[], Awaitable[None]]) -> None:
        self._store = store
        self._outbox = outbox
        self._room = room
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._number = 0

    async def begin(self, desk: Desk, asked: Subscribe) -> tuple[Subscribed, Callable[[], None]]:
        """Prepares a subscription.

        Returns:
            What it begins with; and what starts it, to be called when that is on its way.

        Raises:
            SessionNotFound: There is no such session.
            ResourceLimit: There are `MOST_SUBSCRIPTIONS`.
        """
        if len(self._tasks) >= MOST_SUBSCRIPTIONS:
            raise ResourceLimit(f"a connection has at most {MOST_SUBSCRIPTIONS} subscriptions")
        live = await desk.live(asked.session_id)
        epoch, after, snapshot = live.session.head.epoch, asked.after, None
        if asked.epoch not in (None, epoch) or after is None or after > live.session.log.stored:
            model = await desk.model(asked.session_id)
            after, snapshot = model.sequence, model.snapshot(desk.now())
        self._number += 1
        name, how = f"sub{self._number}", "events" if snapshot is None else "snapshot"
        subscribed = Subscribed(name, live.id, epoch, after, how, snapshot)
        return subscribed, lambda: self._start(subscribed, live, asked.types)

    def end(self, asked: Unsubscribe) -> JsonObject:
        """Ends a subscription; nothing of it comes behind the answer.

        Raises:
            UnknownObject: There is none of that id.
        """
        task = self._tasks.pop(asked.subscription_id, None)
        if task is None:
            raise UnknownObject(
                f"no subscription {asked.subscription_id!r:.80}", detail="subscriptionId"
            )
        task.cancel()
        return {"subscriptionId": asked.subscription_id}

    def close(self) -> None:
        """Ends all of them."""
        for task in self._tasks.values():
            task.cancel()

    def _start(self, subscribed: Subscribed, live: LiveSession, types: tuple[str, ...]) -> None:
        name = subscribed.subscription_id
        telling = self._tell(name, live, subscribed.after, types)
        task = asyncio.get_running_loop().create_task(telling, name=f"arp-{name}")
        self._tasks[name] = task
        task.add_done_callback(lambda _: self._tasks.pop(name, None))

    async def _tell(self, name: str, live: LiveSession, after: int, types: tuple[str, ...]) -> None:
        try:
            async with aclosing(follow(self._store, live, after, wanted(types))) as facts:
                async for _, fact in facts:
                    await self._room()
                    self._outbox.send([event_frame(name, fact)])
        except ArpError as error:
            why = {"subscriptionId": name, "sessionId": live.id, "error": rpc_error(error)}
            self._outbox.send([notification("agentSession/closed", why)])
