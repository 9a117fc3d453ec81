"""An agent inside a FastAPI service, which does not run a mounted application's lifespan."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import uvicorn
from fastapi import FastAPI

from arp import App
from arp.client.client import connect
from examples.fastapi_embed.app import agent, api, guests
from tests.examples.conversation import question, shown


class Server(uvicorn.Server):
    """A server that says when it is ready."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()


@asynccontextmanager
async def running(api: FastAPI = api, agent: App = agent) -> AsyncIterator[str]:
    """A service with an agent in it on a free port, until the block ends."""
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(api, ws="websockets-sansio", log_level="warning", lifespan="on")
    server = Server(config)
    serving = asyncio.create_task(server.serve([listener]))
    try:
        await asyncio.wait_for(server.ready.wait(), 10)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        await asyncio.wait_for(serving, 10)
        await agent.asgi.aclose()
        listener.close()


async def test_both_faces_share_one_guest_book() -> None:
    guests.clear()
    async with running() as url, httpx.AsyncClient(base_url=url) as http:
        added = await http.post("/guests", json={"name": "Ada", "message": "by program"})
        assert added.status_code == 201
        async with connect(f"{url}/agent") as client:
            turn_id = await client.turn_of(await client.send_text("Sign the book"))
            form = await question(client, turn_id)
            await client.send_form({"name": "Grace", "message": "by form"}, source=form.id)
            await client.turn_done(turn_id)
            assert shown(client, turn_id) == ["form", "…", "table"]
            assert client.screen.text(turn_id) == "Thank you, Grace! Guests so far: 2."
        assert (await http.get("/guests")).json() == [
            {"name": "Ada", "message": "by program"},
            {"name": "Grace", "message": "by form"},
        ]
        page = await http.get("/agent/")
        assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
