"""An agent that uses everything by which agents record facts, turn by turn."""

from __future__ import annotations

import asyncio

from arp import App, Turn
from arp.ledger.payload_fields import Candidate
from arp.live.settings import HubSettings
from arp.protocol.json_value import JsonObject

app = App(title="Every fact", settings=HubSettings(model_every_facts=40, stop_grace_s=0.2))

KEY = "sk-ant-" + "a1B2c3D4" * 5

RECORDED: list[tuple[str, JsonObject, JsonObject]] = [
    ("reasoning.summary", {"text": "It is small."}, {}),
    ("thread.updated", {"reason": "nobody answers"}, {"status": "stale"}),
    ("output.truncated", {"bytes": 9, "keptBytes": 3, "reason": "too long"}, {}),
    ("output.expired", {"reason": "older than a month"}, {"output_ref": "0" * 64}),
    ("sandbox.applied", {"sandbox": "workspace", "network": False}, {}),
    ("sandbox.violation", {"sandbox": "workspace", "operation": "connect"}, {}),
    ("policy.changed", {"policy": "permissionMode", "value": "ask"}, {}),
    ("channel.message", {"direction": "in", "text": "hello"}, {"channel_id": "room"}),
    (
        "channel.permission_forwarded",
        {"tool": "shell", "to": "operator"},
        {"channel_id": "room", "request_id": "r"},
    ),
    (
        "channel.permission_returned",
        {"tool": "shell", "decision": "allow"},
        {"channel_id": "room", "request_id": "r"},
    ),
    ("context.resolved", {"tokens": 900, "maxTokens": 1_000}, {}),
    ("history.window.loaded", {"fromSequence": 5, "throughSequence": 9}, {}),
    ("cost.estimated", {"amount": 0.5, "currency": "EUR"}, {}),
    ("rate_limit.hit", {"limit": "requests per minute", "retryAfterS": 2.5}, {}),
    ("quota.low", {"quota": "tokens", "remaining": 100}, {}),
    ("quota.blocked", {"quota": "tokens", "remaining": 0}, {}),
    ("limit.changed", {"limit": "max_turns", "value": 20}, {}),
    ("routing.decided", {"model": "large", "reason": "long text"}, {}),
    (
        "routing.fallback.applied",
        {"failedModel": "large", "model": "small", "reason": "overloaded"},
        {},
    ),
    ("task.profile.resolved", {"profile": {"context": 1}}, {"task_id": "plan"}),
]
"""Facts that an agent records by their type."""


@app.agent
async def agent(turn: Turn) -> None:
    """Does what the input names."""
    match turn.text:
        case "record":
            await record(turn)
        case "tools":
            await use_tools(turn)
        case "ask":
            await turn.confirm("Sure?", id="sure")
        case "fail":
            raise RuntimeError("an author's mistake")
        case "wait":
            await turn.say("I wait")
            await asyncio.Event().wait()
        case _:
            await turn.say(turn.text)


async def record(turn: Turn) -> None:
    """Record work, models, and what the list has."""
    record = turn.record
    record.route(["small", Candidate("large", excluded="no key")])
    record.route([])
    record.tools(["read"])
    with record.model("small") as request:
        request.cost(input_tokens=8, output_tokens=3, amount=0.1, currency="USD")
    record.model("small").failed("overloaded", retryable=True)
    for how in ("completed", "failed"):
        hook, compaction = record.hook(how), record.compaction("full", 900)
        if how == "completed":
            hook.completed("allow")
            compaction.completed(100)
        else:
            hook.failed("too slow")
            compaction.failed("no summary")
    process = record.process(["ls"])
    process.input("more")
    await process.output(f"{KEY}\n" + "file\n" * 2_000)
    process.completed(0)
    record.process(["cat"]).failed("no such file")
    record.process(["sleep"]).terminated("SIGTERM")
    work(turn)
    for fact_type, payload, ids in RECORDED:
        record(fact_type, payload, **ids)
    turn.think("Let me see. ")
    turn.state["recorded"] = True
    await turn.say("Recorded.")


def work(turn: Turn) -> None:
    """Record tasks, subagents and jobs."""
    record = turn.record
    plan = record.task("Plan", task_id="plan")
    plan.record("task.queued", {"position": 1})
    plan.record("task.delegated", {"to": "helper"})
    helper = record.subagent("helper", "look")
    helper.record("subagent.status", {"message": "busy"}, status="running")
    helper.record("subagent.input", {"text": "faster"})
    helper.completed()
    helper.record("subagent.closed")
    record.subagent("other").failed("lost its way")
    job = record.job("sweep", total=2)
    job.record("job.started")
    job.record("job.progress", {"done": 0})
    with job.item("a"):
        pass
    job.item("b").failed("no luck", retryable=True)
    job.completed(1, failed=1)
    record.job("broken").failed("no disk")
    record.job("stopped").record("job.cancelled")


async def use_tools(turn: Turn) -> None:
    """Use tools that ask, answer at length, tell how far they are, and fail."""
    async with turn.tool("shell", {"command": "ls"}) as tool:
        await tool.approve("Run it?", rule="commands")
        tool.progress("half", done=1, total=2)
        tool.result("file\n" * 2_000)
    async with turn.tool("read", {}) as tool:
        tool.fail("no such file")
