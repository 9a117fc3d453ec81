"""Activities with several facts: tasks, attempts, jobs, sub-agents, hooks, models, permissions.

Each activity is an object; its facts carry one id. Facts between its beginning and its end are
recorded with `record`: `task.record("task.progress", {"done": 3})`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Literal, Self

from arp.ledger.payload_fields import Authority, AuthorityKind, Delivery, Scope, Verdict
from arp.protocol.errors import ArpError, SurfaceDestroyed
from arp.protocol.json_value import Json, JsonObject
from arp.record.end_cause import EndCause
from arp.record.scope import FactScope


class Entity:
    """An activity with several facts.

    Args:
        scope: Scope that adds the id of the activity.
        family: Prefix of its fact types: `task`, `job.item`.
        fields: Further fields of the payloads of these facts.
    """

    __slots__ = ("_family", "_fields", "_scope")

    def __init__(self, scope: FactScope, family: str, fields: JsonObject | None = None) -> None:
        self._scope = scope
        self._family = family
        self._fields: JsonObject = fields or {}

    def record(
        self, type_name: str, payload: Mapping[str, Json] | None = None, **ids: Json
    ) -> None:
        """Record a fact of any type about the activity; see `Recorder`."""
        self._scope(type_name, payload, **ids)

    def _record(self, what: str, **payload: Json) -> None:
        """Record a fact of the activity's family."""
        self.record(f"{self._family}.{what}", {**self._fields, **payload})


class Work(Entity):
    """An activity that completes or fails.

    As a context manager, it records its end, unless the end was recorded already.
    """

    __slots__ = ("_ended",)

    def __init__(self, scope: FactScope, family: str, fields: JsonObject | None = None) -> None:
        super().__init__(scope, family, fields)
        self._ended = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._ended:
            return
        if error is None:
            self._end("completed")
            return
        with suppress(SurfaceDestroyed):  # the turn has ended; the raised error says more
            self.failed(reason_of(error))

    def failed(self, reason: str) -> None:
        """Record that the activity failed or was abandoned, and why."""
        self._end("failed", reason=reason)

    def _end(self, how: str, **payload: Json) -> None:
        self._ended = True
        self._record(how, **payload)


class RecordedAttempt(Work):
    """One attempt at a task, or at an item of a job: `with task.attempt():`."""

    __slots__ = ("number", "run_id")

    def __init__(
        self, scope: FactScope, family: str, number: int, run_id: str | None = None
    ) -> None:
        super().__init__(scope, family, {"attempt": number})
        self.number = number
        """Number of the attempt, from 1."""
        self.run_id = run_id
        """Id of the run of a task; an item of a job has none."""
        self._record("started")

    def completed(self, outputs: Sequence[Json] = ()) -> None:
        """Record that the attempt succeeded."""
        self._end("completed", outputs=list(outputs) or None)

    def failed(self, reason: str, *, retryable: bool | None = None) -> None:
        """Record that the attempt failed; `retryable` says whether another attempt may succeed."""
        self._end("failed", reason=reason, retryable=retryable)


class RecordedTask(Work):
    """A piece of work, which may outlive the turn and may need several attempts.

    Args:
        scope: Scope of the facts; its ids may include those of parent tasks.
        task_id: Id of the task.
        attempts: Number of attempts so far.
        run_id: Id of the newest attempt, which may still run.
    """

    __slots__ = ("attempts", "id", "run_id")

    def __init__(
        self, scope: FactScope, task_id: str, attempts: int = 0, run_id: str | None = None
    ) -> None:
        super().__init__(scope.within(task_id=task_id), "task")
        self.id = task_id
        self.attempts = attempts
        """Number of attempts so far."""
        self.run_id = run_id
        """Id of the newest attempt, which facts of the task carry; `None` before the first
        attempt."""

    @classmethod
    def create(
        cls,
        scope: FactScope,
        objective: str,
        task_id: str | None = None,
        depends_on: Sequence[str] = (),
        detail: Json = None,
    ) -> Self:
        """Record a new task; see `Recorder.task`."""
        task = cls(scope, task_id or scope.new_id("task"))
        depends = list(depends_on) or None
        task._record("created", objective=objective, dependsOn=depends, detail=detail)
        return task

    def record(
        self, type_name: str, payload: Mapping[str, Json] | None = None, **ids: Json
    ) -> None:
        """Record a fact of any type about the task and its newest attempt."""
        super().record(type_name, payload, **{"run_id": self.run_id, **ids})

    def subtask(self, objective: str, *, depends_on: Sequence[str] = ()) -> RecordedTask:
        """Record a task that is a part of this one.

        Args:
            objective: Goal of the task.
            depends_on: Ids of tasks that must be completed before.
        """
        root = self._scope.ids.get("root_task_id", self.id)
        inner = self._scope.within(parent_task_id=self.id, root_task_id=root)
        return RecordedTask.create(inner, objective, depends_on=depends_on)

    def attempt(self, run_id: str | None = None) -> RecordedAttempt:
        """Begin an attempt.

        Args:
            run_id: Id of the run; `None` means a new id.
        """
        run = run_id or f"{self.id}.{self.attempts + 1}"
        begun = RecordedAttempt(
            self._scope.within(run_id=run), "task.attempt", self.attempts + 1, run
        )
        self.attempts, self.run_id = begun.number, run
        return begun

    def retry(self, reason: str | None = None, run_id: str | None = None) -> RecordedAttempt:
        """Begin another attempt after a failed one.

        Args:
            reason: Reason why it may succeed now.
            run_id: Id of the run, as for `attempt`.
        """
        run = run_id or f"{self.id}.{self.attempts + 1}"
        payload: JsonObject = {"attempt": self.attempts + 1, "reason": reason}
        self.record("task.retrying", payload, run_id=run)
        return self.attempt(run)

    def completed(
        self,
        outputs: Sequence[Json] = (),
        *,
        artifacts: Sequence[str] = (),
        evidence_refs: Sequence[str] = (),
        delivery: Delivery | None = None,
    ) -> None:
        """Record that the task is complete, with its results and their delivery."""
        self._end(
            "completed",
            outputs=list(outputs) or None,
            artifacts=list(artifacts) or None,
            evidenceRefs=list(evidence_refs) or None,
            delivery=delivery,
        )


class RecordedSubagent(Work):
    """An agent that works for this one."""

    __slots__ = ("id",)

    def __init__(
        self, scope: FactScope, subagent_id: str, name: str | None, objective: str | None
    ) -> None:
        super().__init__(scope.within(subagent_id=subagent_id), "subagent")
        self.id = subagent_id
        self._record("spawned", name=name, objective=objective)

    def completed(self, outputs: Sequence[Json] = ()) -> None:
        """Record that the agent has reached its goal."""
        self._end("completed", outputs=list(outputs) or None)


class RecordedJob(Entity):
    """Work in the background, item by item."""

    __slots__ = ("_attempts", "id")

    def __init__(self, scope: FactScope, job_id: str, name: str | None, total: int | None) -> None:
        super().__init__(scope.within(job_id=job_id), "job")
        self.id = job_id
        self._attempts: dict[str, int] = {}
        self._record("created", name=name, total=total)

    def item(self, item_id: str) -> RecordedAttempt:
        """Begin an item, or repeat a failed one: `with job.item("a"):`."""
        number = self._attempts[item_id] = self._attempts.get(item_id, 0) + 1
        return RecordedAttempt(self._scope.within(job_item_id=item_id), "job.item", number)

    def completed(self, done: int, failed: int | None = None) -> None:
        """Record that no item is left, with the numbers of completed and failed items."""
        self._record("completed", done=done, failed=failed)

    def failed(self, reason: str) -> None:
        """Record that the job was abandoned."""
        self._record("failed", reason=reason)


class Hook(Work):
    """A hook that runs."""

    __slots__ = ()

    def __init__(self, scope: FactScope, name: str, event: str | None) -> None:
        super().__init__(scope.within(request_id=scope.new_id("hook")), "hook", {"hook": name})
        self._record("started", event=event)

    def completed(self, decision: Verdict | None = None, duration_ms: float | None = None) -> None:
        """Record that the hook has run, with its decision if it made one."""
        self._end("completed", decision=decision, durationMs=duration_ms)

    def failed(self, reason: str, duration_ms: float | None = None) -> None:
        """Record that the hook did not complete."""
        self._end("failed", reason=reason, durationMs=duration_ms)


class RecordedCompaction(Work):
    """A reduction of a model's context."""

    __slots__ = ("_tokens",)

    def __init__(self, scope: FactScope, reason: str | None, tokens: int | None) -> None:
        inner = scope.within(request_id=scope.new_id("compaction"))
        super().__init__(inner, "context.compaction")
        self._tokens = tokens
        self._record("started", reason=reason, tokensBefore=tokens)

    def completed(
        self,
        tokens_after: int | None = None,
        summary: str | None = None,
        through_sequence: int | None = None,
    ) -> None:
        """Record the size of the context after the reduction.

        Args:
            tokens_after: New size of the context in tokens.
            summary: Text that replaces the removed part.
            through_sequence: Sequence number of the last fact that the summary covers.
        """
        self._end(
            "completed",
            tokensBefore=self._tokens,
            tokensAfter=tokens_after,
            summary=summary,
            throughSequence=through_sequence,
        )


class ModelRequest(Work):
    """One request to a model."""

    __slots__ = ("id",)

    def __init__(
        self, scope: FactScope, model: str, provider: str | None, details: JsonObject
    ) -> None:
        self.id = scope.new_id("model")
        super().__init__(scope.within(model_request_id=self.id), "model", {"model": model})
        self._record("requested", provider=provider, **details)

    def completed(self, usage: JsonObject | None = None, finish_reason: str | None = None) -> None:
        """Record the end of the answer; `usage` is in the provider's own format."""
        self._end("completed", usage=usage, finishReason=finish_reason)

    def failed(self, error: str, *, retryable: bool | None = None) -> None:
        """Record that there is no answer or only a part of one; `error` is a text for people."""
        self._end("failed", error=error, retryable=retryable)

    def cost(
        self,
        *,
        input_tokens: int | None = None,
        output_tokens: int | None = None,
        cached_input_tokens: int | None = None,
        amount: float | None = None,
        currency: str | None = None,
    ) -> None:
        """Record the usage and the cost of the request.

        Args:
            input_tokens: Tokens that the model read; `None` if unknown.
            output_tokens: Tokens that it wrote; `None` if unknown.
            cached_input_tokens: Part of the input tokens that came from a cache.
            amount: Cost; `None` if the price is unknown.
            currency: Currency in ISO 4217; required if and only if there is an amount.

        Raises:
            ProfileViolation: An amount without a currency, or a currency without an amount.
        """
        self.record(
            "cost.recorded",
            {
                **self._fields,
                "inputTokens": input_tokens,
                "outputTokens": output_tokens,
                "cachedInputTokens": cached_input_tokens,
                "amount": amount,
                "currency": currency,
            },
        )


class RecordedPermission(Entity):
    """Permission for one tool call: the decisions of rules and people."""

    __slots__ = ("request_id",)

    def __init__(self, scope: FactScope, tool: str, request_id: str | None) -> None:
        super().__init__(scope, "permission", {"tool": tool})
        self.request_id = request_id
        """Id that links its facts; created with the first of them."""

    def evaluated(
        self,
        decision: Verdict,
        kind: AuthorityKind,
        name: str,
        *,
        scope: Scope | None = None,
        digest: str | None = None,
    ) -> None:
        """Record the decision of a rule, mode, hook or host policy: `allow`, `deny` or `ask`.

        Args:
            decision: The decision.
            kind: Kind of the authority that decided.
            name: Name of the authority.
            scope: Scope of a person's approval that allows the call without asking again.
            digest: Digest of the input.
        """
        by = Authority(kind, name)
        self._record("evaluated", decision=decision, decidedBy=by, scope=scope, digest=digest)

    def requested(self, reason: str | None = None, **asked: Json) -> None:
        """Record that a person is asked; `asked` has further fields of the fact."""
        self._record("requested", reason=reason, **asked)

    def allowed(
        self,
        *,
        scope: Scope | None = None,
        digest: str | None = None,
        edited: bool = False,
        files: list[JsonObject] | None = None,
    ) -> None:
        """Record that the permission was given.

        Args:
            scope: Scope of the approval.
            digest: Digest of the approved input.
            edited: Whether the person changed the input before approving it.
            files: Files that the input names, if they differ from those that were shown.
        """
        more = {"edited": True} if edited else {}
        self._record("resolved", decision="allow", scope=scope, digest=digest, files=files, **more)

    def refused(
        self, policy: str, reason: str, *, digest: str, files: list[JsonObject] | None
    ) -> None:
        """Record that a person gave the permission, but a policy of the host refused it.

        Args:
            policy: Name of the policy.
            reason: Reason of the refusal.
            digest: Digest of the approved input.
            files: Files that the input names, in their current state.
        """
        by = Authority("hostPolicy", policy)
        details = {"digest": digest, "reason": reason, "files": files}
        self._record("resolved", decision="deny", deniedBy=by, **details)

    def denied(
        self,
        kind: AuthorityKind,
        name: str,
        *,
        digest: str | None = None,
        reason: str | None = None,
    ) -> None:
        """Record a denial by a rule, mode, hook, host policy or person.

        Args:
            kind: Kind of the authority that denied it.
            name: Name of the authority.
            digest: Digest of the input that was shown.
            reason: Reason of the denial.
        """
        by = Authority(kind, name)
        self._record("resolved", decision="deny", deniedBy=by, digest=digest, reason=reason)

    def unanswered(
        self, decision: Literal["cancelled", "expired"], *, digest: str | None = None
    ) -> None:
        """Record that there was no answer, which does not allow the call."""
        self._record("resolved", decision=decision, digest=digest)

    def record(
        self, type_name: str, payload: Mapping[str, Json] | None = None, **ids: Json
    ) -> None:
        """Record a fact of any type about the permission."""
        if self.request_id is None:
            self.request_id = self._scope.new_id("permission")
        super().record(type_name, payload, **{"request_id": self.request_id, **ids})


def reason_of(error: BaseException) -> str:
    """Return the text about an error that may be recorded.

    The text of an unknown exception may have secrets, so only its class is recorded.
    """
    if isinstance(error, ArpError):
        return error.message
    name = type(error).__name__
    return str(EndCause.of(error) or "cancelled") if name == "CancelledError" else name
