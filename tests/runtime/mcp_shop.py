"""An MCP server for tests, made with the SDK: progress, rows, an image, a question, a failure."""

from __future__ import annotations

import base64
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
def broken() -> str:
    """Fail."""
    raise ValueError("the shelf fell down")


if __name__ == "__main__":
    server.run()
