"""Plain WebSocket clients for tests: what is on the wire, nothing kept or interpreted."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from websockets.asyncio.client import ClientConnection, connect

from tests.server.processes import Process
from tests.support.serving import Serving

WAIT_S = 30.0


class Raw:
    """One connection that speaks JSON."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.seen: list[Any] = []
        self.frames = 0
        """Read so far; each holds one message, or several for who takes a `batch`."""
        self._waiting: list[Any] = []

    async def send(self, message: Any) -> None:
        """Sends a message, or any text or bytes."""
        is_raw = isinstance(message, str | bytes)
        await self.socket.send(message if is_raw else json.dumps(message))

    async def say(self, session_id: str, text: str, **more: Any) -> None:
        """Sends a text input as the draft has it."""
        body = {"v": 1, "type": "input", "session_id": session_id, "input_type": "text"}
        await self.send({**body, "data": {"text": text}, **more})

    async def hello(self, session_id: str, components: Any, *features: str, **more: Any) -> Any:
        """Says hello and gives the `session` that comes back."""
        capabilities = {"components": components, "features": list(features)}
        capabilities["limits"] = more.pop("limits", {})
        body = {"v": 1, "type": "hello", "session_id": session_id, "capabilities": capabilities}
        await self.send({**body, **more})
        return await self.until("session")

    async def next(self) -> Any:
        """Return the next message."""
        while not self._waiting:
            async with asyncio.timeout(WAIT_S):
                frame = json.loads(await self.socket.recv())
            self.frames += 1
            self._waiting = frame if isinstance(frame, list) else [frame]
        message = self._waiting.pop(0)
        self.seen.append(message)
        return message

    async def until(self, type_name: str, **fields: Any) -> Any:
        """Reads until a message of this type with these fields has come, and gives it."""
        while True:
            message = await self.next()
            if message["type"] == type_name and fields.items() <= message.items():
                return message

    async def until_final(self, turn_id: str) -> Any:
        """Reads to the end of a turn."""
        return await self.until("commit", turn_id=turn_id, final=True)

    def of(self, type_name: str) -> list[Any]:
        """Return the messages of one type that were read so far."""
        return [message for message in self.seen if message["type"] == type_name]


@asynccontextmanager
async def raw(server: Serving | Process, **options: Any) -> AsyncIterator[Raw]:
    """Connects; the agent side's `hello` is read already."""
    async with connect(server.ws, compression=None, max_size=None, **options) as socket:
        connection = Raw(socket)
        first = await connection.next()
        assert first["type"] == "hello"
        yield connection
