"""A program that is no agent, or an old one: what people are told of it, and how soon."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from arp.runtime.contract import types as ari
from arp.runtime.contract.driven import DrivenRuntime
from arp.runtime.contract.errors import Unavailable
from arp.runtime.programs.acp.acp import AcpRuntime
from arp.runtime.programs.claude.claude_code import ClaudeCodeOptions, ClaudeCodeRuntime
from arp.runtime.programs.codex.codex import CodexRuntime
from tests.runtime import scripted_acp_agent

KINDS = ("acp", "codex", "claude")


def program(place: Path, text: str, version: str = "") -> str:
    """Return the path of a program in Python; it answers `--version` if it has one."""
    path = place / "agent"
    versions = f"if '--version' in sys.argv: sys.exit(print({version!r}))" if version else ""
    path.write_text(f"#!{sys.executable}\nimport sys, time\n{versions}\n{text}\n")
    path.chmod(0o755)
    return str(path)


def runtime(kind: str, path: str, place: Path) -> DrivenRuntime:
    """Return a runtime of a kind over a program."""
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(place), "CODEX_HOME": str(place)}
    if kind == "acp":
        return AcpRuntime([path, "--acp"], cwd=place, environment=environment)
    if kind == "codex":
        return CodexRuntime(program=path, cwd=place, environment=environment)
    options = ClaudeCodeOptions(program=path)
    return ClaudeCodeRuntime(cwd=place, environment=environment, options=options)


async def refusal(agent: DrivenRuntime) -> str:
    """Return why no session can be created."""
    try:
        with pytest.raises(Unavailable) as refused:
            await agent.create_session(ari.CreateSessionRequest())
    finally:
        await agent.close()
    return refused.value.message


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("end", ["\\n", ""], ids=["line", "prompt"])
async def test_program_that_prints_no_json_fails_at_once_and_is_quoted(
    tmp_path: Path, kind: str, end: str
) -> None:
    """The error of one that is only slow to start is another, and comes after its time."""
    if kind == "claude" and not end:
        end = "\\n> \\n"
    text = f"print('Welcome to Agent 3!', end='{end}', flush=True); time.sleep(600)"
    version = "9.0.0" if kind == "claude" else "codex-cli 9.0.0"
    message = await refusal(runtime(kind, program(tmp_path, text, version), tmp_path))
    assert "prints no JSON: it printed 'Welcome to Agent 3!'" in message


@pytest.mark.parametrize("kind", KINDS)
async def test_error_quotes_the_line_that_names_the_cause(tmp_path: Path, kind: str) -> None:
    text = (
        "print('Error: no key is configured', file=sys.stderr)\n"
        "for n in range(40): print(f'    at frame{n} (agent.js:{n})', file=sys.stderr)\n"
        "print('Node.js v22.1.0', file=sys.stderr)\n"
        "sys.exit(3)"
    )
    version = "9.0.0" if kind == "claude" else "codex-cli 9.0.0"
    message = await refusal(runtime(kind, program(tmp_path, text, version), tmp_path))
    assert message.endswith(": Error: no key is configured")


@pytest.mark.parametrize("kind", KINDS)
async def test_program_that_prints_text_all_the_time_fails_too(tmp_path: Path, kind: str) -> None:
    text = "while True: print('Still thinking', flush=True); time.sleep(0.2)"
    version = "9.0.0" if kind == "claude" else "codex-cli 9.0.0"
    message = await refusal(runtime(kind, program(tmp_path, text, version), tmp_path))
    assert "it printed 'Still thinking'" in message


async def test_line_of_the_output_can_be_the_cause(tmp_path: Path) -> None:
    text = "print('Error: please log in first'); print('Bye.'); sys.exit(1)"
    message = await refusal(runtime("acp", program(tmp_path, text), tmp_path))
    assert message == "agent ended (exit code 1): Error: please log in first"


async def test_agent_that_prints_a_note_before_its_first_message_works(tmp_path: Path) -> None:
    path = scripted_acp_agent.__file__
    script = (
        "import os\n"
        "print('Loaded cached credentials.', flush=True)\n"
        f"os.execv(sys.executable, [sys.executable, {path!r}, '{{}}'])"
    )
    agent = runtime("acp", program(tmp_path, script), tmp_path)
    created = await agent.create_session(ari.CreateSessionRequest())
    assert created.session.state is ari.SessionState.CREATED
    await agent.close()


@pytest.mark.parametrize(
    ("kind", "version", "told"),
    [
        ("claude", "1.0.58 (Claude Code)", "Claude Code 1.0.58 is too old: 2.0.0 or newer"),
        ("codex", "codex-cli 0.46.0", "Codex 0.46.0 is too old: 0.163.0 or newer"),
    ],
)
async def test_status_says_that_a_program_is_too_old(
    tmp_path: Path, kind: str, version: str, told: str
) -> None:
    text = 'print("error: unrecognized subcommand", file=sys.stderr); sys.exit(2)'
    agent = runtime(kind, program(tmp_path, text, version), tmp_path)
    status = await agent.status(ari.StatusRequest())
    assert (status.healthy, status.ready) == (False, False)
    assert status.message.startswith(told)
    assert "update it" in status.message
    assert (await refusal(agent)).startswith(told)


async def test_status_of_an_acp_agent_that_does_not_know_its_arguments(tmp_path: Path) -> None:
    text = 'print("Usage: agent", "Unknown argument: acp", sep="\\n", file=sys.stderr); sys.exit(1)'
    agent = runtime("acp", program(tmp_path, text), tmp_path)
    status = await agent.status(ari.StatusRequest())
    await agent.close()
    assert not status.ready
    assert status.message == (
        "agent ended (exit code 1): Unknown argument: acp; it may be too old for its arguments: "
        "update it, or check its command"
    )
