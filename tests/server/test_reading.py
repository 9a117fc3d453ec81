"""Routes that only look at a session neither load it nor write a fact, whoever asks."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import pytest

from arp import Access, App, IncomingConnection, Turn
from arp.access.principal import Principal
from arp.hub.hub import Hub
from arp.live.settings import HubSettings
from arp.store.errors import StoreUnwritable
from arp.testing import ServedApp, serve
from tests.support.waiting import becomes

NAMES = ["one", "two", "three"]


@dataclasses.dataclass
class Settings:
    model: str = "small"


class Open(NamedTuple):
    """A served app with sessions that are not in memory."""

    served: ServedApp
    hub: Hub
    file: str
    """Address of a file of session `one`."""

    def evict(self) -> None:
        self.hub.lifetimes.evict(float("inf"))


def authenticate(connection: IncomingConnection) -> str | None:
    return connection.token or None


def app_with() -> App:
    app = App(
        "Read",
        access=Access(authenticate=authenticate),
        session_settings=Settings,
        settings=HubSettings(stop_grace_s=0.1),
    )

    @app.agent
    async def agent(turn: Turn) -> None:
        ref = await turn.save_file("notes.txt", turn.text.encode())
        await turn.say(turn.file_url(ref))
        if turn.text == "wait":
            await asyncio.Event().wait()

    return app


def bearer(name: str) -> dict[str, str]:
    return {"authorization": f"Bearer {name}"}


@pytest.fixture
async def opened() -> AsyncIterator[Open]:
    async with serve(app_with()) as served:
        hub = await served._application.hub()
        file = ""
        async with served.http(headers=bearer("ann")) as ann:
            for name in NAMES:
                body = {"message": f"notes of {name}", "session_id": name}
                answered = await ann.post("/agent", json=body)
                file = file or answered.json()["text"]
            rated = {"turn_id": "t1", "rating": "up"}
            (await ann.post("/_api/feedback/one", json=rated)).raise_for_status()
            chosen = {"fields": {"model": "large"}}
            (await ann.put("/_api/settings/one", json=chosen)).raise_for_status()
        await becomes(lambda: all(live.idle for live in hub.sessions.values()))
        made = Open(served, hub, file)
        made.evict()
        assert hub.sessions == {}
        yield made


ROUTES = [
    "/_api/chats/one",
    "/_api/chats/one?before=t9&limit=1",
    "/_api/runs",
    "/_api/runs?session_id=one",
    "/_api/runs/one.t1",
    "/_api/settings/one",
    "/_api/feedback/one",
    "FILE",
]


async def log(hub: Hub) -> dict[str, list[tuple[int, bytes]]]:
    return {name: await hub.store.read(name, 0, 10_000) for name in NAMES}


@pytest.mark.parametrize("route", ROUTES)
async def test_a_look_loads_nothing_and_writes_no_fact(opened: Open, route: str) -> None:
    """And the answer is the one of a session in memory, byte for byte."""
    hub, before = opened.hub, await log(opened.hub)
    url = opened.file if route == "FILE" else route
    async with opened.served.http(headers=bearer("ann")) as ann:
        looked = await ann.get(url)
        assert looked.status_code == 200, looked.text
        assert hub.sessions == {}
        for name in NAMES:
            await hub.find(name, Principal("ann"))
        loaded = await ann.get(url)
    assert looked.content == loaded.content
    assert sorted(hub.sessions) == sorted(NAMES)
    assert await log(hub) == before


@pytest.mark.parametrize("where", ["store", "memory"])
async def test_a_session_of_another_user_is_answered_like_one_that_does_not_exist(
    opened: Open, where: str
) -> None:
    hub, before = opened.hub, await log(opened.hub)
    if where == "memory":
        await hub.find("one", Principal("ann"))
    loaded = list(hub.sessions)
    async with opened.served.http(headers=bearer("bob")) as bob:
        for route in ROUTES:
            if route == "/_api/runs":
                assert (await bob.get(route)).json() == []
                continue
            found = await bob.get(opened.file if route == "FILE" else route)
            nothing = await bob.get(route.replace("one", "none")) if route != "FILE" else found
            assert (found.status_code, nothing.status_code) == (404, 404)
            assert found.text.replace("one", "…") == nothing.text.replace("none", "…")
    assert list(hub.sessions) == loaded
    assert await log(hub) == before


@pytest.mark.parametrize("route", ROUTES)
async def test_a_session_that_was_deleted_meanwhile_is_not_found(
    opened: Open, route: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a list of runs it is missing, and the others are there."""
    store = opened.hub.store
    load_model = store.load_model

    async def deleting(session_id: str, name: str) -> tuple[int, bytes] | None:
        if session_id == "one":
            await store.delete("one")
        return await load_model(session_id, name)

    monkeypatch.setattr(store, "load_model", deleting)
    async with opened.served.http(headers=bearer("ann")) as ann:
        looked = await ann.get(opened.file if route == "FILE" else route)
    if route == "/_api/runs":
        assert [row["id"] for row in looked.json()] == ["three.t1", "two.t1"]
    else:
        assert (looked.status_code, looked.json()["payload"]["code"]) == (404, 8)
    assert opened.hub.sessions == {}


async def test_history_of_a_session_that_is_deleted_while_its_turns_are_read_is_not_found(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Turns may be missing in it."""
    hub = opened.hub
    page = hub.history.page

    async def deleting(*arguments: Any) -> Any:
        found = await page(*arguments)
        await hub.store.delete("one")
        return found

    monkeypatch.setattr(hub.history, "page", deleting)
    async with opened.served.http(headers=bearer("ann")) as ann:
        assert (await ann.get("/_api/chats/one")).status_code == 404


async def test_a_run_that_is_not_over_is_read_from_its_live_session(opened: Open) -> None:
    """Only there does it end: the answer is the one of a loaded session."""
    hub = opened.hub
    async with opened.served.http(headers=bearer("ann")) as ann:
        body = {"message": "wait", "session_id": "waits"}
        posting = asyncio.ensure_future(ann.post("/agent", json=body))
        await becomes(lambda: "waits" in hub.sessions)
        live = hub.sessions["waits"]
        # The file is saved by then, so nothing else of the turn is under way.
        await becomes(lambda: live.session.screen.text("t1") != "")
        await live.written()
        hub.lifetimes.fail([live], StoreUnwritable("ledger.db", "the disk was full"))
        assert (await posting).status_code == 503
        listed = (await ann.get("/_api/runs?session_id=waits")).json()
        assert "waits" not in hub.sessions
        run = (await ann.get("/_api/runs/waits.t1")).json()
        assert "waits" in hub.sessions
    assert [row["status"] for row in listed] == ["running"], "the ledger has no end of it"
    assert run["status"] == "failed"


async def test_a_limit_of_runs_reads_no_more_sessions_than_it_needs(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    peek = opened.hub.directory.peek

    async def counted(meta: Any) -> Any:
        read.append(meta.id)
        return await peek(meta)

    monkeypatch.setattr(opened.hub.directory, "peek", counted)
    async with opened.served.http(headers=bearer("ann")) as ann:
        rows = (await ann.get("/_api/runs?limit=2")).json()
    newest = [row["session_id"] for row in rows]
    assert (len(rows), read) == (2, newest)
