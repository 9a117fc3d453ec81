"""The page's files come with headers that let them do only what they must."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from starlette.routing import Router

from arp import App, Turn
from arp.server.page import POLICY, STATIC, page_routes, policy_of
from tests.support.serving import Serving, serving

app = App(title="Page")


@app.agent
async def agent(_: Turn) -> None:
    """Does nothing."""


@pytest.fixture(scope="module")
def server() -> Iterator[Serving]:
    with serving(app) as running:
        yield running


MANIFEST = json.loads((STATIC / "manifest.json").read_text(encoding="utf-8"))
(SCRIPT,) = (name for name in MANIFEST["first"] if re.fullmatch(r"page-[\w-]{8}\.js", name))
INDEX = (STATIC / "index.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", ["/", f"/_static/{SCRIPT}", "/_static/icon.svg"])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_file_carries_the_policy(server: Serving, path: str, method: str) -> None:
    """No script but our own, no frame, no plugin, no request to anywhere else (T42, T44)."""
    async with httpx.AsyncClient(base_url=server.http) as client:
        response = await client.request(method, path)
    policy = response.headers["content-security-policy"]
    assert response.status_code == 200
    assert "default-src 'none'" in policy
    if path == "/":  # what stands in the document is named by its hash, and nothing else is let in
        policy = re.sub(r" 'sha256-[\w+/]{43}='", "", policy)
    assert "script-src 'self';" in policy
    assert "style-src 'self';" in policy
    assert "connect-src 'self';" in policy
    assert "frame-ancestors 'none'" in policy
    assert policy.endswith("require-trusted-types-for 'script'; trusted-types lit-html")
    assert "unsafe" not in policy
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.headers["referrer-policy"] == "no-referrer"
    assert "server" not in response.headers


@pytest.mark.parametrize(
    ("accepted", "sent"),
    [
        ("br, gzip", "br"),
        ("gzip, deflate", "gzip"),
        ("br;q=0, gzip", "gzip"),
        ("gzip;q=0.0", None),
        ("identity", None),
    ],
)
async def test_files_are_sent_as_they_were_compressed_when_built(
    server: Serving, accepted: str, sent: str | None
) -> None:
    """One content, whatever its encoding; what was not asked for is not sent."""
    headers = {"accept-encoding": accepted}
    async with (
        httpx.AsyncClient(base_url=server.http) as client,
        client.stream("GET", f"/_static/{SCRIPT}", headers=headers) as response,
    ):
        raw = b"".join([part async for part in response.aiter_raw()])
    ending = {"br": ".br", "gzip": ".gz", None: ""}[sent]
    assert response.headers.get("content-encoding") == sent
    assert response.headers["content-type"] == "text/javascript; charset=utf-8"
    assert response.headers["vary"] == "accept-encoding"
    assert raw == (STATIC / f"{SCRIPT}{ending}").read_bytes()


async def test_hashed_names_are_kept_for_ever_and_the_page_is_asked_for_each_time(
    server: Serving,
) -> None:
    async with httpx.AsyncClient(base_url=server.http) as client:
        script = await client.get(f"/_static/{SCRIPT}")
        page = await client.get("/")
        again = await client.get("/", headers={"if-none-match": page.headers["etag"]})
    assert script.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert page.headers["cache-control"] == "no-cache"
    assert again.status_code == 304
    assert "content-security-policy" in again.headers


async def test_page_asks_for_nothing_that_is_not_there(server: Serving) -> None:
    """Every file that a file of ours names is served."""
    named: set[str] = set()
    for path in STATIC.iterdir():
        if path.suffix in (".html", ".js"):
            text = path.read_text(encoding="utf-8")
            named |= set(
                re.findall(r"""["'`](?:\./|_static/)([\w-]+\.(?:js|css|svg))["'`]""", text)
            )
    async with httpx.AsyncClient(base_url=server.http) as client:
        statuses = {name: (await client.get(f"/_static/{name}")).status_code for name in named}
    assert {SCRIPT, "icon.svg"} < named
    assert set(statuses.values()) == {200}


def test_first_load_keeps_its_budget() -> None:
    """Script, and the document with its style, with gzip (webui W3: at most 64 KiB)."""
    sizes = [MANIFEST["files"][name]["gz"] for name in MANIFEST["first"]]
    assert sum(sizes) <= 64 * 1024


async def test_what_stands_in_the_page_is_allowed_by_its_hash_alone(server: Serving) -> None:
    """One script and one style, both named by the policy; no handler, nothing from elsewhere."""
    async with httpx.AsyncClient(base_url=server.http) as client:
        response = await client.get("/")
    policy = response.headers["content-security-policy"]
    for tag, source in (("script", "script-src"), ("style", "style-src")):
        (inside,) = re.findall(rf"<{tag}>(.*?)</{tag}>", response.text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
        assert f"{source} 'self' 'sha256-{digest}';" in policy
    assert policy.count("sha256-") == 2
    assert re.findall(r"<script [^>]*>[^<]", INDEX) == []
    assert re.findall(r"<style |\sstyle=|\son\w+=", INDEX) == []
    assert re.findall(r"(?:src|href)=\"(?!_static/|#|\./)[^\"]*", INDEX) == []


def test_policy_names_each_text_and_a_page_without_any_has_the_plain_one() -> None:
    assert policy_of(b"<p>Nothing</p>") == POLICY
    policy = policy_of(b"<style>a{}</style><script>1</script><script>2</script>")
    assert policy.count("'sha256-") == 3
    assert re.search(r"script-src 'self'( 'sha256-[\w+/]{43}='){2};", policy)
    assert re.search(r"style-src 'self' 'sha256-[\w+/]{43}=';", policy)


async def test_file_that_was_built_again_is_served_as_it_is_now(tmp_path: Path) -> None:
    """A page that is rebuilt under a running server is seen with the next request."""
    page = tmp_path / "index.html"
    page.write_text("<p>old</p>", encoding="utf-8")
    transport = httpx.ASGITransport(app=Router(page_routes(tmp_path)))
    async with httpx.AsyncClient(base_url="http://page", transport=transport) as client:
        old = await client.get("/")
        page.write_text("<p>much newer</p>", encoding="utf-8")
        new = await client.get("/", headers={"if-none-match": old.headers["etag"]})
    assert (old.text, new.status_code, new.text) == ("<p>old</p>", 200, "<p>much newer</p>")


def test_first_request_imports_nothing() -> None:
    """Whoever asks first waits no longer than others: what serves the page is there by then."""
    code = (
        "import asyncio, sys, httpx\n"
        "from starlette.routing import Router\n"
        "from arp.server.page import page_routes\n"
        "async def ask(scope_path):\n"
        "    async def receive(): return {'type': 'http.request', 'body': b''}\n"
        "    async def send(message): told.append(message)\n"
        "    scope = {'type': 'http', 'method': 'GET', 'path': scope_path, 'headers': [],\n"
        "             'query_string': b'', 'root_path': ''}\n"
        "    await router(scope, receive, send)\n"
        "told, router = [], Router(page_routes())\n"
        "loop = asyncio.new_event_loop()\n"
        "loop.run_until_complete(asyncio.sleep(0))\n"
        "before = set(sys.modules)\n"
        "loop.run_until_complete(ask('/'))\n"
        "assert told[0]['status'] == 200\n"
        "print(sorted(set(sys.modules) - before))\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert ran.stdout.strip() == "[]"


@pytest.mark.parametrize("path", ["/_static/", "/_static/nothing.js", "/_static/%2e%2e/page.py"])
async def test_nothing_but_the_files_is_served(server: Serving, path: str) -> None:
    """No listing, no file beside."""
    async with httpx.AsyncClient(base_url=server.http) as client:
        response = await client.get(path)
    assert response.status_code == 404
