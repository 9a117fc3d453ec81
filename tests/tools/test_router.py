"""The router: requests, outcomes, alerts; what is forged changes nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from arp.tools.build.callbacks import CallbackSender
from arp.tools.build.coding_agent import CodingAgent
from arp.tools.build.messages import CANCELLED, ToolError, ToolReady, ToolRequest
from arp.tools.build.router import ALREADY_THERE, MAX_REPAIRS, Router, TaskRequest
from arp.tools.errors import InvalidToolMeta, ToolRefused, UnknownTool
from arp.tools.registry.models import ToolMeta, ToolState, ToolStatus
from arp.tools.run.runtime import HealthAlert
from arp.tools.service import ToolService
from arp.tools.tasks.task_book import CUT_OFF, MAX_ATTEMPTS, TaskBook, TaskStatus
from arp.tools.tasks.task_specs import GithubDeploy, RepairTool, task_spec_of
from tests.tools.house import house, settings_in, tool_named


class Delivered(CallbackSender):
    """Notes what would be sent."""

    def __init__(self, data_dir: Path) -> None:
        super().__init__(settings_in(data_dir))
        self.sent: list[tuple[str, object]] = []

    async def deliver(self, url: str, payload: object) -> str:
        self.sent.append((url, payload))
        return "delivered"


class Recorder(CodingAgent):
    """Records what it receives, and does nothing."""

    def __init__(self, service: ToolService, book: TaskBook) -> None:
        super().__init__(service, book, None)
        self.received: list[ToolRequest | HealthAlert] = []

    def begin(self, request: ToolRequest) -> None:
        self.received.append(request)

    def record_alert(self, alert: HealthAlert) -> None:
        self.received.append(alert)

    @property
    def request(self) -> ToolRequest:
        """The only request so far."""
        (request,) = (one for one in self.received if isinstance(one, ToolRequest))
        return request


@asynccontextmanager
async def routing(
    data_dir: Path, ill: str = ""
) -> AsyncIterator[tuple[Router, Delivered, Recorder]]:
    """Route requests for the tools of `house`; the tool `ill` is degraded."""
    service, _ = house(data_dir)
    if ill:
        becomes_in(service, ill, ToolState.DEGRADED)
    callbacks, book = Delivered(data_dir), TaskBook(data_dir)
    coding = Recorder(service, book)
    router = Router(service, coding, book, callbacks)
    await router.start()
    yield router, callbacks, coding
    await router.aclose()


async def test_request_that_a_tool_fits_is_completed_with_it(tmp_path: Path) -> None:
    async with routing(tmp_path) as (router, _, _):
        task = await router.request(TaskRequest("use add"))
        assert task.status is TaskStatus.COMPLETED
        assert (task.tool_id, task.result) == ("add", ALREADY_THERE)


async def test_other_request_goes_to_the_coding_agent_as_a_spec(tmp_path: Path) -> None:
    async with routing(tmp_path) as (router, _, coding):
        task = await router.request(
            TaskRequest("a tool that folds paper", "https://caller.example/")
        )
        sent = coding.request
        assert (sent.task_id, sent.callback_url) == (task.task_id, "https://caller.example/")
        assert task_spec_of(sent.task_spec).description == "a tool that folds paper"
        assert task.status is TaskStatus.PENDING


async def test_outcomes_end_the_task_and_are_delivered(tmp_path: Path) -> None:
    async with routing(tmp_path) as (router, callbacks, _):
        request = TaskRequest("a tool that folds paper", "https://caller.example/x")
        good, bad, stopped = [await router.request(request) for _ in range(3)]
        ready = ToolReady("add", "it works", "http://localhost:9001/", good.task_id)
        failed = ToolError("folder", "no paper", bad.task_id)
        cancelled = ToolError("folder", CANCELLED, stopped.task_id)
        for payload in (ready, failed, cancelled):
            await router.on_outcome(payload)
        assert (await router.book.wait_for_end(good.task_id)).url == "http://localhost:9001/"
        assert (await router.book.wait_for_end(bad.task_id)).error == "no paper"
        assert (await router.book.wait_for_end(stopped.task_id)).status is TaskStatus.CANCELLED
        for task in (good, bad, stopped):
            await router.book.until(task.task_id, lambda one: one.callback == "delivered")
        url = "https://caller.example/x"
        assert callbacks.sent == [(url, ready), (url, failed), (url, cancelled)]


@pytest.mark.parametrize("forged", ["unknown task", "unknown tool", "inactive tool", "over"])
async def test_forged_outcome_changes_nothing(tmp_path: Path, forged: str) -> None:
    async with routing(tmp_path) as (router, _, _):
        router.service.registry.add(tool_named("asleep", ToolStatus.INACTIVE))
        task = await router.request(
            TaskRequest("a tool that folds paper", "https://caller.example/")
        )
        if forged == "over":
            router.receive(ToolError("", "first", task.task_id))
        tool = {"unknown tool": "nothing", "inactive tool": "asleep"}.get(forged, "add")
        task_id = "other" if forged == "unknown task" else task.task_id
        before = router.book.get(task.task_id)
        with pytest.raises((UnknownTool, ToolRefused)):
            router.receive(ToolReady(tool, "it works", "http://evil.example/", task_id))
        assert router.book.get(task.task_id) == before
        # The coding agent does not get an exception, and the next outcome is accepted.
        await router.on_outcome(ToolReady(tool, "", "", task_id))
        assert router.book.get(task.task_id) == before
        other = await router.request(TaskRequest("a tool that folds maps"))
        await router.on_outcome(ToolError("", "no", other.task_id))
        assert router.book.get(other.task_id).error == "no"


async def test_outcome_after_the_end_of_the_service_leaves_the_task_to_the_next_start(
    tmp_path: Path,
) -> None:
    """What fails because the service closes has not failed."""
    async with routing(tmp_path) as (router, callbacks, _):
        request = TaskRequest("a tool that folds paper", "https://caller.example/x")
        task = await router.request(request)
    await router.on_outcome(ToolError("", "the runtime is closed", task.task_id))
    assert router.book.get(task.task_id) == task
    assert callbacks.sent == []


async def test_alert_is_passed_on_with_one_repair_task(tmp_path: Path) -> None:
    async with routing(tmp_path) as (router, _, coding):
        alert = HealthAlert("add", "abc", "HTTP 503", "2026-03-20T10:00:00Z")
        await router.on_alert(alert)
        await router.on_alert(alert)
        sent = coding.request
        assert coding.received == [alert, sent, alert]  # and no second task
        spec = task_spec_of(sent.task_spec)
        assert isinstance(spec, RepairTool)
        assert (spec.tool_id, spec.error, spec.container_id) == ("add", "HTTP 503", "abc")
        assert len(router.book.tasks()) == 1


async def test_tool_that_cannot_be_repaired_is_left_alone(tmp_path: Path) -> None:
    async with routing(tmp_path) as (router, _, _):
        for _ in range(MAX_REPAIRS + 2):
            await router.on_alert(HealthAlert("add", "", "HTTP 503", None))
            for task in router.book.tasks():
                if not task.is_over:
                    router.receive(ToolError("add", "no", task.task_id))
        assert len(router.book.tasks()) == MAX_REPAIRS
        spec = RepairTool("add", "by hand")
        task = await router.request(TaskRequest("repair it", spec=spec))
        router.receive(ToolReady("add", "", "", task.task_id))
        await router.on_alert(HealthAlert("add", "", "HTTP 503", None))
        assert len(router.book.tasks()) == MAX_REPAIRS + 2


def becomes_in(service: ToolService, tool_id: str, state: ToolState) -> None:
    def change(tool: ToolMeta) -> ToolMeta:
        return replace(tool, scheduling=replace(tool.scheduling, state=state))

    service.registry.update(tool_id, change)


async def test_degraded_tool_is_repaired_before_it_is_handed_out(tmp_path: Path) -> None:
    async with routing(tmp_path, ill="add") as (router, _, coding):
        task = await router.request(TaskRequest("use add"))
        assert task.status is TaskStatus.PENDING
        sent = coding.request
        spec = task_spec_of(sent.task_spec)
        assert isinstance(spec, RepairTool)
        assert (spec.tool_id, spec.description) == ("add", "use add")
        becomes_in(router.service, "add", ToolState.RUNNING)
        router.receive(ToolReady("add", "it works", "", task.task_id))
        assert router.book.get(task.task_id).tool_id == "add"


@pytest.mark.parametrize("outcome", ["repaired", "not repaired"])
@pytest.mark.parametrize("restarts", [False, True])
async def test_request_for_a_tool_under_repair_waits_for_the_repair(
    tmp_path: Path, outcome: str, restarts: bool
) -> None:
    """After a repair that failed, the request is one itself."""
    async with AsyncExitStack() as lives:
        router, _, _ = await lives.enter_async_context(routing(tmp_path, ill="add"))
        await router.on_alert(HealthAlert("add", "", "HTTP 503", None))
        (repair,) = router.book.tasks()
        task = await router.request(TaskRequest("use add"))
        assert router.book.get(task.task_id).task_spec == ""
        if restarts:
            await lives.aclose()
            router, _, _ = await lives.enter_async_context(routing(tmp_path, ill="add"))
            assert router.book.get(task.task_id).task_spec == ""
        if outcome == "repaired":
            becomes_in(router.service, "add", ToolState.RUNNING)
            router.receive(ToolReady("add", "", "", repair.task_id))
            assert (await router.book.wait_for_end(task.task_id)).result == ALREADY_THERE
        else:
            router.receive(ToolError("add", "no", repair.task_id))
            waited = await router.book.until(task.task_id, lambda one: bool(one.task_spec))
            assert isinstance(task_spec_of(waited.task_spec), RepairTool)


async def test_request_that_a_healthy_tool_fits_gets_that_one(tmp_path: Path) -> None:
    async with routing(tmp_path) as (router, _, _):
        router.service.registry.add(replace(tool_named("adder"), name="Add", description="add"))
        becomes_in(router.service, "add", ToolState.DEGRADED)
        assert (await router.request(TaskRequest("please add"))).tool_id == "adder"


@pytest.mark.parametrize("command", ["disable", "remove", "switch_off"])
async def test_alert_of_a_tool_that_is_not_active_repairs_nothing(
    tmp_path: Path, command: str
) -> None:
    async with routing(tmp_path) as (router, _, _):
        await getattr(router.service, command)("add")
        await router.on_alert(HealthAlert("add", "", "HTTP 503", None))
        assert router.book.tasks() == []


async def test_repairs_of_a_removed_tool_do_not_count_for_the_next_of_its_name(
    tmp_path: Path,
) -> None:
    async with routing(tmp_path) as (router, _, _):
        router.service.on_removed(router.forget)
        alert = HealthAlert("add", "", "HTTP 503", None)
        for _ in range(MAX_REPAIRS):
            await router.on_alert(alert)
            (task,) = [one for one in router.book.tasks() if not one.is_over]
            router.receive(ToolError("add", "no", task.task_id))
        await router.service.remove("add")
        router.service.registry.add(tool_named("add"))
        await router.on_alert(alert)
        assert len(router.book.tasks()) == MAX_REPAIRS + 1


@pytest.mark.parametrize("command", ["disable", "remove"])
async def test_task_whose_tool_is_taken_away_as_it_becomes_ready_fails(
    tmp_path: Path, command: str
) -> None:
    async with routing(tmp_path) as (router, _, _):
        task = router.book.add("fold paper")
        router.book.set(task.task_id, TaskStatus.RUNNING)
        await getattr(router.service, command)("add")
        await router.on_outcome(ToolReady("add", "it works", "", task.task_id))
        done = router.book.get(task.task_id)
        assert done.status is TaskStatus.FAILED
        assert "add" in done.error


async def test_restart_counts_the_repairs_that_failed(tmp_path: Path) -> None:
    alert = HealthAlert("add", "", "HTTP 503", None)
    async with routing(tmp_path) as (router, _, _):
        for error in ("no", CANCELLED):
            await router.on_alert(alert)
            (task,) = [one for one in router.book.tasks() if not one.is_over]
            router.receive(ToolError("", error, task.task_id))
    async with routing(tmp_path) as (router, _, _):
        await router.on_alert(alert)
        (task,) = [one for one in router.book.tasks() if not one.is_over]
        router.receive(ToolError("", "no", task.task_id))
        await router.on_alert(alert)
        assert len(router.book.tasks()) == MAX_REPAIRS


async def test_restart_sends_what_nobody_had_begun(tmp_path: Path) -> None:
    async with routing(tmp_path) as (router, _, _):
        task = await router.request(TaskRequest("a tool that folds paper"))
    async with routing(tmp_path) as (router, _, coding):
        assert coding.request.task_id == task.task_id


async def test_callback_that_the_end_of_the_service_cut_off_is_sent_again(tmp_path: Path) -> None:
    book = TaskBook(tmp_path)
    url = "https://caller.example/x"
    good, bad, known = (book.add("fold", callback_url=url).task_id for _ in range(3))
    done = {"tool_id": "add", "url": "http://localhost:9001/", "result": "it works"}
    book.set(good, TaskStatus.COMPLETED, **done)
    book.set(bad, TaskStatus.FAILED, tool_id="folder", error="no paper")
    book.set(known, TaskStatus.FAILED, callback="the receiver answered 404")
    async with routing(tmp_path) as (router, callbacks, _):
        for task_id in (good, bad):
            await router.book.until(task_id, lambda task: task.callback == "delivered")
        assert callbacks.sent == [
            (url, ToolReady("add", "it works", "http://localhost:9001/", good)),
            (url, ToolError("folder", "no paper", bad)),
        ]


async def test_task_that_was_cut_off_too_often_is_failed_and_delivered(tmp_path: Path) -> None:
    book = TaskBook(tmp_path)
    often, once = (book.add("fold", callback_url="https://caller.example/").task_id for _ in "ab")
    for task_id, attempts in ((often, MAX_ATTEMPTS), (once, MAX_ATTEMPTS - 1)):
        book.set(task_id, TaskStatus.RUNNING, attempts=attempts, tool_id="folder")
    async with routing(tmp_path) as (router, callbacks, coding):
        assert router.book.get(often).error == CUT_OFF
        assert router.book.get(often).status is TaskStatus.FAILED
        sent = coding.request
        assert sent.task_id == once
        await router.book.until(often, lambda task: task.callback == "delivered")
        assert callbacks.sent == [("https://caller.example/", ToolError("folder", CUT_OFF, often))]


@pytest.mark.parametrize(
    ("request_of", "error"),
    [
        (TaskRequest("  "), InvalidToolMeta),
        (TaskRequest("x" * 20_001), InvalidToolMeta),
        (TaskRequest("x", "http://127.0.0.1:1/"), ToolRefused),
        (TaskRequest("x", "file:///etc/passwd"), ToolRefused),
        (TaskRequest("x", spec=GithubDeploy("ext::sh -c id", "x")), ToolRefused),
    ],
)
async def test_request_that_is_refused_leaves_no_task(
    tmp_path: Path, request_of: TaskRequest, error: type[Exception]
) -> None:
    async with routing(tmp_path) as (router, _, _):
        with pytest.raises(error):
            await router.request(request_of)
        assert router.book.tasks() == []
