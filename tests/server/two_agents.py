"""Two agents, each a server, and one renderer that has a connection to each."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from arp import App, HubSettings, Turn, ui
from arp.client.errors import LinkLost
from arp.client.link import Link
from arp.client.links.dial import dialer
from arp.protocol.catalog import VERSIONS
from arp.protocol.codec import Encoding, encode
from arp.protocol.components import Component
from arp.protocol.errors import TransferDenied
from arp.protocol.limits import Limits
from arp.protocol.objects.display import ObjectDisplay, SurfaceTransferred
from arp.protocol.objects.messages import (
    CompositorCreateSurfaceRequest,
    DisplayErrorRequest,
    SessionCreateRequest,
    ShellGetToplevelRequest,
    SurfaceCommitRequest,
)
from arp.protocol.objects.renderer import ObjectRendererConnection, offers
from arp.protocol.objects.wire import ObjectMessage

WAIT_S = 20.0

KEY = "shared-by-both-servers"

SETTINGS = HubSettings(transfer_key=KEY)

giver, taker = App(title="Giver", settings=SETTINGS), App(title="Taker", settings=SETTINGS)


@giver.agent
async def give(turn: Turn) -> None:
    """Shows a surface and hands it to the session that the user names."""
    to_session, _, how = turn.text.partition(" ")
    side = turn.surface("side", title="Report")
    side.show(
        ui.table(["n"], [[1], [2]], id="t"), ui.confirm("Sure?", id="q"), ui.text("x", id="own")
    )
    try:
        await side.transfer(to_session=to_session, retain_content=how != "empty")
    except TransferDenied as error:
        await turn.say(f"denied: {error.message}; {sorted(turn.surfaces)}")
    else:
        await turn.say(f"{await side.closed}; {sorted(turn.surfaces)}")


@taker.agent
async def take(turn: Turn) -> None:
    """Changes what it was given."""
    if turn.text == "change":
        turn.surface("acquired").show(ui.text("from the taker", id="added"))
    await turn.say(f"{turn.surfaces} {turn.input.surface} {turn.input.data}")


APPS = {"giver": giver, "taker": taker}


class Way(NamedTuple):
    """How a renderer reaches an agent."""

    address: str
    encoding: Encoding = "json"


class OneRenderer:
    """A renderer with a connection to each agent, and nothing that one may know of the other."""

    def __init__(self, prefix: str, may_transfer: Callable[[str, str], bool]) -> None:
        self.display = ObjectDisplay(may_transfer)
        self.links: dict[str, Link] = {}
        self.names: dict[tuple[str, str], int] = {}
        """The surfaces of each agent, by its name for them."""
        self.handed: list[SurfaceTransferred] = []
        self.refused: list[DisplayErrorRequest] = []
        self.ends_at_hand_over = False
        """Whether it sends nothing more once a surface has another owner: nobody hears of it."""
        self._prefix = prefix
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._came = asyncio.Event()
        self._sending = asyncio.Lock()

    def end(self, agent: str) -> ObjectRendererConnection:
        return self.display.agents[agent]

    async def connect(self, agent: str, way: Way) -> None:
        """Begin to show an agent, in the session that it has in this test."""
        features = ["patch-append", "multi-surface", "overlays"]
        end = ObjectRendererConnection(way.encoding, Limits(), offers(dict(VERSIONS), features))
        made = dialer(way.address, {"dialect": "object", "encoding": way.encoding})
        self.links[agent] = await made.open(encode([], way.encoding))
        self.display.attach(agent, end)
        self._tasks[agent] = asyncio.create_task(self._run(agent))

    async def disconnect(self, agent: str) -> None:
        """Show an agent no longer."""
        task = self._tasks.pop(agent)
        task.cancel()
        (outcome,) = await asyncio.gather(task, return_exceptions=True)
        assert outcome is None or isinstance(outcome, asyncio.CancelledError), outcome
        self._forget(agent)
        await self.links.pop(agent).aclose()
        await self.flush()

    def _forget(self, agent: str) -> None:
        self.display.detach(agent)
        for place in [place for place in self.names if place[0] == agent]:
            del self.names[place]

    async def _run(self, agent: str) -> None:
        """Show what one agent sends, until the connection ends."""
        link = self.links[agent]
        while True:
            try:
                frame = await link.receive()
            except LinkLost:
                return
            for event in self.display.receive(agent, frame, _now()):
                if isinstance(event, SurfaceTransferred):
                    self.handed.append(event)
                elif isinstance(event, ObjectMessage):
                    self._answer(agent, event)
                else:
                    raise AssertionError(event)
            await self.flush()
            self._came.set()

    def _answer(self, agent: str, event: ObjectMessage) -> None:
        end = self.end(agent)
        match event.payload:
            case SessionCreateRequest():
                end.resume(f"{self._prefix}-{agent}", 0)
            case CompositorCreateSurfaceRequest(new_id, name):
                self.names[agent, name or ""] = new_id
            case ShellGetToplevelRequest(surface_id) if surface_id in end.objects.surfaces:
                end.configure(surface_id, 80, 24)
            case SurfaceCommitRequest() if event.object_id in end.objects.surfaces:
                end.displayed(event.object_id)
            case DisplayErrorRequest() as refused:
                self.refused.append(refused)
            case _:
                pass

    async def flush(self) -> None:
        if self.ends_at_hand_over and self.handed:
            return
        async with self._sending:  # a link takes one frame after the other, in their order
            for agent, link in list(self.links.items()):
                if agent not in self.display.agents:
                    continue
                for out in self.end(agent).data_to_send():
                    with contextlib.suppress(LinkLost):  # its own task sees that
                        await link.send(out)

    async def until(self, ready: Callable[[], object]) -> None:
        async with asyncio.timeout(WAIT_S):
            while not ready():
                self._came.clear()
                await self._came.wait()

    def shown(self, agent: str, surface_id: int) -> dict[str, Component]:
        return {one.id: one for one in self.end(agent).content(surface_id)}

    async def use(
        self, agent: str, surface_id: int, input_type: Any, data: Any, **more: Any
    ) -> None:
        """Do something on a surface."""
        self.end(agent).input(surface_id, input_type, data, _now(), **more)
        await self.flush()

    async def say(self, agent: str, text: str, waits_for: str) -> str:
        """Say something on `main`, and return the text of `main` when it has certain words."""
        await self.use(agent, self.names[agent, "main"], "text", {"text": text})
        await self.until(lambda: waits_for in self.said(agent))
        return self.said(agent)

    def said(self, agent: str) -> str:
        main = self.names.get((agent, "main"))
        content = self.shown(agent, main) if main is not None else {}
        return "\n".join(str(one.props.get("content")) for one in content.values())

    async def aclose(self) -> None:
        for agent in list(self._tasks):
            await self.disconnect(agent)


def _now() -> float:
    return asyncio.get_running_loop().time()


@asynccontextmanager
async def one_renderer(
    ways: Mapping[str, Way],
    prefix: str,
    may_transfer: Callable[[str, str], bool] = lambda giver, taker: True,
) -> AsyncIterator[OneRenderer]:
    """Connect a renderer to the agents; close it when the block ends."""
    made = OneRenderer(prefix, may_transfer)
    async with asyncio.timeout(WAIT_S):
        try:
            for agent, way in ways.items():
                await made.connect(agent, way)
            await made.until(lambda: all((agent, "main") in made.names for agent in ways))
            yield made
        finally:
            await made.aclose()
