"""An MCP server for tests, made with the SDK: progress, rows, an image, a question, a failure."""

from __future__ import annotations

import asyncio
import base64
import os
import socket
import sys
from typing import Any

from mcp.server.mcpserver import Context, Image, MCPServer
from pydantic import BaseModel, Field

PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6"
    "kgAAAABJRU5ErkJggg=="
)
server = MCPServer("shop")


class Delivery(BaseModel):
    """Where an order goes."""

    city: str = Field(description="Where to")
    express: bool = False


@server.tool()
def stock() -> list[dict[str, Any]]:
    """List what there is."""
    return [{"item": "tea", "count": 3}, {"item": "jam", "count": 0}]


@server.tool()
async def pack(items: int, ctx: Context[Any, Any]) -> str:
    """Pack items, one after the other."""
    for number in range(1, items + 1):
        await ctx.report_progress(number, items, f"item {number}")
    return f"packed {items}"


@server.tool()
def picture() -> Image:
    """Return a picture."""
    return Image(data=base64.b64decode(PIXEL), format="png")


@server.tool()
async def order(item: str, ctx: Context[Any, Any]) -> str:
    """Order something, after a question."""
    answer = await ctx.elicit(f"Where shall {item} go?", Delivery)
    if answer.action == "accept":
        fast = " fast" if answer.data.express else ""
        return f"{item} goes{fast} to {answer.data.city}"
    return f"not ordered: {answer.action}"


@server.tool()
async def order_later(item: str, gate: str, ctx: Context[Any, Any]) -> str:
    """Order something, after a file is there: so the question comes when the test wants it."""
    await opened(gate)
    return await order(item, ctx)


@server.tool()
async def hold(gate: str) -> str:
    """Run until a file is there."""
    await opened(gate)
    return "held"


@server.tool()
async def nag(times: int, ctx: Context[Any, Any]) -> str:
    """Ask again and again, and count the answers."""
    actions = [(await ctx.elicit("Where to?", Delivery)).action for _ in range(times)]
    return f"{actions.count('accept')} accepted, {actions.count('cancel')} cancelled"


@server.tool()
def shout(text: str) -> str:
    """Write to standard error."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()
    return "shouted"


async def opened(gate: str) -> None:
    """Wait until a file is there."""
    while not os.path.exists(gate):  # noqa: ASYNC110, ASYNC240  # it is a test in another process
        await asyncio.sleep(0.01)


@server.tool()
def broken() -> str:
    """Fail."""
    raise ValueError("the shelf fell down")


def main() -> None:
    """Serve over pipes; with the number of an open socket, over HTTP there."""
    if len(sys.argv) == 1:
        server.run()
        return
    import uvicorn

    listener = socket.socket(fileno=int(sys.argv[1]))
    config = uvicorn.Config(server.streamable_http_app(), log_level="error")
    uvicorn.Server(config).run([listener])


if __name__ == "__main__":
    main()
