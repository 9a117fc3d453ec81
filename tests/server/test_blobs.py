"""Files over real sockets: who gets them, and what a browser may do with them."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from arp import Access, App, Turn, ui
from arp.server.blobs import raster_type
from tests.server.sockets import raw
from tests.serving import Serving, serving

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256))
PAGE = b"<script>alert(1)</script>"
TOKENS = {"Bearer a": "ada", "Bearer b": "bob"}

app = App(access=Access(authenticate=lambda headers: TOKENS.get(headers.get("authorization", ""))))


@app.agent
async def agent(turn: Turn) -> None:
    """Shows a picture and offers a page."""
    plot = await turn.save_file("plot.png", PNG)
    page = await turn.save_file("page.png", PAGE, "image/png")
    turn.show(ui.image(turn.file_url(plot), "A plot", id="plot"))
    await turn.say(turn.file_url(page))


@pytest.fixture(scope="module", params=["memory", "disk"])
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Serving]:
    ledger = "memory:"
    if request.param == "disk":
        ledger = f"sqlite:{tmp_path_factory.mktemp('blobs') / 'ledger.db'}"
    with serving(app, ledger=ledger) as running:
        yield running


async def addresses(server: Serving, session_id: str) -> tuple[str, str]:
    """Lets Ada ask, and gives the addresses of the picture and of the page."""
    async with raw(server, additional_headers={"authorization": "Bearer a"}) as client:
        await client.hello(session_id, ["text", "image"], "input")
        await client.say(session_id, "go")
        await client.until("commit", final=True)
    (component,) = client.of("render")[0]["components"]
    return component["props"]["src"], client.of("delta")[0]["payload"]["delta"]


def asking(server: Serving, token: str | None = "a") -> httpx.AsyncClient:
    headers = {"authorization": f"Bearer {token}"} if token else {}
    return httpx.AsyncClient(base_url=server.http, headers=headers)


async def test_picture_is_shown_and_can_run_nothing(server: Serving) -> None:
    """`ui.image` takes the address that `turn.file_url` gives."""
    plot, _ = await addresses(server, "shown")
    async with asking(server) as client:
        got = await client.get(plot)
    assert (got.status_code, got.content) == (200, PNG)
    assert got.headers["content-type"] == "image/png"
    assert got.headers["content-disposition"] == 'inline; filename="plot.png"'
    assert got.headers["x-content-type-options"] == "nosniff"
    assert got.headers["content-security-policy"] == "default-src 'none'; sandbox"
    assert got.headers["cache-control"] == "private, max-age=86400, immutable"
    assert got.headers["cross-origin-resource-policy"] == "same-origin"


async def test_what_only_calls_itself_a_picture_is_a_download(server: Serving) -> None:
    """A page under the server's own origin must not run, whatever its name and type say."""
    _, page = await addresses(server, "page")
    async with asking(server) as client:
        got = await client.get(page)
    assert got.content == PAGE
    assert got.headers["content-type"] == "application/octet-stream"
    assert got.headers["content-disposition"] == 'attachment; filename="page.png"'


async def test_file_of_a_session_is_given_to_its_owner_alone(server: Serving) -> None:
    """architecture.md: one session never sees another's; the same answer as for none at all."""
    plot, _ = await addresses(server, "hers")
    await addresses(server, "other")
    sha256 = plot.split("/")[4]
    nothing = plot.replace(sha256, "0" * 64)
    asked: list[tuple[str | None, str]] = [
        ("b", plot),
        ("a", nothing),
        ("a", plot.replace(sha256, "..%2f..%2fledger.db")),
        ("a", "/_api/blobs/" + sha256),
        ("a", plot.replace(plot.split("/")[3], "sbm9uZQ")),
    ]
    answers = []
    for token, path in asked:
        async with asking(server, token) as client:
            got = await client.get(path)
        answers.append((got.status_code, got.json()["payload"]["error"]))
    async with asking(server, None) as client:
        unknown = await client.get(plot)
    assert answers == [(404, "no such file")] * 5
    assert unknown.status_code == 401


async def test_equal_bytes_in_another_session_are_not_reached_through_ones_own(
    server: Serving,
) -> None:
    """A hash is no credential: Bob's own session does not hold Ada's file."""
    plot, _ = await addresses(server, "ada")
    async with raw(server, additional_headers={"authorization": "Bearer b"}) as client:
        await client.hello("bobs", ["text"], "input")
    his = base64.urlsafe_b64encode(b"bobs").decode().rstrip("=")
    async with asking(server, "b") as client_:
        got = await client_.get(plot.replace(plot.split("/")[3], "s" + his))
    assert got.status_code == 404


async def test_uploaded_file_has_an_address_too(server: Serving) -> None:
    """What came with an input of the session."""
    session = base64.urlsafe_b64encode(b"up").decode().rstrip("=")
    body = '{"v":1,"type":"input","input_type":"file","session_id":"up","data":{}}'
    async with asking(server) as client:
        sent = await client.post(
            "/_arp/v1/input", data={"message": body}, files={"f": ("x.csv", b"a,b\n1,2\n")}
        )
        history = (await client.get("/_api/chats/up")).json()
        sha256 = history["messages"][0]["data"]["files"][0]["sha256"]
        got = await client.get(f"/_api/blobs/s{session}/{sha256}/x.csv")
    assert sent.status_code == 200
    assert (got.status_code, got.content) == (200, b"a,b\n1,2\n")


async def test_file_on_the_disk_is_given_in_ranges(tmp_path: Path) -> None:
    """RFC 9110, 14: a download goes on where it broke off."""
    with serving(app, ledger=f"sqlite:{tmp_path / 'ledger.db'}") as server:
        plot, _ = await addresses(server, "ranges")
        async with asking(server) as client:
            got = await client.get(plot, headers={"range": "bytes=1-3"})
    assert (got.status_code, got.content) == (206, b"PNG")


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF89a", "image/gif"),
        (b"RIFF\x00\x00\x00\x00WEBPVP8 ", "image/webp"),
        (b"RIFF\x00\x00\x00\x00WAVE", None),
        (b"<svg xmlns=", None),
        (b"", None),
    ],
)
def test_images_are_known_by_their_first_bytes(head: bytes, kind: str | None) -> None:
    """Not by what somebody says of them."""
    assert raster_type(head) == kind
