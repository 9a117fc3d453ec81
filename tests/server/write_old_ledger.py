"""Write an archive for `test_old_ledger.py` with the tree that this file is run in.

    python -m tests.server.write_old_ledger tests/server/old_ledger_NAME.zip

The test opens the archive with every later tree. Write a new one before a change of the ledger, or
of what follows from facts, and keep the earlier ones. The server is a process of this tree, and is
used only over the wire, so that the file runs in any tree.
"""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
from websockets.asyncio.client import ClientConnection, connect

SESSIONS = ("first", "many", "running", "asking")
COMPONENTS = ["text", "code", "table", "chart", "image", "form", "confirm"]
FAILING_TURN = "t5"
LONG_TURNS = 60
START_S = 30.0

AGENT = r"""
import asyncio
from arp import App, Turn, ui

app = App(title="Old")
PICTURE = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000f49444154789c63"
    "6460f8cf0000030001019ddc1f3f0000000049454e44ae426082"
)


@app.agent
async def everything(turn: Turn) -> None:
    if turn.text == "show":
        turn.think("I look at the sales first. ")
        await turn.say("Here are **the sales**. ")
        async with turn.tool("query", {"sql": "SELECT *\nFROM sales"}) as tool:
            tool.progress("reading")
            sales = {"region": ["north", "south"], "sales": [3, 4.5]}
            tool.show(ui.chart("bar", sales, id="chart"), ui.table(sales, id="rows"))
            turn.patch("rows", "props.rows.0.1", 5)
            plot = await turn.save_file("plot.png", PICTURE)
            tool.show(ui.image(turn.file_url(plot), "A plot", id="plot"))
            turn.show(ui.text("aside", id="aside"), surface="side")
            tool.result("".join(f"row {number}\n" for number in range(600)))
        await turn.say("That is all, says sk-" + "a1B2" * 12 + ". ")
    elif turn.text == "ask":
        name = ui.field("name", label="Name", required=True)
        answer = await turn.ask(ui.form([name], title="Who are you?", id="who"))
        await turn.say(f"Hello {answer['name']}. ")
    elif turn.text == "leave":
        async with turn.tool("shell", {"command": "ls"}) as tool:
            await tool.approve("Run ls?", rule="all", session_rule="commands-need-leave")
            tool.result("README.md")
        await turn.say("Listed. ")
    elif turn.text == "fail":
        raise RuntimeError("the agent fails")
    elif turn.text == "long":
        await turn.say("It begins. ")
        await asyncio.sleep(600)
    elif turn.text == "open":
        await turn.confirm("Delete 12 rows?", message="for good", id="sure")
    else:
        await turn.say(f"You said {turn.text}. ")
"""


class Connection:
    """A WebSocket of the draft dialect that answers nothing by itself."""

    def __init__(self, link: ClientConnection, session: str) -> None:
        self._link = link
        self._session = session
        self._waiting: list[Any] = []

    async def send(self, type_name: str, **fields: Any) -> None:
        """Send one message of this session."""
        message = {"v": 1, "type": type_name, "session_id": self._session, **fields}
        await self._link.send(json.dumps(message))

    async def say(self, text: str, input_id: str) -> None:
        """Send a text as an input."""
        await self.send("input", input_type="text", data={"text": text}, id=input_id)

    async def until(self, type_name: str, **fields: Any) -> Any:
        """Return the next message of a type that has all these fields."""
        while True:
            while not self._waiting:
                async with asyncio.timeout(START_S):
                    frame = json.loads(await self._link.recv())
                self._waiting = frame if isinstance(frame, list) else [frame]
            message = self._waiting.pop(0)
            if message["type"] == "error" and message.get("turn_id") != FAILING_TURN:
                raise RuntimeError(f"the server refused: {message}")
            if message["type"] == type_name and fields.items() <= message.items():
                return message

    async def until_final(self, turn_id: str) -> None:
        """Wait for the end of a turn."""
        await self.until("commit", turn_id=turn_id, final=True)


class Server:
    """`arp serve` of this tree, with a ledger in a folder."""

    def __init__(self, folder: Path) -> None:
        (folder / "agent.py").write_text(AGENT, encoding="utf-8")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        ledger = f"sqlite:{folder / 'ledger.db'}"
        command = [sys.executable, "-m", "arp", "serve", str(folder / "agent.py")]
        self._process = subprocess.Popen([*command, "--port", str(self.port), "--ledger", ledger])
        self.http = f"http://127.0.0.1:{self.port}"

    async def ready(self) -> None:
        """Wait until the server answers."""
        async with asyncio.timeout(START_S), httpx.AsyncClient(base_url=self.http) as client:
            while True:
                try:
                    if (await client.get("/_api/chats")).status_code == 200:
                        return
                except httpx.TransportError:
                    await asyncio.sleep(0.1)

    def end(self, number: signal.Signals) -> None:
        """End the process with a signal, and wait for it."""
        self._process.send_signal(number)
        self._process.wait(START_S)

    async def get(self, path: str) -> Any:
        """Return the JSON at a path."""
        async with httpx.AsyncClient(base_url=self.http) as client:
            answer = await client.get(path)
        answer.raise_for_status()
        return answer.json()

    @asynccontextmanager
    async def connection(self, session: str) -> AsyncIterator[Connection]:
        """Connect a renderer with all components to a session."""
        address = f"ws://127.0.0.1:{self.port}/_arp/v1"
        async with connect(address, max_size=None) as link:
            made = Connection(link, session)
            features = ["branches", "input", "multi-surface", "patch-append", "thinking"]
            await made.send(
                "hello", capabilities={"components": COMPONENTS, "features": features, "limits": {}}
            )
            await made.until("session")
            yield made


@asynccontextmanager
async def serving(folder: Path, end: signal.Signals) -> AsyncIterator[Server]:
    """Run a server, and end it with a signal."""
    server = Server(folder)
    try:
        await server.ready()
        yield server
    finally:
        server.end(end)


async def fill_first(server: Server) -> None:
    """Write one of everything: tools, files, questions, a permission, a failure, branches."""
    async with server.connection("first") as screen:
        await screen.say("show", "i1")
        await screen.until_final("t1")
        await screen.say("hello", "i2")
        await screen.until_final("t2")
        await screen.say("ask", "i3")
        await screen.until("render", turn_id="t3")
        fields = {"fields": {"name": "Ada"}}
        await screen.send(
            "input", input_type="form_submit", data=fields, source_component="who", id="a3"
        )
        await screen.until_final("t3")
        await screen.say("leave", "i4")
        question = (await screen.until("render", turn_id="t4"))["components"][0]["id"]
        yes = {"action": "confirm", "payload": {"scope": "session"}}
        await screen.send(
            "input", input_type="action", data=yes, source_component=question, id="a4"
        )
        await screen.until_final("t4")
        await screen.say("fail", "i5")
        await screen.until_final("t5")
        await screen.send(
            "input", input_type="text", data={"text": "hi there"}, edits="t2", id="i6"
        )
        await screen.until_final("t6")
        back = {"action": "arp.branch", "payload": {"turn_id": "t2"}}
        await screen.send("input", input_type="action", data=back, id="i7")
        await screen.say("once more", "i8")
        await screen.until_final("t7")


async def fill_many(server: Server) -> None:
    """Write so many turns that the earliest have left the memory."""
    async with server.connection("many") as screen:
        for number in range(LONG_TURNS):
            await screen.say(f"turn {number}", f"m{number}")
            await screen.until_final(f"t{number + 1}")
    async with httpx.AsyncClient(base_url=server.http) as client:
        named = await client.patch(
            "/_api/chats/many", json={"title": "Sixty turns", "pinned": True}
        )
        named.raise_for_status()


async def leave_open(server: Server) -> None:
    """Leave a turn running with another in the queue, and a question open."""
    async with server.connection("running") as screen:
        await screen.say("long", "a")
        await screen.until("delta", turn_id="t1")
        await screen.say("later", "b")
        await screen.until("turn", turn_id="t2", status="queued")
    async with server.connection("asking") as screen:
        await screen.say("open", "a")
        await screen.until("render", turn_id="t1")


async def expectation(server: Server, name: str) -> dict[str, Any]:
    """Return what the server says of a session over HTTP."""
    return {
        "facts": await server.get(f"/_api/sessions/{name}/events?limit=1000"),
        "chat": await server.get(f"/_api/chats/{name}?limit=200"),
        "snapshot": await server.get(f"/_api/sessions/{name}/snapshot"),
        "thread": await server.get(f"/_api/sessions/{name}/thread"),
    }


async def fill(folder: Path) -> None:
    """Write the ledger, its files and `expected.json` into a folder."""
    async with serving(folder, signal.SIGTERM) as server:
        await fill_first(server)
        await fill_many(server)
    async with serving(folder, signal.SIGKILL) as server:
        await leave_open(server)
        expected = {name: await expectation(server, name) for name in SESSIONS}
    text = json.dumps(expected, indent=1, ensure_ascii=False)
    (folder / "expected.json").write_text(text, encoding="utf-8")
    (folder / "agent.py").unlink()


def main(archive: Path) -> None:
    """Write the archive."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        asyncio.run(fill(folder))
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
            for file in sorted(folder.rglob("*")):
                if (
                    file.is_file()
                    and file.suffix not in (".db-shm", ".lock")
                    and "__pycache__" not in file.parts
                ):
                    packed.write(file, file.relative_to(folder))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
