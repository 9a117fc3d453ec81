"""The control plane's WebSocket: who may come in, and what an open connection may do."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from arp import Access, App
from tests.server import worker
from tests.server.rpc import Rpc, RpcFailed, rpc
from tests.support.serving import Serving, serving

USERS = {"adas": "ada", "bobs": "bob"}


def served(access: Access) -> App:
    app = App(access=access)
    app.agent(worker.worker)
    return app


@pytest.fixture
def server() -> Iterator[Serving]:
    access = Access(authenticate=lambda connection: USERS.get(connection.token))
    with serving(served(access)) as running:
        yield running


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


async def test_each_user_sees_their_own_sessions_alone(server: Serving) -> None:
    async with (
        asyncio.timeout(15),
        rpc(server.port, additional_headers=bearer("adas")) as ada,
        rpc(server.port, additional_headers=bearer("bobs")) as bob,
    ):
        await ada.say("hers", "hello")
        for method, more in (
            ("agentSession/read", {}),
            ("agentSession/events", {}),
            ("agentSession/subscribe", {}),
            ("agentSession/thread/resume", {}),
            ("agentSession/turn/cancel", {}),
            ("agentSession/turn/start", {"input": {"text": "x"}}),
            ("agentSession/action/respond", {"actionId": "t1.a.1", "response": True}),
            ("agentSession/queue/remove", {"turnId": "t1"}),
            ("task/create", {"objective": "x"}),
            ("task/list", {}),
        ):
            with pytest.raises(RpcFailed) as refused:
                await bob.call(method, sessionId="hers", **more)
            assert refused.value.name == "SESSION_NOT_FOUND", method
        assert (await bob.call("agentSession/list"))["sessions"] == []
        assert len((await ada.call("agentSession/list"))["sessions"]) == 1


async def test_token_may_come_with_initialize(server: Serving) -> None:
    async with asyncio.timeout(15), rpc(server.port) as program:
        with pytest.raises(RpcFailed) as refused:
            await program.call("agentSession/list")
        assert refused.value.name == "UNAUTHENTICATED"
        with pytest.raises(RpcFailed):
            await program.call("initialize", token="wrong")
        await program.call("initialize", token="adas")
        assert await program.call("agentSession/list") == {"sessions": []}
        assert not server.application.state.unknown_peers


@pytest.mark.parametrize(
    "headers", [{"Origin": "https://elsewhere.example"}, {"Host": "rebound.example"}]
)
async def test_pages_and_names_that_are_not_ours_do_not_come_in(
    server: Serving, headers: dict[str, str]
) -> None:
    uri = f"ws://127.0.0.1:{server.port}/_api/rpc"
    with pytest.raises(InvalidStatus) as refused:
        async with connect(uri, additional_headers={**bearer("adas"), **headers}):
            pass
    assert refused.value.response.status_code == 403


async def test_own_page_comes_in(server: Serving) -> None:
    headers = {**bearer("adas"), "Origin": server.http}
    async with asyncio.timeout(15), rpc(server.port, additional_headers=headers) as page:
        await page.call("initialize")


async def test_too_large_a_frame_closes_the_connection_and_no_other(server: Serving) -> None:
    headers = bearer("adas")
    async with (
        asyncio.timeout(15),
        rpc(server.port, additional_headers=headers) as large,
        rpc(server.port, additional_headers=headers) as other,
    ):
        with pytest.raises(ConnectionClosed):
            await large.call("initialize", token="x" * (5 << 20))
        await other.call("initialize")


async def test_server_that_stops_closes_what_is_open() -> None:
    with serving(worker.app) as server:
        socket = await connect(f"ws://127.0.0.1:{server.port}/_api/rpc")
        program = Rpc(socket)
        await program.say("s", "wait")
        await program.follow("s")
    with pytest.raises(ConnectionClosed) as ended:
        await program.until("never.told")
    assert ended.value.rcvd is not None
    assert ended.value.rcvd.code == 1012
