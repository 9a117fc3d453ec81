"""Files over real sockets: who gets them, and what a browser may do with them."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest

from arp import Access, App, Turn, ui
from arp.server.routes.blobs import raster_type
from tests.server.rpc import rpc
from tests.server.sockets import raw
from tests.support.serving import Serving, serving

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256))
PAGE = b"<script>alert(1)</script>"
TOKENS = {"a": "ada", "b": "bob"}

app = App(access=Access(authenticate=lambda connection: TOKENS.get(connection.token)))


@app.agent
async def agent(turn: Turn) -> None:
    """Shows a picture and offers a page, or saves a file under a name."""
    if turn.text.startswith("save "):
        ref = await turn.save_file(turn.text.removeprefix("save "), b"hello", "text/plain")
        await turn.say(turn.file_url(ref))
        return
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


NAMES = [
    ("plain.pdf", 'filename="plain.pdf"'),
    ("안내서.pdf", "filename=\"___.pdf\"; filename*=UTF-8''%EC%95%88%EB%82%B4%EC%84%9C.pdf"),
    ("été ✓.csv", "filename=\"_t_ _.csv\"; filename*=UTF-8''%C3%A9t%C3%A9%20%E2%9C%93.csv"),
    ('it\'s "50%".txt', "filename=\"it's _50__.txt\"; filename*=UTF-8''it%27s%20%2250%25%22.txt"),
]


@pytest.mark.parametrize(("name", "told"), NAMES)
async def test_file_is_saved_under_the_name_that_the_agent_gave_it(
    server: Serving, name: str, told: str
) -> None:
    """RFC 6266, 4.3: also a name with letters beyond ASCII, whoever makes the address."""
    async with raw(server, additional_headers={"authorization": "Bearer a"}) as client:
        session_id = f"named-{name.encode().hex()[:40]}"
        await client.hello(session_id, ["text"], "input")
        await client.say(session_id, f"save {name}")
        await client.until("commit", final=True)
    path = client.of("delta")[0]["payload"]["delta"]
    written = f"{'/'.join(path.split('/')[:5])}/{quote(name)}"
    async with asking(server) as http:
        answers = [await http.get(path), await http.get(written)]
    assert [got.headers["content-disposition"] for got in answers] == [f"attachment; {told}"] * 2
    assert [got.content for got in answers] == [b"hello"] * 2


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


# -- the cookie --------------------------------------------------------------------------------


async def with_cookie(server: Serving, token: str) -> tuple[str, str]:
    """Return a user's cookie, and what was said about it."""
    async with asking(server, token) as client:
        given = await client.post("/_api/blobs/cookie")
    assert (given.status_code, given.headers["cache-control"]) == (204, "no-store")
    told = given.headers["set-cookie"]
    return told.partition(";")[0], told


async def test_cookie_opens_the_users_files_and_nothing_else(server: Serving) -> None:
    """For `src` and links, which can carry no token."""
    plot, _ = await addresses(server, "cookie")
    cookie, told = await with_cookie(server, "a")
    assert told.endswith("; Path=/_api/blobs; Max-Age=3600; HttpOnly; SameSite=Strict")
    theirs, _ = await with_cookie(server, "b")
    async with asking(server, None) as client:
        got = await client.get(plot, headers={"cookie": f"other=1; {cookie}"})
        assert (got.status_code, got.content) == (200, PNG)
        assert (await client.get(plot, headers={"cookie": theirs})).status_code == 404
        assert (await client.get("/_api/chats", headers={"cookie": cookie})).status_code == 401
        again = await client.post("/_api/blobs/cookie", headers={"cookie": cookie})
        assert again.status_code == 401


async def test_nobody_gets_a_cookie_without_a_token(server: Serving) -> None:
    async with asking(server, None) as client:
        assert (await client.post("/_api/blobs/cookie")).status_code == 401


@pytest.mark.parametrize("change", ["name", "grounds", "time", "signature", "nothing", "broken"])
async def test_cookie_that_was_changed_opens_nothing(server: Serving, change: str) -> None:
    plot, _ = await addresses(server, f"forged-{change}")
    cookie, _ = await with_cookie(server, "a")
    name, _, value = cookie.partition("=")
    user, grounds, until, signature = value.split(".")
    forged = {
        "name": f"{base64.urlsafe_b64encode(b'bob').decode()}.{grounds}.{until}.{signature}",
        "grounds": f"{user}.x{grounds}.{until}.{signature}",
        "time": f"{user}.{grounds}.{int(until) + 1}.{signature}",
        "signature": f"{user}.{grounds}.{until}.{'0' * 64}",
        "nothing": "",
        "broken": '"',
    }[change]
    async with asking(server, None) as client:
        answer = await client.get(plot, headers={"cookie": f"{name}={forged}"})
    assert answer.status_code == 401


def on_disk(directory: Path) -> list[bytes]:
    """Return the content of every file below a directory."""
    return [path.read_bytes() for path in directory.rglob("*") if path.is_file()]


async def test_with_a_session_its_files_leave_the_disk(tmp_path: Path) -> None:
    """Saved by the agent, uploaded, exported; equal ones of other sessions stay."""
    with serving(app, ledger=f"sqlite:{tmp_path / 'ledger.db'}") as server:
        plot, _ = await addresses(server, "goes")
        stays, _ = await addresses(server, "stays")
        body = '{"v":1,"type":"input","input_type":"file","session_id":"goes","data":{}}'
        files = {"f": ("x.csv", b"a,b\n1,2\n")}
        authorization = {"authorization": "Bearer a"}
        async with asking(server) as client:
            await client.post("/_arp/v1/input", data={"message": body}, files=files)
            async with rpc(server.port, additional_headers=authorization) as control:
                await control.follow("goes")
                await control.until("turn.completed", turnId="t2")
                await control.call("evidence/export", sessionId="goes")
            before = on_disk(tmp_path / "ledger.blobs")
            deleted = await client.delete("/_api/chats/goes")
            gone, there = await client.get(plot), await client.get(stays)
    assert sum(content == PNG for content in before) == 2
    assert b"a,b\n1,2\n" in before
    assert deleted.status_code == 200
    assert (gone.status_code, there.content) == (404, PNG)
    assert sorted(on_disk(tmp_path / "ledger.blobs")) == sorted([PNG, PAGE])
