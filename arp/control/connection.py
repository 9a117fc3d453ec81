"""One JSON-RPC client: its requests, its subscriptions, and the backpressure on both.

Theory of operation. Requests start in the order of arrival and are answered when they are done.
While more than `HIGH_WATER_BYTES` are queued for the client, its subscriptions send nothing and no
further request is read. A subscription reads the facts after its cursor and sends them one by one
while the client reads. The cursor is its only state, so a slow client needs no queue of facts.
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
from arp.hub.inbound import LARGE_BYTES, ParsedFrame
from arp.ledger.fact import SCHEMA_VERSION
from arp.live.live_session import LiveSession
from arp.live.outbox import FrameOutbox
from arp.protocol.errors import ArpError, ResourceLimit, Unauthenticated, UnknownObject
from arp.protocol.json_value import Json, JsonObject
from arp.store.store import Store

MOST_REQUESTS = 64
"""Largest number of concurrent requests of one client; further requests are not read yet."""

MOST_SUBSCRIPTIONS = 64
"""Largest number of subscriptions of one client."""

TOKEN_DEADLINE_S = 10.0
"""Time within which a new connection must show a valid token, in seconds."""

ANSWER_S = 10.0
"""Time that running requests have after the client closed its end, in seconds."""

CheckToken: TypeAlias = Callable[[str], Awaitable[Principal | None]]
"""Returns the principal of a token; `None` if the token is not valid."""

SubscriptionStarts: TypeAlias = list[Callable[[], None]]
"""Functions that start the new subscriptions of a frame; called after its answers are sent."""


class Initialize(Params, frozen=True, kw_only=True):
    """Parameters of `initialize`; needed only on transports without headers for the token."""

    token: str | None = None


class Subscribe(SessionParams, frozen=True, kw_only=True):
    """Parameters of `agentSession/subscribe`: each fact is sent as a notification."""

    after: Sequence | None = None
    """Sequence number of the last fact that the caller has; `None` requests a snapshot first."""
    epoch: Id | None = None
    """Epoch of the log that `after` refers to. If it has changed, the caller gets a snapshot."""
    types: Kinds = ()


class Unsubscribe(Params, frozen=True, kw_only=True):
    """Parameters of `agentSession/unsubscribe`."""

    subscription_id: Id


class SubscriptionState(Struct, frozen=True, rename="camel", omit_defaults=True):
    """State of a new subscription."""

    subscription_id: str
    session_id: str
    epoch: str
    after: int
    """Sequence number after which facts are sent."""
    resume: str
    """`events`: facts follow the caller's `after`; `snapshot`: facts follow `snapshot`."""
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
        """Called when the client has shown a valid token, or has disconnected."""
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
        """Backpressure; the outbox calls its `drained` when the queue is almost empty."""
        return self._room

    def start(self) -> None:
        """Start the connection; nothing is sent before the first request."""
        if self._context is None:
            loop = asyncio.get_running_loop()
            loop.call_later(TOKEN_DEADLINE_S, self._close_without_token)

    def _close_without_token(self) -> None:
        if self._context is None:
            self._outbox.close(1008, "no valid token in time")

    def closed(self) -> None:
        """End the connection; called once. Turns that its requests started keep running."""
        self.on_trusted()
        self._end()

    def _end(self) -> None:
        self._subscriptions.close()
        for task in self._tasks:
            task.cancel()

    def expel(self) -> None:
        """Refuse further requests, because the principal has lost its access."""
        self._context = None
        self._end()

    async def wait_until_answered(self) -> None:
        """Wait until every request is answered, at most `ANSWER_S`."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=ANSWER_S)

    # -- requests --------------------------------------------------------------------------------

    async def receive(self, data: bytes | str) -> None:
        """Process one frame when the client has room for answers. Never raise for its content."""
        # Nothing is read from a client that does not read its answers: they would pile up.
        await self._room.wait()
        await self._free.acquire()
        hub = self._plane.hub
        most = hub.settings.limits.max_message_bytes
        if len(data) > most:
            read = ParsedFrame(too_large(most), [])
        elif len(data) < LARGE_BYTES:
            read = ParsedFrame(parse(data), [])
        else:  # parsed and searched for secrets in a thread, so that the event loop stays free
            read = await hub.inbound.read(partial(parse, data), _recordable)
        answering = self._answer(read)
        task = asyncio.get_running_loop().create_task(answering, name="arp-control")
        self._tasks.add(task)
        task.add_done_callback(self._request_done)

    def _request_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._free.release()

    async def _answer(self, read: ParsedFrame[Frame]) -> None:
        starts: SubscriptionStarts = []
        frame = read.value
        with self._plane.hub.inbound.redactor.knowing(read.cleaned):
            entries = (self._entry(entry, starts) for entry in frame.entries)
            answers = [one for one in await asyncio.gather(*entries) if one is not None]
        if answers:
            self._outbox.send([batch_frame(answers)] if frame.is_batch else answers)
        # A client must know the id of its subscription before it receives the first fact.
        for start in starts:
            start()

    async def _entry(
        self, entry: RpcRequest | InvalidRequest, starts: SubscriptionStarts
    ) -> bytes | None:
        if isinstance(entry, InvalidRequest):
            return error_frame(entry.id, entry.error)
        try:
            result = await self._call(entry.method, entry.params, starts)
            answer = result_frame(entry.id, result) if entry.id is not UNSET else None
        except Exception as error:  # noqa: BLE001
            # Any exception becomes an answer: one failed request must not end the connection.
            refused = rpc_error(error)
            return error_frame(entry.id, refused) if entry.id is not UNSET else None
        return answer

    async def _call(self, name: str, params: JsonObject, starts: SubscriptionStarts) -> Json:
        if self._context is None and name != "initialize":
            raise Unauthenticated("call initialize with a token first")
        own = OWN_METHODS.get(name)
        if own is not None:
            return await own.run(self, read_params(name, own.params, params), starts)
        assert self._context is not None
        return await call(self._context, name, params)

    # -- methods of the connection itself --------------------------------------------------------

    @method("initialize")
    async def _initialize(self, request: Initialize, _: SubscriptionStarts) -> JsonObject:
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
    async def _subscribe(self, request: Subscribe, starts: SubscriptionStarts) -> SubscriptionState:
        assert self._context is not None
        state, start = await self._subscriptions.begin(self._context, request)
        starts.append(start)
        return state

    @method("agentSession/unsubscribe")
    async def _unsubscribe(self, request: Unsubscribe, _: SubscriptionStarts) -> JsonObject:
        return self._subscriptions.end(request)


OWN_METHODS = methods_of(Connection)
"""Methods of the connection itself, by name."""


def _recordable(frame: Frame) -> Iterable[Json]:
    """Yield the values that may be recorded: data of inputs, parameters of other requests."""
    for entry in frame.entries:
        if isinstance(entry, RpcRequest):
            given = entry.params.get("input")
            yield given.get("data", given) if isinstance(given, dict) else entry.params


class Subscriptions:
    """The subscriptions of one client, each a task with a cursor of its own.

    Args:
        store: Source of the facts.
        outbox: Outbox of the client.
        room: Backpressure of the outbox.
    """

    def __init__(self, store: Store, outbox: FrameOutbox, room: Room) -> None:
        self._store = store
        self._outbox = outbox
        self._room = room
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._number = 0

    async def begin(
        self, context: ControlContext, request: Subscribe
    ) -> tuple[SubscriptionState, Callable[[], None]]:
        """Prepare a subscription.

        Returns:
            The answer to the request, and a function that starts the subscription. Call the
            function after the answer is sent.

        Raises:
            ResourceLimit: The client already has `MOST_SUBSCRIPTIONS`.
        """
        if len(self._tasks) >= MOST_SUBSCRIPTIONS:
            raise ResourceLimit(f"a connection has at most {MOST_SUBSCRIPTIONS} subscriptions")
        context = await context.reader(request.session_id)
        live = await context.live(request.session_id)
        epoch, after, snapshot = live.session.epoch, request.after, None
        # A client with facts of another epoch, or with facts that are not stored, does not have a
        # prefix of this log, so it starts again from a snapshot.
        if request.epoch not in (None, epoch) or after is None or after > live.stored:
            model = await context.model(request.session_id)
            after, snapshot = model.sequence, model.snapshot(context.now())
        self._number += 1
        name, how = f"sub{self._number}", "events" if snapshot is None else "snapshot"
        state = SubscriptionState(name, live.id, epoch, after, how, snapshot)
        return state, lambda: self._start(state, live, FactFilter.of(request.types))

    def end(self, request: Unsubscribe) -> JsonObject:
        """End a subscription; none of its facts is sent after the answer.

        Raises:
            UnknownObject: There is no subscription with that id.
        """
        task = self._tasks.pop(request.subscription_id, None)
        if task is None:
            raise UnknownObject(
                f"no subscription {request.subscription_id!r:.80}", detail="subscriptionId"
            )
        task.cancel()
        return {"subscriptionId": request.subscription_id}

    def close(self) -> None:
        """End all subscriptions."""
        for task in self._tasks.values():
            task.cancel()

    def _start(self, state: SubscriptionState, live: LiveSession, choice: FactFilter) -> None:
        name = state.subscription_id
        sending = self._send(name, live, state.after, choice)
        task = asyncio.get_running_loop().create_task(sending, name=f"arp-{name}")
        self._tasks[name] = task
        task.add_done_callback(lambda _: self._tasks.pop(name, None))

    async def _send(self, name: str, live: LiveSession, after: int, choice: FactFilter) -> None:
        try:
            async with aclosing(follow(self._store, live, after, choice)) as facts:
                async for _, fact in facts:
                    # If the client does not read, its facts wait in the store, not in the outbox.
                    await self._room.wait()
                    self._outbox.send([event_frame(name, fact)])
        except ArpError as error:
            why = {"subscriptionId": name, "sessionId": live.id, "error": rpc_error(error)}
            self._outbox.send([notification("agentSession/closed", why)])
