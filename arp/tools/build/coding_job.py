"""`CodingJob`: one attempt of a task, and `Coder`, the interface of agents that carry it out."""

from __future__ import annotations

import asyncio
from typing import Any, Protocol, Unpack

from msgspec import Struct

from arp.protocol.json_value import JsonObject
from arp.tools.build.coding_log import CodingLog
from arp.tools.build.toolbox import Toolbox
from arp.tools.build.workplace import ProcessRun, WorkCall, Workplace
from arp.tools.errors import ToolRefused
from arp.tools.tasks.task_book import TaskBook, TaskRecord, TaskStatus
from arp.tools.tasks.task_money import TaskMoney
from arp.turn.approval.approval import Approval, PermissionOptions

TASK_OVER = "the task is over; nothing more can be done in it"
"""Error of a call that arrives after the end of the task."""


class CodingOutcome(Struct, frozen=True):
    """Outcome of a coder's work."""

    text: str = ""
    """Last text of the coder."""
    cost_usd: float | None = None
    """Total cost; `None` if it is unknown or was reported by `CodingJob.spent`."""
    model: str = ""
    error: str = ""
    """Reason why the coder stopped early; empty if it finished."""


class Coder(Protocol):
    """Agent that carries out tasks by calling tools."""

    name: str
    """Name in facts and in the billing log."""

    async def work(self, job: CodingJob) -> CodingOutcome:
        """Carry out a job: call tools until one is registered, or until the task proves impossible.

        Costs are reported by `job.spent` as soon as they are known; the coder is stopped when the
        amount reserved for the task is used up.

        Cancel: Safe; the agent has ended.
        """


class CodingJob:
    """Attempt of a task, as the coder sees it.

    Args:
        task: Record of the task.
        words: Prompt with everything that a coder has to know.
        toolbox: The ten tools.
        place: Workplace that shows the attempt.
        book: Records of the tasks, updated with open questions and created resources.
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
        """Cost limit; `None` means that costs are not counted."""
        self._book = book
        toolbox.note = self._save_made
        self._open_questions = 0
        """Number of open questions."""
        self._unlogged: list[str] = []
        """Pieces of the coder's text since the last log line."""
        self._calls: set[asyncio.Task[JsonObject]] = set()
        self._is_over = False

    async def call(self, name: str, args: JsonObject) -> JsonObject:
        """Call one of the ten tools; return its result.

        Raises:
            ToolAgentError: The call failed or was refused; the message says why.

        Cancel: Safe.
        """
        if self._is_over:
            raise ToolRefused(TASK_OVER)
        # The call runs in its own asyncio task: the caller may be a server that outlives the job,
        # and `aclose` must be able to end the call.
        calling = asyncio.get_running_loop().create_task(self._run_call(name, args))
        self._calls.add(calling)
        calling.add_done_callback(self._calls.discard)
        try:
            return await calling
        except asyncio.CancelledError:
            caller = asyncio.current_task()
            if caller is not None and caller.cancelling():
                raise
            # `aclose` has cancelled the call, not its caller. The agent gets an error, because a
            # `CancelledError` would end the caller's task without an answer.
            raise ToolRefused(TASK_OVER) from None

    async def _run_call(self, name: str, args: JsonObject) -> JsonObject:
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
        """Record the created resources of the task, so that the next start can find them."""
        box, task = self.toolbox, self._book.get(self.task_id)
        fields: dict[str, Any] = {
            "projects": [str(project) for project in box.made_projects],
            "containers": sorted(box.containers),
            "registered": box.own_ids[-1] if box.own_ids else "",
        }
        if any(getattr(task, name) != value for name, value in fields.items()):
            self._book.set(self.task_id, **fields)

    async def aclose(self) -> None:
        """End the remaining calls; new ones are refused."""
        self._is_over = True
        calls = list(self._calls)
        for one in calls:
            one.cancel()
        await asyncio.gather(*calls, return_exceptions=True)

    async def say(self, text: str) -> None:
        """Show text of the coder; it may arrive in pieces."""
        self._unlogged.append(text)
        await self.place.say(text)

    def log_text(self) -> None:
        """Log the coder's text since the last log line as one text."""
        text = "".join(self._unlogged)
        self._unlogged.clear()
        self.log.text(text)

    async def spent(self, total_usd: float, model: str = "") -> None:
        """Report the total cost of the coder so far.

        Cancel: Safe; the cost is recorded.
        """
        if self.money is not None:
            await self.money.report(total_usd, model)

    async def ask_permission(
        self,
        shown: WorkCall,
        title: str,
        *,
        rule: str,
        input: JsonObject,
        **options: Unpack[PermissionOptions],
    ) -> Approval:
        """Ask a person; the task is `waiting_approval` until the answer."""
        session_id, status = self.place.session_id, TaskStatus.WAITING_APPROVAL
        self._book.set(self.task_id, status, waiting_for=title, session_id=session_id)
        self._open_questions += 1
        try:
            return await shown.ask_permission(title, rule=rule, input=input, **options)
        finally:
            self._open_questions -= 1
            # A task that is over, or is pending again because the service stops, keeps its status.
            if not self._open_questions and self._book.get(self.task_id).status is status:
                self._book.set(self.task_id, TaskStatus.RUNNING, waiting_for="")


class _WaitingCall:
    """Tool call that sets the status of the task while a question is open."""

    def __init__(self, shown: WorkCall, job: CodingJob) -> None:
        self._shown, self._job = shown, job

    def progress(self, text: str) -> None:
        """See `WorkCall.progress`."""
        self._shown.progress(text)

    def result(self, value: object) -> None:
        """See `WorkCall.result`."""
        self._shown.result(value)

    async def ran(self, run: ProcessRun) -> None:
        """See `WorkCall.ran`."""
        await self._shown.ran(run)

    async def ask_permission(
        self, title: str, *, rule: str, input: JsonObject, **options: Unpack[PermissionOptions]
    ) -> Approval:
        """See `WorkCall.ask_permission`; sets the status of the task meanwhile."""
        shown = self._shown
        return await self._job.ask_permission(shown, title, rule=rule, input=input, **options)


def _preview(result: JsonObject) -> JsonObject:
    """Return a result without the long texts that are shown elsewhere."""
    return {
        name: f"{value[:2_000]}…" if isinstance(value, str) and len(value) > 2_000 else value
        for name, value in result.items()
    }
