"""Finds what a task has created, and removes it when it is no longer needed."""

from __future__ import annotations

import logging

from arp.tools.errors import InvalidToolMeta, ToolAgentError
from arp.tools.registry.models import ToolMeta, ToolStatus
from arp.tools.service import ToolService
from arp.tools.tasks.task_book import TaskRecord
from arp.tools.tasks.task_specs import RepairTool, task_spec_of

logger = logging.getLogger(__name__)


def is_made_by(task: TaskRecord, tool: ToolMeta) -> bool:
    """Return whether a task has created a tool; a repair creates none."""
    runtime = tool.runtime
    return not _is_repair(task) and (
        tool.tool_id == task.registered
        or runtime.host_dir in task.projects
        or runtime.container_id in task.containers
    )


async def remove_leftovers(service: ToolService, task: TaskRecord, *, all_tools: bool) -> None:
    """Remove what a task has created and no tool uses; the names can then be used again.

    Failures are logged.

    Args:
        service: Tools.
        task: Task that failed, was cancelled, or begins again.
        all_tools: Whether to remove first all tools that the task has created, because it builds
            them again; otherwise only the unfinished ones are removed.
    """
    try:
        for tool in service.registry.tools():
            is_unfinished = tool.status is ToolStatus.STAGING
            if is_made_by(task, tool) and (all_tools or is_unfinished):
                await service.remove(tool.tool_id)
        # A repair may have replaced the container of the tool. Removing the new one would lose the
        # tool.
        containers = [] if _is_repair(task) and not all_tools else task.containers
        left = await service.belongings.remove_of_task(task.projects, containers)
    except ToolAgentError as error:
        logger.warning("task %s has left something: %s", task.task_id, error.message)
        return
    if left.removed:
        logger.info("task %s: removed %s", task.task_id, ", ".join(left.removed))


def _is_repair(task: TaskRecord) -> bool:
    try:
        return bool(task.task_spec) and isinstance(task_spec_of(task.task_spec), RepairTool)
    except InvalidToolMeta:
        return False
