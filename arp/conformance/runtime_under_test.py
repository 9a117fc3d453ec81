"""`RuntimeUnderTest`: what an author of a runtime gives to the suite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, Protocol

import msgspec

from arp.runtime.services import RuntimeService

OutputFault = Literal["garbage", "cut"]
"""`garbage`: before its first text, the agent's program writes a line that is no message. `cut`:
its output ends in the middle of the line that has the first text."""


class NotShown(Exception):
    """The runtime, or what is under it, cannot be made to do what a case needs."""


class Prompts(msgspec.Struct, frozen=True):
    """What makes the agent do what; an empty text: it cannot be made to.

    In those of tools `{command}` is a command for a shell, as a tool call that asks first.
    """

    hello: str = "hello"
    """Says `hello_text`."""
    hello_text: str = "Hello from the model."
    echo: str = "echo: {text}"
    """Says the text."""
    think: str = "think"
    """Thinks, then says something."""
    look: str = "hello"
    """Names the media types of the images that it received."""
    run: str = "run: {command}"
    two: str = "two: {command} @@ {other}"
    """Two calls in one answer."""
    slow: str = "slow"
    """Says something for longer than a case waits."""
    fail: str = "fail {status}"
    """The model answers with this HTTP status."""
    retry: str = "retry"
    """The model answers with an error once, then with a text."""


class RuntimeUnderTest(Protocol):
    """One kind of runtime; each case gets a new one, whose storage is empty."""

    name: str
    """Its name in the matrix."""
    cwd: Path
    """The directory of the runtime."""
    prompts: Prompts = Prompts()
    fields: Mapping[str, str] = {}
    """Of every `create_session` and `resume_session`, such as the model."""
    asks_at_once: bool = True
    """Whether the agent asks about the calls of one answer together, not one after the other."""
    marks_failures: bool = True
    """Whether the agent says of the result of a tool that it is an error."""
    other_model: str = ""
    """Another model that sessions can take; empty: there is none."""
    case_s: float = 50.0
    """How long a case may take; more for an agent that is slow to start."""
    not_shown: Mapping[str, str] = {}
    """Why a case cannot be shown with the agent, by the name of the case: it is not run."""

    def make(self) -> RuntimeService:
        """Return a new runtime object; all share one storage, as processes of a machine do."""
        ...

    def make_behind(self, fault: OutputFault) -> RuntimeService:
        """Return one whose agent's program has a fault in its output.

        Raises:
            NotShown: There is no such program.
        """
        raise NotShown(f"no program whose output could have the fault {fault!r}")

    async def kill(self, runtime: RuntimeService, session_id: str) -> None:
        """Kill the program of a session at once, as `kill -9` does.

        Raises:
            NotShown: There is no such program.
        """
        raise NotShown("no program that could be killed")

    def processes(self) -> Sequence[int]:
        """Return the ids of the processes that the runtime has started and that run.

        Raises:
            NotShown: It starts none.
        """
        raise NotShown("it starts no processes")

    def told(self) -> Sequence[str]:
        """Return what the model was told in its last request: the user's texts, tool results.

        Raises:
            NotShown: Nobody knows.
        """
        raise NotShown("nobody knows what the model is told")

    def has_run(self, name: str) -> bool:
        """Return whether the command `touch NAME` ran."""
        return (self.cwd / name).exists()

    def end(self) -> None:
        """End what the object itself has started; called once, after the case."""
        return


class RuntimeFactory(Protocol):
    """What `arp conformance runtime module:factory` names."""

    def __call__(self, place: Path, /) -> RuntimeUnderTest:
        """Return a runtime under test whose storage is below an empty directory."""
        ...
