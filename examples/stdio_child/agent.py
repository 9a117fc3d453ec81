"""The child: an agent that counts words, and asks before it writes in capital letters."""

from __future__ import annotations

from collections import Counter

from arp import App, Turn, ui

app = App(title="Words")


@app.agent
async def words(turn: Turn) -> None:
    """Count the words of a text, and write it in capital letters if the user allows it."""
    async with turn.tool("count", {"characters": len(turn.text)}) as tool:
        counted = Counter(turn.text.lower().split())
        tool.result(dict(counted))
    turn.show(ui.key_value(counted, title="Words"))
    if await turn.confirm("Shout it?", message=f"{len(turn.text)} characters, all in capitals."):
        await turn.say(turn.text.upper())
    else:
        await turn.say("As you like.")
