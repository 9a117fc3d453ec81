"""An attempt that a turn began ends with the turn, however the server ends: real processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.server.processes import start
from tests.server.rpc import Rpc, rpc

CANCELLED = ("failed", "cancelled")

AGENT = """
import asyncio

from arp import App, Turn
from arp.live.settings import HubSettings

app = App(title="Attempts", settings=HubSettings(stop_grace_s=0.2))

@app.agent
async def agent(turn: Turn) -> None:
    if turn.text == "ask":
        await turn.confirm("Sure?", id="sure")
    elif turn.text == "wait":
        await turn.say("I wait")
        await asyncio.Event().wait()
"""


async def begin(caller: Rpc, text: str) -> None:
    """Start a turn for an attempt, and wait until it is where it stays."""
    await caller.say("s", "hello", turnId="zero")
    await caller.follow("s")
    await caller.until("turn.completed", turnId="zero")
    await caller.call("task/create", sessionId="s", taskId="k", objective="Build")
    await caller.say("s", text, turnId="one", taskId="k", runId="first")
    await caller.until("action.required" if text == "ask" else "model.delta", turnId="one")


async def attempt(caller: Rpc) -> tuple[str, str | None]:
    task = (await caller.call("task/get", sessionId="s", taskId="k"))["task"]
    (found,) = task["attempts"]
    return found["status"], found.get("reason")


@pytest.mark.timeout(120)
@pytest.mark.parametrize("way", ["kill", "stop"])
async def test_an_attempt_whose_turn_a_server_could_not_finish_is_interrupted(
    tmp_path: Path, way: str
) -> None:
    agent, ledger = tmp_path / "app.py", tmp_path / "l.db"
    agent.write_text(AGENT)
    server = await start(agent, ledger)
    try:
        async with rpc(server.port) as caller:
            await begin(caller, "wait")
        await (server.kill() if way == "kill" else server.stop(30))
        server = await start(agent, ledger)
        async with rpc(server.port) as caller:
            await caller.call("agentSession/thread/resume", sessionId="s")
            assert await attempt(caller) == ("failed", "interrupted")
            await caller.follow("s")
            await caller.say("s", "hello", turnId="two", taskId="k", runId="second")
            await caller.until("task.attempt.completed", turnId="two", runId="second")
    finally:
        await server.aclose()


@pytest.mark.timeout(120)
@pytest.mark.parametrize("way", ["kill", "stop"])
@pytest.mark.parametrize(("answer", "end"), [(True, ("completed", None)), (None, CANCELLED)])
async def test_an_attempt_whose_turn_waits_over_a_restart_ends_with_its_question(
    tmp_path: Path, way: str, answer: bool | None, end: tuple[str, str | None]
) -> None:
    agent, ledger = tmp_path / "app.py", tmp_path / "l.db"
    agent.write_text(AGENT)
    server = await start(agent, ledger)
    try:
        async with rpc(server.port) as caller:
            await begin(caller, "ask")
            (asked,) = caller.of("action.required")
        await (server.kill() if way == "kill" else server.stop(30))
        server = await start(agent, ledger)
        async with rpc(server.port) as caller:
            await caller.call("agentSession/thread/resume", sessionId="s")
            assert await attempt(caller) == ("running", None)
            if answer is None:
                await caller.call("agentSession/turn/cancel", sessionId="s", turnId="one")
            else:
                action = {"actionId": asked["actionId"], "response": answer}
                await caller.call("agentSession/action/respond", sessionId="s", **action)
            assert await attempt(caller) == end
    finally:
        await server.aclose()
