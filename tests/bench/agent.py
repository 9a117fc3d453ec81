"""The agent that the benchmarks use, served by `arp serve` like any other agent."""

from __future__ import annotations

import asyncio
import gc
import time

from arp import App, Turn, ui
from tests.bench.plan import END, TOKEN, Plan, mark, read
from tests.bench.prose import pieces

app = App(title="Benchmark")


@app.agent
async def speak(turn: Turn) -> None:
    """Carry out the plan in the text of the input."""
    plan = read(turn.text)
    if plan.collect:
        gc.collect()
    elif plan.begin_ns:
        await asyncio.sleep(max(0.0, (plan.begin_ns - time.monotonic_ns()) / 1e9))
    if plan.patches:
        await _patch(turn, plan)
    elif plan.prose:
        await _recite(turn, plan)
    else:
        await _say(turn, plan)
    await turn.say(END)
    if plan.hold_s:
        await asyncio.sleep(plan.hold_s)


async def _say(turn: Turn, plan: Plan) -> None:
    for number in range(plan.deltas - 1):
        await turn.say(TOKEN if number % plan.mark_every else mark(time.monotonic_ns()))
        if plan.interval_s or plan.yields:
            await asyncio.sleep(plan.interval_s)


async def _recite(turn: Turn, plan: Plan) -> None:
    began = time.monotonic()
    for number, piece in enumerate(pieces(plan.deltas - 1), start=1):
        await turn.say(piece)
        await asyncio.sleep(max(0.0, began + number * plan.interval_s - time.monotonic()))


async def _patch(turn: Turn, plan: Plan) -> None:
    turn.show(ui.status_card("info", "Working", id="card"))
    for number in range(plan.deltas - 1):
        turn.patch("card", "props.message", TOKEN if number % 2 else "")
        await asyncio.sleep(plan.interval_s)
