"""Tasks without sessions: what an attempt may cost, and what goes on after a restart."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from arp.protocol.json_value import JsonObject
from arp.tools.build.backend import ToolBackend
from arp.tools.build.coding_job import TASK_OVER, CodingJob, CodingOutcome
from arp.tools.build.messages import CANCELLED, Outcome, ToolError, ToolRequest
from arp.tools.build.router import TaskRequest
from arp.tools.build.workplace import Headless, WorkCall
from arp.tools.errors import ToolAgentError, ToolCallFailed, ToolRefused
from arp.tools.registry.models import (
    RuntimeInfo,
    SchedulingMode,
    ToolMeta,
    ToolScheduling,
    ToolState,
    ToolStatus,
)
from arp.tools.service import ToolService
from arp.tools.tasks.task_book import TASKS_FILE, TaskRecord, TaskStatus
from arp.tools.tasks.task_specs import RepairTool
from tests.support.waiting import becomes
from tests.tools.fake_runtime import SetClock
from tests.tools.house import FunctionTools, house, settings_in, tool_named
from tests.tools.test_toolbox import YES, Person

Work = Callable[[CodingJob], Awaitable[CodingOutcome]]
WAIT_S = 30


class FunctionCoder:
    """A coder that is a function."""

    name = "function"

    def __init__(self, work: Work) -> None:
        self.jobs: list[CodingJob] = []
        self._work = work

    async def work(self, job: CodingJob) -> CodingOutcome:
        self.jobs.append(job)
        return await self._work(job)


@asynccontextmanager
async def backend_in(
    data_dir: Path, work: Work, **settings: Any
) -> AsyncIterator[tuple[ToolBackend, FunctionCoder]]:
    """A backend whose tools are functions of this process; builds are not asked."""
    service, runtime = house(data_dir, approve_builds=False, **settings)
    runtime.functions["folder"] = runtime.functions["count"]
    coder = FunctionCoder(work)
    backend = ToolBackend(service, coder)
    async with asyncio.timeout(WAIT_S):
        await backend.start()
        try:
            yield backend, coder
        finally:
            await backend.aclose()


def folder() -> JsonObject:
    return {
        "tool_id": "folder",
        "name": "Folder",
        "description": "Folds paper.",
        "runtime_type": "api",
        "host_port": 0,
        "internal_port": 0,
    }


async def builds(job: CodingJob) -> CodingOutcome:
    await job.call("register_tool", folder())
    return CodingOutcome("It is registered.")


class Blocks:
    """A coder that does something, and never ends.

    Args:
        first: What it does.
    """

    def __init__(self, first: Work | None = None) -> None:
        self.reached = asyncio.Event()
        """Set when it has done that."""
        self._first = first

    async def __call__(self, job: CodingJob) -> CodingOutcome:
        if self._first is not None:
            await self._first(job)
        self.reached.set()
        await asyncio.Event().wait()
        raise AssertionError


async def spends_half(job: CodingJob) -> CodingOutcome:
    await job.spent(0.5)
    return CodingOutcome()


async def asked_for(backend: ToolBackend) -> str:
    return (await backend.router.request(TaskRequest("fold paper"))).task_id


# -- money -----------------------------------------------------------------------------------------


async def test_coder_is_stopped_before_a_step_that_may_not_fit(tmp_path: Path) -> None:
    """Steps of $0.40 in a task of $1: a third one could be $1.20."""
    ended = asyncio.Event()

    async def spends(job: CodingJob) -> CodingOutcome:
        try:
            for step in range(1, 9):
                await job.spent(0.4 * step, "thinker-1")
                await asyncio.sleep(0)
            await asyncio.Event().wait()
        finally:
            ended.set()
        raise AssertionError

    async with backend_in(tmp_path, spends, coding_task_usd=1) as (backend, _):
        task = await backend.book.wait_for_end(await asked_for(backend))
        budget = backend.service.budget
        assert task.status is TaskStatus.FAILED
        assert ended.is_set()
        assert "it has cost $0.80 of the $1.00 that a task may cost" in task.error
        assert [one.amount_usd for one in budget.transactions()] == [Decimal("0.8")]
        assert budget.reservations() == []


async def test_what_was_spent_beyond_the_reservation_is_in_the_log_and_counts(
    tmp_path: Path,
) -> None:
    async def says_it_late(job: CodingJob) -> CodingOutcome:
        await job.call("register_tool", folder())
        return CodingOutcome("Ready.", 7.5, "thinker-1")

    async with backend_in(tmp_path, says_it_late) as (backend, _):
        task = await backend.book.wait_for_end(await asked_for(backend))
        assert task.status is TaskStatus.COMPLETED
        assert [one.amount_usd for one in backend.service.budget.transactions()] == [Decimal("7.5")]
        assert backend.service.budget.left_this_month() == Decimal("92.5")


@pytest.mark.parametrize("total", [-1.0, float("nan"), 1e300])
async def test_coder_that_reports_no_amount_of_money_is_stopped(
    tmp_path: Path, total: float
) -> None:
    async def lies(job: CodingJob) -> CodingOutcome:
        await job.spent(0.25)
        await job.spent(total)
        await asyncio.Event().wait()
        raise AssertionError

    async with backend_in(tmp_path, lies) as (backend, _):
        task = await backend.book.wait_for_end(await asked_for(backend))
        assert "was stopped" in task.error
        paid = [one.amount_usd for one in backend.service.budget.transactions()]
        assert paid == [Decimal("0.25")]


async def test_tasks_at_once_reserve_no_more_than_is_left(tmp_path: Path) -> None:
    """$10 of a month, $4 of a task: the third of three is refused before its coder begins."""
    together = asyncio.Barrier(2)

    async def spends(job: CodingJob) -> CodingOutcome:
        await together.wait()
        return CodingOutcome("I only think.", 4.0)

    limits = {"monthly_limit_usd": 10, "coding_task_usd": 4, "coding_tasks_at_once": 3}
    async with backend_in(tmp_path, spends, **limits) as (backend, coder):
        ids = [await asked_for(backend) for _ in range(3)]
        errors = [(await backend.book.wait_for_end(one)).error for one in ids]
        assert sum("is refused: $2.00 of $10.00 are left" in error for error in errors) == 1
        assert len(coder.jobs) == 2
        assert backend.service.budget.left_this_month() == 2


async def test_money_above_the_threshold_needs_a_person_though_builds_do_not(
    tmp_path: Path,
) -> None:
    async with backend_in(tmp_path, builds, coding_task_usd=12) as (backend, coder):
        task = await backend.book.wait_for_end(await asked_for(backend))
        assert "needs a person's approval" in task.error
        assert coder.jobs == []
        assert backend.service.budget.reservations() == []


async def test_coder_that_costs_nothing_works_without_any_money(tmp_path: Path) -> None:
    limits = {"monthly_limit_usd": 0, "coding_task_usd": 0}
    async with backend_in(tmp_path, builds, **limits) as (backend, _):
        task = await backend.book.wait_for_end(await asked_for(backend))
        assert task.status is TaskStatus.COMPLETED
        assert backend.service.budget.transactions() == []


# -- restarts --------------------------------------------------------------------------------------


async def test_task_that_a_stop_cuts_off_goes_on_at_the_next_start(tmp_path: Path) -> None:
    async with backend_in(tmp_path, cut_off := Blocks(spends_half)) as (backend, _):
        task_id = await asked_for(backend)
        await cut_off.reached.wait()
    assert backend.book.get(task_id).status is TaskStatus.PENDING
    async with backend_in(tmp_path, builds) as (backend, coder):
        task = await backend.book.wait_for_end(task_id)
        assert (task.status, task.attempts) == (TaskStatus.COMPLETED, 2)
        assert len(coder.jobs) == 1
        assert [tool.tool_id for tool in backend.service.registry.tools()].count("folder") == 1
        # The first attempt is paid, though it was cut off; the second was free.
        paid = [one.amount_usd for one in backend.service.budget.transactions()]
        assert paid == [Decimal("0.5")]
        assert backend.service.budget.reservations() == []


async def test_after_a_crash_the_money_of_the_attempt_stays_reserved(tmp_path: Path) -> None:
    """Nobody knows what it has cost besides what was reported."""
    async with backend_in(tmp_path / "a", cut_off := Blocks(spends_half)) as (backend, _):
        task_id = await asked_for(backend)
        await cut_off.reached.wait()
        await asyncio.to_thread(shutil.copytree, tmp_path / "a", tmp_path / "b")  # as a kill would
    async with backend_in(tmp_path / "b", builds) as (backend, _):
        task = await backend.book.wait_for_end(task_id)
        assert (task.status, task.attempts) == (TaskStatus.COMPLETED, 2)
        budget = backend.service.budget
        assert [one.amount_usd for one in budget.transactions()] == [Decimal("0.5")]
        assert [one.amount_usd for one in budget.reservations()] == [Decimal("4.5")]
        assert budget.left_this_month() == 95


async def test_tool_that_was_registered_before_the_crash_is_not_registered_again(
    tmp_path: Path,
) -> None:
    async with backend_in(tmp_path, cut_off := Blocks(builds)) as (backend, _):
        task_id = await asked_for(backend)
        await cut_off.reached.wait()
    async with backend_in(tmp_path, builds) as (backend, coder):
        task = await backend.book.wait_for_end(task_id)
        assert task.status is TaskStatus.COMPLETED
        assert task.result == "it was registered before the service was stopped, and answers"
        assert coder.jobs == []


async def test_what_an_attempt_has_left_is_removed_before_the_next(tmp_path: Path) -> None:
    """The second attempt makes a project of the same name."""

    async def makes(job: CodingJob) -> CodingOutcome:
        project = (await job.call("create_uv_project", {"name": "folder"}))["project_dir"]
        with pytest.raises(ToolAgentError, match=r"old\.py"):
            await job.call("read_file", {"path": f"{project}/old.py"})
        await job.call("write_file", {"path": f"{project}/old.py", "content": "# first"})
        return CodingOutcome()

    async def makes_and_builds(job: CodingJob) -> CodingOutcome:
        await makes(job)
        return await builds(job)

    async with backend_in(tmp_path, cut_off := Blocks(makes)) as (backend, _):
        task_id = await asked_for(backend)
        await cut_off.reached.wait()
    async with backend_in(tmp_path, makes_and_builds) as (backend, _):
        task = await backend.book.wait_for_end(task_id)
        assert task.status is TaskStatus.COMPLETED, task.error


async def test_repair_that_was_cut_off_while_it_registered_ends_with_an_active_tool(
    tmp_path: Path,
) -> None:
    async with backend_in(tmp_path, Blocks()) as (backend, _):
        registry = backend.service.registry
        registry.update("add", lambda tool: replace(tool, status=ToolStatus.BUILDING))
        task = backend.router.accept(TaskRequest("repair it", spec=RepairTool("add", "HTTP 503")))
        backend.book.set(task.task_id, TaskStatus.RUNNING, attempts=1)
    async with backend_in(tmp_path, Blocks()) as (backend, coder):
        done = await backend.book.wait_for_end(task.task_id)
        assert done.result == "it was started again, and answers"
        assert backend.service.registry.get("add").status is ToolStatus.ACTIVE
        assert coder.jobs == []


async def test_tool_that_could_not_be_repaired_is_tried_again_after_longer_waits(
    tmp_path: Path,
) -> None:
    """Three times in a row; then only if it was healthy in between, or somebody asks for it."""
    clock = SetClock()
    service, runtime = house(tmp_path, clock.clock())
    hot = ToolScheduling(SchedulingMode.HOT)
    service.registry.add(replace(tool_named("add"), scheduling=hot), replace=True)
    backend = ToolBackend(service)  # nobody builds, so a repair is to start the tool again
    begun: list[int] = []

    async def check_after(wait_s: float) -> None:
        clock.advance(wait_s)
        await service.scheduler.check_all()
        for task in backend.book.tasks():
            assert (await backend.book.wait_for_end(task.task_id)).error.startswith(
                "no coding agent"
            )
        begun.append(len(backend.book.tasks()))

    async with asyncio.timeout(WAIT_S):
        await backend.start()
        try:
            await service.restart("add")
            runtime.sick["add"] = "HTTP 503"
            for wait_s in (30, 270, 30, 570, 30, 10_000):
                await check_after(wait_s)
            assert begun == [1, 1, 2, 2, 3, 3]
            runtime.sick.clear()
            await check_after(30)
            runtime.sick["add"] = "HTTP 503"
            await check_after(30)
            assert begun[6:] == [3, 4]
        finally:
            await backend.aclose()


# -- calls that nobody waits for -------------------------------------------------------------------


async def test_call_that_runs_or_comes_when_the_coder_has_ended_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as one of a server that still reads when its task is over."""
    late: list[asyncio.Task[JsonObject]] = []
    starting = asyncio.Event()

    async def starts_for_ever(*_: object, **__: object) -> None:
        starting.set()
        await asyncio.Event().wait()

    async def leaves_a_call(job: CodingJob) -> CodingOutcome:
        late.append(asyncio.create_task(job.call("register_tool", folder())))
        await starting.wait()
        return CodingOutcome("I am done.")

    async with backend_in(tmp_path, leaves_a_call) as (backend, coder):
        monkeypatch.setattr(backend.service, "activate", starts_for_ever)
        task = await backend.book.wait_for_end(await asked_for(backend))
        assert task.error == "no tool was registered: I am done."
        for calling in (late[0], coder.jobs[0].call("register_tool", folder())):
            with pytest.raises(ToolRefused, match=TASK_OVER):
                await calling
        assert backend.service.registry.find("folder") is None


@pytest.mark.parametrize("forged", ["running", "over", "unknown"])
async def test_request_for_a_task_that_is_not_pending_begins_nothing(
    tmp_path: Path, forged: str
) -> None:
    async with backend_in(tmp_path, work := Blocks()) as (backend, coder):
        task_id = await asked_for(backend)
        await work.reached.wait()
        request = ToolRequest(backend.book.get(task_id).task_spec, task_id)
        if forged == "over":
            backend.book.set(task_id, TaskStatus.CANCELLED)
        if forged == "unknown":
            request = replace(request, task_id="somebody's")
        backend.coding.begin(request)
        # Tasks begin in order, so one for this request would begin before the next task.
        work.reached.clear()
        other = await backend.router.request(TaskRequest("fold maps"))
        await work.reached.wait()
        assert [job.task_id for job in coder.jobs] == [task_id, other.task_id]


async def test_task_whose_turn_is_removed_before_it_begins_is_cancelled(tmp_path: Path) -> None:
    async def removed(task: TaskRecord) -> None:
        """As `ToolAgent` returns when the turn is over."""

    service, _ = house(tmp_path)
    backend = ToolBackend(service, FunctionCoder(Blocks()), removed)
    async with asyncio.timeout(WAIT_S):
        await backend.start()
        task = await backend.book.wait_for_end(await asked_for(backend))
        await backend.aclose()
    assert task.status is TaskStatus.CANCELLED


async def test_task_that_cannot_be_begun_because_the_service_stops_is_still_pending(
    tmp_path: Path,
) -> None:
    begun = asyncio.Event()

    async def fails(task: TaskRecord) -> None:
        begun.set()
        backend.coding.leave()
        raise RuntimeError("the hub is closed")

    service, _ = house(tmp_path)
    backend = ToolBackend(service, FunctionCoder(Blocks()), fails)
    async with asyncio.timeout(WAIT_S):
        await backend.start()
        task_id = await asked_for(backend)
        await begun.wait()
        await backend.aclose()
    assert backend.book.get(task_id).status is TaskStatus.PENDING


async def test_task_in_a_second_place_is_only_waited_for(tmp_path: Path) -> None:
    async with backend_in(tmp_path, work := Blocks()) as (backend, coder):
        task_id = await asked_for(backend)
        await work.reached.wait()
        second = asyncio.create_task(backend.coding.work(task_id, Headless(True)))
        await asyncio.sleep(0)
        await backend.router.on_outcome(ToolError("", CANCELLED, task_id))
        assert (await second).status is TaskStatus.CANCELLED
        assert len(coder.jobs) == 1


async def test_bad_task_spec_is_a_failed_task(tmp_path: Path) -> None:
    async with backend_in(tmp_path, Blocks()) as (backend, _):
        task = backend.book.add("fold paper")
        backend.coding.begin(ToolRequest("{", task.task_id))
        done = await backend.book.wait_for_end(task.task_id)
        assert done.status is TaskStatus.FAILED
        assert done.error.startswith("task_spec: ")


async def test_outcome_is_recorded_though_its_turn_is_stopped_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording, released = asyncio.Event(), asyncio.Event()

    async def waits(outcome: Outcome) -> None:
        recording.set()
        await released.wait()

    async with backend_in(tmp_path, builds) as (backend, _):
        monkeypatch.setattr(backend.router, "_watch", waits)
        request = TaskRequest("fold paper")
        building = asyncio.create_task(backend.build(request, Headless(True)))
        await recording.wait()
        building.cancel()
        await asyncio.sleep(0)
        released.set()
        (task,) = backend.book.tasks()
        assert (await backend.book.wait_for_end(task.task_id)).status is TaskStatus.COMPLETED
        with pytest.raises(asyncio.CancelledError):
            await building
        assert backend.book.get(task.task_id).status is TaskStatus.COMPLETED


async def test_request_after_the_end_of_the_service_waits_for_the_next_start(
    tmp_path: Path,
) -> None:
    async with backend_in(tmp_path, builds) as (backend, _):
        pass
    task_id = await asked_for(backend)
    await asyncio.sleep(0)
    assert backend.book.get(task_id).status is TaskStatus.PENDING
    async with backend_in(tmp_path, builds) as (backend, _):
        assert (await backend.book.wait_for_end(task_id)).status is TaskStatus.COMPLETED


# -- names and files -------------------------------------------------------------------------------


async def makes_folder(job: CodingJob) -> None:
    project = (await job.call("create_uv_project", {"name": "folder"}))["project_dir"]
    await job.call("write_file", {"path": f"{project}/main.py", "content": "print('{}')"})


@pytest.mark.parametrize("how", ["gives up", "raises", "is cancelled", "was cut off too often"])
async def test_failed_build_frees_its_name(tmp_path: Path, how: str) -> None:
    reached = asyncio.Event()

    async def fails(job: CodingJob) -> CodingOutcome:
        await makes_folder(job)
        reached.set()
        if how == "raises":
            raise RuntimeError("no idea")
        if how != "gives up":
            await asyncio.Event().wait()
        return CodingOutcome("I cannot do it.")

    async with backend_in(tmp_path, fails) as (backend, _):
        root = backend.service.projects.root / "folder"
        building = asyncio.create_task(
            backend.build(TaskRequest("fold paper"), Headless(True)), name="the build"
        )
        await reached.wait()
        (task,) = backend.book.tasks()
        if how == "is cancelled":
            building.cancel()
        if how != "was cut off too often":
            ended = await backend.book.wait_for_end(task.task_id)
            assert ended.status in (TaskStatus.FAILED, TaskStatus.CANCELLED)
            assert not root.exists()
        await asyncio.wait([building], timeout=None if how != "was cut off too often" else 0)
    if how == "was cut off too often":
        assert root.exists()
        backend.book.set(task.task_id, attempts=3)

    async def makes_and_builds(job: CodingJob) -> CodingOutcome:
        await makes_folder(job)
        return await builds(job)

    async with backend_in(tmp_path, makes_and_builds) as (backend, _):
        assert backend.book.get(task.task_id).is_over
        assert backend.service.projects.projects() == []
        done = await backend.book.wait_for_end(await asked_for(backend))
        assert done.status is TaskStatus.COMPLETED, done.error
        assert root.exists()


async def test_failed_repair_keeps_the_files_of_its_tool(tmp_path: Path) -> None:
    async def makes_more(job: CodingJob) -> CodingOutcome:
        await job.call("create_uv_project", {"name": "more"})
        return CodingOutcome("I cannot do it.")

    async with backend_in(tmp_path, makes_more) as (backend, _):
        project = await backend.service.projects.create("mended")
        runtime = RuntimeInfo(entry="python main.py", host_dir=str(project))
        backend.service.registry.add(replace(tool_named("mended"), runtime=runtime))
        spec = RepairTool("mended", "broken")
        task = await backend.router.request(TaskRequest("repair it", spec=spec))
        assert (await backend.book.wait_for_end(task.task_id)).status is TaskStatus.FAILED
        assert [one.name for one in backend.service.projects.projects()] == ["mended"]
        assert backend.service.registry.find("mended") is not None


class Careful(Headless):
    """A workplace in which each question is allowed for itself."""

    @asynccontextmanager
    async def call(self, name: str, args: JsonObject) -> AsyncIterator[WorkCall]:
        yield Person(YES)


async def test_tool_that_its_task_has_changed_again_is_not_ready(tmp_path: Path) -> None:
    """It was switched off with the change, so nobody could call it; its name is free."""

    async def changes(job: CodingJob) -> CodingOutcome:
        await makes_folder(job)
        local = {**folder(), "runtime_type": "local"}
        await job.call("register_tool", local)
        await job.call("write_file", {"path": "main.py", "content": "print('{\"n\": 1}')"})
        return CodingOutcome("It is registered.")

    async def in_place(task: TaskRecord) -> None:
        await backend.coding.work(task.task_id, Careful(True))

    os.chmod(tmp_path, 0o755)
    service = ToolService(settings_in(tmp_path))
    backend = ToolBackend(service, FunctionCoder(changes), in_place)
    async with asyncio.timeout(WAIT_S):
        await backend.start()
        try:
            done = await backend.book.wait_for_end(await asked_for(backend))
            assert done.error == "no tool was registered: It is registered."
            assert service.registry.tools() == []
            assert service.projects.projects() == []
        finally:
            await backend.aclose()


async def test_tool_that_cannot_start_gets_a_repair(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody waits for the next health check."""

    async def fails(tool: ToolMeta) -> RuntimeInfo:
        raise ToolCallFailed("main.py is broken")

    async with backend_in(tmp_path, Blocks()) as (backend, coder):
        runtime = backend.service.runtimes.of(backend.service.registry.get("add"))
        monkeypatch.setattr(runtime, "start", fails)
        with pytest.raises(ToolCallFailed, match="broken"):
            await backend.service.call("add", {"a": 1, "b": 2})
        (repair,) = backend.book.tasks()
        assert repair.description == "Repair add: main.py is broken"
        await becomes(lambda: len(coder.jobs) == 1)
        assert "main.py is broken" in coder.jobs[0].words
        # The restart of the repair failed too, which is no reason for a second one.
        assert len(backend.book.tasks()) == 1


# -- people who change tools meanwhile -------------------------------------------------------------


@pytest.mark.parametrize("command", ["disable", "remove"])
async def test_repair_of_a_tool_that_a_person_takes_away_fails(
    tmp_path: Path, command: str
) -> None:
    """Whether it has begun or not; it registers nothing, and nobody waits for ever."""
    told: list[str] = []
    reached, released = asyncio.Event(), asyncio.Event()

    async def repairs(job: CodingJob) -> CodingOutcome:
        reached.set()
        await released.wait()
        try:
            await job.call("register_tool", {**folder(), "tool_id": "add"})
        except ToolAgentError as refused:
            told.append(refused.message)
        return CodingOutcome()

    async with backend_in(tmp_path, repairs, coding_tasks_at_once=1) as (backend, coder):
        service = backend.service
        cold = ToolScheduling(SchedulingMode.COLD)
        staging = replace(tool_named("add", ToolStatus.STAGING), scheduling=cold)
        service.registry.add(staging, replace=True)
        runtime = service.runtimes.of(service.registry.get("add"))
        assert isinstance(runtime, FunctionTools)
        runtime.sick["add"] = "HTTP 503"
        spec = RepairTool("add", "HTTP 503")
        tasks = [await backend.router.request(TaskRequest("x", spec=spec)) for _ in range(2)]
        await reached.wait()
        service.registry.update("add", lambda tool: replace(tool, status=ToolStatus.ACTIVE))
        await getattr(service, command)("add")
        released.set()
        errors = [(await backend.book.wait_for_end(task.task_id)).error for task in tasks]
        reason = "was disabled by a person" if command == "disable" else "there is no tool 'add'"
        assert reason in told[0]
        assert errors[0].startswith("no tool was registered")
        assert reason in errors[1]
        assert len(coder.jobs) == 1
        assert runtime.started.count("add") == 1  # the restart before the coder
        if command == "disable":  # who enables it begins with a tool that is not degraded
            assert service.registry.get("add").scheduling.state is ToolState.STOPPED


async def test_build_whose_tool_is_disabled_before_it_ends_fails(tmp_path: Path) -> None:
    built, released = asyncio.Event(), asyncio.Event()

    async def builds_slowly(job: CodingJob) -> CodingOutcome:
        await builds(job)
        built.set()
        await released.wait()
        return CodingOutcome("It is registered.")

    async with backend_in(tmp_path, builds_slowly) as (backend, _):
        task_id = await asked_for(backend)
        await built.wait()
        await backend.service.disable("folder")
        released.set()
        done = await backend.book.wait_for_end(task_id)
        assert done.error == "tool folder was disabled by a person; enable it first"
        assert backend.service.registry.get("folder").status is ToolStatus.INACTIVE


async def test_repair_starts_no_files_that_nobody_has_seen(tmp_path: Path) -> None:
    """A task had changed them when the service ended; the next attempt asks first."""
    service, runtime = house(tmp_path)  # builds are asked
    service.registry.update("add", lambda tool: replace(tool, status=ToolStatus.STAGING))
    backend = ToolBackend(service, FunctionCoder(Blocks()))
    task = backend.router.accept(TaskRequest("repair", spec=RepairTool("add", "HTTP 503")))
    backend.book.set(task.task_id, TaskStatus.RUNNING, attempts=1)
    async with asyncio.timeout(WAIT_S):
        await backend.start()
        try:
            await backend.book.until(task.task_id, lambda one: one.attempts == 2)
            coder = backend.coding._coder
            assert isinstance(coder, FunctionCoder)
            await becomes(lambda: len(coder.jobs) == 1)
            assert runtime.started == []
        finally:
            await backend.aclose()


async def test_a_damaged_task_file_does_not_replace_a_cancellation(tmp_path: Path) -> None:
    reached = asyncio.Event()

    async def waits(job: CodingJob) -> CodingOutcome:
        reached.set()
        await asyncio.Event().wait()
        return CodingOutcome("")

    async with backend_in(tmp_path, waits) as (backend, _):
        building = asyncio.create_task(backend.build(TaskRequest("fold paper"), Headless(True)))
        await reached.wait()
        (tmp_path / TASKS_FILE).write_text("{")
        building.cancel()
        with pytest.raises(asyncio.CancelledError):
            await building
