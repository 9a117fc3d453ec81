"""`arp app-server`: the control plane on pipes, a message a line, and nothing else on them."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from tests.server import worker

AGENT = Path(worker.__file__)
WAIT_S = 30.0


async def talk(*lines: Any, ledger: Path | None = None) -> tuple[int, list[Any], str]:
    """Send lines to a child and end its input; return exit code, answers and errors."""
    options = ("--ledger", f"sqlite:{ledger}") if ledger is not None else ()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "arp.cli", "app-server", str(AGENT), *options),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    body = "".join(f"{json.dumps(line)}\n" for line in lines).encode()
    async with asyncio.timeout(WAIT_S):
        out, err = await process.communicate(body)
    assert process.returncode is not None
    return process.returncode, [json.loads(line) for line in out.splitlines()], err.decode()


def ask(number: int, method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


async def test_program_is_answered_line_by_line_and_told_facts() -> None:
    code, told, err = await talk(
        ask(1, "agentSession/turn/start", sessionId="s", input={"text": "hello"}),
        ask(2, "agentSession/subscribe", sessionId="s", after=0),
        7,
    )
    assert (code, err) == (0, "")
    answers = {message["id"]: message for message in told if "id" in message}
    assert answers[1]["result"]["turnId"] == "t1"
    assert answers[None]["error"]["code"] == -32600
    events = [message["params"]["event"] for message in told if "method" in message]
    assert [fact["sequence"] for fact in events] == list(range(1, len(events) + 1))
    assert events[-1]["type"] == "turn.completed"


async def test_ledger_goes_on_where_the_process_before_left_it(tmp_path: Path) -> None:
    start = {"sessionId": "s", "input": {"text": "hello"}, "turnId": "mine"}
    ledger = tmp_path / "l.db"
    await talk(ask(1, "agentSession/turn/start", **start), ledger=ledger)
    _, (again,), _ = await talk(ask(1, "agentSession/turn/start", **start), ledger=ledger)
    assert (again["result"]["repeated"], again["result"]["status"]) == (True, "completed")


async def test_ledger_that_cannot_be_opened_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "l.db").write_text("no database " * 100)
    code, told, err = await talk(ledger=tmp_path / "l.db")
    assert (code, told) == (1, [])
    assert err.startswith("arp: Ledger ")
    assert err.count("\n") == 1
