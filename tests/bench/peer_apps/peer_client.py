"""Asks Chainlit's or the AG-UI SDK's app, in the environment of the peers; prints what it got.

    python peer_client.py chainlit|ag-ui URL TEXT [WORDS-BEFORE-THE-CUT]

With the last argument the connection is cut in the middle of the answer, and made again as the
peer's own client makes it. It prints how many words arrived, over both connections.
"""

import asyncio
import sys
import uuid

import httpx
import socketio

AWAY_S = 0.3
WAIT_S = 60.0


async def chainlit(url: str, text: str, cut: int) -> int:
    session, words, is_over = str(uuid.uuid4()), 0, asyncio.Event()
    cut_now = asyncio.Event()

    def client() -> socketio.AsyncClient:
        made = socketio.AsyncClient(reconnection=False)

        @made.on("stream_start")  # has the first word
        @made.on("stream_token")
        async def token(_: object) -> None:
            nonlocal words
            words += 1
            if cut and words == cut:
                cut_now.set()

        @made.on("task_end")
        async def end(_: object = None) -> None:
            if words:
                is_over.set()

        return made

    async def connected() -> socketio.AsyncClient:
        made = client()
        auth = {"clientType": "webapp", "sessionId": session, "threadId": "", "userEnv": "{}"}
        await made.connect(
            url,
            auth={**auth, "chatProfile": ""},
            socketio_path="/ws/socket.io",
            transports=["websocket"],
        )
        await made.emit("connection_successful")
        return made

    first = await connected()
    await asyncio.sleep(0.2)
    message = {
        "id": str(uuid.uuid4()),
        "name": "user",
        "type": "user_message",
        "output": text,
        "createdAt": "2026-01-01T00:00:00Z",
    }
    await first.emit("client_message", {"message": message, "fileReferences": []})
    if cut:
        await asyncio.wait_for(cut_now.wait(), WAIT_S)
        await first.disconnect()
        await asyncio.sleep(AWAY_S)
        is_over.clear()
        first = await connected()
        await asyncio.sleep(2.5)  # `task_end` is sent at each connection, and says nothing then
    else:
        await asyncio.wait_for(is_over.wait(), WAIT_S)
    await first.disconnect()
    return words


async def ag_ui(url: str, text: str, cut: int) -> int:
    """The SDK has no way to join a run again: what came before the cut is all there is."""
    words = 0
    body = {
        "threadId": "t",
        "runId": "r",
        "state": {},
        "tools": [],
        "context": [],
        "forwardedProps": {},
        "messages": [{"id": "1", "role": "user", "content": text}],
    }
    async with (
        httpx.AsyncClient(timeout=WAIT_S, trust_env=False) as http,
        http.stream("POST", f"{url}/run", json=body) as answer,
    ):
        async for line in answer.aiter_lines():
            words += '"TEXT_MESSAGE_CONTENT"' in line
            if cut and words >= cut:
                break
    return words


kind, url, text, *rest = sys.argv[1:]
ask = {"chainlit": chainlit, "ag-ui": ag_ui}[kind]
print(asyncio.run(ask(url, text, int(rest[0]) if rest else 0)))
