"""Work that others do: subagents, and jobs whose items are done and tried again one by one."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType

from arp.protocol.errors import SurfaceDestroyed
from arp.protocol.json_value import Json
from arp.record.scope import FactScope
from arp.record.tasks import reason_of


class Subagent:
    """An agent that works for this one; given by `turn.record.subagent()`."""

    __slots__ = ("_scope", "id")

    def __init__(self, scope: FactScope, subagent_id: str) -> None:
        self.id = subagent_id
        self._scope = scope.within(subagent_id=subagent_id)

    def spawned(self, name: str | None = None, objective: str | None = None) -> None:
        """Notes that it is there, and what it is to achieve."""
        self._scope.record("subagent.spawned", {"name": name, "objective": objective})

    def status(self, status: str, message: str | None = None) -> None:
        """Notes how it stands."""
        self._scope.record("subagent.status", {"message": message}, status=status)

    def input(self, text: str) -> None:
        """Notes what it was told."""
        self._scope.record("subagent.input", {"text": text})

    def completed(self, outputs: Sequence[Json] = ()) -> None:
        """Notes that it did what it should."""
        self._scope.record("subagent.completed", {"outputs": list(outputs) or None})

    def failed(self, reason: str) -> None:
        """Notes that it did not."""
        self._scope.record("subagent.failed", {"reason": reason})

    def closed(self, reason: str | None = None) -> None:
        """Notes that it is gone."""
        self._scope.record("subagent.closed", {"reason": reason})


class Job:
    """Work in the background, item by item; given by `turn.record.job()`."""

    __slots__ = ("_attempts", "_scope", "id")

    def __init__(self, scope: FactScope, job_id: str) -> None:
        self.id = job_id
        self._scope = scope.within(job_id=job_id)
        self._attempts: dict[str, int] = {}

    def created(self, name: str | None = None, total: int | None = None) -> None:
        """Notes what it is, and of how many items."""
        self._record("job.created", name=name, total=total)

    def started(self) -> None:
        """Notes that it has begun."""
        self._record("job.started")

    def progress(self, done: int, total: int | None = None, message: str | None = None) -> None:
        """Notes how many items are done."""
        self._record("job.progress", done=done, total=total, message=message)

    def item(self, item_id: str) -> JobItem:
        """Begins an item, or one that failed once more; `with job.item(…):` notes how it ended."""
        attempt = self._attempts[item_id] = self._attempts.get(item_id, 0) + 1
        return JobItem(self._scope.within(job_item_id=item_id), attempt)

    def completed(self, done: int, failed: int | None = None) -> None:
        """Notes that all items were seen to: so many done, so many failed."""
        self._record("job.completed", done=done, failed=failed)

    def failed(self, reason: str) -> None:
        """Notes that it is given up."""
        self._record("job.failed", reason=reason)

    def cancelled(self, reason: str | None = None) -> None:
        """Notes that it stopped because somebody wanted it to."""
        self._record("job.cancelled", reason=reason)

    def _record(self, type_name: str, **payload: Json) -> None:
        self._scope.record(type_name, payload)


class JobItem:
    """One attempt at an item; as a context manager it notes its own end."""

    __slots__ = ("_ended", "_scope", "attempt")

    def __init__(self, scope: FactScope, attempt: int) -> None:
        self.attempt = attempt
        """From 1."""
        self._scope = scope
        self._ended = False
        self._record("job.item.started")

    def completed(self, outputs: Sequence[Json] = ()) -> None:
        """Notes that it is done."""
        self._ended = True
        self._record("job.item.completed", outputs=list(outputs) or None)

    def failed(self, reason: str, *, retryable: bool | None = None) -> None:
        """Notes that it is not; the item alone may be tried again."""
        self._ended = True
        self._record("job.item.failed", reason=reason, retryable=retryable)

    def __enter__(self) -> JobItem:
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
            self.completed()
            return
        with suppress(SurfaceDestroyed):  # the turn is over: what was raised says more
            self.failed(reason_of(error))

    def _record(self, type_name: str, **payload: Json) -> None:
        self._scope.record(type_name, {"attempt": self.attempt, **payload})
