"""Files by multipart/form-data into the blob store, within bounds (T35, T60 to T62)."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from arp import App, HubSettings, Limits
from arp.server.uploads import shown_name
from tests.server.files_agent import agent
from tests.server.sockets import raw
from tests.support.serving import Serving, serving

MOST = 100_000

limits = Limits(max_upload_bytes=MOST, max_message_bytes=20_000)
app = App(title="Uploads", settings=HubSettings(limits=limits))
app.agent(agent)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    path = tmp_path_factory.mktemp("ledger") / "ledger.db"
    with serving(app, ledger=f"sqlite:{path}") as running:
        yield running


Parts = list[tuple[str, tuple[str, bytes, str]]]


async def posted(server: Serving, session_id: str, files: Parts, **message: Any) -> httpx.Response:
    """Posts files with an input."""
    said = {"session_id": session_id, **message}
    async with asyncio.timeout(15), httpx.AsyncClient(base_url=server.http) as client:
        data = {"message": json.dumps(said)}
        return await client.post("/_arp/v1/input", data=data, files=files)


async def told(server: Serving, session_id: str, turn_id: str = "t1") -> str:
    """Return what the agent said in a turn, once it is over."""
    async with raw(server) as client:
        await client.hello(session_id, ["text"])
        await client.until("turn", turn_id=turn_id, status="completed")
        await client.until("commit")
        parts = [part for one in client.of("render") for part in one["components"]]
        said = [part["props"]["content"] for part in parts]
        return "".join([*said, *[one["payload"]["delta"] for one in client.of("delta")]])


async def test_files_reach_the_agent_whole(server: Serving) -> None:
    """protocol.md 6: input as multipart/form-data with files."""
    files: Parts = [
        ("a", ("a.txt", b"hello", "text/plain")),
        ("b", ("b.bin", bytes(range(256)) * 100, "application/octet-stream")),
        ("c", ("empty", b"", "text/plain")),
    ]
    response = await posted(server, "whole", files, data={"text": "look"}, id="i1")
    said = await told(server, "whole")
    (ack,) = response.json()
    assert (response.status_code, ack["type"], ack["id"], ack["turn_id"]) == (
        200,
        "ack",
        "i1",
        "t1",
    )
    assert said == (
        "[a.txt|text/plain|5|True][b.bin|application/octet-stream|25600|True]"
        "[empty|text/plain|0|True]look"
    )


@pytest.mark.parametrize(
    ("filename", "name"),
    [
        ("../x", "x"),
        ("../../etc/passwd", "passwd"),
        ("/etc/passwd", "passwd"),
        ("C:\\Users\\x.txt", "x.txt"),
        ("..\\..\\x", "x"),
        ("..", "file"),
        (".", "file"),
        ("...", "file"),
        ("", "file"),
        ("a/", "file"),
        ("  ", "file"),
        (".hidden", ".hidden"),
        ("a\0b", "ab"),
        ("a\nb\r\t\x1b[31mc", "ab[31mc"),
        ("evil\u202egpj.exe", "evilgpj.exe"),
        ("zero\u200bwidth", "zerowidth"),
        ("grüße 日本.txt", "grüße 日本.txt"),
        ("x" * 300, "x" * 255),
        ("日" * 100, "日" * 85),
    ],
)
def test_name_of_a_file_is_data_and_no_path(filename: str, name: str) -> None:
    """T60: what is stored has a name of the store's own; this one is only shown."""
    assert shown_name(filename) == name


async def test_name_with_a_path_arrives_without_it(server: Serving) -> None:
    """T60, over the wire."""
    await posted(server, "names", [("f", ("../../secret.txt", b"x", "text/plain"))])
    assert await told(server, "names") == "[secret.txt|text/plain|1|True]"


async def test_upload_that_is_too_big_is_refused(server: Serving) -> None:
    """protocol.md 4: `max_upload_bytes`; 413, and the server lives on."""
    too_big: Parts = [("f", ("big", b"x" * (MOST + 1), "text/plain"))]
    together: Parts = [("f", (f"{n}", b"x" * (MOST // 2), "text/plain")) for n in range(4)]
    statuses = [(await posted(server, "big", files)).status_code for files in (too_big, together)]
    just: Parts = [("f", ("fits", b"x" * MOST, "text/plain"))]
    fits = await posted(server, "big", just)
    assert statuses == [413, 413]
    assert fits.status_code == 200


async def test_too_many_parts_are_refused(server: Serving) -> None:
    """T35: files and fields are bounded in number."""
    files: Parts = [("f", (f"{n}", b"x", "text/plain")) for n in range(21)]
    many_files = await posted(server, "many", files)
    async with asyncio.timeout(15), httpx.AsyncClient(base_url=server.http) as client:
        fields = {f"field{n}": "x" for n in range(60)}
        parts = [(name, (None, value)) for name, value in fields.items()]
        many_fields = await client.post("/_arp/v1/input", files=parts)
    for response in (many_files, many_fields):
        assert response.status_code == 400
        assert response.json()[0]["payload"]["code"] == 11


BODIES: list[tuple[str, bytes, int]] = [
    ("multipart/form-data", b"no boundary", 400),
    ("multipart/form-data; boundary=x", b"not multipart at all", 400),
    ("multipart/form-data; boundary=x", b"--x\r\n\r\n\r\n--x--", 400),
    ("multipart/form-data; boundary=x", b"--x\r\nContent-Disposition: form-data\r\n\r\na", 400),
    ("application/json", b"--x\r\nContent-Disposition: form-data", 400),
    ("application/json", b'{"a":', 400),
    ("application/json; charset=utf-8", b"[]", 200),
    ("text/plain", b"{}", 415),
    ("application/x-www-form-urlencoded", b"a=b", 415),
    ("application/octet-stream", b"{}", 415),
    ("", b"{}", 415),
]


@pytest.mark.parametrize(("kind", "body", "status"), BODIES)
async def test_body_must_be_what_its_type_says(
    server: Serving, kind: str, body: bytes, status: int
) -> None:
    """T12, T62: and its type one that no foreign page can send unasked."""
    headers = {"content-type": kind} if kind else {}
    async with asyncio.timeout(15), httpx.AsyncClient(base_url=server.http) as client:
        response = await client.post("/_arp/v1/input", content=body, headers=headers)
    assert response.status_code == status, response.text
    if status != 200:
        assert response.json()[0]["type"] == "error"


@pytest.mark.parametrize(
    "message", ["[", "[]", "3", '"x"', '{"data": 3}', '{"data": {"files": 3}}', "[" * 5000]
)
async def test_form_whose_message_is_no_input_is_refused(server: Serving, message: str) -> None:
    """INVALID_MESSAGE."""
    async with asyncio.timeout(15), httpx.AsyncClient(base_url=server.http) as client:
        files = {"f": ("x", b"x", "text/plain")}
        response = await client.post("/_arp/v1/input", data={"message": message}, files=files)
    assert response.status_code == 400
    assert response.json()[0]["payload"]["code"] == 11


FORGED = {"id": "f", "name": "x", "size": 1, "mime": "text/plain", "sha256": "0" * 64}


@pytest.mark.parametrize(
    "files",
    [
        [FORGED],
        [{**FORGED, "sha256": "../../etc/passwd"}],
        [{**FORGED, "path": "/etc/passwd"}],
        [1],
        [{}],
        [{"path": "/etc/passwd"}],
    ],
)
async def test_input_cannot_name_a_file_that_was_not_uploaded_to_its_session(
    server: Serving, files: list[Any]
) -> None:
    """T62: content-type confusion supplies no path, and a hash is no credential."""
    message = {"v": 1, "type": "input", "session_id": "forged", "input_type": "file"}
    async with asyncio.timeout(15), httpx.AsyncClient(base_url=server.http) as client:
        response = await client.post("/_arp/v1/input", json={**message, "data": {"files": files}})
    async with raw(server) as socket:
        await socket.send({**message, "data": {"files": files}})
        error = await socket.until("error")
    assert response.status_code in (400, 404)
    assert error["payload"]["code"] in (1, 11)


async def test_file_of_one_session_cannot_be_read_in_another(server: Serving) -> None:
    """architecture.md, invariant 10."""
    await posted(server, "owner", [("f", ("x", b"private", "text/plain"))])
    digest = hashlib.sha256(b"private").hexdigest()
    ref = {"id": digest, "name": "x", "size": 7, "mime": "text/plain", "sha256": digest}
    async with raw(server) as socket:
        said = {"v": 1, "type": "input", "session_id": "thief", "input_type": "file"}
        await socket.send({**said, "data": {"files": [ref]}})
        error = await socket.until("error")
        await socket.send({**said, "session_id": "owner", "data": {"files": [ref]}, "id": "again"})
        ack = await socket.until("ack")
    assert error["payload"]["code"] in (1, 11)
    assert ack["id"] == "again"


async def test_file_answers_the_field_of_a_form(server: Serving) -> None:
    """A part named `fields.NAME`."""
    async with raw(server) as client:
        await client.hello("form", ["text", "form"], "input")
        await client.say("form", "form")
        await client.until("turn", status="waiting")
        response = await posted(
            server,
            "form",
            [("fields.report", ("report.pdf", b"%PDF", "application/pdf"))],
            input_type="form_submit",
            source_component="form",
        )
        await client.until("commit", final=True)
        said = "".join(one["payload"]["delta"] for one in client.of("delta"))
    assert response.status_code == 200, response.text
    assert said == "report.pdf"


async def test_workflow_takes_files_too(server: Serving) -> None:
    """protocol.md 6: JSON or multipart body."""
    async with asyncio.timeout(15), httpx.AsyncClient(base_url=server.http) as client:
        files = {"f": ("a.txt", b"abc", "text/plain")}
        done = await client.post("/agent", data={"message": "see", "more": "x"}, files=files)
        bad = await client.post("/agent", files={"f": ("a", b"x" * (MOST + 1), "text/plain")})
    assert done.json()["text"] == "[a.txt|text/plain|3|True]see"
    assert bad.status_code == 413


async def test_body_that_ends_early_is_no_input(server: Serving) -> None:
    """The client went away in the middle of its upload; nothing has happened."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    head = (
        f"POST /_arp/v1/input HTTP/1.1\r\nhost: 127.0.0.1:{server.port}\r\n"
        "content-type: application/json\r\ncontent-length: 1000\r\n\r\n"
    )
    writer.write(head.encode() + b'{"v":1')
    await writer.drain()
    writer.close()
    await writer.wait_closed()
    async with asyncio.timeout(10), httpx.AsyncClient(base_url=server.http) as client:
        assert (await client.get("/health")).status_code == 200
    del reader
