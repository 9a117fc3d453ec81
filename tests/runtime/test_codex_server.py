"""What the real Codex cannot be made to do, with a program that speaks as it does."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from arp.runtime.contract import types as ari
from arp.runtime.contract.errors import AriCode
from arp.runtime.contract.types import EventType, Lifecycle
from arp.runtime.programs.codex.codex import CodexRuntime
from tests.runtime import scripted_app_server
from tests.runtime.test_codex import WITHIN_S, created, joined, resumed

BROKEN_SANDBOX = 'if [ "$1" = sandbox ]; then echo "bwrap: no user namespaces" >&2; exit 1; fi'


@pytest.fixture
async def runtime(tmp_path: Path) -> AsyncIterator[CodexRuntime]:
    """Return a runtime over the scripted server."""
    program = tmp_path / "codex"
    script = f'exec {sys.executable} {scripted_app_server.__file__} "$@"'
    program.write_text(f"#!/bin/sh\n{BROKEN_SANDBOX}\n{script}\n")
    program.chmod(0o755)
    environment = {"PATH": "/usr/bin:/bin", "CODEX_HOME": str(tmp_path)}
    runtime = CodexRuntime(environment=environment, cwd=tmp_path, program=str(program))
    yield runtime
    await asyncio.wait_for(runtime.close(), WITHIN_S)


def answers(tmp_path: Path) -> list[Any]:
    """Return what the server was answered."""
    return [json.loads(line) for line in (tmp_path / "answers").read_text().splitlines()]


async def test_garbage_is_skipped(runtime: CodexRuntime) -> None:
    session = await created(runtime)
    events = await session.turn("garbage")
    assert events[-1].content == "before"


async def test_end_in_the_middle_of_a_line_loses_the_process(runtime: CodexRuntime) -> None:
    session = await created(runtime)
    end = (await session.turn("half_a_line"))[-1]
    assert end.error is not None
    assert end.error.code is AriCode.UNAVAILABLE
    assert "ended in the middle of a line" in end.error.message
    again = await resumed(runtime, session.id)
    assert (await again.turn("two_messages"))[-1].type is EventType.RESULT


async def test_plan_is_told(runtime: CodexRuntime) -> None:
    session = await created(runtime)
    await session.turn("plan")
    (plan,) = session.told(Lifecycle.PLAN)
    assert plan.content == "In this order"
    assert plan.details["todos"] == [
        {"text": "one", "status": "done"},
        {"text": "two", "status": "active"},
        {"text": "three", "status": "pending"},
    ]


async def test_messages_are_kept_apart_and_said_once(runtime: CodexRuntime) -> None:
    session = await created(runtime)
    events = await session.turn("two_messages")
    assert joined(events, EventType.TEXT) == "One.\n\nTwo."


async def test_command_of_an_agent_asks_in_the_session(
    runtime: CodexRuntime, tmp_path: Path
) -> None:
    session = await created(runtime)
    await session.send("agent")
    request = await session.asked()
    assert request.tool_input_summary == "touch x"
    assert not request.takes_message
    await session.answer(request, "deny")
    await session.end()
    assert answers(tmp_path) == [{"decision": "decline"}]
    assert session.of(EventType.TEXT) == []
    denied = [one for one in session.of(EventType.TOOL_RESULT) if one.tool_call_id == "c1"]
    assert [one.details["denied"] for one in denied] == [True]


async def test_agents_that_begin_at_once_are_told_with_what_each_does(
    runtime: CodexRuntime,
) -> None:
    session = await created(runtime)
    await session.send("two_agents")
    await session.end()
    told = session.told(Lifecycle.SUBAGENT)
    names = {one.details["subagent_id"]: one.details.get("name") for one in told[:2]}
    assert [("objective" in one.details) for one in told[:2]] == [False, False]
    assert {names[one.details["subagent_id"]]: one.content for one in told[2:]} == {
        "Ada": "Look",
        "Bob": "Listen",
    }


async def test_agents_of_a_thread_are_told_with_what_they_do(
    runtime: CodexRuntime, tmp_path: Path
) -> None:
    session = await created(runtime)
    await session.send("agent")
    await session.answer(await session.asked(), "deny")
    end = await session.end()
    told = [(one.details["status"], one.content) for one in session.told(Lifecycle.SUBAGENT)]
    assert told == [
        ("started", ""),
        ("completed", ""),
        ("input", "And there"),
        ("failed", "no"),
        ("closed", ""),
    ]
    started = session.told(Lifecycle.SUBAGENT)[0].details
    assert (started["name"], started["objective"]) == ("Ada", "Look")
    assert started["tool_call_id"] == "s1"
    calls = {one.tool_call_id: one.details for one in session.of(EventType.TOOL_CALL)}
    assert calls["c1"]["subagent"] == "Ada"
    assert calls["c1"]["subagent_id"] == started["subagent_id"]
    assert "subagent_id" not in calls["s1"]
    (used,) = session.told(Lifecycle.USAGE)
    assert (used.details["input_tokens"], used.details["subagent_id"]) == (
        5,
        started["subagent_id"],
    )
    assert end.usage is not None
    assert end.usage.input_tokens == 5


async def test_each_step_of_a_limit_is_told_once(runtime: CodexRuntime) -> None:
    session = await created(runtime)
    await session.turn("limits")
    told = [one.details for one in session.told(Lifecycle.RATE_LIMIT)]
    assert [(one["limit"], one["status"], one.get("used")) for one in told] == [
        ("codex, 5 hours", "warning", 0.81),
        ("codex, 5 hours", "warning", 0.91),
        ("codex, 5 hours", "reached", 1.0),
        ("codex, 5 hours", "warning", 0.85),
        ("workspace_owner_credits_depleted", "reached", None),
    ]
    assert told[0]["resets_at_s"] == 4102444800


async def test_hooks_are_told(runtime: CodexRuntime) -> None:
    session = await created(runtime)
    await session.turn("hooks")
    started, blocked, failed = session.told(Lifecycle.HOOK)
    lint = {"hook_id": "h1", "name": "lint", "event": "preToolUse"}
    assert started.details == {**lint, "status": "started"}
    assert blocked.details == {**lint, "status": "completed", "decision": "deny", "duration_ms": 4}
    assert (failed.content, failed.details["status"]) == ("exit 2", "failed")


async def test_address_and_form_of_an_mcp_server(runtime: CodexRuntime, tmp_path: Path) -> None:
    session = await created(runtime)
    await session.send("address")
    request = await session.asked()
    assert request.kind is ari.PermissionKind.QUESTION
    assert request.tool_input_raw["url"] == "https://example.org/login"
    await session.answer(request, "allow")
    await session.end()
    await session.send("form")
    request = await session.asked()
    assert "city" in request.tool_input_raw["schema"]["properties"]
    await session.answer(request, "allow", updated_input={"city": "Bern"})
    await session.end()
    await session.send("form")
    await session.answer(await session.asked(), "deny", interrupt=True)
    await session.end()
    assert answers(tmp_path) == [
        {"action": "accept"},
        {"action": "accept", "content": {"city": "Bern"}},
        {"action": "cancel"},
    ]
    results = session.of(EventType.TOOL_RESULT)
    assert [result.is_error for result in results] == [False, False, True]


async def test_what_nobody_can_answer_is_answered(runtime: CodexRuntime, tmp_path: Path) -> None:
    session = await created(runtime)
    events = await session.turn("nobody")
    assert events[-1].type is EventType.RESULT
    tool, verification, tokens, clock = answers(tmp_path)
    assert tool == {"contentItems": [], "success": False}
    assert verification == {"action": "decline"}
    assert tokens["code"] == -32601
    assert clock["currentTimeAt"] > 1_700_000_000


async def test_question_that_is_taken_back_is_closed(runtime: CodexRuntime) -> None:
    session = await created(runtime)
    await session.turn("withdrawn")
    (resolved,) = session.told(Lifecycle.PERMISSION_RESOLVED)
    assert resolved.details == {"outcome": "cancelled"}
    assert runtime.session(session.id).feed.pending == {}


async def test_turn_of_the_runtime_itself(runtime: CodexRuntime) -> None:
    session = await created(runtime)
    await session.turn("own_turn")
    end = await session.end()
    assert end.content == "by myself"
    assert session.told(Lifecycle.TURN_STARTED)[-1].details == {"origin": "runtime"}


@pytest.mark.parametrize("way", ["cancel", "close"])
async def test_turn_that_does_not_stop_is_ended_with_its_process(
    runtime: CodexRuntime, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arp.runtime.programs.codex.server.STOP_S", 0.1)
    runtime.cancel_grace_s = 0.1
    session, other = await created(runtime), None
    process = await runtime.server()
    await session.send("deaf")
    await session.until(lambda event: event.type is EventType.TEXT)
    await (session.cancel() if way == "cancel" else session.close())
    end = await session.end()
    assert end.error is not None
    assert end.error.code is AriCode.CANCELED
    async with asyncio.timeout(WITHIN_S):
        await process.ended.wait()
    other = await resumed(runtime, session.id)
    assert (await other.turn("two_messages"))[-1].type is EventType.RESULT


async def test_status_says_what_to_do_about_a_sandbox(runtime: CodexRuntime) -> None:
    status = await runtime.status(ari.StatusRequest())
    assert (status.ready, status.healthy) == (True, False)
    assert "allow user namespaces" in status.message
    assert "bwrap: no user namespaces" in status.message
    assert (await runtime.version(ari.VersionRequest())).runtime_version == "0.163.0"


async def test_runtime_that_is_closed_starts_nothing(runtime: CodexRuntime) -> None:
    creating = asyncio.ensure_future(created(runtime))
    await asyncio.sleep(0)
    await asyncio.wait_for(runtime.close(), WITHIN_S)
    with pytest.raises(Exception, match=r"closed|ended"):
        await creating
