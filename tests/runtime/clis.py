"""The real CLIs of agents: where they are, and the environment in which a test starts one.

    cli = claude(server, tmp_path)       # codex(…), opencode(…); or the fixtures of the same names:
                                         # claude_cli, codex_cli, opencode_cli (and `model_server`)
    cli.program                          # path of the binary
    cli.command                          # the program with the arguments of its protocol over pipes
    cli.environment                      # the whole environment: nothing else may be inherited
    cli.cwd                              # an empty directory to work in

    async with running(cli) as peer:     # starts cli.command; ends it and all its children
        await peer.send({...})           # one JSON object a line
        message = await peer.receive(lambda message: message.get("id") == 1)

    processes_of(cli)                    # what runs in its environment: the CLI, commands, orphans

Each CLI has a home of its own below the given directory and is aimed at the fake model server. To
start a CLI again for the same sessions, use the same `Cli` again. A test marks what it needs
(`claude`, `codex`, `opencode`; the fixtures do it): where that is missing it is left out with a
reason, with CI=true it fails.

Claude Code and Codex come with `make install`, in the wheels `claude-agent-sdk` and
`openai-codex-cli-bin`; OpenCode comes with `make opencode`, by npm.
"""

from __future__ import annotations

import asyncio
import json
import os
import platform
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psutil

from tests.runtime.model_server import ModelServer

Message = dict[str, Any]

WITHIN_S = 60.0
"""So long a test waits for a message of a CLI, unless it says otherwise."""
MOST_LINE_BYTES = 64 * 2**20
EVERY_S = 0.005
KEY = "test"
"""The key that every CLI shows to the model server."""

NPM = Path(__file__).parent / "npm"


@dataclass(frozen=True)
class Cli:
    """A CLI, ready to be started."""

    program: str
    arguments: Sequence[str]
    environment: dict[str, str]
    cwd: Path
    home: Path

    @property
    def command(self) -> list[str]:
        """The program and its arguments."""
        return [self.program, *self.arguments]

    def but(self, *arguments: str, **environment: str) -> Cli:
        """Return the CLI with more arguments at the end, and with more in its environment."""
        return replace(
            self,
            arguments=[*self.arguments, *arguments],
            environment={**self.environment, **environment},
        )


def claude_path() -> str | None:
    """Return the path of the `claude` in the wheel claude-agent-sdk, if it is there."""
    return _in_package("claude_agent_sdk", "_bundled/claude")


def codex_path() -> str | None:
    """Return the path of the `codex` in the wheel openai-codex-cli-bin, if it is there."""
    return _in_package("codex_cli_bin", "bin/codex")


def opencode_path() -> str | None:
    """Return the path of the `opencode` that `make opencode` has installed, if it is there.

    npm's link in `.bin` needs an install script, so it is the binary of the platform's package.
    """
    machine = {"x86_64": "x64-baseline", "AMD64": "x64-baseline", "aarch64": "arm64"}
    kind = machine.get(platform.machine(), platform.machine())
    return _program(NPM / f"node_modules/opencode-{sys.platform}-{kind}/bin/opencode")


def _in_package(package: str, path: str) -> str | None:
    spec = find_spec(package)
    places = spec.submodule_search_locations if spec is not None else None
    return _program(Path(places[0]) / path) if places else None


def _program(path: Path) -> str | None:
    return str(path) if os.access(path, os.X_OK) else None


def claude(server: ModelServer, place: Path) -> Cli:
    """Return Claude Code, which speaks stream-json; permissions are asked over its pipes.

    Its sessions are below `home/.claude/projects`. The arguments do not name a session.
    """
    arguments = [
        *("--output-format", "stream-json", "--input-format", "stream-json", "--verbose"),
        *("--permission-prompt-tool", "stdio", "--include-partial-messages"),
        *("--permission-mode", "default", "--setting-sources=", "--model", "fake-1"),
    ]
    cli = _cli(claude_path(), arguments, place)
    return cli.but(
        ANTHROPIC_BASE_URL=server.address,
        ANTHROPIC_API_KEY=KEY,
        CLAUDE_CONFIG_DIR=str(cli.home / ".claude"),
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
        CLAUDE_CODE_MAX_RETRIES="1",
        # Else tools of MCP servers are not offered before the model has searched for them.
        ENABLE_TOOL_SEARCH="false",
    )


CODEX_CONFIG = """\
model = "gpt-5.5"
model_provider = "fake"
approval_policy = "on-request"
sandbox_mode = "workspace-write"
check_for_update_on_startup = false

[analytics]
enabled = false

[features]
apps = false
plugins = false

[model_providers.fake]
name = "fake"
base_url = "{address}"
wire_api = "responses"
env_key = "FAKE_KEY"
request_max_retries = 0
stream_max_retries = 1
"""
"""Of the models that Codex knows, gpt-5.5 has tools of the classic kind, with `apply_patch`.

Without a retry of requests, each is one of the stream, which Codex tells of. Analytics, apps and
plugins would connect to hosts outside.
"""


def codex(server: ModelServer, place: Path) -> Cli:
    """Return Codex as app server, which speaks JSON-RPC; it asks before it leaves its sandbox."""
    cli = _cli(codex_path(), ["app-server"], place)
    config = cli.home / ".codex" / "config.toml"
    config.parent.mkdir(exist_ok=True)
    config.write_text(CODEX_CONFIG.format(address=server.openai_address))
    return cli.but(CODEX_HOME=str(config.parent), FAKE_KEY=KEY)


def opencode(server: ModelServer, place: Path) -> Cli:
    """Return OpenCode, which speaks the Agent Client Protocol; it asks for commands and edits."""
    takes = {"attachment": True, "modalities": {"input": ["text", "image"], "output": ["text"]}}
    models = {name: {"name": name, **takes} for name in ("fake-1", "fake-2", "helper")}
    options = {"baseURL": server.openai_address, "apiKey": KEY}
    provider = {"npm": "@ai-sdk/openai-compatible", "options": options, "models": models}
    config = {
        "provider": {"fake": provider},
        "enabled_providers": ["fake"],
        "model": "fake/fake-1",
        "small_model": "fake/helper",
        "permission": {"bash": "ask", "edit": "ask"},
        "autoupdate": False,
        "share": "disabled",
    }
    cli = _cli(opencode_path(), ["acp"], place)
    # Else it fetches this package from a registry at its first start.
    installed = {"packages": {"": {"dependencies": {"@opencode-ai/plugin": "*"}}}}
    plugins = cli.home / ".config" / "opencode"
    (plugins / "node_modules").mkdir(parents=True, exist_ok=True)
    (plugins / "package-lock.json").write_text(json.dumps(installed))
    return cli.but(
        OPENCODE_CONFIG_CONTENT=json.dumps(config),
        OPENCODE_DISABLE_MODELS_FETCH="1",
        OPENCODE_DISABLE_AUTOUPDATE="1",
        OPENCODE_DISABLE_LSP_DOWNLOAD="1",
        OPENCODE_DISABLE_DEFAULT_PLUGINS="1",
    )


def _cli(program: str | None, arguments: Sequence[str], place: Path) -> Cli:
    if program is None:
        raise LookupError("the CLI is not installed; mark the test with its name")
    home, cwd, temporary = place / "home", place / "cwd", place / "tmp"
    for directory in (home, cwd, temporary):
        directory.mkdir(parents=True, exist_ok=True)
    environment = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "TMPDIR": str(temporary),
        # Nothing outside is needed, and nothing outside is reached, also where a program does not
        # read its configuration: nobody listens there.
        "HTTPS_PROXY": "http://127.0.0.1:9",
        "NO_PROXY": "127.0.0.1,localhost",
    }
    return Cli(program, arguments, environment, cwd, home)


@dataclass
class JsonLinesPeer:
    """A program that reads and writes one JSON object a line."""

    process: Process
    messages: list[Message] = field(default_factory=list)
    """All that it has sent, oldest first."""
    errors: bytearray = field(default_factory=bytearray)
    """What it has written to its standard error."""

    async def send(self, message: Message) -> None:
        """Write one message."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        await self.process.stdin.drain()

    async def receive(
        self, wanted: Callable[[Message], object], *, within_s: float = WITHIN_S
    ) -> Message:
        """Return the next message that is wanted; the others are kept in `messages`.

        Raises:
            AssertionError: It did not come in time, or the output has ended before.
        """
        try:
            async with asyncio.timeout(within_s):
                while message := await self._next():
                    if wanted(message):
                        return message
        except TimeoutError:
            raise AssertionError(f"Timeout: not sent within {within_s} s{self._seen()}") from None
        raise AssertionError(f"it ended without sending that{self._seen()}")

    async def _next(self) -> Message | None:
        assert self.process.stdout is not None
        line = await self.process.stdout.readline()
        if not line:
            return None
        message: Message = json.loads(line)
        self.messages.append(message)
        return message

    def _seen(self) -> str:
        sent = "\n".join(json.dumps(message)[:300] for message in self.messages[-15:])
        return f"; last sent:\n{sent}\nstandard error:\n{self.errors.decode(errors='replace')}"


def processes_of(cli: Cli) -> list[psutil.Process]:
    """Return each process that has the home of the CLI in its environment, zombies left out.

    Codex and OpenCode start commands in sessions of their own, so a process group does not have
    them, and after the death of the CLI no tree does.
    """
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            is_running = process.status() != psutil.STATUS_ZOMBIE
            if is_running and process.environ().get("HOME") == cli.environment["HOME"]:
                found.append(process)
    return found


def end_processes_of(cli: Cli) -> None:
    """Kill each process of the CLI, also those that are started meanwhile; wait for their end."""
    until = time.monotonic() + WITHIN_S
    while processes := processes_of(cli):
        if time.monotonic() > until:
            raise AssertionError(f"these do not end: {processes}")
        for process in processes:
            with suppress(psutil.Error):
                process.kill()
        time.sleep(EVERY_S)


@asynccontextmanager
async def running(cli: Cli) -> AsyncIterator[JsonLinesPeer]:
    """Start a CLI in its environment; end it with the block, and all that it has started."""
    process = await asyncio.create_subprocess_exec(
        *cli.command,
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
        env=cli.environment,
        cwd=cli.cwd,
        limit=MOST_LINE_BYTES,
    )
    peer = JsonLinesPeer(process)
    reading = asyncio.create_task(_read_errors(peer))
    try:
        yield peer
    finally:
        await asyncio.to_thread(end_processes_of, cli)
        await asyncio.wait_for(reading, WITHIN_S)
        # Not wait(): a pipe is closed when it was read to its end.
        await asyncio.wait_for(process.communicate(), WITHIN_S)


async def _read_errors(peer: JsonLinesPeer) -> None:
    assert peer.process.stderr is not None
    while data := await peer.process.stderr.read(2**16):
        peer.errors += data
