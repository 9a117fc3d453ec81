"""Two coding agents side by side, each in its own chat."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from arp import connect
from tests.runtime.clis import Cli, processes_of
from tests.runtime.conftest import claude_cli, codex_cli, model_server
from tests.runtime.model_server import ModelServer

__all__ = ["claude_cli", "codex_cli", "model_server"]

APP = Path(__file__).parents[2] / "examples/coding_agents/app.py"


@pytest.mark.timeout(120)
async def test_each_agent_answers_in_its_own_chat(
    claude_cli: Cli, codex_cli: Cli, model_server: ModelServer, tmp_path: Path
) -> None:
    keys = {"PROJECT": str(tmp_path), "PASS_ENV": "FAKE_KEY ENABLE_TOOL_SEARCH"}
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "arp.cli", "serve", str(APP), "--port", "0"),
        *("--ledger", f"sqlite:{tmp_path / 'ledger.db'}"),
        env={**codex_cli.environment, **claude_cli.environment, **keys},
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert child.stdout is not None
        async with asyncio.timeout(90):
            url = (await child.stdout.readline()).decode().removeprefix("ARP on ").strip()
            for name in ("claude-code", "codex"):
                async with connect(url, workflow=name) as client:
                    turn = await client.ask(f"echo: I am {name}")
                    assert (turn.status, turn.errors) == ("completed", [])
                    assert client.screen.text(turn.id) == f"I am {name}"
            child.terminate()
            assert await child.wait() == 0
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    assert {request.dialect for request in model_server.requests} == {"messages", "responses"}
    assert processes_of(claude_cli) == []
