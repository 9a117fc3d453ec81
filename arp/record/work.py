"""What several facts are about: tasks, attempts, jobs, subagents, hooks, models, permissions.

Each is an object whose facts carry one id. What happens in between is recorded with `record`:
`task.record("task.progress", {"done": 3})`.
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
    """Something that several facts are about.

    Args:
        scope: With its id.
        family: What the types of its facts begin with: `task`, `job.item`.
        fields: What the payloads of these facts hold besides.
    """

    __slots__ = ("_family", "_fields", "_scope")

    def __init__(self, scope: FactScope, family: str, fields: JsonObject | None = None) -> None:
        self._scope = scope
        self._family = family
        self._fields: JsonObject = fields or {}

    def record(
        self, type_name: str, payload: Mapping[str, Json] | None = None, **ids: Json
    ) -> None:
        """Record a fact of any type about it; see `Recorder`."""
        self._scope(type_name, payload, **ids)

    def _record(self, what: str, **payload: Json) -> None:
        """Record a fact of its family."""
        self.record(f"{self._family}.{what}", {**self._fields, **payload})


class Work(Entity):
    """Something that ends well or fails; `with` records which, unless that was recorded already."""

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
        with suppress(SurfaceDestroyed):  # the turn is over: what was raised says more
            self.failed(reason_of(error))

    def failed(self, reason: str) -> None:
        """Record that it failed or is given up, and why."""
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
        """From 1."""
        self.run_id = run_id
        """Of a task; an item of a job has none of its own."""
        self._record("started")

    def completed(self, outputs: Sequence[Json] = ()) -> None:
        """Record that it did what it should."""
        self._end("completed", outputs=list(outputs) or None)

    def failed(self, reason: str, *, retryable: bool | None = None) -> None:
        """Record that it did not; it alone may be tried again."""
        self._end("failed", reason=reason, retryable=retryable)


class RecordedTask(Work):
    """A piece of work, which may outlive the turn. Each try is an attempt of the same task.

    Args:
        scope: Its ids may name the tasks above.
        task_id: Its id.
        attempts: How many there were so far.
        run_id: Of the attempt that runs, or ran last.
    """

    __slots__ = ("attempts", "id", "run_id")

    def __init__(
        self, scope: FactScope, task_id: str, attempts: int = 0, run_id: str | None = None
    ) -> None:
        super().__init__(scope.within(task_id=task_id), "task")
        self.id = task_id
        self.attempts = attempts
        """How many there were so far."""
        self.run_id = run_id
        """Of the attempt that runs, or ran last; facts of the task carry it. `None`: there was
        none."""

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
        """Record a fact of any type about it, and about the attempt that runs."""
        super().record(type_name, payload, **{"run_id": self.run_id, **ids})

    def subtask(self, objective: str, *, depends_on: Sequence[str] = ()) -> RecordedTask:
        """Record a task that is a part of this one.

        Args:
            objective: What it is to achieve.
            depends_on: Ids of tasks that must be completed before.
        """
        root = self._scope.ids.get("root_task_id", self.id)
        inner = self._scope.within(parent_task_id=self.id, root_task_id=root)
        return RecordedTask.create(inner, objective, depends_on=depends_on)

    def attempt(self, run_id: str | None = None) -> RecordedAttempt:
        """Begin an attempt.

        Args:
            run_id: Of the run; `None` makes one.
        """
        run = run_id or f"{self.id}.{self.attempts + 1}"
        begun = RecordedAttempt(
            self._scope.within(run_id=run), "task.attempt", self.attempts + 1, run
        )
        self.attempts, self.run_id = begun.number, run
        return begun

    def retry(self, reason: str | None = None, run_id: str | None = None) -> RecordedAttempt:
        """Begin another attempt after one that failed.

        Args:
            reason: Why it may go better.
            run_id: As for `attempt`.
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
        """Record that it is done, what came of it, and whether that was delivered."""
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
        """Record that it did what it should."""
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
        """Begin an item, or one that failed once more: `with job.item("a"):`."""
        number = self._attempts[item_id] = self._attempts.get(item_id, 0) + 1
        return RecordedAttempt(self._scope.within(job_item_id=item_id), "job.item", number)

    def completed(self, done: int, failed: int | None = None) -> None:
        """Record that no item is left: so many are done, so many failed."""
        self._record("completed", done=done, failed=failed)

    def failed(self, reason: str) -> None:
        """Record that it is given up."""
        self._record("failed", reason=reason)


class Hook(Work):
    """A hook that runs."""

    __slots__ = ()

    def __init__(self, scope: FactScope, name: str, event: str | None) -> None:
        super().__init__(scope.within(request_id=scope.new_id("hook")), "hook", {"hook": name})
        self._record("started", event=event)

    def completed(self, decision: Verdict | None = None, duration_ms: float | None = None) -> None:
        """Record that it ran, and what it decided if that was asked of it."""
        self._end("completed", decision=decision, durationMs=duration_ms)

    def failed(self, reason: str, duration_ms: float | None = None) -> None:
        """Record that it did not run to its end."""
        self._end("failed", reason=reason, durationMs=duration_ms)


class RecordedCompaction(Work):
    """A model's context that is made smaller."""

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
        """Record how small the context is now.

        Args:
            tokens_after: Its size.
            summary: Replaces what was left out.
            through_sequence: The last fact that the summary covers.
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
        """Record that the model is done; `usage` in its own words."""
        self._end("completed", usage=usage, finishReason=finish_reason)

    def failed(self, error: str, *, retryable: bool | None = None) -> None:
        """Record that there is no answer, or only a part of one; `error` is for people."""
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
        """Record what the request used up.

        Args:
            input_tokens: What the model read; `None` where it is not known.
            output_tokens: What it wrote; `None` where it is not known.
            cached_input_tokens: Of the input tokens, those that came from a cache.
            amount: Money; `None` where the price is not known.
            currency: ISO 4217; given exactly if there is an amount.

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
    """One use of a tool that needs a permission: what rules and people say."""

    __slots__ = ("request_id",)

    def __init__(self, scope: FactScope, tool: str, request_id: str | None) -> None:
        super().__init__(scope, "permission", {"tool": tool})
        self.request_id = request_id
        """Joins its facts; made with the first of them."""

    def evaluated(
        self,
        decision: Verdict,
        kind: AuthorityKind,
        name: str,
        *,
        scope: Scope | None = None,
        digest: str | None = None,
    ) -> None:
        """Record what a rule, mode, hook or host policy says: `allow`, `deny` or `ask`.

        Args:
            decision: What it says.
            kind: What says so.
            name: Its name.
            scope: How far a person's approval goes that allows it without asking again.
            digest: Of the input that it is about.
        """
        by = Authority(kind, name)
        self._record("evaluated", decision=decision, decidedBy=by, scope=scope, digest=digest)

    def requested(self, reason: str | None = None, **asked: Json) -> None:
        """Record that a person is asked; `asked` are further fields of the fact."""
        self._record("requested", reason=reason, **asked)

    def allowed(
        self,
        *,
        scope: Scope | None = None,
        digest: str | None = None,
        edited: bool = False,
        files: list[JsonObject] | None = None,
    ) -> None:
        """Record that it was given.

        Args:
            scope: How far it goes.
            digest: Of the input that was approved.
            edited: It is another input than the one that was shown.
            files: That it names, where they are not those that were shown.
        """
        more = {"edited": True} if edited else {}
        self._record("resolved", decision="allow", scope=scope, digest=digest, files=files, **more)

    def refused(
        self, policy: str, reason: str, *, digest: str, files: list[JsonObject] | None
    ) -> None:
        """Record that a person gave it, and that a policy of the host did not let it count.

        Args:
            policy: Its name.
            reason: Why.
            digest: Of the input that was approved.
            files: That it names, as they are now.
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
        """Record that it was not, and which rule, mode, hook, host policy or person denied it.

        Args:
            kind: What denied it.
            name: Its name.
            digest: Of the input that was shown.
            reason: Why.
        """
        by = Authority(kind, name)
        self._record("resolved", decision="deny", deniedBy=by, digest=digest, reason=reason)

    def unanswered(
        self, decision: Literal["cancelled", "expired"], *, digest: str | None = None
    ) -> None:
        """Record that there was no answer, which is no approval."""
        self._record("resolved", decision=decision, digest=digest)

    def record(
        self, type_name: str, payload: Mapping[str, Json] | None = None, **ids: Json
    ) -> None:
        """Record a fact of any type about it."""
        if self.request_id is None:
            self.request_id = self._scope.new_id("permission")
        super().record(type_name, payload, **{"request_id": self.request_id, **ids})


def reason_of(error: BaseException) -> str:
    """Return what may be recorded of an error: of a stranger's only its kind, never its text."""
    if isinstance(error, ArpError):
        return error.message
    name = type(error).__name__
    return str(EndCause.of(error) or "cancelled") if name == "CancelledError" else name
