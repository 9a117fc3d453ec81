"""A permission survives the process that asked, and is answered on each screen afterwards."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from arp.client.client import ArpClient, connect
from arp.protocol.messages import Permission
from tests.renderers.terminal.pseudo_terminal import PseudoTerminal
from tests.renderers.terminal.test_connect import command
from tests.runtime.stopped_servers import ENDINGS, SOON, Life, Place
from tests.server.processes import Process, start
from tests.server.rpc import Rpc, rpc
from tests.server.test_question_restart import APP, left, turn_of

ENDS = pytest.mark.parametrize("end", ["kill", "stop"])
LAST = f'"part-199.py": "sha256 {199:064x}"'


@asynccontextmanager
async def again(ledger: Path, end: str) -> AsyncIterator[tuple[Process, str]]:
    """Starts a server again that was ended while a permission was open; gives the session too."""
    session = await left(ledger, "delete", end)
    server = await start(APP, ledger)
    try:
        yield server, session
    finally:
        await server.aclose()


async def permission_on(client: ArpClient) -> Permission:
    """Waits until the first turn waits, and returns its permission."""
    turn = await turn_of(client, "t1", "waiting")
    (permission,) = turn.permissions.values()
    return permission


async def answered_once(client: ArpClient, answer: dict[str, object]) -> None:
    """Checks that one new turn has the answer, and the first turn is over."""
    await turn_of(client, "t2", "completed")
    assert list(client.screen.turns) == ["t1", "t2"]
    assert client.screen.text("t2") == f"Asking. A new turn: {answer}."
    await turn_of(client, "t1", "completed")


@ENDS
async def test_permission_is_answered_by_the_client_once(tmp_path: Path, end: str) -> None:
    async with (
        again(tmp_path / "ledger.db", end) as (server, session),
        connect(server.http, session_id=session) as one,
        connect(server.http, session_id=session) as other,
    ):
        permission = await permission_on(other)
        await one.send_permission(await permission_on(one), False, reason="no")
        payload = {"reason": "no", "digest": permission.digest}
        await answered_once(other, {"action": "deny", "payload": payload})


@pytest.mark.parametrize("ending", ENDINGS)
async def test_permission_is_answered_over_the_control_plane_once(
    tmp_path: Path, ending: str
) -> None:
    place = Place((), tmp_path)
    place.app_file.parent.mkdir()
    shutil.copy(APP, place.app_file)
    life = await Life.begin(place, ending)
    try:
        async with connect(place.http, session_id="s", backoff=SOON) as client:
            await client.send_text("delete")
            await permission_on(client)
            life = await life.end(place)
            await permission_on(client)
            async with rpc(place.port) as program:
                await answered_over(program, "s")
            await answered_once(client, {"action": "confirm"})
    finally:
        await life.stop()


async def answered_over(program: Rpc, session: str) -> None:
    """Answers what waits in a session; a second answer changes nothing."""
    thread = await program.thread(session)
    (pending,) = thread["pendingRequests"]
    assert (pending["kind"], pending["tool"]) == ("permission", "delete")
    answer = {"sessionId": session, "actionId": pending["actionId"], "response": True}
    told = await program.call("agentSession/action/respond", **answer)
    assert (told["decision"], told["repeated"]) == ("answered", False)
    told = await program.call("agentSession/action/respond", **answer)
    assert told["repeated"] is True


@ENDS
async def test_permission_is_shown_whole_and_answered_in_the_terminal_once(
    tmp_path: Path, end: str
) -> None:
    async with again(tmp_path / "ledger.db", end) as (server, session):
        terminal = PseudoTerminal(command(server.http, session), tmp_path, size=(40, 100))
        with terminal:
            async with connect(server.http, session_id=session) as client:
                permission = await permission_on(client)
                await asyncio.to_thread(terminal.until_shown, "? [y/s/n]")
                paper = "".join("".join(terminal.paper).split())
                assert "".join(LAST.split()) in paper
                terminal.type("s\r")
                payload = {"scope": "session", "digest": permission.digest}
                await answered_once(client, {"action": "confirm", "payload": payload})


@ENDS
async def test_terminal_that_was_open_during_the_restart_answers_too(
    tmp_path: Path, end: str
) -> None:
    ledger = tmp_path / "ledger.db"
    server = await start(APP, ledger)
    try:
        with PseudoTerminal(command(server.http, "open"), tmp_path, size=(40, 100)) as terminal:
            await asyncio.to_thread(terminal.until_at_rest)
            terminal.type("delete\r")
            await asyncio.to_thread(terminal.until_shown, "? [y/s/n]")
            await (server.kill() if end == "kill" else server.stop(10))
            server = await start(APP, ledger, "--port", str(server.port))
            async with connect(server.http, session_id="open") as client:
                permission = await permission_on(client)
                terminal.type("y\r")
                payload = {"scope": "once", "digest": permission.digest}
                await answered_once(client, {"action": "confirm", "payload": payload})
    finally:
        await server.aclose()
