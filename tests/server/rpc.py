"""A program on the control plane for tests: asks over a real WebSocket, keeps what it is told."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from websockets.asyncio.client import ClientConnection, connect

WAIT_S = 30.0


class RpcFailed(Exception):
    """The answer was an error."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(error["message"])
        self.number: int = error["code"]
        self.code: int = error["data"]["code"]
        self.name: str = error["data"]["name"]


class Rpc:
    """One connection."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.facts: list[dict[str, Any]] = []
        """Told by `agentSession/event`, in order."""
        self.closed: list[dict[str, Any]] = []
        self._number = 0

    async def call(self, method: str, **params: Any) -> Any:
        """Calls a method and gives its result."""
        self._number += 1
        number = self._number
        body = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        await self.socket.send(json.dumps(body))
        while True:
            message = await self.next()
            if message.get("id") == number:
                break
        if "error" in message:
            raise RpcFailed(message["error"])
        return message["result"]

    async def next(self) -> Any:
        """Return the next message; facts are kept besides."""
        async with asyncio.timeout(WAIT_S):
            message = json.loads(await self.socket.recv())
        if isinstance(message, dict) and message.get("method") == "agentSession/event":
            self.facts.append(message["params"]["event"])
        elif isinstance(message, dict) and message.get("method") == "agentSession/closed":
            self.closed.append(message["params"])
        return message

    async def until(self, type_name: str, **fields: Any) -> dict[str, Any]:
        """Reads until a fact of this type with these fields has been told, and gives the first."""
        while True:
            for fact in self.of(type_name):
                if fields.items() <= fact.items():
                    return fact
            await self.next()

    def of(self, type_name: str) -> list[dict[str, Any]]:
        """Return the facts of a type that were told so far."""
        return [fact for fact in self.facts if fact["type"] == type_name]

    @property
    def types(self) -> list[str]:
        """The types of all facts that were told so far, in order."""
        return [fact["type"] for fact in self.facts]

    async def follow(self, session_id: str, after: int = 0, **more: Any) -> Any:
        """Subscribes to a session's facts from the first, or behind one."""
        return await self.call("agentSession/subscribe", sessionId=session_id, after=after, **more)

    async def say(self, session_id: str, text: str, **more: Any) -> Any:
        """Begins a turn with a text."""
        start = "agentSession/turn/start"
        return await self.call(start, sessionId=session_id, input={"text": text}, **more)

    async def thread(self, session_id: str) -> Any:
        """Reads the session's thread."""
        return await self.call("agentSession/read", sessionId=session_id, view="thread")


@asynccontextmanager
async def rpc(port: int, **options: Any) -> AsyncIterator[Rpc]:
    """Connects to a server's control plane."""
    url = f"ws://127.0.0.1:{port}/_api/rpc"
    async with connect(url, compression=None, max_size=None, **options) as socket:
        yield Rpc(socket)
