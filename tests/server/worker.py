"""An agent that does, when it is told so, one thing of each kind that a runtime may do."""

from __future__ import annotations

import asyncio

from arp import App, Turn
from arp.ledger.payload_fields import AuthorityKind

LARGE = "0123456789abcdef" * 65_536
"""A megabyte."""

app = App(title="Worker")


@app.agent
async def worker(turn: Turn) -> None:
    """Does what the input names, and says so."""
    await turn.say("begun ")
    name, _, rest = turn.text.partition(" ")
    match name:
        case "large":
            async with turn.tool("read", {"path": "big.txt"}) as tool:
                tool.result(LARGE)
        case "delete":
            async with turn.tool("delete", {"path": rest}) as tool:
                allowed = await tool.approve("Delete it?", rule="deletes need leave")
                tool.result({"deleted": allowed})
        case "wait":
            gate: asyncio.Event = turn.cache.setdefault(rest or "gate", asyncio.Event())
            await gate.wait()
        case "denied":
            kinds: tuple[AuthorityKind, ...] = ("rule", "mode", "hook", "hostPolicy")
            for number, kind in enumerate(kinds, 1):
                permission = turn.record.permission(f"tool{number}")
                permission.evaluated("deny", kind, f"the {kind}")
                permission.denied(kind, f"the {kind}")
        case "route":
            turn.record.route(["only-model"])
        case "limits":
            turn.record("rate_limit.hit", {"limit": "requests per minute", "retryAfterS": 2.5})
            turn.record("quota.low", {"quota": "tokens", "remaining": 10})
        case "job":
            job(turn)
        case "item":
            await turn.say(f"again {rest} ")
    await turn.say("done")


def job(turn: Turn) -> None:
    """Does three items; the second fails."""
    work = turn.record.job("import", total=3, job_id="import")
    work.record("job.started")
    for name in ("a", "b", "c"):
        scope = turn.record.within(job_id="import", job_item_id=name)
        task = scope.task(f"import {name}", task_id=f"import-{name}")
        attempt, item = task.attempt(), work.item(name)
        if name == "b":
            item.failed("no such row")
            attempt.failed("no such row")
            task.failed("no such row")
        else:
            item.completed()
            attempt.completed()
            task.completed()
    work.completed(2, failed=1)
