"""`Runtime`: facts that ARP does not make by itself, in the hand of an author or of the server.

Theory of operation. ARP notes what it sees: inputs, text, tools, commits, questions. What an agent
does besides (tasks, processes, models, costs …) it must say. Each function notes one fact, at once
and in order with everything else of the turn; what has a beginning and an end is an object whose
facts carry one id.
"""

from __future__ import annotations

from collections.abc import Sequence

from arp.ledger.payload_fields import Benchmark
from arp.protocol.json_value import Json
from arp.record.benchmarks import BenchmarkRun
from arp.record.channels import Channel
from arp.record.delegation import Job, Subagent
from arp.record.history import Context, History
from arp.record.lasting import Lasting
from arp.record.limits import Limits
from arp.record.models import ModelRequest, Routing
from arp.record.outputs import Kept, Outputs, Shelf
from arp.record.permissions import Hook, Permission, Sandbox
from arp.record.processes import Process
from arp.record.recorder import UNAVAILABLE, Recorder
from arp.record.tasks import Task, created


class Runtime:
    """Everything that may be noted of a turn, or of a session outside of its turns."""

    __slots__ = ("_recorder", "_shelf", "outputs")

    def __init__(self, recorder: Recorder, shelf: Shelf) -> None:
        self._recorder = recorder
        self._shelf = shelf
        self.outputs = Outputs(recorder, shelf)
        """Large outputs, and what became of them."""

    def within(self, **ids: Json) -> Runtime:
        """Gives a runtime whose facts carry these ids too, by field name.

        `turn.runtime.within(task_id=task.id, run_id=run.run_id)` joins what is noted to a run.
        """
        return Runtime(self._recorder.within(**ids), self._shelf)

    def record(self, type_name: str, payload: dict[str, Json], **ids: Json) -> None:
        """Records a fact of any type that the session does not record itself.

        Raises:
            ProfileViolation: The type, an id or a field is wrong or missing; nothing is recorded.
        """
        self._recorder.record(type_name, payload, **ids)

    # -- work ------------------------------------------------------------------------------------

    def task(
        self,
        objective: str,
        *,
        task_id: str | None = None,
        depends_on: Sequence[str] = (),
        detail: Json = None,
    ) -> Task:
        """Makes a task, which may outlive the turn.

        Args:
            objective: What it is to achieve.
            task_id: `None` makes one.
            depends_on: Ids of tasks that must be completed before.
            detail: What else is known.
        """
        recorder = self._recorder
        return created(recorder, objective, task_id=task_id, depends_on=depends_on, detail=detail)

    def known_task(self, task_id: str, attempts: int, run_id: str | None = None) -> Task:
        """Gives a task that was made before, to go on with it.

        Args:
            task_id: Its id.
            attempts: How many there were so far: the next one gets the number after.
            run_id: Of the attempt that runs, or ran last.
        """
        return Task(self._recorder, task_id, attempts, run_id)

    def subagent(
        self,
        name: str | None = None,
        objective: str | None = None,
        subagent_id: str | None = None,
    ) -> Subagent:
        """Notes that another agent works for this one.

        Args:
            name: For people.
            objective: What it is to achieve.
            subagent_id: `None` makes one.
        """
        made = Subagent(self._recorder, subagent_id or self._recorder.new_id("subagent"))
        made.spawned(name, objective)
        return made

    def job(
        self, name: str | None = None, total: int | None = None, job_id: str | None = None
    ) -> Job:
        """Notes work in the background.

        Args:
            name: For people.
            total: How many items it has.
            job_id: `None` makes one.
        """
        made = Job(self._recorder, job_id or self._recorder.new_id("job"))
        made.created(name, total)
        return made

    def process(
        self, command: str | Sequence[str], *, cwd: str | None = None, pid: int | None = None
    ) -> Process:
        """Notes that a process was started.

        Args:
            command: Program and arguments, or one line for a shell.
            cwd: Its working directory.
            pid: The number that the system gave it.
        """
        made = Process(
            self._recorder, self.outputs, self._shelf.aside, self._recorder.new_id("process")
        )
        made.started(command, cwd, pid)
        return made

    async def keep(self, data: bytes | str, mime: str | None = None) -> Kept:
        """Keeps an output whole, if it is more than a preview; see `Outputs.keep`."""
        return await self.outputs.keep(data, mime)

    async def read(self, output_ref: str) -> bytes:
        """Gives an output whole that was kept; see `Outputs.read`."""
        return await self.outputs.read(output_ref)

    # -- models ----------------------------------------------------------------------------------

    def model(self, model: str, provider: str | None = None) -> ModelRequest:
        """Notes that a model is asked; `completed` or `failed` ends the request."""
        return ModelRequest(self._recorder, model, provider)

    def reasoned(self, summary: str) -> None:
        """Notes in short what a model thought."""
        self._recorder.record("reasoning.summary", {"text": summary})

    def tools(self, names: Sequence[str]) -> None:
        """Notes which tools a model may call; that belongs to no call."""
        none = {"step_id": UNAVAILABLE, "tool_call_id": UNAVAILABLE}
        self._recorder.record("tool.catalog.resolved", {"tools": list(names)}, **none)

    @property
    def routing(self) -> Routing:
        """Which model is taken."""
        return Routing(self._recorder)

    @property
    def limits(self) -> Limits:
        """Costs, rate limits and quotas."""
        return Limits(self._recorder)

    @property
    def context(self) -> Context:
        """What a model is given to read."""
        return Context(self._recorder)

    @property
    def history(self) -> History:
        """What became of what was said before."""
        return History(self._recorder)

    # -- who decides -----------------------------------------------------------------------------

    def permission(self, tool: str, request_id: str | None = None) -> Permission:
        """Begins to look whether a tool may be used; `await tool.approve(…)` asks a person.

        Args:
            tool: Its name.
            request_id: `None` makes one.
        """
        return Permission(self._recorder, tool, request_id)

    def sandbox(self, name: str) -> Sandbox:
        """Gives a sandbox, to note what it lets through and what was tried."""
        return Sandbox(self._recorder, name)

    def hook(self, name: str, event: str | None = None) -> Hook:
        """Notes that a hook runs; `with turn.runtime.hook(…):` notes how it ended.

        Args:
            name: Of the hook.
            event: What it was called for.
        """
        return Hook(self._recorder, name, event)

    # -- what lasts ------------------------------------------------------------------------------

    @property
    def lasting(self) -> Lasting:
        """Files, exports, read models, policies and warnings."""
        return Lasting(self._recorder)

    def channel(self, channel_id: str) -> Channel:
        """Gives a channel, to note what passes on it."""
        return Channel(self._recorder, channel_id)

    def benchmark(self, benchmark: Benchmark) -> BenchmarkRun:
        """Gives a benchmark, to note its trials and what came of them."""
        return BenchmarkRun(self._recorder, benchmark)
