"""`Scheduler`: starts, stops and calls tools, and checks their health.

Theory of operation. Each tool has a record (`LiveTool`) with a lock that is held to start, stop or
check the tool, or to put it to sleep. A call first counts itself in the record, which keeps the
tool from being put to sleep. Then it starts the tool under the lock if necessary, and calls the
tool without the lock. `stop_when_idle` holds back new calls and waits for the running ones.

At most `hot_tool_max_containers` hot tools run; each occupies a slot. A hot tool that needs a slot
while all are occupied evicts the least recently used hot tool that no call uses; if all are in use,
it waits. The lock of another tool is acquired only if no call uses that tool, which rules out a
deadlock. If cores or memory are short, idle tools that are not hot are put to sleep.

`tick` puts idle tools and surplus hot tools to sleep, and `check_all` checks the health of the
running tools; a background task calls both. An active tool that is unhealthy or cannot start
becomes `degraded` and raises an alert. It is still checked, and a call starts it again. While it
stays unhealthy, the alert is repeated after `ALERT_AGAIN_S`, and then at intervals that double. A
tool that is being built or was disabled raises no alert.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Final, TypeAlias

import msgspec

from arp.protocol.json_value import Json, JsonObject
from arp.tools.clock import Clock
from arp.tools.errors import (
    CapacityExceeded,
    RuntimeMissing,
    ToolAgentError,
    ToolCallFailed,
    ToolConflict,
    ToolTimeout,
    UnknownTool,
)
from arp.tools.registry.models import (
    RuntimeInfo,
    RuntimeType,
    SchedulingMode,
    ToolMeta,
    ToolState,
    ToolStatus,
)
from arp.tools.registry.registry import ToolRegistry
from arp.tools.registry.schemas import check_params, check_result
from arp.tools.registry.states import StateEvent, with_state
from arp.tools.run.live_tool import LiveTool
from arp.tools.run.resources import Resources
from arp.tools.run.runtime import CallOutcome, HealthAlert, OnChunk, RuntimeTable
from arp.tools.settings import LiveSettings

logger = logging.getLogger(__name__)

OnAlert: TypeAlias = Callable[[HealthAlert], Awaitable[None]]

TICK_S: Final = 1.0
"""Interval of the search for idle tools, in seconds."""
PLACE_S: Final = 60.0
"""Longest wait of a call for a slot, in seconds."""
FALLBACK_ON: Final = (ToolCallFailed, ToolTimeout, RuntimeMissing, CapacityExceeded)
"""Errors after which a fallback is tried. Other errors are errors of the caller and would recur."""


class Scheduler:
    """Starts, calls, checks and stops tools.

    Args:
        registry: All tools.
        runtimes: Runtimes of the tools.
        settings: Limits, timeouts and intervals.
        resources: Resources that the tools share.
        clock: Source of the time.
    """

    def __init__(
        self,
        registry: ToolRegistry,
        runtimes: RuntimeTable,
        settings: LiveSettings,
        resources: Resources,
        clock: Clock,
    ) -> None:
        self._registry = registry
        self._runtimes = runtimes
        self._settings = settings
        self._resources = resources
        self._clock = clock
        self._live: dict[str, LiveTool] = {}
        self._hot: OrderedDict[str, None] = OrderedDict()
        """Hot tools that occupy a slot, least recently used first."""
        self._slot_freed = asyncio.Condition()
        self._on_alert: list[OnAlert] = []
        self._housekeeping: list[Callable[[], Awaitable[None]]] = []
        self._task: asyncio.Task[None] | None = None

    def on_alert(self, callback: OnAlert) -> None:
        """Call `callback` when a tool is no longer healthy; its errors are logged."""
        self._on_alert.append(callback)

    def on_tick(self, callback: Callable[[], Awaitable[None]]) -> None:
        """Call `callback` with each tick, for example for a clean-up; its errors are logged."""
        self._housekeeping.append(callback)

    def hot_tools(self) -> list[str]:
        """Return the hot tools that occupy a slot, least recently used first."""
        return list(self._hot)

    async def start(self) -> None:
        """Record in the registry which tools run, and begin health checks and timers."""
        await self._reconcile()
        self._task = asyncio.create_task(self._run(), name="tool scheduler")

    async def aclose(self) -> None:
        """Stop all tools that cannot outlive this process. May be repeated."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None
        for tool_id in [one for one, live in self._live.items() if live.running]:
            with suppress(UnknownTool):
                # Containers outlive this process; `_reconcile` finds them at the next start.
                if self._registry.get(tool_id).runtime.type is not RuntimeType.DOCKER:
                    await self.sleep_tool(tool_id)
        # The next start may be in another event loop, and determines again which tools run.
        self._live.clear()
        self._hot.clear()
        self._slot_freed = asyncio.Condition()

    async def call(
        self, tool_id: str, params: JsonObject, on_chunk: OnChunk | None = None
    ) -> CallOutcome:
        """See `ToolService.call`."""
        tool = self._active(tool_id)
        check_params(tool, params)
        failed: ToolAgentError | None = None
        for attempts, step in enumerate(["", *tool.fallback_strategy], 1):
            try:
                if step == "restart":
                    await self.stop_tool(tool_id)
                other = self._fallback(tool, step)
                if other is not tool:
                    check_params(other, params)
                return await self._call_once(other, params, on_chunk, attempts)
            except FALLBACK_ON as error:
                failed = failed or error
            except ToolAgentError as error:
                failed = failed or error
                # An error of the caller would recur, so no fallback is tried. In a later step the
                # error belongs to the fallback, and the next one may still work.
                if not step:
                    raise
            logger.info("tool %s failed (%.75s), step %d", tool_id, failed.message, attempts)
        assert failed is not None
        raise failed

    async def start_tool(self, tool_id: str) -> ToolMeta:
        """Start a tool in any status, and return it with its new state.

        Raises:
            ToolAgentError: The tool did not start, and none of its processes runs.
        """
        async with self._in_use(self._registry.get(tool_id), keep=True) as tool:
            return tool

    async def sleep_tool(self, tool_id: str) -> ToolMeta:
        """Put a tool to sleep and return it. Calls that are running fail."""
        live = self._record_of(tool_id)
        async with live.lock:
            return await self._sleep_or_stop(tool_id, live, "sleep")

    async def stop_tool(self, tool_id: str) -> ToolMeta:
        """Stop a tool and return it. Calls that are running fail."""
        live = self._record_of(tool_id)
        async with live.lock:
            return await self._sleep_or_stop(tool_id, live, "stop")

    async def stop_when_idle(self, tool_id: str) -> ToolMeta:
        """Stop a tool when its calls have ended, and return it.

        New calls wait until it has stopped. Then they start it again, if its status is `active`.

        Cancel: Safe: the tool keeps running, or has stopped.
        """
        live = self._record_of(tool_id)
        async with live.without_calls():
            return await self._sleep_or_stop(tool_id, live, "stop")

    async def end_stateless(self, tool_id: str) -> ToolMeta:
        """Stop a stateless tool that no call uses, and return it."""
        tool = self._registry.get(tool_id)
        if tool.scheduling.mode is _STATELESS:
            await self._stop_stateless(tool_id, self._record_of(tool_id))
        return self._registry.get(tool_id)

    def forget(self, tool_id: str) -> None:
        """Forget a tool that was removed from the registry."""
        self._live.pop(tool_id, None)
        self._hot.pop(tool_id, None)
        self._resources.release(tool_id)

    async def check_now(self, tool_id: str) -> str | None:
        """Check the health of a tool; return the problem, or `None`.

        A degraded tool that is healthy again counts as running. A running tool that is unhealthy
        becomes degraded, and its alert is raised before this returns.
        """
        live = self._record_of(tool_id)
        async with live.lock:
            tool = self._registry.get(tool_id)
            try:
                await self._runtimes.of(tool).healthy(tool)
            except ToolAgentError as error:
                problem = error.message
            else:
                live.record_healthy(self._clock.now())
                if tool.scheduling.state is not ToolState.RUNNING:
                    live.running = True
                    await self._record(tool_id, "start", tool.runtime)
                return None
            await self._degrade(tool, live, problem)
        await self._raise(live)
        return problem

    async def watch(self, tool_id: str) -> None:
        """Include an active tool in the health checks after a failed repair, even if it is stopped.

        Its next alert is raised after a wait.

        Raises:
            UnknownTool: No tool has this id.
        """
        live = self._record_of(tool_id)
        async with live.lock:
            tool = self._registry.get(tool_id)
            if tool.status is not ToolStatus.ACTIVE:
                return
            is_stopped = tool.scheduling.state is ToolState.STOPPED
            if is_stopped and tool.scheduling.mode is not _STATELESS:
                await self._record(tool_id, "fail", tool.runtime)
            live.alerts = max(live.alerts, 1)
            live.put_off(self._clock.monotonic())

    async def check_all(self) -> None:
        """Check all running and degraded tools concurrently."""
        checked = (ToolState.RUNNING, ToolState.DEGRADED)
        wanted = [
            tool.tool_id
            for tool in self._registry.tools(ToolStatus.ACTIVE)
            if tool.scheduling.state in checked and tool.scheduling.mode is not _STATELESS
        ]
        for outcome in await asyncio.gather(
            *(self.check_now(one) for one in wanted), return_exceptions=True
        ):
            if isinstance(outcome, BaseException):
                logger.error("a health check failed", exc_info=outcome)

    async def tick(self) -> None:
        """Put idle cold tools, disabled tools without calls, and surplus hot tools to sleep."""
        now = self._clock.monotonic()
        default_s = self._settings.current.cold_tool_idle_timeout_s
        for tool in self._registry.tools():
            live = self._live.get(tool.tool_id)
            if live is None or not live.running or live.calls:
                continue
            idle_s = tool.scheduling.idle_timeout_s or default_s
            is_cold = tool.scheduling.mode is SchedulingMode.COLD
            is_idle = is_cold and now - live.last_used >= idle_s
            if is_idle or tool.status is ToolStatus.INACTIVE:
                await self._sleep_if_idle(tool.tool_id)
        while len(self._hot) > self._settings.current.hot_tool_max_containers:
            if not await self._evict(but=""):
                break
        for callback in self._housekeeping:
            try:
                await callback()
            except Exception:  # the next tick tries again
                logger.exception("housekeeping failed")

    def _active(self, tool_id: str) -> ToolMeta:
        tool = self._registry.get(tool_id)
        if tool.status is not ToolStatus.ACTIVE:
            raise ToolConflict(f"tool {tool_id} is {tool.status}; only active tools are called")
        return tool

    def _fallback(self, tool: ToolMeta, step: str) -> ToolMeta:
        """Return the tool for a step of a fallback strategy."""
        return self._active(tool.tool_id if step in ("", "retry", "restart") else step)

    async def _call_once(
        self, tool: ToolMeta, params: JsonObject, on_chunk: OnChunk | None, attempts: int
    ) -> CallOutcome:
        begun = self._clock.monotonic()
        failed = True
        try:
            async with self._in_use(tool) as started:
                result = await self._result(started, params, on_chunk)
            failed = False
        finally:
            latency_ms = (self._clock.monotonic() - begun) * 1000
            await asyncio.shield(self._count(tool.tool_id, latency_ms, failed))
        return CallOutcome(result, tool.tool_id, latency_ms, attempts)

    async def _result(self, tool: ToolMeta, params: JsonObject, on_chunk: OnChunk | None) -> Json:
        runtime = self._runtimes.of(tool)
        timeout_s = self._settings.current.call_timeout_s
        live = self._record_of(tool.tool_id)
        try:
            async with live.slots, asyncio.timeout(timeout_s):
                result = await runtime.call(tool, params, on_chunk)
        except TimeoutError as error:
            raise ToolTimeout(f"tool {tool.tool_id} took longer than {timeout_s:g} s") from error
        check_result(tool, result)
        live.record_healthy(self._clock.now())
        return result

    @asynccontextmanager
    async def _in_use(self, tool: ToolMeta, keep: bool = False) -> AsyncIterator[ToolMeta]:
        """Start a tool if it does not run, and keep it running within the block.

        Args:
            tool: Tool to use.
            keep: Whether the tool may have any status, and keeps running after the block even if it
                is stateless.

        Raises:
            ToolConflict: The tool is not active, possibly because it was disabled while this call
                waited.
        """
        live = self._record_of(tool.tool_id)
        await live.enter()
        try:
            async with live.lock:
                if not keep:
                    self._active(tool.tool_id)
                started = await self._ensure_started(tool.tool_id, live)
            yield started
        finally:
            live.leave(self._clock.monotonic())
            if tool.tool_id in self._hot:
                self._hot.move_to_end(tool.tool_id)
            if tool.scheduling.mode is _STATELESS and not live.calls and not keep:
                await asyncio.shield(self._stop_stateless(tool.tool_id, live))
            async with self._slot_freed:
                self._slot_freed.notify_all()
            await self._raise(live)

    async def _ensure_started(self, tool_id: str, live: LiveTool) -> ToolMeta:
        tool = self._registry.get(tool_id)
        runtime = self._runtimes.of(tool)
        if not live.running:
            await runtime.check()
        try:
            if not live.running:
                await self._allocate(tool)
            if tool.scheduling.mode is SchedulingMode.HOT:
                await self._occupy_slot(tool_id)
        except BaseException:  # the tool is not the cause, so it does not become degraded
            await asyncio.shield(self._undo_start(tool, live))
            raise
        try:
            info = await runtime.start(tool)
        except Exception as error:
            problem = str(error) or type(error).__name__
            await asyncio.shield(self._undo_start(tool, live, problem))
            raise
        except BaseException:  # the caller was cancelled
            await asyncio.shield(self._undo_start(tool, live))
            raise
        was_running, live.running = live.running, True
        if tool.scheduling.state is not ToolState.RUNNING or info != tool.runtime:
            if was_running:
                logger.warning("tool %s had ended by itself and was started again", tool_id)
            return await self._record(tool_id, "start", info)
        return tool

    async def _undo_start(self, tool: ToolMeta, live: LiveTool, problem: str = "") -> None:
        """Release the resources of a failed start.

        Args:
            tool: Tool that did not start.
            live: Record of the tool.
            problem: Problem of the tool, which becomes degraded; empty if the tool is not the
                cause.
        """
        self._hot.pop(tool.tool_id, None)
        self._resources.release(tool.tool_id)
        was_running, live.running = live.running, False
        if was_running or tool.scheduling.state is ToolState.RUNNING:
            info = await self._runtimes.of(tool).stop(tool)
            tool = await self._record(tool.tool_id, "stop", info)
        if problem:
            await self._degrade(tool, live, problem)

    async def _allocate(self, tool: ToolMeta) -> None:
        """Allocate the resources of a tool; put idle tools that are not hot to sleep if necessary.

        The least recently used tools sleep first, and only as many as necessary.

        Raises:
            CapacityExceeded: Too little is free, even if all these idle tools sleep.
        """
        limits, kept = tool.runtime.resource_limits, {tool.tool_id}
        while True:
            try:
                self._resources.allocate(tool.tool_id, limits)
                return
            except CapacityExceeded:
                candidates = [one for one in self._idle_tools() if one not in kept]
                if self._resources.shortage(tool.tool_id, limits, candidates):
                    raise
            for one in reversed(candidates):  # keep the most recently used ones if possible
                rest = [other for other in candidates if other != one]
                if not self._resources.shortage(tool.tool_id, limits, rest):
                    candidates = rest
            # Another tool may claim the freed resources meanwhile, so check again after each one.
            logger.info("tool %s makes room for tool %s", candidates[0], tool.tool_id)
            try:
                await self._sleep_if_idle(candidates[0])
            except ToolAgentError as error:  # for example a container engine that does not answer
                logger.warning("tool %s cannot be put to sleep: %s", candidates[0], error.message)
                kept.add(candidates[0])

    def _idle_tools(self) -> list[str]:
        """Return running tools that are not hot and have no calls, least recently used first."""
        idle = []
        for tool in self._registry.tools():
            live = self._live.get(tool.tool_id)
            is_hot = tool.scheduling.mode is SchedulingMode.HOT
            if live is not None and live.running and not live.calls and not is_hot:
                idle.append((live.last_used, tool.tool_id))
        return [tool_id for _, tool_id in sorted(idle)]

    async def _occupy_slot(self, tool_id: str) -> None:
        """Occupy a slot for a hot tool; if all are occupied, put another hot tool to sleep.

        Waits while all other hot tools are in use.

        Raises:
            CapacityExceeded: No slot became free within `PLACE_S`.
        """
        if tool_id in self._hot:
            return
        most = self._settings.current.hot_tool_max_containers
        try:
            async with asyncio.timeout(PLACE_S):
                while len(self._hot) >= most:
                    if await self._evict(but=tool_id):
                        continue
                    # Each end of a call notifies under this lock. The lock covers the check and the
                    # begin of the wait, so a call that ends in between is not missed.
                    async with self._slot_freed:
                        if len(self._hot) >= most and self._evictable(tool_id) is None:
                            await self._slot_freed.wait()
                self._hot[tool_id] = None
        except TimeoutError:
            raise CapacityExceeded(
                f"tool {tool_id} cannot start: all {most} hot tools are in use; raise "
                "hot_tool_max_containers, or call it later"
            ) from None

    async def _evict(self, but: str) -> bool:
        """Put the least recently used idle hot tool to sleep; return whether there was one."""
        tool_id = self._evictable(but)
        return tool_id is not None and await self._sleep_if_idle(tool_id)

    def _evictable(self, but: str) -> str | None:
        for tool_id in self._hot:
            live = self._record_of(tool_id)
            # Waiting for the lock of a busy tool could deadlock: it may wait for a slot itself.
            if tool_id != but and not live.calls and not live.lock.locked():
                return tool_id
        return None

    async def _sleep_if_idle(self, tool_id: str) -> bool:
        live = self._record_of(tool_id)
        async with live.lock:
            # A call may have arrived while we waited for the lock.
            if live.calls:
                return False
            try:
                await self._sleep_or_stop(tool_id, live, "sleep")
            except UnknownTool:
                self.forget(tool_id)
            return True

    async def _sleep_or_stop(self, tool_id: str, live: LiveTool, event: StateEvent) -> ToolMeta:
        """Put a tool to sleep or stop it; the caller holds its lock."""
        tool = self._registry.get(tool_id)
        runtime = self._runtimes.of(tool)
        # A degraded tool is stopped, not put to sleep: its next call must start it afresh, because
        # waking it would restore the broken state.
        is_well = tool.scheduling.state in (ToolState.RUNNING, ToolState.SLEEPING)
        if event == "sleep" and is_well:
            info = await runtime.sleep(tool)
        else:
            info, event = await runtime.stop(tool), "stop"
        live.running = False
        self._hot.pop(tool_id, None)
        self._resources.release(tool_id)
        async with self._slot_freed:
            self._slot_freed.notify_all()
        if event == "sleep" and tool.scheduling.state is ToolState.SLEEPING:
            return tool
        return await self._record(tool_id, event, info)

    async def _stop_stateless(self, tool_id: str, live: LiveTool) -> None:
        async with live.lock:
            if live.calls or not live.running:
                return
            with suppress(UnknownTool):
                await self._sleep_or_stop(tool_id, live, "stop")

    async def _degrade(self, tool: ToolMeta, live: LiveTool, problem: str) -> None:
        """Record that a tool is unhealthy, and prepare an alert if this is new or the wait is over.

        Only an active tool raises alerts: while a tool is built its builder receives the error, and
        a disabled tool needs no alert.
        """
        if tool.scheduling.state is not ToolState.DEGRADED:
            await self._record(tool.tool_id, "fail", tool.runtime)
            logger.warning("tool %s is not healthy: %.200s", tool.tool_id, problem)
        now = self._clock.monotonic()
        is_early = live.alerts and now < live.alert_at
        if is_early or tool.status is not ToolStatus.ACTIVE:
            return
        live.alerts += 1
        live.put_off(now)
        at = live.last_healthy
        live.alert = HealthAlert(
            tool.tool_id,
            tool.runtime.container_id,
            problem,
            None if at is None else at.isoformat(timespec="seconds").replace("+00:00", "Z"),
        )

    async def _raise(self, live: LiveTool) -> None:
        """Call the callbacks with the pending alert of a tool, if it has one.

        The caller must not hold the tool's lock, because a callback may need it.
        """
        alert, live.alert = live.alert, None
        for callback in self._on_alert if alert is not None else ():
            assert alert is not None
            try:
                await callback(alert)
            except Exception:  # the other callbacks still receive it
                logger.exception("a callback for the health alert of tool %s failed", alert.tool_id)

    async def _record(self, tool_id: str, event: StateEvent, info: RuntimeInfo) -> ToolMeta:
        """Write the running state of a tool to the registry."""

        def change(tool: ToolMeta) -> ToolMeta:
            return msgspec.structs.replace(with_state(tool, event), runtime=info)

        return await asyncio.to_thread(self._registry.update, tool_id, change, False)

    async def _count(self, tool_id: str, latency_ms: float, failed: bool) -> None:
        now = self._clock.now()

        def change(tool: ToolMeta) -> ToolMeta:
            return msgspec.structs.replace(tool, stats=tool.stats.after(now, latency_ms, failed))

        with suppress(UnknownTool):  # it was removed during the call
            await asyncio.to_thread(self._registry.update, tool_id, change, False)

    async def _reconcile(self) -> None:
        """Record which tools run after a restart of the service.

        Processes ended with the previous service; containers may still run.
        """
        for tool in self._registry.tools():
            if tool.scheduling.state is not ToolState.RUNNING:
                continue
            live = self._record_of(tool.tool_id)
            async with live.lock:
                is_callable = tool.status is ToolStatus.ACTIVE
                if is_callable and await self._still_runs(tool):
                    live.running = True
                    with suppress(CapacityExceeded):
                        self._resources.allocate(tool.tool_id, tool.runtime.resource_limits)
                    if tool.scheduling.mode is SchedulingMode.HOT:
                        self._hot[tool.tool_id] = None
                    continue
                with suppress(RuntimeMissing):
                    await self._sleep_or_stop(tool.tool_id, live, "sleep")

    async def _still_runs(self, tool: ToolMeta) -> bool:
        if tool.runtime.type is not RuntimeType.DOCKER:
            return False
        try:
            await self._runtimes.of(tool).healthy(tool)
        except ToolAgentError:
            return False
        return True

    async def _run(self) -> None:
        checked = self._clock.monotonic()
        while True:
            await asyncio.sleep(TICK_S)
            try:
                await self.tick()
                if self._clock.monotonic() - checked >= (
                    self._settings.current.health_check_interval_s
                ):
                    checked = self._clock.monotonic()
                    await self.check_all()
            except Exception:  # for example a damaged registry, which the error names
                logger.exception("the scheduler failed; it tries again")

    def _record_of(self, tool_id: str) -> LiveTool:
        live = self._live.get(tool_id)
        if live is None:
            live = self._live[tool_id] = LiveTool(
                self._clock.monotonic(), self._settings.current.calls_at_once
            )
        return live


_STATELESS: Final = SchedulingMode.STATELESS
