"""Standard input and output, over pipes of this process (protocol.md 6)."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any, BinaryIO

import pytest

from arp import Turn
from arp.access.principal import Principal
from arp.hub.peers.peer import Peer
from arp.hub.runner import Handler
from arp.transport.queue_outbox import QueueOutbox
from arp.transport.stdio import MAX_LINE_BYTES, lines, serve_stdio
from tests.hub.rig import started

SAID = {"v": 1, "type": "input", "session_id": "s", "input_type": "text", "data": {"text": "x"}}


async def split(chunks: Iterable[bytes]) -> list[bytes]:
    """Return the lines of an input that comes in these chunks."""
    left = [*chunks, b""]

    async def read() -> bytes:
        return left.pop(0)

    return [line async for line in lines(read)]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
async def test_any_split_of_the_bytes_gives_the_same_lines(size: int) -> None:
    """F29: partial lines; blank ones are passed over, the last needs no end."""
    text = 'one\ntwo äöü\r\n\n   \nthree\x0b\x1c\u2028x\n{"four":4}'.encode()
    chunks = [text[at : at + size] for at in range(0, len(text), size)]
    assert await split(chunks) == [
        b"one",
        "two äöü".encode(),
        "three\x0b\x1c\u2028x".encode(),
        b'{"four":4}',
    ]


async def test_line_that_is_too_long_is_heard_once_and_the_next_is_whole() -> None:
    """T50: its tail is no message, whatever stands in it."""
    junk = b"x" * (MAX_LINE_BYTES // 2 + 1)
    told = await split([junk, junk, b'{"smuggled":1}', b'{"more":2}\nnext\n'])
    assert [len(line) for line in told] == [MAX_LINE_BYTES + 2, 4]
    assert told[1] == b"next"


async def check(_: str) -> Principal | None:
    return None


class Pipes:
    """Both ends of two pipes, and the child's side served."""

    def __init__(self) -> None:
        self.child_in, self.to_child = pipe()
        self.from_child, self.child_out = pipe()

    def close(self) -> None:
        """Closes what is open."""
        for one in (self.child_in, self.to_child, self.from_child, self.child_out):
            one.close()

    def say(self, *messages: Any) -> None:
        """Writes lines to the child."""
        for message in messages:
            self.to_child.write(json.dumps(message).encode() + b"\n")

    async def heard(self) -> list[Any]:
        """Gives everything that the child said until it closed its end."""
        text = await asyncio.to_thread(self.from_child.read)
        return [json.loads(line) for line in text.splitlines()]


def pipe() -> tuple[BinaryIO, BinaryIO]:
    read, write = os.pipe()
    return os.fdopen(read, "rb", buffering=0), os.fdopen(write, "wb", buffering=0)


@asynccontextmanager
async def served(
    agent: Handler,
) -> AsyncIterator[tuple[Pipes, asyncio.Task[None]]]:
    pipes = Pipes()
    hub = await started(agent)

    def make_peer(outbox: QueueOutbox) -> Peer:
        return Peer(hub, outbox, "json", "agent", Principal(), check)

    async def serve() -> None:
        await serve_stdio(pipes.child_in, pipes.child_out, make_peer, hub.aclose)
        pipes.child_out.close()

    task = asyncio.ensure_future(serve())
    try:
        yield pipes, task
    finally:
        task.cancel()
        await asyncio.wait([task], timeout=5)
        pipes.close()


async def hello(turn: Turn) -> None:
    await turn.say("hello ")
    await asyncio.sleep(0.01)
    await turn.say("and bye")


async def test_one_line_is_one_message_both_ways() -> None:
    """The first is the agent side's hello; end of file closes."""
    async with asyncio.timeout(10), served(hello) as (pipes, task):
        pipes.say({**SAID, "id": "i1"})
        pipes.to_child.write(b"\n  \n{broken\n")
        pipes.to_child.close()
        told = await pipes.heard()
        await task
    said = "".join(one["payload"]["delta"] for one in told if one["type"] == "delta")
    assert told[0]["type"] == "hello"
    assert [one["id"] for one in told if one["type"] == "ack"] == ["i1"]
    assert [one["payload"]["code"] for one in told if one["type"] == "error"] == [11]
    assert said == "hello and bye"
    assert told[-1]["type"] == "commit"
    assert told[-1]["final"] is True


async def test_turn_may_finish_after_the_input_ended() -> None:
    """`echo '{…}' | arp serve app.py --stdio` answers."""
    async with asyncio.timeout(10), served(hello) as (pipes, task):
        pipes.say(SAID)
        pipes.to_child.close()
        told = await pipes.heard()
        await task
    assert [one["status"] for one in told if one["type"] == "turn"] == ["completed"]


async def test_turn_that_does_not_finish_is_closed_as_interrupted() -> None:
    """And said to be, before the pipe closes."""

    async def forever(_: Turn) -> None:
        await asyncio.Event().wait()

    async with asyncio.timeout(10), served(forever) as (pipes, task):
        pipes.say(SAID)
        pipes.to_child.close()
        told = await pipes.heard()
        await task
    assert [one["status"] for one in told if one["type"] == "turn"] == ["failed"]


async def test_parent_that_reads_nothing_does_not_keep_the_child(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its pipe is full; the end of the input ends it all the same."""
    monkeypatch.setattr("arp.transport.stdio.FLUSH_S", 0.05)

    async def flood(turn: Turn) -> None:
        for _ in range(200):
            await turn.say("x" * 4096)

    async with asyncio.timeout(10), served(flood) as (pipes, task):
        pipes.say(SAID)
        pipes.to_child.close()
        await task
        pipes.from_child.close()


async def test_parent_that_closes_its_end_ends_the_child() -> None:
    """Nobody hears it any more, though its input stays open."""
    async with asyncio.timeout(10), served(hello) as (pipes, task):
        pipes.from_child.close()
        pipes.say(SAID)
        await task


async def test_cancelled_service_ends_as_at_the_end_of_the_input() -> None:
    """SIGTERM: turns are closed before it is gone."""
    async with asyncio.timeout(10), served(hello) as (pipes, task):
        pipes.say(SAID)
        await asyncio.to_thread(pipes.from_child.read, 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
