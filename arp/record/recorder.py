"""`Recorder`: records the facts that ARP cannot see by itself; `turn.record` is one.

Theory of operation. ARP records what it sees: inputs, text, tools, commits, questions. What an
agent does besides (tasks, processes, models, costs …) its author records. Each call records one
fact, at once and in order with everything else of the turn. One fact of any type is
`record(type, payload)`; what has a beginning and an end is an object whose facts carry one id.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from arp.ledger.payload_fields import Candidate
from arp.protocol.json_value import Json
from arp.record.outputs import KeptOutput, Outputs, OutputStore
from arp.record.processes import RecordedProcess
from arp.record.scope import UNAVAILABLE, FactScope
from arp.record.wording import check_kind
from arp.record.work import (
    Hook,
    ModelRequest,
    RecordedCompaction,
    RecordedJob,
    RecordedPermission,
    RecordedSubagent,
    RecordedTask,
)


class Recorder:
    """Records facts of one turn, or of a session outside of its turns."""

    __slots__ = ("_outputs", "_scope")

    def __init__(self, scope: FactScope, store: OutputStore) -> None:
        self._scope = scope
        self._outputs = Outputs(scope, store)

    def __call__(
        self, type_name: str, payload: Mapping[str, Json] | None = None, **ids: Json
    ) -> None:
        """Record a fact: `turn.record("rate_limit.hit", {"limit": "requests per minute"})`.

        Args:
            type_name: Any type but those that the session records itself.
            payload: The fields of that type; `None` stands for what does not apply.
            ids: Correlations, by field name of the fact.

        Raises:
            ProfileViolation: The type, an id or a field is wrong or missing; nothing is recorded.
        """
        self._scope(type_name, payload, **ids)

    def within(self, **ids: Json) -> Recorder:
        """Return a recorder whose facts carry these ids too, by field name.

        `turn.record.within(task_id=task.id, run_id=run.run_id)` joins what is recorded to a run.
        """
        return Recorder(self._scope.within(**ids), self._outputs.store)

    # -- work ------------------------------------------------------------------------------------

    def task(
        self,
        objective: str,
        *,
        task_id: str | None = None,
        depends_on: Sequence[str] = (),
        detail: Json = None,
    ) -> RecordedTask:
        """Record a new task, which may outlive the turn.

        Args:
            objective: What it is to achieve.
            task_id: `None` makes one.
            depends_on: Ids of tasks that must be completed before.
            detail: What else is known.
        """
        return RecordedTask.create(self._scope, objective, task_id, depends_on, detail)

    def known_task(self, task_id: str, attempts: int, run_id: str | None = None) -> RecordedTask:
        """Return a task that was recorded before.

        Args:
            task_id: Its id.
            attempts: How many there were so far: the next one gets the number after.
            run_id: Of the attempt that runs, or ran last.
        """
        return RecordedTask(self._scope, task_id, attempts, run_id)

    def subagent(
        self,
        name: str | None = None,
        objective: str | None = None,
        subagent_id: str | None = None,
    ) -> RecordedSubagent:
        """Record that another agent works for this one.

        Args:
            name: For people.
            objective: What it is to achieve.
            subagent_id: `None` makes one.
        """
        subagent_id = subagent_id or self._scope.new_id("subagent")
        return RecordedSubagent(self._scope, subagent_id, name, objective)

    def job(
        self, name: str | None = None, total: int | None = None, job_id: str | None = None
    ) -> RecordedJob:
        """Record work in the background.

        Args:
            name: For people.
            total: How many items it has.
            job_id: `None` makes one.
        """
        return RecordedJob(self._scope, job_id or self._scope.new_id("job"), name, total)

    def process(
        self, command: str | Sequence[str], *, cwd: str | None = None, pid: int | None = None
    ) -> RecordedProcess:
        """Record that a process was started.

        Args:
            command: Program and arguments, or one line for a shell.
            cwd: Its working directory.
            pid: The number that the system gave it.
        """
        return RecordedProcess(self._scope, self._outputs.store, command, cwd, pid)

    # -- models ----------------------------------------------------------------------------------

    def model(self, model: str, provider: str | None = None, **asked: Json) -> ModelRequest:
        """Record that a request to a model begins: call it before the request is sent.

        Args:
            model: Its name.
            provider: Who runs it.
            asked: What the request asks for: `parameters`, an object; `tools`, a list of names;
                and `messages`, which are the whole conversation.
        """
        return ModelRequest(self._scope, model, provider, asked)

    def route(self, candidates: Sequence[str | Candidate], reason: str = "") -> Candidate | None:
        """Record which models could be taken, and what follows where there is nothing to decide.

        None that can be taken is `routing.not_possible`, exactly one `routing.single_candidate`,
        which is no error. Which of several is taken you record as `routing.decided`.

        Args:
            candidates: All that were looked at, by name; a `Candidate` with `excluded` cannot be
                taken.
            reason: Why none can be taken, if none can.

        Returns:
            The only one that can be taken, if that is so.
        """
        all_of_them = [Candidate(one) if isinstance(one, str) else one for one in candidates]
        self._scope("routing.candidates.resolved", {"candidates": all_of_them})
        free = [one for one in all_of_them if one.excluded is None]
        if not free:
            why = reason or "no candidate can be taken"
            self._scope("routing.not_possible", {"reason": why, "candidates": all_of_them})
        if len(free) != 1:
            return None
        payload = {"model": free[0].model, "provider": free[0].provider}
        self._scope("routing.single_candidate", payload)
        return free[0]

    def tools(self, names: Sequence[str]) -> None:
        """Record which tools a model may call; that belongs to no call."""
        none = {"step_id": UNAVAILABLE, "tool_call_id": UNAVAILABLE}
        self._scope("tool.catalog.resolved", {"tools": list(names)}, **none)

    def compaction(
        self, reason: str | None = None, tokens: int | None = None
    ) -> RecordedCompaction:
        """Record that a model's context is made smaller; `tokens` is its size before."""
        return RecordedCompaction(self._scope, reason, tokens)

    # -- who decides -----------------------------------------------------------------------------

    def permission(self, tool: str, request_id: str | None = None) -> RecordedPermission:
        """Return what records whether a tool may be used; `await tool.approve(…)` asks a person.

        Args:
            tool: Its name.
            request_id: `None` makes one.
        """
        return RecordedPermission(self._scope, tool, request_id)

    def hook(self, name: str, event: str | None = None) -> Hook:
        """Record that a hook runs.

        Args:
            name: Of the hook.
            event: What it was called for.
        """
        return Hook(self._scope, name, event)

    # -- what lasts ------------------------------------------------------------------------------

    async def keep(self, data: bytes | str, mime: str | None = None) -> KeptOutput:
        """Keep an output whole, if it is more than a preview; see `Outputs.keep`."""
        return await self._outputs.keep(data, mime)

    async def read(self, output_ref: str) -> bytes:
        """Return an output that was stored.

        Raises:
            ArpError: There is no such output (any more).
        """
        return await self._outputs.store.read(output_ref)

    def file(
        self,
        artifact_id: str,
        name: str,
        *,
        mime: str | None = None,
        sha256: str | None = None,
        kept: KeptOutput | None = None,
    ) -> None:
        """Record that a file is new or was changed.

        Args:
            artifact_id: The same for all versions of the file.
            name: For people.
            mime: Its media type.
            sha256: Of its bytes.
            kept: As `keep` returned it, where the bytes lie beside the ledger.
        """
        if kept is not None:
            check_kind(kept, KeptOutput, "kept")
        ref = kept.output_ref if kept is not None else None
        size = kept.bytes if kept is not None else None
        payload = {"name": name, "mime": mime, "sha256": sha256 or ref, "bytes": size}
        self._scope("artifact.changed", payload, artifact_id=artifact_id, output_ref=ref)
