"""`arp serve --stdio` as a child: nothing but the protocol on its output, and a good end."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

AGENT = Path(__file__).with_name("stubborn.py")
WAIT_S = 30.0


class Child:
    """The agent's process, and the parent's ends of its pipes."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.process = process
        self.stdin, self.stdout = process.stdin, process.stdout

    def say(self, text: str, **more: Any) -> None:
        """Writes an input."""
        said = {"v": 1, "type": "input", "session_id": "s", "input_type": "text", **more}
        self.write(json.dumps({**said, "data": {"text": text}}) + "\n")

    def write(self, text: str) -> None:
        """Writes anything."""
        self.stdin.write(text.encode())

    async def hears(self, type_name: str, **fields: Any) -> Any:
        """Reads until such a message has come."""
        while True:
            message = json.loads(await self.stdout.readline())
            if message["type"] == type_name and fields.items() <= message.items():
                return message

    async def ended(self) -> tuple[int, list[Any], str]:
        """Gives exit code, what was left on stdout, and stderr."""
        out, err = await self.process.communicate()
        assert self.process.returncode is not None
        lines = [json.loads(line) for line in out.decode().splitlines()]
        return self.process.returncode, lines, err.decode()


@asynccontextmanager
async def child(*options: str) -> AsyncIterator[Child]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "arp.cli", "serve", str(AGENT), "--stdio", *options),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "GRACE": "1"},
    )
    try:
        async with asyncio.timeout(WAIT_S):
            yield Child(process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def test_nothing_but_the_protocol_stands_on_standard_output() -> None:
    """The agent prints, with and without Python's buffers, while it loads and while it works."""
    async with child() as parent:
        parent.say("hi", id="i1")
        parent.stdin.close()
        code, told, err = await parent.ended()
    assert code == 0
    assert told[0]["type"] == "hello"
    assert [one["payload"]["delta"] for one in told if one["type"] == "delta"] == ["re hi"]
    for printed in ("loading", "raw bytes", "turn t1"):
        assert printed in err


async def test_end_of_the_input_closes_turns_and_exits_with_zero(tmp_path: Path) -> None:
    """A turn that soon ends may end; one that does not is interrupted."""
    for text, status in (("soon", "completed"), ("stream", "failed")):
        async with child("--ledger", f"sqlite:{tmp_path / text}.db") as parent:
            parent.say(text)
            await parent.hears("delta")
            parent.stdin.close()
            code, told, err = await parent.ended()
        states = [one["status"] for one in told if one["type"] == "turn"]
        assert (code, states[-1]) == (0, status)
        assert "Traceback" not in err


async def test_messages_in_pieces_are_heard_whole() -> None:
    """F29: lines come in any pieces; several may come at once."""
    async with child() as parent:
        said = {"v": 1, "type": "input", "session_id": "s", "input_type": "text"}
        text = json.dumps({**said, "data": {"text": "ä" * 50}}, ensure_ascii=False)
        for at in range(0, len(text), 7):
            parent.write(text[at : at + 7])
            await parent.stdin.drain()
        parent.write("\n")
        message = await parent.hears("delta")
        parent.write(f"{text}\n\n{text}\n")
        await parent.hears("commit", turn_id="t3", final=True)
    assert message["payload"]["delta"] == "re " + "ä" * 50


def test_parent_that_stops_reading_does_not_keep_the_child() -> None:
    """Its pipe is full; when the input ends the child ends too."""
    command = [sys.executable, "-m", "arp.cli", "serve", str(AGENT), "--stdio"]
    said = {"v": 1, "type": "input", "session_id": "s", "input_type": "text"}
    line = json.dumps({**said, "data": {"text": "stream " * 30_000}}) + "\n"
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdin is not None
        process.stdin.write(line.encode())
        process.stdin.close()
        try:
            code = process.wait(10)
        finally:
            process.kill()
    assert code == 0


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
async def test_signal_ends_the_child_in_good_order(sent: signal.Signals) -> None:
    """Its input is still open and silent; no traceback."""
    async with child() as parent:
        parent.say("stream")
        await parent.hears("delta")
        parent.process.send_signal(sent)
        code, told, err = await parent.ended()
    assert code == 0
    assert "Traceback" not in err
    assert [one["status"] for one in told if one["type"] == "turn"][-1] == "failed"


async def test_ledger_that_cannot_be_opened_is_told_on_standard_error(tmp_path: Path) -> None:
    """One line, as everywhere; nothing on standard output."""
    (tmp_path / "file").write_text("")
    async with child("--ledger", f"sqlite:{tmp_path / 'file' / 'ledger.db'}") as parent:
        code, told, err = await parent.ended()
    assert (code, told) == (1, [])
    assert err.splitlines()[-1].startswith("arp: ")
    assert "Traceback" not in err
