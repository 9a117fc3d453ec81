"""An agent with a model, a tool and a process, served to a real collector."""

from __future__ import annotations

import asyncio

from arp import App, Turn

app = App(title="Working")


@app.agent
async def working(turn: Turn) -> None:
    """Does one thing of each kind; or waits."""
    if turn.text == "wait":
        async with turn.tool("sleep"):
            await asyncio.Event().wait()
    request = turn.record.model("example-large", "example")
    await turn.say(f"You said {turn.text}.")
    request.cost(input_tokens=812, output_tokens=64, amount=0.004, currency="USD")
    request.completed(finish_reason="stop")
    async with turn.tool("shell", {"command": "ls /private"}) as tool:
        process = tool.record.process(["ls", "/private"])
        process.completed(0)
        tool.result(["private.txt"])
