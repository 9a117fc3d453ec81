"""Renderers over gRPC: who comes in, health, deadlines, what is refused, TLS."""

from __future__ import annotations

import asyncio
import json
import logging
import ssl
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from arp import Access, App, IncomingConnection, Turn
from arp.access.client_address import client_of
from arp.client.client import ArpClient, connect
from arp.client.errors import InvalidAddress, ServerRefused, ServerUnreachable
from arp.client.options import Backoff
from arp.protocol.codec import Encoding, encode_json
from arp.protocol.errors import PermissionDenied, Unauthenticated
from arp.protocol.framing.envelope import CONNECT, SERVICE, seal, unseal
from arp.protocol.messages import RendererCapabilities, RendererHello
from arp.runtime.remote.tls import TlsFiles
from arp.server.ports.grpc_port import GrpcPort, GrpcSettings, GrpcUnavailable
from arp.server.state import ServerState
from tests.runtime.certificates import Certificates, certificates
from tests.support.serving import Serving, serving
from tests.support.waiting import becomes

AT_ONCE = Backoff(first_s=0.01, most_s=0.05)

TOKENS = {"a": "ada", "b": "bob"}


def authenticate(connection: IncomingConnection) -> str | None:
    """Ada's token is `a`, Bob's is `b`; the transport and the address are known."""
    assert connection.kind == "grpc"
    assert connection.client == "127.0.0.1"
    return TOKENS.get(connection.token)


app = App(title="gRPC", access=Access(authenticate=authenticate))
opened = App(title="Open")


@app.agent
@opened.agent
async def agent(turn: Turn) -> None:
    """Says who asked; or waits."""
    await turn.say(f"{turn.user.name}: {turn.text}")
    if turn.text == "wait":
        await turn.confirm("Go on?")


def port(state: ServerState) -> GrpcPort:
    return GrpcPort(state, GrpcSettings())


@pytest.fixture(scope="module")
def server() -> Iterator[Serving]:
    with serving(app, ports=[port]) as running:
        yield running


@pytest.fixture(scope="module")
def open_server() -> Iterator[Serving]:
    with serving(opened, ports=[port]) as running:
        yield running


def target(server: Serving) -> str:
    return server.addresses[0].removeprefix("grpc:")


@pytest.fixture
async def channel(open_server: Serving) -> AsyncIterator[grpc.aio.Channel]:
    async with grpc.aio.insecure_channel(target(open_server)) as made:
        yield made


def call(channel: grpc.aio.Channel, *metadata: tuple[str, str], timeout: float | None = 20) -> Any:
    return channel.stream_stream(CONNECT)(metadata=metadata, timeout=timeout)


HELLO = RendererHello(capabilities=RendererCapabilities({"text": 1}, ["input"]), session_id="s")


async def message(call: Any) -> Any:
    data = await call.read()
    assert data is not grpc.aio.EOF, (await call.code(), await call.details())
    return json.loads(unseal(data).frame)


async def status(call: Any) -> tuple[str, str, str]:
    """Reads to the end; gives status, close code and details."""
    try:
        while await call.read() is not grpc.aio.EOF:
            pass
    except grpc.aio.AioRpcError:
        pass
    trailing = dict(await call.trailing_metadata())
    return (await call.code()).name, trailing.get("arp-close-code", ""), await call.details()


# -- who comes in ----------------------------------------------------------------------------------


@pytest.mark.parametrize("metadata", [(), (("authorization", "Bearer wrong"),)])
async def test_a_call_without_a_valid_token_is_refused_before_a_message_is_sent(
    server: Serving, metadata: Any
) -> None:
    async with grpc.aio.insecure_channel(target(server)) as channel:
        refused = call(channel, *metadata)
        told = await status(refused)
    assert told == ("UNAUTHENTICATED", "", "a valid token is needed: authorization: Bearer …")


async def test_a_client_is_who_its_token_says_and_sees_its_own_sessions_alone(
    server: Serving,
) -> None:
    url = server.addresses[0]
    async with asyncio.timeout(20):
        async with connect(url, token="a", session_id="hers") as client:
            assert client.screen.text((await client.ask("hi")).id) == "ada: hi"
        with pytest.raises(Unauthenticated, match="give token="):
            async with connect(url, token="wrong"):
                pass
        with pytest.raises(Exception, match="hers"):
            async with connect(url, token="b", session_id="hers"):
                pass


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
async def test_without_a_token_it_listens_on_this_machine_alone(
    open_server: Serving, host: str
) -> None:
    state = open_server.application.state
    with pytest.raises(GrpcUnavailable, match="can be reached by others: set --token"):
        await GrpcPort(state, GrpcSettings(host)).start()


async def test_a_port_that_is_taken_is_named(open_server: Serving) -> None:
    taken = int(target(open_server).rpartition(":")[2])
    with pytest.raises(GrpcUnavailable, match=f"cannot listen on 127.0.0.1:{taken}"):
        await GrpcPort(open_server.application.state, GrpcSettings(port=taken)).start()


@pytest.mark.parametrize(
    ("peer", "client"),
    [
        ("ipv4:10.1.2.3:50", ("10.1.2.3", 50)),
        ("ipv6:%5B2001:db8::1%5D:50", ("2001:db8::1", 50)),
        ("ipv6:[::1]:50", ("::1", 50)),
        ("unix:/tmp/s", None),
        ("", None),
    ],
)
def test_the_address_of_a_peer_is_read(peer: str, client: object) -> None:
    assert client_of(peer) == client


# -- health ----------------------------------------------------------------------------------------


async def test_health_is_open_and_tells_when_the_server_stops() -> None:
    locked = App(title="Locked", access=Access(token="secret"))
    locked.agent(agent)
    serve = serving(locked, ports=[port])
    running = serve.__enter__()
    try:
        async with grpc.aio.insecure_channel(target(running)) as channel:
            stub = health_pb2_grpc.HealthStub(channel)
            for name in ("", SERVICE):
                answer = await stub.Check(health_pb2.HealthCheckRequest(service=name), timeout=10)
                assert answer.status == health_pb2.HealthCheckResponse.SERVING
            with pytest.raises(grpc.aio.AioRpcError) as unknown:
                await stub.Check(health_pb2.HealthCheckRequest(service="other"), timeout=10)
            assert unknown.value.code() is grpc.StatusCode.NOT_FOUND
            watch = stub.Watch(health_pb2.HealthCheckRequest(service=SERVICE), timeout=20)
            assert (await watch.read()).status == health_pb2.HealthCheckResponse.SERVING
            stopping = asyncio.ensure_future(asyncio.to_thread(serve.__exit__, None, None, None))
            assert (await watch.read()).status == health_pb2.HealthCheckResponse.NOT_SERVING
            await stopping
    except BaseException:
        serve.__exit__(None, None, None)
        raise


# -- the call --------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["json", "msgpack", "cbor"])
async def test_every_encoding_is_spoken(open_server: Serving, encoding: Encoding) -> None:
    async with asyncio.timeout(20), connect(open_server.addresses[0], encoding=encoding) as client:
        assert client.screen.text((await client.ask("hi")).id) == ": hi"


async def test_the_end_of_a_deadline_ends_the_call_and_nothing_else(
    open_server: Serving, channel: grpc.aio.Channel
) -> None:
    """Spec: T6. The turn goes on, and who comes back finds it."""
    begun = call(channel, timeout=1.0)
    await message(begun)
    await begun.write(seal(encode_json(HELLO)))
    said = b'{"v":1,"type":"input","input_type":"text","data":{"text":"wait"},"session_id":"s"}'
    await begun.write(seal(said))
    assert (await status(begun))[:2] == ("DEADLINE_EXCEEDED", "")
    hub = open_server.application.state.running
    assert hub is not None
    await becomes(lambda: open_server.call(lambda: not hub.sessions["s"].viewers))
    async with asyncio.timeout(20), connect(open_server.addresses[0], session_id="s") as client:
        turn_id = next(reversed(client.screen.turns))
        assert client.screen.turns[turn_id].status == "waiting"
        await client.cancel()
        await client.turn_done(turn_id)


async def test_a_cancelled_call_is_a_renderer_that_is_gone(
    open_server: Serving, channel: grpc.aio.Channel
) -> None:
    begun = call(channel)
    await message(begun)
    await begun.write(seal(encode_json(HELLO)))
    await message(begun)
    hub = open_server.application.state.running
    assert hub is not None
    assert open_server.call(lambda: len(hub.sessions["s"].viewers)) == 1
    begun.cancel()
    await becomes(lambda: open_server.call(lambda: not hub.sessions["s"].viewers))


async def test_the_clients_end_of_the_call_ends_it_well(channel: grpc.aio.Channel) -> None:
    begun = call(channel)
    await message(begun)
    await begun.done_writing()
    assert await status(begun) == ("OK", "1000", "")


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "no frame in it"),
        (b"\x0a\xff\xff\xff\xff\x7f", "bytes announced"),
        (b"\xff" * 30, "envelope"),
        (seal(b"{}", "object"), "a frame of the object dialect; this call uses session"),
    ],
)
async def test_what_is_no_envelope_of_the_call_ends_it_with_the_reason(
    channel: grpc.aio.Channel, data: bytes, why: str
) -> None:
    """Spec: T5. And bytes that are no envelope at all."""
    begun = call(channel)
    await message(begun)
    await begun.write(data)
    code, close_code, details = await status(begun)
    assert (code, close_code) == ("INVALID_ARGUMENT", "1003")
    assert why in details


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("arp-dialect", "klingon", ("INVALID_ARGUMENT", "1003")),
        ("arp-encoding", "xml", ("INVALID_ARGUMENT", "1003")),
        ("arp-workflow", "nobody", ("PERMISSION_DENIED", "1008")),
    ],
)
async def test_metadata_that_means_nothing_here_is_refused(
    channel: grpc.aio.Channel, key: str, value: str, told: tuple[str, str]
) -> None:
    assert (await status(call(channel, (key, value))))[:2] == told


async def test_another_method_is_not_there(channel: grpc.aio.Channel) -> None:
    unknown: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(
        "/arp.v1.ArpService/Other"
    )
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await unknown(b"", timeout=10)
    assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED


async def test_a_message_above_the_limit_gets_a_coded_error_and_a_huge_one_ends_the_call(
    channel: grpc.aio.Channel,
) -> None:
    begun = call(channel)
    await message(begun)
    await begun.write(seal(b" " * (2 << 20)))
    assert (await message(begun))["payload"]["code"] == 4
    await begun.write(seal(b" " * (5 << 20)))
    assert (await status(begun))[0] == "RESOURCE_EXHAUSTED"


async def test_a_thousand_bad_frames_end_the_call(channel: grpc.aio.Channel) -> None:
    begun = call(channel)
    for _ in range(1001):
        await begun.write(seal(b"{"))
    assert (await status(begun))[:2] == ("PERMISSION_DENIED", "1008")


PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\x04\0\0\0\0\0"
"""What a client says first (RFC 9113, 3.4), with empty settings."""


async def test_connections_without_a_call_are_bounded_in_number_and_in_time() -> None:
    """A socket that speaks HTTP/2 and calls nothing is closed; one with a call stays."""
    settings = GrpcSettings(max_connections=3, idle_s=1.0)
    with serving(opened, ports=[lambda state: GrpcPort(state, settings)]) as running:
        host, _, number = target(running).rpartition(":")
        async with asyncio.timeout(20), connect(running.addresses[0]) as client:
            idle = [await asyncio.open_connection(host, number) for _ in range(2)]
            for reader, writer in idle:
                writer.write(PREFACE)
                assert await reader.read(1)  # it is served
            extra, writer = await asyncio.open_connection(host, number)
            assert await extra.read() == b""
            writer.close()
            for reader, writer in idle:
                await reader.read()  # to the end, which comes after a second
                writer.close()
            reader, writer = await asyncio.open_connection(host, number)
            writer.write(PREFACE)
            assert await reader.read(1)
            writer.close()
            assert client.screen.text((await client.ask("there")).id).endswith(": there")
            assert len(client.screen.turns) == 1


async def test_a_renderer_comes_back_after_a_restart_and_resumes(tmp_path: Path) -> None:
    ledger = f"sqlite:{tmp_path / 'ledger.db'}"
    with serving(opened, ledger=ledger, ports=[port]) as first:
        number = int(target(first).rpartition(":")[2])
        client = ArpClient(first.addresses[0], session_id="s", backoff=AT_ONCE)
        async with asyncio.timeout(20):
            await client.__aenter__()
            await client.ask("before")
    async with asyncio.timeout(30):
        again = [lambda state: GrpcPort(state, GrpcSettings(port=number))]
        with serving(opened, ledger=ledger, ports=again):
            await client.ask("after")
            assert [turn.status for turn in client.screen.turns.values()] == ["completed"] * 2
            await client.aclose()


async def test_a_server_without_our_service_is_none_of_ours() -> None:
    server = grpc.aio.server()
    bound = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        with pytest.raises(ServerRefused, match="nothing there speaks ARP"):
            async with asyncio.timeout(20), connect(f"grpc:127.0.0.1:{bound}"):
                pass
    finally:
        await server.stop(0)


# -- TLS -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return certificates(tmp_path_factory.mktemp("tls"))


async def test_tls_is_checked_with_the_authorities_of_the_client(files: Certificates) -> None:
    settings = GrpcSettings(tls=TlsFiles(files.certificate, files.key))
    with serving(app, ports=[lambda state: GrpcPort(state, settings)]) as running:
        url = running.addresses[0]
        assert url.startswith("grpcs:127.0.0.1:")
        trusted = ssl.create_default_context(cafile=files.ca)
        async with asyncio.timeout(30), connect(url, token="a", tls=trusted) as client:
            assert client.screen.text((await client.ask("hi")).id) == "ada: hi"


async def test_files_that_are_no_certificate_are_refused(open_server: Serving) -> None:
    settings = GrpcSettings(tls=TlsFiles("/dev/null", "/dev/null"))
    with pytest.raises(GrpcUnavailable, match="no certificate and its key"):
        await GrpcPort(open_server.application.state, settings).start()


def test_a_token_is_not_sent_to_another_machine_without_tls() -> None:
    with pytest.raises(InvalidAddress, match=r"write grpcs:10\.0\.0\.1:7001"):
        ArpClient("grpc:10.0.0.1:7001", token="secret")
    ArpClient("grpcs:10.0.0.1:7001", token="secret")
    ArpClient("grpc:localhost:7001", token="secret")


async def test_nobody_there_is_worth_another_try() -> None:
    with pytest.raises((ServerUnreachable, PermissionDenied)):
        async with asyncio.timeout(30), connect("grpc:127.0.0.1:9"):
            pass


def test_its_log_holds_no_token(server: Serving, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        asyncio.run(_one_turn(server))
    assert "Bearer" not in caplog.text


async def _one_turn(server: Serving) -> None:
    async with asyncio.timeout(20), connect(server.addresses[0], token="a") as client:
        await client.ask("hi")
