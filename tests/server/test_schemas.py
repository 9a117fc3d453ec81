"""Schemas of facts and snapshots, and examples of them, are served and are in the package."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import httpx
import pytest
from jsonschema import Draft202012Validator

from arp import Access, App, Turn
from arp.server.routes.schemas import documents
from tests.support.serving import Serving, serving

PAGE = "https://app.example"

app = App(title="Schemas", access=Access(token="t0ken-t0ken-t0ken", origins=(PAGE,)))


@app.agent
async def agent(_: Turn) -> None:
    """Does nothing."""


@pytest.fixture(scope="module")
def server() -> Iterator[Serving]:
    with serving(app) as running:
        yield running


async def asked(server: Serving, path: str, method: str = "GET", **headers: str) -> httpx.Response:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    async with httpx.AsyncClient(base_url=server.http) as client:
        return await client.request(method, path, headers=names)


SCHEMAS = [
    "agentruntime-event",
    "agentruntime-snapshot",
    "agentruntime-lime-profile-event",
    "agentruntime-lime-profile-snapshot",
    "arp-facts",
    "arp-snapshot",
]


def test_they_are_data_of_the_package() -> None:
    folder = files("arp.ledger") / "schemas"
    for name in SCHEMAS:
        read = json.loads((folder / f"{name}.schema.json").read_text(encoding="utf-8"))
        Draft202012Validator.check_schema(read)
    examples = folder / "fixtures" / "lime-profile"
    assert (examples / "thread-read-snapshot.json").is_file()


@pytest.mark.parametrize("name", SCHEMAS)
async def test_a_schema_needs_no_token_and_may_be_kept(server: Serving, name: str) -> None:
    response = await asked(server, f"/schemas/{name}.schema.json")
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/schema+json"
    assert response.headers["x-content-type-options"] == "nosniff"
    assert "max-age=" in response.headers["cache-control"]
    assert response.json()["title"]
    again = await asked(
        server, f"/schemas/{name}.schema.json", if_none_match=response.headers["etag"]
    )
    assert (again.status_code, again.content) == (304, b"")
    head = await asked(server, f"/schemas/{name}.schema.json", "HEAD")
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-length"] == str(len(response.content))


async def test_an_example_fits_the_schema_that_is_served_beside_it(server: Serving) -> None:
    path = "/schemas/fixtures/lime-profile/thread-read-snapshot.json"
    example = await asked(server, path)
    assert example.headers["content-type"] == "application/json"
    schema = await asked(server, "/schemas/agentruntime-lime-profile-snapshot.schema.json")
    Draft202012Validator(schema.json()).validate(example.json())


@pytest.mark.parametrize("path", ["/schemas", "/schemas/"])
async def test_the_list_has_all_of_them(server: Serving, path: str) -> None:
    listed = (await asked(server, path)).json()
    assert listed == [f"/schemas/{name}" for name in documents()]
    assert {f"/schemas/{name}.schema.json" for name in SCHEMAS} <= set(listed)


async def test_a_page_of_a_listed_origin_reads_them_and_no_other(server: Serving) -> None:
    path = "/schemas/arp-facts.schema.json"
    response = await asked(server, path, origin=PAGE)
    assert response.headers["access-control-allow-origin"] == PAGE
    refused = await asked(server, path, origin="https://other.example")
    assert refused.status_code == 403


@pytest.mark.parametrize(
    "path",
    ["/schemas/none.schema.json", "/schemas/../fact.py", "/schemas/%2e%2e/fact.py", "/schemas//x"],
)
async def test_nothing_else_is_there(server: Serving, path: str) -> None:
    response = await asked(server, path)
    assert response.status_code in (401, 404)
    assert b"class Fact" not in response.content


async def test_no_schema_is_changed_by_being_asked_for(server: Serving) -> None:
    path = "/schemas/arp-facts.schema.json"
    assert (await asked(server, path, "POST")).status_code in (401, 405)
    kept = files("arp.ledger") / "schemas" / "arp-facts.schema.json"
    assert (await asked(server, path)).content == kept.read_bytes()


PROTOCOL = {
    "arp.proto": "text/plain; charset=utf-8",
    "arp-core.protocol.yaml": "application/yaml",
    "cases/screen.json": "application/json",
    "cases/sentences.json": "application/json",
    "cases/chart_tables.json": "application/json",
    "cases/emphasis.json": "application/json",
    "cases/program_output.json": "application/json",
}


@pytest.mark.parametrize("name", PROTOCOL)
async def test_the_protocol_itself_is_in_the_package_and_served(server: Serving, name: str) -> None:
    """Who has the wheel alone can write a renderer, an agent or a gRPC client."""
    response = await asked(server, f"/schemas/{name}")
    assert response.status_code == 200
    assert response.headers["content-type"] == PROTOCOL[name]
    source = Path(__file__).parents[2] / "schemas" / name
    assert response.content == source.read_bytes()
    assert (files("arp.server") / "protocol" / name).is_file()
    assert f"/schemas/{name}" in (await asked(server, "/schemas")).json()
