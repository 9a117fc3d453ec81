"""A renderer that acknowledges commits sets its own pace, over every transport (2.4)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pytest

from arp import App, Turn, ui
from arp.client.client import ArpClient
from arp.client.link import Link
from arp.client.links.dial import dialer
from arp.client.options import Options
from arp.protocol.connection.renderer_connection import RendererConnection
from arp.protocol.messages import AgentMessage, Commit, RendererCapabilities, RendererHello
from arp.server.ports.grpc_port import GrpcPort, GrpcSettings
from arp.server.ports.unix_port import UnixPort, UnixSettings
from arp.server.serve import Port
from arp.server.state import ServerState
from tests.support.serving import Serving, serving

FRAMES = 40
MOST_PENDING = 2

app = App(title="Frames")


@app.agent
async def frames(turn: Turn) -> None:
    """Makes commits, each when the one before is durable."""
    turn.show(ui.progress([ui.step("0", "active")], id="p"))
    for number in range(1, FRAMES):
        await turn.say("")
        async with turn.frame():
            turn.patch("p", "props.title", str(number))
        await asyncio.sleep(0.002)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    path = tmp_path_factory.mktemp("flow") / "s"
    ports: list[Callable[[ServerState], Port]] = [
        lambda state: UnixPort(state, str(path), UnixSettings()),
        lambda state: GrpcPort(state, GrpcSettings()),
    ]
    with serving(app, ports=ports) as running:
        yield running


class Pacing:
    """A renderer that acknowledges only when a test says so."""

    def __init__(self, url: str, session_id: str) -> None:
        features = ["streaming", "input", "resume", "frame-ack"]
        capabilities = RendererCapabilities({"text": 1, "progress": 1}, features)
        hello = RendererHello(capabilities=capabilities, session_id=session_id)
        options: Options = {}
        self._dialer = dialer(url, options)
        self.shown = RendererConnection(hello, self._dialer.access.encoding)
        self.commits = 0
        self.link: Link

    async def begin(self) -> None:
        self.link = await self._dialer.open(self.shown.hello())
        while self.shown.epoch is None:
            await self.read()

    async def read(self) -> list[AgentMessage]:
        messages = self.shown.receive(await self.link.receive())
        self.commits += sum(isinstance(message, Commit) for message in messages)
        return messages

    async def read_until(self, commits: int) -> None:
        async with asyncio.timeout(10):
            while self.commits < commits:
                await self.read()

    async def gets_nothing(self) -> None:
        """Asks for a sign of life: what was sent before its answer would have come."""
        await self.link.send(self.shown.ping("x"))
        before = self.commits
        async with asyncio.timeout(10):
            while not any(type(message).__name__ == "Pong" for message in await self.read()):
                pass
        assert self.commits == before

    async def acknowledge(self) -> None:
        await self.link.send(self.shown.ack(self.shown.seq))


@pytest.mark.parametrize("transport", ["websocket", "unix", "grpc"])
async def test_commits_wait_for_acknowledgements_and_are_merged_meanwhile(
    server: Serving, transport: str
) -> None:
    """The agent and the other renderer go on; one catch-up brings the newest state."""
    unix, grpc = server.addresses
    url = {"websocket": server.ws, "unix": unix, "grpc": grpc}[transport]
    pacing = Pacing(url, transport)
    async with asyncio.timeout(30), ArpClient(url, session_id=transport) as other:
        await other.ready()
        await pacing.begin()
        turn = await other.ask("go")
        await pacing.read_until(MOST_PENDING)
        await pacing.gets_nothing()
        await pacing.acknowledge()
        await pacing.read_until(MOST_PENDING + 1)
        await pacing.gets_nothing()
        assert other.screen.surfaces["main"].component("p").props["title"] == str(FRAMES - 1)
        assert pacing.shown.screen.canonical() == other.screen.canonical()
        await pacing.link.aclose()
    assert turn.status == "completed"
