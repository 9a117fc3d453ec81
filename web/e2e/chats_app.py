"""An agent that greets, and asks with a custom component."""

from __future__ import annotations

import asyncio
import json

from arp import DECLINED, App, Turn, ui

app = App("Lighthouse", description="Keeps the light.", suggestions=["hello", "dial"])


@app.on_session_start
async def greet(turn: Turn) -> None:
    """Greet the user."""
    await turn.say("Good **evening**. What shall the light do?")


@app.agent
async def agent(turn: Turn) -> None:
    """Ask with a dial if the text says so."""
    if turn.text == "dial":
        dial = ui.custom("x-acme-dial", {"most": 90}, fallback=ui.text("Where shall it point?"))
        given = await turn.ask(dial, can_decline=True)
    elif turn.text == "dial form":
        form = ui.form(
            [ui.field("angle", field_type="number", label="Angle")], submit_label="Point"
        )
        given = await turn.ask(ui.custom("x-acme-dial", {"most": 90}, fallback=form))
    else:
        await more(turn)
        return
    await turn.say(f"Got {'nothing' if given is DECLINED else json.dumps(given)}.")


SPOKEN = """## Tides

High water is at *six*,
low water at **noon**.

- Bring a lamp
- Bring oil
  - in a can

| Berth | Ship |
|---|---|
| North | Ada |

```python
print(1)
x = 2
```

See the [chart](https://example.org/chart).
"""


async def more(turn: Turn) -> None:
    """Do what the text names; repeat any other text."""
    if turn.text == "speak":
        await turn.say(SPOKEN)
    elif turn.text == "permission":
        await permit(turn)
    elif turn.text == "busy permission":
        await asyncio.gather(permit(turn), turn.say("Meanwhile the lamp burns."))
    elif turn.text == "confirm":
        await turn.confirm("Light the lamp?")
    elif turn.text == "print":
        await on_paper(turn)
    elif turn.text == "work":
        await asyncio.Event().wait()
    else:
        await turn.say(f"You said: {turn.text}")


async def permit(turn: Turn) -> None:
    """Ask for permission to light the lamp."""
    async with turn.tool("light", {"lamp": 1}) as tool:
        await tool.approve("Light it?", rule="lamps")


async def on_paper(turn: Turn) -> None:
    """Show content that is wider than a sheet of paper."""
    heads = [
        "Berth",
        "Ship",
        "Flag",
        "Cargo",
        "Weight (t)",
        "Arrival",
        "Departure",
        "Pilot",
        "Last",
    ]
    words = ["North quay 7", "Ada Lovelace", "Norway", "Timber and machine parts", 12480.5]
    row = [*words, "2026-03-01 06:30", "2026-03-04 18:45", "Grace Hopper", "Rotterdam Europoort"]
    turn.show(ui.table(heads, [row] * 4, title="Nine columns", id="nine"))
    turn.show(
        ui.table(heads, [[*row[:-1], f"Port {n}"] for n in range(300)], title="Long", id="long")
    )
    numbers = [f"Measure {n}" for n in range(24)]
    turn.show(ui.table(numbers, [[n * 1234.56 for n in range(24)]] * 3, title="Wide", id="wide"))
    cells = [str(cell) for cell in row]
    lines = [heads, ["---"] * 9, cells, cells]
    await turn.say("\n".join(f"| {' | '.join(line)} |" for line in lines))
    months = [f"2026-{month:02}" for month in range(1, 13)]
    values = ui.dataset("Ships", [30 + 7 * n for n in range(12)])
    turn.show(ui.chart("bar", labels=months, datasets=[values], title="Ships", id="ships"))
    turn.show(ui.code_block("word " * 80, language="text", id="code"))
