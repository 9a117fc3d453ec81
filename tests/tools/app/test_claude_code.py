"""Claude Code as coding agent: the real program gets the ten tools by MCP, from a fake model."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from arp.runtime.contract.types import CreateSessionRequest
from arp.runtime.programs.claude.claude_code import ClaudeCodeOptions, ClaudeCodeRuntime
from arp.tools.app.ari_coder import AriCoder
from arp.tools.build.coding_job import CodingJob
from arp.tools.build.toolbox import TEN_TOOLS, Toolbox
from arp.tools.build.workplace import Headless
from arp.tools.service import ToolService
from arp.tools.tasks.task_book import TaskBook, TaskStatus
from arp.tools.tasks.task_specs import BuildTool
from tests.runtime import clis
from tests.runtime.model_server import ModelServer
from tests.tools.house import settings_in

pytestmark = [pytest.mark.claude, pytest.mark.timeout(90)]


@pytest.mark.parametrize("way", ["in process", "over HTTP"])
async def test_claude_code_calls_the_ten_tools(
    tmp_path_factory: pytest.TempPathFactory, requires: Callable[[str], str], way: str
) -> None:
    """The model's answer has what the tool returned; the project is on the disk."""
    requires("claude")
    data_dir: Path = tmp_path_factory.mktemp("data")
    service, book = ToolService(settings_in(data_dir)), TaskBook(data_dir)
    task = book.add("x")
    book.set(task.task_id, TaskStatus.RUNNING)
    with ModelServer() as model:
        cli = clis.claude(model, tmp_path_factory.mktemp("claude"))
        options = ClaudeCodeOptions(own_tools=False)
        runtime = ClaudeCodeRuntime(cwd=cli.cwd, environment=cli.environment, options=options)
        coder = AriCoder(
            runtime if way == "in process" else Plain(runtime),  # type: ignore[arg-type]
            CreateSessionRequest(model="fake-1"),
        )
        async with service:
            words = f"mcp: tool_agent create_uv_project {json.dumps({'name': 'made'})}"
            box = Toolbox(service, BuildTool("x"), asks=True)
            outcome = await coder.work(CodingJob(task, words, box, Headless(False), book))
            refused = "mcp: tool_agent read_file " + json.dumps({"path": "/etc/passwd"})
            again = await coder.work(CodingJob(task, refused, box, Headless(False), book))
        await coder.aclose()
        offered = [request.body["tools"] for request in model.requests if request.body.get("tools")]
    project = data_dir / "projects" / "made"
    assert outcome.error == ""
    assert f'{{"project_dir":"{project}"}}' in outcome.text
    assert (project / "pyproject.toml").exists()
    assert "is refused" in again.text
    # No shell, no editor: some of its own tools would run without asking.
    wanted = sorted(f"mcp__tool_agent__{name}" for name in TEN_TOOLS)
    assert offered
    assert all(sorted(tool["name"] for tool in tools) == wanted for tools in offered)


class Plain:
    """A runtime without what only Claude Code has."""

    def __init__(self, runtime: ClaudeCodeRuntime) -> None:
        self._runtime = runtime
        for name in ("create_session", "send_message", "session_events", "respond_permission",
                     "cancel_turn", "close_session", "delete_session", "close"):  # fmt: skip
            setattr(self, name, getattr(runtime, name))
