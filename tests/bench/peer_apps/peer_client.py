"""Send a text to the app of Chainlit or of the AG-UI SDK, and print how many words arrived.

    python peer_client.py chainlit|ag-ui URL TEXT [WORDS-BEFORE-THE-CUT]

It runs in the environment of the peers. With the last argument it disconnects in the middle of the
answer, reconnects like the peer's own client, and counts the words of both connections.
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
        new = socketio.AsyncClient(reconnection=False)

        @new.on("stream_start")  # has the first word
        @new.on("stream_token")
        async def token(_: object) -> None:
            nonlocal words
            words += 1
            if cut and words == cut:
                cut_now.set()

        @new.on("task_end")
        async def end(_: object = None) -> None:
            if words:
                is_over.set()

        return new

    async def connected() -> socketio.AsyncClient:
        new = client()
        auth = {"clientType": "webapp", "sessionId": session, "threadId": "", "userEnv": "{}"}
        await new.connect(
            url,
            auth={**auth, "chatProfile": ""},
            socketio_path="/ws/socket.io",
            transports=["websocket"],
        )
        await new.emit("connection_successful")
        return new

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
        await asyncio.sleep(2.5)  # `task_end` is sent on each connection, so it is no sign here
    else:
        await asyncio.wait_for(is_over.wait(), WAIT_S)
    await first.disconnect()
    return words


async def ag_ui(url: str, text: str, cut: int) -> int:
    """Return the words of a run; the SDK cannot rejoin it after the connection is cut."""
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
