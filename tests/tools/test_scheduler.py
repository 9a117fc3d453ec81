"""When tools run: cold, hot, stateless; places, idle time, health, fallbacks, statistics."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from arp.tools.errors import (
    CapacityExceeded,
    InvalidToolCall,
    RuntimeMissing,
    ToolCallFailed,
    ToolConflict,
    ToolRefused,
    ToolTimeout,
)
from arp.tools.registry.models import ResourceLimits, RuntimeType, SchedulingMode, ToolStatus
from tests.support.waiting import becomes
from tests.tools.fake_runtime import Scheduled

HOT, COLD, STATELESS = SchedulingMode.HOT, SchedulingMode.COLD, SchedulingMode.STATELESS


async def test_a_cold_tool_starts_with_a_call_and_sleeps_when_idle(tmp_path: Path) -> None:
    it = Scheduled(tmp_path)
    it.add("a", idle_timeout_s=10)
    assert (await it.scheduler.call("a", {"n": 1})).result == {"by": "a", "n": 1}
    assert it.state("a") == "running"
    it.clock.advance(9.9)
    await it.scheduler.tick()
    assert it.state("a") == "running"
    await it.scheduler.call("a", {})
    it.clock.advance(9.9)
    await it.scheduler.tick()
    assert it.state("a") == "running"
    it.clock.advance(0.2)
    await it.scheduler.tick()
    assert it.state("a") == "sleeping"
    await it.scheduler.call("a", {})
    assert it.runtime.done == ["start a", "sleep a", "start a"]


async def test_the_idle_time_of_the_settings_is_for_tools_without_their_own(tmp_path: Path) -> None:
    it = Scheduled(tmp_path, cold_tool_idle_timeout_s=5)
    it.add("a", idle_timeout_s=0)
    await it.scheduler.call("a", {})
    it.clock.advance(5)
    await it.scheduler.tick()
    assert it.state("a") == "sleeping"


async def test_a_tool_that_is_called_does_not_sleep(tmp_path: Path) -> None:
    it = Scheduled(tmp_path)
    it.add("a", idle_timeout_s=10)
    it.runtime.waits["a"] = asyncio.Event()
    calling = asyncio.create_task(it.scheduler.call("a", {}))
    await becomes(lambda: it.state("a") == "running")
    it.clock.advance(1000)
    await it.scheduler.tick()
    assert it.state("a") == "running"
    it.runtime.waits["a"].set()
    await calling


async def test_a_stateless_tool_ends_with_its_last_call(tmp_path: Path) -> None:
    it = Scheduled(tmp_path)
    it.add("a", STATELESS)
    it.runtime.waits["a"] = asyncio.Event()
    calls = [asyncio.create_task(it.scheduler.call("a", {})) for _ in range(3)]
    await becomes(lambda: it.registry.get("a").scheduling.state == "running")
    it.runtime.waits["a"].set()
    await asyncio.gather(*calls)
    assert it.runtime.done == ["start a", "stop a"]
    assert it.state("a") == "stopped"


async def test_of_hot_tools_the_least_recently_used_gives_way(tmp_path: Path) -> None:
    it = Scheduled(tmp_path, hot_tool_max_containers=3)
    for name in "abcde":
        it.add(name, HOT)
    for name in ("a", "b", "c", "a", "d", "b", "e"):
        await it.scheduler.call(name, {})
    ended = [step for step in it.runtime.done if step.startswith("sleep")]
    # a b c | a is used again | d puts b away | b puts c away | e puts a away
    assert ended == ["sleep b", "sleep c", "sleep a"]
    assert it.scheduler.hot_tools() == ["d", "b", "e"]
    assert it.runtime.running == {"d", "b", "e"}
    assert it.runtime.most == 3
    assert {name: it.state(name) for name in "abcde"} == {
        **{"a": "sleeping", "b": "running", "c": "sleeping"},
        **{"d": "running", "e": "running"},
    }
    it.clock.advance(10_000)
    await it.scheduler.tick()
    assert it.runtime.running == {"d", "b", "e"}


async def test_a_hot_tool_waits_until_a_place_is_free(tmp_path: Path) -> None:
    it = Scheduled(tmp_path, hot_tool_max_containers=1)
    it.add("a", HOT)
    it.add("b", HOT)
    it.runtime.waits["a"] = asyncio.Event()
    first = asyncio.create_task(it.scheduler.call("a", {}))
    await becomes(lambda: "a" in it.runtime.running)
    second = asyncio.create_task(it.scheduler.call("b", {}))
    await asyncio.sleep(0.02)
    assert it.runtime.running == {"a"}
    it.runtime.waits["a"].set()
    assert (await first).result == {"by": "a"}
    assert (await second).result == {"by": "b"}
    assert it.runtime.most == 1


async def test_a_hot_tool_that_gets_no_place_in_time_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arp.tools.run.scheduler.PLACE_S", 0.05)
    it = Scheduled(tmp_path, hot_tool_max_containers=1)
    it.add("a", HOT)
    it.add("b", HOT)
    it.runtime.waits["a"] = asyncio.Event()
    first = asyncio.create_task(it.scheduler.call("a", {}))
    await becomes(lambda: "a" in it.runtime.running)
    with pytest.raises(CapacityExceeded, match="all 1 hot tools are in use"):
        await it.scheduler.call("b", {})
    it.runtime.waits["a"].set()
    await first
    assert it.state("b") == "stopped"
    assert it.resources.usage("b").cpu_cores == 0


async def test_a_lower_limit_puts_hot_tools_away(tmp_path: Path) -> None:
    it = Scheduled(tmp_path)
    for name in "abc":
        it.add(name, HOT)
        await it.scheduler.call(name, {})
    (tmp_path / "config.json").write_text(json.dumps({"hot_tool_max_containers": 1}))
    await it.scheduler.tick()
    assert it.scheduler.hot_tools() == ["c"]
    assert it.runtime.running == {"c"}


async def test_a_tool_that_is_not_healthy_raises_one_alert_and_can_recover(tmp_path: Path) -> None:
    it = Scheduled(tmp_path)
    it.add("a", HOT)
    await it.scheduler.call("a", {})
    it.clock.advance(60)
    assert await it.scheduler.check_now("a") is None
    it.clock.advance(60)
    it.runtime.ill["a"] = "HTTP 503: Service Unavailable"
    await it.scheduler.check_all()
    await it.scheduler.check_all()
    (alert,) = it.alerts
    assert (alert.tool_id, alert.error) == ("a", "HTTP 503: Service Unavailable")
    assert alert.last_healthy == "2026-03-20T10:01:00Z"
    assert it.state("a") == "degraded"
    it.runtime.ill.clear()
    await it.scheduler.check_all()
    assert it.state("a") == "running"
    it.runtime.ill["a"] = "again"
    await it.scheduler.check_all()
    assert [alert.error for alert in it.alerts] == ["HTTP 503: Service Unavailable", "again"]


async def test_alert_comes_again_after_waits_that_double_up_to_a_day(tmp_path: Path) -> None:
    it = Scheduled(tmp_path)
    it.add("a", HOT)
    await it.scheduler.call("a", {})
    it.runtime.ill["a"] = "ill"
    await it.scheduler.check_all()
    for number, wait_s in enumerate((300, 600, 1200), 1):
        it.clock.advance(wait_s - 1)
        await it.scheduler.check_all()
        assert len(it.alerts) == number
        it.clock.advance(1)
        await it.scheduler.check_all()
        assert len(it.alerts) == number + 1
    for _ in range(20):
        it.clock.advance(86_400)
        await it.scheduler.check_all()
    assert len(it.alerts) == 24
    it.runtime.ill.clear()
    await it.scheduler.check_all()
    it.runtime.ill["a"] = "news"
    await it.scheduler.check_all()
    assert it.alerts[24].error == "news"
    it.clock.advance(300)
    await it.scheduler.check_all()
    assert len(it.alerts) == 26


async def test_tool_that_could_not_be_repaired_is_checked_on_though_it_does_not_run(
    tmp_path: Path,
) -> None:
    it = Scheduled(tmp_path)
    for name, mode in (("a", HOT), ("asleep", COLD), ("once", STATELESS)):
        it.add(name, mode)
        await it.scheduler.start_tool(name)
    await it.scheduler.sleep_tool("asleep")
    for name in ("a", "once"):
        await it.scheduler.stop_tool(name)
    for name in ("a", "asleep", "once"):
        await it.scheduler.watch(name)
    assert [it.state(name) for name in ("a", "asleep", "once")] == [
        *("degraded", "sleeping", "stopped")
    ]
    await it.scheduler.check_all()
    assert it.alerts == []
    it.clock.advance(300)
    await it.scheduler.check_all()
    assert [(alert.tool_id, alert.error) for alert in it.alerts] == [("a", "it does not run")]


async def test_restart_raises_the_alert_of_a_tool_that_is_still_not_healthy(tmp_path: Path) -> None:
    it = Scheduled(tmp_path)
    it.add("a", HOT)
    await it.scheduler.call("a", {})
    it.runtime.ill["a"] = "ill"
    await it.scheduler.check_all()
    again = it.again()
    again.on_alert(it._take)
    for _ in range(2):
        await again.check_all()
    assert [alert.error for alert in it.alerts] == ["ill", "ill"]


async def test_a_callback_that_fails_takes_the_alert_from_nobody(tmp_path: Path) -> None:
    it = Scheduled(tmp_path)
    it.add("a", HOT)

    async def fails(alert: object) -> None:
        raise RuntimeError("no")

    it.scheduler._on_alert.insert(0, fails)
    await it.scheduler.call("a", {})
    it.runtime.ill["a"] = "ill"
    await it.scheduler.check_all()
    assert len(it.alerts) == 1


async def test_a_callback_may_use_the_scheduler(tmp_path: Path) -> None:
    """Alerts are raised without the lock of the tool."""
    it = Scheduled(tmp_path)
    it.add("a", HOT)

    async def repairs(alert: object) -> None:
        await it.scheduler.stop_tool("a")
        await it.scheduler.start_tool("a")

    it.scheduler.on_alert(repairs)
    await it.scheduler.call("a", {})
    it.runtime.ill["a"] = "ill"
    async with asyncio.timeout(5):
        await it.scheduler.check_all()
    assert it.state("a") == "running"


async def test_only_tools_that_run_are_checked(tmp_path: Path) -> None:
    it = Scheduled(tmp_path)
    for name, mode in (("asleep", COLD), ("never", HOT), ("once", STATELESS)):
        it.add(name, mode)
    await it.scheduler.call("asleep", {})
    await it.scheduler.sleep_tool("asleep")
    await it.scheduler.call("once", {})
    await it.scheduler.check_all()
    assert it.alerts == []


async def test_a_tool_that_does_not_start_again_is_degraded(tmp_path: Path) -> None:
    it = Scheduled(tmp_path)
    it.add("a", HOT)
    await it.scheduler.call("a", {})
    it.runtime.running.clear()  # it ended by itself
    it.runtime.start_fails["a"] = ToolCallFailed("no more")
    with pytest.raises(ToolCallFailed, match="no more"):
        await it.scheduler.call("a", {})
    assert it.state("a") == "degraded"
    assert [alert.error for alert in it.alerts] == ["no more"]
    assert it.scheduler.hot_tools() == []
    assert it.resources.allocated().cpu_cores == 0
    it.runtime.start_fails.clear()
    await it.scheduler.call("a", {})
    assert it.state("a") == "running"


@pytest.mark.parametrize("state", ["stopped", "sleeping"])
async def test_a_tool_that_cannot_start_raises_an_alert(tmp_path: Path, state: str) -> None:
    it = Scheduled(tmp_path)
    it.add("a")
    if state == "sleeping":
        await it.scheduler.call("a", {})
        await it.scheduler.sleep_tool("a")
    assert it.state("a") == state
    it.runtime.start_fails["a"] = ToolCallFailed("no more")
    for _ in range(2):
        with pytest.raises(ToolCallFailed, match="no more"):
            await it.scheduler.call("a", {})
    assert [(alert.tool_id, alert.error) for alert in it.alerts] == [("a", "no more")]
    assert it.state("a") == "degraded"
    assert it.resources.allocated().cpu_cores == 0
    it.clock.advance(301)  # it is checked on, though it does not run
    await it.scheduler.check_all()
    assert len(it.alerts) == 2
    it.runtime.start_fails.clear()
    await it.scheduler.call("a", {})
    assert it.state("a") == "running"


async def test_a_start_that_is_cancelled_or_not_of_an_active_tool_raises_no_alert(
    tmp_path: Path,
) -> None:
    it = Scheduled(tmp_path)
    it.add("built", status=ToolStatus.BUILDING)
    it.add("slow")
    it.runtime.start_fails["built"] = ToolCallFailed("not yet")
    with pytest.raises(ToolCallFailed, match="not yet"):
        await it.scheduler.start_tool("built")
    it.runtime.start_fails["slow"] = asyncio.CancelledError()  # type: ignore[assignment] # as a caller does
    with pytest.raises(asyncio.CancelledError):
        await it.scheduler.call("slow", {})
    assert it.alerts == []
    assert it.state("slow") == "stopped"


async def test_fallbacks_are_tried_in_order(tmp_path: Path) -> None:
    it = Scheduled(tmp_path)
    it.add("a", fallback_strategy=["retry", "restart", "b"])
    it.add("b")
    it.runtime.fails["a"] = [ToolCallFailed(f"failure {n}") for n in range(3)]
    outcome = await it.scheduler.call("a", {"n": 1})
    assert outcome.result == {"by": "b", "n": 1}
    assert (outcome.tool_id, outcome.attempts) == ("b", 4)
    assert it.runtime.done == ["start a", "stop a", "start a", "start b"]
    assert it.registry.get("a").stats.error_rate == 1.0
    assert it.registry.get("b").stats.error_rate == 0.0


async def test_the_first_error_is_reported_if_everything_fails(tmp_path: Path) -> None:
    it = Scheduled(tmp_path)
    it.add("a", fallback_strategy=["retry", "nobody", "off"])
    it.add("off")
    it.registry.update("off", lambda tool: tool)
    it.runtime.fails["a"] = [ToolTimeout("first"), ToolCallFailed("second")]
    it.runtime.fails["off"] = [ToolCallFailed("third")]
    with pytest.raises(ToolTimeout, match="first"):
        await it.scheduler.call("a", {})


@pytest.mark.parametrize("error", [ToolRefused("no"), InvalidToolCall("no"), ToolConflict("no")])
async def test_errors_of_the_caller_are_not_tried_again(tmp_path: Path, error: Exception) -> None:
    it = Scheduled(tmp_path)
    it.add("a", fallback_strategy=["retry"])
    it.runtime.fails["a"] = [error]
    with pytest.raises(type(error)):
        await it.scheduler.call("a", {})
    assert it.registry.get("a").stats.call_count == 1


async def test_a_fallback_whose_own_fallback_is_the_first_ends(tmp_path: Path) -> None:
    it = Scheduled(tmp_path)
    it.add("a", fallback_strategy=["b"])
    it.add("b", fallback_strategy=["a"])
    it.runtime.fails = {name: [ToolCallFailed(name)] * 9 for name in "ab"}
    with pytest.raises(ToolCallFailed, match="a"):
        await it.scheduler.call("a", {})
    assert [it.registry.get(name).stats.call_count for name in "ab"] == [1, 1]


async def test_statistics_are_of_all_calls(tmp_path: Path) -> None:
    it = Scheduled(tmp_path)
    it.add("a")
    it.runtime.fails["a"] = [ToolCallFailed("once")]
    for _ in range(4):
        try:
            await it.scheduler.call("a", {})
        except ToolCallFailed:
            continue
    stats = it.registry.get("a").stats
    assert (stats.call_count, stats.avg_latency_ms, stats.error_rate) == (4, 250.0, 0.25)
    assert stats.last_used_time == it.clock.at


@pytest.mark.parametrize("status", ["staging", "building", "inactive"])
async def test_only_active_tools_are_called(tmp_path: Path, status: str) -> None:
    import msgspec

    it = Scheduled(tmp_path)
    it.add("a")
    it.registry.update("a", lambda one: msgspec.structs.replace(one, status=ToolStatus(status)))
    with pytest.raises(ToolConflict, match=f"tool a is {status}"):
        await it.scheduler.call("a", {})


async def test_pieces_go_to_whoever_takes_them(tmp_path: Path) -> None:
    """Whether a tool says that it streams is for runtimes that have to ask it for that."""
    it = Scheduled(tmp_path)
    it.add("streams", stream_support=True)
    it.add("says-nothing")
    pieces = []

    async def take(piece: str) -> None:
        pieces.append(piece)

    await it.scheduler.call("streams", {}, take)
    await it.scheduler.call("says-nothing", {}, take)
    assert pieces == ["working", "working"]


def full(it: Scheduled, *idle: str, **more: str) -> None:
    """Allocate all cores but those of `idle` tools and of `more`."""
    it.resources._allocated.clear()
    cores = 64 - 0.1 * len(idle) - sum(float(one) for one in more.values())
    it.resources.allocate("other", ResourceLimits(cpu=f"{cores:.1f}", memory_mb=1))


async def test_what_has_no_room_does_not_start(tmp_path: Path) -> None:
    """Calls use all tools that run."""
    it = Scheduled(tmp_path)
    names = [f"t{number}" for number in range(10)]
    full(it, *names)
    for name in (*names, "one-more"):
        it.add(name)
        it.runtime.waits[name] = asyncio.Event()
    calls = [asyncio.create_task(it.scheduler.call(name, {})) for name in names]
    await becomes(lambda: it.runtime.running == set(names))
    with pytest.raises(CapacityExceeded, match="cores"):
        await it.scheduler.call("one-more", {})
    assert it.state("one-more") == "stopped"
    assert it.alerts == []  # the tool is as it was
    for waiting in it.runtime.waits.values():
        waiting.set()
    await asyncio.gather(*calls)
    await it.scheduler.call("one-more", {})


async def test_idle_cold_tools_make_room_the_least_recently_used_first(tmp_path: Path) -> None:
    it = Scheduled(tmp_path)
    full(it, *"abc")
    for name in "abcd":
        it.add(name)
    for name in "abca":
        await it.scheduler.call(name, {})
        it.clock.advance(1)
    await it.scheduler.call("d", {})
    assert it.runtime.running == {"a", "c", "d"}
    assert {name: it.state(name) for name in "abcd"} == {
        **{"a": "running", "b": "sleeping", "c": "running", "d": "running"}
    }
    assert it.resources.usage("b").cpu_cores == 0


async def test_no_more_tools_make_room_than_are_needed(tmp_path: Path) -> None:
    """None at all if that would not be enough; hot tools stay; of the others the fewest go."""
    it = Scheduled(tmp_path)
    full(it, *"abc", large="0.8")
    for name in "ab":
        it.add(name)
    it.add("c", HOT)
    it.add("large", limits=ResourceLimits(cpu="0.8", memory_mb=1))
    it.add("too-large", limits=ResourceLimits(cpu="64", memory_mb=1))
    it.add("next", limits=ResourceLimits(cpu="0.5", memory_mb=1))
    for name in ("a", "b", "c", "large"):
        await it.scheduler.call(name, {})
        it.clock.advance(1)
    with pytest.raises(CapacityExceeded, match="too-large needs 64 cores"):
        await it.scheduler.call("too-large", {})
    assert it.runtime.running == {"a", "b", "c", "large"}
    await it.scheduler.call("next", {})
    assert it.runtime.running == {"a", "b", "c", "next"}


async def test_tools_that_want_the_same_room_at_once_start_one_after_the_other(
    tmp_path: Path,
) -> None:
    it = Scheduled(tmp_path)
    full(it, "idle")
    for name in ("idle", "first", "second"):
        it.add(name)
    await it.scheduler.call("idle", {})
    done = it.runtime.waits["first"] = it.runtime.waits["second"] = asyncio.Event()
    calls = [asyncio.create_task(it.scheduler.call(name, {})) for name in ("first", "second")]
    (refused,), _ = await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
    assert isinstance(refused.exception(), CapacityExceeded)
    assert len(it.runtime.running) == 1
    done.set()
    await asyncio.wait(calls)
    assert [call.exception() for call in calls if call is not refused] == [None]


async def test_at_the_start_the_registry_is_put_right(tmp_path: Path) -> None:
    """Processes have ended with whoever started them; containers may run."""
    it = Scheduled(tmp_path)
    it.add("process", HOT)
    it.add("container", HOT, type=RuntimeType.DOCKER)
    it.add("gone", HOT, type=RuntimeType.DOCKER)
    for name in ("process", "container", "gone"):
        await it.scheduler.call(name, {})
    it.runtime.running = {"container"}
    again = it.again()
    await again.start()
    try:
        assert [it.state(name) for name in ("process", "container", "gone")] == [
            *("sleeping", "running", "sleeping"),
        ]
        assert again.hot_tools() == ["container"]
    finally:
        await again.aclose()
    assert it.state("container") == "running"


async def test_what_runs_is_put_away_in_the_end(tmp_path: Path) -> None:
    it = Scheduled(tmp_path)
    it.add("a", HOT)
    it.add("b")
    await it.scheduler.start()
    for name in "ab":
        await it.scheduler.call(name, {})
    await it.scheduler.aclose()
    await it.scheduler.aclose()
    assert it.runtime.running == set()
    assert [it.state(name) for name in "ab"] == ["sleeping", "sleeping"]


async def test_a_runtime_that_is_missing_fails_its_tools_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    it = Scheduled(tmp_path)
    it.add("a", fallback_strategy=["b"])
    it.add("b")

    async def missing() -> None:
        if it.runtime.running or "start a" not in it.runtime.done:
            raise RuntimeMissing("no engine")

    monkeypatch.setattr(it.runtime, "check", missing)
    with pytest.raises(RuntimeMissing, match="no engine"):
        await it.scheduler.call("a", {})
    assert it.state("a") == "stopped"


async def test_a_cancelled_call_leaves_its_tool_free(tmp_path: Path) -> None:
    it = Scheduled(tmp_path, hot_tool_max_containers=1)
    it.add("a", HOT)
    it.add("b", HOT)
    it.runtime.waits["a"] = asyncio.Event()
    calling = asyncio.create_task(it.scheduler.call("a", {}))
    await becomes(lambda: "a" in it.runtime.running)
    calling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calling
    async with asyncio.timeout(5):
        await it.scheduler.call("b", {})
    assert it.registry.get("a").stats.error_rate == 1.0
