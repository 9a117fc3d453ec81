"""An MCP server over standard input and output: a list, and an order that asks for its city."""

from __future__ import annotations

from typing import Any

from mcp.server.mcpserver import Context, MCPServer
from pydantic import BaseModel, Field

server = MCPServer("shop")


class Delivery(BaseModel):
    """Destination of an order."""

    city: str = Field(description="Where to")
    express: bool = False


@server.tool()
def stock() -> list[dict[str, Any]]:
    """List the items in stock."""
    return [{"item": "tea", "count": 3}, {"item": "jam", "count": 0}]


@server.tool()
async def order(item: str, ctx: Context[Any, Any]) -> str:
    """Order an item; the server asks where to send it."""
    answer = await ctx.elicit(f"Where shall {item} go?", Delivery)
    if answer.action != "accept":
        return f"{item} is not ordered"
    for step in (1, 2, 3):
        await ctx.report_progress(step, 3, f"step {step}")
    return f"{item} goes {'fast ' if answer.data.express else ''}to {answer.data.city}"


if __name__ == "__main__":
    server.run()
