"""A hub in memory for tests: its store can be held or broken, its renderers are in this process."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from arp.access.principal import Principal
from arp.hub.hub import Hub
from arp.hub.runner import AnswerHandler, Handler, HubApp
from arp.ledger.fact import Fact, decode
from arp.live.delivery import Viewer
from arp.live.settings import HubSettings
from arp.protocol.catalog import VERSIONS
from arp.protocol.codec import Encoding
from arp.protocol.connection.renderer_connection import RendererConnection
from arp.protocol.connection.screen import Screen
from arp.protocol.limits import RendererLimits
from arp.protocol.messages import Input, RendererCapabilities, RendererHello, Resume
from arp.store.blobs import MemoryBlobs
from arp.store.errors import StoreError, StoreUnwritable
from arp.store.memory import MemoryStore
from arp.store.store import Refusals, SessionWrite, Store
from arp.turn.tool import ToolProvider
from arp.turn.turn import Turn
from arp.turn.user_settings import UserSettings
from tests.support.waiting import becomes

WAIT_S = 30.0
NO_ANSWERS: Mapping[str, AnswerHandler] = {}
AT = "2026-01-02T03:04:05.000000Z"
ALL = list(VERSIONS)
FEATURES = ["streaming", "input", "resume", "patch-append", "multi-surface"]

BROKEN = StoreUnwritable("ledger.db", "the disk is full")


class HeldStore(MemoryStore):
    """A memory store whose disk is slow or full when a test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.error: StoreError | None = None
        """What every append raises from now on."""
        self.appends: list[Sequence[SessionWrite]] = []
        self.waiting = asyncio.Event()
        """An append has come while the store is held."""
        self._free = asyncio.Event()
        self._free.set()

    def hold(self) -> None:
        """Lets the next appends wait."""
        self.waiting.clear()
        self._free.clear()

    def release(self) -> None:
        """Lets them go on."""
        self._free.set()

    async def append(
        self,
        batch: Sequence[SessionWrite],
        together: Sequence[frozenset[str]] = (),
        *,
        is_awaited: bool = False,
    ) -> Refusals:
        """As `Store.append`, when it is released."""
        self.waiting.set()
        await self._free.wait()
        if self.error is not None:
            raise self.error
        refused = await super().append(batch, together)
        self.appends.append(batch)
        return refused

    async def facts(self, session_id: str = "s") -> list[Fact]:
        """Return what the ledger holds of a session."""
        facts: list[Fact] = []
        while chunk := await self.read(session_id, len(facts)):
            facts.extend(decode(body) for _, body in chunk)
        return facts


class Box:
    """An outbox that keeps what it is given."""

    def __init__(self) -> None:
        self.frames: list[bytes] = []
        self.first: list[bytes] = []
        """Those among them that were to go before what waits."""
        self.buffered = 0
        self.closed: tuple[int, str] | None = None
        self._came = asyncio.Event()
        self._read = 0
        self._messages: list[Any] = []
        """Of the first `_read` frames."""

    def send(self, frames: list[bytes]) -> None:
        """Keeps frames."""
        self.frames.extend(frames)
        self._came.set()

    def send_first(self, frame: bytes) -> None:
        """Keeps a frame."""
        self.first.append(frame)
        self.send([frame])

    def waiting(self) -> list[bytes]:
        """Keeps none of them waiting."""
        return []

    def close(self, code: int, reason: str) -> None:
        """Takes note of the end, which is the first that was given."""
        self.closed = self.closed or (code, reason)
        self._came.set()

    @property
    def messages(self) -> list[Any]:
        """The messages in the frames so far; of JSON only."""
        for frame in self.frames[self._read :]:
            message = json.loads(frame)
            self._messages.extend(message if isinstance(message, list) else [message])
        self._read = len(self.frames)
        return self._messages

    def of(self, type_name: str) -> list[Any]:
        """Return the messages of a type."""
        return [message for message in self.messages if message["type"] == type_name]

    def said(self) -> str:
        """Return the text of all deltas."""
        return "".join(message["payload"]["delta"] for message in self.of("delta"))

    async def until(self, ready: Callable[[], bool]) -> None:
        """Waits until what has come is enough."""
        async with asyncio.timeout(WAIT_S):
            while not ready():
                self._came.clear()
                await self._came.wait()

    async def has(self, type_name: str, **fields: Any) -> Any:
        """Waits for a message of a type with these fields, and gives the first."""

        def found() -> list[Any]:
            return [one for one in self.of(type_name) if fields.items() <= one.items()]

        await self.until(lambda: bool(found()))
        return found()[0]


class Renderer:
    """A renderer of a hub in the same process."""

    def __init__(
        self,
        hub: Hub,
        session_id: str | None = "s",
        *,
        components: Sequence[str] | Mapping[str, int] = ALL,
        features: Sequence[str] = FEATURES,
        limits: RendererLimits | None = None,
        owner: str = "",
        encoding: Encoding = "json",
    ) -> None:
        kinds = dict(components) if isinstance(components, Mapping) else list(components)
        capabilities = RendererCapabilities(kinds, list(features), limits or RendererLimits())
        self.hub = hub
        self.box = Box()
        self.viewer = Viewer(f"viewer-{id(self)}", self.box, encoding)
        self.principal = Principal(owner)
        self.workflow = "agent"
        self.hello = RendererHello(capabilities=capabilities, session_id=session_id)
        self._shows = RendererConnection(self.hello)
        self._applied = 0
        """Frames that `_shows` has received."""

    async def join(self, epoch: str | None = None, seq: int = 0) -> Renderer:
        """Says hello, and waits for the answer; with an epoch it resumes."""
        resume = Resume(epoch, seq) if epoch is not None else None
        hello = RendererHello(
            capabilities=self.hello.capabilities, session_id=self.hello.session_id, resume=resume
        )
        before = len(self.box.of("session"))
        await self.hub.hello(self.viewer, hello, self.principal, self.workflow)
        await self.box.until(lambda: len(self.box.of("session")) > before)
        await becomes(lambda: self.viewer.state == "current")
        return self

    async def send(self, input_type: str, data: Any, **more: Any) -> None:
        """Sends an input."""
        session_id = more.pop("session_id", self.hello.session_id)
        message = Input(input_type=input_type, data=data, session_id=session_id, **more)  # type: ignore[arg-type]
        await self.hub.receive(self.viewer, message, self.principal, self.workflow)

    async def say(self, text: str, **more: Any) -> None:
        """Sends a text."""
        await self.send("text", {"text": text}, **more)

    async def cancel(self, turn_id: str | None = None, **more: Any) -> None:
        """Asks the running turn, or a certain one, to stop."""
        payload = {"payload": {"turn_id": turn_id}} if turn_id else {}
        await self.send("action", {"action": "arp.cancel", **payload}, **more)

    async def ended(self, turn_id: str) -> Any:
        """Waits for the end of a turn, and gives its status."""
        await self.box.has("commit", final=True, turn_id=turn_id)
        states = [one for one in self.box.of("turn") if one["turn_id"] == turn_id]
        return states[-1]["status"]

    def leave(self) -> None:
        """The connection is gone."""
        self.hub.detach(self.viewer)

    @property
    def screen(self) -> Screen:
        """What it shows: everything that has come, applied in order."""
        for frame in self.box.frames[self._applied :]:
            self._shows.receive(frame)
        self._applied = len(self.box.frames)
        return self._shows.screen


def shown(frames: Sequence[bytes], hello: RendererHello | None = None) -> Screen:
    """Return the screen that frames make."""
    connection = RendererConnection(hello or RendererHello())
    for frame in frames:
        connection.receive(frame)
    return connection.screen


async def quiet(_: Turn) -> None:
    """An agent that does nothing."""


@asynccontextmanager
async def running(
    agent: Handler = quiet,
    *,
    store: Store | None = None,
    settings: HubSettings | None = None,
    tools: ToolProvider | None = None,
    answers: Mapping[str, AnswerHandler] = NO_ANSWERS,
    user_settings: UserSettings | None = None,
    **more: Handler,
) -> AsyncIterator[Hub]:
    """Starts a hub over a store in memory, and ends it."""
    hub = await started(
        agent,
        store=store,
        settings=settings,
        tools=tools,
        answers=answers,
        user_settings=user_settings,
        **more,
    )
    try:
        yield hub
    finally:
        async with asyncio.timeout(WAIT_S):
            await hub.aclose()


async def started(
    agent: Handler = quiet,
    *,
    store: Store | None = None,
    settings: HubSettings | None = None,
    tools: ToolProvider | None = None,
    answers: Mapping[str, AnswerHandler] = NO_ANSWERS,
    user_settings: UserSettings | None = None,
    **more: Handler,
) -> Hub:
    """Starts a hub; the caller ends it."""
    kept: Store = store if store is not None else MemoryStore()
    await kept.open()
    settings = settings or HubSettings(stop_grace_s=0.05, cancel_grace_s=0.05)
    app = HubApp(
        {"agent": agent, **more},
        tools=tools,
        answer_handlers=answers,
        user_settings=user_settings,
    )
    hub = Hub(kept, MemoryBlobs(), app, settings, now=lambda: AT)
    await hub.start()
    return hub


async def played(agent: Handler, text: str = "go", **options: Any) -> Renderer:
    """Runs one turn of an agent, and gives the renderer that saw all of it."""
    async with running(agent) as hub:
        renderer = await Renderer(hub, **options).join()
        await renderer.say(text)
        await renderer.ended("t1")
    return renderer


async def settled(hub: Hub) -> None:
    """Waits until all that is recorded now has been written and delivered, or has failed."""
    async with asyncio.timeout(WAIT_S):
        await hub.writer.turnover()
