"""The parent: talks to an agent over pipes with the standard library only, and prints each message.

    python examples/stdio_child/parent.py "to be or not to be"

Each line of the child's standard input and output is one message as JSON. Sent messages are
printed after `>`, received ones after `<`. In a real program, use `ArpClient`: it does all of
this and keeps the state of the screen.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

Message: TypeAlias = dict[str, Any]

AGENT = Path(__file__).with_name("agent.py")
COMMAND = [sys.executable, "-m", "arp.cli", "serve", str(AGENT), "--stdio"]


class Child:
    """An agent process and the two pipes to it."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def send(self, message: Message) -> None:
        """Write one message."""
        line = json.dumps({"v": 1, **message}, ensure_ascii=False)
        print(">", line)
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def messages(self) -> Iterator[Message]:
        """Read messages until the child closes its output."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            print("<", line.rstrip())
            yield json.loads(line)


@contextmanager
def started(command: list[str]) -> Iterator[Child]:
    """Start the agent; to stop it, close its standard input."""
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
    ) as process:
        yield Child(process)
        assert process.stdin is not None
        process.stdin.close()
        process.wait(timeout=10)


def converse(child: Child, text: str, yes: bool) -> str:
    """Send a text, answer the agent's question, and return the text of the agent."""
    messages = child.messages()
    # 1. The agent side speaks first; then we say what we can show, and get a session.
    wait_for(messages, "hello")
    child.send({"type": "hello", "capabilities": {"components": ["text", "key-value", "confirm"]}})
    session_id = wait_for(messages, "session")["session_id"]

    # 2. The input. The same `id` twice would be one input.
    user_input = {"input_type": "text", "data": {"text": text}, "id": "first"}
    child.send({"type": "input", "session_id": session_id, **user_input})

    # 3. What comes of it. Text counts at once; components count when their commit comes, so the
    #    answer to a question waits for that. The commit that is final ends the turn.
    answer = ""
    question: str | None = None
    for message in messages:
        match message:
            case {"type": "delta", "payload": {"delta": delta}}:
                answer += delta
            case {"type": "render", "components": components}:
                confirms = [each["id"] for each in components if each["type"] == "confirm"]
                question = next(iter(confirms), question)
            case {"type": "commit", "final": True}:
                return answer
            case {"type": "commit"} if question is not None:
                child.send(confirmation(session_id, question, yes))
                question = None
    raise SystemExit("the agent went away in the middle of its turn")


def confirmation(session_id: str, component_id: str, yes: bool) -> Message:
    """Return the answer to a confirm: an action on the component of the question."""
    return {
        "type": "input",
        "session_id": session_id,
        "input_type": "action",
        "data": {"action": "confirm" if yes else "deny"},
        "source_component": component_id,
    }


def wait_for(messages: Iterator[Message], type_name: str) -> Message:
    """Return the next message of this type."""
    for message in messages:
        if message["type"] == type_name:
            return message
    raise SystemExit(f"the agent went away before its {type_name}")


def main(text: str) -> None:
    """Show one conversation."""
    with started(COMMAND) as child:
        answer = converse(child, text, yes=True)
    print(f"\nThe agent said: {answer}")


if __name__ == "__main__":
    main(" ".join(sys.argv[1:]) or "to be or not to be")
