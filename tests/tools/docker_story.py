"""What `docker_recording.json` records: each call of `DockerEngine`, and the engine's refusals.

Whoever runs it sets `DOCKER_HOST`. All that `DockerEngine` sends is the same each time: random
names and free ports are replaced by counted ones. No published port is connected to.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest

from arp.process.program import ProgramResult
from arp.tools.clock import Clock
from arp.tools.errors import ToolCallFailed, UnknownTool
from arp.tools.registry.models import ContainerInfo, ContainerStatus
from arp.tools.run.container_rules import EnvRequest
from arp.tools.service import ToolService
from arp.tools.settings import LiveSettings, ToolSettings

IMAGE = "arp/busybox:latest"
OWNER = "00000000000000aa"


class DockerStory:
    """Two services of different directories that use the same engine."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        numbers = count(1)
        names = SimpleNamespace(token_hex=lambda size: f"{next(numbers):0{size * 2}x}")
        monkeypatch.setattr("arp.tools.run.docker.secrets", names)
        monkeypatch.setattr("arp.tools.run.ports._can_be_bound", lambda port: True)
        self._monkeypatch = monkeypatch
        self._at = datetime(2026, 3, 20, 10, tzinfo=UTC)
        self._shared = (folder / "shared").resolve()
        self._shared.mkdir()
        self.hidden = {str(self._shared): "/shared"}
        """What is not the same each time."""
        self.ours = self._service(folder / "ours", 9001)
        self.theirs = self._service(folder / "theirs", 9002)

    async def happens(self) -> None:
        """Call the engine in each way that there is."""
        async with _closed(self.ours), _closed(self.theirs):
            await self.ours.docker.check()
            await self._no_image()
            made = await self._made()
            await self._commands_run(made)
            await self._one_takes_too_long(made)
            await self._it_sleeps_and_wakes(made)
            new = await self._its_ports_are_rebuilt(made)
            await self._a_port_is_taken()
            await self._nobody_uses_them(new)

    def _service(self, data_dir: Path, first_port: int) -> ToolService:
        settings = ToolSettings(
            data_dir=data_dir,
            docker_base_image=IMAGE,
            docker_port_start=first_port,
            volume_directories=[self._shared],
        )
        service = ToolService(LiveSettings(settings), clock=Clock(now=lambda: self._at))
        service.docker._owner = OWNER
        return service

    async def _no_image(self) -> None:
        with pytest.raises(ToolCallFailed, match=r"no such image: No such image: arp/nothing:1"):
            await self.ours.docker.create_env(EnvRequest("arp/nothing:1", ports=[80]))
        assert self.ours.ports.allocated == frozenset()

    async def _made(self) -> ContainerInfo:
        request = EnvRequest(
            mem_limit="64m",
            nano_cpus=500_000_000,
            ports=[8080],
            volumes={str(self._shared): "/data"},
            env={"MODE": "trial"},
        )
        made = await self.ours.docker.create_env(request)
        assert len(made.container_id) == 64
        assert made.port_mapping == {"8080": 9001}
        assert await self.ours.docker.is_running(made.container_id)
        return made

    async def _commands_run(self, made: ContainerInfo) -> None:
        docker = self.ours.docker
        both = 'echo "$MODE"; sleep 0.2; echo bad >&2; exit 3'  # always in this order
        done = await docker.run(made.container_id, both)
        assert done == ProgramResult(3, "trial\n", "bad\n")
        log = await docker.run(made.container_id, "echo begun; sleep 60", is_background=True)
        assert isinstance(log, str)
        wait = f"until grep -q begun {log}; do sleep 0.05; done; cat {log}"
        assert await docker.run(made.container_id, wait) == ProgramResult(0, "begun\n", "")

    async def _one_takes_too_long(self, made: ContainerInfo) -> None:
        done = await self.ours.docker.run(
            made.container_id, "echo waiting; sleep 60", timeout_s=0.5
        )
        told = "\narp: it took longer than 0.5 s and was ended\n"
        assert done == ProgramResult(124, "waiting\n", told)

    async def _it_sleeps_and_wakes(self, made: ContainerInfo) -> None:
        docker = self.ours.docker
        await docker.pause(made.container_id)
        assert not await docker.is_running(made.container_id)
        with pytest.raises(ToolCallFailed, match=r"engine refused: .* is not running"):  # 409
            await docker.run(made.container_id, "true")
        assert await docker.wake(made.container_id) == self.ours.containers.get(made.container_id)

    async def _its_ports_are_rebuilt(self, made: ContainerInfo) -> ContainerInfo:
        new = await self.ours.docker.rebuild_ports(made.container_id, [8080, 9090], mem_limit="96m")
        assert new.container_id != made.container_id
        assert new.port_mapping == {"8080": 9002, "9090": 9003}
        assert (new.mem_limit, new.volumes) == ("96m", made.volumes)
        left = self.ours.containers.containers(ContainerStatus.RUNNING)
        assert left == [new]
        assert self.ours.ports.allocated == {9002, 9003}
        return new

    async def _a_port_is_taken(self) -> None:
        with pytest.raises(ToolCallFailed, match=r"9002.* port is already allocated"):
            await self.theirs.docker.create_env(EnvRequest(ports=[8080]))
        assert self.theirs.ports.allocated == frozenset()
        assert self.theirs.containers.containers() == []

    async def _nobody_uses_them(self, new: ContainerInfo) -> None:
        lost = await self.theirs.docker.create_env(EnvRequest())
        # One that is not in our table is as if we had been killed; it is old enough with this.
        self._monkeypatch.setattr("arp.tools.run.docker.API_S", -1)
        self._at += timedelta(seconds=1800)
        destroyed = await self.ours.docker.clean_up_now()
        assert destroyed == [new.container_id, lost.container_id]
        assert self.ours.ports.allocated == frozenset()
        with pytest.raises(UnknownTool, match=r"no such container: No such container"):
            await self.theirs.docker.is_running(lost.container_id)
        gone = self.theirs.containers.containers()
        assert [one.status for one in gone] == [ContainerStatus.DESTROYED]


@asynccontextmanager
async def _closed(service: ToolService) -> AsyncIterator[None]:
    """Destroy a service's containers at the end, and close it."""
    try:
        yield
    finally:
        try:
            for one in service.containers.containers(ContainerStatus.RUNNING):
                await service.docker.destroy(one.container_id)
        finally:
            await service.aclose()
