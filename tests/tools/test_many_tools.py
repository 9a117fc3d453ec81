"""Twenty hot tools with five places, many calls, and processes that are killed at random."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections import OrderedDict
from contextlib import suppress
from pathlib import Path

import pytest

from arp.tools.errors import ToolCallFailed
from arp.tools.registry.models import SchedulingMode, ToolState
from arp.tools.service import ToolService
from tests.support.waiting import becomes
from tests.tools.local_tools import active, local, processes_of, serving, settings_in

TOOLS = [f"tool{number:02}" for number in range(20)]
PLACES = 5
KILL_EVERY = 12
"""Calls between two kills."""


class Caller:
    """Calls tools in a random order and looks at what comes of it."""

    def __init__(self, service: ToolService, seed: int) -> None:
        self.service = service
        self.random = random.Random(seed)
        self.hot: OrderedDict[str, None] = OrderedDict()
        """What the scheduler should have, the least recently used first."""
        self.right = self.failed = self.kills = 0
        self.unclear: list[str] = []
        """Errors that do not say which tool it was."""
        self.used: dict[str, int] = dict.fromkeys(TOOLS, 0)
        self._at = 0

    def next_tool(self) -> str:
        """Return the next tool: mostly one of a few, which change slowly."""
        self._at += self.random.random() < 0.12
        return TOOLS[(self._at + min(int(self.random.expovariate(0.7)), 19)) % 20]

    def pid_of(self, tool_id: str) -> int | None:
        """Return the process of a tool, if it runs."""
        runtime = self.service.runtimes.of(self.service.registry.get(tool_id))
        pid: int | None = runtime.pid_of(tool_id)  # type: ignore[attr-defined] # of local tools
        return pid

    async def one(self, tool_id: str) -> None:
        """Call a tool: the right result, or an error that says what happened."""
        number = self.random.randrange(1000)
        self.used[tool_id] += 1
        try:
            outcome = await self.service.call(tool_id, {"n": number})
        except ToolCallFailed as error:
            self.failed += 1
            self.unclear += [] if tool_id in error.message else [error.message]
            return
        assert outcome.result["double"] == 2 * number
        assert outcome.result["name"] == [tool_id]
        self.right += 1

    async def in_order(self, count: int) -> None:
        """Call one tool after the other, and compare the order of the hot ones."""
        for _ in range(count):
            tool_id = self.next_tool()
            await self.one(tool_id)
            if tool_id not in self.hot and len(self.hot) == PLACES:
                self.hot.popitem(last=False)
            self.hot[tool_id] = None
            self.hot.move_to_end(tool_id)
            assert self.service.scheduler.hot_tools() == list(self.hot)

    async def at_once(self, count: int, kill: bool) -> None:
        """Call several tools at the same time, and kill one meanwhile."""
        calls = [asyncio.create_task(self.one(self.next_tool())) for _ in range(count)]
        if kill:
            await asyncio.sleep(self.random.random() * 0.02)
            self.kill()
        await asyncio.gather(*calls)
        hot = self.service.scheduler.hot_tools()
        assert len(hot) <= PLACES
        self.hot = OrderedDict.fromkeys(hot)

    def kill(self) -> None:
        """Kill the process of a tool that runs."""
        pids = [pid for tool_id in TOOLS if (pid := self.pid_of(tool_id)) is not None]
        if pids:
            with suppress(ProcessLookupError):
                os.kill(self.random.choice(pids), signal.SIGKILL)
            self.kills += 1


@pytest.mark.timeout(900)  # with --tool-calls 2000
async def test_twenty_tools_share_five_places(
    tmp_path: Path, tool_calls: int, tool_seed: int
) -> None:
    print(f"to repeat: --tool-calls {tool_calls} --tool-seed {tool_seed}")  # noqa: T201
    settings = settings_in(tmp_path, hot_tool_max_containers=PLACES, call_timeout_s=30)
    async with serving(settings) as service:
        for tool_id in TOOLS:
            entry = f"python -S server.py {tool_id}"
            active(service, local(service, tool_id, entry, SchedulingMode.HOT))
        caller = Caller(service, tool_seed)
        left = tool_calls
        while left > 0:
            await caller.in_order(min(left, KILL_EVERY // 2))
            await caller.at_once(min(left, KILL_EVERY // 2), kill=True)
            left -= KILL_EVERY
        await the_registry_is_true(service, caller, tmp_path)
    await becomes(lambda: processes_of(tmp_path) == [])
    assert service.ports.allocated == frozenset()
    assert service.resources.allocated().memory_mb == 0
    print(f"{caller.right} right, {caller.failed} failed by {caller.kills} kills")  # noqa: T201
    assert caller.unclear == []
    assert caller.right + caller.failed >= tool_calls
    assert caller.failed <= 6 * caller.kills
    assert caller.right > caller.failed


async def the_registry_is_true(service: ToolService, caller: Caller, folder: Path) -> None:
    """What the registry says of each tool is what is there."""
    await service.scheduler.check_all()  # it finds those that were killed and not called since
    ports = set()
    running = set()
    for tool_id in TOOLS:
        tool = service.registry.get(tool_id)
        assert tool.stats.call_count == caller.used[tool_id]
        pid = caller.pid_of(tool_id)
        assert (tool.scheduling.state is ToolState.RUNNING) == (pid is not None), tool_id
        if pid is not None:
            running.add(pid)
            ports.add(tool.runtime.host_port)
            assert (await service.call(tool_id, {"n": 1})).result["name"] == [tool_id]
            caller.used[tool_id] += 1
    assert len(running) <= PLACES
    assert ports <= service.ports.allocated
    tops = {process.pid for process in processes_of(folder)}
    assert running <= tops
    # bubblewrap, its first process, and the tool: nothing of tools that were put away.
    await becomes(lambda: len(processes_of(folder)) <= 3 * len(running))
