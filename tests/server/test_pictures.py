"""A picture from elsewhere stands in a frame that may fetch it and nothing else."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator
from hashlib import sha256

import httpx
import pytest

from arp import Access, App, Turn
from arp.server.page import origin_of
from tests.support.serving import Serving, serving

app = App(title="Pictures")


@app.agent
async def agent(_: Turn) -> None:
    """Does nothing."""


@pytest.fixture(scope="module")
def server() -> Iterator[Serving]:
    with serving(app) as running:
        yield running


async def framed(server: Serving, src: str, **more: str) -> httpx.Response:
    """Asks for the frame of a picture, as a frame of the page does."""
    async with httpx.AsyncClient(base_url=server.http) as client:
        came = {"sec-fetch-dest": "iframe", "sec-fetch-site": "same-origin"}
        return await client.get("/_picture", params={"src": src, **more}, headers=came)


async def test_the_policy_names_the_picture_s_host_and_no_other(server: Serving) -> None:
    """W53, W79: a redirect, a script or a form leads nowhere else."""
    response = await framed(server, "https://pictures.example:8443/a.png?size=2")
    directives = dict(
        part.split(" ", 1) for part in response.headers["content-security-policy"].split("; ")
    )
    assert response.status_code == 200
    assert directives["default-src"] == "'none'"
    assert directives["img-src"] == "https://pictures.example:8443"
    assert directives["sandbox"] == "allow-scripts"
    assert directives["frame-ancestors"] == "'self'"
    assert response.headers["referrer-policy"] == "no-referrer"
    script = re.search("<script>(.*)</script>", response.text)
    assert script is not None
    digest = b64encode(sha256(script[1].encode()).digest()).decode()
    assert directives["script-src"] == f"'sha256-{digest}'"


async def test_a_server_with_a_token_gives_the_frame_without_one() -> None:
    """A browser sends no header for a frame, and the frame has nothing of a session."""
    private = App(access=Access(token="secret"))
    private.agent(agent)
    with serving(private) as running:
        assert (await framed(running, "https://pictures.example/a.png")).status_code == 200


async def test_the_address_cannot_become_markup(server: Serving) -> None:
    """What is not part of an address is text in it."""
    response = await framed(server, 'https://pictures.example/"><script>alert(1)</script>')
    assert 'src="https://pictures.example/&quot;&gt;&lt;script&gt;' in response.text
    assert response.text.count("<script>") == 1


async def test_a_picture_may_fill_its_frame(server: Serving) -> None:
    assert '<img class="cover"' in (await framed(server, "https://a.example/", fit="cover")).text
    assert "<img alt" in (await framed(server, "https://a.example/", fit='"onload="')).text


@pytest.mark.parametrize(
    "src",
    [
        "",
        "javascript:alert(1)",
        "data:image/png;base64,AAAA",
        "file:///etc/passwd",
        "//pictures.example/a.png",
        "https:///a.png",
        "https://user:secret@pictures.example/a.png",
        "https://a.example; script-src *",
        "https://a.example,b.example/a.png",
        "https://'self'/a.png",
        "https://*/a.png",
        "https://[::1/a.png",
        "https://pictures.example/" + "a" * 5000,
    ],
)
async def test_what_is_no_address_of_a_picture_is_refused(server: Serving, src: str) -> None:
    """Nothing of it comes near the policy."""
    response = await framed(server, src)
    assert response.status_code == 400
    assert "img-src 'self' data: blob:" in response.headers["content-security-policy"]


@pytest.mark.parametrize(
    ("dest", "site"),
    [("document", "none"), ("iframe", "cross-site"), ("image", "same-origin")],
)
async def test_only_a_frame_of_our_page_gets_it(server: Serving, dest: str, site: str) -> None:
    """A link from elsewhere shows nothing under our name."""
    headers = {"sec-fetch-dest": dest, "sec-fetch-site": site}
    async with httpx.AsyncClient(base_url=server.http, headers=headers) as client:
        response = await client.get("/_picture?src=https://pictures.example/a.png")
    assert response.status_code == 403


async def test_a_browser_that_does_not_say_where_it_is_gets_it_too(server: Serving) -> None:
    """On plain HTTP browsers say nothing; `frame-ancestors` holds then."""
    async with httpx.AsyncClient(base_url=server.http) as client:
        response = await client.get("/_picture?src=https://pictures.example/a.png")
    assert response.status_code == 200


def test_origins_are_those_that_a_policy_can_name() -> None:
    assert origin_of("http://127.0.0.1:8000/a b.png") == "http://127.0.0.1:8000"
    assert origin_of("HTTPS://Pictures.Example/a") == "https://Pictures.Example"
    assert origin_of("https://xn--bcher-kva.example") == "https://xn--bcher-kva.example"
    assert origin_of("https://[::1]/a.png") is None
