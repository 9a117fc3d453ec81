"""An agent in the object dialect, written from the draft alone, on any transport.

It binds no `ArpConversation`, names no surface, and gives messages no turn. As a program it speaks
over its standard input and output.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Protocol

NEEDED = ("ArpCompositor", "ArpInput", "ArpShell", "ArpSession")
TABLE = {"title": "Offers", "headers": ["Item", "Cost"], "rows": [["Lamp", "12"], ["Desk", "80"]]}
CARD = {"status": "success", "title": "Done", "message": "3 offers"}


class Pipe(Protocol):
    """One connection."""

    async def send(self, message: Any) -> None: ...
    async def receive(self) -> Any: ...


class PlainAgent:
    """Plays the agent of the draft's example on one connection; keeps what the renderer sends."""

    def __init__(self, pipe: Pipe) -> None:
        self.pipe = pipe
        self.got: list[Any] = []
        """Every message of the renderer."""
        self.errors: list[dict[str, Any]] = []
        self.acks: list[int] = []
        """The commits that are displayed."""
        self.inputs: deque[dict[str, Any]] = deque()
        """Those that nobody has waited for yet."""
        self.seq = 0
        self.serial = 0

    async def say(self, object_id: int, op: str, **payload: Any) -> int:
        self.seq += 1
        message = {"v": 1, "id": object_id, "op": op, "seq": self.seq, "payload": payload}
        await self.pipe.send(message)
        return self.seq

    async def until(self, op: str, **wanted: Any) -> dict[str, Any]:
        """Waits for an event; the payload. Inputs wait until somebody wants one."""
        while op != "input" or not self.inputs:
            message = await self.pipe.receive()
            assert isinstance(message, dict), f"the draft has no arrays: {message}"
            self.got.append(message)
            payload = message["payload"]
            if message["op"] == "error":
                self.errors.append(payload)
            if message["op"] == "frame_ack":
                self.acks.append(payload["commit_seq"])
            if message["op"] == "input":
                self.inputs.append(payload)
            elif message["op"] == op and wanted.items() <= payload.items():
                return dict(payload)
        return self.inputs.popleft()

    async def begin(self) -> None:
        """The registry, the binds, the session, and a surface with a role."""
        await self.say(0, "get_registry", new_id=1)
        names: dict[str, int] = {}
        while not names.keys() >= set(NEEDED):
            payload = await self.until("global")
            names[payload["interface"]] = payload["name"]
        for new_id, interface in enumerate(NEEDED, 2):
            bound = {"name": names[interface], "interface": interface}
            await self.say(1, "bind", **bound, version=1, new_id=new_id)
        await self.say(5, "create", session_id="s-17", metadata={"agent": "offers"})
        await self.say(2, "create_surface", new_id=10)
        await self.say(4, "get_toplevel", surface_id=10, new_id=11)
        await self.until("configure")

    async def commit(self, surface: int = 10, **more: Any) -> None:
        """Commits, and waits until it is displayed."""
        number = await self.say(surface, "commit", **more)
        await self.until("frame_ack", commit_seq=number)

    async def answered(self) -> dict[str, Any]:
        """Waits for an input, and acknowledges it."""
        given = await self.until("input")
        self.serial = given["serial"]
        await self.say(3, "ack", serial=self.serial)
        return given

    async def show_offers(self) -> None:
        """The table, which stays until somebody says something."""
        components = [{"id": "t1", "type": "table", "props": TABLE}]
        await self.say(10, "render", components=components)
        await self.commit()

    async def play(self) -> None:
        """The whole example of the draft."""
        await self.begin()
        await self.show_offers()
        await self.answered()
        rows = [*TABLE["rows"], ["Chair", "35"]]
        more = {"id": "c2", "type": "status-card", "props": CARD}
        update = {"op": "update", "target": "t1", "path": "props.rows", "value": rows}
        insert = {"op": "insert", "after": "t1", "component": more}
        await self.say(10, "patch", ops=[update, insert])
        await self.commit(final=True)
        await self.say(0, "sync", callback_id=42)
        await self.until("done")
        await self.say(2, "create_surface", new_id=12)
        await self.say(4, "get_popup", surface_id=12, parent_id=10, new_id=20, trigger_serial=99)
        await self.until("error", code=3)
        await self.say(5, "state_update", state={"step": "review", "items": 3})
        await self.until("input")
        await self.say(10, "destroy")


class Lines:
    """Standard input and output, a message a line."""

    async def send(self, message: Any) -> None:
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()

    async def receive(self) -> Any:
        line = await asyncio.to_thread(sys.stdin.readline)
        if not line:
            raise EOFError
        return json.loads(line)


async def play_on(pipe: Pipe, play: Callable[[PlainAgent], Awaitable[None]]) -> None:
    """Plays until the renderer is gone."""
    agent = PlainAgent(pipe)
    await play(agent)
    while True:
        await agent.until("never")


if __name__ == "__main__":
    with suppress(EOFError):
        asyncio.run(play_on(Lines(), PlainAgent.play))
