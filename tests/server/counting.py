"""An agent that counts its turns in `turn.state` and says how many there were."""

from __future__ import annotations

from arp import App, Turn

app = App(title="Counting")


@app.agent
async def count(turn: Turn) -> None:
    """Says the number of the turn."""
    turn.state["count"] = turn.state.get("count", 0) + 1
    turn.state["private"] = "private"
    await turn.say(str(turn.state["count"]))
