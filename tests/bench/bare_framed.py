"""The baseline for Unix sockets and gRPC: servers that send constants, one for each token.

`python -m tests.bench.bare_framed PATH PORT` serves length-prefixed MessagePack at a Unix socket,
with asyncio's streams on uvloop, and JSON in envelopes over gRPC, with `grpcio` only. It has no
sessions, writes nothing and checks nothing; its messages are encoded once, before they are sent.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import grpc
import grpc.aio
import msgspec
import uvloop

from arp.protocol.codec import Encoding, recode
from arp.protocol.framing.envelope import SERVICE, seal, unseal
from arp.protocol.framing.length_prefix import prefixed
from tests.bench.bare import END_EVENT, FINAL_EVENT, SESSION_EVENT, TOKEN_EVENT
from tests.bench.plan import Plan, read

SendBytes = Callable[[bytes], Awaitable[object]]


class Constants:
    """The encoded messages of one transport, and its connections."""

    def __init__(self, encoding: Encoding, wrap: Callable[[bytes], bytes]) -> None:
        self.decode = msgspec.msgpack.decode if encoding == "msgpack" else msgspec.json.decode
        encoded = [
            wrap(recode(event["text"].encode(), encoding))
            for event in (SESSION_EVENT, TOKEN_EVENT, END_EVENT, FINAL_EVENT)
        ]
        self.session, self.token, self.end, self.final = encoded
        self.all: list[SendBytes] = []
        """The `send` of each open connection."""

    async def answer(self, frame: bytes, send: SendBytes) -> None:
        """Answer a `hello` with a session, and carry out the plan of an input."""
        message: Any = self.decode(frame)
        if message["type"] != "input":
            await send(self.session)
            return
        plan = read(message["data"]["text"])
        await self._say(plan, list(self.all) if plan.to_all else [send])

    async def _say(self, plan: Plan, sends: list[SendBytes]) -> None:
        for _ in range(plan.deltas - 1):
            for send in sends:
                await send(self.token)
            if plan.interval_s or plan.yields:
                await asyncio.sleep(plan.interval_s)
        for last in (self.end, self.final):
            for send in sends:
                await send(last)


UNIX = Constants("msgpack", lambda frame: prefixed([frame]))
GRPC = Constants("json", seal)


async def serve_unix(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    async def send(data: bytes) -> None:
        writer.write(data)
        await writer.drain()

    UNIX.all.append(send)
    try:
        while head := await reader.read(4):
            frame = await reader.readexactly(int.from_bytes(head, "big"))
            await UNIX.answer(frame, send)
    except ConnectionError:
        pass  # the renderer has disconnected
    finally:
        UNIX.all.remove(send)
        writer.close()


async def serve_grpc(requests: object, context: Any) -> None:
    GRPC.all.append(context.write)
    try:
        while (data := await context.read()) is not grpc.aio.EOF:
            await GRPC.answer(unseal(data).frame, context.write)
    finally:
        GRPC.all.remove(context.write)


async def main(path: str, port: int) -> None:
    handler: Any = grpc.stream_stream_rpc_method_handler(serve_grpc)
    server = grpc.aio.server()
    generic = grpc.method_handlers_generic_handler(SERVICE, {"Connect": handler})
    server.add_generic_rpc_handlers((generic,))
    server.add_insecure_port(f"127.0.0.1:{port}")
    await server.start()
    listening = await asyncio.start_unix_server(serve_unix, path)
    print(f"bare on http://127.0.0.1:{port}", flush=True)
    async with listening:
        await listening.serve_forever()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main(sys.argv[1], int(sys.argv[2])))
