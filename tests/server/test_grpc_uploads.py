"""Files over gRPC: the call `Upload`, by our client and by a bare channel, and its bounds."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

import grpc
import grpc.aio
import pytest

from arp import Access, App, HubSettings, Limits
from arp.access.settings import Bounds
from arp.client.client import connect
from arp.client.options import Options
from arp.protocol.framing.envelope import (
    UPLOAD,
    FileStart,
    seal_file_start,
    seal_part,
    unseal_answer,
)
from arp.server.ports.grpc_port import GrpcPort, GrpcSettings
from tests.server.files_agent import agent
from tests.support.serving import Serving, serving
from tests.support.waiting import becomes

MOST_UPLOAD = 200_000
TOKEN = "secret-of-the-test"
"""Longer than any word in a message: it must not be taken for one."""

app = App(
    title="Files",
    settings=HubSettings(limits=Limits(max_upload_bytes=MOST_UPLOAD), stall_s=1.0),
    access=Access(token=TOKEN, bounds=Bounds(max_uploads_per_user=2)),
)
app.agent(agent)


@pytest.fixture(scope="module")
def server() -> Iterator[Serving]:
    with serving(app, ports=[lambda state: GrpcPort(state, GrpcSettings())]) as running:
        yield running


@pytest.fixture
async def channel(server: Serving) -> AsyncIterator[grpc.aio.Channel]:
    target = server.addresses[0].removeprefix("grpc:")
    async with grpc.aio.insecure_channel(target) as made:
        yield made


def begun(channel: grpc.aio.Channel, token: str = TOKEN) -> Any:
    metadata = (("authorization", f"Bearer {token}"),)
    return channel.stream_unary(UPLOAD)(metadata=metadata, timeout=20)


async def uploaded(channel: grpc.aio.Channel, parts: Sequence[bytes]) -> Any:
    """Sends the parts of an upload; gives the first answer."""
    call = begun(channel)
    for part in parts:
        await call.write(part)
    await call.done_writing()
    (answer,) = json.loads(unseal_answer(await call))
    return answer


def message(**fields: Any) -> bytes:
    plain = {"v": 1, "type": "input", "input_type": "file", "session_id": "by-hand", "data": {}}
    return seal_part("input", json.dumps({**plain, **fields}).encode())


def start(name: str = "a", field: str = "") -> bytes:
    return seal_part("file", seal_file_start(FileStart(name, "text/plain", field)))


DATA = seal_part("data", b"x")


@pytest.mark.parametrize("dialect", ["session", "object"])
async def test_files_are_stored_as_they_are(server: Serving, dialect: Any) -> None:
    content = os.urandom(MOST_UPLOAD - 10)
    options: Options = {"token": TOKEN, "dialect": dialect}
    async with asyncio.timeout(20), connect(server.addresses[0], **options) as client:
        sent = await client.send_files([("a.bin", content), ("b.txt", b"b")], "both")
        turn = await client.turn_done(await client.turn_of(sent))
        said = client.screen.text(turn.id)
    assert said == "[a.bin|application/octet-stream|199990|True][b.txt|text/plain|1|True]both"


async def test_a_file_answers_a_field_of_a_form(server: Serving, channel: grpc.aio.Channel) -> None:
    url = server.addresses[0]
    async with asyncio.timeout(20), connect(url, token=TOKEN, session_id="form") as client:
        turn_id = await client.turn_of(await client.send_text("form"))
        await becomes(lambda: client.screen.turns[turn_id].status == "waiting")
        fields = {"input_type": "form_submit", "source_component": "form", "session_id": "form"}
        parts = [message(**fields, data={"fields": {}}), start("../r.csv", "report"), DATA]
        assert (await uploaded(channel, parts))["type"] == "ack"
        turn = await client.turn_done(turn_id)
        assert client.screen.text(turn.id) == "r.csv"


async def test_nobody_uploads_without_the_token(channel: grpc.aio.Channel) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await begun(channel, "wrong")
    assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED


PIECE = seal_part("data", bytes(64 << 10))


@pytest.mark.parametrize(
    ("parts", "code", "why"),
    [
        ([DATA], 11, "upload: the first part, and no other, must be the input"),
        ([message(), message()], 11, "upload: the first part, and no other, must be the input"),
        ([message(), DATA], 11, "upload: a file must begin before its data"),
        ([], 11, "upload: it has no input"),
        ([b"\xff"], 11, "envelope: it ends within a number"),
        ([seal_part("input", b"\xff")], 11, "upload: the input is not UTF-8"),
        ([seal_part("input", b"[]")], 11, "message: expected an input as a JSON object"),
        ([message(), start(), *[PIECE] * 4], 4, "a file may have at most 200000 bytes"),
        ([message(), *[start()] * 21], 4, "an input may have at most 20 files"),
        ([seal_part("input", b" " * (1 << 20) + b" "), start()], 4, "an input may have at most"),
        ([message(), *[start(), *[PIECE] * 3] * 7], 4, "an upload may have at most 1314112 bytes"),
    ],
)
async def test_what_is_no_upload_or_too_much_is_refused(
    channel: grpc.aio.Channel, parts: Sequence[bytes], code: int, why: str
) -> None:
    """Spec: T7."""
    answer = await uploaded(channel, parts)
    assert (answer["type"], answer["payload"]["code"]) == ("error", code)
    assert why in answer["payload"]["error"]


async def test_one_that_sends_nothing_is_not_waited_for(channel: grpc.aio.Channel) -> None:
    """Spec: T7."""
    call = begun(channel)
    await call.write(message())
    (answer,) = json.loads(unseal_answer(await call))
    assert answer["payload"]["error"] == "upload: nothing came for 1 s"


async def test_uploads_under_way_are_bounded_and_abandoned_ones_give_room(
    server: Serving, channel: grpc.aio.Channel
) -> None:
    received = server.application.state.intake.received
    calls = [begun(channel) for _ in range(2)]
    for call in calls:
        await call.write(message())
        await call.write(start())
    await becomes(lambda: received.used > 2 * 80)
    answer = await uploaded(channel, [message(), start(), DATA])
    assert answer["payload"]["code"] == 16
    for call in calls:
        call.cancel()
    await becomes(lambda: received.used == 0)
    assert (await uploaded(channel, [message(id="x"), start(), DATA]))["type"] == "ack"
