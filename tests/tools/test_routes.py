"""The HTTP interface: each endpoint in the exact shape of section 6, and what is refused."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from arp import App, Turn
from arp.access.settings import Access
from arp.protocol.json_value import Json, JsonObject
from arp.server.application import Application
from arp.tools.app.agent import ToolAgent
from arp.tools.run.runtime import OnChunk
from tests.tools.house import house
from tests.tools.serving_routes import ToolHouse, tool_house

WAIT_S = 20.0
EXT = {"type": "github_deploy", "tool_name": "x", "repo_url": "ext::sh -c id"}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ToolHouse]:
    with tool_house(tmp_path_factory.mktemp("data")) as made:
        yield made


def get(served: ToolHouse, path: str) -> httpx.Response:
    return httpx.get(f"{served.url}{path}")


def post(served: ToolHouse, path: str, body: Json, **headers: str) -> httpx.Response:
    return httpx.post(f"{served.url}{path}", json=body, headers=headers, timeout=WAIT_S)


def test_health_has_the_exact_shape(served: ToolHouse) -> None:
    assert get(served, "/health").json() == {"status": "ok"}


def test_health_of_the_runtimes_says_what_is_missing(served: ToolHouse) -> None:
    answer = get(served, "/health/runtimes").json()
    names = [one["type"] for one in answer["runtimes"]]
    assert names == ["api", "mcp"]
    assert answer["runtimes"][0] == {"type": "api", "available": True, "error": None}
    assert answer["settings"] == {"error": None}


def test_catalog_lists_the_tools_by_category(served: ToolHouse) -> None:
    tools = get(served, "/tools").json()["tools"]
    assert [tool["tool_id"] for tool in tools] == ["add", "count", "fail", "picture", "rows"]
    assert tools[0] == {
        "tool_id": "add",
        "name": "Add",
        "category": "numbers",
        "description": "Does add.",
        "status": "active",
    }


def test_schema_of_a_tool_has_the_exact_shape(served: ToolHouse) -> None:
    answer = get(served, "/tools/add/schema").json()
    assert list(answer) == ["tool_id", "input_schema", "output_schema"]
    assert answer["input_schema"]["required"] == ["a", "b"]


def test_call_answers_with_status_result_and_error(served: ToolHouse) -> None:
    answer = post(served, "/tools/add/invoke", {"params": {"a": 2, "b": 3}, "stream": False})
    assert answer.status_code == 200
    assert answer.json() == {"status": "success", "result": {"sum": 5}, "error": None}


def test_params_that_do_not_fit_are_refused_with_their_path(served: ToolHouse) -> None:
    answer = post(served, "/tools/add/invoke", {"params": {"a": "two", "b": 3}})
    assert answer.status_code == 422
    assert answer.json()["status"] == "error"
    assert answer.json()["result"] is None
    assert "params.a: 'two' is not of type 'integer'" in answer.json()["error"]


def test_tool_that_fails_says_why(served: ToolHouse) -> None:
    answer = post(served, "/tools/fail/invoke", {"params": {}})
    assert answer.status_code == 502
    assert answer.json() == {"status": "error", "result": None, "error": "the disk is full"}


@pytest.mark.parametrize("way", ["field", "header"])
def test_stream_has_the_exact_events(served: ToolHouse, way: str) -> None:
    headers = {"accept": "text/event-stream"} if way == "header" else {}
    body = {"params": {}, "stream": way == "field"}
    answer = post(served, "/tools/count/invoke", body, **headers)
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.text == (
        'data: {"chunk": "0\\n", "done": false}\n\n'
        'data: {"chunk": "1\\n", "done": false}\n\n'
        'data: {"chunk": "2\\n", "done": false}\n\n'
        'data: {"chunk": "{\\"counted\\":3}", "done": true}\n\n'
    )


def test_stream_of_a_tool_that_fails_ends_with_its_error(served: ToolHouse) -> None:
    answer = post(served, "/tools/fail/invoke", {"params": {}, "stream": True})
    assert answer.text == (
        'data: {"chunk": "the disk is full", "done": true, "error": "tool_failed"}\n\n'
    )


def test_call_ends_when_its_caller_goes_away(served: ToolHouse) -> None:
    ended: list[str] = []

    async def slow(params: JsonObject, on_chunk: OnChunk | None) -> Json:
        if on_chunk is not None:
            await on_chunk("begun")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    served.functions.functions["count"], before = slow, served.functions.functions["count"]
    try:
        with httpx.stream(
            "POST", f"{served.url}/tools/count/invoke", json={"stream": True}, timeout=WAIT_S
        ) as answer:
            assert next(answer.iter_lines()).startswith("data:")
        until = time.monotonic() + WAIT_S
        while not ended and time.monotonic() < until:
            time.sleep(0.02)
        assert ended == ["cancelled"]
    finally:
        served.functions.functions["count"] = before


def test_request_is_a_task_that_can_be_asked_about(served: ToolHouse) -> None:
    answer = post(served, "/tools/request", {"description": "please use add"}).json()
    assert answer == {"task_id": answer["task_id"], "status": "pending"}
    status: JsonObject = {}
    until = time.monotonic() + WAIT_S
    while status.get("status") != "completed" and time.monotonic() < until:
        status = get(served, f"/tasks/{answer['task_id']}/status").json()
    assert status == {
        "task_id": answer["task_id"],
        "status": "completed",
        "result": {"tool_id": "add", "url": "https://tools.example.org"},
    }


def test_task_without_a_coding_agent_fails_and_says_so(served: ToolHouse) -> None:
    asked = {"description": "fold paper", "callback_url": None}
    task_id = post(served, "/tools/request", asked).json()["task_id"]
    status: JsonObject = {"status": "pending"}
    until = time.monotonic() + WAIT_S
    while status["status"] in ("pending", "running") and time.monotonic() < until:
        status = get(served, f"/tasks/{task_id}/status").json()
    assert status["status"] == "failed"
    assert "no coding agent is configured" in status["error"]


@pytest.mark.parametrize(
    ("path", "status"),
    [("/tools/none/schema", 404), ("/tasks/none/status", 404), ("/tools/%2e%2e%2fx/schema", 404)],
)
def test_what_is_not_there_is_not_found(served: ToolHouse, path: str, status: int) -> None:
    answer = get(served, path)
    assert answer.status_code == status
    assert "error" in answer.json()


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/tools/none/invoke", b'{"params": {}}', 404),
        ("/tools/add/invoke", b"[", 400),
        ("/tools/add/invoke", b"[]", 400),
        ("/tools/add/invoke", b'{"params": 7}', 400),
        ("/tools/add/invoke", b'{"params": {"a": 1e999, "b": 1}}', 400),
        ("/tools/add/invoke", b'{"params": ' + b"[" * 100_000, 400),
        ("/tools/add/invoke", b'{"params": {"a": ' + b'{"a":' * 60 + b"1" + b"}" * 62, 400),
        ("/tools/add/invoke", b'{"params": {"a": "\xff"}}', 400),
        ("/tools/add/invoke", b'{"params": {"a": [' + b"0," * 19_997 + b"0]}}", 413),
        ("/tools/add/invoke", b'{"params": {"x": "' + b"y" * (5 << 20) + b'"}}', 413),
        ("/tools/request", b"{}", 400),
        ("/tools/request", b'{"description": ""}', 400),
        ("/tools/request", b'{"description": "x", "callback_url": "http://127.0.0.1/"}', 403),
        ("/tools/request", b'{"description": "x", "callback_url": "http://[::1]/"}', 403),
        ("/tools/request", b'{"description": "x", "task_spec": {"type": "rm"}}', 400),
        (
            "/tools/request",
            json.dumps({"description": "x", "task_spec": EXT}).encode(),
            403,
        ),
    ],
)
def test_bad_body_is_refused(served: ToolHouse, path: str, body: bytes, status: int) -> None:
    headers = {"content-type": "application/json"}
    answer = httpx.post(f"{served.url}{path}", content=body, headers=headers, timeout=WAIT_S)
    assert answer.status_code == status, answer.text
    assert answer.json()["error"]
    assert get(served, "/health").json() == {"status": "ok"}


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_body_of_another_type_is_refused(served: ToolHouse, kind: str) -> None:
    answer = httpx.post(
        f"{served.url}/tools/add/invoke", content=b"{}", headers={"content-type": kind}
    )
    assert answer.status_code == 415


@pytest.mark.parametrize(
    "headers",
    [{"origin": "http://evil.example"}, {"host": "evil.example"}, {"sec-fetch-site": "cross-site"}],
)
def test_other_pages_and_names_are_refused_by_the_guard(
    served: ToolHouse, headers: dict[str, str]
) -> None:
    body = {"params": {"a": 1, "b": 2}}
    assert post(served, "/tools/add/invoke", body, **headers).status_code in (403, 421)


def test_token_guards_every_route_but_health(tmp_path: Path) -> None:
    with tool_house(tmp_path, Access(token="s3cret")) as served:
        for path in ("/tools", "/tools/add/schema", "/tasks/x/status", "/openapi.json"):
            assert get(served, path).status_code == 401, path
        assert get(served, "/health/runtimes").status_code == 401
        assert post(served, "/tools/add/invoke", {}).status_code == 401
        assert post(served, "/mcp", {}).status_code == 401
        assert get(served, "/health").status_code == 200
        headers = {"authorization": "Bearer s3cret"}
        assert httpx.get(f"{served.url}/tools", headers=headers).status_code == 200


def test_task_belongs_to_who_asked_for_it(tmp_path: Path) -> None:
    access = Access(authenticate=lambda incoming: incoming.token or None)
    with tool_house(tmp_path, access) as served:
        ann, bob = ({"authorization": f"Bearer {name}"} for name in ("ann", "bob"))
        answer = post(served, "/tools/request", {"description": "use add"}, **ann)
        path = f"{served.url}/tasks/{answer.json()['task_id']}/status"
        assert httpx.get(path, headers=ann).status_code == 200
        assert httpx.get(path, headers=bob).status_code == 404


@pytest.mark.parametrize("name", ["tools", "tasks", "mcp"])
def test_agent_with_the_name_of_a_route_is_refused_at_the_start(tmp_path: Path, name: str) -> None:
    service, _ = house(tmp_path)
    app = App("x", tools=ToolAgent(service=service))

    @app.agent(name)
    async def agent(turn: Turn) -> None:
        """Nobody could post to it."""

    with pytest.raises(ValueError, match=f"an agent cannot be called '{name}'"):
        Application(app.served())


def test_openapi_document_names_every_route(served: ToolHouse) -> None:
    document = get(served, "/openapi.json").json()
    assert document["openapi"] == "3.1.0"
    assert sorted(document["paths"]) == [
        "/health",
        "/health/runtimes",
        "/tasks/{task_id}/status",
        "/tools",
        "/tools/request",
        "/tools/{tool_id}",
        "/tools/{tool_id}/disable",
        "/tools/{tool_id}/enable",
        "/tools/{tool_id}/invoke",
        "/tools/{tool_id}/schema",
        "/tools/{tool_id}/stop",
    ]
    json.dumps(document)
