"""The runtimes that the contract suite runs against: each gives one for an empty directory.

    arp conformance runtime tests.runtime.runtimes_under_test:codex

`RUNTIMES` has all of them, by their names in the matrix; a new adapter needs a class here.
"""

from __future__ import annotations

import asyncio
import os
import signal
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from arp.conformance.runtime_under_test import (
    OutputFault,
    Prompts,
    RuntimeFactory,
    RuntimeUnderTest,
)
from arp.runtime import types as ari
from arp.runtime.claude_code import ClaudeCodeOptions, ClaudeCodeRuntime
from arp.runtime.codex import CodexRuntime
from arp.runtime.errors import AriError, InvalidArgument, OperationDenied, Unavailable
from arp.runtime.fake import Fails, FakeRuntime, Says, Step, Tells, Thinks, Uses, Waits
from arp.runtime.function import FunctionRuntime, FunctionTurn
from arp.runtime.services import RuntimeService
from tests.runtime import clis
from tests.runtime.clis import Cli
from tests.runtime.model_script import HELLO, THINKING, THOUGHT, WORKED
from tests.runtime.model_server import ModelServer

MODEL_ERRORS: dict[str, type[AriError]] = {
    "400": InvalidArgument,
    "401": OperationDenied,
    "500": Unavailable,
}


class InThisProcess(RuntimeUnderTest):
    """What fake and function share: their sessions are files."""

    def __init__(self, place: Path) -> None:
        self.cwd = place / "cwd"
        self.cwd.mkdir()
        self.stored = place / "sessions"

    def told(self) -> Sequence[str]:
        """Return what is in the session that was written last."""
        newest = max(self.stored.glob("*.jsonl"), key=lambda file: file.stat().st_mtime_ns)
        lines = newest.read_bytes().splitlines()
        messages = [msgspec.json.decode(line, type=ari.RuntimeMessage) for line in lines]
        results = [call.result for message in messages for call in message.tool_calls]
        return [message.content for message in messages] + results


class Words(dict[str, Sequence[Step]]):
    """The steps of a fake for the words of `model_script`."""

    def get(self, text: str, default: Any = None) -> Any:
        word, _, rest = text.partition(":")
        commands = [part.strip() for part in rest.split("@@")]
        match word:
            case "hello":
                return [Says(HELLO)]
            case "echo":
                return [Says(rest.strip())]
            case "think":
                return [Thinks(THINKING), Says(THOUGHT)]
            case "run" | "two":
                return [uses(command) for command in commands]
            case "slow":
                return [Says("step 1"), Waits()]
            case "retry":
                return [Tells(ari.Lifecycle.RETRYING), Says(WORKED)]
        if text.startswith("fail "):
            return [Fails(MODEL_ERRORS[text.removeprefix("fail ")](text))]
        return super().get(text, default)


def uses(command: str) -> Uses:
    """Return the step that would run a command."""
    result = command.removeprefix("echo ")
    shown: Any = {"command": command}
    return Uses("shell", shown, result, asks=True, fails=command.startswith("exit "))


class FakeUnderTest(InThisProcess):
    """`FakeRuntime`, which runs nothing and tells what would have run."""

    name = "fake"
    asks_at_once = False
    other_model = "fake-2"
    prompts = Prompts(look="")

    def __init__(self, place: Path) -> None:
        super().__init__(place)
        self.made: list[FakeRuntime] = []

    def make(self) -> FakeRuntime:
        fake = FakeRuntime(cwd=self.cwd, directory=self.stored)
        fake.script = Words()
        self.made.append(fake)
        return fake

    def has_run(self, name: str) -> bool:
        return any({"command": f"touch {name}"} == ran for fake in self.made for _, ran in fake.ran)


class FunctionUnderTest(InThisProcess):
    """`FunctionRuntime` with a function that does what the words of `model_script` say."""

    name = "function"

    def __init__(self, place: Path) -> None:
        super().__init__(place)
        self.allowed: set[tuple[str, str]] = set()
        """Sessions and the commands that are allowed in them."""

    def make(self) -> FunctionRuntime:
        return FunctionRuntime(self.reply, cwd=self.cwd, directory=self.stored)

    async def reply(self, turn: FunctionTurn) -> None:
        turn.used = ari.Usage(input_tokens=len(turn.text), output_tokens=1)
        for part in turn.message.parts:
            if part.type == "image":
                turn.say(f"I received {part.mime_type}.\n")
        word, _, rest = turn.text.partition(":")
        match word:
            case "hello":
                turn.say(HELLO)
            case "echo":
                turn.say(rest.strip())
            case "think":
                turn.think(THINKING)
                turn.say(THOUGHT)
            case "run" | "two":
                await asyncio.gather(*(self.shell(turn, one.strip()) for one in rest.split("@@")))
            case "slow":
                turn.say("step 1")
                await asyncio.Event().wait()
            case "retry":
                turn.tell(ari.Lifecycle.RETRYING, attempt=1)
                turn.say(WORKED)
            case _ if turn.text.startswith("fail "):
                raise MODEL_ERRORS[turn.text.removeprefix("fail ")](turn.text)
            case _:
                turn.say(turn.text)

    async def shell(self, turn: FunctionTurn, command: str) -> None:
        kind = ari.PermissionKind.COMMAND
        with turn.tool("shell", {"command": command}, summary=command, kind=kind) as call:
            if (turn.session_id, command) not in self.allowed:
                rules = [ari.PermissionRule("this", f"{command}, in this session")]
                answer = await call.allowed(summary=command, rules=rules)
                if answer.decision == "deny":
                    return
                if answer.rule_id:
                    self.allowed.add((turn.session_id, command))
                if answer.updated_input is not None:
                    command = str(answer.updated_input["command"])
            process = await asyncio.create_subprocess_shell(
                command, cwd=self.cwd, stdout=asyncio.subprocess.PIPE
            )
            output, _ = await process.communicate()
            call.result(output.decode()) if not process.returncode else call.fail(output.decode())


class CliUnderTest(RuntimeUnderTest):
    """What the CLIs share: a fake model, a home, and a program that can be killed."""

    text_in_output: ClassVar[str]
    """What a line of the program's output has that tells of text of the model."""

    def __init__(self, cli: Cli, server: ModelServer) -> None:
        self.cli, self.server = cli, server
        self.cwd = cli.cwd

    def processes(self) -> Sequence[int]:
        return [process.pid for process in clis.processes_of(self.cli)]

    def told(self) -> Sequence[str]:
        return self.server.requests[-1].told

    def end(self) -> None:
        clis.end_processes_of(self.cli)
        self.server.__exit__(None, None, None)

    def program_with(self, fault: OutputFault) -> str:
        """Return the path of a program that runs the CLI, with a fault in its output."""
        at_the_text = {
            "garbage": """if [ -z "$done" ]; then done=1; printf '{"type": "ass\\n'; fi""",
            "cut": """printf '%s' "${line:0:40}"; exit 0""",
        }
        path = self.cli.home / f"with-{fault}"
        path.write_text(
            f"""#!/bin/bash
case "$*" in *--version*) exec "{self.cli.program}" "$@";; esac
exec "{self.cli.program}" "$@" > >(while IFS= read -r line; do
  case "$line" in *{self.text_in_output}*) {at_the_text[fault]};; esac
  printf '%s\\n' "$line"
done)
"""
        )
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return str(path)


class ClaudeCodeUnderTest(CliUnderTest):
    name = "claude-code"
    fields: Mapping[str, str] = {"model": "fake-1"}
    other_model = "fake-2"
    asks_at_once = False
    text_in_output = "text_delta"

    def make(self) -> ClaudeCodeRuntime:
        return self._made("")

    def make_behind(self, fault: OutputFault) -> RuntimeService:
        return self._made(self.program_with(fault))

    def _made(self, program: str) -> ClaudeCodeRuntime:
        here = {"ANTHROPIC_BASE_URL": self.server.address}
        options = ClaudeCodeOptions(program=program, providers={"here": here})
        return ClaudeCodeRuntime(cwd=self.cwd, environment=self.cli.environment, options=options)

    async def kill(self, runtime: RuntimeService, session_id: str) -> None:
        assert isinstance(runtime, ClaudeCodeRuntime)
        os.kill(runtime.process_id(session_id), signal.SIGKILL)


class CodexUnderTest(CliUnderTest):
    name = "codex"
    other_model = "fake-2"
    text_in_output = "item/agentMessage/delta"

    def make(self) -> CodexRuntime:
        return self._made(self.cli.program)

    def make_behind(self, fault: OutputFault) -> RuntimeService:
        return self._made(self.program_with(fault))

    def _made(self, program: str) -> CodexRuntime:
        return CodexRuntime(environment=self.cli.environment, cwd=self.cwd, program=program)

    async def kill(self, runtime: RuntimeService, session_id: str) -> None:
        assert isinstance(runtime, CodexRuntime)
        os.kill((await runtime.server()).process_id, signal.SIGKILL)


def fake(place: Path) -> RuntimeUnderTest:
    """Return `FakeRuntime`."""
    return FakeUnderTest(place)


def function(place: Path) -> RuntimeUnderTest:
    """Return `FunctionRuntime`."""
    return FunctionUnderTest(place)


def claude_code(place: Path) -> RuntimeUnderTest:
    """Return Claude Code."""
    server = ModelServer().__enter__()
    return ClaudeCodeUnderTest(clis.claude(server, place), server)


def codex(place: Path) -> RuntimeUnderTest:
    """Return Codex."""
    server = ModelServer().__enter__()
    return CodexUnderTest(clis.codex(server, place), server)


RUNTIMES: dict[str, RuntimeFactory] = {
    "fake": fake,
    "function": function,
    "claude-code": claude_code,
    "codex": codex,
}
NEEDS = {"claude-code": "claude", "codex": "codex"}
"""What must be installed for a runtime, as `requires` names it."""
