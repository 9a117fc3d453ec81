"""What a turn and its tools record besides what is seen."""

from __future__ import annotations

import asyncio
from hashlib import sha256
from typing import Any

import pytest

from arp import HubSettings, Turn, ui
from arp.access.principal import Principal
from arp.ledger.fact import Fact
from arp.protocol.errors import InternalError, SurfaceDestroyed
from arp.record.recorder import Recorder
from tests.hub.rig import HeldStore, Renderer, running, settled


async def facts_of(agent: Any, *answers: str, settings: HubSettings | None = None) -> list[Fact]:
    """Runs one turn, answers its questions, and gives its facts."""
    store = HeldStore()
    async with running(agent, store=store, settings=settings) as hub:
        renderer = await Renderer(hub).join()
        await renderer.say("go")
        for answer in answers:
            await renderer.box.has("turn", status="waiting")
            await renderer.send("action", {"action": answer})
        await renderer.ended("t1")
        await settled(hub)
        return await store.facts()


def named(facts: list[Fact], family: str) -> list[tuple[str, dict[str, Any]]]:
    return [(fact.type, fact.payload) for fact in facts if fact.type.startswith(family)]


async def test_what_is_recorded_keeps_its_order_with_what_is_shown() -> None:
    made: list[str] = []

    async def agent(turn: Turn) -> None:
        turn.show(ui.text("x", id="x"))
        made.append(turn.record.process("ls").id)
        await turn.say("y")
        turn.record("rate_limit.hit", {"limit": "requests"})

    told = [fact for fact in await facts_of(agent) if fact.turn_id == "t1"]
    assert [fact.type for fact in told[2:]] == [
        "artifact.changed",
        "process.started",
        "model.delta",
        "rate_limit.hit",
        "turn.completed",
    ]
    assert {fact.thread_id for fact in told} == {"main"}
    assert made == [f"process-{told[3].sequence}"] == [told[3].process_id]


@pytest.mark.parametrize(
    ("answer", "resolved"),
    [
        ("confirm", {"tool": "shell", "decision": "allow", "scope": "once"}),
        (
            "deny",
            {
                "tool": "shell",
                "decision": "deny",
                "deniedBy": {"kind": "person", "name": "user"},
            },
        ),
    ],
)
async def test_a_tool_that_needs_approval_asks_and_waits(
    answer: str, resolved: dict[str, Any]
) -> None:
    """ledger.md 6: it emits `action.required` and waits."""
    allowed: list[bool] = []

    async def agent(turn: Turn) -> None:
        async with turn.tool("shell", {"command": "rm x"}) as tool:
            allowed.append(
                await tool.approve(
                    "Remove x?", rule="writes", reason="it removes", destructive=True
                )
            )

    facts = await facts_of(agent, answer)
    assert allowed == [answer == "confirm"]
    by = {"kind": "rule", "name": "writes"}
    digest = {"digest": sha256(b'{"command":"rm x"}').hexdigest()}
    assert named(facts, "permission.") == [
        ("permission.evaluated", {"tool": "shell", "decision": "ask", "decidedBy": by}),
        ("permission.requested", {"tool": "shell", "reason": "it removes", **digest}),
        ("permission.resolved", {**resolved, **digest}),
    ]
    (asked,) = [fact for fact in facts if fact.type == "action.required"]
    request = [fact.request_id for fact in facts if fact.type.startswith("permission.")]
    assert (asked.tool_call_id, asked.step_id) == ("t1.1", "t1.1")
    assert request == [asked.request_id] * 3
    assert asked.payload["tool"] == "shell"
    assert asked.payload["component"]["props"]["destructive"] is True


async def test_a_tool_that_nobody_approved_before_it_was_stopped_is_not_approved() -> None:
    store = HeldStore()

    async def agent(turn: Turn) -> None:
        async with turn.tool("shell") as tool:
            await tool.approve("Sure?", rule="writes")

    async with running(agent, store=store) as hub:
        renderer = await Renderer(hub).join()
        await renderer.say("go")
        await renderer.box.has("turn", status="waiting")
        await renderer.cancel()
        await renderer.ended("t1")
        told = named(await store.facts(), "permission.resolved")
    digest = sha256(b"{}").hexdigest()
    payload = {"tool": "shell", "decision": "cancelled", "digest": digest}
    assert told == [("permission.resolved", payload)]


async def test_a_large_result_of_a_tool_leaves_a_preview_and_a_ref() -> None:
    """ledger.md 6."""
    result = "x" * 5_000
    ref = sha256(result.encode()).hexdigest()
    read: list[bytes] = []

    async def agent(turn: Turn) -> None:
        async with turn.tool("read") as tool:
            tool.result(result)
        read.append(await turn.record.read(ref))
        async with turn.tool("read") as tool:
            tool.result("small")

    facts = await facts_of(agent)
    spilled, whole = [fact for fact in facts if fact.output_ref is not None]
    assert (spilled.type, spilled.tool_call_id) == ("output.spilled", "t1.1")
    assert spilled.payload == {"bytes": 5_000, "sha256": ref, "preview": "x" * 2_000}
    assert (whole.type, whole.output_ref) == ("tool.result", ref)
    told = {"tool": "read", "preview": "x" * 2_000, "characters": 5_000}
    assert whole.payload == {**told, "durationMs": whole.payload["durationMs"]}
    small = named(facts, "tool.result")[1][1]
    assert (small["preview"], small["characters"]) == ("small", 5)
    assert read == [result.encode()]


async def test_a_result_beyond_what_may_be_kept_is_cut_and_the_ledger_says_so() -> None:
    async def agent(turn: Turn) -> None:
        async with turn.tool("read") as tool:
            tool.result("x" * 5_000)

    facts = await facts_of(agent, settings=HubSettings(max_output_bytes=4_000))
    ((_, cut),) = named(facts, "output.truncated")
    assert (cut["bytes"], cut["keptBytes"]) == (5_000, 2_000)
    assert "larger than 4000 bytes" in cut["reason"]
    assert named(facts, "tool.result")[0][1]["characters"] == 5_000
    assert [fact.output_ref for fact in facts] == [None] * len(facts)


async def test_what_a_tool_records_carries_its_call() -> None:
    async def agent(turn: Turn) -> None:
        async with turn.tool("shell") as tool:
            process = tool.record.process("ls")
            await process.output("a.py")
            process.completed(0)

    told = [fact for fact in await facts_of(agent) if fact.type.startswith("process.")]
    assert [(fact.step_id, fact.tool_call_id) for fact in told] == [("t1.1", "t1.1")] * 3


async def test_nothing_is_recorded_once_the_turn_is_over() -> None:
    kept: list[Recorder] = []

    async def agent(turn: Turn) -> None:
        kept.append(turn.record)

    facts = await facts_of(agent)
    with pytest.raises(SurfaceDestroyed):
        kept[0]("runtime.warning", {"message": "late"})
    assert named(facts, "runtime.") == []


async def test_the_server_records_what_belongs_to_no_turn() -> None:
    store = HeldStore()
    async with running(store=store) as hub:
        await Renderer(hub).join()
        live = await hub.find("s", Principal())
        recorder = hub.recorder(live)
        recorder.task("Later", task_id="later")
        of_turn = recorder.within(thread_id="main", turn_id="t1")
        of_turn("runtime.warning", {"message": "of a turn"})
        async with asyncio.timeout(30):
            await live.written()
        hub.directory.remove(live, InternalError("gone"))
        with pytest.raises(InternalError, match="gone"):
            recorder("runtime.warning", {"message": "late"})
        told = [(fact.type, fact.task_id, fact.turn_id) for fact in (await store.facts())[2:]]
    assert told == [("task.created", "later", None), ("runtime.warning", None, "t1")]
