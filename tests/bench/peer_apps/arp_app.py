"""The app of the benchmark as ARP has it: `stream N` or `paced N`, in words."""

import asyncio

from arp import App, Turn

app = App(title="Words")


@app.agent
async def words(turn: Turn) -> None:
    kind, number = turn.text.split()
    for _ in range(int(number)):
        await turn.say("word ")
        await asyncio.sleep(0.005 if kind == "paced" else 0)
