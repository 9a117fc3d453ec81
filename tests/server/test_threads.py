"""A thread is begun over the control plane of a real server, and is there after a kill."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.server.processes import start
from tests.server.rpc import Rpc, RpcFailed, rpc

AGENT = Path(__file__).with_name("scripted.py")


async def failed(caller: Rpc, thread: str | None, turn: str) -> None:
    """Lets a turn run to its end, which this agent's `fail` reaches at once."""
    where = {"threadId": thread} if thread is not None else {}
    state = await caller.say("s", "fail", turnId=turn, **where)
    assert state["threadId"] == (thread or "main")
    await caller.until("turn.failed", turnId=turn)


@pytest.mark.timeout(90)
async def test_two_threads_are_told_apart_before_and_after_a_kill(tmp_path: Path) -> None:
    ledger = tmp_path / "l.db"
    server = await start(AGENT, ledger)
    try:
        async with rpc(server.port) as caller:
            begun = await caller.call(
                "agentSession/thread/start", sessionId="s", threadId="side", title="Beside"
            )
            assert (begun["threadId"], begun["repeated"]) == ("side", False)
            await caller.follow("s")
            await failed(caller, None, "one")
            await failed(caller, "side", "two")
            with pytest.raises(RpcFailed, match="no thread 'other' in this session"):
                await caller.say("s", "fail", threadId="other")
            (fact,) = caller.of("thread.started")
            assert (fact["threadId"], fact["payload"]) == ("side", {"title": "Beside"})
            told = {fact["turnId"]: fact["threadId"] for fact in caller.of("runtime.error")}
            assert told == {"one": "main", "two": "side"}
            waiting = await caller.say("s", "wait", threadId="side", turnId="three")
            assert waiting["threadId"] == "side"
            await caller.until("action.required", turnId="three")
        await server.kill()
        server = await start(AGENT, ledger)
        async with rpc(server.port) as caller:
            snapshot = await caller.call("agentSession/read", sessionId="s")
            shown = {
                thread["threadId"]: [turn["turnId"] for turn in thread["turns"]]
                for thread in snapshot["threads"]
            }
            assert shown == {"main": ["one"], "side": ["two", "three"]}
            for thread in ("main", "side"):
                resumed = await caller.call(
                    "agentSession/thread/resume", sessionId="s", threadId=thread
                )
                assert resumed["thread"]["threadId"] == resumed["threadId"] == thread
            interrupted = [one for one in resumed["recovery"] if one["type"] == "turn.failed"]
            assert [one["threadId"] for one in interrupted] == ["side"]
            await caller.follow("s")
            await failed(caller, "side", "four")
    finally:
        await server.aclose()
