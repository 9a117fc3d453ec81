"""A session in memory, with the agent that works in it and the renderers that watch.

Theory of operation. The writer *gathers*: what was recorded becomes facts. When they are durable it
*delivers*: frames to renderers, then what else was waiting for durability (acknowledgements,
starting a turn). So nothing is seen that is not durable.
"""

from __future__ import annotations

import asyncio
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from itertools import islice
from typing import Any, Final, TypeAlias, TypeVar

import msgspec
from msgspec import Struct

from arp.access.principal import Key, User
from arp.live.delivery import Join, Replay, SessionDelivery, Viewer
from arp.live.settings import HubSettings
from arp.protocol.errors import ArpError
from arp.protocol.messages import FINAL_STATUSES, AgentMessage
from arp.session.recorded import Batch, TextBatch
from arp.session.session import Question, Session

T = TypeVar("T")

Action: TypeAlias = Callable[[], None]
"""Something to do when facts are durable."""

_NOBODY: Final[tuple[Join, ...]] = ()


class QuestionDeadline(Struct, frozen=True):
    """Until when a question may be answered."""

    at: float
    """Seconds since 1970, on the clock that people read."""
    expire: Action
    """Closes the question."""


class Gathered(Struct, frozen=True):
    """What one write to the ledger carries for one session."""

    live: LiveSession
    expected: int
    batch: TextBatch | Batch
    joins: Sequence[Join]
    answers: Sequence[tuple[Viewer, bytes]]
    actions: Sequence[Action]


def _weakly(live: LiveSession) -> Callable[[], None]:
    """Return a `live.mark` that does not keep the session alive.

    A session is thousands of objects. Without a reference from its delivery back to it there is no
    circle, so that all of it is freed when it leaves the memory, not at some later full
    collection, of which a server makes next to none (`calm_collector`).
    """
    found = weakref.ref(live)

    def mark() -> None:
        live = found()
        if live is not None:
            live.mark()

    return mark


def _expire(found: weakref.ref[LiveSession], question: Question) -> None:
    """Close a question that nobody answered in time, unless it is closed or its session left."""
    live = found()
    if live is None or live.gone.done():
        return
    live.deadlines.pop(question.action_id, None)
    if live.session.is_open(question) and live.session.running != question.turn_id:
        live.session.cancel_question(question, "expired")
        live.mark()


class LiveSession:
    """One session and everything that is attached to it now."""

    __slots__ = (
        "__weakref__",
        "_actions",
        "_answers",
        "_before",
        "_cache",
        "_grown",
        "_mark",
        "_users",
        "deadlines",
        "delivery",
        "dirty",
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
        self.id = session.head.session_id
        self.session = session
        session.serials.clear()  # inputs that are read from the log are not recent
        self.stored = stored
        """The newest of its facts that the ledger holds."""
        self.delivery = SessionDelivery(session, settings, _weakly(self), replay)
        self.shares: Sequence[Key] = ()
        """For whom it counts."""
        self.was_gathered = False
        """Something of it is on its way to the store, or there."""
        self.used_at = 0.0
        """When it last did something, on the loop's clock."""
        self.dirty = False
        self.gone: asyncio.Future[ArpError] = asyncio.get_running_loop().create_future()
        """Done when it has left the hub and nothing of it is written any more: why."""
        self.is_provisional = False
        """Nobody has done more than watch it: nothing of it is written, and it goes with who
        watches."""
        self.unwritten = 0
        """Characters said since the last write."""
        self.listed_choice = session.settings.chosen
        """What the user had set when those who follow the list of chats last heard of it."""
        self.followers = 0
        """Who reads its log as it grows; while there is one, it stays in memory."""
        self._grown: asyncio.Future[None] | None = None
        self._mark = mark
        self._users: dict[str, User] | None = None
        """Of turns that are not over, who began each, where more than the name is known."""
        self._before: Action | None = None
        """Records what its turn has pending."""
        self._answers: list[tuple[Viewer, bytes]] = []
        """Frames for one renderer each, who gets them when what is recorded is durable."""
        self._actions: list[Action] = []
        self._cache: dict[str, Any] | None = None
        self.deadlines: dict[str, QuestionDeadline] = {}
        """Of open questions that have one, by action id."""

    def expire_questions(self) -> None:
        """Close the questions whose time is over; to be called before an answer is looked at.

        A timer closes them too. But where the loop was busy or the machine asleep, an answer may be
        read before the timer is.
        """
        for deadline in list(self.deadlines.values()):
            if time.time() >= deadline.at:
                deadline.expire()

    def keep_deadlines(self) -> None:
        """Close in time the questions that have a deadline and no turn that waits for them."""
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
        """What its agent keeps in memory for it."""
        if self._cache is None:
            self._cache = {}
        return self._cache

    def user_of(self, turn_id: str) -> User:
        """Return who began a turn; of one that was read from the ledger, the name alone."""
        return (self._users or {}).get(turn_id) or User(self.session.head.owner)

    def began(self, user: User | None, count: int, waiting: Sequence[str] = ()) -> None:
        """Remember who began the turns that an input has added, if it has.

        Args:
            user: From whom the input came; `None` where the name is all that is known.
            count: How many turns there were before it.
            waiting: The queue before it. Where the input goes back to an earlier turn, the turns
                that waited are there again behind its own, under new names.
        """
        session, known = self.session, self._users or {}
        if (user is None and not known) or session.turn_count == count:
            return
        added = list(islice(reversed(session.screen.turns), session.turn_count - count))[::-1]
        users = [user, *(known.get(turn_id) for turn_id in waiting)]
        fresh = {turn_id: one for turn_id, one in zip(added, users, strict=False) if one}
        rest = {turn_id: one for turn_id, one in known.items() if self._is_open(turn_id)}
        self._users = {**rest, **fresh} or None

    def _is_open(self, turn_id: str) -> bool:
        return self.session.status_of(turn_id) not in (None, *FINAL_STATUSES)

    @property
    def viewers(self) -> dict[str, Viewer]:
        """The renderers that are there, by id."""
        return self.delivery.viewers

    @property
    def idle(self) -> bool:
        """Whether nobody watches and nothing is going on."""
        session = self.session
        watched = self.viewers or self.followers
        return not (watched or self.dirty or session.active or self.stored < session.sequence)

    def touch(self) -> None:
        """Record that somebody uses it now."""
        self.used_at = asyncio.get_running_loop().time()

    def mark(self) -> None:
        """Ask for a write, soon."""
        if not self.dirty and not self.gone.done():
            self.dirty = True
            self._mark(self)

    def before_write(self, action: Action) -> None:
        """Call something once, when the next write gathers; its turn has one such thing."""
        if not self.gone.done():
            self._before = action
            self.mark()

    def answer(self, viewer: Viewer, message: AgentMessage) -> None:
        """Send a small message to a renderer when all that is recorded so far is durable."""
        self._answers.append((viewer, viewer.frame(message)))
        self.mark()

    def after_write(self, action: Action) -> None:
        """Call something when all that is recorded so far is durable."""
        self._actions.append(action)
        self.mark()

    def leave(self, why: ArpError) -> None:
        """Write nothing any more: it leaves the hub. Called again, do nothing."""
        if not self.gone.done():
            self.gone.set_result(why)
        self._before = None  # it holds the turn, and that the session

    async def written(self) -> None:
        """Wait until all that is recorded so far is durable and delivered.

        Raises:
            ArpError: The session left the hub before.
        """
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.after_write(lambda: settle(done, None))
        await self.unless_gone(done)

    @contextmanager
    def followed(self) -> Iterator[None]:
        """Stay in memory for a block, for somebody who reads the log as it grows."""
        self.followers += 1
        try:
            yield
        finally:
            self.followers -= 1

    async def beyond(self, sequence: int) -> None:
        """Wait until the ledger holds a fact behind a sequence.

        Raises:
            ArpError: The session left the hub, and there is none.

        Cancel: Safe.
        """
        while self.stored <= sequence:
            if self.gone.done():
                raise self.gone.result()
            if self._grown is None:  # all who wait share it, so nobody cancels it
                self._grown = asyncio.get_running_loop().create_future()
            either = (self._grown, self.gone)
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)

    async def unless_gone(self, future: asyncio.Future[T]) -> T:
        """Wait for what happens after a write.

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

    def gather(self, at: str) -> Gathered:
        """Take what is to be written now, and prepare those who join."""
        self.dirty = False
        self.was_gathered = self.was_gathered or not self.is_provisional
        self.unwritten = 0
        if self._before is not None:
            before, self._before = self._before, None
            before()
        delivery = self.delivery
        if self.is_provisional:
            nothing = msgspec.structs.replace(delivery.cursor, seq=self.stored)
            batch: TextBatch | Batch = Batch([], [], nothing, nothing.seq)
        else:
            batch = self.session.log.drain(at)
        joins = delivery.gather() if delivery.joining else _NOBODY
        # Never hand out a list that goes on growing: its time is the next write.
        answers: Sequence[tuple[Viewer, bytes]] = ()
        if self._answers:
            answers, self._answers = self._answers, []
        actions: Sequence[Action] = ()
        if self._actions:
            actions, self._actions = self._actions, []
        return Gathered(self, self.stored, batch, joins, answers, actions)

    def deliver(self, gathered: Gathered) -> None:
        """Show what has become durable, and do what waited for it."""
        batch = gathered.batch
        self.stored = batch.sequence
        self.delivery.deliver(batch)
        if self._grown is not None:
            self._grown.set_result(None)
            self._grown = None
        for join in gathered.joins:
            self.delivery.finish(join)
        for viewer, frame in gathered.answers:
            viewer.outbox.send([frame])
        for action in gathered.actions:
            action()


def settle(future: asyncio.Future[T], value: T) -> None:
    """Hand a value to whoever waits for it, if somebody still does."""
    if not future.done():
        future.set_result(value)
