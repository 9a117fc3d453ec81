"""The ASGI application, mounted anywhere: also where nobody runs its lifespan."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
import uvicorn
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.routing import Mount
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from arp import Access, App, Turn, serve
from arp.client.client import ArpClient
from arp.server.application import Application
from arp.server.serve import bind
from arp.store.errors import StoreUnwritable
from arp.store.sqlite import SqliteStore
from arp.transport.websocket import Scope
from tests.support.waiting import becomes


def app() -> App:
    made = App(title="Mounted")

    @made.agent
    async def agent(turn: Turn) -> None:
        await turn.say(f"re {turn.text}")

    return made


def in_starlette(inner: Application) -> Any:
    return Starlette(routes=[Mount("/deep/agent", app=inner)])


def in_fastapi(inner: Application) -> Any:
    api = FastAPI()
    api.mount("/deep/agent", inner)

    @api.get("/own")
    async def own() -> dict[str, str]:
        return {"own": "route"}

    return api


class Parent(NamedTuple):
    """A server of somebody else, in which the application is mounted."""

    port: int
    inner: Application


@contextmanager
def serving(parent: Any, inner: Application) -> Iterator[Parent]:
    """Serves a parent application with uvicorn as it comes, without our settings."""
    listener = bind("127.0.0.1", 0)
    config = uvicorn.Config(parent, log_level="critical", lifespan="on", loop="asyncio")
    server = uvicorn.Server(config)

    async def run() -> None:
        try:
            await server.serve([listener])
        finally:
            await inner.aclose()

    thread = threading.Thread(target=lambda: asyncio.run(run()))
    thread.start()
    try:
        yield Parent(listener.getsockname()[1], inner)
    finally:
        server.should_exit = True
        thread.join(10)
        assert not thread.is_alive()


MOUNTS: list[Callable[[Application], Any]] = [in_starlette, in_fastapi]


@pytest.mark.parametrize("mount", MOUNTS)
@pytest.mark.parametrize("scheme", ["ws", "http+sse", "http"])
async def test_mounted_application_serves_every_transport(
    mount: Callable[[Application], Any], scheme: str
) -> None:
    """Under a prefix, in a parent that does not run a mounted application's lifespan."""
    inner = app().asgi
    path = "/deep/agent/_arp/v1" if scheme == "ws" else "/deep/agent"
    with serving(mount(inner), inner) as parent:
        url = f"{scheme}://127.0.0.1:{parent.port}{path}"
        async with asyncio.timeout(10), ArpClient(url) as client:
            turn = await client.ask("hi")
            said = client.screen.text(turn.id)
    assert said == "re hi"


@pytest.mark.parametrize("mount", MOUNTS)
async def test_mounted_routes_work_under_the_prefix_and_the_parents_beside(
    mount: Callable[[Application], Any],
) -> None:
    """The page, its files, lists, workflows, health; what is not there is a 404 of ours."""
    inner = app().asgi
    with serving(mount(inner), inner) as parent:
        base = f"http://127.0.0.1:{parent.port}"
        async with asyncio.timeout(10), httpx.AsyncClient(base_url=base) as client:
            statuses = {
                path: (await client.get(path)).status_code
                for path in (
                    "/deep/agent/",
                    "/deep/agent/health",
                    "/deep/agent/_static/icon.svg",
                    "/deep/agent/_static/nothing.js",
                    "/deep/agent/_api/workflows",
                    "/deep/agent/_api/chats/none",
                    "/deep/agent/nothing",
                    "/nothing",
                )
            }
            ran = await client.post("/deep/agent/agent", json={"message": "hi"})
            foreign = await client.get("/deep/agent/", headers={"host": "attacker.test"})
    assert statuses == {
        "/deep/agent/": 200,
        "/deep/agent/health": 200,
        "/deep/agent/_static/icon.svg": 200,
        "/deep/agent/_static/nothing.js": 404,
        "/deep/agent/_api/workflows": 200,
        "/deep/agent/_api/chats/none": 404,
        "/deep/agent/nothing": 404,
        "/nothing": 404,
    }
    assert ran.json()["text"] == "re hi"
    assert foreign.status_code == 421


async def test_mounted_app_without_access_serves_nobody_from_elsewhere() -> None:
    """The parent may listen anywhere; uvicorn tells the address that a proxy here forwarded for."""
    inner = app().asgi
    with serving(in_starlette(inner), inner) as parent:
        base, far = f"127.0.0.1:{parent.port}/deep/agent", {"x-forwarded-for": "203.0.113.9"}
        async with asyncio.timeout(10), httpx.AsyncClient() as client:
            page = await client.get(f"http://{base}/", headers=far)
            ran = await client.post(f"http://{base}/agent", json={"message": "hi"}, headers=far)
            with pytest.raises(InvalidStatus) as refused:
                await connect(f"ws://{base}/_arp/v1", additional_headers=far)
            here = await client.get(f"http://{base}/")
    assert (page.status_code, ran.status_code, here.status_code) == (403, 403, 200)
    assert refused.value.response.status_code == 403
    assert ran.json()["payload"]["error"] == (
        "this app has neither token nor hook, so it serves its own machine alone; "
        "give App an Access(token=…), or an Access(authenticate=…)"
    )


async def test_mounted_app_with_a_hook_serves_those_whom_the_hook_knows() -> None:
    """Also one that knows everybody, where the parent looks after who comes in."""
    everybody = App(access=Access(authenticate=lambda _: "guest"))

    @everybody.agent
    async def agent(turn: Turn) -> None:
        await turn.say("hello")

    inner = everybody.asgi
    with serving(in_starlette(inner), inner) as parent:
        url, far = f"http://127.0.0.1:{parent.port}", {"x-forwarded-for": "203.0.113.9"}
        async with asyncio.timeout(10), httpx.AsyncClient(base_url=url) as client:
            ran = await client.post("/deep/agent/agent", json={"message": "hi"}, headers=far)
    assert ran.json()["text"] == "hello"


def test_mounted_app_with_a_name_of_its_own_and_nothing_else_is_refused_at_once() -> None:
    """Whoever reached the proxy in front was let in."""
    named = App(access=Access(hosts=("agents.example",)))
    with pytest.raises(ValueError, match=r"^agents\.example can be reached by others: set --token"):
        _ = named.asgi
    with pytest.raises(ValueError, match=r"^agents\.example can be reached by others"):
        serve(named, port=0)


async def test_mounted_app_behind_a_trusted_proxy_serves_its_own_machine_alone() -> None:
    """The parent's server leaves the proxy's address as it is."""
    named = App(access=Access(hosts=("agents.example",), trusted_proxies=("127.0.0.1",)))
    named.agent(agent)
    inner = named.asgi
    statuses = []
    for forwarded in ({"x-forwarded-for": "203.0.113.9"}, {}, {"x-forwarded-for": "127.0.0.1"}):
        transport = httpx.ASGITransport(app=inner)
        async with httpx.AsyncClient(transport=transport, base_url="http://agents.example") as one:
            statuses.append((await one.get("/_api/chats", headers=forwarded)).status_code)
    await inner.aclose()
    assert statuses == [403, 403, 200]


async def test_route_of_the_parent_is_its_own() -> None:
    """Our guard stands before our routes alone."""
    inner = app().asgi
    with serving(in_fastapi(inner), inner) as parent:
        async with asyncio.timeout(10), httpx.AsyncClient() as client:
            response = await client.get(f"http://127.0.0.1:{parent.port}/own")
    assert response.json() == {"own": "route"}


async def test_many_first_requests_start_one_hub() -> None:
    """They come at once, before anything was started."""
    inner = app().asgi
    hubs = await asyncio.gather(*[inner.hub() for _ in range(20)])
    await inner.aclose()
    assert len({id(hub) for hub in hubs}) == 1


async def test_hub_starts_again_after_a_start_that_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ledger could not be opened: everyone is told, and the next request tries again."""
    inner = app().asgi
    error = StoreUnwritable("ledger.db", "no room")

    def broken(_: str) -> Any:
        raise error

    monkeypatch.setattr("arp.server.state.open_store", broken)
    status, body = await ask(inner, "GET", "/_api/chats")
    failures = await asyncio.gather(*[inner.hub() for _ in range(3)], return_exceptions=True)
    monkeypatch.undo()
    hub = await inner.hub()
    await inner.aclose()
    assert status == 503
    assert b"try again later" in body
    assert b"no room" not in body
    assert failures == [error] * 3
    assert hub is not None


async def ask(inner: Application, method: str, path: str) -> tuple[int, bytes]:
    """Asks the application itself, without a socket."""
    transport = httpx.ASGITransport(app=inner)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        response = await client.request(method, path)
    return response.status_code, response.content


async def test_app_without_an_agent_says_so_when_it_starts() -> None:
    """Not at the first input."""
    inner = App(title="Empty").asgi
    with pytest.raises(RuntimeError, match=r"no agent; write @app\.agent"):
        await inner.hub()


class Server:
    """The other side of the lifespan."""

    def __init__(self) -> None:
        self.said: list[Any] = []
        self.to_say = asyncio.Queue[Any]()

    async def send(self, message: Any) -> None:
        """As ASGI has it."""
        self.said.append(message)


LIFESPAN: Scope = {"type": "lifespan"}


async def test_lifespan_starts_the_hub_and_closes_it() -> None:
    """Where a server runs it."""
    inner, server = app().asgi, Server()
    running = asyncio.ensure_future(inner(LIFESPAN, server.to_say.get, server.send))
    server.to_say.put_nowait({"type": "lifespan.startup"})
    await becomes(lambda: bool(server.said))
    hub = await inner.hub()
    server.to_say.put_nowait({"type": "lifespan.shutdown"})
    await running
    kinds = [message["type"] for message in server.said]
    assert kinds == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
    assert not hub.writer.service.is_open


async def test_lifespan_that_cannot_start_says_why(tmp_path: Path) -> None:
    """The server shows it and stops."""
    (tmp_path / "file").touch()
    outer = App(ledger=f"sqlite:{tmp_path}/file/ledger.db")
    outer.agent(agent)
    inner, server = outer.asgi, Server()
    server.to_say.put_nowait({"type": "lifespan.startup"})
    await inner(LIFESPAN, server.to_say.get, server.send)
    assert server.said[0]["type"] == "lifespan.startup.failed"
    assert "ledger.db: cannot create its directory" in server.said[0]["message"]


async def agent(_: Turn) -> None:
    """Does nothing."""


async def test_unexpected_fault_shows_no_internals(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server answers 500 for it; the text is its own."""
    inner = app().asgi

    async def broken(*_: Any, **__: Any) -> Any:
        raise ZeroDivisionError("secret")

    hub = await inner.hub()
    monkeypatch.setattr(hub.listing, "page", broken)
    transport = httpx.ASGITransport(app=inner, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        response = await client.get("/_api/chats")
    await inner.aclose()
    assert response.status_code == 500
    assert "secret" not in response.text


@pytest.mark.parametrize(
    ("path", "method", "kept"),
    [
        ("/_api/chats", "GET", "no-store"),
        ("/_api/chats/none", "GET", "no-store"),
        ("/nothing", "GET", "no-store"),
        ("/agent", "POST", "no-store"),
        ("/health", "GET", "no-store"),
        ("/metrics", "GET", "no-store"),
        ("/", "GET", "no-cache"),
        ("/_inspect", "GET", "no-cache"),
    ],
)
async def test_no_browser_guesses_or_keeps_what_is_answered(
    path: str, method: str, kept: str
) -> None:
    """Also refusals; pages and files say themselves how long they are good."""
    inner = app().asgi
    transport = httpx.ASGITransport(app=inner)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        answer = await client.request(method, path, json={"message": "hi"})
        refused = await client.request(method, path, headers={"origin": "http://evil.example"})
    await inner.aclose()
    seals = ("x-content-type-options", "cache-control")
    assert [answer.headers.get_list(name) for name in seals] == [["nosniff"], [kept]]
    assert refused.status_code == 403
    assert [refused.headers.get_list(name) for name in seals] == [["nosniff"], ["no-store"]]


async def test_ready_opens_the_ledger_and_health_does_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """What is wrong stands in the log, once; outside it names no file."""
    ledger = tmp_path / "ledger.db"
    other = SqliteStore(ledger)
    await other.open()
    outer = App(ledger=f"sqlite:{ledger}", access=Access(token="secret"))
    outer.agent(agent)
    inner = outer.asgi
    alive, not_ready = await ask(inner, "GET", "/health"), await ask(inner, "GET", "/ready")
    again = await ask(inner, "GET", "/ready")
    await other.aclose()
    ready = await ask(inner, "GET", "/ready")
    hub = await inner.hub()
    await inner.aclose()
    assert alive == (200, b'{"status":"ok"}')
    assert not_ready == again
    assert not_ready[0] == 503
    assert json.loads(not_ready[1]) == {
        "status": "not ready",
        "error": "the ledger cannot be opened; the server's log says why",
    }
    assert caplog.text.count(f"ledger {ledger} is in use by process {os.getpid()}") == 1
    assert (ready[0], json.loads(ready[1])["status"]) == (200, "ready")
    assert hub is not None


async def test_ready_says_so_when_the_ledger_cannot_be_read_any_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Open is not enough."""
    inner = app().asgi
    hub = await inner.hub()

    async def broken() -> list[str]:
        raise StoreUnwritable("ledger.db", "no room")

    monkeypatch.setattr(hub.store, "open_sessions", broken)
    status, body = await ask(inner, "GET", "/ready")
    await inner.aclose()
    assert status == 503
    assert b"no room" not in body
