"""The baseline: an ASGI application that sends constants, one message for each token.

`python -m tests.bench.bare` serves it under uvicorn with the settings of `arp serve`, but with
uvicorn's WebSocket protocol and the system's default socket buffers. It has no sessions, writes
nothing and checks nothing; its events are encoded once, before they are sent.
"""

from __future__ import annotations

import asyncio
import gc
import socket
import time
from typing import Any

import uvicorn

from arp import App
from arp.server.serve import configuration
from arp.transport.websocket import Receive, Send
from tests.bench.plan import END, TOKEN, Plan, ordered

Constant = dict[str, Any]


def _text(text: str) -> Constant:
    return {"type": "websocket.send", "text": text}


def _delta(token: str) -> Constant:
    return _text('{"type":"delta","v":1,"session_id":"s","payload":{"delta":"' + token + '"}}')


TOKEN_EVENT = _delta(TOKEN)
END_EVENT = _delta(END)
FINAL_EVENT = _text('{"type":"commit","v":1,"session_id":"s","final":true}')
SESSION_EVENT = _text(
    '{"type":"session","v":1,"session_id":"s","epoch":"e","seq":1,"resume":"new"}'
)
PATCH_EVENT = _text(
    '[{"type":"patch","v":1,"session_id":"fanout","seq":12,"turn_id":"t1","ops":[{"op":"update",'
    '"target":"card","path":"props.message","value":"token "}]},'
    '{"type":"commit","v":1,"session_id":"fanout","seq":12,"turn_id":"t1","final":false}]'
)
"""As long as the messages that ARP sends for one changed property."""


class Bare:
    """Serves WebSocket connections and carries out the plans that they send."""

    def __init__(self) -> None:
        self.sends: list[Send] = []
        """The `send` of each open connection."""

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await receive()
            await send({"type": "lifespan.startup.complete"})
            await receive()
            await send({"type": "lifespan.shutdown.complete"})
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.accept"})
            self.sends.append(send)
            try:
                await self._serve(receive, send)
            finally:
                self.sends.remove(send)

    async def _serve(self, receive: Receive, send: Send) -> None:
        while (event := await receive())["type"] == "websocket.receive":
            plan = ordered(event["text"])
            if plan is None:
                await send(SESSION_EVENT)
                continue
            if plan.collect:
                gc.collect()
            elif plan.begin_ns:
                await asyncio.sleep(max(0.0, (plan.begin_ns - time.monotonic_ns()) / 1e9))
            await (self._broadcast(plan) if plan.to_all else _say(plan, send))

    async def _broadcast(self, plan: Plan) -> None:
        event = PATCH_EVENT if plan.patches else TOKEN_EVENT
        for _ in range(plan.deltas - 1):
            for send in self.sends:
                await send(event)
            await asyncio.sleep(plan.interval_s)
        for event in (END_EVENT, FINAL_EVENT):
            for send in self.sends:
                await send(event)


async def _say(plan: Plan, send: Send) -> None:
    for _ in range(plan.deltas - 1):
        await send(TOKEN_EVENT)
        if plan.interval_s or plan.yields:
            await asyncio.sleep(plan.interval_s)
    await send(END_EVENT)
    if plan.hold_s:
        await asyncio.sleep(plan.hold_s)
    await send(FINAL_EVENT)


def main() -> None:
    config = configuration(App().asgi)
    config.app, config.ws = Bare(), "websockets-sansio"
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    print(f"bare on http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    server = uvicorn.Server(config)
    with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
        runner.run(server.serve([listener]))


if __name__ == "__main__":
    main()
