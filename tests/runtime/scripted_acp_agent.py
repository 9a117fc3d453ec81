"""Speaks the Agent Client Protocol, in orders that OpenCode does not produce.

The text of a prompt says what happens in its turn; each scenario is a function below. Started as a
program: `scripted_acp_agent.py '{JSON}'`, where the JSON says how this agent is:

    capabilities    `agentCapabilities`
    setup           what `session/new`, `load` and `resume` answer besides the id
    stored          ids of the sessions that it has
    version         of the protocol
    log_in          no session is opened without a login
    cwd             of those
    late_replay     a load is answered before its history is sent
    commands_after  the method with whose answer the commands are told
    takes           the mode that it takes, whatever is wanted
    usage           what each turn used

What it is answered and told goes to the file `log` in its directory, one JSON value a line.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

HOW: dict[str, Any] = {}
SESSION = "s1"
ONCE = {"optionId": "yes", "kind": "allow_once", "name": "Allow"}
ALWAYS = {"optionId": "all", "kind": "allow_always", "name": "Always allow git"}
REJECT = {"optionId": "no", "kind": "reject_once", "name": "Reject"}
OPTIONS = [ONCE, ALWAYS, REJECT]
is_cancelled = False
after_turn: list[Callable[[], None]] = []
"""What is done when the turn is over."""


def send(**message: Any) -> None:
    """Write one message."""
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def log(value: Any) -> None:
    """Write down what it was told."""
    with Path("log").open("a") as file:
        file.write(json.dumps(value) + "\n")


def update(what: str, /, **fields: Any) -> None:
    """Tell something about the session."""
    send(
        method="session/update",
        params={"sessionId": SESSION, "update": {"sessionUpdate": what, **fields}},
    )


def say(text: str, **fields: Any) -> None:
    """Say something as the model."""
    update("agent_message_chunk", content={"type": "text", "text": text}, **fields)


def ask(request_id: Any, options: Any = OPTIONS, **call: Any) -> Any:
    """Ask for permission, and return the answer."""
    request(request_id, options, **call)
    return answers(request_id)[request_id]


def request(request_id: Any, options: Any = OPTIONS, **call: Any) -> None:
    """Ask for permission."""
    params = {"sessionId": SESSION, "toolCall": call, "options": options}
    send(id=request_id, method="session/request_permission", params=params)


def answers(*request_ids: Any) -> dict[Any, Any]:
    """Return the answers to several requests."""
    found: dict[Any, Any] = {}
    while set(found) != set(request_ids):
        message = next_message()
        if "method" not in message:
            found[message["id"]] = message.get("result", message.get("error"))
            log(found[message["id"]])
    return found


def next_message() -> Any:
    """Return the next message; those that the client sends by itself are taken."""
    global is_cancelled
    line = sys.stdin.readline()
    if not line:
        os._exit(0)
    message = json.loads(line)
    if message.get("method") == "session/cancel":
        is_cancelled = True
        log("cancel")
    return message


# -- turns ---------------------------------------------------------------------------------------


def out_of_tokens() -> str:
    """Say half of something: the model's limit of output tokens is reached."""
    say("Half")
    return "max_tokens"


def out_of_requests() -> str:
    """Say nothing: the agent's limit of requests to a model in one turn is reached."""
    return "max_turn_requests"


def two_ways() -> str:
    """Ask with two ways to allow one call, as a plan that can be carried out in two modes."""
    ways = [
        {"optionId": "plan", "kind": "allow_once", "name": "Proceed in plan mode"},
        {"optionId": "edit", "kind": "allow_once", "name": "Proceed and edit"},
    ]
    answer = ask(0, [*ways, REJECT], toolCallId="c1", title="plan", rawInput={"steps": 1})
    say(json.dumps(answer["outcome"].get("optionId")))
    return "end_turn"


def unannounced() -> str:
    """Ask about a call that was not announced, as Gemini CLI does; then run it without output."""
    call = {"toolCallId": "c1", "title": "git push", "kind": "execute"}
    answer = ask(0, **call)
    if answer["outcome"].get("optionId") != "no":
        update("tool_call_update", toolCallId="c1", status="completed", content=[])
    say("done")
    return "end_turn"


def silent() -> str:
    """Announce a call, ask about it, and tell nothing more of it."""
    call = {"toolCallId": "c1", "kind": "execute", "rawInput": {"command": "git push"}}
    update("tool_call", title="shell", status="pending", **call)
    ask(0, toolCallId="c1")
    say("done")
    return "end_turn"


def cut_off() -> str:
    """End the turn as cancelled when something is denied, as some adapters do."""
    call = {"toolCallId": "c1", "title": "git push", "kind": "execute"}
    answer = ask(0, **call)
    return "cancelled" if answer["outcome"].get("optionId") == "no" else "end_turn"


def two() -> str:
    """Ask about two calls at once."""
    for number in (1, 2):
        call = {"toolCallId": f"c{number}", "rawInput": {"command": f"touch {number}"}}
        update("tool_call", title="shell", kind="execute", status="pending", **call)
        request(f"r{number}", toolCallId=f"c{number}")
    got = answers("r1", "r2")
    for number in (1, 2):
        status = "completed" if got[f"r{number}"]["outcome"].get("optionId") == "yes" else "failed"
        update("tool_call_update", toolCallId=f"c{number}", status=status)
    return "cancelled" if is_cancelled else "end_turn"


def withdrawn() -> str:
    """Ask, and no longer wait for the answer."""
    request(7, toolCallId="c1", title="git push", kind="execute")
    send(method="$/cancel_request", params={"requestId": 7})
    answers(7)
    return "end_turn"


def only_always() -> str:
    """Ask with no permission for the one call."""
    ask(1, [ALWAYS], toolCallId="c1", title="git push", kind="execute")
    return "end_turn"


def odd_names() -> str:
    """Have commands and plans that do not fit, or are none."""
    listed = [
        {"name": "memory", "description": "Works with memory"},
        {"name": "memory show", "description": "Shows the memory"},
        {"name": "memory add", "description": "Adds to it"},
        {"name": "tab\tbed", "description": "is two words"},
        {"name": "x" * 100, "description": "is too long"},
        {"description": "has no name"},
        {"name": "init", "description": "d" * 90_000},
        7,
    ]
    update("available_commands_update", availableCommands=listed)
    update("plan", entries=[7, {"content": "one", "status": []}, {"content": "two"}])
    update("tool_call", toolCallId="", title="", kind="", status="in_progress")
    update("tool_call_update", toolCallId="", status="completed")
    say("hello")
    return "end_turn"


def deaf() -> str:
    """Hear nothing any more."""
    say("I go on")
    command = [sys.executable, "-c", "import time; time.sleep(600)"]
    subprocess.Popen(command, start_new_session=True)
    say("!")
    while True:
        signal.pause()


def dies() -> str:
    """End in the middle of a line, with a command running in a session of its own."""
    say("hello")
    command = [sys.executable, "-c", "import time; time.sleep(600)"]
    subprocess.Popen(command, start_new_session=True, stdin=subprocess.DEVNULL)
    sys.stderr.write("out of luck\n")
    sys.stdout.write('{"jsonrpc": "2.0", "method": "session/upd')
    sys.stdout.flush()
    os._exit(3)


def garbage() -> str:
    """Write what is no ACP between two chunks."""
    say("be")
    sys.stdout.write('Warning: something\n\n[1, 2]\n{"method": 7}\n')
    update("tool_call", title="no id")
    update("agent_message_chunk", content=7)
    update("of_the_future", x=1)
    send(method="session/update", params={})
    send(id="x", method="fs/write_text_file", params={"path": "/etc/passwd", "content": ""})
    say("fore")
    answers("x")
    return "end_turn"


def terminal() -> str:
    """Run a command whose output comes bit by bit, edit a file, and plan."""
    update("tool_call", toolCallId="c1", title="Run tests", kind="execute", status="in_progress")
    for text in ("one\n", "two\n"):
        meta = {"terminal_output": {"terminal_id": "c1", "data": text}}
        update("tool_call_update", toolCallId="c1", _meta=meta)
    update("tool_call_update", toolCallId="c1", _meta={"terminal_exit": {"exit_code": 2}})
    shown = [{"type": "terminal", "terminalId": "c1"}]
    update("tool_call_update", toolCallId="c1", status="failed", content=shown)
    diff = {"type": "diff", "path": "/a", "oldText": None, "newText": "new"}
    edit = {"toolCallId": "c2", "title": "Edit a", "kind": "edit", "content": [diff]}
    update("tool_call", status="completed", _meta={"toolName": "replace"}, **edit)
    entries = [("one", "completed"), ("two", "in_progress"), ("three", "pending")]
    listed = [{"content": text, "status": status, "priority": "low"} for text, status in entries]
    update("plan", entries=listed)
    update("usage_update", used=100, size=1000, cost={"amount": 0.25, "currency": "USD"})
    say("one", messageId="m1")
    say("two", messageId="m2")
    return "end_turn"


def dearer() -> str:
    """Tell a higher price of the session."""
    update("usage_update", used=100, size=1000, cost={"amount": 0.75, "currency": "USD"})
    return "end_turn"


def exits() -> str:
    """Complete a command that has failed, as OpenCode does."""
    output = {"output": "", "metadata": {"exit": 3}}
    update("tool_call", toolCallId="c1", kind="execute", status="completed", rawOutput=output)
    return "end_turn"


def held() -> str:
    """Announce a call without its input, and say something before it comes to more."""
    update("tool_call", toolCallId="c1", title="fetch", kind="fetch", status="pending")
    say("I wait")
    return "max_tokens"


def sub_agent() -> str:
    """Start a sub-agent by a tool, which calls a tool itself; the context fills meanwhile."""
    task = {"subagent_type": "explore", "prompt": "Find it", "description": "Find"}
    call = {"toolCallId": "c1", "title": "task", "kind": "think", "rawInput": task}
    update("tool_call", status="in_progress", **call)
    meta = {"claudeCode": {"toolName": "Grep", "parentToolUseId": "c1"}}
    inner = {"toolCallId": "c2", "title": "grep", "kind": "search", "rawInput": {"pattern": "x"}}
    update("tool_call", status="in_progress", _meta=meta, **inner)
    update("tool_call_update", toolCallId="c2", status="completed", rawOutput="here")
    update("usage_update", used=120, size=1000)
    update("tool_call_update", toolCallId="c1", status="completed", rawOutput="It is here")
    return "end_turn"


def commands() -> str:
    """Have another command when the turn is over."""
    listed = [{"name": "review", "description": "Look at the changes", "input": {"hint": "what"}}]

    def later() -> None:
        update("available_commands_update", availableCommands=listed)

    after_turn.append(later)
    return "end_turn"


def refuses() -> str:
    """Refuse to go on."""
    return "refusal"


def echo() -> str:
    """Say something."""
    say("hello")
    return "end_turn"


SCENARIOS: dict[str, Callable[[], str]] = {
    one.__name__: one
    for one in (
        unannounced,
        silent,
        cut_off,
        out_of_tokens,
        out_of_requests,
        two,
        withdrawn,
        only_always,
        two_ways,
        odd_names,
        deaf,
        dies,
        garbage,
        terminal,
        dearer,
        exits,
        held,
        sub_agent,
        commands,
        refuses,
        echo,
    )
}


# -- sessions ------------------------------------------------------------------------------------


def replay() -> None:
    """Send the history of a session."""
    update("user_message_chunk", content={"type": "text", "text": "before"})
    say("what was said before")
    update("tool_call", toolCallId="old", title="old", kind="execute", status="completed")
    announce_commands()


def announce_commands() -> None:
    """Tell the commands of the session."""
    update("available_commands_update", availableCommands=[{"name": "init", "description": "x"}])


def open_session(request_id: Any, method: str, params: Any) -> None:
    """Answer `session/new`, `load` or `resume`."""
    log({method: params})
    setup = HOW.get("setup", {})
    if HOW.get("log_in"):
        error = {"code": -32000, "message": "Authentication required"}
        return send(id=request_id, error=error)
    if method == "session/resume" and not HOW.get("resumes", True):
        error = {"code": -32601, "message": "Method not found"}
        return send(id=request_id, error=error)
    if method == "session/load" and not HOW.get("late_replay"):
        replay()
    answer = {"sessionId": SESSION, **setup} if method == "session/new" else setup
    send(id=request_id, result=answer)
    if method == "session/load" and HOW.get("late_replay"):
        replay()
    return None


def answered(method: str, params: Any) -> Any:
    """Return the result of any other request."""
    match method:
        case "initialize":
            methods = [{"id": "login", "name": "Log in", "description": "run `agent login`"}]
            return {
                "protocolVersion": HOW.get("version", 1),
                "agentCapabilities": HOW.get("capabilities", {}),
                "agentInfo": {"name": "scripted", "version": "1.2.3"},
                "authMethods": methods,
            }
        case "session/list":
            stored = HOW.get("stored", [])
            start = int(params.get("cursor") or 0)
            page = [
                {"sessionId": one, "cwd": HOW.get("cwd", os.getcwd())}
                for one in stored[start : start + 2]
            ]
            more = start + 2 < len(stored)
            return {"sessions": page, "nextCursor": str(start + 2) if more else None}
        case "session/set_mode":
            log({method: params})
            mode = HOW.get("takes", params["modeId"])
            update("current_mode_update", currentModeId=mode)
            return {}
        case "session/set_model" | "session/delete":
            log({method: params})
            return {}
    return None


def main() -> None:
    """Answer requests until the input ends."""
    global is_cancelled
    HOW.update(json.loads(sys.argv[1]))
    while True:
        message = next_message()
        method, params = message.get("method", ""), message.get("params", {})
        if "id" not in message:
            continue
        if method in ("session/new", "session/load", "session/resume"):
            open_session(message["id"], method, params)
        elif method == "session/prompt":
            is_cancelled = False
            text = params["prompt"][0]["text"]
            if text not in SCENARIOS:
                log({"prompt": text})
            reason = SCENARIOS.get(text, echo)()
            used = {"usage": HOW["usage"]} if "usage" in HOW else {}
            send(id=message["id"], result={"stopReason": reason, **used})
            while after_turn:
                after_turn.pop()()
        else:
            result = answered(method, params)
            if method == HOW.get("commands_after"):
                announce_commands()
            known = {"result": result} if result is not None else {"error": {"code": -32601}}
            send(id=message["id"], **known)


if __name__ == "__main__":
    main()
