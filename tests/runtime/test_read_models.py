"""Real runs of real agents leave no read model empty, and each row of docs/ari.md is a fact."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from arp import App, connect
from arp.client.client import ArpClient
from arp.ledger.fact_types import FACT_TYPES
from arp.runtime.contract.services import RuntimeService
from arp.runtime.programs.acp.acp import AcpRuntime
from arp.runtime.programs.claude.claude_code import ClaudeCodeOptions, ClaudeCodeRuntime
from arp.runtime.programs.codex.codex import CodexRuntime
from tests.docs.pages import text_of
from tests.runtime.clis import Cli
from tests.runtime.test_agent import asked
from tests.server.rpc import rpc
from tests.support.serving import serving

WITHIN_S = 100.0
"""So long the turns of one agent may take; most of it is the start of programs."""

Run = tuple[Any, list[dict[str, Any]]]
"""What came of turns: the snapshot of the session, and its facts."""


async def said(client: ArpClient, text: str) -> None:
    """Say something, allow all that is asked, and return when the turn is over."""
    sent = await client.send_text(text)
    turn_id = await client.turn_of(sent)
    answered: set[str] = set()
    events = client.events()
    while not client.screen.turns[turn_id].final:
        for component in asked(client).keys() - answered:
            answered.add(component)
            await client.send_action("confirm", source=component)
        await anext(events)


async def run_of(
    runtime: RuntimeService,
    texts: Sequence[str],
    tmp_path: Path,
) -> Run:
    """Return what came of a session in which these texts were said.

    Args:
        runtime: Who answers.
        texts: In order; the next one is said when the turn before is over.
        tmp_path: For the ledger.
    """
    app = App(ledger=f"sqlite:{tmp_path}/ledger.db")
    app.runtime(runtime)
    with serving(app) as server:
        async with (
            asyncio.timeout(WITHIN_S),
            connect(server.http, session_id="s") as client,
            rpc(server.port) as caller,
        ):
            for text in texts:
                await said(client, text)
            await caller.follow("s")
            snapshot = await caller.call("agentSession/read", sessionId="s")
            while caller.facts[-1]["sequence"] < snapshot["sequence"]:
                await caller.next()
    return snapshot, caller.facts


READ_MODELS: dict[str, Callable[[Any], Any]] = {
    "turns": lambda all: all["threads"][0]["turns"],
    "model of a turn": lambda all: all["threads"][0]["turns"][0]["model"],
    "cost of a turn": lambda all: all["threads"][0]["turns"][0]["cost"],
    "thread": lambda all: all["threads"][0]["correlation"],
    "tool calls": lambda all: all["threads"][0]["toolCalls"],
    "processes": lambda all: all["threads"][0]["processes"],
    "tasks": lambda all: all["tasks"],
    "decisions": lambda all: all["permissionSandboxSummary"]["decisions"],
    "mode": lambda all: all["permissionSandboxSummary"]["permissionMode"],
    "hooks": lambda all: all["permissionSandboxSummary"]["hooks"],
    "candidates": lambda all: all["routingLimitSummary"]["candidates"],
    "selected model": lambda all: all["routingLimitSummary"]["selectedModel"],
    "cost": lambda all: all["routingLimitSummary"]["cost"],
    "price": lambda all: all["routingLimitSummary"]["cost"]["amounts"],
    "limits": lambda all: all["routingLimitSummary"]["limits"],
    "quotas": lambda all: all["routingLimitSummary"]["quotas"],
    "sub-agents": lambda all: all["subagents"],
    "compaction": lambda all: all["history"]["compaction"],
    "context": lambda all: all["history"]["tokens"],
    "incidents": lambda all: all["incidents"],
    "diagnostics": lambda all: all["diagnostics"],
    "times": lambda all: all["telemetrySummary"]["times"],
    "channels": lambda all: all["channels"],
    "artifacts": lambda all: all["artifacts"],
}
"""What the read models of a session tell, and where it is in the snapshot."""


def empty(snapshot: Any) -> set[str]:
    """Return which of the read models tell nothing."""
    found = set()
    for name, value in READ_MODELS.items():
        try:
            told = value(snapshot)
        except (LookupError, TypeError):
            told = None
        if not told:
            found.add(name)
    return found


def types_of(facts: list[dict[str, Any]]) -> set[str]:
    return {fact["type"] for fact in facts}


def hooks_in(directory: Path, name: str) -> None:
    """Write settings with a hook that runs before each command."""
    hook = {"type": "command", "command": "true"}
    settings = {"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [hook]}]}}
    (directory / name).parent.mkdir(parents=True, exist_ok=True)
    (directory / name).write_text(json.dumps(settings))


NOT_TOLD = {
    "codex": {
        "price": "Codex tells tokens and no prices",
        "hooks": "a hook runs when a person has trusted it; test_codex_server.py has them scripted",
    },
    "opencode": {
        "hooks": "ACP has none",
        "price": "OpenCode tells a price for models of its list; the one of the test is not in it",
        "context": "OpenCode tells the size of the context for models of its list, as the price",
        "limits": "ACP has none",
        "quotas": "ACP has none",
        "compaction": "ACP has none",
        "incidents": "ACP does not tell that the model is asked again, and nothing else failed",
        "diagnostics": "ACP has no warnings, and a session with OpenCode begins without any",
    },
}
"""What a runtime cannot tell, and why; all else it has to."""

THINKS_AND_RUNS = ("think", "run: touch f")


async def claude_run(cli: Cli, tmp_path: Path) -> Run:
    """Return what came of a session with Claude Code, in which nearly everything happens."""
    hooks_in(cli.cwd, ".claude/settings.json")
    environment = {
        **cli.environment,
        "CLAUDE_CODE_ENABLE_TODO_TOOLS": "true",
        # A subscription: only with one does it look at the limits of the account.
        "CLAUDE_CODE_OAUTH_TOKEN": "test",
    }
    del environment["ANTHROPIC_API_KEY"]
    options = ClaudeCodeOptions(setting_sources=("project",))
    runtime = ClaudeCodeRuntime(cwd=cli.cwd, environment=environment, options=options)
    todo = {"subject": "Look", "description": "Look at it", "activeForm": "Looking"}
    states = [{"taskId": "1", "status": status} for status in ("in_progress", "completed")]
    texts = [
        *THINKS_AND_RUNS,
        f"tool: TaskCreate {json.dumps(todo)}",
        *(f"tool: TaskUpdate {json.dumps(state)}" for state in states),
        "retry",
        "limit: 92",
        "fail 429",
        "/compact",
        "agent: run: touch sub",
    ]
    return await run_of(runtime, texts, tmp_path)


async def codex_run(cli: Cli, tmp_path: Path) -> Run:
    """Return what came of a session with Codex, in which nearly everything happens."""
    config = Path(cli.environment["CODEX_HOME"]) / "config.toml"
    config.write_text(f"{config.read_text()}\n[tools.update_plan]\nenabled = true\n")
    runtime = CodexRuntime(environment=cli.environment, cwd=cli.cwd, program=cli.program)
    steps = [{"step": "Look", "status": "completed"}, {"step": "Fix", "status": "in_progress"}]
    texts = [
        *THINKS_AND_RUNS,
        f"tool: update_plan {json.dumps({'plan': steps})}",
        "retry",
        "limit: 92",
        "limit: 100",
        "/compact",
        "agent: run: touch sub",
    ]
    return await run_of(runtime, texts, tmp_path)


def check_sub_agent(snapshot: Any, facts: list[dict[str, Any]], name: str) -> None:
    """What a sub-agent did is its own: its tool, the process in it, and what it used."""
    (agent,) = snapshot["subagents"]
    assert (agent["name"], agent["status"], agent["objective"]) == (
        name,
        "completed",
        "run: touch sub",
    )
    assert agent["outputs"]
    its_own = {fact["type"] for fact in facts if fact.get("subagentId") == agent["subagentId"]}
    assert its_own >= {"subagent.spawned", "tool.started", "permission.requested", "tool.result"}
    assert its_own >= {"process.started", "process.completed"}
    tools = [call["tool"] for call in snapshot["threads"][0]["toolCalls"]]
    assert [tool for tool in tools if tool.startswith(f"{name}: ")] != []


@pytest.mark.timeout(150)
async def test_claude_code_leaves_no_read_model_empty(claude_cli: Cli, tmp_path: Path) -> None:
    snapshot, facts = await claude_run(claude_cli, tmp_path)
    assert empty(snapshot) == set()
    assert types_of(facts) >= facts_of_table() - CLAUDE_DOES_NOT
    check_sub_agent(snapshot, facts, "general-purpose")
    (low,) = [fact["payload"] for fact in facts if fact["type"] == "quota.low"]
    assert (low["quota"], low["remaining"]) == ("five_hour", 8.0)
    assert snapshot["runtimeId"].startswith("claude-code@")


@pytest.mark.timeout(150)
async def test_codex_leaves_no_read_model_empty(codex_cli: Cli, tmp_path: Path) -> None:
    snapshot, facts = await codex_run(codex_cli, tmp_path)
    assert empty(snapshot) == set(NOT_TOLD["codex"])
    assert types_of(facts) >= facts_of_table() - CODEX_DOES_NOT
    check_sub_agent(snapshot, facts, "agent 1")
    used = [fact for fact in facts if fact["type"] == "cost.recorded" and "subagentId" in fact]
    assert len(used) == 2
    (hit,) = [fact["payload"] for fact in facts if fact["type"] == "rate_limit.hit"]
    assert hit == {"limit": "codex, 5 hours", "resetsAt": "2100-01-01T00:00:00Z"}
    assert snapshot["runtimeId"].startswith("codex@")


@pytest.mark.timeout(240)
async def test_opencode_leaves_no_read_model_empty(opencode_cli: Cli, tmp_path: Path) -> None:
    runtime = AcpRuntime(
        opencode_cli.command, cwd=opencode_cli.cwd, environment=opencode_cli.environment
    )
    todos = [{"content": "Look", "status": "in_progress", "priority": "low", "id": "1"}]
    texts = [
        *THINKS_AND_RUNS,
        f"tool: todowrite {json.dumps({'todos': todos})}",
        "agent: hello",
    ]
    snapshot, _ = await run_of(runtime, texts, tmp_path)
    assert empty(snapshot) == set(NOT_TOLD["opencode"])
    (agent,) = snapshot["subagents"]
    assert (agent["name"], agent["status"]) == ("general", "completed")


async def test_claude_code_ends_a_turn_at_its_limit(claude_cli: Cli, tmp_path: Path) -> None:
    runtime = ClaudeCodeRuntime(
        cwd=claude_cli.cwd,
        environment=claude_cli.environment,
        options=ClaudeCodeOptions(max_turns=1),
    )
    snapshot, facts = await run_of(runtime, ["run: touch f"], tmp_path)
    blocked = [fact["payload"] for fact in facts if fact["type"] == "quota.blocked"]
    assert blocked == [{"quota": "turns", "remaining": 0}]
    assert snapshot["threads"][0]["status"] == "failed"


# -- the table -----------------------------------------------------------------------------------

_TYPE = re.compile(r"`((?:[a-z_]+)?(?:\.[a-z_]+)+)`")
SCRIPTED = frozenset(
    (
        "tool.failed",
        "process.failed",
        "tool.progress",
        "task.cancelled",
        "routing.single_candidate",
        "subagent.status",
        "subagent.input",
        "subagent.failed",
        "subagent.closed",
        "hook.failed",
        "quota.blocked",
    )
)
"""What needs a failure or a second step: test_run_facts.py and the tests of the adapters have it,
and `quota.blocked` the test above."""
CLAUDE_DOES_NOT = SCRIPTED
CODEX_DOES_NOT = SCRIPTED | {"hook.started", "hook.completed", "turn.failed"}


def facts_of_table() -> set[str]:
    """Return the types of facts in the table of docs/ari.md; `.failed` continues the one before."""
    table = text_of("ari.md").partition("| the runtime | on the screens |")[2].partition("\n\n")[0]
    types: set[str] = set()
    family = ""
    for line in table.splitlines():
        for name in _TYPE.findall(line.rpartition(" | ")[2]):
            family = name.rpartition(".")[0] or family
            types.add(name if name.rpartition(".")[0] else family + name)
    return types


def test_table_names_facts_that_there_are() -> None:
    assert len(facts_of_table()) > 40
    assert facts_of_table() <= FACT_TYPES.keys()
    assert facts_of_table() > SCRIPTED
