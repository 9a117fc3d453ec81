"""What the agents of `stopped_agents` are asked to do, so that they ask: a story per session."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from tests.runtime.model_script import LEAVING
from tests.runtime.stopped_agents import QUESTION

PERMISSION, QUESTION_KIND = "permission", "question"
COLOURS = [{"label": name, "description": name} for name in ("Red", "Blue")]
OPTIONS = {"question": QUESTION, "header": "Colour", "options": COLOURS}


class Story(NamedTuple):
    """What the user of one session says, and what the agent asks then."""

    says: str
    asks: tuple[str, ...]
    """The kinds of questions that are open at the same time."""
    ran: tuple[str, ...] = ()
    """What the tool has written in the end, once each."""


def command(word: str) -> str:
    """Return a command that leaves a line behind for each time that it runs.

    Each has a file of its own: what is allowed counts while the files that it names are the same.
    """
    return f"echo {word} >> {word}.ran"


def permission(says: str = "run: {}") -> Story:
    """Return the story of a permission."""
    return Story(says.format(command("alone")), (PERMISSION,), ("alone",))


def question(says: str = f'tool: ask_user {{"question": "{QUESTION}"}}') -> Story:
    """Return the story of a question."""
    return Story(says, (QUESTION_KIND,))


def both(says: str) -> Story:
    """Return the story of a permission and a question that are open at the same time."""
    return Story(says, (PERMISSION, QUESTION_KIND), ("both",))


TWO = Story(f"two: {command('one')} @@ {command('two')}", (PERMISSION, PERMISSION), ("one", "two"))


def calls(*named: tuple[str, dict[str, Any]]) -> str:
    """Return what the user says for the model to call tools at once."""
    return f"tools: {' @@ '.join(f'{name} {json.dumps(arguments)}' for name, arguments in named)}"


ASKS_USER = ("ask_user", {"question": QUESTION})
CLAUDE_ASKS = ("AskUserQuestion", {"questions": [OPTIONS]})
CODEX_ASKS = ("request_user_input", {"questions": [{"id": "c", **OPTIONS}]})
SUB_AGENT = {
    "description": "Do it",
    "prompt": f"run: {command('both')}",
    "subagent_type": "general-purpose",
    "run_in_background": False,
}
BY_ITSELF = (permission(), question(), both(f"both: {command('both')}"))
"""Of an agent that has no model."""

STORIES: dict[str, tuple[Story, ...]] = {
    "plain": BY_ITSELF,
    "function": BY_ITSELF,
    "grpc": BY_ITSELF,
    "http": BY_ITSELF,
    "langgraph": (
        permission(),
        question(),
        both(calls(("careful_bash", {"command": command("both")}), ASKS_USER)),
    ),
    "pydantic-ai": (
        permission(),
        question(),
        both(calls(("bash", {"command": command("both")}), ASKS_USER)),
    ),
    "ag-ui": BY_ITSELF,
    # All interruptions of a run are calls that wait for approval.
    "openai-agents": (permission(), TWO),
    # It asks about calls when the other calls of the response have ended.
    "model-agent": (permission(), TWO),
    "model-agent-mcp": (question('tool: order {"item": "tea"}'),),
    # It runs a command behind a question of its user, or before it; a sub-agent works beside it.
    "claude-code": (
        permission(),
        question(f"tool: {CLAUDE_ASKS[0]} {json.dumps(CLAUDE_ASKS[1])}"),
        both(calls(("Agent", SUB_AGENT), CLAUDE_ASKS)),
    ),
    # A question of its user waits for commands, and they for it; commands ask at once.
    "codex": (permission(), question(f"tool: {CODEX_ASKS[0]} {json.dumps(CODEX_ASKS[1])}"), TWO),
    # Over ACP it offers no tool that asks the user; a command waits for the one before.
    "acp:opencode": (permission(),),
}
"""What each kind of agent can ask; tests of `test_stops` show why some have no `both`."""

STOPPED_ONCE = frozenset({"claude-code", "codex"})
"""Agents that ask their model again after a restart, which makes other calls then. A command that
was allowed before runs no second time by itself: either it has run, and the call is asked again, or
the stop has cut it off. So a second stop between two answers asks for more than two answers."""

IN_TURN: dict[str, str] = {
    "model-agent-mcp": calls(("order", {"item": "tea"}), ("bash", {"command": command("alone")})),
    "claude-code": calls(
        CLAUDE_ASKS, ("Bash", {"command": command("alone"), "description": "Do it"})
    ),
    "codex": calls(CODEX_ASKS, ("exec_command", {"cmd": command("alone"), **LEAVING})),
    "acp:opencode": f"two: {command('alone')} @@ {command('second')}",
}
"""What the user says for agents that ask one thing after the other, although the model calls both
tools at once."""
