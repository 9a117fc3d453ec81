"""An agent in whose one turn much goes wrong: for packs that must tell all of it."""

from __future__ import annotations

import asyncio
import sys

from arp import App, ToolFailed, Turn, ui

app = App(title="Eventful")

MIB = 10
"""How much its process writes."""

WRITES = f"import sys; sys.stdout.write('0123456789abcde\\n' * 65536 * {MIB})"


@app.agent
async def eventful(turn: Turn) -> None:
    """Does everything once, says so, and waits to be stopped."""
    if turn.text == "again":
        await turn.say("Nothing new.")
        return
    turn.record.route(["example-large"])
    await turn.say("I begin. ")
    turn.show(ui.table(["item", "count"], [["rows", 1]], id="counts"))
    task = turn.record.task("Count the rows", task_id="count")
    task.record("task.started")
    first = task.attempt()
    await read(turn)
    first.failed("the file is not there", retryable=True)
    await turn.say("The file is not there. ")
    permission = turn.record.permission("delete", "delete-request")
    permission.evaluated("deny", "rule", "no-deletes")
    permission.requested("to make room")
    permission.denied("rule", "no-deletes")
    with task.retry("from the copy"):
        await count(turn)
    task.completed([65536 * MIB])
    turn.record("rate_limit.hit", {"limit": "requests per minute", "retryAfterS": 2.5})
    used = {"model": "example-large", "inputTokens": 812, "outputTokens": 64}
    turn.record("cost.recorded", {**used, "amount": 0.25, "currency": "USD"})
    await turn.say("Counted. ")
    await turn.cache.setdefault("gate", asyncio.Event()).wait()


async def read(turn: Turn) -> None:
    """Uses a tool that fails."""
    try:
        async with turn.tool("read", {"path": "rows.csv"}) as tool:
            tool.fail("no such file: rows.csv")
    except ToolFailed:
        pass


async def count(turn: Turn) -> None:
    """Runs a real process that writes much."""
    async with turn.tool("shell", {"command": "cat copy.csv"}) as tool:
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-c", WRITES, stdout=asyncio.subprocess.PIPE
        )
        process = tool.record.process(["cat", "copy.csv"], pid=child.pid)
        written, _ = await child.communicate()
        await process.output(written)
        process.completed(child.returncode or 0)
        tool.result({"rows": written.count(b"\n")})
