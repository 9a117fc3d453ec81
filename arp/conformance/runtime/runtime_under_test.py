"""`RuntimeUnderTest`: what the author of a runtime implements for the suite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, Protocol

import msgspec

from arp.runtime.contract.services import RuntimeService

OutputFault = Literal["garbage", "cut"]
"""`garbage`: the agent's program writes an invalid line before its first text. `cut`: its output
ends in the middle of the line with the first text."""


class NotShown(Exception):
    """Nothing makes the runtime or its agent do what a case needs; the message says why."""


class Prompts(msgspec.Struct, frozen=True):
    """The prompts that make the agent do something; an empty one: nothing makes it do that.

    `{command}` is a shell command that the agent runs as a tool call, after asking for permission.
    """

    hello: str = "hello"
    """The agent says `hello_text`."""
    hello_text: str = "Hello from the model."
    echo: str = "echo: {text}"
    """The agent says the text."""
    think: str = "think"
    """The agent thinks, then says something."""
    look: str = "hello"
    """The agent names the media types of the images that it received."""
    run: str = "run: {command}"
    """The agent runs the command."""
    use: str = ""
    """The agent calls a tool of its own: `{tool}`, one of `own_tools`."""
    two: str = "two: {command} @@ {other}"
    """The agent makes two calls in one answer."""
    slow: str = "slow"
    """The agent writes output for longer than a case waits."""
    fail: str = "fail {status}"
    """The model answers with this HTTP status."""
    retry: str = "retry"
    """The model answers once with an error, then with a text."""


class RuntimeUnderTest(Protocol):
    """One kind of runtime; each case gets a new object with empty storage."""

    name: str
    """Its name in the matrix."""
    cwd: Path
    """The directory of the runtime."""
    prompts: Prompts = Prompts()
    fields: Mapping[str, str] = {}
    """Fields of every `create_session` and `resume_session` request, such as the model."""
    own_tools: Sequence[str] = ()
    """Calls of the agent's own tools that read `secret.txt`, search for it, write a file or reach
    the network, as the prompt `use` takes them."""
    asks_at_once: bool = True
    """Whether the agent asks about the calls of one answer together, not one after the other."""
    marks_failures: bool = True
    """Whether the agent marks the result of a failed tool as an error."""
    other_model: str = ""
    """Another model that sessions can use; empty: there is none."""
    case_s: float = 50.0
    """How long a case may take; more for an agent that is slow to start."""
    not_shown: Mapping[str, str] = {}
    """Cases that cannot be checked with this agent and are not run: case name → reason."""

    def make(self) -> RuntimeService:
        """Return a new runtime object; all of them share one storage, like several processes."""
        ...

    def make_in(self, cwd: Path) -> RuntimeService:
        """Return a runtime object of another directory, over the same storage.

        Raises:
            NotShown: The runtime has a storage of its own, which no other program writes.
        """
        raise NotShown("nobody else keeps sessions where it keeps its own")

    def make_behind(self, fault: OutputFault) -> RuntimeService:
        """Return a runtime object whose agent's program has a fault in its output.

        Raises:
            NotShown: The runtime has no such program.
        """
        raise NotShown(f"no program whose output could have the fault {fault!r}")

    async def kill(self, runtime: RuntimeService, session_id: str) -> None:
        """Kill the program of a session at once, as `kill -9` does.

        Raises:
            NotShown: The runtime has no such program.
        """
        raise NotShown("no program that could be killed")

    def processes(self) -> Sequence[int]:
        """Return the ids of the running processes that the runtime has started.

        Raises:
            NotShown: The runtime starts no processes.
        """
        raise NotShown("it starts no processes")

    def told(self) -> Sequence[str]:
        """Return the user texts and tool results in the last request to the model.

        Raises:
            NotShown: The requests to the model cannot be seen.
        """
        raise NotShown("nobody knows what the model is told")

    def has_run(self, name: str) -> bool:
        """Return whether the command `touch NAME` ran."""
        return (self.cwd / name).exists()

    def end(self) -> None:
        """Stop what this object has started; called once, after the case."""
        return


class RuntimeFactory(Protocol):
    """The factory that `arp conformance runtime module:factory` names."""

    def __call__(self, directory: Path, /) -> RuntimeUnderTest:
        """Return a runtime under test whose storage is below an empty directory."""
        ...
