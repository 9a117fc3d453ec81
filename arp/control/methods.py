"""Every method of the control plane by its name: what it takes, and what does it.

A room's new methods are a module with a table like those below, and its name in `TABLES`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Struct

from arp.control import benchmark_requests as b
from arp.control import export_requests as e
from arp.control import sessions as s
from arp.control import task_requests as t
from arp.control import turns as turn_requests
from arp.control.actions import Actions, Respond
from arp.control.asked import Asked
from arp.control.benchmarks import Benchmarks
from arp.control.desk import Desk
from arp.control.exports import Exports
from arp.control.refusals import UnknownMethod
from arp.control.sessions import Sessions
from arp.control.tasks import TaskDesk
from arp.control.turns import Turns
from arp.protocol.errors import InvalidMessage
from arp.protocol.json_value import Json, JsonObject
from arp.protocol.refusal import explain

P = TypeVar("P", bound=Asked)


class Method(Struct, Generic[P], frozen=True):
    """A method that a client may call."""

    name: str
    params: type[P]
    run: Callable[[Desk, P], Awaitable[Any]]
    """Gives what msgspec can write as JSON; raises `ArpError` for what it refuses."""


SESSIONS: tuple[Method[Any], ...] = (
    Method("agentSession/list", s.ListSessions, lambda desk, asked: Sessions(desk).page(asked)),
    Method("agentSession/read", s.ReadSession, lambda desk, asked: Sessions(desk).read(asked)),
    Method("agentSession/events", s.ReadEvents, lambda desk, asked: Sessions(desk).events(asked)),
    Method(
        "agentSession/thread/start",
        s.StartThread,
        lambda desk, asked: Sessions(desk).start_thread(asked),
    ),
    Method(
        "agentSession/thread/resume",
        s.ResumeThread,
        lambda desk, asked: Sessions(desk).resume(asked),
    ),
    Method(
        "agentSession/turn/start",
        turn_requests.StartTurn,
        lambda desk, asked: Turns(desk).start(asked),
    ),
    Method(
        "agentSession/turn/cancel",
        turn_requests.CancelTurn,
        lambda desk, asked: Turns(desk).cancel(asked),
    ),
    Method(
        "agentSession/queue/remove",
        turn_requests.QueuedTurn,
        lambda desk, asked: Turns(desk).remove(asked),
    ),
    Method(
        "agentSession/queue/promote",
        turn_requests.QueuedTurn,
        lambda desk, asked: Turns(desk).promote(asked),
    ),
    Method(
        "agentSession/action/respond", Respond, lambda desk, asked: Actions(desk).respond(asked)
    ),
)

TASKS: tuple[Method[Any], ...] = (
    Method("task/create", t.CreateTask, lambda desk, asked: TaskDesk(desk).create(asked)),
    Method("task/update", t.UpdateTask, lambda desk, asked: TaskDesk(desk).update(asked)),
    Method("task/retry", t.RetryTask, lambda desk, asked: TaskDesk(desk).retry(asked)),
    Method("task/complete", t.CompleteTask, lambda desk, asked: TaskDesk(desk).complete(asked)),
    Method("task/cancel", t.CancelTask, lambda desk, asked: TaskDesk(desk).cancel(asked)),
    Method("task/get", t.OfTask, lambda desk, asked: TaskDesk(desk).get(asked)),
    Method("task/list", t.ListTasks, lambda desk, asked: TaskDesk(desk).page(asked)),
    Method("task/link", t.LinkTask, lambda desk, asked: TaskDesk(desk).link(asked)),
)

EXPORTS: tuple[Method[Any], ...] = (
    Method("evidence/export", e.ExportEvidence, lambda desk, asked: Exports(desk).evidence(asked)),
    Method("replay/export", e.ExportReplay, lambda desk, asked: Exports(desk).replay(asked)),
    Method("review/export", e.ExportReview, lambda desk, asked: Exports(desk).review(asked)),
)


BENCHMARKS: tuple[Method[Any], ...] = (
    Method(
        "benchmark/trial/start", b.StartTrial, lambda desk, asked: Benchmarks(desk).start(asked)
    ),
    Method(
        "benchmark/reward/record",
        b.RecordReward,
        lambda desk, asked: Benchmarks(desk).reward(asked),
    ),
    Method(
        "benchmark/trial/export",
        b.ExportTrial,
        lambda desk, asked: Benchmarks(desk).export(asked),
    ),
    Method(
        "benchmark/compare", b.CompareTrials, lambda desk, asked: Benchmarks(desk).compare(asked)
    ),
)

TABLES: tuple[Iterable[Method[Any]], ...] = (SESSIONS, TASKS, EXPORTS, BENCHMARKS)

METHODS: dict[str, Method[Any]] = {method.name: method for table in TABLES for method in table}


def asked_for(name: str, shape: type[P], params: JsonObject) -> P:
    """Reads the parameters of a method.

    Raises:
        InvalidMessage: They do not fit; the message names the field in the caller's words.
    """
    if name.startswith("benchmark/"):
        b.check_names(name, params)
    try:
        return msgspec.convert(params, shape)
    except msgspec.ValidationError as error:
        detail = explain(error, shape, "params")
        raise InvalidMessage(f"{name}: {detail}", detail=detail.partition(":")[0]) from None


async def call(desk: Desk, name: str, params: JsonObject) -> Json:
    """Calls a method by its name.

    Raises:
        UnknownMethod: There is none of that name.
        ArpError: As the method says; nothing has changed.
    """
    method = METHODS.get(name)
    if method is None:
        raise UnknownMethod(f"no method {name!r:.80}; initialize lists them", detail=name[:80])
    return await method.run(desk, asked_for(name, method.params, params))
