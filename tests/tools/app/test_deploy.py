"""A repository becomes a tool: cloned from an allowed folder, started, called."""

from __future__ import annotations

from pathlib import Path

import pytest

from arp.protocol.json_value import JsonObject
from arp.tools.build.backend import ToolBackend
from arp.tools.build.coding_job import CodingJob, CodingOutcome
from arp.tools.build.router import TaskRequest
from arp.tools.build.workplace import Headless
from arp.tools.service import ToolService
from arp.tools.tasks.task_book import TaskStatus
from arp.tools.tasks.task_specs import ApiSpec, GithubDeploy
from tests.tools.house import settings_in
from tests.tools.test_cloning import repository

pytestmark = pytest.mark.timeout(90)

CODE = "import json, sys; print(json.dumps({'upper': json.load(sys.stdin)['text'].upper()}))"


class Deployer:
    """Registers the project that it is given, as it is."""

    name = "deployer"

    def __init__(self) -> None:
        self.words = ""

    async def work(self, job: CodingJob) -> CodingOutcome:
        self.words = job.words
        tool: JsonObject = {
            "tool_id": "shouter", "name": "Shouter", "description": "Shouts a text.",
            "runtime_type": "uv", "host_port": 0, "internal_port": 0,
        }  # fmt: skip
        assert "CODE" not in (await job.call("read_file", {"path": "main.py"}))["content"]
        return CodingOutcome(str(await job.call("register_tool", tool)))


@pytest.mark.parametrize("uv_name", ["uv", "local"])
async def test_project_of_a_repository_is_a_tool(tmp_path: Path, uv_name: str) -> None:
    bare = repository(tmp_path, {"main.py": CODE})
    settings = settings_in(tmp_path, git_directories=[bare.parent], approve_builds=False)
    coder = Deployer()
    backend = ToolBackend(ToolService(settings), coder)
    await backend.start()
    api = ApiSpec(input_schema={"type": "object", "required": ["text"]})
    spec = GithubDeploy(str(bare), "shouter", uv_name, description="Shout", api_spec=api)
    task = await backend.build(TaskRequest("shout", spec=spec), Headless(True))
    assert (task.status, task.tool_id, task.error) == (TaskStatus.COMPLETED, "shouter", "")
    outcome = await backend.service.call("shouter", {"text": "hello"})
    assert outcome.result == {"upper": "HELLO"}
    assert f"Its files are in {tmp_path / 'projects' / 'shouter'}." in coder.words
    await backend.aclose()
