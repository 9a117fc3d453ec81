"""What the fake model answers: a small language in the text of the user, the same for every CLI.

    the user's text     what the model does
    hello               says "Hello from the model."
    think               thinks "I think before I answer.", then says "I have thought."
    echo: TEXT          says TEXT, which may have several lines
    run: CMD            calls the shell tool with CMD
    two: A @@ B         calls the shell tool with A and with B, in one answer; also more than two
    steps: A @@ B       calls the shell tool with A and, after its result, with B; also more
    write: PATH         calls the tool that writes a new file; its content is "written by the model"
    mcp: S T {JSON}     calls the tool T of the MCP server S, by the name that the CLI gives it
    tool: NAME {JSON}   calls the tool NAME of the CLI with these arguments
    agent: TEXT         lets a sub-agent work, to whom it says TEXT, and waits for it
    slow                says "step 1 step 2 …", ten words a second, until the CLI leaves
    fail 400            answers every request with this HTTP status (any from 400 to 599)
    retry               answers 503, and to the next request says "It worked the second time."
    cut: TEXT           says TEXT, which ends at the limit of output tokens
    limit: 92           says how much of the account's limit of five hours is used, in headers
    anything else       says "You said: " and the text

After a tool has run, the model says "The tool returned: " and what it was told, each of several
results in a paragraph of its own. With images or files in the user's message, the answer to
`hello`, `echo:` and `anything else` begins with lines such as "I received image/png, 68 bytes.".

Only the last text of the user counts, trimmed. Texts that a CLI adds by itself (they begin with a
tag, such as `<system-reminder>`) do not count. A request that offers no tool is the CLI's own (it
wants a title): it gets plain text for every word of the table and never fails.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

HELLO = "Hello from the model."
THINKING = "I think before I answer."
THOUGHT = "I have thought."
WORKED = "It worked the second time."
WRITTEN = "written by the model\n"
INPUT_TOKENS = 11
OUTPUT_TOKENS = 7
CACHED_TOKENS = 3
AGREED = "Your work was interrupted. The user agrees to what you asked for last"
"""What ARP sends an agent whose permission was given after its process had ended."""
ANSWERED = "Your work was interrupted. The user answers:"
"""How the text begins that an agent is sent for an answer of its user after such an end."""
ASKING = ("AskUserQuestion", "request_user_input")
"""Tools of CLIs that ask the user."""
RESETS_AT_S = 4_102_444_800
"""2100: when limits are reset."""
STILL_CUT = "Output token limit hit"
"""What Claude Code asks by itself when an answer was cut off: that answer is cut off, too."""
SLOW_STEPS = 300
SLOW_STEP_S = 0.1


@dataclass(frozen=True)
class Text:
    """A text in the conversation."""

    role: Literal["system", "user", "assistant"]
    text: str


@dataclass(frozen=True)
class Attachment:
    """An image or a file of the user; `size` in bytes, 0 where the model gets an address only."""

    media_type: str
    size: int


@dataclass(frozen=True)
class ToolCall:
    """A call that the model made in an earlier answer; `arguments` as the CLI sent it back."""

    call_id: str
    name: str
    arguments: str


@dataclass(frozen=True)
class ToolResult:
    """What the model is told about a call."""

    call_id: str
    text: str
    is_error: bool = False


Item = Text | Attachment | ToolCall | ToolResult


@dataclass(frozen=True)
class Call:
    """A call that the model makes now."""

    name: str
    arguments: dict[str, object] = field(default_factory=dict)
    text: str | None = None
    """In place of arguments, for a tool that takes text."""
    namespace: str | None = None
    """Whose tool it is, where the CLI names the tools of MCP servers so."""


@dataclass(frozen=True)
class Answer:
    """What the model answers; `step_s` is the pause before each word of the text."""

    text: str = ""
    thinking: str = ""
    calls: Sequence[Call] = ()
    step_s: float = 0.0
    is_cut: bool = False
    """Whether it ends at the limit of output tokens."""
    used_percent: float | None = None
    """Of the limit of five hours; in the headers of the answer."""


@dataclass(frozen=True)
class Failure:
    """An HTTP status in place of an answer."""

    status: int
    message: str


class Script:
    """Answers the requests of one server; remembers for `retry` what has failed already."""

    def __init__(self) -> None:
        self._retries = 0

    def answer(self, items: Sequence[Item], tools: Sequence[str]) -> Answer | Failure:
        """Return the answer to a conversation, with the names of the tools that are offered."""
        user, since = last_user_text(items)
        if not tools:
            return plain_answer(user, items)
        word, _, rest = user.partition(":")
        results = [item for item in since if isinstance(item, ToolResult)]
        steps = [part.strip() for part in rest.split("@@")]
        if word == "agent" and len(results) < len(agent_calls(rest, tools, results)):
            return Answer(calls=agent_calls(rest, tools, results)[len(results) :][:1])
        if word == "steps" and len(results) < len(steps):
            return Answer(calls=[shell_call(steps[len(results)], tools)])
        if results:
            return Answer("\n\n".join(f"The tool returned: {result.text}" for result in results))
        is_late = user.startswith(AGREED)
        if is_late:
            word, _, rest = asked_for(items).partition(":")
        if word in CALLS:
            made = CALLS[word](rest.strip(), tools)
            return Answer(calls=unanswered(made, items) if is_late else made)
        return self._troubled_answer(user) or plain_answer(user, items)

    def _troubled_answer(self, user: str) -> Answer | Failure | None:
        if limit := re.fullmatch(r"limit: (\d+)", user):
            return Answer(f"{limit[1]} % are used.", used_percent=float(limit[1]))
        if user.startswith(("cut:", STILL_CUT)):
            return Answer(user.removeprefix("cut:").strip(), is_cut=True)
        if user == "slow":
            words = [f"step {number}" for number in range(1, SLOW_STEPS + 1)]
            return Answer(" ".join(words), step_s=SLOW_STEP_S)
        if failing := re.fullmatch(r"fail ([45]\d\d)", user):
            return Failure(int(failing[1]), f"the script says: {user}")
        if user == "retry":
            self._retries += 1
            is_first = self._retries % 2 == 1
            return Failure(503, "the script says: fail once") if is_first else Answer(WORKED)
        return None


def plain_answer(user: str, items: Sequence[Item]) -> Answer:
    """Return an answer of text alone."""
    received = [item for item in items_of_last_message(items) if isinstance(item, Attachment)]
    note = "".join(f"I received {a.media_type}, {a.size} bytes.\n" for a in received)
    if user == "think":
        return Answer(THOUGHT, thinking=THINKING)
    if user == "hello":
        return Answer(note + HELLO)
    if user.startswith("echo:"):
        return Answer(note + user.removeprefix("echo:").strip())
    return Answer(f"{note}You said: {user}")


def last_user_text(items: Sequence[Item]) -> tuple[str, Sequence[Item]]:
    """Return the last text that the user typed, and the items after it."""
    for index in range(len(items) - 1, -1, -1):
        item = items[index]
        if isinstance(item, Text) and item.role == "user" and is_typed(item.text):
            return item.text.strip(), items[index + 1 :]
    return "", items


def items_of_last_message(items: Sequence[Item]) -> Sequence[Item]:
    """Return what the user has sent since the model's last word."""
    for index in range(len(items) - 1, -1, -1):
        item = items[index]
        if isinstance(item, ToolCall) or (isinstance(item, Text) and item.role == "assistant"):
            return items[index + 1 :]
    return items


def asked_for(items: Sequence[Item]) -> str:
    """Return the newest text of the user for which the model calls something; else an empty one."""
    texts = [item.text.strip() for item in items if isinstance(item, Text) and item.role == "user"]
    return next((text for text in reversed(texts) if text.partition(":")[0] in CALLS), "")


def unanswered(calls: Sequence[Call], items: Sequence[Item]) -> list[Call]:
    """Return the calls without those that ask the user, if the user has answered late."""
    is_answered = any(isinstance(item, Text) and ANSWERED in item.text for item in items)
    return [call for call in calls if not (is_answered and call.name in ASKING)]


def is_typed(text: str) -> bool:
    """Return whether a user typed it; what CLIs add by themselves begins with a tag or a title."""
    text = text.lstrip()
    return bool(text) and not text.startswith(
        ("<", "# AGENTS.md", "[Request interrupted", "[Image: source")
    )


# The first of the offered tools is taken. Codex asks for permission only where the model wants to
# leave the sandbox and says why.
LEAVING = {"sandbox_permissions": "require_escalated", "justification": "the script asks for it"}


def shell_call(command: str, tools: Sequence[str]) -> Call:
    """Return a call of the shell tool that is offered, under whatever name."""
    forms: dict[str, dict[str, object]] = {
        "Bash": {"command": command, "description": "Run what the script says"},
        "exec_command": {"cmd": command, **LEAVING},
        "shell_command": {"command": command, **LEAVING},
        "bash": {"command": command, "description": "Run what the script says"},
        "run_shell_command": {"command": command, "description": "Run what the script says"},
    }
    name = next((name for name in forms if name in tools), None)
    if name is None:
        raise LookupError(f"no shell tool among {', '.join(tools)}; add its form to model_script")
    return Call(name, forms[name])


def write_call(path: str, tools: Sequence[str]) -> Call:
    """Return a call of the tool that writes a new file."""
    patch = f"*** Begin Patch\n*** Add File: {path}\n+{WRITTEN}*** End Patch\n"
    forms: dict[str, Call] = {
        "Write": Call("Write", {"file_path": path, "content": WRITTEN}),
        "write": Call("write", {"filePath": path, "content": WRITTEN}),
        "write_file": Call("write_file", {"file_path": path, "content": WRITTEN}),
        "apply_patch": Call("apply_patch", text=patch),
    }
    name = next((name for name in forms if name in tools), None)
    if name is None:
        raise LookupError(f"no tool writes files among {', '.join(tools)}; add it to model_script")
    return forms[name]


def mcp_call(rest: str, tools: Sequence[str]) -> Call:
    """Return a call of a tool that an MCP server has brought, from "SERVER TOOL {JSON}"."""
    mcp_server, tool, text = rest.split(" ", 2)
    arguments = json.loads(text)
    for name in (f"mcp__{mcp_server}__{tool}", f"{mcp_server}_{tool}"):
        if name in tools:
            return Call(name, arguments)
    if "tool_search" in tools:
        # Codex does not list them, but takes calls of those that it has not listed.
        return Call(tool, arguments, namespace=f"mcp__{mcp_server}")
    raise LookupError(f"no tool {tool} of {mcp_server} among {', '.join(tools)}")


def agent_calls(rest: str, tools: Sequence[str], results: Sequence[ToolResult]) -> list[Call]:
    """Return the calls that let a sub-agent work, one after the other; as far as they are known."""
    prompt = rest.strip()
    told: dict[str, object] = {"description": "Do what the script says", "prompt": prompt}
    if "Agent" in tools:
        kind = {"subagent_type": "general-purpose", "run_in_background": False}
        return [Call("Agent", told | kind)]
    if "task" in tools:
        return [Call("task", told | {"subagent_type": "general"})]
    if "tool_search" not in tools:
        raise LookupError(f"no tool for sub-agents among {', '.join(tools)}; add it to the script")
    # Codex does not list them, but takes calls of those that it has not listed.
    calls = [Call("spawn_agent", {"message": prompt}, namespace="multi_agent_v1")]
    if results:
        waits: dict[str, object] = {"targets": [json.loads(results[0].text)["agent_id"]]}
        calls.append(Call("wait_agent", waits, namespace="multi_agent_v1"))
    return calls


def named_call(rest: str) -> Call:
    """Return a call of any tool, from "NAME {JSON}" or "NAMESPACE/NAME {JSON}"."""
    named, arguments = rest.split(" ", 1)
    namespace, _, name = named.rpartition("/")
    return Call(name, json.loads(arguments), namespace=namespace or None)


CALLS: dict[str, Callable[[str, Sequence[str]], list[Call]]] = {
    "run": lambda rest, tools: [shell_call(rest, tools)],
    "two": lambda rest, tools: [shell_call(part.strip(), tools) for part in rest.split("@@")],
    "write": lambda rest, tools: [write_call(rest, tools)],
    "mcp": lambda rest, tools: [mcp_call(rest, tools)],
    "tool": lambda rest, tools: [named_call(rest)],
    "tools": lambda rest, tools: [named_call(part.strip()) for part in rest.split("@@")],
}
"""What the words of the table call, given what stands behind the colon."""
