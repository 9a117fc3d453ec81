"""A runtime behind gRPC is the same runtime."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import grpc
import grpc.aio
import pytest

from arp.access.incoming import IncomingConnection
from arp.access.settings import Access
from arp.runtime.contract import types as ari
from arp.runtime.contract.errors import (
    AlreadyExists,
    DeadlineExceeded,
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    OperationDenied,
    RuntimeInternal,
    Unavailable,
    Unimplemented,
)
from arp.runtime.contract.services import EventSubscription, RuntimeService
from arp.runtime.plain.function import FunctionRuntime, FunctionTurn
from arp.runtime.remote.grpc_runtime import PATHS, GrpcRuntime
from arp.runtime.remote.grpc_server import GrpcServer
from arp.testing import FakeRuntime, Says, Uses, Waits
from tests.runtime.broken_proxy import broken_proxy


@asynccontextmanager
async def served(runtime: RuntimeService, access: Access | None = None) -> AsyncIterator[str]:
    """Serve a runtime on a free port, and give its address."""
    server = GrpcServer(runtime, access)
    port = await server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.stop()


@asynccontextmanager
async def connected(address: str, **options: Any) -> AsyncIterator[GrpcRuntime]:
    remote = GrpcRuntime(address, **options)
    try:
        yield remote
    finally:
        await remote.close()


async def events_until_done(events: EventSubscription) -> list[ari.Event]:
    seen: list[ari.Event] = []
    async with asyncio.timeout(10):
        async for event in events:
            seen.append(event)
            if event.done:
                break
    return seen


async def test_a_turn_with_a_permission_over_grpc() -> None:
    fake = FakeRuntime({"go": [Uses("shell", {"command": "ls"}, "README", asks=True), Says("Ok.")]})
    async with served(fake) as address, connected(address) as remote:
        assert (await remote.version(ari.VersionRequest())).runtime_name == "fake"
        created = await remote.create_session(ari.CreateSessionRequest(title="T"))
        session_id = created.session.session_id
        events = await remote.session_events(ari.SessionEventsRequest(session_id))
        assert events.cursor == 1
        message = ari.RuntimeMessage(content="go")
        await remote.send_message(ari.SendMessageRequest(session_id, message))
        async with asyncio.timeout(10):
            seen = [await anext(events) for _ in range(3)]
        assert seen[-1].permission is not None
        assert seen[-1].permission.tool_input_raw == {"command": "ls"}
        edited = ari.PermissionResponse("allow", updated_input={"command": "pwd"})
        await remote.respond_permission(
            ari.RespondPermissionRequest(session_id, seen[-1].request_id, edited)
        )
        seen += await events_until_done(events)
        assert [event.sequence for event in seen] == list(range(2, 2 + len(seen)))
        assert seen[-1].content == "Ok."
        assert fake.ran == [("shell", {"command": "pwd"})]
        local = await fake.session_events(ari.SessionEventsRequest(session_id, 1))
        assert await events_until_done(local) == seen
        await remote.close()
        await remote.close()
        with pytest.raises(FailedPrecondition, match="the connection to the runtime is closed"):
            await remote.version(ari.VersionRequest())


async def test_errors_come_with_their_code_and_details() -> None:
    async def upper(turn: FunctionTurn) -> str:
        return turn.text.upper()

    async with served(FunctionRuntime(upper)) as address, connected(address) as remote:
        with pytest.raises(NotFound, match="there is no session 'none'"):
            await remote.get_session(ari.GetSessionRequest("none"))
        with pytest.raises(NotFound):
            await remote.session_events(ari.SessionEventsRequest("no/such"))
        with pytest.raises(InvalidArgument, match="api_version"):
            await remote.version(ari.VersionRequest("v9"))
        with pytest.raises(Unimplemented, match="this runtime has no list_models"):
            await remote.list_models(ari.ListModelsRequest("s"))
        with pytest.raises(InvalidArgument, match=r"session_events: .* more than 64 bits"):
            await remote.session_events(ari.SessionEventsRequest("s", 2**64))
    fake = FakeRuntime()
    async with served(fake) as address, connected(address) as remote:
        text = "größer\n" + "x" * 5000
        fake.inject_error("get_session", AlreadyExists(text, http_status=409, where=["a", 2**60]))
        with pytest.raises(AlreadyExists) as taken:
            await remote.get_session(ari.GetSessionRequest("s"))
        assert taken.value.message == text
        assert taken.value.details == {"http_status": 409, "where": ["a", 2**60]}
        fake.inject_error("get_session", AlreadyExists("much", output="x" * 200_000))
        with pytest.raises(AlreadyExists, match="much") as taken:
            await remote.get_session(ari.GetSessionRequest("s"))
        assert taken.value.details == {}
        fake.inject_error("session_events", Unavailable("it is gone"))
        with pytest.raises(Unavailable, match="it is gone"):
            await remote.session_events(ari.SessionEventsRequest("s"))


async def test_requests_that_cannot_be_read_are_refused() -> None:
    async with served(FakeRuntime()) as address, grpc.aio.insecure_channel(address) as channel:
        for path, code in (
            (PATHS["send_message"], grpc.StatusCode.INVALID_ARGUMENT),
            ("/ari.runtime.v1.RuntimeService/Close", grpc.StatusCode.UNIMPLEMENTED),
        ):
            call: Any = channel.unary_unary(path)
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await call(b"\x0a\x05ab", timeout=10)
            assert refused.value.code() == code


async def test_a_large_image_passes_and_a_larger_one_is_refused() -> None:
    fake = FakeRuntime({"see": [Says("Ok.")]})
    async with served(fake) as address, connected(address) as remote:
        created = await remote.create_session(ari.CreateSessionRequest())
        session_id = created.session.session_id
        for megabytes, fits in ((33, False), (20, True)):
            image = ari.ContentPart("image", mime_type="image/png", data=bytes(megabytes * 2**20))
            message = ari.RuntimeMessage(content="see", parts=(image,))
            sending = remote.send_message(ari.SendMessageRequest(session_id, message))
            if fits:
                assert (await sending).turn_id
            else:
                with pytest.raises(InvalidArgument, match="more than 33554432 bytes"):
                    await sending


async def test_who_may_not_come_in() -> None:
    async with served(FakeRuntime(), Access(token="s3cret")) as address:
        for token in (None, "other"):
            async with connected(address, token=token) as remote:
                with pytest.raises(OperationDenied, match="a valid token is needed"):
                    await remote.version(ari.VersionRequest())
                with pytest.raises(OperationDenied, match="a valid token is needed"):
                    await remote.session_events(ari.SessionEventsRequest("s"))
        async with connected(address, token="s3cret") as remote:
            await remote.version(ari.VersionRequest())
    with pytest.raises(InvalidArgument, match=r"0\.0\.0\.0 can be reached by others"):
        await GrpcServer(FakeRuntime()).start("0.0.0.0")


async def test_a_hook_says_who_comes_in() -> None:
    def check(connection: IncomingConnection) -> str | None:
        return "ann" if connection.token == "of-ann" else None

    async with served(FakeRuntime(), Access(authenticate=check)) as address:
        async with connected(address, token="of-ann") as remote:
            await remote.version(ari.VersionRequest())
        async with connected(address, token="of-bob") as remote:
            with pytest.raises(OperationDenied):
                await remote.version(ari.VersionRequest())


async def test_an_address_that_is_taken_or_empty() -> None:
    async with served(FakeRuntime()) as address:
        with pytest.raises(Unavailable, match="cannot listen on"):
            await GrpcServer(FakeRuntime()).start(port=int(address.rpartition(":")[2]))
    async with connected(address) as remote:
        with pytest.raises(Unavailable, match="version: "):
            await remote.version(ari.VersionRequest())
        with pytest.raises(Unavailable, match="session_events: "):
            await remote.session_events(ari.SessionEventsRequest("s"))


async def test_a_server_that_does_not_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        async with connected(address, timeout_s=0.3) as remote:
            with pytest.raises(DeadlineExceeded):
                await remote.version(ari.VersionRequest())
            with pytest.raises(Unavailable, match="does not answer"):
                await remote.session_events(ari.SessionEventsRequest("s"))


async def test_stream_that_breaks_goes_on_behind_the_last_event() -> None:
    fake = FakeRuntime({"go": [Says("One."), Waits(), Says("Two.")]})
    async with served(fake) as address:
        port = address.rpartition(":")[2]
        async with (
            broken_proxy(f"http://127.0.0.1:{port}") as (proxy, cut),
            connected(f"127.0.0.1:{proxy}") as remote,
        ):
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


async def test_a_read_that_is_cancelled_loses_no_event_and_aclose_ends_one() -> None:
    fake = FakeRuntime({"go": [Says("One.")]})
    async with served(fake) as address, connected(address) as remote:
        created = await remote.create_session(ari.CreateSessionRequest())
        session_id = created.session.session_id
        events = await remote.session_events(ari.SessionEventsRequest(session_id))
        reading = asyncio.ensure_future(anext(events))
        done, _ = await asyncio.wait([reading], timeout=0.05)
        assert not done
        reading.cancel()
        with suppress(asyncio.CancelledError):
            await reading
        message = ari.RuntimeMessage(content="go")
        await remote.send_message(ari.SendMessageRequest(session_id, message))
        seen = await events_until_done(events)
        assert [event.sequence for event in seen] == [2, 3, 4]
        waiting = asyncio.ensure_future(anext(events))
        await asyncio.wait([waiting], timeout=0.05)
        await events.aclose()
        async with asyncio.timeout(5):
            with pytest.raises(StopAsyncIteration):
                await waiting


async def test_the_end_of_a_session_ends_its_streams() -> None:
    async with served(FakeRuntime()) as address, connected(address) as remote:
        created = await remote.create_session(ari.CreateSessionRequest())
        session_id = created.session.session_id
        events = await remote.session_events(ari.SessionEventsRequest(session_id))
        await remote.close_session(ari.CloseSessionRequest(session_id))
        async with asyncio.timeout(5):
            assert [event.lifecycle async for event in events] == [ari.Lifecycle.CLOSED]


async def test_an_answer_that_cannot_be_read_is_an_error() -> None:
    async def answer(data: bytes, context: Any) -> bytes:
        return b"\x0a\x05ab"

    server = grpc.aio.server()
    handlers: dict[str, Any] = {"Version": grpc.unary_unary_rpc_method_handler(answer)}
    server.add_generic_rpc_handlers(
        [grpc.method_handlers_generic_handler("ari.runtime.v1.RuntimeVersioner", handlers)]
    )
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with connected(f"127.0.0.1:{port}") as remote:
        with pytest.raises(RuntimeInternal, match="the answer cannot be read"):
            await remote.version(ari.VersionRequest())
    await server.stop(None)
