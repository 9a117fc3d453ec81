"""Says back what you say, word by word: `arp serve examples/echo/app.py`."""

from arp import App, Turn

app = App(title="Echo", suggestions=["Hello, every screen!"])


@app.agent
async def echo(turn: Turn) -> None:
    """Says back what was said."""
    for word in turn.text.split():
        await turn.say(word + " ")
