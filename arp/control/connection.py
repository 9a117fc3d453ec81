"""One JSON-RPC client: its requests, its subscriptions, and how much may wait for it.

Theory of operation. Requests are started in the order in which they arrive, and answered when they
are done. While more than `HIGH_WATER_BYTES` wait for the client, its subscriptions send nothing and
no further request is read. A subscription reads facts after its cursor and sends them one by one,
as long as the client reads; it keeps nothing else. So a client that does not read costs a cursor.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import aclosing
from functools import partial
from typing import TypeAlias

from msgspec import UNSET, Struct

from arp.access.principal import Principal
from arp.control.context import ControlContext, Plane
from arp.control.control import METHODS, call
from arp.control.facts import FactFilter, Room, follow
from arp.control.jsonrpc import (
    Frame,
    InvalidRequest,
    RpcRequest,
    batch_frame,
    error_frame,
    event_frame,
    notification,
    parse,
    result_frame,
    rpc_error,
    too_large,
)
from arp.control.method import (
    Id,
    Kinds,
    Params,
    Sequence,
    SessionParams,
    method,
    methods_of,
    read_params,
)
from arp.hub.inbound import LARGE_BYTES, Read
from arp.ledger.fact import SCHEMA_VERSION
from arp.live.live_session import LiveSession
from arp.live.outbox import FrameOutbox
from arp.protocol.errors import ArpError, ResourceLimit, Unauthenticated, UnknownObject
from arp.protocol.json_value import Json, JsonObject
from arp.store.store import Store

MOST_REQUESTS = 64
"""Of one client under way at once; a further one is read when one is answered."""

MOST_SUBSCRIPTIONS = 64
"""Of one client."""

TOKEN_DEADLINE_S = 10.0
"""How long a connection may stay without a principal."""

ANSWER_S = 10.0
"""How long requests may go on when the client has closed its end."""

CheckToken: TypeAlias = Callable[[str], Awaitable[Principal | None]]
"""Returns to whom a token belongs; `None`: to nobody."""

Started: TypeAlias = list[Callable[[], None]]
"""What starts the new subscriptions of a frame, to be called when its answers are sent."""


class Initialize(Params, frozen=True, kw_only=True):
    """Begins a conversation; needed only where no header could carry the token."""

    token: str | None = None


class Subscribe(SessionParams, frozen=True, kw_only=True):
    """Asks for each fact of a session as a notification."""

    after: Sequence | None = None
    """The last fact that the caller has; `None` asks for a snapshot, and the facts after it."""
    epoch: Id | None = None
    """Of the log to which `after` belongs; if it is another one, a snapshot comes instead."""
    types: Kinds = ()


class Unsubscribe(Params, frozen=True, kw_only=True):
    """Ends a subscription."""

    subscription_id: Id


class Subscribed(Struct, frozen=True, rename="camel", omit_defaults=True):
    """The start of a subscription."""

    subscription_id: str
    session_id: str
    epoch: str
    after: int
    """Facts come after this."""
    resume: str
    """`events`: they continue where the caller is; `snapshot`: they continue after `snapshot`."""
    snapshot: JsonObject | None = None


class Connection:
    """A client of the control plane, over any transport."""

    def __init__(
        self,
        plane: Plane,
        outbox: FrameOutbox,
        principal: Principal | None,
        check_token: CheckToken,
    ) -> None:
        self.on_trusted: Callable[[], object] = lambda: None
        """Is called when the client has shown a token, or is gone."""
        self._plane = plane
        self._outbox = outbox
        self._context = ControlContext(plane, principal) if principal is not None else None
        self._check_token = check_token
        self._room = Room(outbox)
        self._free = asyncio.Semaphore(MOST_REQUESTS)
        self._tasks: set[asyncio.Task[None]] = set()
        self._subscriptions = Subscriptions(plane.hub.store, outbox, self._room)

    @property
    def viewer(self) -> Room:
        """The object whose `drained` the outbox calls."""
        return self._room

    def start(self) -> None:
        """Start the connection; nothing is sent before the first request."""
        if self._context is None:
            asyncio.get_running_loop().call_later(TOKEN_DEADLINE_S, self._too_late)

    def _too_late(self) -> None:
        if self._context is None:
            self._outbox.close(1008, "no valid token in time")

    def closed(self) -> None:
        """Is called once, when the connection is gone. What requests have recorded goes on."""
        self.on_trusted()
        self._end()

    def _end(self) -> None:
        self._subscriptions.close()
        for task in self._tasks:
            task.cancel()

    def expel(self) -> None:
        """Take no more requests: the client is no longer allowed in."""
        self._context = None
        self._end()

    async def answered(self) -> None:
        """Wait until every request is answered, for a bounded time."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=ANSWER_S)

    # -- requests --------------------------------------------------------------------------------

    async def receive(self, data: bytes | str) -> None:
        """Process one frame, when there is room. Never raise for what is in it."""
        await self._room.wait()
        await self._free.acquire()
        hub = self._plane.hub
        most = hub.settings.limits.max_message_bytes
        if len(data) > most:
            read = Read(too_large(most), [])
        elif len(data) < LARGE_BYTES:
            read = Read(parse(data), [])
        else:
            read = await hub.inbound.read(partial(parse, data), _recordable)
        answering = self._answer(read)
        task = asyncio.get_running_loop().create_task(answering, name="arp-control")
        self._tasks.add(task)
        task.add_done_callback(self._answered)

    def _answered(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._free.release()

    async def _answer(self, read: Read[Frame]) -> None:
        started: Started = []
        frame = read.value
        with self._plane.hub.inbound.redactor.knowing(read.cleaned):
            entries = (self._entry(entry, started) for entry in frame.entries)
            answers = [one for one in await asyncio.gather(*entries) if one is not None]
        if answers:
            self._outbox.send([batch_frame(answers)] if frame.is_batch else answers)
        for start in started:
            start()

    async def _entry(self, entry: RpcRequest | InvalidRequest, started: Started) -> bytes | None:
        if isinstance(entry, InvalidRequest):
            return error_frame(entry.id, entry.error)
        try:
            result = await self._call(entry.method, entry.params, started)
            answer = result_frame(entry.id, result) if entry.id is not UNSET else None
        except Exception as error:  # noqa: BLE001
            # Whatever a method raises is an answer to this client; `rpc_error` words it.
            refused = rpc_error(error)
            return error_frame(entry.id, refused) if entry.id is not UNSET else None
        return answer

    async def _call(self, name: str, params: JsonObject, started: Started) -> Json:
        if self._context is None and name != "initialize":
            raise Unauthenticated("call initialize with a token first")
        own = OWN_METHODS.get(name)
        if own is not None:
            return await own.run(self, read_params(name, own.params, params), started)
        assert self._context is not None
        return await call(self._context, name, params)

    # -- methods of the connection itself --------------------------------------------------------

    @method("initialize")
    async def _initialize(self, request: Initialize, _: Started) -> JsonObject:
        if self._context is None:
            principal = await self._check_token(request.token) if request.token else None
            if principal is None:
                raise Unauthenticated("token: missing or not valid")
            self._context = ControlContext(self._plane, principal)
            self.on_trusted()
        return {
            "server": "arp",
            "schemaVersion": SCHEMA_VERSION,
            "methods": [*OWN_METHODS, *METHODS],
            "notifications": ["agentSession/event", "agentSession/closed"],
        }

    @method("agentSession/subscribe")
    async def _subscribe(self, request: Subscribe, started: Started) -> Subscribed:
        assert self._context is not None
        subscribed, start = await self._subscriptions.begin(self._context, request)
        started.append(start)
        return subscribed

    @method("agentSession/unsubscribe")
    async def _unsubscribe(self, request: Unsubscribe, _: Started) -> JsonObject:
        return self._subscriptions.end(request)


OWN_METHODS = methods_of(Connection)
"""Methods of a connection itself, by name."""


def _recordable(frame: Frame) -> Iterable[Json]:
    """Yield what sessions may record: the data of inputs, the parameters of other requests."""
    for entry in frame.entries:
        if isinstance(entry, RpcRequest):
            given = entry.params.get("input")
            yield given.get("data", given) if isinstance(given, dict) else entry.params


class Subscriptions:
    """The subscriptions of one client, each a task with a cursor of its own.

    Args:
        store: Holds the facts.
        outbox: Where they are sent.
        room: Waits until the client may be sent more.
    """

    def __init__(self, store: Store, outbox: FrameOutbox, room: Room) -> None:
        self._store = store
        self._outbox = outbox
        self._room = room
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._number = 0

    async def begin(
        self, context: ControlContext, request: Subscribe
    ) -> tuple[Subscribed, Callable[[], None]]:
        """Prepare a subscription.

        Returns:
            The answer to the request; and a function that starts the subscription, to be called
            when the answer is sent.

        Raises:
            ResourceLimit: There are `MOST_SUBSCRIPTIONS`.
        """
        if len(self._tasks) >= MOST_SUBSCRIPTIONS:
            raise ResourceLimit(f"a connection has at most {MOST_SUBSCRIPTIONS} subscriptions")
        context = await context.reader(request.session_id)
        live = await context.live(request.session_id)
        epoch, after, snapshot = live.session.epoch, request.after, None
        if request.epoch not in (None, epoch) or after is None or after > live.stored:
            model = await context.model(request.session_id)
            after, snapshot = model.sequence, model.snapshot(context.now())
        self._number += 1
        name, how = f"sub{self._number}", "events" if snapshot is None else "snapshot"
        subscribed = Subscribed(name, live.id, epoch, after, how, snapshot)
        return subscribed, lambda: self._start(subscribed, live, FactFilter.of(request.types))

    def end(self, request: Unsubscribe) -> JsonObject:
        """End a subscription; none of its facts is sent after the answer.

        Raises:
            UnknownObject: There is none of that id.
        """
        task = self._tasks.pop(request.subscription_id, None)
        if task is None:
            raise UnknownObject(
                f"no subscription {request.subscription_id!r:.80}", detail="subscriptionId"
            )
        task.cancel()
        return {"subscriptionId": request.subscription_id}

    def close(self) -> None:
        """End all of them."""
        for task in self._tasks.values():
            task.cancel()

    def _start(self, subscribed: Subscribed, live: LiveSession, choice: FactFilter) -> None:
        name = subscribed.subscription_id
        sending = self._send(name, live, subscribed.after, choice)
        task = asyncio.get_running_loop().create_task(sending, name=f"arp-{name}")
        self._tasks[name] = task
        task.add_done_callback(lambda _: self._tasks.pop(name, None))

    async def _send(self, name: str, live: LiveSession, after: int, choice: FactFilter) -> None:
        try:
            async with aclosing(follow(self._store, live, after, choice)) as facts:
                async for _, fact in facts:
                    await self._room.wait()
                    self._outbox.send([event_frame(name, fact)])
        except ArpError as error:
            why = {"subscriptionId": name, "sessionId": live.id, "error": rpc_error(error)}
            self._outbox.send([notification("agentSession/closed", why)])
