"""An agent that does what no agent should: what a server must outlive."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable

from arp import App, HubSettings, Turn

app = App(
    title="Unruly",
    settings=HubSettings(stop_grace_s=float(os.environ.get("GRACE", "0.2")), blocked_loop_s=0.3),
)


def raising(error: BaseException) -> Callable[[Turn], object]:
    """Return what raises an error."""

    def act(_: Turn) -> object:
        raise error

    return act


def end_the_process(_: Turn) -> object:
    return sys.exit(7)


def exit_in_a_callback(_: Turn) -> object:
    return asyncio.get_running_loop().call_soon(sys.exit, 7)


def stop_the_loop(_: Turn) -> object:
    return asyncio.get_running_loop().stop()


def cancel_all(_: Turn) -> object:
    return [task.cancel() for task in asyncio.all_tasks()]


def end_the_writer(_: Turn) -> object:
    return [
        asyncio.Task.cancel(task) for task in asyncio.all_tasks() if task.get_name() == "arp-writer"
    ]


ACTS: dict[str, Callable[[Turn], object]] = {
    "GeneratorExit": raising(GeneratorExit()),
    "KeyboardInterrupt": raising(KeyboardInterrupt()),
    "SystemExit": end_the_process,
    "CancelledError": raising(asyncio.CancelledError()),
    "group": raising(BaseExceptionGroup("several", [KeyboardInterrupt(), ValueError()])),
    "callback": exit_in_a_callback,
    "stop": stop_the_loop,
    "cancel": cancel_all,
    "writer": end_the_writer,
}


@app.agent
async def unruly(turn: Turn) -> None:
    """Does what it is told."""
    what, _, word = turn.text.partition(" ")
    match what:
        case "helper":
            await asyncio.create_task(helper(turn, word))
        case "stream":
            for _ in range(150):
                await turn.say("la ")
                await asyncio.sleep(0.01)
        case "again":
            while True:
                end_the_writer(turn)
                await asyncio.sleep(0.01)
        case "block":
            await turn.say("blocking ")
            await asyncio.sleep(0.1)
            time.sleep(float(word))  # noqa: ASYNC251 # what agents do wrong
        case _ if what in ACTS:
            ACTS[what](turn)
            await asyncio.sleep(0)
    await turn.say(f"did {turn.text}")


async def helper(turn: Turn, word: str) -> None:
    """Does it in a task of its own."""
    ACTS[word](turn)
