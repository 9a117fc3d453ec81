"""An app below a path of another ASGI application, also of one that knows nothing of lifespans."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import httpx
import pytest
from fastapi import Depends, FastAPI, HTTPException
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from arp import Access, App, Turn
from tests.support.asgi_serving import serving_asgi


def made() -> App:
    app = App("Inside")

    @app.agent
    async def agent(turn: Turn) -> None:
        """Answers."""
        await turn.say(f"re {turn.text}")

    return app


async def shop(scope: Scope, receive: Receive, send: Send) -> None:
    """As Django does: HTTP alone."""
    if scope["type"] != "http":
        raise ValueError(f"this can only handle HTTP, not {scope['type']}")
    await PlainTextResponse(f"shop {scope['root_path']} {scope['path']}")(scope, receive, send)


async def test_both_are_served_and_the_app_runs_with_the_server() -> None:
    app = made()
    with serving_asgi(app.mounted("/agent", inside=shop)) as url:
        assert app.asgi.state.running is not None  # before the first request
        async with httpx.AsyncClient(base_url=url) as client:
            for path in ("/", "/agents", "/agent2/x", "/other/agent/"):
                assert (await client.get(path)).text == f"shop  {path}"
            answered = await client.post("/agent/agent", json={"message": "x"})
            assert answered.json()["text"] == "re x"
            moved = await client.get("/agent?session=s")
            assert (moved.status_code, moved.headers["location"]) == (307, "/agent/?session=s")
            assert "<arp-page>" in (await client.get("/agent/")).text
        async with connect(url.replace("http", "ws") + "/agent/_arp/v1") as socket:
            assert json.loads(await socket.recv())["capabilities"]["title"] == "Inside"
    assert app.asgi.state.running is None


async def test_lifespan_of_the_other_application_is_around_that_of_the_app() -> None:
    app, seen = made(), list[tuple[str, bool]]()

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        seen.append(("begins", app.asgi.state.running is not None))
        yield
        seen.append(("ends", app.asgi.state.running is not None))

    async def place(request: Request) -> Response:
        return PlainTextResponse(str(request.url.path))

    parent = Starlette(routes=[Route("/place", place)], lifespan=lifespan)
    with serving_asgi(app.mounted("/agent/", inside=parent)) as url:
        async with httpx.AsyncClient(base_url=url) as client:
            assert (await client.get("/place")).text == "/place"
            assert (await client.get("/agent/health")).status_code == 200
    assert seen == [("begins", False), ("ends", False)]


async def asked(application: Any, *events: str) -> list[Any]:
    """Runs a lifespan as a server does; returns what it answers."""
    waiting, answers = list(events), list[Any]()

    async def receive() -> dict[str, str]:
        return {"type": f"lifespan.{waiting.pop(0)}"}

    async def send(message: Any) -> None:
        answers.append(message)

    await application({"type": "lifespan"}, receive, send)
    return answers


async def test_other_application_that_cannot_start_is_reported_and_the_app_does_not_start() -> None:
    app = made()

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        raise RuntimeError("no database")
        yield

    answers = await asked(app.mounted("/a", inside=Starlette(lifespan=lifespan)), "startup")
    assert answers[0]["type"] == "lifespan.startup.failed"
    assert "no database" in answers[0]["message"]
    assert app.asgi.state.running is None


async def test_app_that_cannot_start_is_reported_and_the_other_application_ends() -> None:
    ended = list[bool]()

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        ended.append(True)

    empty = App()  # it has no agent
    answers = await asked(empty.mounted("/a", inside=Starlette(lifespan=lifespan)), "startup")
    assert answers[0]["type"] == "lifespan.startup.failed"
    assert "the app has no agent" in answers[0]["message"]
    assert ended == [True]


@pytest.mark.parametrize("path", ["", "/", "agent", "//x", "/a?b", "/{x}"])
def test_path_that_is_none_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="path: expected a path as /agent"):
        made().mounted(path, inside=shop)


def test_what_is_no_application_is_refused() -> None:
    wrong: Any = "shop"
    with pytest.raises(ValueError, match="inside: expected an ASGI application, got str"):
        made().mounted("/agent", inside=wrong)


@pytest.mark.parametrize("access", [None, Access(token="t0ken-t0ken")])
async def test_mount_that_keeps_nobody_out_says_so_once(
    access: Access | None, caplog: pytest.LogCaptureFixture
) -> None:
    """At the first WebSocket or request that needs a user, and not for a page. `Depends` of the
    application around it do not run for it."""

    async def refuse() -> None:
        raise HTTPException(403, "not signed in")

    inner = App("Inside", access=access)
    inner.agent("agent")(quiet)
    parent = FastAPI(dependencies=[Depends(refuse)])
    parent.mount("/agent", inner.asgi)
    with serving_asgi(parent) as url:
        async with httpx.AsyncClient(base_url=url) as client:
            assert (await client.get("/agent/")).status_code == 200
            assert "everybody on this machine can use" not in caplog.text
            headers = {"authorization": "Bearer t0ken-t0ken"}
            for _ in range(2):
                answer = await client.get("/agent/_api/chats", headers=headers)
                assert answer.status_code == 200, "the dependency of the parent guards nothing here"
        with suppress(InvalidStatus):
            async with connect(url.replace("http", "ws") + "/agent/_arp/v1"):
                pass
    said = [one for one in caplog.messages if "everybody on this machine can use" in one]
    assert len(said) == (1 if access is None else 0)


async def quiet(turn: Turn) -> None:
    """Says nothing."""
