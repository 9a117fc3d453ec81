"""What must hold of every run, seen by a program that drives the real server.

Each test is a sentence of ledger.md 6.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx
import pytest

from arp import App, HubSettings
from tests.server import worker
from tests.server.processes import start
from tests.server.rpc import Rpc, RpcFailed, rpc
from tests.support.serving import Serving, serving

AGENT = Path(worker.__file__)


@pytest.fixture
def server() -> Iterator[Serving]:
    with serving(worker.app) as running:
        yield running


@pytest.fixture
async def program(server: Serving) -> AsyncIterator[Rpc]:
    async with asyncio.timeout(15), rpc(server.port) as connection:
        yield connection


async def release(server: Serving, name: str = "gate", session_id: str = "s") -> None:
    """Lets a turn go on that waits."""

    def open_gate() -> None:
        hub = server.application.state.running
        assert hub is not None
        hub.sessions[session_id].cache[name].set()

    server.call(open_gate)


async def test_a_submitted_turn_shows_accepted_or_queued_before_any_model_output(
    program: Rpc, server: Serving
) -> None:
    first = await program.say("s", "wait", turnId="one")
    second = await program.say("s", "hello", turnId="two")
    assert (first["status"], second["status"]) == ("running", "queued")
    await program.follow("s")
    await program.until("model.delta", turnId="one")
    await release(server)
    await program.until("turn.completed", turnId="two")
    for turn_id in ("one", "two"):
        own = [fact["type"] for fact in program.facts if fact.get("turnId") == turn_id]
        assert own[:3] == ["turn.submitted", "turn.started", "model.delta"]
    line = program.of("queue.changed")[0]
    assert line["payload"] == {"queued": ["two"]}
    assert line["sequence"] < program.of("turn.started")[1]["sequence"]


async def test_a_large_tool_result_leaves_a_preview_and_an_output_ref(
    program: Rpc, server: Serving
) -> None:
    await program.say("s", "large")
    await program.follow("s")
    result = await program.until("tool.result")
    spilled = await program.until("output.spilled")
    whole = worker.LARGE.encode()
    assert result["outputRef"] == spilled["outputRef"]
    assert result["payload"]["preview"] == worker.LARGE[:2000]
    assert spilled["payload"]["bytes"] == len(whole) == 1_048_576
    assert spilled["payload"]["sha256"] == sha256(whole).hexdigest()
    (call,) = (await program.thread("s"))["toolCalls"]
    assert call["outputRef"] == result["outputRef"]
    assert spilled["toolCallId"] == call["toolCallId"]


async def test_a_tool_that_needs_approval_emits_action_required_and_waits(program: Rpc) -> None:
    await program.say("s", "delete a.txt")
    await program.follow("s")
    required = await program.until("action.required")
    thread = await program.thread("s")
    assert thread["status"] == "blocked"
    (pending,) = thread["pendingRequests"]
    assert (pending["kind"], pending["tool"]) == ("permission", "delete")
    assert pending["actionId"] == required["actionId"]
    assert "tool.result" not in program.types
    answer = {"sessionId": "s", "actionId": required["actionId"], "response": True}
    answered = await program.call("agentSession/action/respond", **answer)
    assert (answered["decision"], answered["repeated"]) == ("answered", False)
    result = await program.until("tool.result")
    assert result["payload"]["preview"] == '{"deleted":true}'
    resolved = program.of("permission.resolved")[0]["payload"]
    assert resolved["decision"] == "allow"
    again = await program.call("agentSession/action/respond", **answer)
    assert again["repeated"] is True
    with pytest.raises(RpcFailed, match="already has another answer"):
        await program.call("agentSession/action/respond", **{**answer, "response": False})


async def test_what_nobody_answered_is_not_approved(program: Rpc) -> None:
    await program.say("s", "delete a.txt")
    await program.follow("s")
    required = await program.until("action.required")
    await program.call("agentSession/turn/cancel", sessionId="s")
    await program.until("turn.failed", statusReason="cancelled")
    assert program.of("permission.resolved")[0]["payload"]["decision"] == "cancelled"
    assert program.of("action.resolved")[0]["payload"]["decision"] == "cancelled"
    with pytest.raises(RpcFailed, match="is cancelled; it accepts no answer any more"):
        await program.call(
            "agentSession/action/respond",
            sessionId="s",
            actionId=required["actionId"],
            response=True,
        )


async def test_a_busy_thread_refuses_with_its_policy() -> None:
    app = App(settings=HubSettings(policy="reject"))
    app.agent(worker.worker)
    with serving(app) as server:
        async with asyncio.timeout(15), rpc(server.port) as program:
            await program.say("s", "wait")
            with pytest.raises(RpcFailed) as refused:
                await program.say("s", "hello")
            assert (refused.value.name, refused.value.number) == ("BUSY", -32017)
            await release(server)


async def test_a_busy_thread_queues_and_the_queue_survives_a_restart(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.db"
    server = await start(AGENT, ledger)
    try:
        async with asyncio.timeout(15), rpc(server.port) as program:
            await program.say("s", "wait", turnId="one")
            for turn_id in ("two", "three", "four"):
                await program.say("s", turn_id, turnId=turn_id)
            promoted = await program.call(
                "agentSession/queue/promote", sessionId="s", turnId="four"
            )
            assert promoted["queued"] == ["four", "two", "three"]
            removed = await program.call("agentSession/queue/remove", sessionId="s", turnId="two")
            assert removed["queued"] == ["four", "three"]
            last = removed["sequence"]
        await server.kill()
        server = await start(AGENT, ledger)
        async with asyncio.timeout(15), rpc(server.port) as program:
            resumed = await program.call("agentSession/thread/resume", sessionId="s", after=last)
            assert [fact["type"] for fact in resumed["recovery"]][:4] == [
                "history.reconstructed",
                "runtime.warning",
                "runtime.error",
                "turn.failed",
            ]
            assert resumed["recovery"][3]["statusReason"] == "interrupted"
            assert resumed["resume"] == "events"
            await program.follow("s")
            await program.until("turn.completed", turnId="three")
            begun = [fact["turnId"] for fact in program.of("turn.started")]
            assert begun == ["one", "four", "three"]
            again = await program.say("s", "four", turnId="four")
            assert (again["repeated"], again["status"]) == (True, "completed")
    finally:
        await server.aclose()


async def test_a_retry_keeps_the_task_id_and_the_failed_attempt(program: Rpc) -> None:
    await program.say("s", "hello")
    named = {"sessionId": "s", "taskId": "build"}
    await program.call("task/create", **named, objective="build it")
    await program.call("task/update", **named, status="running")
    await program.call("task/update", **named, status="failed", reason="no compiler")
    retried = await program.call("task/retry", **named, runId="second", reason="installed it")
    assert retried["task"]["taskId"] == "build"
    assert retried["task"]["currentRunId"] == "second"
    attempts = [(a["runId"], a["attempt"], a["status"]) for a in retried["task"]["attempts"]]
    assert attempts == [("build.1", 1, "failed"), ("second", 2, "running")]
    assert retried["task"]["attempts"][0]["reason"] == "no compiler"
    again = await program.call("task/retry", **named, runId="second")
    assert again["repeated"] is True
    done = await program.call("task/complete", **named, outputs=["app.zip"])
    assert done["task"]["status"] == "completed"
    await program.follow("s")
    await program.until("task.completed")
    told = [fact["type"] for fact in program.facts if fact.get("taskId") == "build"]
    assert told == [
        "task.created",
        "task.accepted",
        "task.started",
        "task.attempt.started",
        "task.attempt.failed",
        "task.failed",
        "task.retrying",
        "task.attempt.started",
        "task.attempt.completed",
        "task.completed",
    ]


async def test_a_denied_permission_says_who_denied_it(program: Rpc) -> None:
    await program.say("s", "denied")
    await program.follow("s")
    await program.until("turn.completed")
    denied = [fact["payload"]["deniedBy"] for fact in program.of("permission.resolved")]
    assert denied == [
        {"kind": "rule", "name": "the rule"},
        {"kind": "mode", "name": "the mode"},
        {"kind": "hook", "name": "the hook"},
        {"kind": "hostPolicy", "name": "the hostPolicy"},
    ]
    assert {fact["turnId"] for fact in program.of("permission.resolved")} == {"t1"}


async def test_one_model_candidate_is_a_single_candidate_and_no_error(program: Rpc) -> None:
    await program.say("s", "route")
    await program.follow("s")
    await program.until("turn.completed")
    single = program.of("routing.single_candidate")
    assert [fact["payload"]["model"] for fact in single] == ["only-model"]
    assert not [name for name in program.types if name.endswith(("error", "failed", "possible"))]
    summary = (await program.thread("s"))["routingLimitSummary"]
    assert summary["candidateCount"] == 1
    assert summary["selectedModel"] == "only-model"


async def test_limits_and_quotas_join_the_turn_that_hit_them(program: Rpc) -> None:
    await program.say("s", "hello")
    await program.say("s", "limits", turnId="hits")
    await program.follow("s")
    await program.until("turn.completed", turnId="hits")
    assert program.of("rate_limit.hit")[0]["turnId"] == "hits"
    assert program.of("quota.low")[0]["turnId"] == "hits"
    first, hits = (await program.thread("s"))["turns"]
    assert "limits" not in first
    assert len(hits["limits"]) == 2


async def test_a_client_that_reconnects_gets_the_facts_after_its_last_sequence(
    server: Serving,
) -> None:
    async with asyncio.timeout(15), rpc(server.port) as before:
        await before.say("s", "hello")
        subscribed = await before.follow("s")
        await before.until("model.delta")
        seen = before.facts[-1]["sequence"]
    async with asyncio.timeout(15), rpc(server.port) as after:
        await after.say("s", "hello again")
        place = {"epoch": subscribed["epoch"]}
        again = await after.follow("s", seen, **place)
        assert again["resume"] == "events"
        await after.until("turn.completed", turnId="t2")
    joined = [*before.facts, *after.facts]
    assert [fact["sequence"] for fact in joined] == list(range(1, len(joined) + 1))


@pytest.mark.parametrize(
    "place", [{}, {"after": 3, "epoch": "of-another-log"}, {"after": 1_000_000}]
)
async def test_a_client_whose_place_is_gone_gets_a_snapshot_and_what_follows(
    program: Rpc, place: dict[str, Any]
) -> None:
    await program.say("s", "hello")
    subscribed = await program.call("agentSession/subscribe", sessionId="s", **place)
    assert subscribed["resume"] == "snapshot"
    assert subscribed["snapshot"]["sequence"] == subscribed["after"]
    await program.say("s", "and again", turnId="next")
    await program.until("turn.completed", turnId="next")
    assert program.facts[0]["sequence"] == subscribed["after"] + 1


async def test_one_failed_item_of_a_job_is_retried_alone(program: Rpc) -> None:
    await program.say("s", "job")
    await program.follow("s")
    await program.until("turn.completed")
    listed = await program.call("task/list", sessionId="s")
    before = {task["taskId"]: task for task in listed["tasks"]}
    assert {name: task["status"] for name, task in before.items()} == {
        "import-a": "completed",
        "import-b": "failed",
        "import-c": "completed",
    }
    retried = await program.call(
        "task/retry", sessionId="s", taskId="import-b", input={"text": "item b"}, turnId="again"
    )
    assert retried["turnId"] == "again"
    await program.until("turn.completed", turnId="again")
    await program.call("task/complete", sessionId="s", taskId="import-b")
    after = await program.call("task/list", sessionId="s")
    for task in after["tasks"]:
        if task["taskId"] != "import-b":
            assert task == before[task["taskId"]]
    told = [
        (fact["type"], fact["jobItemId"], fact["payload"]["attempt"])
        for fact in program.facts
        if fact["type"].startswith("job.item.")
    ]
    assert [one for one in told if one[1] == "b"][:3] == [
        ("job.item.started", "b", 1),
        ("job.item.failed", "b", 1),
        ("job.item.started", "b", 2),
    ]
    assert [one[0] for one in told if one[1] in ("a", "c")] == [
        "job.item.started",
        "job.item.completed",
        "job.item.started",
        "job.item.completed",
    ]
    submitted = program.of("turn.submitted")[-1]
    assert (submitted["taskId"], submitted["runId"]) == ("import-b", "import-b.2")


async def test_what_is_read_over_http_is_what_is_read_over_rpc(
    program: Rpc, server: Serving
) -> None:
    await program.say("s", "hello")
    await program.follow("s")
    await program.until("turn.completed")
    async with httpx.AsyncClient(base_url=server.http) as client:
        snapshot = (await client.get("/_api/sessions/s/snapshot")).json()
        thread = (await client.get("/_api/sessions/s/thread")).json()
        page = (await client.get("/_api/sessions/s/events", params={"after": 2})).json()
    assert snapshot == await program.call("agentSession/read", sessionId="s")
    assert thread == await program.thread("s")
    assert page["events"] == program.facts[2:]
