"""`ToolBackend`: the Tool Agent without its `faces`: tools, tasks, router and coding agent."""

from __future__ import annotations

from arp.tools.build.coding_agent import CodingAgent, OpenPlace
from arp.tools.build.coding_job import Coder
from arp.tools.build.router import Router, TaskRequest
from arp.tools.build.workplace import Workplace
from arp.tools.service import ToolService
from arp.tools.tasks.task_book import TaskBook, TaskRecord


class ToolBackend:
    """Complete Tool Agent.

    Args:
        service: Tools; started and closed with the backend.
        coder: Coding agent; `None` means that tasks cannot be carried out.
        open_place: Begins a turn for a task; `None` means that tasks are carried out headless.
    """

    def __init__(
        self,
        service: ToolService | None = None,
        coder: Coder | None = None,
        open_place: OpenPlace | None = None,
    ) -> None:
        self.service = service or ToolService()
        self.book = TaskBook(self.service.settings.data_dir)
        self.coding = CodingAgent(self.service, self.book, coder, open_place)
        self.router = Router(self.service, self.coding, self.book)
        self._is_started = False
        self.coding.on_outcome(self.router.on_outcome)
        self.service.on_alert(self.router.on_alert)
        self.service.on_removed(self.router.forget)
        self.service.on_removed(self.coding.forget)

    async def start(self) -> None:
        """Start everything. May be repeated.

        Raises:
            ToolAgentError: A file of the data directory cannot be read.
        """
        if self._is_started:
            return
        self._is_started = True
        self.book.forget_waiting()
        await self.service.start()
        await self.coding.start()
        await self.router.start()

    async def aclose(self) -> None:
        """Stop everything, in the reverse order of the start. May be repeated."""
        if not self._is_started:
            return
        self._is_started = False
        await self.coding.aclose()
        await self.router.aclose()
        await self.service.aclose()

    async def build(self, request: TaskRequest, place: Workplace) -> TaskRecord:
        """Carry out a request in a workplace; return its task when it is over.

        Raises:
            ToolAgentError: The request is refused; no task was created.

        Cancel: Safe; the task is cancelled.
        """
        task = self.router.accept(request)
        self.coding.expect(task.task_id)
        await self.router.dispatch(task.task_id)
        return await self.coding.work(task.task_id, place)
