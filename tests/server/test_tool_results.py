"""The whole of a tool's result over HTTP: who gets it, and that a restart loses nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx

from arp import Access, App, Turn
from tests.server.sockets import raw
from tests.support.serving import Serving, serving

WHOLE = "".join(f"row {number}\n" for number in range(2_000))
TOKENS = {"Bearer a": "ada", "Bearer b": "bob"}

app = App(access=Access(authenticate=lambda c: TOKENS.get(c.headers.get("authorization", ""))))


@app.agent
async def reads(turn: Turn) -> None:
    """Reads a long table."""
    async with turn.tool("read", {"table": "rows"}) as tool:
        tool.result(WHOLE)
    await turn.say("read")


async def ended(server: Serving) -> Any:
    """Let Ada ask, or come back, and return the payload of `tool_end`."""
    async with raw(server, additional_headers={"authorization": "Bearer a"}) as client:
        ready = await client.hello("s", ["text"], "input", "tool-detail")
        if ready["seq"] <= 2:
            await client.say("s", "go")
        await client.until_final("t1")
        (end,) = client.of("tool_end")
        return end["payload"]


async def got(server: Serving, path: str, token: str = "a") -> httpx.Response:
    headers = {"authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(base_url=server.http, headers=headers) as client:
        return await client.get(path)


async def test_the_whole_result_is_a_file_of_the_session_also_after_a_restart(
    tmp_path: Path,
) -> None:
    ledger = f"sqlite:{tmp_path / 'ledger.db'}"
    with serving(app, ledger=ledger) as server:
        first = await ended(server)
        assert first["result"] == WHOLE[:2_000] + "…"
        whole = await got(server, first["result_ref"])
        assert (whole.status_code, whole.text) == (200, WHOLE)
        assert whole.headers["content-disposition"] == 'attachment; filename="read.txt"'
        assert (await got(server, first["result_ref"], "b")).status_code == 404
        chat = (await got(server, "/_api/chats/s")).json()
        (tool,) = chat["messages"][1]["tools"]
        assert (tool["result"], tool["result_ref"]) == (first["result"], first["result_ref"])
        assert tool["duration_ms"] == first["duration_ms"]
    with serving(app, ledger=ledger) as server:
        assert await ended(server) == first
        assert (await got(server, first["result_ref"])).text == WHOLE
        run = (await got(server, "/_api/runs/s.t1")).json()
        assert run["tools"][0]["result_ref"] == first["result_ref"]
