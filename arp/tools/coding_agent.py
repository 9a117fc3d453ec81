"""`CodingAgent`: carries out tasks: with whom (`Coder`), with which tools, and where people see it.

Theory of operation. `CodingAgent` takes `tool_request` messages. A task is carried out in a
workplace: the turn of a chat in which somebody asked for it (`expect`, then `work`), or a turn of a
session of its own that `open_place` begins, or headless. There:

1. A repair begins by starting the tool again; if that heals it, nobody has to think.
2. What the coder may cost is reserved.
3. A repository is cloned into a project.
4. The coder gets the task in words and the ten tools of a `Toolbox`. It calls them by MCP, or in
   this process.
5. The task is done if a tool is registered and answers; whatever else the coder says, it failed.

What came of it goes to the router: `tool_ready` or `tool_error`. A bad task spec is a `tool_error`.

When the service stops (`leave`), a task that is cut off is pending again, and the next start begins
it from its spec: what the attempt before has left is removed, unless it had registered its tool.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final

from arp.tools.bus import (
    CANCELLED,
    BadMessage,
    MessageBus,
    ToolError,
    ToolReady,
    ToolRequest,
    payload_of,
)
from arp.tools.cloning import cloned, copy_into
from arp.tools.coding_job import Coder, CodingJob, CodingOutcome
from arp.tools.coding_log import CodingLog
from arp.tools.errors import ToolAgentError, ToolCallFailed, ToolConflict, UnknownTool
from arp.tools.models import ToolMeta, ToolStatus
from arp.tools.registry import url_of
from arp.tools.runtime import HealthAlert
from arp.tools.service import ToolService
from arp.tools.task_book import TaskBook, TaskRecord, TaskStatus
from arp.tools.task_money import TaskMoney
from arp.tools.task_specs import (
    GithubDeploy,
    RepairTool,
    TaskSpec,
    name_of_spec,
    task_spec_of,
)
from arp.tools.task_words import words_for
from arp.tools.toolbox import Toolbox
from arp.tools.workplace import ApprovalRequest, Headless, Workplace

logger = logging.getLogger(__name__)

MAX_ALERTS: Final = 1_000
"""Tools whose last alert is remembered."""
MAX_TITLE: Final = 200
"""Characters of a task's description in the billing log."""
RESTARTED: Final = "it was started again, and answers"
"""What is said of a tool that needed nothing else."""


OpenPlace = Callable[[TaskRecord], Awaitable[None]]
"""Begins a turn for a task, in which somebody calls `CodingAgent.work`."""


class CodingAgent:
    """The side of the bus that works.

    Args:
        service: With the tools.
        bus: To the router.
        book: Of the tasks.
        coder: Who carries out tasks; `None`: nobody, each task fails and says so.
        open_place: Begins a turn for a task; `None`: tasks are carried out headless.
    """

    def __init__(
        self,
        service: ToolService,
        bus: MessageBus,
        book: TaskBook,
        coder: Coder | None,
        open_place: OpenPlace | None = None,
    ) -> None:
        self._service, self._bus, self._book = service, bus, book
        self._coder = coder
        self._open_place = open_place
        self._expected: set[str] = set()
        """Tasks for which somebody has a place."""
        self._requests: dict[str, asyncio.Future[ToolRequest]] = {}
        """The requests of tasks that are expected or were sent, by the id of the task."""
        self._working: set[str] = set()
        """Tasks that are carried out, or wait for their request in a place."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._listening: asyncio.Task[None] | None = None
        self._is_leaving = False
        """The service stops: what is cut off goes on after the next start."""
        self._room = asyncio.Semaphore(service.settings.current.coding_tasks_at_once)
        self.alerts: dict[str, HealthAlert] = {}
        """The last alert of each tool."""

    async def start(self) -> None:
        """Begin to take messages."""
        self._is_leaving = False
        self._listening = asyncio.get_running_loop().create_task(self._listen())

    def leave(self) -> None:
        """Say that the service stops: what is cut off from now on is pending again."""
        self._is_leaving = True

    async def aclose(self) -> None:
        """Stop; tasks that run are cut off."""
        self.leave()
        tasks = [*self._tasks, *([self._listening] if self._listening is not None else [])]
        for one in tasks:
            one.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._listening = None

    # -- messages --------------------------------------------------------------------------------

    async def _listen(self) -> None:
        while True:
            message = await self._bus.receive("coding")
            try:
                payload = payload_of(message)
            except BadMessage as bad:
                task_id = message.payload.get("task_id")
                named = task_id if isinstance(task_id, str) else ""
                await self._bus.send("router", ToolError("", str(bad), named))
                continue
            match payload:
                case ToolRequest():
                    self._received(payload)
                case HealthAlert():
                    self.alerts[payload.tool_id] = payload
                    while len(self.alerts) > MAX_ALERTS:
                        del self.alerts[next(iter(self.alerts))]
                case _:
                    logger.warning("the coding agent takes no %s", message.type)

    def _received(self, request: ToolRequest) -> None:
        if not self._is_pending(request.task_id) or self._future(request.task_id).done():
            logger.warning("a request for task %.80r is passed over", request.task_id)
            return
        future = self._future(request.task_id)
        future.set_result(request)
        if request.task_id in self._expected:
            return
        task = asyncio.get_running_loop().create_task(self._place(request))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _place(self, request: ToolRequest) -> None:
        """Carry out a task for which nobody has a place."""
        async with self._room:
            try:
                if self._open_place is None:
                    allows = not self._service.settings.current.approve_builds
                    await self.work(request.task_id, Headless(allows))
                else:
                    await self._open_place(self._book.get(request.task_id))
                    if not self._is_leaving and self._is_pending(request.task_id):
                        # Somebody has removed the turn before it began.
                        await self._bus.send("router", ToolError("", CANCELLED, request.task_id))
                    await self._book.over(request.task_id)
            except Exception as failed:
                if self._is_leaving:
                    return  # the next start begins it
                logger.exception("task %s could not be begun", request.task_id)
                error = ToolError(
                    "", f"it could not be begun: {type(failed).__name__}", request.task_id
                )
                await self._bus.send("router", error)

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
        """Say that somebody calls `work` for a task: no place is opened for it."""
        self._expected.add(task_id)

    async def work(self, task_id: str, place: Workplace) -> TaskRecord:
        """Carry out a task in a place, once its request has come; return the task when it is over.

        A task that is carried out in another place already is only waited for.

        Cancel: Safe; what it has started is ended. The task is cancelled, or pending again if the
        service stops.
        """
        if task_id in self._working:
            return await self._book.over(task_id)
        self._working.add(task_id)
        listen = asyncio.ensure_future(self._book.over(task_id))
        try:
            request = self._future(task_id)
            both: set[asyncio.Future[Any]] = {request, listen}
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            if not listen.done():
                outcome = await self._outcome(request.result(), place)
                await self._bus.send("router", outcome)
            return await listen
        except asyncio.CancelledError:
            if self._is_leaving:
                self._put_back(task_id)
            else:
                await self._bus.send("router", ToolError("", CANCELLED, task_id))
            raise
        finally:
            listen.cancel()
            self._working.discard(task_id)
            self._expected.discard(task_id)
            self._requests.pop(task_id, None)

    def _put_back(self, task_id: str) -> None:
        task = self._book.get(task_id)
        if not task.is_over:
            self._book.set(task_id, TaskStatus.PENDING, waiting_for="")

    async def _outcome(self, request: ToolRequest, place: Workplace) -> ToolReady | ToolError:
        """Carry out a task; return what came of it."""
        task_id, name = request.task_id, ""
        try:
            attempts = self._book.get(task_id).attempts + 1
            where = {"session_id": place.session_id, "turn_id": place.turn_id}
            task = self._book.set(task_id, TaskStatus.RUNNING, attempts=attempts, **where)
            spec = task_spec_of(request.task_spec)
            name = name_of_spec(spec)
            tool, said = await self._made(task, spec, place)
            return ToolReady(tool.tool_id, said, url_of(tool), task_id)
        except ToolAgentError as failed:
            return ToolError(name, failed.message, task_id)
        except Exception as failed:
            logger.exception("task %s failed", task_id)
            return ToolError(
                name, f"the task failed: {type(failed).__name__}: {failed}"[:500], task_id
            )

    async def _made(
        self, task: TaskRecord, spec: TaskSpec, place: Workplace
    ) -> tuple[ToolMeta, str]:
        """Return the tool that a task has made or repaired, and a sentence about it; log all of it.

        Raises:
            ToolAgentError: There is none; the message says why.
        """
        log, began, error = CodingLog(), time.monotonic(), ""
        money = TaskMoney(self._service.budget, _title(task))
        log.started(task.description)
        try:
            return await self._carried_out(task, spec, place, money, log)
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

    async def _carried_out(
        self, task: TaskRecord, spec: TaskSpec, place: Workplace, money: TaskMoney, log: CodingLog
    ) -> tuple[ToolMeta, str]:
        if task.attempts > 1 and (found := await self._registered_before(task, spec)):
            return found, "it was registered before the service was stopped, and answers"
        if isinstance(spec, RepairTool) and (healed := await self._restarted(spec, place, log)):
            return healed, RESTARTED
        if self._coder is None:
            raise ToolConflict("no coding agent is configured; arp tools serve --coder NAME")
        await self._cleared(task, spec)
        toolbox = Toolbox(self._service, spec, asks=self._service.settings.current.approve_builds)
        job = CodingJob(task, "", toolbox, place, self._book)
        job.log, job.money = log, money
        await self._reserved(self._coder, job, money)
        if isinstance(spec, GithubDeploy):
            await self._cloned(spec, job)
        job.words = words_for(spec, toolbox.projects, self.alerts.get(name_of_spec(spec)))
        outcome = await self._worked(self._coder, job, money)
        if toolbox.registered is None:
            why = outcome.error or outcome.text.strip() or "it ended without a word"
            raise ToolCallFailed(f"no tool was registered: {why[-1_000:]}")
        return toolbox.registered, "the tool is registered, and answers"

    async def _worked(self, coder: Coder, job: CodingJob, money: TaskMoney) -> CodingOutcome:
        """Let the coder work until it ends, or may spend no more; return how it ended.

        Cancel: Safe; the coder and its calls have ended.
        """
        working = asyncio.ensure_future(coder.work(job))
        stopping = asyncio.ensure_future(money.exhausted.wait())
        both: set[asyncio.Future[Any]] = {working, stopping}
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                return CodingOutcome(
                    error=f"the coding agent was stopped: it has cost ${money.used_usd:.2f} of the "
                    f"${money.reserved_usd:.2f} that a task may cost (coding_task_usd)"
                )
            outcome = working.result()
            await money.report(outcome.cost_usd or 0, outcome.model)
            return outcome
        finally:
            for one in both:
                one.cancel()
            await asyncio.gather(*both, return_exceptions=True)
            await job.aclose()
            job.said()

    async def _reserved(self, coder: Coder, job: CodingJob, money: TaskMoney) -> None:
        """Reserve what the coder may cost; above the threshold a person is asked.

        Raises:
            BudgetRefused, ApprovalNeeded: It may not begin; nothing is spent.
        """
        most = self._service.settings.current.coding_task_usd
        given = {"provider": coder.name, "up_to_usd": most, "description": money.description}

        async def approve(title: str, message: str) -> bool:
            async with job.place.call("budget", given) as shown:
                request = ApprovalRequest(title, given, "require_approval_above_usd", message)
                return (await job.asked(shown, request, None)).allowed

        # The settings say whether builds are approved; money needs a person in any case.
        await money.reserve(coder.name, most, approve if job.place.session_id else None)

    async def _restarted(
        self, spec: RepairTool, place: Workplace, log: CodingLog
    ) -> ToolMeta | None:
        """Start a tool again; return it if it answers then."""
        given = {"tool_id": spec.tool_id}
        log.used("restart", given)
        async with place.call("restart", given) as shown:
            try:
                tool = await self._service.restart(spec.tool_id)
            except ToolAgentError as failed:
                shown.result(failed.message)
                log.said(failed.message)
                return None
            if tool.status is ToolStatus.STAGING:  # the service stopped while it was registered
                tool = self._service.set_life(tool.tool_id, "activate")
            shown.result({"tool_id": tool.tool_id, "state": str(tool.scheduling.state)})
        log.said(RESTARTED)
        return tool

    async def _cloned(self, spec: GithubDeploy, job: CodingJob) -> None:
        projects, now = self._service.projects, self._service.settings.current
        given = {"repo_url": spec.repo_url}
        job.log.used("clone", given)
        async with (
            job.place.call("clone", given) as shown,
            cloned(spec.repo_url, now.git_hosts, now.git_directories) as folder,
        ):
            known = {project.name for project in projects.projects()}
            names = [spec.tool_name, *(f"{spec.tool_name}-{number}" for number in range(2, 100))]
            free = next((name for name in names if name not in known), names[-1])
            project_dir = await projects.create(free, note=job.toolbox.take_project)
            count = await asyncio.to_thread(copy_into, folder, projects, project_dir)
            shown.result({"project_dir": str(project_dir), "files": count})

    # -- after a restart -------------------------------------------------------------------------

    async def _registered_before(self, task: TaskRecord, spec: TaskSpec) -> ToolMeta | None:
        """Return the tool that an attempt before has registered, if it answers."""
        if isinstance(spec, RepairTool):
            return None  # it is started again in any case
        for tool in self._service.registry.tools():
            if _is_made_by(task, tool) and tool.status is ToolStatus.ACTIVE:
                with suppress(ToolAgentError):
                    return await self._service.restart(tool.tool_id)
        return None

    async def _cleared(self, task: TaskRecord, spec: TaskSpec) -> None:
        """Remove what attempts before have left; a project of a tool that is repaired stays."""
        if task.attempts == 1:
            return
        repaired = spec.tool_id if isinstance(spec, RepairTool) else ""
        for tool in self._service.registry.tools():
            if _is_made_by(task, tool) and tool.tool_id != repaired:
                await self._service.remove(tool.tool_id)
        used = {tool.runtime.host_dir for tool in self._service.registry.tools()}
        for project in task.projects:
            if project not in used:
                with suppress(UnknownTool):
                    await asyncio.to_thread(self._service.projects.remove, project)
        kept = {tool.runtime.container_id for tool in self._service.registry.tools()}
        for container_id in task.containers:
            if container_id not in kept:
                with suppress(ToolAgentError):
                    await self._service.docker.destroy(container_id)


def _title(task: TaskRecord) -> str:
    """Return what the billing log says of a task."""
    return f"{task.description[:MAX_TITLE]} (task {task.task_id})"


def _is_made_by(task: TaskRecord, tool: ToolMeta) -> bool:
    runtime = tool.runtime
    return (
        tool.tool_id == task.registered
        or runtime.host_dir in task.projects
        or runtime.container_id in task.containers
    )
