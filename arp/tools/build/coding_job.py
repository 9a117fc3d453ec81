"""`CodingJob`: one attempt of a task, and `Coder`, the interface of agents that carry it out."""

from __future__ import annotations

import asyncio
from typing import Any, Protocol

from msgspec import Struct

from arp.protocol.json_value import JsonObject
from arp.tools.build.coding_log import CodingLog
from arp.tools.build.toolbox import Toolbox
from arp.tools.build.workplace import (
    ApprovalAnswer,
    ApprovalRequest,
    ProcessRun,
    Recheck,
    WorkCall,
    Workplace,
)
from arp.tools.errors import ToolRefused
from arp.tools.tasks.task_book import TaskBook, TaskRecord, TaskStatus
from arp.tools.tasks.task_money import TaskMoney

TASK_OVER = "the task is over; nothing more can be done in it"
"""Why a call is refused that comes when nobody waits for it any more."""


class CodingOutcome(Struct, frozen=True):
    """How a coder ended."""

    text: str = ""
    """The last that it said."""
    cost_usd: float | None = None
    """In all; `None`: it does not say, or has reported it by `CodingJob.spent`."""
    model: str = ""
    error: str = ""
    """Why it stopped; empty: it ended by itself."""


class Coder(Protocol):
    """An agent that carries out tasks by calling tools."""

    name: str
    """As facts and the billing log call it."""

    async def work(self, job: CodingJob) -> CodingOutcome:
        """Carry out a job: call its tools until a tool is registered, or it cannot be done.

        What it costs is reported by `job.spent`, as soon as it is known: it is stopped when that is
        all that was reserved for the task.

        Cancel: Safe; the agent has ended.
        """


class CodingJob:
    """An attempt of a task, as the coder sees it.

    Args:
        task: What is to be done.
        words: The task as a prompt, with all that a coder has to know.
        toolbox: The ten tools.
        place: Where it is shown.
        book: Where the task says that it waits for a person, and what it has made.
    """

    def __init__(
        self, task: TaskRecord, words: str, toolbox: Toolbox, place: Workplace, book: TaskBook
    ) -> None:
        self.task_id = task.task_id
        self.words = words
        self.toolbox = toolbox
        self.place = place
        self.log = CodingLog()
        self.money: TaskMoney | None = None
        """What it may cost; `None`: nobody counts."""
        self._book = book
        toolbox.note = self._save_made
        self._waiting = 0
        """Questions that are open."""
        self._unlogged: list[str] = []
        """Pieces of what the coder says, until it does something else."""
        self._calls: set[asyncio.Task[JsonObject]] = set()
        self._is_over = False

    async def call(self, name: str, args: JsonObject) -> JsonObject:
        """Call one of the ten tools; return its result.

        Raises:
            ToolAgentError: It could not be done; the message says why.

        Cancel: Safe.
        """
        if self._is_over:
            raise ToolRefused(TASK_OVER)
        # A task of its own, because the caller may be a server that goes on when the job ends.
        calling = asyncio.get_running_loop().create_task(self._called(name, args))
        self._calls.add(calling)
        calling.add_done_callback(self._calls.discard)
        try:
            return await calling
        except asyncio.CancelledError:
            caller = asyncio.current_task()
            if caller is not None and caller.cancelling():
                raise
            raise ToolRefused(TASK_OVER) from None

    async def _called(self, name: str, args: JsonObject) -> JsonObject:
        self.log_text()
        self.log.tool_use(name, args)
        async with self.place.call(name, args) as shown:
            try:
                result = await self.toolbox.call(name, args, _WaitingCall(shown, self))
            finally:
                self._save_made()
            shown.result(_preview(result))
        return result

    def _save_made(self) -> None:
        """Save what the task has made, so that the next start can find it."""
        box, task = self.toolbox, self._book.get(self.task_id)
        fields: dict[str, Any] = {
            "projects": [str(project) for project in box.made_projects],
            "containers": sorted(box.containers),
            "registered": box.own_ids[-1] if box.own_ids else "",
        }
        if any(getattr(task, name) != value for name, value in fields.items()):
            self._book.set(self.task_id, **fields)

    async def aclose(self) -> None:
        """End the calls that nobody waits for any more; further ones are refused."""
        self._is_over = True
        calls = list(self._calls)
        for one in calls:
            one.cancel()
        await asyncio.gather(*calls, return_exceptions=True)

    async def say(self, text: str) -> None:
        """Show what the coder says; it may come in pieces."""
        self._unlogged.append(text)
        await self.place.say(text)

    def log_text(self) -> None:
        """Log what the coder has said, as one text."""
        text = "".join(self._unlogged)
        self._unlogged.clear()
        self.log.text(text)

    async def spent(self, total_usd: float, model: str = "") -> None:
        """Report what the coder has cost so far, in all.

        Cancel: Safe; it is noted.
        """
        if self.money is not None:
            await self.money.report(total_usd, model)

    async def request_approval(
        self, shown: WorkCall, request: ApprovalRequest, recheck: Recheck | None
    ) -> ApprovalAnswer:
        """Ask a person; the task is `waiting_approval` until they have answered."""
        session_id, status = self.place.session_id, TaskStatus.WAITING_APPROVAL
        self._book.set(self.task_id, status, waiting_for=request.title, session_id=session_id)
        self._waiting += 1
        try:
            return await shown.ask(request, recheck)
        finally:
            self._waiting -= 1
            # A task that is over, or was put back because the service stops, stays as it is.
            if not self._waiting and self._book.get(self.task_id).status is status:
                self._book.set(self.task_id, TaskStatus.RUNNING, waiting_for="")


class _WaitingCall:
    """A tool call whose questions set the status of the task."""

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
        """Ask, and set the status of the task meanwhile."""
        return await self._job.request_approval(self._shown, request, recheck)


def _preview(result: JsonObject) -> JsonObject:
    """Return a result without the long texts that are shown elsewhere."""
    return {
        name: f"{value[:2_000]}…" if isinstance(value, str) and len(value) > 2_000 else value
        for name, value in result.items()
    }
