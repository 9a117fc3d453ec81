"""An agent that says as much as it is asked to, as fast as it can."""

from __future__ import annotations

from arp import App, Turn, ui

app = App(title="Torrent")


@app.agent
async def torrent(turn: Turn) -> None:
    """Says the same token again and again, with a commit now and then."""
    count = int(turn.text)
    turn.show(ui.progress([ui.step("work", "active")], id=f"work-{turn.id}"))
    for number in range(count):
        await turn.say("token ")
        if number % 20_000 == 0:
            turn.patch(f"work-{turn.id}", "props.steps.0.detail", str(number))
    turn.patch(f"work-{turn.id}", "props.steps.0.status", "done")
