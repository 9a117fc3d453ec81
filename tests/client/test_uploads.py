from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from arp.client.errors import LinkLost, ServerRefused, UploadUnavailable
from arp.client.links.dial import dialer
from arp.client.options import Backoff, Options
from arp.client.uploads import File, Upload, Uploads, read_files
from arp.protocol.errors import ResourceLimit
from arp.protocol.messages import Input
from tests.client import agent_messages as say
from tests.client.loopback import Answer, Request, http_server

UPLOAD = Upload(
    "i1",
    Input(input_type="file", data={"text": "look"}),
    (File('täble "1".csv', b"a,b\r\n\x00"), File("noise", b"\xff")),
)


async def never(input_id: str) -> None:
    """Is for files over the connection itself."""
    raise AssertionError(input_id)


class Rig:
    """Uploads to a server that gives `answers` in turn, and what came back."""

    def __init__(self, url: str, options: Options | None = None) -> None:
        self.received: asyncio.Queue[Any] = asyncio.Queue()
        self.waits: list[float] = []
        self.uploads = Uploads(
            dialer(url, options if options is not None else {"token": "tok"}),
            Backoff(draw=lambda: 1.0, sleep=self.sleep),
            lambda frame: self.received.put_nowait(json.loads(frame)),
            lambda message, contents: None,
            never,
        )

    async def sleep(self, delay_s: float) -> None:
        self.waits.append(delay_s)
        await asyncio.sleep(0)

    async def until_answered(self, *uploads: Upload) -> list[Any]:
        """Runs until each upload has an answer, and gives the answers."""
        running = asyncio.ensure_future(self.uploads.run("s1"))
        await asyncio.sleep(0)
        for upload in uploads:
            self.uploads.add(upload)
        async with asyncio.timeout(30):
            answers = [await self.received.get() for _ in uploads]
        running.cancel()
        await asyncio.wait([running])
        return answers


async def test_files_travel_as_multipart_with_the_message_first() -> None:
    """Source: protocol.md 6."""
    seen: list[Request] = []

    async def serve(request: Request, answer: Answer) -> None:
        seen.append(request)
        await answer.send(200, json.dumps([say.ack("i1")]).encode())

    async with http_server(serve) as url:
        rig = Rig(url.replace("http://", "ws://"))
        assert await rig.until_answered(UPLOAD) == [[say.ack("i1")]]
    (request,) = seen
    assert (request.method, request.path) == ("POST", "/_arp/v1/input")
    assert request.headers["Authorization"] == "Bearer tok"
    message, *files = request.parts()
    assert message[:3] == ("message", None, "application/json")
    assert json.loads(message[3]) == {
        "v": 1,
        "type": "input",
        "input_type": "file",
        "data": {"text": "look"},
        "session_id": "s1",
        "id": "i1",
    }
    assert [(name, kind, content) for name, _, kind, content in files] == [
        ("file", "text/csv", b"a,b\r\n\x00"),
        ("file", "application/octet-stream", b"\xff"),
    ]
    assert "täble %221%22.csv".encode() in request.body


async def test_upload_that_nobody_took_is_sent_again_with_the_same_id() -> None:
    ids: list[str] = []

    async def serve(request: Request, answer: Answer) -> None:
        ids.append(json.loads(request.parts()[0][3])["id"])
        match len(ids):
            case 1:
                answer.cut()
            case 2:
                await answer.send(503)
            case _:
                await answer.send(200, json.dumps([say.ack("i1")]).encode())

    async with http_server(serve) as url:
        rig = Rig(url)
        assert await rig.until_answered(UPLOAD) == [[say.ack("i1")]]
    assert ids == ["i1", "i1", "i1"]
    assert rig.waits == [1, 2]


async def test_upload_outlives_the_connection() -> None:
    asked, posts = asyncio.Event(), 0

    async def serve(request: Request, answer: Answer) -> None:
        nonlocal posts
        posts += 1
        if posts == 1:
            asked.set()
            await asyncio.Event().wait()
        await answer.send(200, b"[]")

    async with http_server(serve) as url:
        rig = Rig(url)
        rig.uploads.add(UPLOAD)
        running = asyncio.ensure_future(rig.uploads.run("s1"))
        await asyncio.wait_for(asked.wait(), 5)
        running.cancel()
        await asyncio.wait([running])
        running = asyncio.ensure_future(rig.uploads.run("s1"))
        assert await asyncio.wait_for(rig.received.get(), 5) == []
        running.cancel()
        await asyncio.wait([running])
    assert posts == 2


async def test_refused_upload_is_answered_and_the_next_is_sent() -> None:
    statuses = [413, 200]

    async def serve(request: Request, answer: Answer) -> None:
        await answer.send(statuses.pop(0))

    second = Upload("i2", UPLOAD.message, ())
    async with http_server(serve) as url:
        refused, silent = await Rig(url).until_answered(UPLOAD, second)
    assert (refused[0]["payload"]["id"], refused[0]["payload"]["code"]) == ("i1", 4)
    assert silent["payload"]["id"] == "i2"
    assert "without an answer" in silent["payload"]["error"]


async def test_server_that_is_not_trusted_gets_no_second_try(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def untrusted(*_: object) -> bytes:
        raise LinkLost("certificate", error=ServerRefused("certificate"))

    rig = Rig("http://h")
    monkeypatch.setattr(rig.uploads, "_post", untrusted)
    (answer,) = await rig.until_answered(UPLOAD)
    assert answer["payload"] == {"error": "certificate", "code": 19, "id": "i1"}


def test_a_child_process_alone_takes_no_files() -> None:
    with pytest.raises(UploadUnavailable, match="sent over stdio; connect over HTTP"):
        Rig("stdio:", {"command": ["x"]}).uploads.check()
    for url in ("ws://h", "unix:/s", "grpc:h:1"):
        for dialect in ("session", "object"):
            Rig(url, {"dialect": dialect}).uploads.check()


async def test_files_are_read_at_once_and_keep_their_last_name_only(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"1")
    files = await read_files([path, str(path), ("../../etc/b", b"22")], 2)
    path.write_bytes(b"changed")
    assert files == (File("a.csv", b"1"), File("a.csv", b"1"), File("b", b"22"))


async def test_file_that_is_too_big_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "big.bin"
    path.write_bytes(b"123")
    with pytest.raises(ResourceLimit, match=r"big\.bin: more than 2 bytes"):
        await read_files([path], 2)
    with pytest.raises(ResourceLimit, match="mem: more than 2 bytes"):
        await read_files([("mem", b"123")], 2)
    with pytest.raises(FileNotFoundError):
        await read_files([tmp_path / "none"], 2)
