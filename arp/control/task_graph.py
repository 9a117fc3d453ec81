"""Tasks as the facts tell them: one that the read model has let go is read from the log again."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec import Struct

from arp.ledger.fact import Fact, decode
from arp.ledger.models.read_model import ReadModel
from arp.ledger.models.tasks import RULES, Attempt, Task, Tasks
from arp.protocol.errors import InvalidMessage, SessionBusy, UnknownObject
from arp.store.store import Store

READ_FACTS = 1000
"""Facts looked through at once for those of a task."""

JOINING = ("job_id", "job_item_id", "parent_task_id", "root_task_id")
"""Correlations of a task's first fact that all its facts carry."""


class Known(Struct, frozen=True):
    """A task as it was at a moment, and what the facts about it carry."""

    task: Task
    sequence: int
    """The newest fact that was taken into account."""
    ids: dict[str, str]

    @property
    def attempts(self) -> int:
        """How many attempts there were."""
        return self.task.older_attempts + len(self.task.attempts)

    @property
    def running(self) -> Attempt | None:
        """The attempt that runs."""
        run_id = self.task.current_run_id
        return next((one for one in self.task.attempts if one.run_id == run_id), None)

    @property
    def has_failed(self) -> bool:
        """Tell whether the last attempt failed."""
        attempts = self.task.attempts
        return bool(attempts) and attempts[-1].status == "failed"

    def has_run(self, run_id: str | None) -> bool:
        """Tell whether there was an attempt of that id."""
        return any(one.run_id == run_id for one in self.task.attempts)

    def check_idle(self) -> None:
        """Refuse another attempt while one runs.

        Raises:
            SessionBusy: One does.
        """
        task = self.task
        if task.current_run_id is not None:
            raise SessionBusy(f"attempt {task.current_run_id} of task {task.task_id} still runs")


def not_known(task_id: str) -> Known:
    """Give a task of which no fact tells, as an attempt at it may be the first that is heard."""
    task = Task(task_id=task_id, objective="unknown", status="unknown", first_sequence=0)
    return Known(task, 0, {})


async def find(store: Store, model: ReadModel, task_id: str) -> Known | None:
    """Gives a task of a session; `None` if there is none.

    Args:
        store: Holds the facts that `model` was made of.
        model: Of the session.
        task_id: Its id.
    """
    tasks = model.state.tasks
    task, sequence, session_id = tasks.tasks.get(task_id), model.sequence, model.state.session_id
    if task is None and not tasks.tasks.older:
        return None
    if task is not None and not task.partial:
        task = _copied(task)  # the model goes on folding
    else:
        folded = Tasks()
        for fact in await _facts_of(store, session_id, task_id, sequence):
            RULES[fact.type](folded, fact)
        task = folded.tasks.get(task_id)
        if task is None:
            return None
    first = decode((await store.read(session_id, task.first_sequence - 1, 1))[0][1])
    ids = {name: getattr(first, name) for name in JOINING if getattr(first, name)}
    return Known(task, sequence, ids)


def _copied(task: Task) -> Task:
    return msgspec.json.decode(msgspec.json.encode(task), type=Task)


async def _facts_of(store: Store, session_id: str, task_id: str, last: int) -> list[Fact]:
    """Reads the facts of one task up to a sequence."""
    mark, after = task_id.encode(), 0
    facts: list[Fact] = []
    while after < last and (chunk := await store.read(session_id, after, READ_FACTS)):
        found = (decode(body) for number, body in chunk if mark in body and number <= last)
        facts.extend(fact for fact in found if fact.task_id == task_id and fact.type in RULES)
        after = chunk[-1][0]
    return facts


def check_edges(model: ReadModel, task_id: str, before: Iterable[str]) -> None:
    """Refuses edges from tasks that there are not, or that lead back to where they begin.

    Args:
        model: Of the session.
        task_id: The task that is to come after `before`.
        before: Ids of tasks.

    Raises:
        UnknownObject: One of them is not known.
        InvalidMessage: It would come before itself.
    """
    known = model.state.tasks.tasks
    seen: set[str] = set()
    line = list(before)
    for one in line:
        if known.get(one) is None and one != task_id:
            raise UnknownObject(f"no task {one!r:.80} in this session", detail=one)
    while line:
        one = line.pop()
        if one == task_id:
            raise InvalidMessage(f"task {task_id!r:.80} would come before itself", detail=one)
        task = known.get(one)
        if task is not None and one not in seen:
            seen.add(one)
            line += task.edges.depends_on
            line += [task.edges.parent_task_id] if task.edges.parent_task_id else []
