"""The page's files come with headers that let them do only what they must."""

from __future__ import annotations

import re
from collections.abc import Iterator

import httpx
import pytest

from arp import App, Turn
from arp.server.page import STATIC
from tests.serving import Serving, serving

app = App(title="Page")


@app.agent
async def agent(_: Turn) -> None:
    """Does nothing."""


@pytest.fixture(scope="module")
def server() -> Iterator[Serving]:
    with serving(app) as running:
        yield running


@pytest.mark.parametrize(
    "path", ["/", "/_static/app.js", "/_static/style.css", "/_static/icon.svg"]
)
@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_file_carries_the_policy(server: Serving, path: str, method: str) -> None:
    """No script but our own, no frame, no plugin, no request to anywhere else (T42, T44)."""
    async with httpx.AsyncClient(base_url=server.http) as client:
        response = await client.request(method, path)
    policy = response.headers["content-security-policy"]
    assert response.status_code == 200
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "connect-src 'self';" in policy
    assert "frame-ancestors 'none'" in policy
    assert "require-trusted-types-for 'script'" in policy
    assert "unsafe" not in policy
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.headers["referrer-policy"] == "no-referrer"
    assert "server" not in response.headers


async def test_page_asks_for_nothing_that_is_not_there(server: Serving) -> None:
    """Every file that a file of ours names is served."""
    named: set[str] = set()
    for path in STATIC.iterdir():
        if path.suffix in (".html", ".js", ".css"):
            text = path.read_text(encoding="utf-8")
            named |= set(
                re.findall(
                    r'(?:src|href|from|import)\s*=?\s*["\'](?:\./)?(?:_static/)?([\w-]+\.(?:js|css|svg))["\']',
                    text,
                )
            )
    async with httpx.AsyncClient(base_url=server.http) as client:
        statuses = {name: (await client.get(f"/_static/{name}")).status_code for name in named}
    assert "app.js" in named
    assert set(statuses.values()) == {200}


@pytest.mark.parametrize("path", ["/_static/", "/_static/nothing.js", "/_static/%2e%2e/page.py"])
async def test_nothing_but_the_files_is_served(server: Serving, path: str) -> None:
    """No listing, no file beside."""
    async with httpx.AsyncClient(base_url=server.http) as client:
        response = await client.get(path)
    assert response.status_code == 404
