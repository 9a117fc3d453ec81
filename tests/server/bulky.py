"""An agent whose sessions grow large: `N` shows N components of 100 kB, anything else is echoed."""

from __future__ import annotations

import os

from arp import App, HubSettings, Turn, ui

app = App(title="Bulky", settings=HubSettings(stall_s=float(os.environ.get("STALL", "30"))))


@app.agent
async def bulky(turn: Turn) -> None:
    if not turn.text.isdigit():
        await turn.say(turn.text)
        return
    for number in range(int(turn.text)):
        turn.show(ui.code_block(f"{number:07} line\n" * 7_700, title=f"Part {number}"))
        await turn.say(f"Part {number}. ")
