"""`CodingAgent`: carries out tasks with a `Coder`, a `Toolbox` and a workplace that people see.

Theory of operation. The router calls `begin` for each task. A task is carried out in a workplace:
in the turn of the chat that requested it (`expect`, then `work`), in a turn of its own session that
`open_place` begins, or headless. The steps are:

1. A repair begins with a restart of the tool; if that is enough, no coder is called.
2. The cost limit of the coder is reserved.
3. A repository is cloned into a project.
4. The coder receives the prompt and the ten tools of a `Toolbox`. It calls them over MCP or in this
process.
5. The task is done only if a tool is registered and answers, whatever the coder reports.
6. Projects and containers of a task that failed or was cancelled are removed.

The outcome, `ToolReady` or `ToolError`, is reported to the router (`on_outcome`). An invalid task
spec is a `ToolError`.

When the service stops (`leave`), an interrupted task becomes pending again, and the next start
begins it from its spec. Leftovers of the earlier attempt are removed, unless it had registered its
tool.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any, Final, TypeAlias

from arp.tools.build.cloning import cloned, copy_into
from arp.tools.build.coding_job import Coder, CodingJob, CodingOutcome
from arp.tools.build.coding_log import CodingLog
from arp.tools.build.messages import CANCELLED, Outcome, ToolError, ToolReady, ToolRequest
from arp.tools.build.toolbox import Toolbox
from arp.tools.build.workplace import Headless, Workplace
from arp.tools.errors import ToolAgentError, ToolCallFailed, ToolConflict, UnknownTool
from arp.tools.registry.models import ToolMeta, ToolStatus
from arp.tools.registry.registry import url_of
from arp.tools.run.runtime import HealthAlert
from arp.tools.service import ToolService
from arp.tools.tasks.task_book import TaskBook, TaskRecord, TaskStatus
from arp.tools.tasks.task_leftovers import is_made_by, remove_leftovers
from arp.tools.tasks.task_money import TaskMoney
from arp.tools.tasks.task_specs import (
    GithubDeploy,
    RepairTool,
    TaskSpec,
    name_of_spec,
    task_spec_of,
)
from arp.tools.tasks.task_words import words_for

logger = logging.getLogger(__name__)

MAX_ALERTS: Final = 1_000
"""Maximum number of last alerts that are kept, one for each tool."""
MAX_TITLE: Final = 200
"""Maximum length of a task's description in the billing log, in characters."""
RESTARTED: Final = "it was started again, and answers"
"""Result of a repair that needed only a restart."""

OpenPlace: TypeAlias = Callable[[TaskRecord], Awaitable[None]]
"""Begins a turn for a task; the turn calls `CodingAgent.work`."""
OnOutcome: TypeAlias = Callable[[Outcome], Coroutine[Any, Any, None]]
"""Receives the outcome of a task; never raises."""


class CodingAgent:
    """Carries out tasks, and reports their outcomes.

    Args:
        service: Tools.
        book: Records of the tasks.
        coder: Agent that carries out tasks; `None` means that every task that needs one fails.
        open_place: Begins a turn for a task; `None` means that tasks are carried out headless.
    """

    def __init__(
        self,
        service: ToolService,
        book: TaskBook,
        coder: Coder | None,
        open_place: OpenPlace | None = None,
    ) -> None:
        self._service, self._book = service, book
        self._coder = coder
        self._open_place = open_place
        self._on_outcome: list[OnOutcome] = []
        self._expected: set[str] = set()
        """Tasks that have a workplace already, announced by `expect`."""
        self._requests: dict[str, asyncio.Future[ToolRequest]] = {}
        """Requests of tasks that are expected or were sent, by task id."""
        self._working: set[str] = set()
        """Tasks that are carried out, or that wait for their request in a workplace."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._reports: set[asyncio.Future[None]] = set()
        """Callbacks that are receiving an outcome; they continue if the task is cancelled."""
        self._is_running = False
        """Whether the service runs. While this is false, no task begins, and an interrupted task
        becomes pending, because the next start continues it."""
        self._room = asyncio.Semaphore(service.settings.current.coding_tasks_at_once)
        self.alerts: dict[str, HealthAlert] = {}
        """Last alert of each tool."""

    async def start(self) -> None:
        """Begin to accept requests, without any state of an earlier start."""
        self._is_running = True
        self._room = asyncio.Semaphore(self._service.settings.current.coding_tasks_at_once)
        for left in (self._expected, self._working, self._requests):
            left.clear()

    def leave(self) -> None:
        """Record that the service stops: tasks interrupted from now on become pending again."""
        self._is_running = False

    async def aclose(self) -> None:
        """Stop; running tasks are interrupted."""
        self.leave()
        # The workers first: a worker that is cancelled may still begin to report.
        for tasks in (self._tasks, self._reports):
            for one in [*tasks]:
                one.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def forget(self, tool: ToolMeta) -> None:
        """Drop the alert of a tool that was removed."""
        self.alerts.pop(tool.tool_id, None)

    # -- the router ------------------------------------------------------------------------------

    def on_outcome(self, callback: OnOutcome) -> None:
        """Call `callback` with the outcome of each task."""
        self._on_outcome.append(callback)

    async def _report(self, outcome: Outcome) -> None:
        """Pass an outcome to the callbacks.

        Cancel: Safe; a callback that has begun still completes.
        """
        for callback in self._on_outcome:
            # A stop button that is pressed while the outcome is recorded must not lose it.
            report = asyncio.ensure_future(callback(outcome))
            self._reports.add(report)
            report.add_done_callback(self._reports.discard)
            await asyncio.shield(report)

    def record_alert(self, alert: HealthAlert) -> None:
        """Record the last alert of a tool; the prompt of its repair contains it."""
        self.alerts[alert.tool_id] = alert
        while len(self.alerts) > MAX_ALERTS:
            del self.alerts[next(iter(self.alerts))]

    def begin(self, request: ToolRequest) -> None:
        """Begin a pending task. A request for a task that has begun or is over is ignored."""
        if not self._is_running:
            return  # the next start begins it
        if not self._is_pending(request.task_id) or self._future(request.task_id).done():
            logger.warning("a request for task %.80r is ignored", request.task_id)
            return
        future = self._future(request.task_id)
        future.set_result(request)
        if request.task_id in self._expected:
            return
        task = asyncio.get_running_loop().create_task(self._work_without_caller(request))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _work_without_caller(self, request: ToolRequest) -> None:
        """Carry out a task in a new workplace, because no caller has announced `work` for it."""
        async with self._room:
            try:
                if self._open_place is None:
                    allows = not self._service.settings.current.approve_builds
                    await self.work(request.task_id, Headless(allows))
                else:
                    await self._open_place(self._book.get(request.task_id))
                    if self._is_running and self._is_pending(request.task_id):
                        # The turn was removed before it began.
                        await self._report(ToolError("", CANCELLED, request.task_id))
                    await self._book.wait_for_end(request.task_id)
            except Exception as failed:
                if not self._is_running:
                    return  # the next start begins it
                logger.exception("task %s could not be begun", request.task_id)
                error = f"it could not be begun: {type(failed).__name__}"
                await self._report(ToolError("", error, request.task_id))

    def _is_pending(self, task_id: str) -> bool:
        try:
            return self._book.get(task_id).status is TaskStatus.PENDING
        except UnknownTool:
            return False

    def _future(self, task_id: str) -> asyncio.Future[ToolRequest]:
        if task_id not in self._requests:
            self._requests[task_id] = asyncio.get_running_loop().create_future()
        return self._requests[task_id]

    # -- work ------------------------------------------------------------------------------------

    def expect(self, task_id: str) -> None:
        """Announce a call of `work` for a task, so that no workplace is opened for it."""
        self._expected.add(task_id)

    async def work(self, task_id: str, place: Workplace) -> TaskRecord:
        """Carry out a task in a workplace when its request arrives; return the finished task.

        If the task is already carried out in another workplace, this only waits for it.

        Cancel: Safe; everything that the task has started is ended. The task is cancelled, or
            pending again if the service stops.
        """
        if task_id in self._working:
            return await self._book.wait_for_end(task_id)
        self._working.add(task_id)
        over = asyncio.ensure_future(self._book.wait_for_end(task_id))
        try:
            request = self._future(task_id)
            futures: set[asyncio.Future[Any]] = {request, over}
            await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)
            if not over.done():
                await self._report(await self._outcome(request.result(), place))
            return await over
        except asyncio.CancelledError:
            # If the service stops, the task must not count as cancelled: the next start continues
            # it.
            if not self._is_running:
                self._make_pending(task_id)
            else:
                await asyncio.shield(self._remove_leftovers(task_id))
                await self._report(ToolError("", CANCELLED, task_id))
            raise
        finally:
            over.cancel()
            self._working.discard(task_id)
            self._expected.discard(task_id)
            self._requests.pop(task_id, None)

    def _make_pending(self, task_id: str) -> None:
        # The error of a damaged task file must not replace the cancellation.
        with suppress(ToolAgentError):
            if not self._book.get(task_id).is_over:
                self._book.set(task_id, TaskStatus.PENDING, waiting_for="")

    async def _remove_leftovers(self, task_id: str) -> None:
        """Remove the leftovers of an unfinished task; an error is only logged."""
        try:
            await remove_leftovers(self._service, self._book.get(task_id), all_tools=False)
        except ToolAgentError as error:
            logger.warning("task %s: what it left is still there: %s", task_id, error)

    async def _outcome(self, request: ToolRequest, place: Workplace) -> Outcome:
        """Carry out a task; return its outcome."""
        task_id, name = request.task_id, ""
        try:
            attempts = self._book.get(task_id).attempts + 1
            where = {"session_id": place.session_id, "turn_id": place.turn_id}
            task = self._book.set(task_id, TaskStatus.RUNNING, attempts=attempts, **where)
            spec = task_spec_of(request.task_spec)
            name = name_of_spec(spec)
            tool, result = await self._execute(task, spec, place)
            return ToolReady(tool.tool_id, result, url_of(tool), task_id)
        except ToolAgentError as failed:
            error = failed.message
        except Exception as failed:
            logger.exception("task %s failed", task_id)
            error = f"the task failed: {type(failed).__name__}: {failed}"[:500]
        await self._remove_leftovers(task_id)
        return ToolError(name, error, task_id)

    async def _execute(
        self, task: TaskRecord, spec: TaskSpec, place: Workplace
    ) -> tuple[ToolMeta, str]:
        """Build or repair a tool and write the log; return the tool and the result as a sentence.

        Raises:
            ToolAgentError: The task failed; the message says why.
        """
        log, began, error = CodingLog(), time.monotonic(), ""
        money = TaskMoney(self._service.budget, _title(task))
        log.started(task.description)
        try:
            return await self._carry_out(task, spec, place, money, log)
        except ToolAgentError as failed:
            error = failed.message
            raise
        finally:
            log.done(time.monotonic() - began)
            cost = await money.close()
            if cost:
                log.cost(float(cost))
                place.cost(money.model, float(cost))
            if error:
                log.failed(error)

    async def _carry_out(
        self, task: TaskRecord, spec: TaskSpec, place: Workplace, money: TaskMoney, log: CodingLog
    ) -> tuple[ToolMeta, str]:
        if isinstance(spec, RepairTool):
            self._check_enabled(spec.tool_id)
        if task.attempts > 1 and (found := await self._registered_before(task, spec)):
            return found, "it was registered before the service was stopped, and answers"
        if isinstance(spec, RepairTool) and (healed := await self._restart(spec, place, log)):
            return healed, RESTARTED
        if self._coder is None:
            raise ToolConflict("no coding agent is configured; arp tools serve --coder NAME")
        if task.attempts > 1:
            await remove_leftovers(self._service, task, all_tools=True)
        toolbox = Toolbox(self._service, spec, asks=self._service.settings.current.approve_builds)
        job = CodingJob(task, "", toolbox, place, self._book)
        job.log, job.money = log, money
        await self._reserve(self._coder, job, money)
        if isinstance(spec, GithubDeploy):
            await self._clone(spec, job)
        job.words = words_for(spec, toolbox.projects, self.alerts.get(name_of_spec(spec)))
        outcome = await self._run_coder(self._coder, job, money)
        if toolbox.registered is None:
            why = outcome.error or outcome.text.strip() or "it ended without a message"
            raise ToolCallFailed(f"no tool was registered: {why[-1_000:]}")
        self._check_enabled(toolbox.registered.tool_id)
        return toolbox.registered, "the tool is registered, and answers"

    def _check_enabled(self, tool_id: str) -> None:
        """Check that a tool has not been removed or disabled.

        Raises:
            UnknownTool: The tool was removed.
            ToolConflict: The tool was disabled.
        """
        if self._service.registry.get(tool_id).status is ToolStatus.INACTIVE:
            raise ToolConflict(f"tool {tool_id} was disabled by a person; enable it first")

    async def _run_coder(self, coder: Coder, job: CodingJob, money: TaskMoney) -> CodingOutcome:
        """Run the coder until it ends or its money is used up; return its outcome.

        Cancel: Safe; the coder and its calls have ended.
        """
        working = asyncio.ensure_future(coder.work(job))
        stopping = asyncio.ensure_future(money.exhausted.wait())
        futures: set[asyncio.Future[Any]] = {working, stopping}
        try:
            await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                return CodingOutcome(
                    error=f"the coding agent was stopped: it has cost ${money.used_usd:.2f} of the "
                    f"${money.reserved_usd:.2f} that a task may cost (coding_task_usd)"
                )
            outcome = working.result()
            await money.report(outcome.cost_usd or 0, outcome.model)
            return outcome
        finally:
            for one in futures:
                one.cancel()
            await asyncio.gather(*futures, return_exceptions=True)
            await job.aclose()
            job.log_text()

    async def _reserve(self, coder: Coder, job: CodingJob, money: TaskMoney) -> None:
        """Reserve the cost limit of the coder; above the threshold a person must approve it.

        Raises:
            BudgetRefused, ApprovalNeeded: The coder may not begin; nothing is spent.
        """
        most = self._service.settings.current.coding_task_usd
        arguments = {"provider": coder.name, "up_to_usd": most, "description": money.description}

        async def approve(title: str, message: str) -> bool:
            async with job.place.call("budget", arguments) as shown:
                approval = await job.ask_permission(
                    shown,
                    title,
                    rule="require_approval_above_usd",
                    input=arguments,
                    message=message or None,
                )
                return approval.allowed

        # The setting about approval of builds does not apply: costs always need a person.
        await money.reserve(coder.name, most, approve if job.place.session_id else None)

    async def _restart(self, spec: RepairTool, place: Workplace, log: CodingLog) -> ToolMeta | None:
        """Restart a tool; return it if it answers after that.

        Files of an inactive tool may have changed since a person approved them, so it is restarted
        only if approval is not required.
        """
        status = self._service.registry.get(spec.tool_id).status
        asks = self._service.settings.current.approve_builds
        if asks and status is not ToolStatus.ACTIVE:
            return None
        arguments = {"tool_id": spec.tool_id}
        log.tool_use("restart", arguments)
        async with place.call("restart", arguments) as shown:
            try:
                tool = await self._service.restart(spec.tool_id)
            except ToolAgentError as failed:
                shown.result(failed.message)
                log.text(failed.message)
                return None
            if tool.status is ToolStatus.STAGING:  # the service stopped during its registration
                tool = self._service.set_life(tool.tool_id, "activate")
            shown.result({"tool_id": tool.tool_id, "state": str(tool.scheduling.state)})
        log.text(RESTARTED)
        return tool

    async def _clone(self, spec: GithubDeploy, job: CodingJob) -> None:
        projects, now = self._service.projects, self._service.settings.current
        arguments = {"repo_url": spec.repo_url}
        job.log.tool_use("clone", arguments)
        async with (
            job.place.call("clone", arguments) as shown,
            cloned(spec.repo_url, now.git_hosts, now.git_directories) as folder,
        ):
            known = {project.name for project in projects.projects()}
            names = [spec.tool_name, *(f"{spec.tool_name}-{number}" for number in range(2, 100))]
            free = next((name for name in names if name not in known), names[-1])
            project_dir = await projects.create(free, note=job.toolbox.add_project)
            count = await asyncio.to_thread(copy_into, folder, projects, project_dir)
            shown.result({"project_dir": str(project_dir), "files": count})

    # -- after a restart -------------------------------------------------------------------------

    async def _registered_before(self, task: TaskRecord, spec: TaskSpec) -> ToolMeta | None:
        """Return the tool that an earlier attempt has registered, if it answers."""
        if isinstance(spec, RepairTool):
            return None  # a repair begins with a restart anyway
        for tool in self._service.registry.tools():
            if is_made_by(task, tool) and tool.status is ToolStatus.ACTIVE:
                with suppress(ToolAgentError):
                    return await self._service.restart(tool.tool_id)
        return None


def _title(task: TaskRecord) -> str:
    """Return the description of a task for the billing log."""
    return f"{task.description[:MAX_TITLE]} (task {task.task_id})"
