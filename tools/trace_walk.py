"""Trace a text delta and an input through the packages of arp/, and print how they change packages.

Run from the project's root: `make walk` (ARGS=-v lists every call). An ASGI WebSocket without a
network, a SQLite ledger in a temporary folder. Prints for each walk the number of calls, of
packages, and of stays: how often the walk enters a package.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import threading
from itertools import groupby
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from arp import App, Turn
from arp.server.application import Application

HERE = str(Path(__file__).parents[1] / "arp") + os.sep

SCOPE: dict[str, Any] = {
    "type": "websocket",
    "path": "/_arp/v1",
    "headers": [(b"host", b"127.0.0.1")],
    "subprotocols": [],
    "query_string": b"",
    "client": ("127.0.0.1", 1),
    "scheme": "ws",
}

HELLO: dict[str, Any] = {
    "type": "hello",
    "capabilities": {
        "components": {"text": 1, "table": 1},
        "features": ["streaming", "input", "resume", "patch-append", "batch"],
    },
}


class Call(NamedTuple):
    """A call of a function of ours."""

    path: str
    """Below `arp/`."""
    line: int
    function: str

    @property
    def package(self) -> str:
        """The package, or the file that is in none."""
        return self.path.split(os.sep)[0]


class Trace:
    """The calls that are made while it records."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.is_recording = False

    def take(self) -> list[Call]:
        """Return what was recorded, and begin again."""
        taken, self.calls = self.calls, []
        return taken

    def profile(self, frame: FrameType, event: str, _: object) -> None:
        """Record a call; for `sys.setprofile`."""
        code = frame.f_code
        if event == "call" and self.is_recording and code.co_filename.startswith(HERE):
            name = getattr(code, "co_qualname", code.co_name)
            self.calls.append(Call(code.co_filename[len(HERE) :], code.co_firstlineno, name))


def report(name: str, walk: list[Call], *, verbose: bool) -> None:
    """Print one walk on a line, and with `verbose` each call below it."""
    stays = [package for package, _ in groupby(call.package for call in walk)]
    print(
        f"{name}: {len(walk)} calls, {len(set(stays))} packages, {len(stays)} stays: "
        f"{' '.join(stays)}"
    )
    for call in walk if verbose else []:
        print(f"    {call.path}:{call.line} {call.function}")


async def main(*, verbose: bool) -> None:
    """Make both walks."""
    trace, step = Trace(), asyncio.Event()
    app = App(title="walk")

    @app.agent
    async def agent(turn: Turn) -> None:
        await step.wait()
        step.clear()
        await turn.say("warm up. ")  # so that lazy imports are done
        await step.wait()
        step.clear()
        trace.is_recording = True
        await turn.say("Hello there")
        await asyncio.sleep(0.2)
        trace.is_recording = False

    queue: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    async def send(_: object) -> None:
        """There is no reader."""

    async def say(message: dict[str, Any], wait_s: float = 0.25) -> None:
        await queue.put({"type": "websocket.receive", "text": json.dumps({"v": 1, **message})})
        await asyncio.sleep(wait_s)

    def text(content: str) -> dict[str, Any]:
        return {"type": "input", "input_type": "text", "data": {"text": content}, "id": content}

    with tempfile.TemporaryDirectory() as folder:
        application = Application(app.served(ledger=f"sqlite:{folder}/ledger.db"))
        sys.setprofile(trace.profile)
        threading.setprofile(trace.profile)
        await queue.put({"type": "websocket.connect"})
        task = asyncio.create_task(application(SCOPE, queue.get, send))
        await say(HELLO)
        application.state.leases.close()  # its timer is in no walk
        await say(text("first"))
        for pause_s in (0.3, 0.5):
            step.set()
            await asyncio.sleep(pause_s)
        delta = trace.take()
        trace.is_recording = True
        await say(text("second"))
        trace.is_recording = False
        sys.setprofile(None)
        threading.setprofile(None)
        report("delta", delta, verbose=verbose)
        report("input", trace.take(), verbose=verbose)
        await queue.put({"type": "websocket.disconnect"})
        await asyncio.sleep(0.1)
        task.cancel()
        await application.aclose()


if __name__ == "__main__":
    asyncio.run(main(verbose="-v" in sys.argv[1:]))
