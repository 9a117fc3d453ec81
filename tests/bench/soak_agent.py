"""The agent of the soak test: a short answer with a tool call and a table, like most turns."""

from __future__ import annotations

from arp import App, Turn, ui
from arp.live.settings import HubSettings

app = App(title="Soak", settings=HubSettings(idle_s=8.0))


@app.agent
async def answer(turn: Turn) -> None:
    """Answer with some text, one tool call and one table."""
    await turn.say(f"You said {turn.text[:40]}. ")
    async with turn.tool("query", {"sql": "SELECT month, total FROM sales"}):
        rows = [["Jan", 120], ["Feb", 95], ["Mar", 143]]
    for word in ("Here ", "are ", "the ", "sales ", "of ", "the ", "quarter."):
        await turn.say(word)
    await turn.say("\n\nThe quarter ended well above the plan in each of the regions. " * 60)
    turn.show(ui.table(headers=["Month", "Total"], rows=rows))
