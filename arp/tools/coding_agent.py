"""`CodingAgent`: carries out tasks: with whom (`Coder`), with which tools, and where people see it.

Theory of operation. `CodingAgent` takes `tool_request` messages. A task is carried out in a
workplace: the turn of a chat in which somebody asked for it (`expect`, then `work`), or a turn of a
session of its own that `open_place` begins, or headless. There:

1. A repair begins by starting the tool again; if that heals it, nobody has to think.
2. A repository is cloned into a project.
3. The coder gets the task in words and the ten tools of a `Toolbox`. It calls them by MCP, or in
   this process.
4. The task is done if a tool is registered and answers; whatever else the coder says, it failed.

What came of it goes to the router: `tool_ready` or `tool_error`. A bad task spec is a `tool_error`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final, Protocol

import msgspec
from msgspec import Struct

from arp.protocol.json_value import JsonObject
from arp.tools.budget import Purchase
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
from arp.tools.coding_log import CodingLog
from arp.tools.errors import BudgetRefused, ToolAgentError, ToolCallFailed, ToolConflict
from arp.tools.models import ToolMeta
from arp.tools.registry import url_of
from arp.tools.runtime import HealthAlert
from arp.tools.service import ToolService
from arp.tools.task_book import TaskBook, TaskRecord, TaskStatus
from arp.tools.task_specs import (
    GithubDeploy,
    RepairTool,
    TaskSpec,
    name_of_spec,
    task_spec_of,
)
from arp.tools.task_words import words_for
from arp.tools.toolbox import Toolbox
from arp.tools.workplace import (
    ApprovalAnswer,
    ApprovalRequest,
    Headless,
    ProcessRun,
    Recheck,
    WorkCall,
    Workplace,
)

logger = logging.getLogger(__name__)

MAX_ALERTS: Final = 1_000
"""Tools whose last alert is remembered."""


class CodingOutcome(Struct, frozen=True):
    """How a coder ended."""

    text: str = ""
    """The last that it said."""
    cost_usd: float | None = None
    """`None`: it does not say."""
    model: str = ""
    error: str = ""
    """Why it stopped; empty: it ended by itself."""


class Coder(Protocol):
    """Who carries out tasks: an agent that can call tools."""

    name: str
    """As facts and the billing log call it."""

    async def work(self, job: CodingJob) -> CodingOutcome:
        """Carry out a job: call its tools until a tool is registered, or it cannot be done.

        Cancel: Safe; the agent has ended.
        """


class CodingJob:
    """A task, as the coder sees it.

    Args:
        task: What is to be done.
        words: The same in words, with all that a coder has to know.
        toolbox: The ten tools.
        place: Where people see it.
        book: Where the task says that it waits for a person.
    """

    def __init__(
        self, task: TaskRecord, words: str, toolbox: Toolbox, place: Workplace, book: TaskBook
    ) -> None:
        self.task_id = task.task_id
        self.words = words
        self.toolbox = toolbox
        self.place = place
        self.log = CodingLog()
        self._book = book
        self._waiting = 0
        """Questions that are open."""
        self._unlogged: list[str] = []
        """Pieces of what the coder says, until it does something else."""

    async def call(self, name: str, args: JsonObject) -> JsonObject:
        """Call one of the ten tools; return its result.

        Raises:
            ToolAgentError: It could not be done; the message says why.

        Cancel: Safe.
        """
        self.said()
        self.log.used(name, args)
        async with self.place.call(name, args) as shown:
            result = await self.toolbox.call(name, args, _WaitingCall(shown, self))
            shown.result(_preview(result))
        return result

    async def say(self, text: str) -> None:
        """Show what the coder says; it may come in pieces."""
        self._unlogged.append(text)
        await self.place.say(text)

    def said(self) -> None:
        """Log what the coder has said, as one text."""
        text = "".join(self._unlogged)
        self._unlogged.clear()
        self.log.said(text)

    async def asked(
        self, shown: WorkCall, request: ApprovalRequest, recheck: Recheck | None
    ) -> ApprovalAnswer:
        """Ask a person; the task says so as long as they have not answered."""
        self._waiting += 1
        session_id = self.place.session_id
        status = TaskStatus.WAITING_APPROVAL
        self._book.set(self.task_id, status, waiting_for=request.title, session_id=session_id)
        try:
            return await shown.ask(request, recheck)
        finally:
            self._waiting -= 1
            if not self._waiting and not self._book.get(self.task_id).is_over:
                self._book.set(self.task_id, TaskStatus.RUNNING, waiting_for="")


class _WaitingCall:
    """A call whose questions show in the status of the task."""

    def __init__(self, shown: WorkCall, job: CodingJob) -> None:
        self._shown, self._job = shown, job

    def progress(self, text: str) -> None:
        """As the call itself."""
        self._shown.progress(text)

    def result(self, value: object) -> None:
        """As the call itself."""
        self._shown.result(value)

    async def ran(self, run: ProcessRun) -> None:
        """As the call itself."""
        await self._shown.ran(run)

    async def ask(self, request: ApprovalRequest, recheck: Recheck | None = None) -> ApprovalAnswer:
        """Ask, with the task waiting."""
        return await self._job.asked(self._shown, request, recheck)


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
        self._tasks: set[asyncio.Task[None]] = set()
        self._listening: asyncio.Task[None] | None = None
        self._room = asyncio.Semaphore(service.settings.current.coding_tasks_at_once)
        self.alerts: dict[str, HealthAlert] = {}
        """The last alert of each tool."""

    async def start(self) -> None:
        """Begin to take messages."""
        self._listening = asyncio.get_running_loop().create_task(self._listen())

    async def aclose(self) -> None:
        """Stop; tasks that run are cancelled."""
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
        future = self._future(request.task_id)
        if not future.done():
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
                    await self._book.over(request.task_id)
            except Exception as failed:
                logger.exception("task %s could not be begun", request.task_id)
                error = ToolError(
                    "", f"it could not be begun: {type(failed).__name__}", request.task_id
                )
                await self._bus.send("router", error)

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

        Cancel: Safe; what it has started is ended, and the task is failed.
        """
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
            await self._bus.send("router", ToolError("", CANCELLED, task_id))
            raise
        finally:
            listen.cancel()
            self._expected.discard(task_id)
            self._requests.pop(task_id, None)

    async def _outcome(self, request: ToolRequest, place: Workplace) -> ToolReady | ToolError:
        """Carry out a task; return what came of it."""
        task_id, name, began = request.task_id, "", time.monotonic()
        try:
            task = self._book.set(task_id, TaskStatus.RUNNING, session_id=place.session_id)
            spec = task_spec_of(request.task_spec)
            name = name_of_spec(spec)
            tool, said = await self._made(task, spec, place, began)
            return ToolReady(tool.tool_id, said, url_of(tool), task_id)
        except ToolAgentError as failed:
            return ToolError(name, failed.message, task_id)
        except Exception as failed:
            logger.exception("task %s failed", task_id)
            return ToolError(
                name, f"the task failed: {type(failed).__name__}: {failed}"[:500], task_id
            )

    async def _made(
        self, task: TaskRecord, spec: TaskSpec, place: Workplace, began: float
    ) -> tuple[ToolMeta, str]:
        """Return the tool that a task has made or repaired, and a sentence about it.

        Raises:
            ToolAgentError: There is none; the message says why.
        """
        if isinstance(spec, RepairTool) and (healed := await self._restarted(spec, place)):
            return healed, "it was started again, and answers"
        if self._coder is None:
            raise ToolConflict("no coding agent is configured; arp tools serve --coder NAME")
        asks = self._service.settings.current.approve_builds
        toolbox = Toolbox(self._service, spec, asks=asks)
        if isinstance(spec, GithubDeploy):
            await self._cloned(spec, toolbox, place)
        words = words_for(spec, toolbox.projects, self.alerts.get(name_of_spec(spec)))
        job = CodingJob(task, words, toolbox, place, self._book)
        self._check_budget()
        job.log.started(task.description)
        outcome = await self._coder.work(job)
        job.said()
        job.log.done(time.monotonic() - began)
        await self._paid(job, outcome)
        if toolbox.registered is None:
            why = outcome.error or outcome.text.strip() or "it ended without a word"
            job.log.failed(why)
            raise ToolCallFailed(f"no tool was registered: {why[-1_000:]}")
        return toolbox.registered, "the tool is registered, and answers"

    async def _restarted(self, spec: RepairTool, place: Workplace) -> ToolMeta | None:
        """Start a tool again; return it if it answers then."""
        tool = self._service.registry.get(spec.tool_id)
        async with place.call("restart", {"tool_id": spec.tool_id}) as shown:
            try:
                tool = await self._service.restart(spec.tool_id)
            except ToolAgentError as failed:
                shown.result(failed.message)
                return None
            shown.result({"tool_id": tool.tool_id, "state": str(tool.scheduling.state)})
        return tool

    async def _cloned(self, spec: GithubDeploy, toolbox: Toolbox, place: Workplace) -> None:
        projects, now = self._service.projects, self._service.settings.current
        async with (
            place.call("clone", {"repo_url": spec.repo_url}) as shown,
            cloned(spec.repo_url, now.git_hosts, now.git_directories) as folder,
        ):
            known = {project.name for project in projects.projects()}
            names = [spec.tool_name, *(f"{spec.tool_name}-{number}" for number in range(2, 100))]
            free = next((name for name in names if name not in known), names[-1])
            project_dir = await projects.create(free)
            toolbox.projects.append(project_dir)
            count = await asyncio.to_thread(copy_into, folder, projects, project_dir)
            shown.result({"project_dir": str(project_dir), "files": count})

    # -- money -----------------------------------------------------------------------------------

    def _check_budget(self) -> None:
        """Refuse to begin where nothing is left of the month.

        Raises:
            BudgetRefused: So it is.
        """
        if self._service.budget.left_this_month() <= 0:
            raise BudgetRefused("nothing is left of this month's budget (monthly_limit_usd)")

    async def _paid(self, job: CodingJob, outcome: CodingOutcome) -> None:
        """Write down what the coder has cost; above the threshold a person is asked."""
        if not outcome.cost_usd:
            return
        job.log.cost(outcome.cost_usd)
        job.place.cost(outcome.model, outcome.cost_usd)
        assert self._coder is not None
        purchase = Purchase(self._coder.name, outcome.cost_usd, f"task {job.task_id}")

        async def approve(title: str, message: str) -> bool:
            given = msgspec.to_builtins(purchase)
            async with job.place.call("budget", given) as shown:
                request = ApprovalRequest(title, given, "require_approval_above_usd", message)
                return (await job.asked(shown, request, None)).allowed

        try:
            await self._service.budget.spend(purchase, approve)
        except BudgetRefused as refused:  # it is spent already: the log and the task say so
            logger.warning("task %s: %s", job.task_id, refused.message)


def _preview(result: JsonObject) -> JsonObject:
    """Return a result without the long texts that people have seen already."""
    return {
        name: f"{value[:2_000]}…" if isinstance(value, str) and len(value) > 2_000 else value
        for name, value in result.items()
    }
