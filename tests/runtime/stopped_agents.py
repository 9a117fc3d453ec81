"""Agents that ask before they run a tool, and that ask questions: one of each kind of runtime.

`app_of(AGENTS, MODEL)` is an app whose agents ask; the process that serves it can be ended
meanwhile, and another one serves the app again. What the user says is in `model_script`:

    run: COMMAND                            asks for permission, then runs the command in PLACE/cwd
    tool: ask_user {"question": "Which?"}   asks the question, and says the answer
    both: COMMAND                           does both at once, in agents without a model

MODEL is the address of the fake model. The same agents serve as runtimes of `arp ari serve`.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from arp import App, Turn, tool, ui
from arp.runtime.contract.services import RuntimeService
from arp.runtime.plain.function import FunctionRuntime, FunctionTurn
from tests.runtime import clis, frameworks_under_test
from tests.runtime.model_script import AGREED
from tests.runtime.model_server import ModelServer

QUESTION = "Which colour?"
ANSWER = "The blue one."


def model_at(address: str) -> ModelServer:
    """Return what a runtime needs of a model server that another process runs."""
    return cast(ModelServer, SimpleNamespace(address=address, openai_address=f"{address}/v1"))


async def bash(cwd: Path, command: str) -> str:
    """Run a command, and return its output."""
    process = await asyncio.create_subprocess_shell(
        command, cwd=cwd, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    output, _ = await process.communicate()
    return output.decode()


class PydanticAIAsking(frameworks_under_test.PydanticAIUnderTest):
    """It has a deferred tool that asks the user besides."""

    def agent(self) -> Any:
        from pydantic_ai import CallDeferred

        agent = super().agent()

        def ask_user(question: str) -> str:
            """Ask the user."""
            raise CallDeferred

        agent.tool_plain(ask_user)
        return agent


class AgUiAsking(frameworks_under_test.AgUiUnderTest):
    """Pydantic AI's adapter asks for permissions; an agent of our own asks its user besides."""

    def run(self, run_input: Any) -> Any:
        said = next(one.content for one in reversed(run_input.messages) if one.role == "user")
        word, _, rest = said.partition(": ")
        is_own = word in ("tool", "both")
        return self.asking(run_input, rest * (word == "both")) if is_own else super().run(run_input)

    async def asking(self, run_input: Any, command: str) -> AsyncIterator[Any]:
        """Interrupt a run by a question, and by a call that waits for approval besides."""
        from ag_ui import core

        run = {"thread_id": run_input.thread_id, "run_id": run_input.run_id}
        yield core.RunStartedEvent(**run)
        answers = {one.interrupt_id: one.payload for one in run_input.resume or ()}
        if not answers:
            interrupts = [core.Interrupt(id="colour", reason="question", message=QUESTION)]
            if command:
                arguments = json.dumps({"command": command})
                yield core.ToolCallStartEvent(tool_call_id="call", tool_call_name="bash")
                yield core.ToolCallArgsEvent(tool_call_id="call", delta=arguments)
                yield core.ToolCallEndEvent(tool_call_id="call")
                approval = {"properties": {"approved": {"type": "boolean"}}}
                interrupts.append(
                    core.Interrupt(
                        id="may", reason="approval", tool_call_id="call", response_schema=approval
                    )
                )
            outcome = core.RunFinishedInterruptOutcome(type="interrupt", interrupts=interrupts)
            yield core.RunFinishedEvent(**run, outcome=outcome)
            return
        if command and answers["may"]["approved"]:
            output = await self.bash(command)
            yield core.ToolCallResultEvent(message_id="r", tool_call_id="call", content=output)
        yield core.TextMessageStartEvent(message_id="m")
        yield core.TextMessageContentEvent(message_id="m", delta=f"It is: {answers['colour']}")
        yield core.TextMessageEndEvent(message_id="m")
        yield core.RunFinishedEvent(**run)


class LangGraphAsking(frameworks_under_test.LangGraphUnderTest):
    """It has a tool that asks the user by an interrupt besides."""

    def more_tools(self) -> Sequence[Any]:
        from langchain_core.tools import StructuredTool
        from langgraph.types import interrupt

        def ask_user(question: str) -> str:
            """Ask the user."""
            return str(interrupt({"question": question}))

        def careful_bash(command: str) -> str:
            """Run a command of the shell, after a question of its own."""
            asked = {"name": "bash", "args": {"command": command}}
            review = {"action_name": "bash", "allowed_decisions": ["approve", "reject"]}
            decided = interrupt({"action_requests": [asked], "review_configs": [review]})
            if decided["decisions"][0]["type"] != "approve":
                return "denied"
            subprocess.run(command, shell=True, cwd=self.cwd, check=True)
            return "ran"

        tools = (ask_user, careful_bash)
        return [StructuredTool.from_function(one) for one in tools]


def framework(kind: Any) -> Callable[[Path, str], RuntimeService]:
    """Return what makes the runtime of a framework."""

    def made(place: Path, address: str) -> RuntimeService:
        runtime: RuntimeService = kind(place, model_at(address)).make()
        return runtime

    return made


def function(place: Path, address: str) -> RuntimeService:
    """Return a function that does by itself what the model would say."""
    cwd = place / "cwd"

    async def run(turn: FunctionTurn, command: str) -> None:
        with turn.tool("bash", {"command": command}) as call:
            if (await call.allowed(summary=command)).decision == "allow":
                call.result(await bash(cwd, command))

    async def ask(turn: FunctionTurn) -> None:
        answer = await turn.answered("colour", {"question": QUESTION})
        turn.say(f"The tool returned: {answer}")

    async def reply(turn: FunctionTurn) -> None:
        said = [one.content for one in turn.history if one.role == "user"]
        text = turn.text
        if text.startswith(AGREED):
            text = next((one for one in reversed(said) if ": " in one), text)
        word, _, rest = text.partition(": ")
        if word == "run":
            await run(turn, rest)
        elif word == "tool":
            await ask(turn)
        elif word == "both":
            asking = () if ANSWER in said else (ask(turn),)
            await asyncio.gather(run(turn, rest), *asking)
        else:
            turn.say(f"You said: {text}")

    return FunctionRuntime(reply, cwd=cwd, directory=place / "sessions")


def claude_code(place: Path, address: str) -> RuntimeService:
    """Return Claude Code."""
    from arp.runtime.programs.claude.claude_code import ClaudeCodeOptions, ClaudeCodeRuntime

    cli = clis.claude(model_at(address), place)
    providers = {"here": {"ANTHROPIC_BASE_URL": address}}
    options = ClaudeCodeOptions(providers=providers, models=("fake-1",))
    return ClaudeCodeRuntime(cwd=cli.cwd, environment=cli.environment, options=options)


def codex(place: Path, address: str) -> RuntimeService:
    """Return Codex."""
    from arp.runtime.programs.codex.codex import CodexRuntime

    cli = clis.codex(model_at(address), place)
    config = cli.home / ".codex" / "config.toml"
    feature = "[features]\ndefault_mode_request_user_input = true\n"
    config.write_text(config.read_text().replace("[features]\n", feature))
    return CodexRuntime(environment=cli.environment, cwd=cli.cwd, program=cli.program)


def opencode(place: Path, address: str) -> RuntimeService:
    """Return OpenCode."""
    from arp.runtime.programs.acp.acp import AcpRuntime

    cli = clis.opencode(model_at(address), place)
    command = [cli.program, *cli.arguments]
    return AcpRuntime(command, cwd=cli.cwd, environment=cli.environment, name="opencode")


RUNTIMES: dict[str, Callable[[Path, str], RuntimeService]] = {
    "langgraph": framework(LangGraphAsking),
    "pydantic-ai": framework(PydanticAIAsking),
    "openai-agents": framework(frameworks_under_test.OpenAIAgentsUnderTest),
    "ag-ui": framework(AgUiAsking),
    "function": function,
    "claude-code": claude_code,
    "codex": codex,
    "acp:opencode": opencode,
}


def served_runtime() -> RuntimeService:
    """Return the runtime that `arp ari serve` is to serve, by its environment."""
    name, place, address = os.environ["ASKING"].split("|")
    return RUNTIMES[name](Path(place), address)


def app_of(agents: Mapping[str, tuple[str, str]], address: str) -> App:
    """Return an app with agents that ask.

    Args:
        agents: For each name what the agent is, and an empty directory of its own, the same for
            each process. It is one of `RUNTIMES`, `plain`, `model-agent`,
            `model-agent-mcp`, or the address of a remote runtime.
        address: Of the fake model.
    """
    app = App("Asking")
    for name, (what, directory) in agents.items():
        place = Path(directory)
        if what == "plain":
            app.agent(name)(plain(place))
        elif what.startswith("model-agent"):
            with_model(app, name, place, address)
        elif "://" in what:
            from arp.runtime.named import named_runtime

            app.runtime(named_runtime(what), name=name)
        else:
            app.runtime(RUNTIMES[what](place, address), name=name)
    return app


def plain(place: Path) -> Any:
    """Return an agent without a runtime: it takes late answers by itself."""

    async def ask(turn: Turn, late: bool) -> None:
        answer = turn.text if late else await turn.ask(ui.text_input(QUESTION))
        await turn.say(f"The tool returned: {answer}")

    async def run(turn: Turn, command: str, late: bool) -> None:
        async with turn.tool("bash", {"command": command}) as call:
            if late or await call.approve(f"bash: {command}", rule="ask-first"):
                call.result(await bash(place / "cwd", command))

    async def agent(turn: Turn) -> None:
        late = turn.input.source_component is not None
        said = [text for role, text in turn.history() if role == "user"]
        word, _, rest = (said[0] if late else turn.text).partition(": ")
        if word == "both" and not late:
            await asyncio.gather(run(turn, rest, late), ask(turn, late))
        elif word == "tool" or (late and turn.input.input_type == "text"):
            await ask(turn, late)
        else:
            await run(turn, rest, late)

    return agent


def with_model(app: App, name: str, place: Path, address: str) -> None:
    """Give an app a model with a tool that needs approval.

    As `model-agent-mcp` it has a server of MCP besides, whose tool asks by itself: each session
    starts one, which takes a second.
    """

    @tool(needs_approval=True)
    async def run_bash(command: str, description: str = "") -> str:
        """Run a command of the shell."""
        return await bash(place / "cwd", command)

    run_bash.__name__ = "bash"
    shop = f"{sys.executable} {Path(__file__).with_name('mcp_shop.py')}"
    mcp = [shop] if name == "model-agent-mcp" else []
    base_url = f"{address}/v1"
    app.model_agent("openai:fake-1", base_url=base_url, tools=[run_bash], mcp=mcp, name=name)
