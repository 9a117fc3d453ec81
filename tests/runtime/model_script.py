"""What the fake model answers: a small language in the text of the user, the same for every CLI.

    the user's text     what the model does
    hello               says "Hello from the model."
    think               thinks "I think before I answer.", then says "I have thought."
    echo: TEXT          says TEXT, which may have several lines
    run: CMD            calls the shell tool with CMD
    two: A @@ B         calls the shell tool with A and with B, in one answer; also more than two
    steps: A @@ B       calls the shell tool with A and, after its result, with B; also more
    write: PATH         calls the tool that writes a new file; its content is "written by the model"
    tool: NAME {JSON}   calls the tool NAME, which must be offered, with these arguments
    slow                says "step 1 step 2 …", ten words a second, until the CLI leaves
    fail 400            answers every request with this HTTP status (any from 400 to 599)
    retry               answers 503, and to the next request says "It worked the second time."
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
from collections.abc import Sequence
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
SLOW_WORDS = 600
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
    """A call that the model makes now; a tool that takes text has `text`, not `arguments`."""

    name: str
    arguments: dict[str, object] = field(default_factory=dict)
    text: str | None = None


@dataclass(frozen=True)
class Answer:
    """What the model answers; `step_s` is the pause before each word of the text."""

    text: str = ""
    thinking: str = ""
    calls: Sequence[Call] = ()
    step_s: float = 0.0


@dataclass(frozen=True)
class Failure:
    """An HTTP status in place of an answer."""

    status: int
    message: str


class Script:
    """Answers the requests of one server; remembers for `retry` what has failed already."""

    def __init__(self) -> None:
        self._retried = 0

    def answer(self, items: Sequence[Item], tools: Sequence[str]) -> Answer | Failure:
        """Return the answer to a conversation, with the names of the tools that are offered."""
        user, since = last_user_text(items)
        results = [item for item in since if isinstance(item, ToolResult)]
        received = [item for item in items_of_last_message(items) if isinstance(item, Attachment)]
        if not tools:
            return self._plain(user, received)
        word, _, rest = user.partition(":")
        rest = rest.strip()
        steps = [part.strip() for part in rest.split("@@")]
        if word == "steps" and len(results) < len(steps):
            return Answer(calls=[shell_call(steps[len(results)], tools)])
        if results:
            return Answer(text="\n\n".join(f"The tool returned: {r.text}" for r in results))
        if word == "run":
            return Answer(calls=[shell_call(rest, tools)])
        if word == "two":
            return Answer(calls=[shell_call(part, tools) for part in steps])
        if word == "write":
            return Answer(calls=[write_call(rest, tools)])
        if word == "tool":
            return self._named_call(rest, tools)
        if user == "slow":
            steps = [f"step {number}" for number in range(1, SLOW_WORDS // 2 + 1)]
            return Answer(text=" ".join(steps), step_s=SLOW_STEP_S)
        if failing := re.fullmatch(r"fail (\d{3})", user):
            return Failure(int(failing[1]), f"the script says: fail {failing[1]}")
        if user == "retry":
            self._retried += 1
            if self._retried % 2:
                return Failure(503, "the script says: fail once")
            return Answer(text=WORKED)
        return self._plain(user, received)

    def _named_call(self, rest: str, tools: Sequence[str]) -> Answer | Failure:
        name, _, arguments = rest.partition(" ")
        if name not in tools:
            return Answer(text=f"There is no tool {name}. There are: {', '.join(tools)}.")
        return Answer(calls=[Call(name, json.loads(arguments or "{}"))])

    def _plain(self, user: str, received: Sequence[Attachment]) -> Answer:
        note = "".join(f"I received {a.media_type}, {a.size} bytes.\n" for a in received)
        if user == "think":
            return Answer(text=THOUGHT, thinking=THINKING)
        if user == "hello":
            return Answer(text=note + HELLO)
        if user.startswith("echo:"):
            return Answer(text=note + user.removeprefix("echo:").strip())
        return Answer(text=f"{note}You said: {user}")


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


def is_typed(text: str) -> bool:
    """Return whether a user typed it; what CLIs add by themselves begins with a tag or a title."""
    text = text.lstrip()
    return bool(text) and not text.startswith(("<", "# AGENTS.md", "[Request interrupted"))


# The first of the offered tools is taken. Codex asks for permission only where the model wants to
# leave the sandbox and says why.
_LEAVING = {"sandbox_permissions": "require_escalated", "justification": "the script asks for it"}


def shell_call(command: str, tools: Sequence[str]) -> Call:
    """Return a call of the shell tool that is offered, under whatever name."""
    forms: dict[str, dict[str, object]] = {
        "Bash": {"command": command, "description": "Run what the script says"},
        "exec_command": {"cmd": command, **_LEAVING},
        "shell_command": {"command": command, **_LEAVING},
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
