"""What is left of a deleted session: nothing, in no file below the ledger, for every runtime."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import connect as websocket

from arp import App
from arp.client.client import ArpClient, connect
from arp.runtime.contract.errors import Unavailable
from arp.runtime.contract.task_runtime import TaskRuntime
from arp.runtime.plain.fake import FakeRuntime
from tests.runtime.runtimes_under_test import RUNTIMES
from tests.runtime.test_framework_sessions import open_question, until
from tests.server.processes import start
from tests.support.serving import serving

NEEDS = {"claude-code": "claude", "codex": "codex", "acp:opencode": "opencode"}
REMOTE = {"grpc", "http"}
"""Their storage is that of the fake, on the other side."""
SECRETS = {
    "user": "canary-user-51c9",
    "answer": "canary-answer-83fd",
    "tool": "canary-tool-77ab",
    "edited": "canary-edited-19e0",
    "file": "canary-file-04d2",
    "title": "canary-title-62b7",
}
START_S = 90.0
"""How long the slowest agent takes for its first answer, on a busy machine."""
KEPT = "canary-of-the-other-chat"


def files_with(place: Path, text: str) -> list[str]:
    """Return the files below a directory that have a text, after SQLite has tidied up its own."""
    for path in databases(place):
        with closing(sqlite3.connect(path)) as db:
            db.execute("VACUUM")
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    found = [path for path in place.rglob("*") if path.is_file() and not path.is_symlink()]
    return [
        str(path.relative_to(place))
        for path in found
        if text.encode() in path.read_bytes() or text in path.name
    ]


def databases(place: Path) -> Iterator[Path]:
    """Yield the SQLite files below a directory."""
    for path in place.rglob("*"):
        if path.is_file() and not path.is_symlink():
            with path.open("rb") as file:
                if file.read(16) == b"SQLite format 3\0":
                    yield path


async def say(client: ArpClient, text: str, *files: Path) -> str:
    """Say something, allow what is asked, and return the turn once it is over."""
    known = set(client.screen.turns)
    if files:
        await client.send_files(files, text)
    else:
        await client.send_text(text)

    def is_over_or_asks() -> Any:
        for turn_id in client.screen.turns.keys() - known:
            turn = client.screen.turns[turn_id]
            asked = open_question(client, "confirm")
            waits = asked is not None and asked.id not in answered and turn.permissions
            if turn.final or waits:
                return turn
        return None

    answered: set[str] = set()
    while not (turn := await until(client, is_over_or_asks, START_S)).final:
        permission = next(one for one in turn.permissions.values() if one.component not in answered)
        answered.add(permission.component)
        await client.send_permission(permission, True)
    assert turn.status == "completed" or files, turn.errors  # some runtimes take no files
    return str(turn.id)


async def edited(server: Any, turn_id: str, text: str) -> None:
    """Say something else in a turn, on a branch of its own, and wait for its answer."""
    async with websocket(server.ws) as socket:
        hello = {"capabilities": {"components": ["text"]}, "session_id": "gone"}
        await socket.send(json.dumps({"v": 1, "type": "hello", **hello}))
        again = {"input_type": "text", "data": {"text": text}, "edits": turn_id}
        await socket.send(json.dumps({"v": 1, "type": "input", "session_id": "gone", **again}))


async def talk(server: Any, place: Path) -> None:
    """Fill a chat with all that a user and an agent can leave there."""
    async with connect(server.http, session_id="gone") as client:
        turn_id = await say(client, f"echo: {SECRETS['user']}")
        await say(client, f"run: printf {SECRETS['tool']}")
        last = await say(client, f"echo: {SECRETS['answer']}")
        assert turn_id != last
        await edited(server, last, f"echo: {SECRETS['edited']}")
        await until(
            client,
            lambda: any(
                SECRETS["edited"] in client.screen.text(turn.id) and turn.final
                for turn in client.screen.turns.values()
            ),
        )
        file = place / "note.txt"
        file.write_text(SECRETS["file"])
        await say(client, "hello", file)
        file.unlink()
    async with httpx.AsyncClient(base_url=server.http) as http:
        body = {"title": SECRETS["title"]}
        (await http.patch("/_api/chats/gone", json=body)).raise_for_status()


@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(one, marks=[getattr(pytest.mark, NEEDS[one])] if one in NEEDS else [])
        for one in RUNTIMES
        if one not in REMOTE
    ],
)
async def test_no_file_has_anything_of_a_deleted_session(name: str, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    under_test = RUNTIMES[name](tmp_path)
    app = App()
    runtime = under_test.make()
    if isinstance(runtime, TaskRuntime):
        runtime.directory = None  # beside the ledger
    app.runtime(runtime)
    try:
        with serving(app, ledger=f"sqlite:{data / 'ledger.db'}") as server:
            async with connect(server.http, session_id="stays") as client:
                await say(client, f"echo: {KEPT}")
            await talk(server, tmp_path)
            for what, text in SECRETS.items():
                assert files_with(tmp_path, text), f"the test does not see {what}"
            async with httpx.AsyncClient(base_url=server.http, timeout=60) as http:
                answer = (await http.delete("/_api/chats/gone")).raise_for_status().json()
            assert answer["deleted"] == "gone"
            if name == "acp:opencode":
                reasons = {one["reason"] for one in answer["remains"]}
                assert reasons == {"opencode cannot delete sessions"}
            else:
                assert answer["remains"] == []
            found = {what: files_with(data, text) for what, text in SECRETS.items()}
            assert found == {what: [] for what in SECRETS}, "while it is served"
            assert files_with(tmp_path, KEPT)
        if name != "acp:opencode":
            found = {what: files_with(tmp_path, text) for what, text in SECRETS.items()}
            assert found == {what: [] for what in SECRETS}, "after the end of the server"
        assert files_with(tmp_path, KEPT)
    finally:
        under_test.end()


SLOW_TO_DELETE = """
import asyncio
from pathlib import Path
from arp import App
from arp.runtime.plain.fake import FakeRuntime


class Slow(FakeRuntime):
    async def _forget(self, session_id):
        while Path("{hold}").exists():
            await asyncio.Event().wait()
        await super()._forget(session_id)


app = App()
app.runtime(Slow())
"""


@pytest.mark.timeout(120)
async def test_a_kill_while_a_session_is_deleted_leaves_nothing_after_a_restart(
    tmp_path: Path,
) -> None:
    data, hold, source = tmp_path / "data", tmp_path / "hold", tmp_path / "app.py"
    source.write_text(SLOW_TO_DELETE.format(hold=hold))
    hold.touch()
    server = await start(source, data / "ledger.db")
    try:
        async with connect(server.http, session_id="gone") as client:
            await say(client, SECRETS["user"])
        async with httpx.AsyncClient(base_url=server.http, timeout=30) as http:
            deleting = asyncio.ensure_future(http.delete("/_api/chats/gone"))
            while (await http.get("/_api/chats/gone")).status_code != 404:
                pass
            await server.kill()
            with pytest.raises(httpx.HTTPError):
                await deleting
    finally:
        await server.aclose()
    assert files_with(data / "ledger.db.runtimes", SECRETS["user"]), "it was not cut off"
    hold.unlink()
    server = await start(source, data / "ledger.db")
    try:
        async with asyncio.timeout(30), httpx.AsyncClient(base_url=server.http) as http:
            while files_with(data, SECRETS["user"]):
                (await http.get("/health")).raise_for_status()
    finally:
        await server.aclose()


@pytest.mark.parametrize("text", ["slow", "run: touch x"])
async def test_a_session_is_deleted_while_its_agent_works_or_asks(
    text: str, tmp_path: Path
) -> None:
    app = App()
    under_test = RUNTIMES["fake"](tmp_path)
    runtime = under_test.make()
    assert isinstance(runtime, TaskRuntime)
    runtime.directory = None
    app.runtime(runtime)
    data = tmp_path / "data"
    with serving(app, ledger=f"sqlite:{data / 'ledger.db'}") as server:
        async with connect(server.http, session_id="gone") as client:
            await say(client, SECRETS["user"])
            await client.send_text(text)
            await until(client, lambda: open_question(client, "confirm") or answering(client))
            async with httpx.AsyncClient(base_url=server.http, timeout=30) as http:
                answer = (await http.delete("/_api/chats/gone")).raise_for_status().json()
        assert answer == {"deleted": "gone", "remains": []}
        assert files_with(data, SECRETS["user"]) == []
        assert files_with(data, text) == []
    assert files_with(data, SECRETS["user"]) == []


def answering(client: ArpClient) -> bool:
    """Return whether the second turn has said something and goes on."""
    turns = list(client.screen.turns.values())
    return len(turns) == 2 and not turns[1].final and bool(client.screen.text(turns[1].id))


async def test_what_a_runtime_cannot_delete_is_named(tmp_path: Path) -> None:
    """By the answer of the request, and by the one of the Python interface."""
    fake = FakeRuntime()
    app = App()
    app.runtime(fake)
    with serving(app, ledger=f"sqlite:{tmp_path / 'ledger.db'}") as server:
        for session in ("one", "two"):
            async with connect(server.http, session_id=session) as client:
                await say(client, "hello")
        fake.inject_error("delete_session", Unavailable("the agent is away"))
        async with httpx.AsyncClient(base_url=server.http, timeout=30) as http:
            answer = (await http.delete("/_api/chats/one")).raise_for_status().json()
        (left,) = answer["remains"]
        assert (left["keeper"], left["reason"], left["isRetried"]) == (
            "fake",
            "the agent is away",
            True,
        )
        deleting = asyncio.run_coroutine_threadsafe(app.delete_session("two"), server.loop)
        (kept,) = await asyncio.wrap_future(deleting)
        assert (kept.keeper, kept.is_retried) == ("fake", True)
