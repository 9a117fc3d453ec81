"""What generated code tries: to answer the questions of the server that asks about it.

    python own_attack.py SESSION TOKEN ADDRESS…

It prints a JSON object: for each address, whether it got in.
"""

from __future__ import annotations

import asyncio
import json
import sys

import httpx

from arp.client.client import ArpClient
from arp.protocol.errors import ArpError

WAIT_S = 8.0
PLACES = ("/_api/chats", "/_api/sessions", "/_api/chat-events", "/tools", "/tasks", "/mcp")


async def as_renderer(address: str, session: str, token: str | None) -> str:
    """Joins the session as a screen, and allows what is asked there."""
    try:
        async with (
            asyncio.timeout(WAIT_S),
            ArpClient(
                address,
                session_id=session,
                token=token,
                encoding="msgpack" if address.startswith("unix:") else "json",
            ) as client,
        ):
            await client.ready()
            while True:
                for turn in client.screen.turns.values():
                    for permission in turn.permissions.values():
                        await client.send_permission(permission, True)
                        await client.turn_done(turn.id)
                        return "in: it has answered"
                await asyncio.sleep(0.05)
    except (ArpError, OSError, TimeoutError) as refused:
        return f"out: {type(refused).__name__} {refused}"


async def as_program(base: str, session: str, token: str | None) -> dict[str, str]:
    """Asks every route that tells something or does something, and the control plane."""
    headers = {"authorization": f"Bearer {token}"} if token else {}
    found: dict[str, str] = {}
    async with httpx.AsyncClient(headers=headers, trust_env=False, timeout=WAIT_S) as client:
        for place in PLACES:
            try:
                async with client.stream("GET", base + place) as answer:
                    is_out = answer.status_code in (401, 403)
                    found[place] = f"{'out' if is_out else 'in'}: {answer.status_code}"
            except httpx.HTTPError as error:
                found[place] = f"out: {error}"
    import websockets

    address = base.replace("http", "ws") + "/_api/rpc"
    try:
        async with websockets.connect(address, additional_headers=headers, proxy=None) as socket:
            ask = {
                "jsonrpc": "2.0",
                "id": 1,
                "method": "task/list",
                "params": {"sessionId": session},
            }
            await socket.send(json.dumps(ask))
            told = json.loads(await asyncio.wait_for(socket.recv(), WAIT_S))
            found["/_api/rpc"] = f"{'out' if 'error' in told else 'in'}: {told}"
    except (OSError, websockets.WebSocketException, TimeoutError) as error:
        found["/_api/rpc"] = f"out: {error}"
    return found


async def main(session: str, token: str, addresses: list[str]) -> dict[str, str]:
    """Tries everything, at each address."""
    found: dict[str, str] = {}
    for address in addresses:
        if address.startswith("http:"):
            found |= await as_program(address, session, token or None)
        found[address] = await as_renderer(address, session, token or None)
    return found


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3:]))))
