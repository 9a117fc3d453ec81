"""`Recorder`: records the facts that ARP cannot see by itself; `turn.record` is one.

Theory of operation. ARP records what it sees: inputs, text, tools, commits, questions. What an
agent does besides (tasks, processes, models, costs …) its author records. Each call records one
fact, at once and in order with everything else of the turn; what has a beginning and an end is an
object whose facts carry one id.
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
from arp.record.scope import UNAVAILABLE, FactScope
from arp.record.tasks import Task, created


class Recorder:
    """Records facts of one turn, or of a session outside of its turns."""

    __slots__ = ("_scope", "_shelf", "outputs")

    def __init__(self, scope: FactScope, shelf: Shelf) -> None:
        self._scope = scope
        self._shelf = shelf
        self.outputs = Outputs(scope, shelf)
        """Large outputs, and what became of them."""

    def within(self, **ids: Json) -> Recorder:
        """Return a recorder whose facts carry these ids too, by field name.

        `turn.record.within(task_id=task.id, run_id=run.run_id)` joins what is recorded to a run.
        """
        return Recorder(self._scope.within(**ids), self._shelf)

    def __call__(self, type_name: str, payload: dict[str, Json], **ids: Json) -> None:
        """Record a fact: `turn.record("model.requested", {"model": "m"}, model_request_id="r")`.

        Args:
            type_name: Any type but those that the session records itself.
            payload: The fields of that type; `None` stands for what does not apply.
            ids: Correlations, by field name of the fact.

        Raises:
            ProfileViolation: The type, an id or a field is wrong or missing; nothing is recorded.
        """
        self._scope.record(type_name, payload, **ids)

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
        scope = self._scope
        return created(scope, objective, task_id=task_id, depends_on=depends_on, detail=detail)

    def known_task(self, task_id: str, attempts: int, run_id: str | None = None) -> Task:
        """Gives a task that was made before, to go on with it.

        Args:
            task_id: Its id.
            attempts: How many there were so far: the next one gets the number after.
            run_id: Of the attempt that runs, or ran last.
        """
        return Task(self._scope, task_id, attempts, run_id)

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
        made = Subagent(self._scope, subagent_id or self._scope.new_id("subagent"))
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
        made = Job(self._scope, job_id or self._scope.new_id("job"))
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
        made = Process(self._scope, self.outputs, self._shelf.aside, self._scope.new_id("process"))
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
        return ModelRequest(self._scope, model, provider)

    def reasoned(self, summary: str) -> None:
        """Notes in short what a model thought."""
        self._scope.record("reasoning.summary", {"text": summary})

    def tools(self, names: Sequence[str]) -> None:
        """Notes which tools a model may call; that belongs to no call."""
        none = {"step_id": UNAVAILABLE, "tool_call_id": UNAVAILABLE}
        self._scope.record("tool.catalog.resolved", {"tools": list(names)}, **none)

    @property
    def routing(self) -> Routing:
        """Which model is taken."""
        return Routing(self._scope)

    @property
    def limits(self) -> Limits:
        """Costs, rate limits and quotas."""
        return Limits(self._scope)

    @property
    def context(self) -> Context:
        """What a model is given to read."""
        return Context(self._scope)

    @property
    def history(self) -> History:
        """What became of what was said before."""
        return History(self._scope)

    # -- who decides -----------------------------------------------------------------------------

    def permission(self, tool: str, request_id: str | None = None) -> Permission:
        """Begins to look whether a tool may be used; `await tool.approve(…)` asks a person.

        Args:
            tool: Its name.
            request_id: `None` makes one.
        """
        return Permission(self._scope, tool, request_id)

    def sandbox(self, name: str) -> Sandbox:
        """Gives a sandbox, to note what it lets through and what was tried."""
        return Sandbox(self._scope, name)

    def hook(self, name: str, event: str | None = None) -> Hook:
        """Notes that a hook runs; `with turn.record.hook(…):` notes how it ended.

        Args:
            name: Of the hook.
            event: What it was called for.
        """
        return Hook(self._scope, name, event)

    # -- what lasts ------------------------------------------------------------------------------

    @property
    def lasting(self) -> Lasting:
        """Files, exports, read models, policies and warnings."""
        return Lasting(self._scope)

    def channel(self, channel_id: str) -> Channel:
        """Gives a channel, to note what passes on it."""
        return Channel(self._scope, channel_id)

    def benchmark(self, benchmark: Benchmark) -> BenchmarkRun:
        """Gives a benchmark, to note its trials and what came of them."""
        return BenchmarkRun(self._scope, benchmark)
