"""Speaks as `codex app-server` does, for what the real one cannot be made to do.

The text of a message says what happens in its turn; each scenario is a function below. Started as a
program with the arguments of Codex, which are ignored: what it gets as `CODEX_HOME` is where it
writes the answers to its questions, one JSON object a line.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

THREAD = "0190a0f4-0000-7000-8000-000000000001"
AGENT = "0190a0f4-0000-7000-8000-000000000002"
TURN = "0190a0f4-0000-7000-8000-000000000003"
ABOUT = {"threadId": THREAD, "turnId": TURN}


def send(**message: Any) -> None:
    """Write one message."""
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def tell(method: str, **params: Any) -> None:
    """Send a notification about the turn."""
    send(method=method, params={**ABOUT, **params})


def say(text: str) -> None:
    """Say something as the agent."""
    tell("item/agentMessage/delta", itemId="m1", delta=text)


def end(status: str = "completed") -> None:
    """End the turn."""
    tell("turn/completed", turn={"id": TURN, "status": status, "items": []})


def ask(request_id: int, method: str, **params: Any) -> Any:
    """Ask, and return the answer."""
    send(id=request_id, method=method, params={**ABOUT, **params})
    while True:
        message = json.loads(sys.stdin.readline())
        if message.get("id") == request_id and "method" not in message:
            answer = message.get("result", message.get("error"))
            with (Path(os.environ["CODEX_HOME"]) / "answers").open("a") as answers:
                answers.write(json.dumps(answer) + "\n")
            return answer
        answer_call(message)


def garbage() -> None:
    """Write what is no JSON-RPC between two deltas."""
    say("be")
    sys.stdout.write('Warning: something\n\n[1, 2]\n{"method": 7}\n')
    tell("item/agentMessage/delta", itemId="m1")
    tell("item/started", item={"type": 7})
    tell("of/the/future", x=1)
    say("fore")
    end()


def half_a_line() -> None:
    """End in the middle of a line."""
    say("hello")
    sys.stdout.write('{"method": "turn/compl')
    sys.stdout.flush()
    os._exit(0)


def plan() -> None:
    """Update the plan."""
    steps = [("one", "completed"), ("two", "inProgress"), ("three", "pending")]
    tell(
        "turn/plan/updated",
        explanation="In this order",
        plan=[{"step": step, "status": status} for step, status in steps],
    )
    end()


def two_messages() -> None:
    """Say two things, the second one without deltas."""
    say("One.")
    tell("item/completed", item={"type": "agentMessage", "id": "m1", "text": "One."})
    tell("item/completed", item={"type": "agentMessage", "id": "m2", "text": "Two."})
    end()


def agent() -> None:
    """Let an agent with a thread of its own ask for a command."""
    spawn = {"type": "collabAgentToolCall", "id": "s1", "tool": "spawnAgent", "prompt": "Look"}
    tell("item/started", item=spawn)
    thread = {"id": AGENT, "parentThreadId": THREAD, "agentNickname": "Ada"}
    send(method="thread/started", params={"thread": thread})
    tell("item/completed", item={**spawn, "status": "completed", "receiverThreadIds": [AGENT]})
    about = {"threadId": AGENT, "turnId": "t2"}
    command = {"type": "commandExecution", "id": "c1", "command": "touch x", "cwd": "/"}
    tell("item/agentMessage/delta", **about, itemId="m9", delta="only for its parent")
    item = {"type": "agentMessage", "id": "m9", "text": "only for its parent"}
    tell("item/completed", **about, item=item)
    tell("item/started", **about, item=command)
    ask(7, "item/commandExecution/requestApproval", **about, itemId="c1", command="touch x")
    tell("item/completed", **about, item={**command, "status": "declined"})
    counts = {"inputTokens": 5, "outputTokens": 2, "totalTokens": 7}
    tell("thread/tokenUsage/updated", **about, tokenUsage={"last": counts, "total": counts})
    tell("turn/completed", **about, turn={"id": "t2", "status": "completed", "items": []})
    more = {"type": "collabAgentToolCall", "id": "s2", "prompt": "And there", "tool": "sendInput"}
    tell("item/completed", item={**more, "status": "completed", "receiverThreadIds": [AGENT]})
    failed = {"id": "t3", "status": "failed", "error": {"message": "no"}, "items": []}
    tell("turn/completed", **about, turn=failed)
    close = {"type": "collabAgentToolCall", "id": "s3", "tool": "closeAgent"}
    tell("item/completed", item={**close, "status": "completed", "receiverThreadIds": [AGENT]})
    end()


def two_agents() -> None:
    """Let two agents begin at once; the calls end in the other order."""
    looks = {"type": "collabAgentToolCall", "id": "s1", "tool": "spawnAgent", "prompt": "Look"}
    hears = {**looks, "id": "s2", "prompt": "Listen"}
    for item in (looks, hears):
        tell("item/started", item=item)
    for agent_id, name in ((AGENT, "Ada"), (f"{AGENT}-b", "Bob")):
        thread = {"id": agent_id, "parentThreadId": THREAD, "agentNickname": name}
        send(method="thread/started", params={"thread": thread})
    done = {"status": "completed"}
    tell("item/completed", item={**hears, **done, "receiverThreadIds": [f"{AGENT}-b"]})
    tell("item/completed", item={**looks, **done, "receiverThreadIds": [AGENT]})
    end()


def limits() -> None:
    """Tell how much of the account's limits is used, as it rises."""

    def used(percent: float, **more: Any) -> None:
        primary = {"usedPercent": percent, "windowDurationMins": 300, "resetsAt": 4102444800}
        secondary = {"usedPercent": 10, "windowDurationMins": 10080}
        limits = {"limitId": "codex", "primary": primary, "secondary": secondary, **more}
        send(method="account/rateLimits/updated", params={"rateLimits": limits})

    for percent in (50, 81, 82, 91, 100):
        used(percent)
    used(20)
    used(85)
    used(85, rateLimitReachedType="workspace_owner_credits_depleted")
    end()


def hooks() -> None:
    """Run two hooks: one forbids something, one fails."""
    run = {"id": "h1", "eventName": "preToolUse", "status": "running", "statusMessage": "lint"}
    tell("hook/started", run=run)
    said = [{"kind": "feedback", "text": "not so"}]
    tell("hook/completed", run={**run, "status": "blocked", "durationMs": 4, "entries": said})
    other = {"id": "h2", "eventName": "stop", "status": "failed"}
    tell("hook/completed", run={**other, "entries": [{"kind": "error", "text": "exit 2"}]})
    end()


def address() -> None:
    """Let an MCP server ask the user to open an address."""
    ask(
        8,
        "mcpServer/elicitation/request",
        serverName="login",
        mode="url",
        message="Log in",
        url="https://example.org/login",
        elicitationId="e1",
    )
    end()


def form() -> None:
    """Let an MCP server ask for values."""
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    ask(
        8,
        "mcpServer/elicitation/request",
        serverName="weather",
        mode="form",
        message="Where?",
        requestedSchema=schema,
    )
    end()


def nobody() -> None:
    """Ask what no user can answer."""
    ask(9, "item/tool/call", callId="c", tool="x", arguments={})
    ask(10, "mcpServer/elicitation/request", mode="openai/userVerification", serverName="s")
    ask(11, "account/chatgptAuthTokens/refresh", reason="unauthorized")
    ask(12, "currentTime/read")
    end()


def withdrawn() -> None:
    """Ask, and take it back."""
    item = {"type": "commandExecution", "id": "c1", "command": "touch x", "cwd": "/"}
    tell("item/started", item=item)
    params = {**ABOUT, "itemId": "c1", "command": "touch x"}
    send(id=13, method="item/commandExecution/requestApproval", params=params)
    tell("serverRequest/resolved", requestId=13)
    tell("item/completed", item={**item, "status": "failed"})
    end()


def own_turn() -> None:
    """End the turn, and begin another one that nobody asked for."""
    end()
    other = {"id": "t9", "status": "inProgress", "items": []}
    tell("turn/started", turnId=None, turn=other)
    tell("item/agentMessage/delta", turnId="t9", itemId="m5", delta="by myself")
    tell("turn/completed", turnId=None, turn={**other, "status": "completed"})


def deaf() -> None:
    """Say something, and do not end."""
    say("I go on")


SCENARIOS: dict[str, Callable[[], None]] = {
    scenario.__name__: scenario
    for scenario in (
        garbage,
        half_a_line,
        plan,
        two_messages,
        agent,
        two_agents,
        limits,
        hooks,
        address,
        form,
        nobody,
        withdrawn,
        own_turn,
        deaf,
    )
}


def answer_call(message: dict[str, Any]) -> None:
    """Answer a call of the client, and play the turn that it begins."""
    if "id" not in message or "method" not in message:
        return
    thread = {"id": THREAD, "cwd": os.getcwd()}
    opened = {
        "thread": thread,
        "model": "m",
        "modelProvider": "p",
        "approvalPolicy": "on-request",
        "sandbox": {"type": "workspaceWrite"},
    }
    results: dict[str, Any] = {
        "initialize": {"userAgent": "arp/0.163.0 (scripted)"},
        "thread/start": opened,
        "thread/resume": opened,
        "thread/read": {"thread": thread},
        "turn/start": {"turn": {"id": TURN}},
    }
    send(id=message["id"], result=results.get(message["method"], {}))
    if message["method"] == "turn/start":
        tell("turn/started", turnId=None, turn={"id": TURN})
        SCENARIOS[message["params"]["input"][0]["text"]]()


if __name__ == "__main__":
    for line in sys.stdin:
        answer_call(json.loads(line))
