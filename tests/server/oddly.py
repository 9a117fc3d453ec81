"""An agent that gives what frameworks give: subclasses of plain types."""

from __future__ import annotations

from arp import App, Turn

app = App(title="Odd")


class Odd(str):
    """As the message text of LangChain: no encoder takes it."""


@app.agent
async def agent(turn: Turn) -> None:
    await turn.say(Odd("You said "))
    async with turn.tool(Odd("look"), {Odd("for"): Odd(turn.text)}) as tool:
        tool.progress(Odd("looking"))
        tool.result(Odd("found"))
    turn.think(Odd("hm"))
    turn.usage(model=Odd("m"))
    await turn.say(Odd(f"{turn.text}. "))
