"""The OpenAPI document has the routes that are served, and nothing else."""

from __future__ import annotations

import json

import httpx
import pytest

from arp import App, Turn
from tools import openapi
from tools.gen_schemas import files


def test_every_route_is_in_the_document_and_a_route_without_an_entry_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    paths = openapi.document()["paths"]
    assert set(paths["/_api/chats/{session_id}"]) == {"get", "patch", "delete"}
    assert paths["/health"]["get"]["security"] == []
    less = {key: one for key, one in openapi.OPERATIONS.items() if key != "GET /health"}
    monkeypatch.setattr(openapi, "OPERATIONS", less)
    with pytest.raises(ValueError, match="GET /health"):
        openapi.document()


async def test_the_server_serves_the_committed_document() -> None:
    app = App()

    @app.agent
    async def agent(turn: Turn) -> None: ...

    transport = httpx.ASGITransport(app.asgi)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        answer = await client.get("/schemas/openapi.json")
    assert answer.json() == json.loads(files()["schemas/openapi.json"])
    assert answer.json()["openapi"] == "3.1.0"
