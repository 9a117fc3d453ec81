"""One JSON-RPC client: its requests, its subscriptions, and how much may wait for it.

Theory of operation. Requests are begun in the order in which they come, and answered when they are
done. While more than `HIGH_WATER_BYTES` wait for the client, its subscriptions tell nothing and no
further request of it is taken.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import TypeAlias

from msgspec import UNSET

from arp.access.principal import Principal
from arp.control.asked import Asked
from arp.control.desk import Desk, Plane
from arp.control.jsonrpc import (
    Frame,
    Refused,
    Request,
    batch_frame,
    error_frame,
    parse,
    result_frame,
    too_large,
)
from arp.control.methods import METHODS, asked_for, call
from arp.control.refusals import rpc_error
from arp.control.subscriptions import Subscribe, Subscriptions, Unsubscribe
from arp.hub.inbound import LARGE_BYTES, Read
from arp.hub.viewer import Outbox
from arp.ledger.fact import SCHEMA_VERSION
from arp.protocol.errors import Unauthenticated
from arp.protocol.json_value import Json, JsonObject

HIGH_WATER_BYTES = 256 << 10
"""As much may wait for one client as for one renderer."""

MOST_REQUESTS = 64
"""Of one client under way at once; a further one is read when one is answered."""

TOKEN_DEADLINE_S = 10.0
"""How long a connection may stay without a principal."""

ANSWER_S = 10.0
"""How long requests may go on when a client has said that it asks no more."""

CheckToken: TypeAlias = Callable[[str], Awaitable[Principal | None]]
"""Tells to whom a token belongs; `None`: to nobody."""


class Initialize(Asked, frozen=True, kw_only=True):
    """Begins a conversation; needed only where no header could carry the token."""

    token: str | None = None


class Connection:
    """A client of the control plane, whatever carries its frames."""

    def __init__(
        self,
        plane: Plane,
        outbox: Outbox,
        principal: Principal | None,
        check_token: CheckToken,
    ) -> None:
        self.on_trusted: Callable[[], object] = lambda: None
        """Is called when the client has shown a token, or is gone."""
        self._plane = plane
        self._outbox = outbox
        self._desk = Desk(plane, principal) if principal is not None else None
        self._check_token = check_token
        self._room = asyncio.Event()
        self._free = asyncio.Semaphore(MOST_REQUESTS)
        self._tasks: set[asyncio.Task[None]] = set()
        self._subscriptions = Subscriptions(plane.hub.store, outbox, self._has_room)

    @property
    def viewer(self) -> Connection:
        """Whom the outbox tells that it has drained."""
        return self

    def start(self) -> None:
        """Begins; nothing is sent before something is asked."""
        if self._desk is None:
            asyncio.get_running_loop().call_later(TOKEN_DEADLINE_S, self._too_late)

    def _too_late(self) -> None:
        if self._desk is None:
            self._outbox.close(1008, "no valid token in time")

    def drained(self) -> None:
        """Is called when little waits for the client."""
        self._room.set()

    async def _has_room(self) -> None:
        while self._outbox.buffered > HIGH_WATER_BYTES:
            self._room.clear()
            await self._room.wait()

    def closed(self) -> None:
        """Is called once, when the connection is gone. What was asked and is recorded goes on."""
        self.on_trusted()
        self._subscriptions.close()
        for task in self._tasks:
            task.cancel()

    async def answered(self) -> None:
        """Waits until everything that was asked is answered, for a bounded time."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=ANSWER_S)

    # -- requests --------------------------------------------------------------------------------

    async def receive(self, data: bytes | str) -> None:
        """Takes one frame, when there is room. Never raises for what is in it."""
        await self._has_room()
        await self._free.acquire()
        hub = self._plane.hub
        most = hub.settings.limits.max_message_bytes
        if len(data) > most:
            read = Read(too_large(most), [])
        elif len(data) < LARGE_BYTES:
            read = Read(parse(data), [])
        else:
            read = await hub.inbound.read(partial(parse, data), _kept)
        answering = self._answer(read)
        task = asyncio.get_running_loop().create_task(answering, name="arp-control")
        self._tasks.add(task)
        task.add_done_callback(self._answered)

    def _answered(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._free.release()

    async def _answer(self, read: Read[Frame]) -> None:
        begun: list[Callable[[], None]] = []
        frame = read.value
        with self._plane.hub.inbound.redactor.knowing(read.cleaned):
            answers = await asyncio.gather(*(self._entry(entry, begun) for entry in frame.entries))
        told = [answer for answer in answers if answer is not None]
        if told:
            self._outbox.send([batch_frame(told)] if frame.is_batch else told)
        for begin in begun:
            begin()

    async def _entry(
        self, entry: Request | Refused, begun: list[Callable[[], None]]
    ) -> bytes | None:
        if isinstance(entry, Refused):
            return error_frame(entry.id, entry.error)
        try:
            result = await self._call(entry.method, entry.params, begun)
            answer = result_frame(entry.id, result) if entry.id is not UNSET else None
        except Exception as error:  # noqa: BLE001
            # Whatever a method raises is this client's answer; the one place that words it.
            refused = rpc_error(error)
            return error_frame(entry.id, refused) if entry.id is not UNSET else None
        return answer

    async def _call(self, name: str, params: JsonObject, begun: list[Callable[[], None]]) -> Json:
        if name == "initialize":
            return await self._initialize(asked_for(name, Initialize, params))
        if self._desk is None:
            raise Unauthenticated("call initialize with a token first")
        if name == "agentSession/subscribe":
            asked = asked_for(name, Subscribe, params)
            subscribed, begin = await self._subscriptions.begin(self._desk, asked)
            begun.append(begin)
            return subscribed
        if name == "agentSession/unsubscribe":
            return self._subscriptions.end(asked_for(name, Unsubscribe, params))
        return await call(self._desk, name, params)

    async def _initialize(self, asked: Initialize) -> JsonObject:
        if self._desk is None:
            principal = await self._check_token(asked.token) if asked.token else None
            if principal is None:
                raise Unauthenticated("token: missing or not valid")
            self._desk = Desk(self._plane, principal)
            self.on_trusted()
        own = ["initialize", "agentSession/subscribe", "agentSession/unsubscribe"]
        return {
            "server": "arp",
            "schemaVersion": SCHEMA_VERSION,
            "methods": [*own, *METHODS],
            "notifications": ["agentSession/event", "agentSession/closed"],
        }


def _kept(frame: Frame) -> Iterable[Json]:
    """The data of inputs, and the parameters of other requests: what sessions may keep."""
    for entry in frame.entries:
        if isinstance(entry, Request):
            asked = entry.params.get("input")
            yield asked.get("data", asked) if isinstance(asked, dict) else entry.params
