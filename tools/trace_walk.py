"""Trace a text delta and an input through the files and packages of `arp/`.

Run `make walk` from the project's root; `ARGS=-v` lists every call, `ARGS=--json` prints the
figures as JSON. The input comes over an ASGI WebSocket without a network; the ledger is a SQLite
file in a temporary folder. The figures of a walk:

- calls: functions of ours that were called;
- files, packages: how many different ones the walk visits;
- file changes, package changes: how often the walk enters a file or a package, the first included.
"""

from __future__ import annotations

import argparse
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

import arp
from arp import App, Turn
from arp.server.application import Application

HERE = str(Path(arp.__file__).parent) + os.sep
"""Folder of the imported package, which may belong to another tree than this script."""

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
    """A call of a function of this project."""

    path: str
    """Path of the file below `arp/`."""
    line: int
    function: str

    @property
    def package(self) -> str:
        """Package of the file, or the file itself if it is in no package."""
        return self.path.split(os.sep)[0]


class Trace:
    """Records the calls that are made while it is active."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.is_recording = False

    def dequeue(self) -> list[Call]:
        """Return the recorded calls and remove them."""
        recorded, self.calls = self.calls, []
        return recorded

    def profile(self, frame: FrameType, event: str, _: object) -> None:
        """Record a call; for `sys.setprofile`."""
        code = frame.f_code
        if event == "call" and self.is_recording and code.co_filename.startswith(HERE):
            name = getattr(code, "co_qualname", code.co_name)
            self.calls.append(Call(code.co_filename[len(HERE) :], code.co_firstlineno, name))


class Walk(NamedTuple):
    """The calls of one walk, in order."""

    calls: list[Call]

    @property
    def packages(self) -> list[str]:
        """The packages that the walk enters, in order."""
        return [package for package, _ in groupby(call.package for call in self.calls)]

    def figures(self) -> dict[str, int]:
        """Return the figures that the docstring of this module explains."""
        files = [path for path, _ in groupby(call.path for call in self.calls)]
        return {
            "calls": len(self.calls),
            "files": len(set(files)),
            "file changes": len(files),
            "packages": len(set(self.packages)),
            "package changes": len(self.packages),
        }


def report(name: str, walk: Walk, *, verbose: bool) -> None:
    """Print the figures of a walk in one line; with `verbose`, each call follows."""
    figures = ", ".join(f"{count} {what}" for what, count in walk.figures().items())
    print(f"{name}: {figures}: {' '.join(walk.packages)}")
    for call in walk.calls if verbose else []:
        print(f"    {call.path}:{call.line} {call.function}")


async def walks() -> dict[str, Walk]:
    """Make both walks, and return them by name."""
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
        delta = trace.dequeue()
        trace.is_recording = True
        await say(text("second"))
        trace.is_recording = False
        sys.setprofile(None)
        threading.setprofile(None)
        made = {"delta": Walk(delta), "input": Walk(trace.dequeue())}
        await queue.put({"type": "websocket.disconnect"})
        await asyncio.sleep(0.1)
        task.cancel()
        await application.aclose()
    return made


def main() -> None:
    """Print both walks."""
    parser = argparse.ArgumentParser(description="Trace a text delta and an input through arp/.")
    parser.add_argument("-v", "--verbose", action="store_true", help="list every call")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    options = parser.parse_args()
    made = asyncio.run(walks())
    if options.json:
        print(json.dumps({name: walk.figures() for name, walk in made.items()}))
        return
    for name, walk in made.items():
        report(name, walk, verbose=options.verbose)


if __name__ == "__main__":
    main()
