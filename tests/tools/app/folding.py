"""A Tool Agent whose coder costs money, and registers a tool that no process runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from arp import App, Turn
from arp.tools.app.agent import ToolAgent
from arp.tools.build.coding_job import CodingJob, CodingOutcome
from arp.tools.registry.models import RuntimeType
from arp.tools.service import ToolService
from tests.support.serving import serving
from tests.tools.app.smithy import Smithy
from tests.tools.house import FunctionTools, settings_in
from tests.tools.test_coding_agent import folder


class FolderCoder:
    """Registers the tool `folder`, for $0.50; tries a command first if the task says so."""

    name = "folder-coder"

    async def work(self, job: CodingJob) -> CodingOutcome:
        await job.say("I fold. ")
        if "try it" in job.words:
            project = (await job.call("create_uv_project", {"name": "folder"}))["project_dir"]
            command = "python -c print(6*7)"
            await job.call("run_in_uv", {"project_dir": project, "command": command})
        await job.call("register_tool", folder())
        return CodingOutcome("It is registered.", 0.5)


@contextmanager
def folding(place: Path) -> Iterator[tuple[Smithy, list[str]]]:
    """Serve an agent that has a tool built, for up to $12.50, whatever somebody says to it.

    Yields:
        The server, and what was said to that agent.
    """
    settings = settings_in(place / "data", coding_task_usd=12.5)
    service = ToolService(settings, runtimes={RuntimeType.API: FunctionTools()})
    tools = ToolAgent(FolderCoder(), service=service)
    app, asked = App("Folder", tools=tools), []

    @app.agent
    async def chat(turn: Turn) -> None:
        asked.append(turn.text)
        await tools.build(turn, turn.text)

    with serving(app, ledger=f"sqlite:{place / 'ledger.db'}") as server:
        yield Smithy(server, tools, []), asked
