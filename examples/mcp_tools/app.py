"""Tools of an MCP server in an agent of your own: `arp serve examples/mcp_tools/app.py`.

The server is `server.py` beside this file. Its progress is shown, its question becomes a form on
every screen, and its rows become a table.
"""

from __future__ import annotations

import sys
from pathlib import Path

from arp import App, Turn

SERVER = f"{sys.executable} {Path(__file__).with_name('server.py')}"

app = App(title="Shop", suggestions=["stock", "order tea"], mcp=[SERVER])


@app.agent
async def shop(turn: Turn) -> None:
    """List the stock, or order an item."""
    word, _, item = turn.text.partition(" ")
    if word == "order":
        await turn.say(f"{await turn.use('order', {'item': item or 'tea'})}.")
    else:
        await turn.use("stock")
