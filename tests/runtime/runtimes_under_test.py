"""The runtimes that the contract suite runs against: each gives one for an empty directory.

    arp conformance runtime tests.runtime.runtimes_under_test:codex

`RUNTIMES` has all of them, by their names in the matrix; a new adapter needs a class here.
"""

from __future__ import annotations

import asyncio
import atexit
import functools
import os
import shutil
import signal
import stat
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from arp.conformance.runtime.runtime_under_test import (
    OutputFault,
    Prompts,
    RuntimeFactory,
    RuntimeUnderTest,
)
from arp.runtime.contract import types as ari
from arp.runtime.contract.errors import AriError, InvalidArgument, OperationDenied, Unavailable
from arp.runtime.contract.services import RuntimeService
from arp.runtime.plain.fake import Fails, FakeRuntime, Says, Step, Tells, Thinks, Uses, Waits
from arp.runtime.plain.function import FunctionRuntime, FunctionTurn
from arp.runtime.programs.acp.acp import AcpRuntime
from arp.runtime.programs.acp.session import AcpConnection
from arp.runtime.programs.claude.claude_code import ClaudeCodeOptions, ClaudeCodeRuntime
from arp.runtime.programs.codex.codex import CodexRuntime
from tests.runtime import clis
from tests.runtime.clis import Cli
from tests.runtime.frameworks_under_test import ag_ui, langgraph, openai_agents, pydantic_ai
from tests.runtime.model_script import HELLO, THINKING, THOUGHT, WORKED
from tests.runtime.model_server import ModelServer
from tests.runtime.served import ServedByGrpc, ServedByHttp

UNTOLD = "ACP has no update for a retry"
NO_STATUS = "OpenCode does not tell the status of a failing model; the turn ends as Internal"

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

    def make(self) -> RuntimeService:
        return self.new_fake()

    def new_fake(self) -> FakeRuntime:
        """Return a fake over the storage of the case."""
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


class GrpcUnderTest(FakeUnderTest):
    """The fake behind a server of gRPC; each of its clients has a server of its own."""

    name = "grpc"

    def make(self) -> RuntimeService:
        return ServedByGrpc(self.new_fake())


class HttpUnderTest(FakeUnderTest):
    """The fake behind an HTTP gateway; each of its clients has a gateway of its own."""

    name = "http"

    def make(self) -> RuntimeService:
        return ServedByHttp(self.new_fake())


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
    prompts = Prompts(use="tool: {tool}")
    text_in_output = "text_delta"

    @property
    def own_tools(self) -> Sequence[str]:  # type: ignore[override]  # its files are in `cwd`
        secret, made = self.cwd / "secret.txt", self.cwd / "made"
        return (
            f'Read {{"file_path": "{secret}"}}',
            f'Write {{"file_path": "{made}", "content": "x"}}',
            'WebFetch {"url": "http://127.0.0.1:9/", "prompt": "what is there?"}',
        )

    def make(self) -> ClaudeCodeRuntime:
        return self._made("", self.cwd)

    def make_in(self, cwd: Path) -> ClaudeCodeRuntime:
        return self._made("", cwd)

    def make_behind(self, fault: OutputFault) -> RuntimeService:
        return self._made(self.program_with(fault), self.cwd)

    def _made(self, program: str, cwd: Path) -> ClaudeCodeRuntime:
        here = {"ANTHROPIC_BASE_URL": self.server.address}
        options = ClaudeCodeOptions(program=program, providers={"here": here})
        return ClaudeCodeRuntime(cwd=cwd, environment=self.cli.environment, options=options)

    async def kill(self, runtime: RuntimeService, session_id: str) -> None:
        assert isinstance(runtime, ClaudeCodeRuntime)
        os.kill(runtime.process_id(session_id), signal.SIGKILL)


class CodexUnderTest(CliUnderTest):
    name = "codex"
    other_model = "fake-2"
    text_in_output = "item/agentMessage/delta"

    def make(self) -> CodexRuntime:
        return self._made(self.cli.program, self.cwd)

    def make_in(self, cwd: Path) -> CodexRuntime:
        return self._made(self.cli.program, cwd)

    def make_behind(self, fault: OutputFault) -> RuntimeService:
        return self._made(self.program_with(fault), self.cwd)

    def _made(self, program: str, cwd: Path) -> CodexRuntime:
        return CodexRuntime(environment=self.cli.environment, cwd=cwd, program=program)

    async def kill(self, runtime: RuntimeService, session_id: str) -> None:
        assert isinstance(runtime, CodexRuntime)
        os.kill((await runtime.server()).process_id, signal.SIGKILL)


class KeptOpenCode:
    """OpenCode, started once for many cases: a start takes ten times as long as a case."""

    def __init__(self, place: Path) -> None:
        self.server = ModelServer().__enter__()
        self.cli = clis.opencode(self.server, place)
        self.connections: dict[str, AcpConnection] = {}
        self._stopping: AsyncIterator[None] | None = None

    async def started(self) -> None:
        """Let its processes end with the loop: a loop closes the generators that run in it."""
        if self._stopping is None:
            self._stopping = self._stops()
            await anext(self._stopping)

    async def _stops(self) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await self.stop()

    async def stop(self) -> None:
        """Stop its processes."""
        while self.connections:
            _, connection = self.connections.popitem()
            await connection.stop()

    def end(self) -> None:
        """End its model, and what is left of its processes."""
        clis.end_processes_of(self.cli)
        self.server.__exit__(None, None, None)


class KeptAcpRuntime(AcpRuntime):
    """One whose process is left running when it is closed, for the next one with the same key."""

    def __init__(self, opencode: KeptOpenCode, key: str, cwd: Path) -> None:
        cli = opencode.cli
        super().__init__(cli.command, cwd=cwd, environment=cli.environment, name="opencode")
        self.opencode, self.key = opencode, key

    async def connection(self) -> AcpConnection:
        kept = self.opencode.connections
        self._connection = kept.get(self.key)
        kept[self.key] = await super().connection()
        await self.opencode.started()
        return kept[self.key]

    async def _end(self) -> None:
        return


class AcpUnderTest(CliUnderTest):
    """OpenCode behind `AcpRuntime`.

    Cases share a process of it, and those that go on in another process share a second one over the
    same storage. Cases in `ALONE`, which look at processes or have a fault in the output, get a
    process of their own.
    """

    name = "acp:opencode"
    asks_at_once = False
    other_model = "fake/fake-2"
    case_s = 150.0
    text_in_output = "agent_message_chunk"
    not_shown: Mapping[str, str] = {
        "model_error_400": NO_STATUS,
        "model_error_401": NO_STATUS,
        "model_error_500": f"OpenCode asks a failing model again without an end; {UNTOLD}",
        "retry_is_visible": UNTOLD,
    }
    ALONE = frozenset(
        {
            "garbage_in_the_output",
            "output_cut_in_a_line",
            "environment_is_not_inherited",
            "close_ends_processes",
        }
    )

    def __init__(self, place: Path, kept: KeptOpenCode | None) -> None:
        self.place, self.kept, self.made = place, kept, 0
        if kept is None:
            self._be_alone()
        else:
            super().__init__(kept.cli, kept.server)
            shutil.rmtree(self.cwd)
            self.cwd.mkdir()

    def _be_alone(self) -> None:
        server = ModelServer().__enter__()
        super().__init__(clis.opencode(server, self.place), server)
        self.kept = None

    def make(self) -> AcpRuntime:
        return self.make_in(self.cwd)

    def make_in(self, cwd: Path) -> AcpRuntime:
        self.made += 1
        if self.kept is not None:
            return KeptAcpRuntime(self.kept, "first" if self.made == 1 else "second", cwd)
        return self._made(self.cli.program, cwd)

    def make_behind(self, fault: OutputFault) -> RuntimeService:
        if self.kept is not None:
            self._be_alone()
        return self._made(self.program_with(fault), self.cwd)

    def _made(self, program: str, cwd: Path) -> AcpRuntime:
        command = [program, *self.cli.arguments]
        return AcpRuntime(command, cwd=cwd, environment=self.cli.environment, name="opencode")

    def processes(self) -> Sequence[int]:
        if self.kept is not None:
            self._be_alone()
        return super().processes()

    async def kill(self, runtime: RuntimeService, session_id: str) -> None:
        assert isinstance(runtime, AcpRuntime)
        os.kill((await runtime.connection()).process_id, signal.SIGKILL)

    def end(self) -> None:
        if self.kept is None:
            super().end()


def fake(place: Path) -> RuntimeUnderTest:
    """Return `FakeRuntime`."""
    return FakeUnderTest(place)


def function(place: Path) -> RuntimeUnderTest:
    """Return `FunctionRuntime`."""
    return FunctionUnderTest(place)


def grpc(place: Path) -> RuntimeUnderTest:
    """Return `FakeRuntime` behind a server of gRPC."""
    return GrpcUnderTest(place)


def http(place: Path) -> RuntimeUnderTest:
    """Return `FakeRuntime` behind an HTTP gateway."""
    return HttpUnderTest(place)


def claude_code(place: Path) -> RuntimeUnderTest:
    """Return Claude Code."""
    server = ModelServer().__enter__()
    return ClaudeCodeUnderTest(clis.claude(server, place), server)


def codex(place: Path) -> RuntimeUnderTest:
    """Return Codex."""
    server = ModelServer().__enter__()
    return CodexUnderTest(clis.codex(server, place), server)


def acp(place: Path) -> RuntimeUnderTest:
    """Return OpenCode; one process serves most cases of a run of `arp conformance runtime`."""
    return AcpUnderTest(place, kept_opencode())


def acp_alone(place: Path) -> RuntimeUnderTest:
    """Return OpenCode with a process of its own."""
    return AcpUnderTest(place, None)


@functools.cache
def kept_opencode() -> KeptOpenCode:
    """Return what ends with this process."""
    place = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
    kept = KeptOpenCode(Path(place.name))
    atexit.register(place.cleanup)
    atexit.register(kept.end)
    return kept


RUNTIMES: dict[str, RuntimeFactory] = {
    "fake": fake,
    "function": function,
    "claude-code": claude_code,
    "codex": codex,
    "acp:opencode": acp_alone,
    "grpc": grpc,
    "http": http,
    "langgraph": langgraph,
    "openai-agents": openai_agents,
    "pydantic-ai": pydantic_ai,
    "ag-ui": ag_ui,
}
NEEDS = {"claude-code": "claude", "codex": "codex", "acp:opencode": "opencode"}
"""What must be installed for a runtime, as `requires` names it."""
