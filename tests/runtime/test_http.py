"""A runtime behind HTTP is the same runtime."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from arp.access.settings import Access
from arp.runtime.contract import types as ari
from arp.runtime.contract.errors import (
    AriError,
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    OperationDenied,
    Unavailable,
    Unimplemented,
)
from arp.runtime.contract.services import EventSubscription, RuntimeService
from arp.runtime.plain.function import FunctionRuntime, FunctionTurn
from arp.runtime.remote.http_gateway import HttpGateway
from arp.runtime.remote.http_runtime import HttpRuntime
from arp.server.serve import bind
from arp.testing import FakeRuntime, Says, Uses, Waits
from tests.runtime.broken_proxy import broken_proxy
from tests.support.asgi_serving import serving_asgi


@asynccontextmanager
async def served(runtime: RuntimeService, access: Access | None = None) -> AsyncIterator[str]:
    """Serve a runtime on a free port, and give its address."""
    listener = bind("127.0.0.1", 0)
    config = uvicorn.Config(HttpGateway(runtime, access), log_level="warning", lifespan="off")
    server = uvicorn.Server(config)
    running = asyncio.ensure_future(server.serve([listener]))
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = server.force_exit = True
        await running
        listener.close()


async def events_until_done(events: EventSubscription) -> list[ari.Event]:
    seen: list[ari.Event] = []
    async with asyncio.timeout(10):
        async for event in events:
            seen.append(event)
            if event.done:
                break
    return seen


async def test_a_turn_with_a_permission_over_http() -> None:
    fake = FakeRuntime({"go": [Uses("shell", {"command": "ls"}, "README", asks=True), Says("Ok.")]})
    async with served(fake) as url:
        remote = HttpRuntime(url)
        assert (await remote.version(ari.VersionRequest())).runtime_name == "fake"
        created = await remote.create_session(ari.CreateSessionRequest(title="T"))
        session_id = created.session.session_id
        events = await remote.session_events(ari.SessionEventsRequest(session_id))
        await remote.send_message(
            ari.SendMessageRequest(session_id, ari.RuntimeMessage(content="go"))
        )
        async with asyncio.timeout(10):
            seen = [await anext(events) for _ in range(3)]
        edited = ari.PermissionResponse("allow", updated_input={"command": "pwd"})
        await remote.respond_permission(
            ari.RespondPermissionRequest(session_id, seen[-1].request_id, edited)
        )
        seen += await events_until_done(events)
        assert [event.sequence for event in seen] == list(range(2, 2 + len(seen)))
        assert seen[-1].content == "Ok."
        assert fake.ran == [("shell", {"command": "pwd"})]
        assert fake.calls("respond_permission") == 1
        await remote.close()
        with pytest.raises(FailedPrecondition, match="the connection to the runtime is closed"):
            await remote.version(ari.VersionRequest())


async def test_errors_come_with_their_code() -> None:
    async def upper(turn: FunctionTurn) -> str:
        return turn.text.upper()

    async with served(FunctionRuntime(upper)) as url:
        remote = HttpRuntime(url)
        with pytest.raises(NotFound, match="there is no session 'none'"):
            await remote.get_session(ari.GetSessionRequest("none"))
        with pytest.raises(NotFound):
            await remote.session_events(ari.SessionEventsRequest("no/such"))
        with pytest.raises(InvalidArgument, match="api_version"):
            await remote.version(ari.VersionRequest("v9"))
        with pytest.raises(Unimplemented, match="this runtime has no list_models"):
            await remote.list_models(ari.ListModelsRequest("s"))
        async with httpx.AsyncClient(base_url=url) as client:
            answer = await client.post("/ari/v1/send_message", content=b'{"session_id": 1}')
            assert answer.status_code == 400
            assert answer.json()["code"] == "InvalidArgument"
            assert "session_id" in answer.json()["message"]
            answer = await client.post("/ari/v1/close", content=b"{}")
            assert answer.status_code == 501
        await remote.close()
    remote = HttpRuntime(url)
    with pytest.raises(Unavailable):
        await remote.version(ari.VersionRequest())
    await remote.close()


@pytest.mark.parametrize(
    ("status", "location", "said"),
    [(200, "", "cannot be read"), (404, "", "is no gateway of ARI: it answered 404: Portal"),
     (307, "/login", "it redirects (307) to http://127.0.0.1")],
)  # fmt: skip
async def test_a_page_in_the_place_of_a_gateway_is_named(
    status: int, location: str, said: str
) -> None:
    async def page(request: Request) -> Response:
        headers = {"location": location} if location else {}
        return Response("<h1>Portal</h1>", status, headers, "text/html")

    route = Route("/{path:path}", page, methods=["GET", "POST"])
    with serving_asgi(Starlette(routes=[route])) as url:
        remote = HttpRuntime(url)
        with pytest.raises(AriError) as called:
            await remote.version(ari.VersionRequest())
        with pytest.raises(Unavailable) as subscribed:
            await remote.session_events(ari.SessionEventsRequest("s"))
        await remote.close()
    assert said in called.value.message
    assert ("got text/html" if status == 200 else said) in subscribed.value.message


async def test_who_may_not_come_in() -> None:
    async with served(FakeRuntime(), Access(token="s3cret")) as url:
        for token in (None, "other", "s3cret"):
            remote = HttpRuntime(url, token=token)
            if token == "s3cret":
                await remote.version(ari.VersionRequest())
            else:
                with pytest.raises(OperationDenied, match="a valid token is needed"):
                    await remote.version(ari.VersionRequest())
            await remote.close()
        bearer = {"authorization": "Bearer s3cret"}
        async with httpx.AsyncClient(base_url=url, headers=bearer) as client:
            foreign = {"origin": "https://evil.example"}
            answer = await client.post("/ari/v1/version", headers=foreign)
            assert answer.status_code == 403
            answer = await client.post("/ari/v1/version", headers={"host": "evil.example"})
            assert answer.status_code == 421


async def test_stream_that_breaks_goes_on_behind_the_last_event() -> None:
    fake = FakeRuntime({"go": [Says("One."), Waits(), Says("Two.")]})
    async with served(fake) as url, broken_proxy(url) as (port, cut):
        remote = HttpRuntime(f"http://127.0.0.1:{port}")
        created = await remote.create_session(ari.CreateSessionRequest())
        session_id = created.session.session_id
        events = await remote.session_events(ari.SessionEventsRequest(session_id))
        message = ari.RuntimeMessage(content="go")
        await remote.send_message(ari.SendMessageRequest(session_id, message))
        async with asyncio.timeout(10):
            seen = [await anext(events) for _ in range(2)]
        cut()
        fake.proceed()
        seen += await events_until_done(events)
        assert [event.content for event in seen] == ["", "One.", "Two.", "One.Two."]
        await remote.close()
