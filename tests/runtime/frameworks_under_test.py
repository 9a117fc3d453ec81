"""Agents of frameworks for the contract suite: real frameworks, real clients, a fake model.

Each agent has one tool, `bash`, which runs a command after a person has allowed it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from arp.conformance.runtime.runtime_under_test import Prompts, RuntimeUnderTest
from arp.runtime.contract.services import RuntimeService
from tests.runtime.model_server import ModelServer

MODEL = "fake-1"
KEY = "none"  # the fake model looks at no key
CLIENT_S = 60.0
"""Also to connect: a framework that runs first blocks the loop, on a loaded machine for long."""


class FrameworkUnderTest(RuntimeUnderTest):
    """What the frameworks share: a fake model, a directory, and the tool."""

    prompts = Prompts(retry="")  # their clients try again by themselves, and do not tell

    def __init__(self, place: Path, server: ModelServer) -> None:
        self.server = server
        self.stored = place / "sessions"
        self.cwd = place / "cwd"
        self.cwd.mkdir(parents=True, exist_ok=True)

    async def bash(self, command: str, description: str = "") -> str:
        """Run a command of the shell."""
        process = await asyncio.create_subprocess_shell(
            command, cwd=self.cwd, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
        output, _ = await process.communicate()
        if process.returncode:
            raise RuntimeError(f"exit {process.returncode}: {output.decode()}")
        return output.decode()

    def told(self) -> Sequence[str]:
        return self.server.requests[-1].told

    def end(self) -> None:
        self.server.__exit__(None, None, None)


class PydanticAIUnderTest(FrameworkUnderTest):
    name = "pydantic-ai"

    def agent(self) -> Any:
        """Return an agent that asks before it runs the tool."""
        from openai import AsyncOpenAI
        from pydantic_ai import Agent, DeferredToolRequests, Tool
        from pydantic_ai.models.openai import OpenAIResponsesModel
        from pydantic_ai.providers.openai import OpenAIProvider

        client = AsyncOpenAI(
            base_url=self.server.openai_address, api_key=KEY, max_retries=0, timeout=CLIENT_S
        )
        model = OpenAIResponsesModel(MODEL, provider=OpenAIProvider(openai_client=client))
        tool = Tool(self.failing_softly, name="bash", requires_approval=True, takes_ctx=False)
        return Agent(model, tools=[tool], output_type=[str, DeferredToolRequests])

    async def failing_softly(self, command: str, description: str = "") -> str:
        """Run a command of the shell; a failure is told to the model, as Pydantic AI has it."""
        from pydantic_ai import ModelRetry

        try:
            return await self.bash(command, description)
        except RuntimeError as failed:
            raise ModelRetry(str(failed)) from failed

    def make(self) -> RuntimeService:
        from arp.runtime.frameworks.pydantic_ai import PydanticAIRuntime

        return PydanticAIRuntime(self.agent(), cwd=self.cwd, directory=self.stored)


class OpenAIAgentsUnderTest(FrameworkUnderTest):
    name = "openai-agents"

    def make(self) -> RuntimeService:
        from agents import Agent, OpenAIResponsesModel, RunConfig, function_tool
        from openai import AsyncOpenAI

        from arp.runtime.frameworks.openai_agents import OpenAIAgentsRuntime

        client = AsyncOpenAI(
            base_url=self.server.openai_address, api_key=KEY, max_retries=0, timeout=CLIENT_S
        )
        tool = function_tool(self.bash, needs_approval=True, name_override="bash")
        model = OpenAIResponsesModel(MODEL, client)
        agent: Agent[None] = Agent("Tester", model=model, tools=[tool])
        return OpenAIAgentsRuntime(
            agent,
            run_config=RunConfig(tracing_disabled=True),
            cwd=self.cwd,
            directory=self.stored,
        )


class LangGraphUnderTest(FrameworkUnderTest):
    name = "langgraph"

    def more_tools(self) -> Sequence[Any]:
        """Return tools that run without asking."""
        return ()

    def make(self) -> RuntimeService:
        from langchain.agents import create_agent
        from langchain.agents.middleware import HumanInTheLoopMiddleware
        from langchain_core.tools import StructuredTool, ToolException
        from langchain_openai import ChatOpenAI

        from arp.runtime.frameworks.langgraph import LangGraphRuntime

        async def bash(command: str, description: str = "") -> str:
            """Run a command of the shell."""
            try:
                return await self.bash(command, description)
            except RuntimeError as failed:
                raise ToolException(str(failed)) from failed

        model = ChatOpenAI(
            model=MODEL,
            base_url=self.server.openai_address,
            api_key=KEY,  # type: ignore[arg-type]  # a text is taken
            max_retries=0,
            timeout=CLIENT_S,
            use_responses_api=True,
            output_version="responses/v1",
        )
        tool = StructuredTool.from_function(coroutine=bash, name="bash", handle_tool_error=True)
        graph = create_agent(
            model,
            [tool, *self.more_tools()],
            middleware=[HumanInTheLoopMiddleware(interrupt_on={"bash": True})],
        )
        return LangGraphRuntime(graph, cwd=self.cwd, directory=self.stored)


class AgUiUnderTest(PydanticAIUnderTest):
    """Pydantic AI behind AG-UI: the framework's own adapter yields the events."""

    name = "ag-ui"
    marks_failures = False

    def run(self, run_input: Any) -> Any:
        """Return the events of a run."""
        from pydantic_ai.ui.ag_ui import AGUIAdapter

        return AGUIAdapter(agent=self.made, run_input=run_input, include_usage=True).run_stream()

    def make(self) -> RuntimeService:
        from arp.runtime.frameworks.ag_ui import AgUiRuntime

        self.made = self.agent()
        return AgUiRuntime(self, cwd=self.cwd, directory=self.stored)


def _with_model(kind: type[FrameworkUnderTest], place: Path) -> RuntimeUnderTest:
    return kind(place, ModelServer().__enter__())


def pydantic_ai(place: Path) -> RuntimeUnderTest:
    """Return an agent of Pydantic AI."""
    return _with_model(PydanticAIUnderTest, place)


def openai_agents(place: Path) -> RuntimeUnderTest:
    """Return an agent of the OpenAI Agents SDK."""
    return _with_model(OpenAIAgentsUnderTest, place)


def langgraph(place: Path) -> RuntimeUnderTest:
    """Return a graph of LangGraph, made by `create_agent` of LangChain."""
    return _with_model(LangGraphUnderTest, place)


def ag_ui(place: Path) -> RuntimeUnderTest:
    """Return an agent that speaks AG-UI."""
    return _with_model(AgUiUnderTest, place)
