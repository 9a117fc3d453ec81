"""The object dialect over a real WebSocket: lost connections, other renderers, refusals."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.typing import Subprotocol

from arp.client.client import ArpClient
from arp.protocol.capabilities import LEVELS
from arp.protocol.catalog import VERSIONS
from arp.protocol.codec import Encoding
from arp.protocol.messages import RendererCapabilities, RendererHello, TurnMessage
from arp.protocol.objects.screen import ObjectScreenConnection
from tests.server.scripted import EVERYTHING, app
from tests.support.serving import Serving, serving

WAIT_S = 30.0

FEATURES = ["streaming", "input", "resume", "multi-surface", "overlays", "patch-append", "thinking"]


@pytest.fixture(scope="module")
def server() -> Iterator[Serving]:
    with serving(app) as running:
        yield running


class Screen:
    """A renderer that outlives its connections."""

    def __init__(self, session_id: str, encoding: Encoding) -> None:
        capabilities = RendererCapabilities(dict(VERSIONS), [*FEATURES, "tool-detail"])
        hello = RendererHello(capabilities=capabilities, session_id=session_id)
        self.end = ObjectScreenConnection(hello, encoding, time.monotonic)
        self.answered: set[str] = set()

    async def connect(self, server: Serving, most: int | None = None) -> None:
        """Plays the user on one connection until the turn is over, or so many frames have come."""
        name = Subprotocol(f"arp.v1.{self.end.encoding}")
        async with connect(server.ws, subprotocols=[name]) as socket:
            await self._send(socket, [self.end.hello()])
            count = 0
            while not self._is_over() and (most is None or count < most):
                frame = await socket.recv(decode=False)
                count += 1
                for message in self.end.receive(frame):
                    if message.__struct_config__.tag == "session":
                        await self._send(socket, self.end.replies())
                        await self._send(socket, self.end.resend())
                await self._send(socket, self.end.replies())
                await self._answer(socket)

    async def _answer(self, socket: ClientConnection) -> None:
        if self.end.session_id is None or not self.end._names:
            return
        shown = {one.id: one for one in self.end.screen.output("t1")}
        todo: list[tuple[str, Any, str, str | None]] = [("text", {"text": "x"}, "begin", None)]
        if "sure" in shown:
            todo.append(("action", {"action": "confirm"}, "sure", "sure"))
        if "form" in shown:
            todo.append(("form_submit", {"fields": {"name": "Ada", "age": 36}}, "form", "form"))
        for kind, data, key, source in todo:
            if key not in self.answered:
                self.answered.add(key)
                frame = self.end.input(kind, data, input_id=key, source=source)  # type: ignore[arg-type]
                await self._send(socket, [frame])

    async def _send(self, socket: ClientConnection, frames: list[bytes]) -> None:
        for frame in filter(None, frames):
            await socket.send(frame, text=self.end.encoding == "json")

    def _is_over(self) -> bool:
        turn = self.end.screen.turns.get("t1")
        return turn is not None and turn.status == "completed" and turn.final


@pytest.mark.parametrize("encoding", ["json", "msgpack", "cbor"])
async def test_screen_after_lost_connections_equals_one_that_never_left(
    server: Serving, encoding: Encoding
) -> None:
    """Every input is sent again with its id, and takes effect once. Spec: S2, S3."""
    session_id = f"cut-{encoding}"
    cut = Screen(session_id, encoding)
    async with asyncio.timeout(WAIT_S):
        for most in range(2, 40):
            await cut.connect(server, most)
            if cut._is_over():
                break
        await cut.connect(server)
        async with ArpClient(server.ws, session_id=session_id) as other:
            await other.ready()
            whole = other.screen.canonical()
    assert cut.end.screen.canonical() == whole
    shown = whole["turns"]["t1"]
    assert {key: shown[key] for key in EVERYTHING} == EVERYTHING
    assert len(whole["turns"]) == 1


async def test_both_dialects_are_on_one_session_at_once(server: Serving) -> None:
    """What is said in one dialect shows in the other. Spec: W6."""
    async with (
        asyncio.timeout(WAIT_S),
        ArpClient(server.ws, session_id="both", dialect="object") as first,
        ArpClient(server.ws, session_id="both") as second,
    ):
        await first.ready()
        await second.ready()
        events = second.events()
        await first.send_text("wait")
        async for event in events:
            if isinstance(event, TurnMessage) and event.status == "waiting":
                await second.cancel()
            if isinstance(event, TurnMessage) and event.status == "cancelled":
                break
        await first.turn_done("t1")
        await second.turn_done("t1")
        assert first.screen.canonical() == second.screen.canonical()


async def test_terminal_of_a_lower_level_gets_simpler_components(server: Serving) -> None:
    capabilities = RendererCapabilities(list(LEVELS["minimal"]), FEATURES)
    options: dict[str, Any] = {"dialect": "object", "capabilities": capabilities}
    async with asyncio.timeout(WAIT_S), ArpClient(server.ws, **options) as client:
        await client.send_text("x")
        async for event in client.events():
            if isinstance(event, TurnMessage) and event.status == "waiting":
                break
        shown = client.screen.output("t1")
    assert {one.type for one in shown} == {"text"}
    assert len(shown) > 5


async def test_connection_whose_numbers_do_not_rise_is_closed(server: Serving) -> None:
    """Spec: O1."""
    async with connect(server.ws, subprotocols=[Subprotocol("arp.v1.json")]) as socket:
        raw = {"v": 1, "id": 0, "op": "error", "seq": 1, "payload": {}}
        await socket.send(json.dumps(raw))
        await socket.send(json.dumps(raw))
        with suppress(ConnectionClosed):
            async with asyncio.timeout(WAIT_S):
                while True:
                    await socket.recv()
        assert socket.close_code == 1002


async def test_subprotocol_of_an_unknown_encoding_is_refused(server: Serving) -> None:
    """Spec: W5."""
    with pytest.raises(InvalidStatus):
        await connect(server.ws, subprotocols=[Subprotocol("arp.v1.yaml")])
