"""The first token closes what was open without one over every transport; then one is needed."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

import httpx
import pytest
from websockets.asyncio.client import connect as dial
from websockets.exceptions import ConnectionClosed

from arp import App, Turn
from arp.access.leases import ENDED
from arp.access.tokens import TokenFile
from arp.client.client import ArpClient, connect
from arp.client.events import Disconnected
from arp.protocol.errors import Unauthenticated
from arp.server.ports.grpc_port import GrpcPort, GrpcSettings
from arp.server.ports.unix_port import UnixPort, UnixSettings
from arp.server.serve import Port
from arp.server.state import ServerState
from tests.server.test_expiry import issue
from tests.support.serving import Serving, serving

WITHIN_S = 3.0

app = App("First token")


@app.agent
async def agent(turn: Turn) -> None:
    await turn.say("secret")


async def closed(client: ArpClient) -> Disconnected:
    """Read until the server closes the connection."""
    async with asyncio.timeout(WITHIN_S):
        async for event in client.events():
            if isinstance(event, Disconnected):
                return event
    raise AssertionError("the events ended")


async def closed_stream(server: Serving, is_open: asyncio.Event) -> list[str]:
    """Read an event stream to its end."""
    url = f"{server.http}/_arp/v1/events"
    async with httpx.AsyncClient() as http, http.stream("GET", url) as answer:
        assert answer.status_code == 200
        lines: list[str] = []
        async for line in answer.aiter_lines():
            is_open.set()
            lines.append(line)
    return lines


async def test_first_token_closes_what_came_in_without_one(tmp_path: Path) -> None:
    """A renderer by WebSocket, gRPC and Unix socket, an event stream, the control plane."""
    ledger = tmp_path / "app.db"
    ports: list[Callable[[ServerState], Port]] = [
        lambda state: UnixPort(state, str(tmp_path / "s"), UnixSettings()),
        lambda state: GrpcPort(state, GrpcSettings()),
    ]
    with serving(app, ledger=f"sqlite:{ledger}", ports=ports) as server:
        addresses = (server.ws, *server.addresses)
        async with AsyncExitStack() as stack, asyncio.timeout(30):
            clients = [await stack.enter_async_context(connect(one)) for one in addresses]
            for client in clients:
                assert client.screen.text((await client.ask("x")).id) == "secret"
            rpc = await stack.enter_async_context(dial(f"ws://127.0.0.1:{server.port}/_api/rpc"))
            await rpc.send(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize"}))
            assert "methods" in str(await rpc.recv())
            is_open = asyncio.Event()
            reading = asyncio.ensure_future(closed_stream(server, is_open))
            await is_open.wait()
            waiting = [asyncio.ensure_future(closed(client)) for client in clients]
            began = time.monotonic()
            token, _ = issue(TokenFile(ledger.with_suffix(".tokens")))
            for one in await asyncio.gather(*waiting):
                assert one.reason == f"closed with 1008: {ENDED}"
            with pytest.raises(ConnectionClosed) as ended:
                await rpc.recv()
            assert ended.value.rcvd is not None
            assert ended.value.rcvd.code == 1008
            assert ENDED in " ".join(await reading)
            assert time.monotonic() - began < WITHIN_S
        async with asyncio.timeout(30):
            for address in addresses:
                with pytest.raises(Unauthenticated):
                    async with connect(address) as refused:
                        await refused.ready()
                async with connect(address, token=token) as welcome:
                    assert welcome.screen.text((await welcome.ask("x")).id) == "secret"
            async with httpx.AsyncClient(base_url=server.http) as http:
                assert (await http.get("/_api/chats")).status_code == 401
                headers = {"authorization": f"Bearer {token}"}
                chats = (await http.get("/_api/chats", headers=headers)).json()
        # What was begun without a token belongs to nobody who has one.
        assert len(chats) == len(addresses)


async def test_ledger_in_memory_watches_nobody() -> None:
    """No command can create a token for it."""
    with serving(app) as server:
        async with connect(server.ws) as client:
            await client.ask("x")
            assert server.call(lambda: len(server.application.state.leases._held)) == 0
