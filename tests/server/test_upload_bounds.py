"""No way in goes round the limits, and uploads under way are bounded (T35)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from arp import Access, App, Bounds, HubSettings, Limits, Turn
from tests.server.processes import start
from tests.support.serving import Serving, serving
from tests.support.waiting import becomes

MESSAGE, FILE = 20_000, 100_000
EACH = FILE + MESSAGE + (64 << 10)
"""The largest form that is taken."""

app = App(
    title="Bounded",
    settings=HubSettings(limits=Limits(max_message_bytes=MESSAGE, max_upload_bytes=FILE)),
    access=Access(
        bounds=Bounds(
            body_s=1.0, max_uploads=4, max_uploads_per_user=2, max_received_bytes_per_user=EACH
        )
    ),
)


@app.agent
async def agent(turn: Turn) -> None:
    """Says how much it got."""
    await turn.say(f"{len(turn.text)} {sum(ref.size for ref in turn.files)}")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Serving]:
    with serving(app, ledger=f"sqlite:{tmp_path / 'ledger.db'}") as running:
        yield running


ROUTES = ["/_arp/v1/input", "/agent"]


async def posted(server: Serving, path: str, **body: Any) -> httpx.Response:
    async with asyncio.timeout(20), httpx.AsyncClient(base_url=server.http) as client:
        return await client.post(path, **body)


def code(response: httpx.Response) -> tuple[int, int]:
    """Return the HTTP status and the code of an error."""
    message = response.json()
    first = message[0] if isinstance(message, list) else message
    return response.status_code, first["payload"]["code"]


@pytest.mark.parametrize("path", ROUTES)
@pytest.mark.parametrize(
    "fields",
    [
        {"message": "x" * (MESSAGE + 1)},
        {"message": "{}", "other": "x" * MESSAGE},
        {f"field{number}": "x" * (MESSAGE // 4) for number in range(5)},
        {"message": "é" * (MESSAGE // 2 + 1)},
    ],
)
async def test_text_of_a_form_is_bounded_as_a_message_is(
    server: Serving, path: str, fields: dict[str, str]
) -> None:
    """In one field or in several."""
    parts = {name: (None, value) for name, value in fields.items()}
    assert code(await posted(server, path, files=parts)) == (413, 4)


async def test_form_at_the_limit_is_taken(server: Serving) -> None:
    parts = {
        "message": (None, "x" * (MESSAGE - 100)),
        "more": (None, "y" * 100),
        "f": ("f", b"z" * FILE),
    }
    answer = await posted(server, "/agent", files=parts)
    assert (answer.status_code, answer.json()["text"]) == (200, f"{MESSAGE - 100} {FILE}")


async def chunks(content: bytes) -> AsyncIterator[bytes]:
    for at in range(0, len(content), 10_000):
        yield content[at : at + 10_000]


@pytest.mark.parametrize("path", ROUTES)
@pytest.mark.parametrize("kind", ["application/json", "multipart/form-data; boundary=b"])
async def test_body_without_a_length_is_counted_as_it_comes(
    server: Serving, path: str, kind: str
) -> None:
    part = b'--b\r\ncontent-disposition: form-data; name="f"; filename="f"\r\n\r\n'
    content = chunks(part + b"x" * (EACH + 1))
    answer = await posted(server, path, content=content, headers={"content-type": kind})
    assert code(answer) == (413, 4)


class Half:
    """A form that stops in the middle of its file."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def status(self) -> int:
        """Waits for the answer."""
        async with asyncio.timeout(15):
            return int((await self.reader.readline()).split()[1])


@asynccontextmanager
async def half(
    server: Serving, declared: int, sent: int, path: str = "/agent"
) -> AsyncIterator[Half]:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {declared}\r\n"
        "Content-Type: multipart/form-data; boundary=b\r\n\r\n"
    )
    part = b'--b\r\ncontent-disposition: form-data; name="f"; filename="f"\r\n\r\n'
    writer.write(head.encode() + (part + b"x" * sent if sent else b""))
    try:
        yield Half(reader, writer)
    finally:
        writer.close()


@pytest.mark.parametrize("path", ROUTES)
async def test_length_beyond_the_limit_is_refused_before_a_byte_has_come(
    server: Serving, path: str
) -> None:
    async with half(server, EACH + 1, 0, path) as one:
        assert await one.status() == 413
    async with half(server, 10**40, 0, path) as one:
        assert await one.status() in (400, 413)


async def under_way(server: Serving, uploads: int) -> None:
    intake = server.application.state.intake
    await becomes(lambda: server.call(lambda: intake.uploads.used) == uploads)


async def test_uploads_under_way_are_bounded_and_abandoned_ones_give_room(
    server: Serving,
) -> None:
    """Whether the client goes away, or stops and is cut off."""
    file = {"f": ("f", b"x")}
    async with half(server, EACH, 10) as first:
        async with half(server, EACH, 10):
            await under_way(server, 2)
            assert code(await posted(server, "/agent", files=file)) == (429, 16)
            assert (await posted(server, "/agent", json={"message": "x"})).status_code == 200
        await under_way(server, 1)
        assert (await posted(server, "/agent", files=file)).status_code == 200
        assert await first.status() == 408
    await under_way(server, 0)
    assert server.call(lambda: server.application.state.intake.received.used) == 0


async def test_bytes_under_way_are_bounded(server: Serving) -> None:
    """What is too much is refused; what fits beside the other is taken."""
    file = {"f": ("f", b"x" * FILE)}
    intake = server.application.state.intake
    async with half(server, EACH, FILE - 10):
        await becomes(lambda: server.call(lambda: intake.received.used) > FILE)
        refused = code(await posted(server, "/agent", files=file))
        beside = await posted(server, "/agent", files={"f": ("f", b"x" * (FILE // 4))})
    await under_way(server, 0)
    again = await posted(server, "/agent", files=file)
    assert (refused, beside.status_code, again.status_code) == ((429, 16), 200, 200)


AGENT = Path(__file__).with_name("scripted.py")
LARGE = 24 << 20
MOST_GROWTH = 24 << 20
NULLS = "[" + "{}," * (LARGE // 3) + "0]"


async def test_memory_stays_bounded_whatever_is_posted(tmp_path: Path) -> None:
    """A text of 24 MB costs nothing like 24 MB; nor do files, several at once."""
    server = await start(AGENT, tmp_path / "ledger.db")
    small: Any = {"message": (None, "fail"), "f": ("f", b"x")}
    try:
        async with asyncio.timeout(60), httpx.AsyncClient(base_url=server.http) as client:
            assert (await client.post("/scripted", files=small)).status_code == 200
            before = server.peak()
            for path in ("/_arp/v1/input", "/scripted"):
                answer = await client.post(path, files={"message": (None, NULLS)}, timeout=30)
                assert answer.status_code == 413
            large: Any = {"message": (None, "fail"), "f": ("f", b"x" * LARGE)}
            uploads = [client.post("/scripted", files=large, timeout=50) for _ in range(4)]
            answers = await asyncio.gather(*uploads)
            grown = server.peak() - before
    finally:
        await server.aclose()
    assert [answer.status_code for answer in answers] == [200] * 4
    assert grown < MOST_GROWTH, f"grew by {grown} bytes"
