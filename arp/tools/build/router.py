"""`Router`: turns requests into tasks, and delivers their outcomes.

Theory of operation. A request becomes a pending task. If an existing tool matches, the task is
completed with it; otherwise the coding agent begins it (`ToolRequest`). The outcome (`ToolReady`,
`ToolError`) ends the task and is delivered to its `callback_url`. An outcome of a task that is not
open, or with a tool that is not registered, has no effect. A degraded tool never completes a
request: the request waits for the repair of the tool.

The coding agent receives each alert. If the tool is active, a repair task is created unless one is
open for the tool. After a failed repair the health checks of the tool continue, so that its alert
is repeated. After `MAX_REPAIRS` failed or cancelled repairs in a row the tool gets no further
automatic repair until it was healthy once or a repair is requested. After a restart of the service
the repairs are counted from the task book.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from contextlib import suppress
from typing import Final

from msgspec import Struct

from arp.protocol.json_value import JsonObject
from arp.tools.build.callbacks import CallbackSender
from arp.tools.build.coding_agent import CodingAgent
from arp.tools.build.messages import CANCELLED, Outcome, ToolError, ToolReady, ToolRequest
from arp.tools.build.planning import existing_tool, spec_for
from arp.tools.errors import InvalidToolMeta, ToolAgentError, ToolRefused, UnknownTool
from arp.tools.registry.models import RuntimeType, ToolMeta, ToolState, ToolStatus
from arp.tools.registry.registry import url_of
from arp.tools.run.runtime import HealthAlert
from arp.tools.service import ToolService
from arp.tools.tasks.task_book import CUT_OFF, MAX_ATTEMPTS, TaskBook, TaskRecord, TaskStatus
from arp.tools.tasks.task_leftovers import remove_leftovers
from arp.tools.tasks.task_specs import (
    MAX_DESCRIPTION,
    GithubDeploy,
    RepairTool,
    TaskSpec,
    check_repo_url,
    name_of_spec,
    task_spec_of,
    task_spec_text,
)

logger = logging.getLogger(__name__)

MAX_REPAIRS: Final = 3
"""Maximum number of failed repairs of one tool in a row."""
DEGRADED: Final = "it was requested, and it does not answer"
"""Error text of a repair that is caused by a request for the tool."""
ALREADY_THERE: Final = "there is such a tool already"
"""Result of a task that was completed with an existing tool."""


class TaskRequest(Struct, frozen=True):
    """Request for a tool."""

    description: str
    """Request in words."""
    callback_url: str = ""
    """URL that receives the outcome; empty if there is none."""
    owner: str = ""
    """User that made the request; empty where users are not distinguished."""
    spec: TaskSpec | None = None
    """Spec of the task; `None` means that the router writes it."""


class Router:
    """Receives requests and alerts, passes them to the coding agent, and records the outcomes.

    Args:
        service: Tools.
        coding: Agent that carries out tasks; its outcomes have to reach `on_outcome`.
        book: Records of the tasks.
        callbacks: Delivers outcomes; `None` means a sender that follows the settings.
    """

    def __init__(
        self,
        service: ToolService,
        coding: CodingAgent,
        book: TaskBook,
        callbacks: CallbackSender | None = None,
    ) -> None:
        self.service, self.book = service, book
        self._coding = coding
        self.callbacks = callbacks or CallbackSender(service.settings)
        self._failed_repairs: Counter[str] = Counter()
        self._last_healthy: dict[str, str | None] = {}
        """Time of each tool's last healthy check, from its last alert."""
        self._deliveries: set[asyncio.Task[None]] = set()
        self._delayed: set[asyncio.Task[None]] = set()
        """Requests that wait for the repair of a tool."""
        self._is_open = False

    async def start(self) -> None:
        """Begin to accept outcomes; resume unfinished tasks and callbacks of the previous run."""
        self._is_open = True
        self._failed_repairs.clear()
        for task in self.book.tasks():
            self._count_repair(task)
        for task in self.book.tasks():
            if task.is_over and not task.callback:
                self._send(task)
        for task in self.book.reopen():
            if task.attempts < MAX_ATTEMPTS:
                await self.dispatch(task.task_id)
            else:
                await remove_leftovers(self.service, task, all_tools=False)
                cut_off = ToolError(task.tool_id, CUT_OFF, task.task_id)
                await self._watch(cut_off)
                self._count_repair(self._finish(cut_off, TaskStatus.FAILED))

    async def aclose(self) -> None:
        """Stop; an unfinished callback is sent again after the next start."""
        self._is_open = False
        tasks = [*self._deliveries, *self._delayed]
        for one in tasks:
            one.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # -- requests --------------------------------------------------------------------------------

    def accept(self, request: TaskRequest) -> TaskRecord:
        """Store a request as a pending task, and return it; `dispatch` begins it.

        Raises:
            ToolAgentError: The description is empty or too long, the callback can never be called,
                the repository may not be cloned, or too many tasks are open.
        """
        words = request.description.strip()
        if not words or len(words) > MAX_DESCRIPTION:
            raise InvalidToolMeta(f"description: write 1 to {MAX_DESCRIPTION} characters")
        if request.callback_url:
            self.callbacks.check(request.callback_url)
        spec = request.spec
        if isinstance(spec, GithubDeploy):
            self.check_repo(spec.repo_url)
        task = self.book.add(words, callback_url=request.callback_url, owner=request.owner)
        if spec is None:
            return task
        text, name = task_spec_text(spec), name_of_spec(spec)
        return self.book.set(task.task_id, task_spec=text, tool_id=name)

    def check_repo(self, url: str) -> str:
        """Return the URL of a repository that may be cloned.

        Raises:
            ToolRefused: It may not be cloned.
        """
        now = self.service.settings.current
        return check_repo_url(url, now.git_hosts, now.git_directories)

    async def dispatch(self, task_id: str) -> TaskRecord:
        """Complete a pending task with an existing tool, or let the coding agent carry it out.

        If only a degraded tool matches, the task waits for the repair of that tool, or becomes its
        repair.

        Returns:
            The task with its new status.
        """
        task = self.book.get(task_id)
        if not task.task_spec:
            found = existing_tool(task.description, self.service.registry.tools())
            if found is not None and found.scheduling.state is not ToolState.DEGRADED:
                ready = ToolReady(found.tool_id, ALREADY_THERE, url_of(found), task_id)
                return self._finish(ready, TaskStatus.COMPLETED)
            if found is not None and (repair := self._open_repair(found.tool_id)) is not None:
                self._dispatch_after(repair.task_id, task_id)
                return task
            spec = await self._spec(task.description, found)
            text, name = task_spec_text(spec), name_of_spec(spec)
            task = self.book.set(task_id, task_spec=text, tool_id=name)
        self._coding.begin(ToolRequest(task.task_spec, task_id, task.callback_url))
        return task

    async def request(self, request: TaskRequest) -> TaskRecord:
        """Accept a request and begin it; return its task.

        Raises:
            ToolAgentError: As for `accept`.
        """
        return await self.dispatch(self.accept(request).task_id)

    def _dispatch_after(self, repair_id: str, task_id: str) -> None:
        """Begin a task when the repair of its tool is over."""

        async def work() -> None:
            try:
                await self.book.wait_for_end(repair_id)
                if not self.book.get(task_id).is_over:
                    await self.dispatch(task_id)
            except Exception:  # the next start tries again
                logger.exception("task %s could not be begun", task_id)

        waiting = asyncio.get_running_loop().create_task(work())
        self._delayed.add(waiting)
        waiting.add_done_callback(self._delayed.discard)

    async def _spec(self, description: str, degraded: ToolMeta | None) -> TaskSpec:
        """Return the spec for a request: to repair a matching degraded tool, or to build a tool."""
        if degraded is not None:
            container_id = degraded.runtime.container_id
            return RepairTool(degraded.tool_id, DEGRADED, container_id, description)
        reports = await self.service.runtimes.reports()
        has_docker = any(one.type == RuntimeType.DOCKER and one.available for one in reports)
        hosts = self.service.settings.current.git_hosts
        return spec_for(description, hosts, has_docker=has_docker)

    # -- health ----------------------------------------------------------------------------------

    async def on_alert(self, alert: HealthAlert) -> None:
        """Pass an alert to the coding agent, and create a repair task for an active tool."""
        self._coding.record_alert(alert)
        tool_id = alert.tool_id
        tool = self.service.registry.find(tool_id)
        if tool is None or tool.status is not ToolStatus.ACTIVE:
            return  # it was removed or disabled, or a task is working on it
        if self._open_repair(tool_id) is not None:
            return
        if alert.last_healthy != self._last_healthy.get(tool_id):  # it was healthy in between
            self._failed_repairs.pop(tool_id, None)
        self._last_healthy[tool_id] = alert.last_healthy
        if self._failed_repairs[tool_id] >= MAX_REPAIRS:
            logger.warning(
                "tool %s: %d repairs failed; no further repair is started", tool_id, MAX_REPAIRS
            )
            return
        words = "The tool failed its health check: find out why, and repair it."
        spec = RepairTool(tool_id, alert.error, alert.container_id, words)
        try:
            await self.request(TaskRequest(f"Repair {tool_id}: {alert.error}"[:500], spec=spec))
        except ToolAgentError as refused:
            logger.warning("no repair task for tool %s: %s", tool_id, refused.message)

    async def forget(self, tool: ToolMeta) -> None:
        """Drop the repair count of a removed tool, because a new tool may use its id."""
        self._failed_repairs.pop(tool.tool_id, None)
        self._last_healthy.pop(tool.tool_id, None)

    def _open_repair(self, tool_id: str) -> TaskRecord | None:
        """Return the open task that repairs a tool; `None` if there is none."""
        open_tasks = (task for task in self.book.tasks() if not task.is_over)
        return next((task for task in open_tasks if self._repairs(task, tool_id)), None)

    def _count_repair(self, task: TaskRecord) -> None:
        """Count a finished task: a failed repair raises its tool's count, a success resets it."""
        if task.status is TaskStatus.COMPLETED and task.result != ALREADY_THERE:
            self._failed_repairs.pop(task.tool_id, None)
        elif task.is_over and self._repairs(task, task.tool_id):
            self._failed_repairs[task.tool_id] += 1

    async def _watch(self, outcome: Outcome) -> None:
        """Keep checking a tool after a failed repair, so that its alert is repeated."""
        if not isinstance(outcome, ToolError):
            return
        task = self.book.get(outcome.task_id)
        if not task.is_over and self._repairs(task, task.tool_id):
            with suppress(UnknownTool):  # it was removed
                await self.service.scheduler.watch(task.tool_id)

    def _repairs(self, task: TaskRecord, tool_id: str) -> bool:
        if task.tool_id != tool_id or not task.task_spec:
            return False
        try:
            return isinstance(task_spec_of(task.task_spec), RepairTool)
        except InvalidToolMeta:
            return False

    # -- outcomes --------------------------------------------------------------------------------

    async def on_outcome(self, outcome: Outcome) -> None:
        """End the task of an outcome; an outcome that cannot be used is logged. Never raises.

        After `aclose`, an outcome has no effect: the next start continues the task.
        """
        if not self._is_open:
            return
        try:
            await self._watch(outcome)
            # If the service closed in the meantime, the outcome may be an effect of that. The task
            # stays open, and the next start continues it.
            if self._is_open:
                self._receive_or_fail(outcome)
        except ToolAgentError as refused:
            logger.warning("an outcome is ignored: %s", refused)
        except Exception:
            logger.exception("an outcome could not be recorded")

    def _receive_or_fail(self, outcome: Outcome) -> None:
        """End the task of an outcome; the task fails if its tool was removed or disabled meanwhile.

        Raises:
            ToolAgentError: As for `receive`.
        """
        try:
            self.receive(outcome)
        except ToolAgentError as refused:
            with suppress(UnknownTool):
                status = self.book.get(outcome.task_id).status
                if isinstance(outcome, ToolReady) and status is TaskStatus.RUNNING:
                    error = ToolError(outcome.tool_id, refused.message, outcome.task_id)
                    self._count_repair(self._finish(error, TaskStatus.FAILED))
            raise

    def receive(self, outcome: Outcome) -> None:
        """End the task of an outcome.

        Raises:
            ToolAgentError: No such task is open, or there is no such tool; nothing changes.
        """
        match outcome:
            case ToolReady(tool_id=tool_id):
                tool = self.service.registry.get(tool_id)
                if tool.status is not ToolStatus.ACTIVE:
                    raise ToolRefused(f"tool {tool_id} is {tool.status}, so it is not ready")
                self._count_repair(self._finish(outcome, TaskStatus.COMPLETED))
            case ToolError(error=error):
                status = TaskStatus.CANCELLED if error == CANCELLED else TaskStatus.FAILED
                self._count_repair(self._finish(outcome, status))

    def _finish(self, outcome: Outcome, status: TaskStatus) -> TaskRecord:
        """Store the outcome of a task, and deliver it."""
        task = self.book.get(outcome.task_id)
        if task.is_over:
            raise ToolRefused(f"task {outcome.task_id} is {task.status} already")
        fields: JsonObject = {"waiting_for": ""}
        if isinstance(outcome, ToolReady):
            fields |= {"tool_id": outcome.tool_id, "url": outcome.url, "result": outcome.result}
        else:
            fields |= {"tool_id": outcome.tool_id or task.tool_id, "error": outcome.error}
        task = self.book.set(outcome.task_id, status, **fields)
        self._send(task)
        return task

    def _send(self, task: TaskRecord) -> None:
        """Begin to deliver the outcome of a task, if it has a callback."""
        if task.callback_url:
            delivery = asyncio.get_running_loop().create_task(self._deliver(task))
            self._deliveries.add(delivery)
            delivery.add_done_callback(self._deliveries.discard)

    async def _deliver(self, task: TaskRecord) -> None:
        outcome: Outcome = ToolError(task.tool_id, task.error, task.task_id)
        if task.status is TaskStatus.COMPLETED:
            outcome = ToolReady(task.tool_id, task.result, task.url, task.task_id)
        result = await self.callbacks.deliver(task.callback_url, outcome)
        self.book.set(task.task_id, callback=result)
