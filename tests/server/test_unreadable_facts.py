"""A ledger with a fact that cannot be read: its session is shown up to it, the others go on."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import connect

from arp.store.sqlite import SqliteStore
from tests.server.processes import Process, start
from tests.server.sockets import Raw
from tests.store.samples import slip_in

AGENT = Path(__file__).with_name("oddly.py")

BAD = b'{"sessionId":"bad","sequence":1,"type":"model.delta","payload":{"text":},"threadId":"main"}'

ALL = ["text", "markdown"]


async def talk(server: Process, session_id: str, *texts: str) -> list[Any]:
    """Says texts, each when the turn before is over, and gives all that came."""
    async with connect(server.ws) as socket:
        raw = Raw(socket)
        await raw.hello(session_id, ALL, "streaming")
        for text in texts:
            await raw.say(session_id, text, id=text)
            ack = await raw.until("ack", id=text)
            await raw.until("commit", final=True, turn_id=ack["turn_id"])
        return raw.seen


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Process]:
    """A server over a ledger in which fact `bad` of session `bad` is no JSON."""
    ledger = tmp_path / "ledger.db"
    first = await start(AGENT, ledger)
    try:
        await talk(first, "bad", "one", "two")
        await talk(first, "good", "one")
        assert await first.stop(10) == 0
    finally:
        await first.aclose()
    store = SqliteStore(ledger)
    await store.open()
    row = await store.session("bad")
    assert row is not None
    await slip_in(store, "bad", row.last_sequence, BAD, b'{"sequence":1}')
    await store.aclose()
    second = await start(AGENT, ledger)
    yield second
    await second.aclose()


async def test_subclasses_of_str_are_shown_and_kept_as_texts(tmp_path: Path) -> None:
    """What a user of LangChain writes in the first minute."""
    ledger = tmp_path / "ledger.db"
    running = await start(AGENT, ledger)
    try:
        seen = await talk(running, "s", "one", "two")
        await running.kill()
        running = await start(AGENT, ledger)
        async with httpx.AsyncClient(base_url=running.http) as client:
            chat = (await client.get("/_api/chats/s")).json()
    finally:
        await running.aclose()
    said = [one["payload"]["delta"] for one in seen if one["type"] == "delta"]
    assert "".join(said) == "You said one. You said two. "
    shown = [one["content"] for one in chat["messages"]]
    assert shown == ["one", "You said one. ", "two", "You said two. "]


async def test_session_opens_up_to_the_fact_and_takes_nothing_more(server: Process) -> None:
    async with connect(server.ws) as socket:
        raw = Raw(socket)
        ready = await raw.hello("bad", ALL, "streaming")
        told = await raw.until("error")
        await raw.say("bad", "three", id="i3")
        refused = await raw.until("error")
    texts = [
        part["props"]["content"]
        for one in raw.seen
        if one["type"] == "render"
        for part in one["components"]
    ]
    assert texts == ["You said one. ", "You said two. "]
    place = ready["seq"] + 1
    assert (
        f"session bad: fact {place} cannot be read (JSON is malformed" in told["payload"]["error"]
    )
    assert (refused["payload"]["code"], refused["payload"]["id"]) == (15, "i3")
    assert f"session bad: fact {place} cannot be read" in refused["payload"]["error"]
    assert (await talk(server, "good", "two"))[-1]["final"] is True


async def test_http_gives_what_there_is_and_names_the_fact(server: Process) -> None:
    async with httpx.AsyncClient(base_url=server.http) as client:
        chat = await client.get("/_api/chats/bad")
        good = await client.get("/_api/chats/good")
        renamed = await client.patch("/_api/chats/bad", json={"title": "x"})
        asked = await client.post("/agent", json={"message": "x", "session_id": "bad"})
        page = await client.get("/_api/sessions/bad/events")
        behind = await client.get(
            "/_api/sessions/bad/events", params={"after": page.json()["next"]}
        )
        deleted = await client.delete("/_api/chats/bad")
        gone = await client.get("/_api/chats/bad")
    place = page.json()["next"] + 1
    assert chat.status_code == 200
    assert [one["content"] for one in chat.json()["messages"]] == [
        *("one", "You said one. "),
        *("two", "You said two. "),
    ]
    assert f"fact {place} cannot be read" in chat.json()["read_only"]
    assert "read_only" not in good.json()
    assert [renamed.status_code, asked.status_code] == [403, 403]
    for refused in (renamed, asked, behind):
        assert f"session bad: fact {place} cannot be read" in refused.json()["payload"]["error"]
    assert [fact["sequence"] for fact in page.json()["events"]] == list(range(1, place))
    assert (deleted.status_code, gone.status_code) == (200, 404)


@pytest.mark.parametrize("of", ["file", pytest.param("server", marks=pytest.mark.slow)])
@pytest.mark.parametrize("command", ["events", "evidence"])
async def test_commands_name_the_fact(
    server: Process, tmp_path: Path, command: str, of: str
) -> None:
    ledger = f"sqlite:{tmp_path / 'ledger.db'}"
    where = ["--ledger", ledger] if of == "file" else ["--url", server.http]
    asked = ["evidence", "export", "bad", "--to", str(tmp_path / "x.zip")]
    words = asked if command == "evidence" else ["events", "bad", "--json"]
    done = await asyncio.to_thread(arp, *words, *where)
    assert done.returncode == 1
    assert "ession bad: fact " in done.stderr  # a capital where the sentence begins with it
    assert " cannot be read (JSON is malformed" in done.stderr
    assert "Traceback" not in done.stderr
    if command == "events":
        facts = [json.loads(fact) for fact in done.stdout.splitlines()]
        assert f"fact {len(facts) + 1} cannot" in done.stderr
        assert facts[-1]["type"] == "channel.disconnected"
    rows = await asyncio.to_thread(arp, "sessions", *where)
    assert (rows.returncode, rows.stderr) == (0, "")
    assert "bad" in rows.stdout
    assert "good" in rows.stdout


def arp(*words: str) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "arp.cli", *words]
    return subprocess.run(line, capture_output=True, text=True, timeout=30, check=False)
