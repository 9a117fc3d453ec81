"""What a turn of a runtime does and uses belongs to the turn of ARP that began it, to its end."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from arp import App, connect
from arp.client.client import ArpClient
from arp.runtime.plain.function import FunctionRuntime, FunctionTurn
from tests.runtime.answering import open_questions, permission_of, until
from tests.runtime.stopped_servers import facts_of
from tests.support.serving import serving
from tests.support.waiting import becomes


class SlowToStop:
    """An agent that is told to stop, and works on until it is released: it has used tokens then."""

    def __init__(self) -> None:
        self.is_told = asyncio.Event()
        self.release = asyncio.Event()
        self.heard: list[str] = []

    async def reply(self, turn: FunctionTurn) -> None:
        self.heard.append(turn.text)
        if turn.text != "one":
            turn.say(f"Heard {turn.text}.")
            turn.use(1, 2)
            return
        turn.say("One.")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.is_told.set()
            await self.release.wait()
            turn.say(" The rest of one.")
            turn.use(100, 50)
            raise


async def test_a_queued_message_gets_nothing_of_the_turn_that_was_stopped(tmp_path: Path) -> None:
    """Neither its rest nor what it used: that is the stopped turn's."""
    ledger = tmp_path / "ledger.db"
    agent = SlowToStop()
    app = App()
    app.runtime(FunctionRuntime(agent.reply, cwd=tmp_path))
    with serving(app, ledger=f"sqlite:{ledger}") as server:
        async with asyncio.timeout(30), connect(server.http, session_id="s") as client:
            await client.send_text("one")
            await until(client, lambda: client.screen.text("t1"))
            second = await client.send_text("two")
            await client.cancel()
            await becomes(lambda: server.call(agent.is_told.is_set))
            server.call(agent.release.set)
            turn = await client.turn_done(await client.turn_of(second))
            assert client.screen.text(turn.id) == "Heard two."
            assert client.screen.turn("t1").status == "cancelled"
    facts = await facts_of(ledger, "s")
    used = {
        fact.turn_id: fact.payload["usage"]
        for fact in facts
        if fact.type in ("turn.completed", "turn.failed")
    }
    assert used["t1"]["input_tokens"] == 100
    assert used["t2"]["input_tokens"] == 1
    assert agent.heard == ["one", "two"]


async def test_a_turn_that_does_not_stop_in_time_is_waited_for_without_being_shown(
    tmp_path: Path,
) -> None:
    """The server has closed the turn over its head: the next one waits, and shows its own."""
    agent = SlowToStop()
    app = App(settings=quick())
    app.runtime(FunctionRuntime(agent.reply, cwd=tmp_path))
    with serving(app, ledger="memory:") as server:
        async with asyncio.timeout(30), connect(server.http, session_id="s") as client:
            await client.send_text("one")
            await until(client, lambda: client.screen.text("t1"))
            second = await client.send_text("two")
            await client.cancel()
            assert (await client.turn_done("t1")).status == "cancelled"
            turn_id = await client.turn_of(second)
            await until(client, lambda: client.screen.turn(turn_id).status == "running")
            server.call(agent.release.set)
            turn = await client.turn_done(turn_id)
            assert turn.status == "completed"
            assert client.screen.text(turn_id) == "Heard two."


def quick() -> Any:
    """Return settings by which a turn has a moment to stop."""
    from arp.live.settings import HubSettings

    return HubSettings(cancel_grace_s=0.05)


async def test_a_cancel_withdraws_what_a_stop_leaves_open(tmp_path: Path) -> None:
    """The two causes: a person's cancel closes the question, the runtime forgets it."""

    async def asks(turn: FunctionTurn) -> None:
        with turn.tool("bash", {"command": "rm a"}) as call:
            await call.allowed()

    ledger = tmp_path / "ledger.db"
    app = App()
    app.runtime(FunctionRuntime(asks, cwd=tmp_path))
    with serving(app, ledger=f"sqlite:{ledger}") as server:
        async with asyncio.timeout(30), connect(server.http, session_id="s") as client:
            for end in ("cancelled", "left"):
                await client.send_text("go")
                await until(client, lambda: open_questions(client))
                if end == "cancelled":
                    await cancelled(client)
    facts = await facts_of(ledger, "s")
    ends = [(fact.turn_id, fact.payload["status"]) for fact in facts if fact.type == "turn.failed"]
    assert ends == [("t1", "cancelled"), ("t2", "waiting")]
    withdrawn = [fact for fact in facts if fact.type in ("action.resolved", "permission.resolved")]
    assert [(fact.turn_id, fact.payload["decision"]) for fact in withdrawn] == [
        ("t1", "cancelled"),
        ("t1", "cancelled"),
    ]


async def cancelled(client: ArpClient) -> None:
    await client.cancel()
    assert (await client.turn_done()).status == "cancelled"
    assert open_questions(client) == []


@pytest.mark.parametrize(("now", "is_asked_again"), [("echo A\n", False), ("echo B\n", True)])
async def test_an_answer_after_a_stop_counts_for_the_files_that_were_shown(
    tmp_path: Path, now: str, is_asked_again: bool
) -> None:
    """A script that was swapped while the server was stopped does not run by that answer."""
    script = tmp_path / "run.sh"
    script.write_text("echo A\n")
    ran: list[str] = []

    async def runs(turn: FunctionTurn) -> None:
        with turn.tool("bash", {"command": "sh run.sh"}) as call:
            if (await call.allowed()).decision == "allow":
                ran.append(script.read_text())

    def app() -> App:
        made = App()
        made.runtime(FunctionRuntime(runs, cwd=tmp_path, directory=tmp_path / "sessions"))
        return made

    ledger = f"sqlite:{tmp_path / 'ledger.db'}"
    async with asyncio.timeout(30):
        with serving(app(), ledger=ledger) as server:
            async with connect(server.http, session_id="s") as client:
                await client.send_text("go")
                await until(client, lambda: open_questions(client))
        script.write_text(now)
        with serving(app(), ledger=ledger) as server:
            async with connect(server.http, session_id="s") as client:
                (question,) = await until(client, lambda: open_questions(client))
                await client.send_permission(permission_of(client, question.id), True)
                await until(client, lambda: ran or client.screen.turn("t2").status == "waiting")
                assert ran == ([] if is_asked_again else ["echo A\n"])
