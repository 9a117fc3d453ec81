"""A ledger that an earlier tree wrote opens, continues and verifies.

Each `old_ledger_DATE.zip` has a SQLite ledger as the tree of that date left it when it was killed
(its write-ahead log is not merged yet), its files, and what that server said of it over HTTP
(`expected.json`). The session `first` has one of everything (a tool with a long result, a chart, a
patched table, a picture, another surface, a form, a permission for the session, an agent that
failed, two branches), `many` has 60 turns, `running` a turn that was killed and one behind it in
the queue, and `asking` an open question. `write_old_ledger.py` writes another archive.
"""

from __future__ import annotations

import asyncio
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from arp import App, Turn
from tests.server.sockets import raw
from tests.support.serving import Serving, serving

ARCHIVES = sorted(Path(__file__).parent.glob("old_ledger_*.zip"))
SESSIONS = ("first", "many", "running", "asking")

app = App(title="Old")


@app.agent
async def everything(turn: Turn) -> None:
    """Goes on where the earlier one stopped."""
    if turn.text == "leave":
        async with turn.tool("shell", {"command": "ls"}) as tool:
            await turn.say(
                "allowed"
                if await tool.approve("Run ls?", rule="all", session_rule="commands-need-leave")
                else "no"
            )
    elif turn.text == "history":
        await turn.say(str(len(turn.history(100))))
    else:
        await turn.say(f"You said {turn.text}. ")


@pytest.fixture(params=ARCHIVES, ids=lambda archive: archive.stem)
def unpacked(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    with zipfile.ZipFile(request.param) as archive:
        archive.extractall(tmp_path)
    return tmp_path


@pytest.fixture
def server(unpacked: Path) -> Iterator[Serving]:
    with serving(app, ledger=f"sqlite:{unpacked / 'ledger.db'}") as running:
        yield running


@pytest.fixture
def expected(unpacked: Path) -> Any:
    return json.loads((unpacked / "expected.json").read_text(encoding="utf-8"))


async def asked(server: Serving, path: str) -> Any:
    async with httpx.AsyncClient(base_url=server.http) as client:
        got = await client.get(path)
    assert got.status_code == 200, (path, got.text)
    return got.json()


async def test_every_fact_is_read_as_it_was_written(server: Serving, expected: Any) -> None:
    for name in ("running", "asking"):
        await closed(server, name, len(expected[name]["facts"]["events"]))
    for name in SESSIONS:
        before = expected[name]["facts"]
        now = await asked(server, f"/_api/sessions/{name}/events?limit=1000")
        count = len(before["events"])
        assert now["events"][:count] == before["events"]
        # What a kill left running is closed, and nothing else is added.
        added = {fact["type"] for fact in now["events"][count:]}
        assert bool(added) == (name in ("running", "asking")), (name, added)


async def closed(server: Serving, name: str, count: int) -> None:
    """Wait until a session has more facts than a kill left: the server closes it while it runs."""
    async with asyncio.timeout(30):
        page = await asked(server, f"/_api/sessions/{name}/events?limit=1000")
        while len(page["events"]) == count:
            await asyncio.sleep(0.01)
            page = await asked(server, f"/_api/sessions/{name}/events?limit=1000")


async def test_chats_say_what_they_said(server: Serving, expected: Any) -> None:
    for name in ("first", "many"):
        before, now = expected[name]["chat"], await asked(server, f"/_api/chats/{name}?limit=200")
        for message, message_before in zip(now["messages"], before["messages"], strict=True):
            tools = zip(message.get("tools", ()), message_before.get("tools", ()), strict=True)
            for tool, tool_before in tools:
                # Later trees say more about a tool.
                for key in tool.keys() - tool_before.keys():
                    del tool[key]
        assert now["messages"] == before["messages"]
        assert {**now, "messages": []} == {**before, "messages": []}
    listed = {chat["id"]: chat for chat in await asked(server, "/_api/chats")}
    assert (listed["many"]["title"], listed["many"]["pinned"]) == ("Sixty turns", True)


async def test_what_a_session_is_follows_from_its_facts_as_before(
    server: Serving, expected: Any
) -> None:
    for name in ("first", "many"):
        for view in ("snapshot", "thread"):
            now = await asked(server, f"/_api/sessions/{name}/{view}")
            assert now == expected[name][view], (name, view)


async def test_every_session_verifies(server: Serving) -> None:
    for name in SESSIONS:
        checked = await asked(server, f"/_api/sessions/{name}/verification")
        assert "broken" not in checked
        # Hashes are kept of what was sorted, which a server does when it stops.
        assert (checked["keptThrough"] > 60) == (name in ("first", "many")), checked


async def test_files_and_whole_results_are_there(server: Serving) -> None:
    chat = await asked(server, "/_api/chats/first?limit=200")
    shown = next(
        one
        for message in chat["messages"]
        for one in message.get("ui_events", ())
        if one["id"] == "plot"
    )
    (query,) = chat["messages"][1]["tools"]
    async with httpx.AsyncClient(base_url=server.http) as client:
        picture = await client.get(shown["props"]["src"])
        assert (picture.status_code, picture.content[:4]) == (200, b"\x89PNG")
        whole = await client.get(query["result_ref"])
        assert whole.text == "".join(f"row {number}\n" for number in range(600))


async def test_sessions_go_on(server: Serving) -> None:
    """A grant still holds, history is there, a killed turn is over, and the next one begins."""
    async with raw(server) as client:
        await client.hello("first", ["text"], "input")
        await client.say("first", "leave", id="new-1")
        said = (await client.until("delta"))["payload"]["delta"]
        assert said == "allowed"  # given for the whole session, before
    async with raw(server) as client:
        await client.hello("many", ["text"], "input")
        await client.say("many", "history", id="m-new")
        assert (await client.until("delta", turn_id="t61"))["payload"]["delta"] == "100"
        await client.until_final("t61")
    async with raw(server) as client:
        await client.hello("running", ["text"], "input", "thinking")
        await client.until_final("t2")  # it waited behind the one that was killed
        ends = {one["turn_id"]: one["status"] for one in client.of("turn")}
        assert ends == {"t1": "failed", "t2": "completed"}


async def disconnected(server: Serving, name: str) -> None:
    """Wait until the disconnection of the only client, the last fact of a session, is recorded."""
    async with asyncio.timeout(30):
        while True:
            page = await asked(server, f"/_api/sessions/{name}/events?limit=1000")
            if page["events"][-1]["type"] == "channel.disconnected":
                return
            await asyncio.sleep(0.01)


async def test_it_goes_on_after_another_restart(unpacked: Path) -> None:
    """What this tree adds to the ledger, this tree reads."""
    ledger = f"sqlite:{unpacked / 'ledger.db'}"
    with serving(app, ledger=ledger) as server:
        async with raw(server) as client:
            await client.hello("many", ["text"], "input")
            await client.say("many", "more", id="m-new")
            await client.until_final("t61")
        await disconnected(server, "many")
        before = await asked(server, "/_api/sessions/many/thread")
    with serving(app, ledger=ledger) as server:
        assert await asked(server, "/_api/sessions/many/thread") == before
        checked = await asked(server, "/_api/sessions/many/verification")
        assert "broken" not in checked
        assert checked["keptThrough"] == checked["facts"]
