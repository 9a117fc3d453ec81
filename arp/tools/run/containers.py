"""`ContainerTable`: the containers that the Tool Agent created, in `containers.json`.

A destroyed container stays in the table as a record; the newest `KEPT_DESTROYED` of them are kept.

Source: internal_api.md 3.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec
from msgspec import field

from arp.tools.clock import SYSTEM_CLOCK, Clock
from arp.tools.errors import ToolConflict, UnknownTool
from arp.tools.registry.json_table import JsonTable, TableDocument
from arp.tools.registry.models import ContainerInfo, ContainerStatus, utc

CONTAINERS_FILE: Final = "containers.json"
KEPT_DESTROYED: Final = 200
"""Maximum number of destroyed containers in the table, about a day of builds; more would slow each
change."""


class ContainersDocument(TableDocument[ContainerInfo], frozen=True):
    """Content of `containers.json`."""

    rows: list[ContainerInfo] = field(default_factory=list, name="containers")


class ContainerTable:
    """Table of the containers of one data directory; changes are on disk when a method returns.

    Safe to use from threads, tasks and processes at the same time.

    Args:
        data_dir: Directory of `containers.json`.
        clock: Source of the time.
    """

    def __init__(self, data_dir: Path, clock: Clock = SYSTEM_CLOCK) -> None:
        self._table = JsonTable(
            data_dir / CONTAINERS_FILE,
            ContainersDocument,
            key=lambda container: container.container_id,
            keep=_without_old,
        )
        self._clock = clock

    @property
    def path(self) -> Path:
        """Path of `containers.json`."""
        return self._table.path

    def containers(self, status: ContainerStatus | None = None) -> list[ContainerInfo]:
        """Return all containers, oldest first.

        Args:
            status: Status to select; `None` means all.

        Raises:
            DataFileDamaged: The file cannot be read; it is not changed.
        """
        return [one for one in self._table.rows() if status in (None, one.status)]

    def get(self, container_id: str) -> ContainerInfo:
        """Return a container that has not been destroyed.

        Raises:
            UnknownTool: The table has no container with this id, or it was destroyed.
        """
        found = self._table.find(container_id)
        if found is None or found.status is not ContainerStatus.RUNNING:
            raise _unknown(container_id)
        return found

    def add(self, container: ContainerInfo) -> ContainerInfo:
        """Add a new container and return it with its times.

        Raises:
            ToolConflict: The container is in the table already.
        """
        now = utc(self._clock.now())
        added = msgspec.structs.replace(container, created_at=now, last_accessed=now)
        if not self._table.add(added):
            raise ToolConflict(f"container {added.container_id:.12} is in the table already")
        return added

    def update(
        self, container_id: str, change: Callable[[ContainerInfo], ContainerInfo]
    ) -> ContainerInfo:
        """Replace a container with the result of `change`, and return the result.

        Raises:
            UnknownTool: The table has no container with this id.
        """
        after = self._table.update(container_id, change)
        if after is None:
            raise _unknown(container_id)
        return after

    def touch(self, container_id: str) -> ContainerInfo:
        """Set the last use of a container to now, which protects it from the clean-up.

        Raises:
            UnknownTool: The table has no container with this id.
        """
        now = utc(self._clock.now())
        return self.update(
            container_id, lambda one: msgspec.structs.replace(one, last_accessed=now)
        )

    def record_destroyed(self, container_id: str) -> ContainerInfo:
        """Record that a container is destroyed. May be repeated.

        Raises:
            UnknownTool: The table has no container with this id.
        """
        now = utc(self._clock.now())

        def change(one: ContainerInfo) -> ContainerInfo:
            if one.status is ContainerStatus.DESTROYED:
                return one
            return msgspec.structs.replace(one, status=ContainerStatus.DESTROYED, destroyed_at=now)

        return self.update(container_id, change)

    def ports(self) -> set[int]:
        """Return the ports of this machine that containers use now."""
        running = self.containers(ContainerStatus.RUNNING)
        return {port for one in running for port in one.port_mapping.values()}

    def unused_since(self, seconds: float) -> list[ContainerInfo]:
        """Return the containers that have not been used for `seconds`.

        A last use in the future, after the clock was set back, counts as now.
        """
        now = utc(self._clock.now())
        return [
            one
            for one in self.containers(ContainerStatus.RUNNING)
            if (now - utc(one.last_accessed)).total_seconds() >= seconds
        ]


def _without_old(containers: list[ContainerInfo]) -> list[ContainerInfo]:
    """Return the containers without the oldest destroyed ones above the limit."""
    gone = [one for one in containers if one.status is ContainerStatus.DESTROYED]
    if len(gone) <= KEPT_DESTROYED:
        return containers
    never = datetime(1970, 1, 1, tzinfo=UTC)
    gone.sort(key=lambda one: one.destroyed_at or never)
    dropped = {one.container_id for one in gone[: len(gone) - KEPT_DESTROYED]}
    return [one for one in containers if one.container_id not in dropped]


def _unknown(container_id: str) -> UnknownTool:
    return UnknownTool(f"there is no container {container_id!r:.80} of ours that runs")
