"""`FunctionRuntime`: any async function, or async generator of texts, as an agent runtime.

```python
async def reply(turn: FunctionTurn) -> AsyncIterator[str]:
    async for token in model.stream(turn.text):
        yield token

runtime = FunctionRuntime(reply)
```
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar, TypeAlias

from arp.protocol.json_value import JsonObject
from arp.runtime.contract import types as ari
from arp.runtime.contract.task_runtime import TaskRuntime, TaskTurn


class FunctionTurn(TaskTurn):
    """One turn, for the function that runs it: the message, and methods to report what happens."""

    @contextmanager
    def tool(
        self,
        name: str,
        tool_input: JsonObject,
        *,
        summary: str = "",
        kind: ari.PermissionKind = ari.PermissionKind.TOOL,
    ) -> Iterator[FunctionToolCall]:
        """Emit a tool call; an exception inside becomes its error and is raised again."""
        call = FunctionToolCall(self.session.new_id("call"), name, tool_input, kind, self)
        self.start_call(call.id, name, tool_input, summary=summary, kind=kind)
        try:
            yield call
        except BaseException as failed:
            self.end_call(call.id, type(failed).__name__, failed=True, denied=call.denied)
            raise
        self.end_call(call.id, call.output, failed=call.failed, denied=call.denied)


class FunctionToolCall:
    """A tool call that the agent function reports."""

    def __init__(
        self,
        call_id: str,
        name: str,
        tool_input: JsonObject,
        kind: ari.PermissionKind,
        turn: FunctionTurn,
    ) -> None:
        self.id, self.name, self.input = call_id, name, tool_input
        self.kind = kind
        self.output = ""
        self.failed = False
        self.denied = False
        self._turn = turn

    def progress(self, content: str) -> None:
        """Emit output of the running tool."""
        self._turn.call_progress(self.id, content)

    def result(self, output: str) -> None:
        """Set the result of the tool."""
        self.output = output

    def fail(self, output: str) -> None:
        """Record that the tool failed, with the reason."""
        self.output, self.failed = output, True

    async def allowed(
        self,
        *,
        summary: str = "",
        message: str = "",
        rules: Sequence[ari.PermissionRule] = (),
        takes_message: bool = True,
    ) -> ari.PermissionResponse:
        """Ask for permission to run the tool, and return the answer.

        The input to run is `updated_input` of the answer, or else the input of the call. Without an
        answer the permission is denied.

        Cancel: Safe; the request is withdrawn.
        """
        about = ari.PermissionRequest(
            self.name,
            tool_call_id=self.id,
            kind=self.kind,
            tool_input_summary=summary,
            tool_input_raw=self.input,
            message=message,
            takes_updated_input=True,
            takes_message=takes_message,
            rules=tuple(rules),
        )
        response = await self._turn.asked(about)
        if response.decision == "deny":
            self.fail(response.message or "denied")
            self.denied = True
        return response


AgentFunction: TypeAlias = Callable[[FunctionTurn], Awaitable[str | None] | AsyncIterator[str]]


class FunctionRuntime(TaskRuntime):
    """A runtime that runs a function as its agent.

    Args:
        function: Receives a `FunctionTurn`; returns a text, yields texts, or calls `say` itself.
        name: Name of the runtime.
        cwd: Directory of the runtime, as in `DrivenRuntime`.
        directory: Directory that stores sessions so that other processes find them; `None` means in
            memory.
    """

    name = "function"
    turn_type = FunctionTurn
    saves_state = False
    part_types: ClassVar[frozenset[str]] = frozenset({"text", "image", "audio", "file"})
    more_capabilities: ClassVar[tuple[str, ...]] = ("updated_input",)
    takes: ClassVar[frozenset[str]] = frozenset({"session_id", "history", "model"})

    def __init__(
        self,
        function: AgentFunction,
        *,
        name: str = "",
        cwd: str | Path = ".",
        directory: str | Path | None = None,
    ) -> None:
        if not callable(function):
            what = type(function).__name__
            raise TypeError(f"FunctionRuntime: expected a function of a turn, got {what}")
        super().__init__(cwd=cwd, directory=directory)
        self.function = function
        if name:
            self.name = name  # type: ignore[misc]  # set on the instance, not on the class

    async def run_turn(self, turn: TaskTurn) -> None:
        """Call the function, and emit the text that it returns or yields."""
        assert isinstance(turn, FunctionTurn)
        returned = self.function(turn)
        if inspect.isawaitable(returned):
            result = await returned
            if result:
                turn.say(result)
        else:
            async for delta in returned:
                turn.say(delta)

    def _capabilities(self) -> Sequence[ari.Capability]:
        rules = ari.Capability("permission_rules", details={"rules": "those of the function"})
        return (*super()._capabilities(), rules)
