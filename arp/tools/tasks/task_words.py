"""Prompt of a task for a coding agent."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from arp.tools.run.runtime import HealthAlert
from arp.tools.tasks.task_specs import (
    BuildTool,
    GithubDeploy,
    RepairTool,
    TaskSpec,
    task_spec_text,
)

INSTRUCTIONS: Final = """\
You make tools that other agents call. You work with the tools of the MCP server "tool_agent" alone,
and use no other way to run commands or to change files.

A tool is a Python project with `main.py` (create_uv_project, write_file, uv_add_dependency), or a
container (create_docker_env). A local server listens on 127.0.0.1 and the port in the environment
variable PORT, and takes its parameters as a JSON object in the body. It answers with a JSON object,
with status 400 and {"error": "…"} if a parameter is wrong. A tool without a server reads one JSON
object from standard input and writes one to standard output; it reaches no network, a server does.

Try what you have written (run_in_uv, run_in_docker) before you register it. A task is done when
register_tool has returned "success": it starts the tool and checks that it answers. A person may
refuse a step; then say what you would have done, and stop.
"""
"""Instructions for every task of a coding agent."""


def words_for(spec: TaskSpec, projects: Sequence[Path], alert: HealthAlert | None) -> str:
    """Return the prompt for a task.

    Args:
        spec: Spec of the task.
        projects: Project directories that belong to the task already.
        alert: Last alert of the tool to repair.
    """
    match spec:
        case BuildTool():
            what = f"Write the tool {spec.tool_name}, and register it under this id."
        case GithubDeploy():
            what = (
                f"Make the tool {spec.tool_name} of the project in {spec.repo_url}, and register "
                "it under this id."
            )
        case RepairTool():
            what = f"The tool {spec.tool_id} does not work. Find out why, and repair it."
    lines = [what, "", f"What it is to do: {spec.description}" if spec.description else ""]
    lines += [f"Its files are in {project}." for project in projects]
    if alert is not None and isinstance(spec, RepairTool):
        since = alert.last_healthy or "it was started"
        lines.append(f"It answered last at {since}; then: {alert.error}")
    lines += ["", "The task as JSON:", _readable(spec)]
    return "\n".join(line for number, line in enumerate(lines) if line or number in (1, 4))


def _readable(spec: TaskSpec) -> str:
    return msgspec.json.format(task_spec_text(spec), indent=2)
