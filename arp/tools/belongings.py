"""`Belongings`: the projects and containers of a tool or a task, and their removal.

Projects and containers that another tool uses are kept. A container is removed before the projects
that it mounts. If the engine cannot remove a container now, the container no longer belongs to any
tool, so the clean-up destroys it later.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from pathlib import Path

import msgspec
from msgspec import field

from arp.tools.errors import ToolAgentError, UnknownTool
from arp.tools.projects.projects import LocalProjects
from arp.tools.registry.models import ContainerStatus, ToolMeta
from arp.tools.registry.registry import ToolRegistry
from arp.tools.run.containers import ContainerTable
from arp.tools.run.docker import DockerEngine

logger = logging.getLogger(__name__)


class ToolRemoval(msgspec.Struct, frozen=True):
    """Result of a removal."""

    removed: list[str] = field(default_factory=list)
    """Removed items, such as `project NAME`."""
    kept: list[str] = field(default_factory=list)
    """Items that still exist, with the reason."""


class Belongings:
    """Finds and removes the projects and containers of tools and tasks.

    Args:
        registry: All tools.
        projects: All projects.
        containers: Table of the containers that we created.
        docker: Engine that removes containers.
    """

    def __init__(
        self,
        registry: ToolRegistry,
        projects: LocalProjects,
        containers: ContainerTable,
        docker: DockerEngine,
    ) -> None:
        self._registry = registry
        self._projects = projects
        self._containers = containers
        self._docker = docker

    async def remove_of_tool(self, tool: ToolMeta) -> ToolRemoval:
        """Remove the projects and containers of a tool that is about to be removed.

        Raises:
            ToolCallFailed: Files of a project still exist; the call may be repeated.
        """
        return await self._remove(*self._of(tool), but=tool.tool_id)

    async def remove_of_task(
        self, projects: Iterable[str], containers: Iterable[str]
    ) -> ToolRemoval:
        """Remove the projects and containers that a task has created, except those that tools use.

        Raises:
            ToolCallFailed: Files of a project still exist; the call may be repeated.
        """
        return await self._remove({Path(one).name for one in projects}, set(containers))

    def _of(self, tool: ToolMeta) -> tuple[set[str], set[str]]:
        """Return the project names and the container ids that a tool uses."""
        known = self._containers.containers(ContainerStatus.RUNNING)
        own = [one for one in known if one.container_id == tool.runtime.container_id]
        paths = [tool.runtime.host_dir, *(path for one in own for path in one.volumes)]
        places = [Path(path) for path in paths if path]
        inside = [one for one in places if one.is_relative_to(self._projects.root)]
        names = {one.relative_to(self._projects.root).parts[:1] for one in inside}
        return {name for (name,) in filter(None, names)}, {one.container_id for one in own}

    async def _remove(self, projects: set[str], containers: set[str], but: str = "") -> ToolRemoval:
        """Remove the items that no tool other than `but` uses."""
        result = ToolRemoval()
        users = await asyncio.to_thread(self._users, but)
        for container_id in sorted(containers):
            if container_id in users:
                result.kept.append(f"container {container_id:.12}: {users[container_id]} uses it")
                continue
            try:
                await self._docker.destroy(container_id)
                result.removed.append(f"container {container_id:.12}")
            except UnknownTool:
                continue
            except ToolAgentError as error:
                reason = f"{error.message}; it is destroyed when it was unused for long enough"
                result.kept.append(f"container {container_id:.12}: {reason}")
        for name in sorted(projects):
            if name in users:
                result.kept.append(f"project {name}: {users[name]} uses it")
                continue
            try:
                await asyncio.to_thread(self._projects.remove, name)
                result.removed.append(f"project {name}")
            except UnknownTool:
                continue
        return result

    def _users(self, but: str) -> dict[str, str]:
        """Map each project and container that a tool uses to the id of that tool."""
        return {
            one: tool.tool_id
            for tool in self._registry
            if tool.tool_id != but
            for part in self._of(tool)
            for one in part
        }
