"""`FakeRuntime`: a runtime with scripted turns, for tests of code that uses runtimes.

```python
steps = [Uses("shell", {"command": "ls"}, "README.md", asks=True), Says("Done.")]
fake = FakeRuntime({"list": steps})
...
assert fake.calls("send_message") == 1
fake.inject_error("create_session", Unavailable("no process left"))
```

It implements every service, including the optional ones, and follows the whole contract.
"""

from __future__ import annotations

import asyncio
import functools
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeAlias

import msgspec

from arp.protocol.json_value import JsonObject
from arp.runtime.contract import types as ari
from arp.runtime.contract.errors import AriError, InvalidArgument
from arp.runtime.contract.feed import SessionFeed
from arp.runtime.contract.services import METHODS
from arp.runtime.contract.task_runtime import TaskSession
from arp.runtime.plain.function import FunctionRuntime, FunctionTurn


class Says(NamedTuple):
    """A step: the agent says a text, word by word."""

    text: str


class Thinks(NamedTuple):
    """A step: the agent thinks a text."""

    text: str


class Uses(NamedTuple):
    """A step: the agent uses a tool; with `asks` it asks first, with `fails` the tool fails."""

    tool: str
    input: JsonObject
    result: str = ""
    asks: bool = False
    kind: ari.PermissionKind = ari.PermissionKind.COMMAND
    rules: tuple[ari.PermissionRule, ...] = ()
    fails: bool = False
    takes_message: bool = True
    """Whether the agent receives the reason of a denial."""


class Tells(NamedTuple):
    """A step: the agent emits a lifecycle event."""

    lifecycle: ari.Lifecycle
    content: str = ""
    details: Mapping[str, Any] = {}


class Fails(NamedTuple):
    """A step: the turn ends with an error."""

    error: AriError


class Waits(NamedTuple):
    """A step: nothing happens until the test calls `proceed`, or the turn is cancelled."""


Step: TypeAlias = Says | Thinks | Uses | Tells | Fails | Waits


class FakeRuntime(FunctionRuntime):
    """A runtime for tests.

    Args:
        script: Steps of a turn, by the text of its message. For any other text, the agent repeats
            the text.
        cwd: Directory of the runtime, as in `DrivenRuntime`.
        directory: Directory that stores sessions so that another `FakeRuntime` finds them.
    """

    name = "fake"
    takes: ClassVar[frozenset[str]] = frozenset(
        {"session_id", "history", "model", "mode", "provider", "instructions", "mcp_servers"}
    )

    def __init__(
        self,
        script: Mapping[str, Sequence[Step]] | None = None,
        *,
        cwd: str | Path = ".",
        directory: str | Path | None = None,
    ) -> None:
        super().__init__(self._play, cwd=cwd, directory=directory)
        self.script = dict(script or {})
        self.called: list[tuple[str, msgspec.Struct | None]] = []
        """Every call in order: the method and its request."""
        self.errors: dict[str, AriError] = {}
        """Errors that methods raise, by method; see `inject_error`."""
        self.ran: list[tuple[str, JsonObject]] = []
        """Tools that ran: name and input."""
        self.models: tuple[ari.Choice, ...] = (
            ari.Choice("fake-1", "Fake 1"),
            ari.Choice("fake-2", "Fake 2"),
        )
        self.modes: tuple[ari.Choice, ...] = (
            ari.Choice("ask", "Ask"),
            ari.Choice("free", "Free", asks=False),
        )
        self.providers: tuple[ari.Choice, ...] = (
            ari.Choice("here", "Here"),
            ari.Choice("there", "There"),
        )
        self.commands = (ari.ListedItem("compact", "Make the conversation shorter"),)
        self.skills = (ari.ListedItem("count", "Counts", "skills/count"),)
        self.memory_files = (ari.ListedItem("notes", "What was learned", "notes.md"),)
        self._proceed = asyncio.Event()

    def calls(self, method: str) -> int:
        """Return how often a method was called."""
        return sum(name == method for name, _ in self.called)

    def inject_error(self, method: str, error: AriError | None) -> None:
        """Make a method raise an error at each call; `None` stops that.

        Raises:
            ValueError: The method does not exist.
        """
        if not any(one.name == method for one in METHODS):
            raise ValueError(f"method: there is no {method!r}")
        self.errors.pop(method, None)
        if error is not None:
            self.errors[method] = error

    async def _begin(self) -> None:
        self._proceed = asyncio.Event()

    def proceed(self) -> None:
        """Continue a turn that waits at a `Waits` step."""
        self._proceed.set()

    async def _play(self, turn: FunctionTurn) -> None:
        turn.used = ari.Usage(input_tokens=len(turn.text), output_tokens=1)
        for step in self.script.get(turn.text, [Says(f"You said: {turn.text}")]):
            match step:
                case Says(text):
                    for word in re.findall(r"\S+\s*|\s+", text):
                        turn.say(word)
                        await asyncio.sleep(0)
                case Thinks(text):
                    turn.think(text)
                case Uses():
                    await self._use(turn, step)
                case Tells(lifecycle, content, details):
                    turn.tell(lifecycle, content, **details)
                case Fails(error):
                    raise error
                case Waits():
                    self._proceed.clear()
                    await self._proceed.wait()

    async def _use(self, turn: FunctionTurn, step: Uses) -> None:
        with turn.tool(step.tool, step.input, summary=_summary(step.input), kind=step.kind) as call:
            tool_input = step.input
            if step.asks:
                answer = await call.allowed(
                    summary=_summary(step.input),
                    rules=step.rules,
                    takes_message=step.takes_message,
                )
                if answer.decision == "deny":
                    return
                tool_input = step.input if answer.updated_input is None else answer.updated_input
            self.ran.append((step.tool, tool_input))
            if step.fails:
                call.fail(step.result)
            else:
                call.result(step.result)

    # -- optional services -----------------------------------------------------------------------

    async def get_model(self, request: ari.GetModelRequest) -> ari.GetModelResponse:
        """Return the model."""
        return ari.GetModelResponse(self.native_session(request.session_id).model or "fake-1")

    async def set_model(self, request: ari.SetModelRequest) -> ari.SetModelResponse:
        """Switch the model."""
        native = self.native_session(request.session_id)
        native.model = _one_of(self.models, "model", request.model)
        self._feed(request.session_id).tell(ari.Lifecycle.MODEL, request.model)
        return ari.SetModelResponse(request.model)

    async def list_models(self, request: ari.ListModelsRequest) -> ari.ListModelsResponse:
        """Return the models."""
        self.session(request.session_id)
        return ari.ListModelsResponse(self.models)

    async def get_mode(self, request: ari.GetModeRequest) -> ari.GetModeResponse:
        """Return the mode."""
        return ari.GetModeResponse(self.native_session(request.session_id).mode or "ask")

    async def set_mode(self, request: ari.SetModeRequest) -> ari.SetModeResponse:
        """Switch the mode."""
        native = self.native_session(request.session_id)
        native.mode = _one_of(self.modes, "mode", request.mode)
        self._feed(request.session_id).tell(ari.Lifecycle.MODE, request.mode)
        return ari.SetModeResponse(request.mode)

    async def list_modes(self, request: ari.ListModesRequest) -> ari.ListModesResponse:
        """Return the modes."""
        self.session(request.session_id)
        return ari.ListModesResponse(self.modes)

    async def get_active_provider(
        self, request: ari.GetActiveProviderRequest
    ) -> ari.GetActiveProviderResponse:
        """Return the provider."""
        native = self.native_session(request.session_id)
        return ari.GetActiveProviderResponse(native.provider or "here")

    async def set_active_provider(
        self, request: ari.SetActiveProviderRequest
    ) -> ari.SetActiveProviderResponse:
        """Switch the provider."""
        native = self.native_session(request.session_id)
        native.provider = _one_of(self.providers, "provider", request.provider)
        return ari.SetActiveProviderResponse(request.provider)

    async def list_providers(self, request: ari.ListProvidersRequest) -> ari.ListProvidersResponse:
        """Return the providers."""
        self.session(request.session_id)
        return ari.ListProvidersResponse(self.providers)

    async def list_memory_files(self, request: ari.ListItemsRequest) -> ari.ListItemsResponse:
        """Return the memory files."""
        self.session(request.session_id)
        return ari.ListItemsResponse(self.memory_files)

    async def list_skills(self, request: ari.ListItemsRequest) -> ari.ListItemsResponse:
        """Return the skills."""
        self.session(request.session_id)
        return ari.ListItemsResponse(self.skills)

    async def list_commands(self, request: ari.ListItemsRequest) -> ari.ListItemsResponse:
        """Return the commands."""
        self.session(request.session_id)
        return ari.ListItemsResponse(self.commands)

    async def compact_session(
        self, request: ari.CompactSessionRequest
    ) -> ari.CompactSessionResponse:
        """Begin a turn that makes the conversation shorter."""
        message = ari.RuntimeMessage(content="/compact")
        self.script.setdefault("/compact", [Tells(ari.Lifecycle.COMPACTION)])
        sent = await self.send_message(ari.SendMessageRequest(request.session_id, message))
        return ari.CompactSessionResponse(sent.turn_id)

    async def _create(self, request: ari.CreateSessionRequest, feed: SessionFeed) -> TaskSession:
        self._check_choices(request)
        return _set_up(await super()._create(request, feed), request)

    async def _resume(self, request: ari.ResumeSessionRequest, feed: SessionFeed) -> TaskSession:
        self._check_choices(request)
        return _set_up(await super()._resume(request, feed), request)

    def _check_choices(self, request: ari.CreateSessionRequest | ari.ResumeSessionRequest) -> None:
        """Check that the requested model, mode and provider exist.

        Raises:
            InvalidArgument: One of them does not exist; the message names the field.
        """
        for name in ("model", "mode", "provider"):
            if wanted := getattr(request, name):
                _one_of(getattr(self, f"{name}s"), name, wanted)

    def _capabilities(self) -> Sequence[ari.Capability]:
        switches = [
            ari.Capability(name, applies_to="now") for name in ("model", "mode", "provider")
        ]
        lists = ("memory", "skills", "commands", "compaction")
        others = [ari.Capability(name) for name in ("instructions", "mcp_servers", *lists)]
        return (*super()._capabilities(), *switches, *others)

    def _feed(self, session_id: str) -> SessionFeed:
        return self.session(session_id).feed


def _summary(tool_input: JsonObject) -> str:
    return " ".join(str(value) for value in tool_input.values())


def _one_of(choices: Sequence[ari.Choice], name: str, wanted: str) -> str:
    """Return `wanted`.

    Raises:
        InvalidArgument: `wanted` is not one of the choices.
    """
    if wanted not in {choice.id for choice in choices}:
        known = ", ".join(choice.id for choice in choices)
        raise InvalidArgument(f"{name}: expected one of {known}, got {wanted!r:.80}")
    return wanted


def _set_up(
    session: TaskSession, request: ari.CreateSessionRequest | ari.ResumeSessionRequest
) -> TaskSession:
    session.model, session.mode = request.model, request.mode
    session.provider = request.provider
    return session


def _recorded(name: str) -> Callable[..., Awaitable[Any]]:
    """Return a method that records each call and raises the injected error, if there is one."""
    method = getattr(FakeRuntime, name)

    @functools.wraps(method)
    async def recorded(self: FakeRuntime, request: msgspec.Struct | None = None) -> Any:
        self.called.append((name, request))
        if name in self.errors:
            raise self.errors[name]
        return await (method(self) if request is None else method(self, request))

    return recorded


for _method in METHODS:
    setattr(FakeRuntime, _method.name, _recorded(_method.name))
