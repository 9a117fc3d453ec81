"""Agents of the object dialect that show no conversation, on every transport that carries it."""

from __future__ import annotations

import asyncio
import json
import struct
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import cbor2
import grpc.aio
import msgspec
import pytest
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.typing import Subprotocol

from arp import App, Turn
from arp.client.client import ArpClient, connect
from arp.protocol.framing.envelope import SERVICE, seal, unseal
from tests.interop.plain_agent import PlainAgent
from tests.support.serving import Serving, serving

WAIT_S = 30.0

app = App()


@app.agent
async def echo(turn: Turn) -> None:
    await turn.say(turn.text)


@pytest.fixture(scope="module")
def server() -> Iterator[Serving]:
    with serving(app) as running:
        yield running


AGENT = Path(__file__).with_name("plain_agent.py")

Play = Callable[[PlainAgent], Awaitable[None]]
WRITE: dict[str, Callable[[Any], bytes]] = {
    "json": lambda message: json.dumps(message).encode(),
    "msgpack": msgspec.msgpack.encode,
    "cbor": cbor2.dumps,
}
READ: dict[str, Callable[[bytes], Any]] = {
    "json": json.loads,
    "msgpack": msgspec.msgpack.decode,
    "cbor": cbor2.loads,
}


class WebSocket:
    def __init__(self, socket: ServerConnection, encoding: str) -> None:
        self.socket, self.encoding = socket, encoding

    async def send(self, message: Any) -> None:
        await self.socket.send(WRITE[self.encoding](message), text=self.encoding == "json")

    async def receive(self) -> Any:
        return READ[self.encoding](await self.socket.recv(decode=False))


class Framed:
    """Frames behind their lengths, in MessagePack."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def send(self, message: Any) -> None:
        frame = msgspec.msgpack.encode(message)
        self.writer.write(struct.pack(">I", len(frame)) + frame)
        await self.writer.drain()

    async def receive(self) -> Any:
        (size,) = struct.unpack(">I", await self.reader.readexactly(4))
        if size == 0:
            raise EOFError
        return msgspec.msgpack.decode(await self.reader.readexactly(size))


class Call:
    """A call of gRPC."""

    def __init__(self, context: Any) -> None:
        self.context = context

    async def send(self, message: Any) -> None:
        await self.context.write(seal(WRITE["json"](message), "object"))

    async def receive(self) -> Any:
        data = await self.context.read()
        if data is grpc.aio.EOF:
            raise EOFError
        return READ["json"](unseal(data).frame)


GONE = (ConnectionClosed, EOFError, ConnectionError, asyncio.IncompleteReadError, grpc.RpcError)


async def played(agents: list[PlainAgent], play: Play, pipe: Any) -> None:
    agents.append(PlainAgent(pipe))
    try:
        await play(agents[-1])
        await agents[-1].until("never")
    except GONE:
        pass


@asynccontextmanager
async def serving_agent(
    transport: str, play: Play, tmp_path: Path
) -> AsyncIterator[tuple[str, dict[str, Any], list[PlainAgent]]]:
    """Run the agent; the address, options of the client, and the agent of each connection."""
    agents: list[PlainAgent] = []
    if transport in WRITE:

        async def on_socket(socket: ServerConnection) -> None:
            await played(agents, play, WebSocket(socket, transport))

        names = [Subprotocol(f"arp.v1.{transport}")]
        async with serve(on_socket, "127.0.0.1", 0, subprotocols=names) as server:
            port = server.sockets[0].getsockname()[1]
            yield f"ws://127.0.0.1:{port}/_arp/v1", {"encoding": transport}, agents
    elif transport == "unix":
        path = str(tmp_path / "agent.sock")
        tasks: set[asyncio.Task[None]] = set()

        async def on_call(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await played(agents, play, Framed(reader, writer))
            writer.close()

        def on_stream(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            tasks.add(asyncio.ensure_future(on_call(reader, writer)))

        async with await asyncio.start_unix_server(on_stream, path):
            yield f"unix:{path}", {}, agents
        await asyncio.gather(*tasks)
    elif transport == "grpc":

        async def on_connect(_: Any, context: Any) -> None:
            await played(agents, play, Call(context))

        handler: Any = grpc.stream_stream_rpc_method_handler(on_connect)
        service = grpc.method_handlers_generic_handler(SERVICE, {"Connect": handler})
        grpc_server = grpc.aio.server()
        grpc_server.add_generic_rpc_handlers([service])
        port = grpc_server.add_insecure_port("127.0.0.1:0")
        await grpc_server.start()
        yield f"grpc:127.0.0.1:{port}", {}, agents
        await grpc_server.stop(None)
    else:
        yield "stdio:", {"command": [sys.executable, str(AGENT)]}, agents


async def until(client: ArpClient, ready: Callable[[], object]) -> None:
    events = client.events()
    while not ready():
        await anext(events)


@pytest.mark.parametrize("transport", ["json", "msgpack", "cbor", "unix", "grpc", "stdio"])
async def test_client_shows_an_agent_without_a_conversation(transport: str, tmp_path: Path) -> None:
    """Nothing comes before the registry; each commit that shows is acknowledged. Spec: O12, O14."""
    async with (
        asyncio.timeout(WAIT_S),
        serving_agent(transport, PlainAgent.play, tmp_path) as (url, options, agents),
        connect(url, dialect="object", **options) as client,
    ):
        main = client.screen.surfaces["main"]
        await until(client, lambda: "t1" in main.nodes)
        assert client.session_id == "s-17"
        turn = await client.ask("offers")
        assert [echo.data for echo in turn.inputs] == [{"text": "offers"}]
        shown = {name: main.component(name).props for name in main.nodes}
        assert shown.keys() == {"t1", "c2"}
        assert shown["t1"]["rows"][-1] == ["Chair", "35"]
        await until(client, lambda: client.screen.shared_state)
        assert client.screen.shared_state == {"step": "review", "items": 3}
        await client.send_text("bye")
        await until(client, lambda: not main.nodes)
        assert client.screen.errors == []
    for agent in agents:
        assert agent.got[0]["op"] == "global"
        assert [error["code"] for error in agent.errors] == [3]
        assert agent.acks == [10, 13]


async def run_terminal(*arguments: str, inputs: str) -> tuple[int, str]:
    """`arp connect` with these lines; its exit code and output."""
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "arp", "connect", *arguments, "--dialect", "object"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    printed, _ = await child.communicate(inputs.encode())
    assert child.returncode is not None
    return child.returncode, printed.decode()


async def test_terminal_shows_an_agent_without_a_conversation(tmp_path: Path) -> None:
    async with (
        asyncio.timeout(WAIT_S),
        serving_agent("json", PlainAgent.play, tmp_path) as (url, _, agents),
    ):
        code, shown = await run_terminal(url, inputs="offers\n")
    assert code == 0
    assert shown.count("Lamp") == 2  # the table, and the table with the row that was added
    assert shown.count("Chair") == 1
    assert "3 offers" in shown
    assert agents[0].acks == [10, 13]


async def test_client_of_the_object_dialect_takes_no_server_for_one_of_the_draft(
    server: Serving,
) -> None:
    """A `hello` belongs to the session dialect alone: nobody answers one here."""
    async with asyncio.timeout(WAIT_S), connect(server.ws, dialect="object") as client:
        assert not client._connection.is_undecided
        turn = await client.ask("hi")
        epoch = client._connection.epoch
        assert client._connection.assume_draft() == []
        assert (client._connection.epoch, client.screen.turns[turn.id]) == (epoch, turn)
