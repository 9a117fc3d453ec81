"""An agent whose turns have what the page must tell of: the user's text names which."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from arp import App, Turn
from arp.turn.tool import ToolFailed
from tests.support.waiting import written

app = App(title="Eventful")


@app.agent
async def eventful(turn: Turn) -> None:
    """Works, fails, waits, asks, or says much."""
    match turn.text:
        case "fail":
            await fail(turn)
        case "ask":
            await ask(turn)
        case "wait":
            async with turn.tool("sleep", {"until": "told"}):
                await asyncio.Event().wait()
        case "mutter":
            for word in ("one", "two", "three", "four", "five"):
                await turn.say(f"{word} ")
                await written(turn)
        case "hostile":
            await turn.say("<img src=x onerror=\"document.title='broken'\">")
            async with turn.tool("<script>document.title='broken'</script>") as tool:
                tool.result("<b onclick=alert(1)>bold</b>")
        case text if text.startswith("say "):
            for number in range(int(text.removeprefix("say "))):
                turn.think(f"thought {number}")
                await turn.say(f"word {number} ")
                await asyncio.sleep(0)
        case _:
            await work(turn)


async def work(turn: Turn) -> None:
    """Chooses a model, retries a task, runs a process, and is done."""
    turn.record.route(["example-large", "example-small"])
    chosen = {"model": "example-large", "provider": "example", "reason": "best for tools"}
    turn.record("routing.decided", chosen)
    request = turn.record.model("example-large", "example")
    request.cost(input_tokens=812, output_tokens=64, amount=0.004, currency="USD")
    request.completed(finish_reason="tool_calls")
    task = turn.record.task("Count the files", task_id=f"count-{turn.id}")
    task.record("task.started")
    task.attempt().failed("timeout", retryable=True)
    with task.retry("once more"):
        async with turn.tool("shell", {"command": "ls"}) as tool:
            tool.record.permission("shell").evaluated("allow", "rule", "reading-is-free")
            process = tool.record.process(["ls", "-l"], cwd="docs")
            await process.output("agents.md\nclient.md\nindex.md\n")
            process.completed(0, 12.0)
            tool.result(["agents.md", "client.md", "index.md"])
    task.completed([3])
    exported = {"kind": "evidence", "state": "exported", "throughSequence": 9, "gaps": ["no trace"]}
    turn.record("evidence.changed", exported, evidence_id=f"evidence-{turn.id}")
    await turn.say("There are 3 files.")


async def fail(turn: Turn) -> None:
    """A rule denies a tool, a limit is met, and a query fails, which ends the turn."""
    await turn.say("Let me look. ")
    with suppress(ToolFailed):
        async with turn.tool("shell", {"command": "rm -r docs"}) as tool:
            tool.record.permission("shell").evaluated("deny", "rule", "nothing-is-removed")
            tool.fail("denied by the rule nothing-is-removed")
    limit = {"limit": "requests per minute", "retryAfterS": 12, "provider": "example"}
    turn.record("rate_limit.hit", limit)
    async with turn.tool("query", {"sql": "select total from sales"}) as tool:
        tool.fail("no such table: sales")


async def ask(turn: Turn) -> None:
    """Asks for leave and waits."""
    async with turn.tool("deploy", {"to": "production"}) as tool:
        if await tool.approve("Deploy to production?", rule="deploys-need-leave"):
            tool.result("deployed")
