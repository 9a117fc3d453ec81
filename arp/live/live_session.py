"""A session in memory, with its running agent and the renderers that are attached.

Theory of operation. The writer calls `gather`, which returns everything recorded since the last
write as encoded facts. When these facts are durable, the writer calls `deliver`. It sends frames to
the renderers, and then runs the actions that waited for durability: acknowledgements, the start of
a turn. So nothing is visible that is not durable.
"""

from __future__ import annotations

import asyncio
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar

import msgspec
from msgspec import Struct

from arp.access.principal import Key
from arp.live.delivery import Join, Replay, SessionDelivery, Viewer
from arp.live.settings import HubSettings
from arp.protocol.errors import ArpError
from arp.session.asking import cancel_question
from arp.session.questions import Question
from arp.session.recording.recorded import Batch, TextBatch
from arp.session.session import Session

T = TypeVar("T")

Action: TypeAlias = Callable[[], None]
"""Action that runs once facts are durable."""

_NOBODY: Final[tuple[Join, ...]] = ()


class QuestionDeadline(Struct, frozen=True):
    """Deadline of a question."""

    at: float
    """Seconds since the epoch, on the wall clock."""
    expire: Action
    """Closes the question as expired."""


class SessionWriteBatch(Struct, frozen=True, gc=False):
    """One session's part of a write: its facts, and what happens once they are durable."""

    # `gc=False` is safe: nothing in a batch refers back to the batch, so there is no cycle.

    live: LiveSession
    expected: int
    batch: TextBatch | Batch
    joins: Sequence[Join]
    actions: Sequence[Action]


def _weak_mark(live: LiveSession) -> Callable[[], None]:
    """Return a `live.mark` that does not keep the session alive.

    The session refers to its delivery, and the delivery calls `mark`. With a strong reference this
    would be a cycle, and the thousands of objects of a session that left the hub would stay in
    memory until a full collection, which a server almost never runs (`calm_collector`).
    """
    found = weakref.ref(live)

    def mark() -> None:
        live = found()
        if live is not None:
            live.mark()

    return mark


def _expire(found: weakref.ref[LiveSession], question: Question) -> None:
    """Close a question at its deadline, unless it is closed or its session left memory."""
    live = found()
    if live is None or live.gone.done():
        return
    live.deadlines.pop(question.action_id, None)
    # A running turn has its own timer for the question, in `TurnHost`.
    if live.session.questions.is_open(question) and live.session.running != question.turn_id:
        cancel_question(live.session, question, "expired")
        live.mark()


class LiveSession:
    """A session in memory and everything attached to it."""

    __slots__ = (
        "__weakref__",
        "_actions",
        "_before",
        "_cache",
        "_grown",
        "_mark",
        "deadlines",
        "delivery",
        "dirty",
        "fence",
        "followers",
        "gone",
        "id",
        "is_provisional",
        "listed_choice",
        "session",
        "shares",
        "stored",
        "unwritten",
        "used_at",
        "was_gathered",
    )

    def __init__(
        self,
        session: Session,
        settings: HubSettings,
        mark: Callable[[LiveSession], None],
        replay: Replay,
        stored: int = 0,
    ) -> None:
        self.id = session.id
        self.session = session
        # Inputs that were read from the log are not recent.
        session.serials.clear()
        self.stored = stored
        """Sequence number of the newest durable fact."""
        self.fence = 0
        """Fence of its writes; see `SharedStore`."""
        self.delivery = SessionDelivery(session, settings, _weak_mark(self), replay)
        self.shares: Sequence[Key] = ()
        """Keys under which the quotas count this session: its user and its address."""
        self.was_gathered = False
        """Whether any of its facts is in the store or on its way there."""
        self.used_at = 0.0
        """Time of its last use, on the loop's clock."""
        self.dirty = False
        """Whether the session is marked for the next write."""
        self.gone: asyncio.Future[ArpError] = asyncio.get_running_loop().create_future()
        """Done when the session has left the hub, with the reason as its result. Nothing is written
        after that."""
        self.is_provisional = False
        """Whether it was opened only to be watched, and nothing has used it since.

        It is not written, and it is removed when its last renderer leaves."""
        self.unwritten = 0
        """Characters of text since the last write."""
        self.listed_choice = session.chosen_settings
        """Settings that followers of the list of chats were last notified of."""
        self.followers = 0
        """Number of readers that follow its log; while there is one, it stays in memory."""
        self._grown: asyncio.Future[None] | None = None
        self._mark = mark
        self._before: Action | None = None
        """Records the pending output of its turn."""
        self._actions: list[Action] = []
        """Actions that wait until everything recorded is durable."""
        self._cache: dict[str, Any] | None = None
        self.deadlines: dict[str, QuestionDeadline] = {}
        """Deadlines of open questions, by action id."""

    def expire_questions(self) -> None:
        """Close the questions whose deadline has passed. Call it before an answer is applied.

        A timer closes them too. But if the loop was busy or the machine asleep, an answer may be
        read before the timer runs.
        """
        for deadline in list(self.deadlines.values()):
            if time.time() >= deadline.at:
                deadline.expire()

    def keep_deadlines(self) -> None:
        """Start a timer for each open question with a deadline that has no timer yet."""
        loop = asyncio.get_running_loop()
        for question in self.session.questions.values():
            if question.expires_at is None or question.action_id in self.deadlines:
                continue
            at = datetime.fromisoformat(question.expires_at).timestamp()
            expire = partial(_expire, weakref.ref(self), question)
            self.deadlines[question.action_id] = QuestionDeadline(at, expire)
            loop.call_later(max(0.0, at - time.time()), expire)

    @property
    def cache(self) -> dict[str, Any]:
        """Objects that the agent keeps in memory for this session."""
        if self._cache is None:
            self._cache = {}
        return self._cache

    @property
    def viewers(self) -> dict[str, Viewer]:
        """Attached renderers by id."""
        return self.delivery.viewers

    @property
    def idle(self) -> bool:
        """Whether it has no renderer and no follower, and nothing is running or unwritten."""
        is_watched = self.viewers or self.followers
        is_written = not self.dirty and self.stored >= self.session.sequence
        return is_written and not (is_watched or self.session.turns.is_active)

    def touch(self) -> None:
        """Record a use, which postpones eviction."""
        self.used_at = asyncio.get_running_loop().time()

    def mark(self) -> None:
        """Schedule a write."""
        if not self.dirty and not self.gone.done():
            self.dirty = True
            self._mark(self)

    def before_write(self, action: Action) -> None:
        """Set the action that runs when the next write gathers; a session has only one."""
        if not self.gone.done():
            self._before = action
            if not self.dirty:
                self.dirty = True
                self._mark(self)

    def after_write(self, *actions: Action) -> None:
        """Schedule a write; run the actions once everything recorded so far is durable."""
        self._actions += actions
        self.mark()

    def leave(self, why: ArpError) -> None:
        """Leave the hub, and write nothing from now on. A second call does nothing."""
        if not self.gone.done():
            self.gone.set_result(why)
        # It refers to the turn, and the turn to the session: a cycle would keep both in memory.
        self._before = None

    async def written(self) -> None:
        """Wait until everything recorded so far is durable and delivered.

        Raises:
            ArpError: The session left the hub before.
        """
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.after_write(lambda: settle(done, None))
        await self.unless_gone(done)

    @contextmanager
    def followed(self) -> Iterator[None]:
        """Keep the session in memory while a block reads its log as it grows."""
        self.followers += 1
        try:
            yield
        finally:
            self.followers -= 1

    async def beyond(self, sequence: int) -> None:
        """Wait until a fact after this sequence number is durable.

        Raises:
            ArpError: The session left the hub before there was one.

        Cancel: Safe.
        """
        while self.stored <= sequence:
            if self.gone.done():
                raise self.gone.result()
            # All waiters share this future, so none of them may cancel it: `asyncio.wait` does not.
            if self._grown is None:
                self._grown = asyncio.get_running_loop().create_future()
            either = (self._grown, self.gone)
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)

    async def unless_gone(self, future: asyncio.Future[T]) -> T:
        """Wait for a future that is set after a write.

        Raises:
            ArpError: The session left the hub before.
        """

        def left(gone: asyncio.Future[ArpError]) -> None:
            if not future.done():
                future.set_exception(gone.result())

        self.gone.add_done_callback(left)
        try:
            return await future
        finally:
            self.gone.remove_done_callback(left)

    def gather(self, at: str) -> SessionWriteBatch:
        """Return the facts for this write, with the frames of the renderers that join with it."""
        self.dirty = False
        self.was_gathered = self.was_gathered or not self.is_provisional
        self.unwritten = 0
        if self._before is not None:
            before, self._before = self._before, None
            before()
        delivery = self.delivery
        if self.is_provisional:
            # Nothing of a provisional session is written; its cursor stays at the last stored fact.
            nothing = msgspec.structs.replace(delivery.cursor, seq=self.stored)
            batch: TextBatch | Batch = Batch([], [], nothing, nothing.seq)
        else:
            batch = self.session.log.drain(at)
        joins = delivery.gather() if delivery.joining else _NOBODY
        # The list is replaced, not emptied: an action that is added during this write waits for
        # facts of the next one.
        actions: Sequence[Action] = ()
        if self._actions:
            actions, self._actions = self._actions, []
        return SessionWriteBatch(self, self.stored, batch, joins, actions)

    def deliver(self, gathered: SessionWriteBatch) -> None:
        """Send what became durable, then run the actions that waited for it."""
        batch = gathered.batch
        self.stored = batch.sequence
        self.delivery.deliver(batch)
        if self._grown is not None:
            self._grown.set_result(None)
            self._grown = None
        # Joins come after the batch: their frames already include it.
        for join in gathered.joins:
            self.delivery.finish(join)
        for action in gathered.actions:
            action()


def settle(future: asyncio.Future[T], value: T) -> None:
    """Set the result of a future, unless it is done or cancelled."""
    if not future.done():
        future.set_result(value)
