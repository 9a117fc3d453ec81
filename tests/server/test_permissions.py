"""Permission for a tool, asked by a real server on two screens: what is approved is what runs."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx
import pytest

from arp import App, ArpClient, ArpError, Turn, connect
from arp.protocol.messages import Permission
from tests.server.rpc import rpc
from tests.support.serving import Serving, serving
from tests.support.waiting import becomes

ECHO = [sys.executable, "-c", "import sys; print(*sys.argv[1:])"]


def made() -> App:
    """An app whose agent runs the words of the input, if it may."""
    app = App()

    @app.agent
    async def shell(turn: Turn) -> None:
        """Prints words by a process, if somebody allows it."""
        words, _, options = turn.text.partition(" | ")
        async with turn.tool("echo", {"words": words.split()}) as tool:
            approval = await tool.ask_permission(
                f"Print {words}?",
                rule="commands",
                session_rule="echo …" if "session" in options else None,
                editable="edit" in options,
                timeout_s=0.3 if "soon" in options else 30.0,
            )
            if approval:
                process = await asyncio.create_subprocess_exec(
                    *ECHO, *approval.args["words"], stdout=asyncio.subprocess.PIPE
                )
                out, _ = await process.communicate()
                tool.result(out.decode().strip())
        await turn.say(f"{approval.decision}, {approval.scope}, {approval.reason!r}")

    return app


@asynccontextmanager
async def two_screens(server: Serving) -> AsyncIterator[tuple[ArpClient, ArpClient]]:
    """Connects a WebSocket and an event stream to one session."""
    options: Any = {"session_id": "s"}
    async with (
        connect(server.http, **options) as one,
        connect(f"http+sse://127.0.0.1:{server.port}", **options) as two,
    ):
        yield one, two


async def asked(*clients: ArpClient) -> Permission:
    """Waits until each of them shows an open permission, and gives it."""
    found: list[Permission] = []

    def shows(client: ArpClient) -> bool:
        turns = client.screen.turns
        if not turns or turns[next(reversed(turns))].status != "waiting":
            return False
        found[:] = turns[next(reversed(turns))].permissions.values()
        return bool(found)

    await becomes(lambda: all(shows(client) for client in clients))
    return found[-1]


def tool_of(client: ArpClient, turn_id: str = "t1") -> Any:
    return client.screen.turns[turn_id].tools[-1]


def state_of(client: ArpClient, permission: Permission) -> Any:
    return client.screen.surfaces["main"].component(permission.component).props["state"]


@pytest.mark.parametrize("first", [0, 1])
async def test_of_two_screens_that_answer_at_once_one_wins_and_the_other_is_told(
    first: int,
) -> None:
    """Whichever it is, both show the same, and the process ran if and only if a yes has won."""
    with serving(made()) as server:
        async with two_screens(server) as clients:
            await clients[0].send_text("a b")
            permission = await asked(*clients)
            yes, no = clients[first], clients[1 - first]
            ids = await asyncio.gather(
                yes.send_permission(permission, True), no.send_permission(permission, False)
            )
            outcomes = await asyncio.gather(
                yes.acknowledged(ids[0]), no.acknowledged(ids[1]), return_exceptions=True
            )
            errors = [one for one in outcomes if isinstance(one, ArpError)]
            assert len(errors) == 1
            assert "is already answered" in errors[0].message
            has_run = not isinstance(outcomes[0], ArpError)
            for client in clients:
                turn = await client.turn_done("t1")
                assert turn.tools[0].result == ("a b" if has_run else None)
                assert state_of(client, permission) == "answered"
                assert client.screen.text("t1").startswith("allow" if has_run else "deny")


async def test_the_same_words_run_and_another_digest_is_refused() -> None:
    with serving(made()) as server:
        async with two_screens(server) as (one, two):
            await one.send_text("one two")
            permission = await asked(one, two)
            assert permission.digest == sha256(b'{"words":["one","two"]}').hexdigest()
            source = permission.component
            wrong = {"scope": "once", "digest": sha256(b'{"words":["rm"]}').hexdigest()}
            input_id = await two.send_action("confirm", wrong, source=source)
            with pytest.raises(ArpError, match=r"payload\.digest: the answer is for another"):
                await two.acknowledged(input_id)
            assert state_of(two, permission) == "open"
            await two.send_permission(permission, True)
            turn = await one.turn_done("t1")
            assert turn.tools[0].result == "one two"


async def test_an_edited_input_runs_under_its_own_digest(tmp_path: Path) -> None:
    """The ledger has what was shown, what was approved, and that it was edited."""
    with serving(made(), ledger=f"sqlite:{tmp_path / 'ledger.db'}") as server:
        async with two_screens(server) as (one, two):
            await one.send_text("a b | edit")
            permission = await asked(one, two)
            assert permission.editable
            edited = {"words": ["c", "d e"]}
            await two.send_permission(permission, True, updated_input=edited)
            turn = await one.turn_done("t1")
            assert turn.tools[0].result == "c d e"
        async with httpx.AsyncClient(base_url=server.http) as http:
            page = (await http.get("/_api/sessions/s/events", params={"limit": 500})).json()
    facts = {one["type"]: one["payload"] for one in page["events"]}
    own = sha256(b'{"words":["c","d e"]}').hexdigest()
    assert facts["permission.requested"]["digest"] == permission.digest
    resolved = facts["permission.resolved"]
    assert (resolved["digest"], resolved["edited"], resolved["scope"]) == (own, True, "once")
    assert facts["action.resolved"]["input"]["data"]["payload"]["updated_input"] == edited


async def test_a_deadline_closes_the_question_on_both_screens() -> None:
    with serving(made()) as server:
        async with two_screens(server) as (one, two):
            await one.send_text("a | soon")
            permission = await asked(one)
            assert permission.expires_at is not None
            for client in (one, two):
                await client.turn_done("t1")
                assert state_of(client, permission) == "expired"
                assert client.screen.text("t1") == "expired, None, 'nobody answered in time'"
                assert tool_of(client).result is None
            input_id = await two.send_permission(permission, True)
            with pytest.raises(ArpError, match="has expired and takes no more answers"):
                await two.acknowledged(input_id)


async def test_an_answer_after_the_cancel_is_refused_and_a_repeated_one_changes_nothing() -> None:
    with serving(made()) as server:
        async with two_screens(server) as (one, two):
            await one.send_text("a")
            permission = await asked(one, two)
            await one.cancel()
            await two.turn_done("t1")
            input_id = await two.send_permission(permission, True)
            with pytest.raises(ArpError, match="was cancelled and takes no more answers"):
                await two.acknowledged(input_id)
            await one.send_text("b")
            await becomes(lambda: "t2" in two.screen.turns)
            permission = await asked(one, two)
            await one.send_permission(permission, False, reason="not now")
            await two.turn_done("t2")
            assert two.screen.text("t2") == "deny, None, 'not now'"
            input_id = await two.send_permission(permission, True)
            with pytest.raises(ArpError, match="is already answered"):
                await two.acknowledged(input_id)
            assert list(one.screen.turns) == ["t1", "t2"]


async def test_the_session_rule_is_shown_and_a_program_may_answer_too() -> None:
    """Over JSON-RPC, by the action id of the fact."""
    with serving(made()) as server:
        async with two_screens(server) as (one, two):
            await one.send_text("a | session")
            permission = await asked(one, two)
            assert (permission.session_rule, permission.scopes) == ("echo …", ["once", "session"])
            async with httpx.AsyncClient(base_url=server.http) as http:
                page = (await http.get("/_api/sessions/s/events", params={"limit": 500})).json()
            (required,) = [each for each in page["events"] if each["type"] == "action.required"]
            async with rpc(server.port) as program:
                answer = await program.call(
                    "agentSession/action/respond",
                    sessionId="s",
                    actionId=required["actionId"],
                    response=True,
                    scope="session",
                    digest=required["payload"]["digest"],
                )
            assert answer["decision"] == "answered"
            assert (await two.turn_done("t1")).tools[0].result == "a"
            await one.send_text("b | session")
            await becomes(lambda: "t2" in two.screen.turns)
            assert (await two.turn_done("t2")).tools[0].result == "b"
            assert two.screen.turns["t2"].permissions == {}
