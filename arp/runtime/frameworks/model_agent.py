"""An agent made of a model, instructions and tools that are Python functions.

Pydantic AI provides the loop, the clients of the models' providers and the schemas of tools.
"""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from pydantic_ai import Agent, BinaryContent, RunContext, ToolReturn
from pydantic_ai import Tool as AgentTool
from pydantic_ai.exceptions import ToolFailed as FailedCall
from pydantic_ai.exceptions import UserError
from pydantic_ai.models import Model, infer_model
from pydantic_ai.toolsets import AbstractToolset, FunctionToolset

from arp.protocol.components import Component
from arp.protocol.json_value import JsonObject
from arp.runtime.contract.errors import InvalidArgument
from arp.runtime.contract.task_runtime import TaskTurn
from arp.runtime.contract.types import McpServer
from arp.runtime.frameworks.pydantic_ai import PydanticAIRuntime
from arp.runtime.named import mcp_tools
from arp.surface.degrade import as_one_text
from arp.turn.foreign_names import function_name
from arp.turn.tool import ModelTools, ToolFailed, ToolSpec, asks_first
from arp.values.cell import as_json
from arp.values.display import component_of, display_of, display_or_none, text_of

NO_KEY = "none"
"""API key that is sent to a server at `base_url` if no key is configured."""
MAX_MODEL_ROWS = 50
"""Largest number of rows that the model receives of a result that is shown to the user."""

PythonTool = Callable[..., Any]
"""A function that a model may call; its docstring describes it."""


def model_runtime(
    model: str | Model,
    *,
    base_url: str | None = None,
    instructions: str | Callable[[], str] = "",
    tools: Sequence[PythonTool] | ModelTools = (),
    mcp: Sequence[str | McpServer] = (),
    directory: str | Path | None = None,
) -> PydanticAIRuntime:
    """Return a runtime that runs a model with tools.

    Args:
        model: `openai:NAME`, `anthropic:NAME`, `ollama:NAME`, or another name that Pydantic AI
            knows.
        base_url: Address of another server for the model; it must use the protocol of the provider
            that `model` names. `None` means the provider's own server.
        instructions: System prompt of the model, or a function that returns it for each request.
        tools: Functions, `async def` or `def` (which runs in a thread). A function that returns a
            component shows it; a list of objects is shown as a table. A function with
            `@tool(needs_approval=True)` runs only after a person has allowed it. If a function
            raises `ToolFailed`, it is shown as failed and the model reads the reason. A catalog
            may be given instead of functions; its tools may change between turns.
        mcp: MCP servers with tools that the model may call too.
        directory: Directory that stores sessions; `None` means in memory.

    Raises:
        InvalidArgument: The model does not exist, or its key is missing; the message says what to
            do.
    """
    functions, catalogs = (tools, []) if isinstance(tools, Sequence) else ((), [tools])
    agent = Agent(
        _model(model, base_url),
        instructions=instructions or None,
        tools=[_tool(function) for function in functions],
    )
    sources: list[ModelTools] = [*([mcp_tools(mcp)] if mcp else []), *catalogs]
    return ModelRuntime(agent, sources, directory)


class ModelRuntime(PydanticAIRuntime):
    """A runtime that runs a model, with tools of MCP servers and of a catalog."""

    def __init__(
        self,
        agent: Agent[Any, Any],
        sources: Sequence[ModelTools],
        directory: str | Path | None,
    ) -> None:
        super().__init__(agent, directory=directory)
        self._sources = sources
        self.runs_commands = any(getattr(one, "runs_commands", False) for one in sources)

    async def toolsets(self, turn: TaskTurn) -> Sequence[AbstractToolset[Any]]:
        """Return the current tools; MCP servers are connected with the first turn."""
        offered: dict[str, AgentTool[Any]] = {}
        known: set[str] = set()
        for source in self._sources:
            await source.open()
            for one in source.tools():
                if one.name not in known:  # a name belongs to the first source that has it
                    known.add(one.name)
                    name = function_name(one.name, offered)
                    offered[name] = _model_tool(source, one, turn, name)
        return [FunctionToolset(list(offered.values()))] if offered else ()

    async def _end(self) -> None:
        await super()._end()
        for source in self._sources:
            await source.aclose()


class _TurnCaller:
    """Caller that shows the progress and the questions of a tool in a turn."""

    def __init__(self, turn: TaskTurn, call_id: str) -> None:
        self._turn, self._call_id = turn, call_id
        self.session_id, self.turn_id = turn.session_id, turn.turn_id
        self._asked = 0

    def progress(self, text: str, done: float, total: float | None) -> None:
        self._turn.call_progress(self._call_id, text or f"{done:g} of {total or 0:g}")

    async def ask(self, message: str, schema: JsonObject) -> JsonObject | None:
        self._asked += 1
        question_id = f"{self._call_id}.{self._asked}"
        answer: JsonObject | None = await self._turn.answered(
            question_id, message, schema, can_decline=True
        )
        return answer


def _model_tool(source: ModelTools, spec: ToolSpec, turn: TaskTurn, name: str) -> AgentTool[Any]:
    async def call(context: RunContext[Any], **args: Any) -> Any:
        caller = _TurnCaller(turn, context.tool_call_id or "")
        try:
            result = await source.run(spec.name, args, caller)
        except ToolFailed as failed:
            raise FailedCall(failed.message) from failed
        if result.failed:
            raise FailedCall(result.text or f"{spec.name} failed")
        seen = [BinaryContent(content, media_type=mime) for content, mime in result.images]
        answer = result.text or text_of(result.value)
        component = display_or_none(result.value if result.shown is None else result.shown)
        return ToolReturn(answer, content=seen or None, metadata=component)

    return AgentTool.from_schema(
        call,
        name=name,
        description=spec.description,
        json_schema=spec.schema,
        takes_ctx=True,
    )


def _model(model: str | Model, base_url: str | None) -> Model:
    if isinstance(model, Model):
        return model
    provider, _, name = model.partition(":")
    try:
        if base_url is None:
            return infer_model(model)
        if provider == "anthropic":
            from pydantic_ai.models.anthropic import AnthropicModel
            from pydantic_ai.providers.anthropic import AnthropicProvider

            there = AnthropicProvider(api_key=_key("ANTHROPIC"), base_url=base_url)
            return AnthropicModel(name, provider=there)
        from pydantic_ai.models.openai import OpenAIChatModel
        from pydantic_ai.providers.openai import OpenAIProvider

        known = OpenAIProvider(base_url=base_url, api_key=_key("OPENAI"))
        return OpenAIChatModel(name or model, provider=known)
    except UserError as error:
        raise InvalidArgument(f"{model}: {_first_sentence(str(error))}") from error
    except ImportError as error:
        raise InvalidArgument(f"{model}: {error}") from error


def _key(provider: str) -> str:
    return os.environ.get(f"{provider}_API_KEY") or NO_KEY


def _first_sentence(text: str) -> str:
    return text.partition(" or pass ")[0].partition("\n")[0].strip()


def _tool(function: PythonTool) -> AgentTool[None]:
    asks = asks_first(function)
    call = _showing(function)
    # The return type is dropped: the model receives another value, and a component has no schema.
    hints = getattr(function, "__annotations__", {})
    call.__annotations__ = {name: kind for name, kind in hints.items() if name != "return"}
    return AgentTool(call, takes_ctx=False, requires_approval=asks)


def _showing(function: PythonTool) -> PythonTool:
    """Return a function that shows its result if possible, and reports it to the model."""
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def awaited(*args: Any, **kwargs: Any) -> Any:
            with _tool_failures_for_model():
                return _for_model(await function(*args, **kwargs))

        return awaited

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        with _tool_failures_for_model():
            return _for_model(function(*args, **kwargs))

    return called


@contextmanager
def _tool_failures_for_model() -> Iterator[None]:
    """Pass the reason of a failed tool to the model; any other exception ends the turn."""
    try:
        yield
    except ToolFailed as failed:
        raise FailedCall(failed.message) from failed


def _for_model(result: Any) -> Any:
    """Return the result for the model, with the component that shows it."""
    component = display_of(result)
    if component is None:
        return result
    if component_of(result) is None:
        plain = as_json(result)
        first = plain[:MAX_MODEL_ROWS] if isinstance(plain, list) else plain
        more = len(plain) - len(first) if isinstance(plain, list) else 0
        text = text_of(first) + (f" and {more} more" if more else "")
    else:
        known = msgspec.convert({"id": "", **component}, Component)
        text = str(as_one_text(known, MAX_MODEL_ROWS).props["content"])
    return ToolReturn(f"The user sees this: {text}", metadata=component)
