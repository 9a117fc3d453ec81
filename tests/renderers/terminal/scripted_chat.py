"""`python scripted_chat.py SCRIPT` chats with an agent that follows a script.

Its sleeps are the pace at which an agent speaks; no test waits for one.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

if __name__ == "__main__":
    root = Path(__file__).parents[3]
    sys.path[:0] = [str(root), str(root / "renderers")]

from arp.protocol.components import Component
from arp.protocol.patch import Append, Update
from arp_terminal.chat import chat
from tests.renderers.terminal.fake_client import FakeClient

LONG = """## Weather in Seattle

The data has **1,461 days** from *2012* to *2015*. What stands out:

1. It rains a lot in November.
2. July and August are dry.
3. The warmest day had `35.6 °C`.

```sql
SELECT strftime('%m', date) AS month, sum(precipitation)
FROM weather GROUP BY month;
```

| month | rain |
|-------|-----:|
| Jan   | 173.3 |
| Jul   | 26.3 |

See [the data](https://example.com/weather.csv) for more.
"""

TABLE = Component(
    "rain",
    "table",
    {"title": "Rain", "headers": ["month", "mm"], "rows": [["January", 173.3], ["July", 26.3]]},
)


def told_to_go_on() -> asyncio.Event:
    """An event that is set by SIGUSR1."""
    event = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, event.set)
    return event


async def everything(agent: FakeClient) -> None:
    """One of each, at a pace that a person can follow."""
    while True:
        input_id = await agent.arrived.get()
        turn = f"t{len(agent.screen.turns) + 1}"
        agent.ack(input_id, turn)
        agent.input(str(agent.sent[-1][1].get("text", agent.sent[-1][1])), turn, input_id)
        agent.turn("running", turn)
        for word in ("The ", "user ", "wants ", "rain. ", "I will look at the data first."):
            agent.think(word, turn)
            await asyncio.sleep(0.15)
        agent.say("Let me look. ", turn)
        agent.tell(agent.tool_start("query", '{"sql": "SELECT * FROM weather"}', turn))
        await asyncio.sleep(1.5)
        agent.tell(agent.tool_end("query"))
        for at in range(0, len(LONG), 7):
            agent.say(LONG[at : at + 7], turn)
            await asyncio.sleep(0.02)
        steps = [{"name": "Read", "status": "active"}, {"name": "Write", "status": "pending"}]
        agent.show(
            TABLE,
            Component(
                "chart",
                "chart",
                {
                    "type": "bar",
                    "title": "Rain by month",
                    "labels": ["Jan", "Feb", "Mar"],
                    "datasets": [{"label": "2012", "data": [173, 92, 183]}],
                },
            ),
            Component("steps", "progress", {"title": "Import", "steps": steps}),
            turn=turn,
        )
        for name, value in (("0.status", "done"), ("1.status", "active"), ("1.status", "done")):
            await asyncio.sleep(0.7)
            agent.patch(Update("steps", f"props.steps.{name}", value), turn=turn)
        question = {"title": "Write out.csv?", "message": "1,461 rows", "confirm_label": "Write"}
        agent.show(Component("ok", "confirm", question), turn=turn)
        agent.turn("waiting", turn)
        input_id = await agent.arrived.get()
        agent.ack(input_id, turn)
        yes = agent.sent[-1][1].get("action") == "confirm"
        agent.answer("ok", yes, turn)
        agent.turn("running", turn)
        form = {
            "title": "Details",
            "fields": [
                {"name": "year", "label": "Year", "field_type": "number", "required": True},
                {
                    "name": "kind",
                    "label": "Kind",
                    "field_type": "select",
                    "options": ["rain", "sun"],
                },
                {"name": "pin", "label": "Pin", "field_type": "password"},
            ],
        }
        agent.show(Component("form", "form", form), turn=turn)
        agent.turn("waiting", turn)
        while True:
            input_id = await agent.arrived.get()
            fields = agent.sent[-1][1].get("fields", {})
            if str(fields.get("year", "")).isdecimal():
                break
            agent.refuse(input_id, 'fields.year: expected a number, got "x"', "fields.year")
        agent.ack(input_id, turn)
        agent.answer("form", {**fields, "pin": "•••"}, turn)
        agent.turn("running", turn)
        agent.show(
            Component("done", "status-card", {"status": "success", "title": "Exported"}),
            Component(
                "next",
                "choices",
                {
                    "title": "What next?",
                    "options": [
                        "Show the table",
                        {"label": "Plot it", "value": "plot", "description": "as bars"},
                    ],
                },
            ),
            turn=turn,
        )
        agent.end(turn=turn)


async def streaming(agent: FakeClient) -> None:
    await agent.arrived.get()
    agent.input("go")
    agent.turn("running")
    for number in range(1, 31):
        agent.say(f"Line {number} of **thirty**.\n\n")
        await asyncio.sleep(0.005)
    agent.end()


async def table(agent: FakeClient) -> None:
    await agent.arrived.get()
    agent.input("show")
    agent.turn("running")
    told = told_to_go_on()
    agent.show(TABLE)
    await told.wait()
    agent.patch(Append("rain", "props.rows", [["August", 21]]))
    agent.end()


async def confirm(agent: FakeClient) -> None:
    await agent.arrived.get()
    agent.input("export")
    agent.turn("running")
    agent.show(Component("ok", "confirm", {"title": "Write out.csv?", "confirm_label": "Write"}))
    agent.turn("waiting")
    agent.ack(await agent.arrived.get())
    agent.answer("ok", True)
    agent.say("Got " + str(agent.sent[-1]))
    agent.end()


async def late_confirm(agent: FakeClient) -> None:
    await agent.arrived.get()
    agent.input("export")
    agent.turn("running")
    told = told_to_go_on()
    agent.say("wait for it")
    await told.wait()
    agent.show(Component("ok", "confirm", {"title": "Sure?"}))
    agent.turn("waiting")
    agent.ack(await agent.arrived.get())
    agent.answer("ok", False)
    agent.end()


async def broken(agent: FakeClient) -> None:
    await agent.arrived.get()
    agent.tell_what_breaks_the_chat()


async def endless(agent: FakeClient) -> None:
    await agent.arrived.get()
    agent.input("count")
    agent.turn("running")
    number = 0
    while agent.arrived.empty():
        number += 1
        agent.say(f"{number} ")
        await asyncio.sleep(0.02)
    agent.end("cancelled")


async def long_line(agent: FakeClient) -> None:
    """A paragraph that grows for as long as a test wants to watch it."""
    await agent.arrived.get()
    agent.input("go")
    agent.turn("running")
    for number in range(1, 10_000):
        agent.say(f"word{number} ")
        await asyncio.sleep(0.02)


async def long_line_in_halves(agent: FakeClient) -> None:
    """A paragraph that pauses in the middle of a line."""
    await agent.arrived.get()
    agent.input("go")
    agent.turn("running")
    told = told_to_go_on()
    agent.say("".join(f"word{number} " for number in range(1, 121)))
    await told.wait()
    agent.say("".join(f"word{number} " for number in range(121, 201)))
    agent.end()


async def flood(agent: FakeClient) -> None:
    """10,000 deltas, 42 kB of markdown, as fast as a socket would bring them."""
    await agent.arrived.get()
    agent.input("flood")
    agent.turn("running")
    text = (LONG * 100)[:42_000]
    size = 4
    for at in range(0, len(text), size):
        agent.say(text[at : at + size])
        if at % (10 * size) == 0:
            await asyncio.sleep(0.001)
    agent.say("\n\nThe end.")
    agent.end()


SCRIPTS: dict[str, Callable[[FakeClient], Awaitable[None]]] = {
    script.__name__: script
    for script in (
        everything,
        streaming,
        table,
        confirm,
        late_confirm,
        broken,
        endless,
        long_line,
        long_line_in_halves,
        flood,
    )
}


async def main(name: str) -> str:
    """Chats with the agent of a script."""
    client = FakeClient()
    agent = asyncio.ensure_future(SCRIPTS[name](client))
    try:
        return await chat(client, place="fake")
    finally:
        agent.cancel()


if __name__ == "__main__":
    sys.stdout.write(f"left: {asyncio.run(main(sys.argv[1]))}\n")
