"""Codex as coding agent: the real program gets the ten tools by MCP, and no shell of its own."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from arp.runtime.programs.codex.codex import CodexRuntime
from arp.tools.app.agent import ToolAgent
from arp.tools.app.ari_coder import NOT_OURS, AriCoder
from arp.tools.build.coding_job import CodingJob
from arp.tools.build.toolbox import Toolbox
from arp.tools.build.workplace import Headless
from arp.tools.service import ToolService
from arp.tools.tasks.task_book import TaskBook, TaskStatus
from arp.tools.tasks.task_specs import BuildTool
from tests.runtime import clis
from tests.runtime.model_server import ModelServer
from tests.tools.house import settings_in

pytestmark = [pytest.mark.codex, pytest.mark.timeout(90)]


async def test_codex_calls_the_ten_tools_and_is_refused_its_own(
    tmp_path_factory: pytest.TempPathFactory, requires: Callable[[str], str]
) -> None:
    requires("codex")
    data_dir: Path = tmp_path_factory.mktemp("data")
    service, book = ToolService(settings_in(data_dir)), TaskBook(data_dir)
    task = book.add("x")
    book.set(task.task_id, TaskStatus.RUNNING)
    with ModelServer() as model:
        cli = clis.codex(model, tmp_path_factory.mktemp("codex"))
        named = ToolAgent("codex", service=service)._coder
        assert isinstance(named, AriCoder)
        assert isinstance(named.runtime, CodexRuntime)
        # By its name it is started so, in the environment of the server.
        assert (named.runtime.mode, named.runtime.own_tools) == ("ask", False)
        coder = AriCoder(
            CodexRuntime(cwd=cli.cwd, environment=cli.environment, mode="ask", own_tools=False)
        )
        async with service:
            box = Toolbox(service, BuildTool("x"), asks=True)

            async def says(words: str) -> str:
                return (await coder.work(CodingJob(task, words, box, Headless(False), book))).text

            made = await says(f"mcp: tool_agent create_uv_project {json.dumps({'name': 'made'})}")
            passwd = json.dumps({"path": "/etc/passwd"})
            refused = await says(f"mcp: tool_agent read_file {passwd}")
            written = await says(f"write: {cli.cwd}/own.txt")
        await coder.aclose()
        offered = [request.body["tools"] for request in model.requests if request.body.get("tools")]
    project = data_dir / "projects" / "made"
    assert f'{{"project_dir":"{project}"}}' in made
    assert (project / "pyproject.toml").exists()
    assert "is refused" in refused
    assert NOT_OURS in written
    assert not (cli.cwd / "own.txt").exists()
    names = {str(tool.get("name") or tool["type"]) for tools in offered for tool in tools}
    # `apply_patch` asks, as was seen; what else is there reads, or asks people.
    assert names == {
        "apply_patch",
        "list_mcp_resource_templates",
        "list_mcp_resources",
        "read_mcp_resource",
        "request_user_input",
        "tool_search",
        "view_image",
    }
