"""What a runtime tells becomes facts, and what of it people see: the table of docs/ari.md."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from arp.client.client import ArpClient
from arp.runtime.contract import types as ari
from arp.runtime.contract.errors import FailedPrecondition, Unavailable
from arp.runtime.contract.feed import SessionFeed
from arp.runtime.turns.run_facts import notice_of, rfc3339
from arp.testing import Fails, FakeRuntime, Says, Step, Tells
from tests.runtime.test_agent import asked, shown, until
from tests.server.rpc import Rpc, rpc
from tests.support.serving import Serving

FIVE_HOURS: dict[str, Any] = {"limit": "five_hour", "resets_at_s": 1_800_000_000}
AGENT = ari.Lifecycle.SUBAGENT
MINE: dict[str, Any] = {"subagent_id": "a1", "subagent": "Explore"}
"""Details of a call that a sub-agent makes."""


class Told:
    """A session with a fake runtime: what it shows, and its facts."""

    def __init__(self, client: ArpClient, fake: FakeRuntime, server: Serving, caller: Rpc) -> None:
        self.client = client
        self.fake = fake
        self.server = server
        self.caller = caller

    @property
    def feed(self) -> SessionFeed:
        """The feed of the newest session of the runtime."""
        assert self.fake.directory is not None
        newest = max(self.fake.directory.glob("*.jsonl"), key=lambda file: file.stat().st_mtime_ns)
        return self.fake.session(newest.stem).feed

    async def facts(self, text: str, type_name: str) -> list[dict[str, Any]]:
        """Run a turn, and return its facts of a type."""
        turn = await self.client.ask(text)
        end = "turn.completed" if turn.status == "completed" else "turn.failed"
        await self.caller.until(end, turnId=turn.id)
        return [one for one in self.caller.of(type_name) if one.get("turnId") == turn.id]

    async def snapshot(self) -> Any:
        """Return the read model of the session."""
        return await self.caller.call("agentSession/read", sessionId="s")


@asynccontextmanager
async def told(script: dict[str, list[Step]], tmp_path: Path) -> AsyncIterator[Told]:
    """Serve a fake runtime, and follow the facts of a session of it."""
    async with shown(script, tmp_path) as (client, fake, server), rpc(server.port) as caller:
        await client.ask("hello")
        await caller.follow("s")
        yield Told(client, fake, server, caller)


def payloads(facts: list[dict[str, Any]]) -> list[Any]:
    return [fact["payload"] for fact in facts]


def titles(client: ArpClient, turn_id: str) -> list[Any]:
    """Return the titles of the notices that a turn shows."""
    shown = client.screen.output(turn_id)
    return [one.props["title"] for one in shown if one.type == "status-card"]


# -- limits --------------------------------------------------------------------------------------


async def test_limit_is_shown_with_the_time_when_it_resets(tmp_path: Path) -> None:
    """Nearly reached it is a warning, reached an error in its place."""
    nearly = Tells(
        ari.Lifecycle.RATE_LIMIT, details={**FIVE_HOURS, "status": "warning", "used": 0.92}
    )
    reached = Tells(ari.Lifecycle.RATE_LIMIT, details={**FIVE_HOURS, "status": "reached"})
    async with told(
        {"near": [nearly], "over": [nearly, reached, Says("Hm.")]}, tmp_path
    ) as session:
        low = await session.facts("near", "quota.low")
        resets = "2027-01-15T08:00:00Z"
        assert payloads(low) == [
            {"quota": "five_hour", "remaining": 8.0, "total": 100, "unit": "%", "resetsAt": resets}
        ]
        (card,) = session.client.screen.output(low[0]["turnId"])
        assert card.props == {
            "status": "warning",
            "title": "Usage limit nearly reached",
            "message": "Limit: five hour. 92 % are used. It resets on 2027-01-15 at 08:00 UTC.",
        }
        hit = await session.facts("over", "rate_limit.hit")
        assert payloads(hit) == [{"limit": "five_hour", "resetsAt": resets}]
        assert titles(session.client, hit[0]["turnId"]) == ["Usage limit reached"]
        summary = (await session.snapshot())["routingLimitSummary"]
        assert [limit["name"] for limit in summary["limits"]] == ["five_hour"] * 3
        assert summary["quotas"]["five_hour"]["remaining"] == 8.0


async def test_limit_that_is_told_between_turns_is_shown_with_the_next(tmp_path: Path) -> None:
    async with told({}, tmp_path) as session:
        feed = session.feed
        session.server.call(lambda: feed.tell(ari.Lifecycle.RATE_LIMIT, **FIVE_HOURS))
        await session.caller.until("rate_limit.hit")
        turn = await session.client.ask("go")
        assert titles(session.client, turn.id) == ["Usage limit reached"]
        again = await session.client.ask("go on")
        assert titles(session.client, again.id) == []


@pytest.mark.parametrize(
    ("details", "message"),
    [
        ({}, "Limit: requests."),
        ({"limit": "", "used": True, "resets_at_s": "soon"}, "Limit: requests."),
        ({"limit": "seven_day", "resets_at_s": 1e40}, "Limit: seven day."),
    ],
)
def test_what_a_runtime_says_wrongly_of_a_limit_is_left_out(
    details: dict[str, Any], message: str
) -> None:
    assert notice_of(details).message == message
    assert rfc3339(1e40) is None


async def test_refusal_of_the_provider_is_a_failed_request_and_a_limit(tmp_path: Path) -> None:
    again = {"http_status": 429, "delay_ms": 2_000, "attempt": 1}
    script: dict[str, list[Step]] = {
        "again": [Tells(ari.Lifecycle.RETRYING, "Too many requests", details=again)],
        "no": [Fails(Unavailable("Too many requests", http_status=429))],
    }
    async with told(script, tmp_path) as session:
        hit = await session.facts("again", "rate_limit.hit")
        assert payloads(hit) == [{"limit": "requests", "retryAfterS": 2.0}]
        (failed,) = payloads(session.caller.of("model.failed"))
        assert (failed["error"], failed["retryable"]) == ("Too many requests", True)
        assert payloads(await session.facts("no", "rate_limit.hit")) == [{"limit": "requests"}]
        assert len(session.caller.of("model.failed")) == 2


async def test_limit_of_the_runtime_that_ends_a_turn_blocks_it(tmp_path: Path) -> None:
    script: dict[str, list[Step]] = {"go": [Fails(FailedPrecondition("5 turns", limit="turns"))]}
    async with told(script, tmp_path) as session:
        blocked = await session.facts("go", "quota.blocked")
        assert payloads(blocked) == [{"quota": "turns", "remaining": 0}]
        turn = session.client.screen.turns[blocked[0]["turnId"]]
        assert [error.error for error in turn.errors] == ["fake: 5 turns"]


# -- sub-agents ----------------------------------------------------------------------------------


def spawn(feed: SessionFeed) -> None:
    about = {"subagent_id": "a1", "name": "Explore", "objective": "Find it", "status": "started"}
    feed.tell(ari.Lifecycle.SUBAGENT, **about)


async def test_tools_of_a_sub_agent_are_shown_as_its_own(tmp_path: Path) -> None:
    async with told({}, tmp_path) as session:
        feed = session.feed

        def begin() -> None:
            feed.begin(origin="runtime")
            spawn(feed)
            feed.tell(AGENT, "Reads", subagent_id="a1", status="running")
            feed.tool_call("c1", "Bash", {"command": "ls"}, summary="ls", **MINE)
            feed.tool_result("c1", "README")
            feed.tell(AGENT, "It is there", subagent_id="a1", status="completed")
            feed.tell(AGENT, "again", subagent_id="a2", status="failed")
            feed.result()

        session.server.call(begin)
        done = await session.caller.until("turn.completed", turnId="t2")
        (tool,) = session.client.screen.turns[done["turnId"]].tools
        assert (tool.tool, tool.result) == ("Explore: Bash", "README")
        (started,) = session.caller.of("tool.started")
        assert (started["subagentId"], started["correlation"]) == ("a1", {"runtimeCallId": "c1"})
        (spawned,) = session.caller.of("subagent.spawned")
        assert (spawned["subagentId"], spawned["payload"]) == (
            "a1",
            {"name": "Explore", "objective": "Find it"},
        )
        first, second = (await session.snapshot())["subagents"]
        assert (first["status"], first["message"]) == ("completed", "Reads")
        assert first["outputs"] == ["It is there"]
        assert (second["status"], second["reason"]) == ("failed", "again")


async def test_question_of_a_sub_agent_names_it_also_when_it_is_asked_again(tmp_path: Path) -> None:
    """Its turn ends, and another one begins with the same question; the call is made up there."""
    async with told({}, tmp_path) as session:
        feed = session.feed
        about = ari.PermissionRequest("Bash", "c1", tool_input_raw={"command": "ls"})

        def begin() -> None:
            feed.begin(origin="runtime")
            feed.tool_call("c1", "Bash", {"command": "ls"}, **MINE)
            feed.ask("native", about)

        session.server.call(begin)
        (first,) = await until(session.client, lambda: asked(session.client))
        session.server.call(feed.result)
        await session.caller.until("turn.completed", turnId="t2")

        def again() -> None:
            feed.begin(origin="runtime")
            feed.ask("native", about)

        session.server.call(again)
        (second,) = await until(session.client, lambda: asked(session.client))
        titles = [
            component.props["title"]
            for turn in ("t2", "t3")
            for component in session.client.screen.output(turn)
            if component.id in (first, second)
        ]
        assert titles == ["Explore: Bash"] * 2
        tools = [session.client.screen.turns[turn].tools[0].tool for turn in ("t2", "t3")]
        assert tools == ["Explore: Bash"] * 2
        session.server.call(feed.result)
        await session.caller.until("turn.completed", turnId="t3")


async def test_what_is_told_between_turns_is_recorded(tmp_path: Path) -> None:
    async with told({}, tmp_path) as session:
        feed = session.feed

        def tell() -> None:
            spawn(feed)
            feed.tell(AGENT, "Look there too", subagent_id="a1", status="input")
            feed.tell(AGENT, subagent_id="a1", status="closed")
            feed.tell(ari.Lifecycle.MODE, "free")

        session.server.call(tell)
        changed = await session.caller.until("policy.changed", payload=_mode("free"))
        assert "turnId" not in changed
        (agent,) = (await session.snapshot())["subagents"]
        assert (agent["status"], agent["inputs"]) == ("closed", 1)
        assert (await session.snapshot())["permissionSandboxSummary"]["permissionMode"] == "free"


def _mode(mode: str) -> dict[str, str]:
    return {"policy": "permissionMode", "value": mode}


# -- hooks, plans, models ------------------------------------------------------------------------


async def test_hooks_are_recorded_with_their_end(tmp_path: Path) -> None:
    def hook(hook_id: str, status: str, content: str = "", **more: Any) -> Step:
        about = {"hook_id": hook_id, "name": "lint", "event": "PreToolUse", "status": status}
        return Tells(ari.Lifecycle.HOOK, content, {**about, **more})

    steps = [
        hook("h1", "started"),
        hook("h1", "completed", decision="deny", duration_ms=3),
        hook("h2", "started"),
        hook("h2", "failed", "exit code 2"),
    ]
    async with told({"go": steps}, tmp_path) as session:
        started = await session.facts("go", "hook.started")
        assert [one["requestId"] for one in started] == ["h1", "h2"]
        assert payloads(started) == [{"hook": "lint", "event": "PreToolUse"}] * 2
        (completed,) = session.caller.of("hook.completed")
        assert completed["payload"] == {"hook": "lint", "decision": "deny", "durationMs": 3.0}
        (failed,) = session.caller.of("hook.failed")
        assert failed["payload"] == {"hook": "lint", "reason": "exit code 2"}
        hooks = (await session.snapshot())["permissionSandboxSummary"]["hooks"]
        assert hooks == {"started": 2, "completed": 1, "failed": 1}


def plan(**todos: str) -> Step:
    listed = [{"text": text, "status": status} for text, status in todos.items()]
    return Tells(ari.Lifecycle.PLAN, details={"todos": listed})


async def statuses(session: Told) -> dict[str, str]:
    """Return the status of each task by what it is to achieve."""
    tasks = (await session.snapshot())["tasks"]
    return {task["objective"]: task["status"] for task in tasks}


async def test_plan_is_a_task_for_each_entry_also_after_a_restart(tmp_path: Path) -> None:
    script: dict[str, list[Step]] = {
        "one": [plan(look="active", fix="pending", test="pending")],
        "two": [plan(look="done", fix="active"), plan(look="done", fix="active")],
        "three": [plan(look="done", fix="done", ship="pending")],
    }
    async with told(script, tmp_path) as session:
        assert len(await session.facts("one", "task.created")) == 3
        assert await statuses(session) == {"look": "running", "fix": "draft", "test": "draft"}
        assert await session.facts("two", "task.created") == []
        assert await statuses(session) == {
            "look": "completed",
            "fix": "running",
            "test": "cancelled",
        }
    async with told(script, tmp_path) as session:
        assert payloads(await session.facts("three", "task.created")) == [{"objective": "ship"}]
        assert len(session.caller.of("task.completed")) == 2
        assert (await statuses(session))["ship"] == "draft"


async def test_usage_that_comes_with_the_end_alone_is_one_request(tmp_path: Path) -> None:
    async with told({}, tmp_path) as session:
        (cost,) = await session.facts("four", "cost.recorded")
        assert cost["payload"] == {"model": "fake-1", "inputTokens": 4, "outputTokens": 1}
        (turn,) = [
            turn
            for turn in (await session.snapshot())["threads"][0]["turns"]
            if turn["turnId"] == cost["turnId"]
        ]
        assert turn["model"] == "fake-1"


async def test_price_that_comes_with_the_end_is_recorded_once(tmp_path: Path) -> None:
    usage = {"model": "m", "input_tokens": 5, "output_tokens": 2, "context_tokens": 7}
    steps: list[Step] = [Tells(ari.Lifecycle.USAGE, details={**usage, "context_max": 100})]
    async with told({"go": steps}, tmp_path) as session:
        paid = ari.Usage(input_tokens=5, output_tokens=2, cost=0.25, currency="USD")

        async def play(turn: Any) -> None:
            turn.used = paid
            turn.tell(ari.Lifecycle.USAGE, **usage, context_max=100)

        session.fake.function = play
        costs = payloads(await session.facts("go", "cost.recorded"))
        assert costs == [
            {"model": "m", "inputTokens": 5, "outputTokens": 2},
            {"model": "m", "amount": 0.25, "currency": "USD"},
        ]
        assert payloads(session.caller.of("context.resolved")) == [{"tokens": 7, "maxTokens": 100}]
        assert (await session.snapshot())["history"]["tokens"] == 7


async def test_usage_below_nothing_is_passed_over(tmp_path: Path) -> None:
    """A runtime counts wrongly: the turn is completed, with the other numbers."""
    async with told({}, tmp_path) as session:

        async def play(turn: Any) -> None:
            turn.used = ari.Usage(input_tokens=-5, output_tokens=2)

        session.fake.function = play
        (final,) = await session.facts("go", "turn.completed")
        assert final["payload"]["usage"] == {"output_tokens": 2}


@pytest.mark.parametrize(
    ("used", "of_turn", "cost"),
    [
        (None, None, None),
        (ari.Usage(), None, None),
        (ari.Usage(output_tokens=2), {"output_tokens": 2}, {"outputTokens": 2}),
        (
            ari.Usage(input_tokens=3, output_tokens=0, cached_tokens=0),
            {"input_tokens": 3, "output_tokens": 0, "cached_tokens": 0},
            {"inputTokens": 3, "outputTokens": 0, "cachedInputTokens": 0},
        ),
        (
            ari.Usage(cost=0.0, currency="USD"),
            {"cost": 0.0, "currency": "USD"},
            {"amount": 0.0, "currency": "USD"},
        ),
    ],
)
async def test_unknown_usage_is_absent_and_a_known_0_is_recorded(
    tmp_path: Path, used: ari.Usage | None, of_turn: Any, cost: Any
) -> None:
    async with told({}, tmp_path) as session:

        async def play(turn: Any) -> None:
            turn.used = used

        session.fake.function = play
        (final,) = await session.facts("go", "turn.completed")
        assert final["payload"].get("usage") == of_turn
        turn_id = final["turnId"]
        costs = [one for one in session.caller.of("cost.recorded") if one["turnId"] == turn_id]
        assert payloads(costs) == ([{"model": "fake-1", **cost}] if cost else [])


async def test_request_with_one_known_number_has_that_alone(tmp_path: Path) -> None:
    used = {"model": "m", "output_tokens": 4, "input_tokens": None}
    async with told({"go": [Tells(ari.Lifecycle.USAGE, details=used)]}, tmp_path) as session:
        costs = payloads(await session.facts("go", "cost.recorded"))
        assert costs == [{"model": "m", "outputTokens": 4}]


# -- sessions and commands -----------------------------------------------------------------------


async def test_runtime_and_its_session_are_named(tmp_path: Path) -> None:
    async with told({}, tmp_path) as session:
        begun = await session.caller.until("thread.started")
        (file,) = (tmp_path / "runtime").glob("*.jsonl")
        assert begun["threadId"] == "main"
        assert begun["correlation"] == {"runtime": "fake", "runtimeSessionId": file.stem}
        assert begun["runtimeId"].startswith("fake@arp-")
        snapshot = await session.snapshot()
        assert snapshot["runtimeId"] == begun["runtimeId"]
        assert snapshot["threads"][0]["correlation"] == begun["correlation"]


async def test_each_thread_has_a_session_of_the_runtime(tmp_path: Path) -> None:
    async with told({}, tmp_path) as session:
        call = session.caller.call
        await call("agentSession/thread/start", sessionId="s", threadId="side", title="Beside")
        for thread, turn in (("side", "a"), ("main", "b"), ("side", "c")):
            await session.caller.say("s", f"in {thread}", threadId=thread, turnId=turn)
            await session.caller.until("turn.completed", turnId=turn)
        told_to = {
            file.stem: [one.content for one in session.fake.kept(file.stem) if one.role == "user"]
            for file in (tmp_path / "runtime").glob("*.jsonl")
        }
        assert sorted(told_to.values()) == [["hello", "in main"], ["in side", "in side"]]
        threads = (await session.snapshot())["threads"]
        assert {one["threadId"]: one.get("title") for one in threads} == {
            "main": None,
            "side": "Beside",
        }
        ids = [one["correlation"]["runtimeSessionId"] for one in threads]
        assert sorted(ids) == sorted(told_to)


async def test_commands_that_change_between_turns_are_announced(tmp_path: Path) -> None:
    async with told({}, tmp_path) as session:
        client, feed = session.client, session.feed
        assert "review" not in [command.name for command in client.commands]
        session.fake.commands = (ari.ListedItem("review", "Look at the changes", hint="branch"),)
        session.server.call(lambda: feed.tell(ari.Lifecycle.COMMANDS, commands=[]))
        await until(client, lambda: "review" in [command.name for command in client.commands])
        names = [command.name for command in client.commands]
        assert names == ["review", "compact", "model", "mode"]


async def test_mode_that_the_runtime_takes_in_a_turn_is_the_current_one(tmp_path: Path) -> None:
    script: dict[str, list[Step]] = {"go": [Tells(ari.Lifecycle.MODE, "free")]}
    async with told(script, tmp_path) as session:
        session.fake.modes = (ari.Choice("ask"), ari.Choice("free"))
        native = session.fake.native_session(session.feed.session_id)
        native.mode = "free"
        changed = await session.facts("go", "policy.changed")
        assert payloads(changed) == [_mode("free")]
        (mode,) = [command for command in session.client.commands if command.name == "mode"]
        assert [choice.value for choice in mode.choices if choice.current] == ["free"]


async def test_compact_is_a_command_where_the_runtime_has_none_of_its_own(tmp_path: Path) -> None:
    async with told({}, tmp_path) as session:
        assert session.fake.calls("compact_session") == 0
        session.fake.commands = ()  # type: ignore[assignment]  # one of any number
        done = await session.facts("/compact", "context.compaction.completed")
        assert len(done) == 1
        assert session.fake.calls("compact_session") == 1
        assert (await session.snapshot())["history"]["compactions"] == 1
