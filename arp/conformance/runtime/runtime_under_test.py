"""`RuntimeUnderTest`: the interface that the author of a runtime implements for the suite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, Protocol

import msgspec

from arp.conformance.cases import CaseUnreachable as CaseUnreachable
from arp.runtime.contract.services import RuntimeService

OutputFault = Literal["garbage", "cut"]
"""Fault in the output of the agent's program. `garbage`: an invalid line before the first text.
`cut`: the output ends in the middle of the line with the first text."""


NotShown = CaseUnreachable
"""Former name; older implementations of `RuntimeUnderTest` may still raise it."""


class Prompts(msgspec.Struct, frozen=True):
    """Prompts that each make the agent do one thing; empty if the agent cannot do it.

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
    """Name of the runtime in the matrix."""
    cwd: Path
    """Directory of the runtime."""
    prompts: Prompts = Prompts()
    fields: Mapping[str, str] = {}
    """Fields of every `create_session` and `resume_session` request, such as the model."""
    own_tools: Sequence[str] = ()
    """Calls of the agent's own tools that read `secret.txt`, search for it, write a file or use the
    network. Each is a value of `{tool}` in the prompt `use`."""
    asks_at_once: bool = True
    """Whether the agent requests all permissions for the calls of one answer at the same time."""
    marks_failures: bool = True
    """Whether the agent marks the result of a failed tool as an error."""
    other_model: str = ""
    """Another model that sessions can use; empty if there is none."""
    case_s: float = 50.0
    """Time limit of a case in seconds; higher for an agent that starts slowly."""
    not_shown: Mapping[str, str] = {}
    """Cases that cannot be checked with this agent and are not run: reason by case name."""

    def make(self) -> RuntimeService:
        """Return a new runtime object; all of them share one storage, as several processes do."""
        ...

    def make_in(self, cwd: Path) -> RuntimeService:
        """Return a runtime object for another directory with the same storage.

        Raises:
            CaseUnreachable: The storage of the runtime cannot be shared.
        """
        raise CaseUnreachable("no other runtime object can use its storage")

    def make_behind(self, fault: OutputFault) -> RuntimeService:
        """Return a runtime object with an agent program that has a fault in its output.

        Raises:
            CaseUnreachable: The runtime has no such program.
        """
        raise CaseUnreachable(f"no program whose output could have the fault {fault!r}")

    async def kill(self, runtime: RuntimeService, session_id: str) -> None:
        """Kill the program of a session at once, as `kill -9` does.

        Raises:
            CaseUnreachable: The runtime has no such program.
        """
        raise CaseUnreachable("no program that could be killed")

    def processes(self) -> Sequence[int]:
        """Return the ids of the running processes that the runtime has started.

        Raises:
            CaseUnreachable: The runtime starts no processes.
        """
        raise CaseUnreachable("it starts no processes")

    def told(self) -> Sequence[str]:
        """Return the user texts and tool results in the last request to the model.

        Raises:
            CaseUnreachable: The requests to the model cannot be seen.
        """
        raise CaseUnreachable("its requests to the model cannot be seen")

    def has_run(self, name: str) -> bool:
        """Return whether the command `touch NAME` ran."""
        return (self.cwd / name).exists()

    def end(self) -> None:
        """Stop everything that this object started; called once, after the case."""
        return


class RuntimeFactory(Protocol):
    """The factory that `arp conformance runtime module:factory` names."""

    def __call__(self, directory: Path, /) -> RuntimeUnderTest:
        """Return a runtime under test with its storage in an empty directory."""
        ...
