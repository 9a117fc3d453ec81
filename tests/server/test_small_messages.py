"""A renderer that takes small messages only, over real sockets: all of it arrives, or says so."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import cbor2
import pytest
from websockets.asyncio.client import connect

from arp import App, Turn, ui
from arp.protocol.connection.renderer_connection import RendererConnection
from arp.protocol.messages import RendererHello
from tests.support.serving import Serving, serving

MOST = 1024
LONG = "".join(f"{number} words, " for number in range(2_000))

app = App(title="Small")


@app.agent
async def agent(turn: Turn) -> None:
    """Says and shows more than goes into one message, changes it, and asks."""
    await turn.say(LONG)
    async with turn.tool("query", {"sql": LONG}):
        pass
    rows = [[number, f"name {number}"] for number in range(2_000)]
    turn.show(ui.table(["n", "name"], rows, id="rows"), ui.text("kept", id="kept"))
    await turn.say("then ")
    turn.patch("rows", "props.rows.1999.1", "changed")
    turn.patch("kept", "props.content", "patched")
    await turn.say("asks ")
    answer = await turn.ask(ui.choices([f"choice {n}" for n in range(200)], id="ask"))
    turn.patch("rows", "props.rows", [[1, "small"]])
    await turn.say(f"answered {answer}")


@pytest.fixture(scope="module")
def server() -> Iterator[Serving]:
    with serving(app) as running:
        yield running


class Small:
    """A renderer that measures every frame and keeps the screen."""

    def __init__(self, socket: Any, cbor: bool) -> None:
        self.socket = socket
        self.cbor = cbor
        self.sizes: list[int] = []
        self.connection = RendererConnection(RendererHello(), "cbor" if cbor else "json")

    async def send(self, **message: Any) -> None:
        body = {"v": 1, **message}
        await self.socket.send(cbor2.dumps(body) if self.cbor else json.dumps(body))

    async def until(self, status: str) -> None:
        """Reads until the turn is so far, and nothing of it is on its way."""
        while not self.is_at(status):
            frame = await self.socket.recv()
            data = frame.encode() if isinstance(frame, str) else frame
            self.sizes.append(len(data))
            self.connection.receive(data)

    def is_at(self, status: str) -> bool:
        """Whether the turn is so far, and what it shows last is there."""
        turn = self.connection.screen.turns.get("t1")
        if turn is None or turn.status != status or "ask" not in self.shown():
            return False
        return turn.final or status != "completed"

    def shown(self) -> dict[str, Any]:
        return {part.id: part for part in self.connection.screen.output("t1")}


@pytest.mark.parametrize("cbor", [False, True])
@pytest.mark.parametrize("features", [["patch-append"], ["batch"], []])
async def test_no_frame_is_larger_than_the_renderer_said(
    server: Serving, features: list[str], cbor: bool
) -> None:
    """protocol.md 2.2: a renderer's own limits are honoured; what is cut says so."""
    session = f"small-{'-'.join(features)}-{cbor}"
    protocols: Any = ["arp.session.v1.cbor"] if cbor else None
    hello = {
        "type": "hello",
        "session_id": session,
        "capabilities": {
            "components": ["text", "table", "choices"],
            "features": features,
            "limits": {"max_message_bytes": MOST},
        },
    }
    said = {"type": "input", "session_id": session, "input_type": "text"}
    async with (
        connect(server.ws, compression=None, subprotocols=protocols) as first,
        connect(server.ws, compression=None, subprotocols=protocols) as second,
    ):
        live, late = Small(first, cbor), Small(second, cbor)
        await live.socket.recv()  # the agent side's hello comes before the renderer's
        await live.send(**hello)
        await live.send(**said, data={"text": "go " + LONG})
        await live.until("waiting")
        await late.socket.recv()
        await late.send(**hello)
        await late.until("waiting")
        before, joined = live.shown(), late.connection.screen.canonical()
        standing = live.connection.screen.canonical()
        await live.send(**said, data={"text": "choice 7"})
        await live.until("completed")
        await late.until("completed")
        after = live.shown()
    screen = live.connection.screen
    rows = before["rows"].props["rows"]
    assert max(live.sizes + late.sizes) <= MOST
    assert screen.text("t1") == LONG + "then asks answered choice 7"
    assert rows[-1][0] == f"… {2_001 - len(rows)} more rows not shown"
    assert before["kept"].props["content"] == "patched"
    assert before["ask"].type == "text"
    assert screen.turns["t1"].tools[0].args.endswith(' more characters not shown"')
    assert screen.turns["t1"].inputs[0].data["text"].endswith(" more characters not shown")
    assert joined == standing
    assert after["rows"].props["rows"] == [[1, "small"]]
    assert late.connection.screen.canonical() == screen.canonical()


async def test_agent_knows_what_a_component_became_that_was_too_large(server: Serving) -> None:
    """`turn.shown_as`, as for any component that a renderer gets as something simpler."""
    seen: list[dict[str, str]] = []
    asking = App()

    @asking.agent
    async def shows(turn: Turn) -> None:
        turn.show(ui.choices([f"choice {n}" for n in range(200)], id="many"))
        turn.show(ui.table(["n"], [[n] for n in range(900)], id="rows"), ui.text("x", id="x"))
        seen.extend(turn.shown_as(name) for name in ("many", "rows", "x"))

    capabilities = {
        "components": ["text", "table", "choices"],
        "limits": {"max_message_bytes": MOST},
    }
    with serving(asking) as asked:
        async with connect(asked.ws, compression=None) as socket:
            client = Small(socket, False)
            await client.send(type="hello", session_id="s", capabilities=capabilities)
            await client.send(type="input", input_type="text", data={"text": "go"})
            while '"final":true' not in str(await socket.recv()):
                pass
    assert [list(one.values()) for one in seen] == [["text"], ["native"], ["native"]]
