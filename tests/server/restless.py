"""An agent that streams without end, or asks and waits: what a kill interrupts."""

from __future__ import annotations

import asyncio

from arp import App, Turn, ui

app = App(title="Restless")


@app.agent
async def restless(turn: Turn) -> None:
    """Streams text and commits; or asks; or answers what was asked before a restart."""
    if turn.input.input_type == "action":
        await turn.say(f"late answer: {turn.input.data['action']}")
    elif turn.text == "ask":
        await turn.say("I ask. ")
        await turn.confirm("Go on?", id=f"q-{turn.id}")
    else:
        await stream(turn)


async def stream(turn: Turn) -> None:
    """Numbers the tokens, so that a lost one shows."""
    turn.show(ui.progress([ui.step("work", "active")], id=f"p-{turn.id}"))
    number = 0
    while True:
        await turn.say(f"{number} ")
        number += 1
        if number % 10 == 0:
            turn.patch(f"p-{turn.id}", "props.steps.0.detail", str(number))
        if number % 3 == 0:
            await asyncio.sleep(0)
        if number % 50 == 0:
            await asyncio.sleep(0.005)
