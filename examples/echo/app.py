"""Repeats each word that the user sends: `arp serve examples/echo/app.py`."""

from arp import App, Turn

app = App(title="Echo", suggestions=["Hello, every screen!"])


@app.agent
async def echo(turn: Turn) -> None:
    """Repeat the user's words."""
    for word in turn.text.split():
        await turn.say(word + " ")
