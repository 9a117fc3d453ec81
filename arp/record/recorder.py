"""`Recorder`: records the facts that ARP cannot observe; `turn.record` is a `Recorder`.

Theory of operation. ARP records what it observes: inputs, text, tools, commits, questions. The
author of an agent records its other activities: tasks, processes, models, costs and so on. Each
call records one fact, immediately and in order with all other facts of the turn. A fact of any type
is `record(type, payload)`. An activity with a beginning and an end is an object; its facts carry
one id.
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
            type_name: Any type except those that the session records itself.
            payload: Fields of that type; `None` means that a field does not apply.
            ids: Correlation ids, by field name of the fact.

        Raises:
            ProfileViolation: The type, an id or a field is wrong or missing; nothing is recorded.
        """
        self._scope(type_name, payload, **ids)

    def within(self, **ids: Json) -> Recorder:
        """Return a recorder that adds these ids to its facts, by field name.

        For example, `turn.record.within(task_id=task.id, run_id=run.run_id)` links its facts to a
        run.
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
            objective: Goal of the task.
            task_id: Id of the task; `None` means a new id.
            depends_on: Ids of tasks that must be completed before.
            detail: Further information.
        """
        return RecordedTask.create(self._scope, objective, task_id, depends_on, detail)

    def known_task(self, task_id: str, attempts: int, run_id: str | None = None) -> RecordedTask:
        """Return a task that was recorded before.

        Args:
            task_id: Id of the task.
            attempts: Number of attempts so far; the next attempt gets the next number.
            run_id: Id of the newest attempt, which may still run.
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
            name: Name for people.
            objective: Goal of the other agent.
            subagent_id: Id of the other agent; `None` means a new id.
        """
        subagent_id = subagent_id or self._scope.new_id("subagent")
        return RecordedSubagent(self._scope, subagent_id, name, objective)

    def job(
        self, name: str | None = None, total: int | None = None, job_id: str | None = None
    ) -> RecordedJob:
        """Record work in the background.

        Args:
            name: Name for people.
            total: Number of items.
            job_id: Id of the job; `None` means a new id.
        """
        return RecordedJob(self._scope, job_id or self._scope.new_id("job"), name, total)

    def process(
        self, command: str | Sequence[str], *, cwd: str | None = None, pid: int | None = None
    ) -> RecordedProcess:
        """Record that a process was started.

        Args:
            command: Program and arguments, or one line for a shell.
            cwd: Working directory of the process.
            pid: Process id of the operating system.
        """
        return RecordedProcess(self._scope, self._outputs.store, command, cwd, pid)

    # -- models ----------------------------------------------------------------------------------

    def model(self, model: str, provider: str | None = None, **asked: Json) -> ModelRequest:
        """Record that a request to a model begins; call this before the request is sent.

        Args:
            model: Name of the model.
            provider: Provider that runs the model.
            asked: Contents of the request: `parameters`, an object; `tools`, a list of names;
                `messages`, the whole conversation.
        """
        return ModelRequest(self._scope, model, provider, asked)

    def route(self, candidates: Sequence[str | Candidate], reason: str = "") -> Candidate | None:
        """Record which models were available, and the result if there is no choice to make.

        If no model is available, `routing.not_possible` is recorded; if exactly one is,
        `routing.single_candidate`, which is no error. If there are several, the caller records its
        choice as `routing.decided`.

        Args:
            candidates: All models that were considered, by name; a `Candidate` with `excluded` is
                not available.
            reason: Reason why no model is available; used only in that case.

        Returns:
            The only available model; `None` if there are none or several.
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
        """Record the tools that a model may call; the fact belongs to no call."""
        none = {"step_id": UNAVAILABLE, "tool_call_id": UNAVAILABLE}
        self._scope("tool.catalog.resolved", {"tools": list(names)}, **none)

    def compaction(
        self, reason: str | None = None, tokens: int | None = None
    ) -> RecordedCompaction:
        """Record that the reduction of a model's context begins; `tokens` is its size before."""
        return RecordedCompaction(self._scope, reason, tokens)

    # -- decisions -------------------------------------------------------------------------------

    def permission(self, tool: str, request_id: str | None = None) -> RecordedPermission:
        """Return an object that records one permission; `await tool.approve(…)` asks a person.

        Args:
            tool: Name of the tool.
            request_id: Id of the permission; `None` means a new id.
        """
        return RecordedPermission(self._scope, tool, request_id)

    def hook(self, name: str, event: str | None = None) -> Hook:
        """Record that a hook runs.

        Args:
            name: Name of the hook.
            event: Event that the hook was called for.
        """
        return Hook(self._scope, name, event)

    # -- outputs and files -----------------------------------------------------------------------

    async def keep(self, data: bytes | str, mime: str | None = None) -> KeptOutput:
        """Store an output, if it is larger than a preview; see `Outputs.keep`."""
        return await self._outputs.keep(data, mime)

    async def read(self, output_ref: str) -> bytes:
        """Return an output that was stored.

        Raises:
            ArpError: The output is not stored, or no longer.
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
            artifact_id: Id that is the same for all versions of the file.
            name: Name for people.
            mime: Media type of the file.
            sha256: SHA-256 of its bytes.
            kept: Result of `keep`, if the bytes are stored beside the ledger.
        """
        if kept is not None:
            check_kind(kept, KeptOutput, "kept")
        ref = kept.output_ref if kept is not None else None
        size = kept.bytes if kept is not None else None
        payload = {"name": name, "mime": mime, "sha256": sha256 or ref, "bytes": size}
        self._scope("artifact.changed", payload, artifact_id=artifact_id, output_ref=ref)
