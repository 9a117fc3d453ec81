"""Pages of listed origins may read what the server answers; others get nothing to read."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from arp import Access, App, Turn
from tests.support.serving import Serving, serving

PAGE = "https://app.example"

app = App(title="Elsewhere", access=Access(token="t0ken-t0ken-t0ken", origins=(PAGE,)))
BEARER = {"authorization": "Bearer t0ken-t0ken-t0ken"}


@app.agent
async def agent(_: Turn) -> None:
    """Does nothing."""


@pytest.fixture(scope="module")
def server() -> Iterator[Serving]:
    with serving(app) as running:
        yield running


async def asked(server: Serving, method: str, path: str, **headers: str) -> httpx.Response:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    async with httpx.AsyncClient(base_url=server.http) as client:
        return await client.request(method, path, headers=names)


async def test_a_page_of_a_listed_origin_reads_the_answer(server: Serving) -> None:
    response = await asked(server, "GET", "/_api/workflows", origin=PAGE, **BEARER)
    assert response.status_code == 200
    assert response.headers["access-control-allow-origin"] == PAGE
    assert "origin" in response.headers["vary"].lower()
    assert "x-arp-next" in response.headers["access-control-expose-headers"]
    assert "access-control-allow-credentials" not in response.headers


async def test_it_reads_refusals_too(server: Serving) -> None:
    """Else a page could not tell a missing token from a dead network."""
    response = await asked(server, "GET", "/_api/workflows", origin=PAGE)
    assert response.status_code == 401
    assert response.headers["access-control-allow-origin"] == PAGE


async def test_what_it_may_ask_for_is_told_without_a_token(server: Serving) -> None:
    """Browsers send no token with that question."""
    response = await asked(
        server,
        "OPTIONS",
        "/_api/sessions",
        origin=PAGE,
        access_control_request_method="DELETE",
        access_control_request_headers="authorization",
    )
    assert response.is_success
    assert response.headers["access-control-allow-origin"] == PAGE
    assert "DELETE" in response.headers["access-control-allow-methods"]
    assert "authorization" in response.headers["access-control-allow-headers"]


@pytest.mark.parametrize("method", ["GET", "OPTIONS"])
async def test_others_get_nothing_that_they_could_read(server: Serving, method: str) -> None:
    response = await asked(
        server,
        method,
        "/_api/workflows",
        origin="https://evil.example",
        access_control_request_method="GET",
        **BEARER,
    )
    assert response.status_code == 403
    assert "access-control-allow-origin" not in response.headers


async def test_the_server_s_own_page_needs_no_leave(server: Serving) -> None:
    response = await asked(server, "GET", "/_api/workflows", origin=server.http, **BEARER)
    assert response.status_code == 200
    assert "access-control-allow-origin" not in response.headers
