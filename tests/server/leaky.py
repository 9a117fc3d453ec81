"""An agent that lets secrets slip wherever an agent can; they come to it in its environment.

`LEAKS` is JSON: way → texts that hold secrets.
"""

from __future__ import annotations

import asyncio
import json
import os
from typing import Any

from arp import App, Turn, ui
from tests.support.waiting import written

app = App(title="Leaky")

LEAKS: dict[str, list[str]] = json.loads(os.environ.get("LEAKS", "{}"))


@app.agent
async def leaky(turn: Turn) -> None:
    """Says, shows, calls and raises what it should not; tells whether it got what was typed."""
    if turn.text == "fail":
        raise RuntimeError(" and ".join(LEAKS["raised"]))
    await turn.say(f"typed: {len(turn.text)} characters. ")
    for text in LEAKS["said"]:
        await turn.say(f"it is {text} so. ")
    for text in LEAKS["split"]:
        await in_pieces(turn, text)
    for text in LEAKS["thought"]:
        turn.think(f"use {text} then. ")
    for number, text in enumerate(LEAKS["shown"]):
        turn.show(ui.text(f"see {text}", id=f"c{number}"))
        turn.patch(f"c{number}", "props.content", f"changed: {text}")
    await tools(turn)
    for text in LEAKS["fields"]:
        answer: Any = await turn.ask(
            ui.form([ui.field("token", label="Token")], title=f"For {text}")
        )
        await turn.say(f"answered: {len(answer['token'])} characters. ")


async def in_pieces(turn: Turn, text: str) -> None:
    """Each piece is a write of its own."""
    middle = len(text) // 2
    for piece in ("cut: ", text[: middle - 7], text[middle - 7 : middle], text[middle:], " end. "):
        await turn.say(piece)
        await written(turn)
    for character in text:
        await turn.say(character)
    await turn.say(" once more. ")


async def tools(turn: Turn) -> None:
    """Arguments, results, progress, and errors of tools."""
    for number, text in enumerate(LEAKS["arguments"]):
        async with turn.tool(
            "call", {"url": text, "n": number, "auth": {"password": text}}
        ) as tool:
            tool.progress(f"working with {text}")
            tool.result({"headers": {"X-Api-Key": text}, "text": f"got {text}"})
    for text in LEAKS["results"]:
        async with turn.tool("read") as tool:
            tool.result("x" * 1_960 + f" {text} " + "y" * 5_000)
    for text in LEAKS["errors"]:
        try:
            async with turn.tool("fail"):
                raise ui_error(text)
        except Exception:  # noqa: BLE001 # the agent goes on, whatever its tool did
            await asyncio.sleep(0)


def ui_error(text: str) -> Exception:
    """An error whose text the screens show."""
    from arp.protocol.errors import InvalidComponent

    return InvalidComponent(f"cannot reach {text}")
