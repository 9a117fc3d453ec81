"""`POST /{workflow}`: the draft's stream shows the same as every other way in."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest

from arp import App, Turn
from tests.server.scripted import EVERYTHING, app
from tests.support.serving import Serving, serving

WAIT_S = 30.0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    path = tmp_path_factory.mktemp("ledger") / "ledger.db"
    with serving(app, ledger=f"sqlite:{path}") as running:
        yield running


async def events(response: httpx.Response) -> AsyncIterator[tuple[str, Any]]:
    name = ""
    async for line in response.aiter_lines():
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            data = line.removeprefix("data: ")
            yield name, data if data == "[DONE]" else json.loads(data)


async def answer(client: httpx.AsyncClient, session_id: str, component: str) -> None:
    if component == "sure":
        said: dict[str, Any] = {"input_type": "action", "data": {"action": "confirm"}}
    else:
        said = {"input_type": "form_submit", "data": {"fields": {"name": "Ada", "age": 36}}}
    message = {"v": 1, "type": "input", "session_id": session_id, "source_component": component}
    response = await client.post("/_arp/v1/input", json={**message, **said})
    assert response.status_code == 200, response.text


class DraftScreen:
    """What a client of the draft's stream would show."""

    def __init__(self) -> None:
        self.output: list[Any] = []
        self.tools: list[list[Any]] = []
        self.seen: list[str] = []

    def apply(self, name: str, data: Any) -> None:
        self.seen.append(name)
        ids = [part["id"] if isinstance(part, dict) else None for part in self.output]
        match name:
            case "delta":
                if self.output and isinstance(self.output[-1], str):
                    self.output[-1] += data["delta"]
                else:
                    self.output.append(data["delta"])
            case "tool_start":
                self.tools.append([data["tool"], data["args"], None, None])
            case "tool_end":
                self.tools[-1][2] = data["ok"]
            case "tool_render":
                shown = {"id": data["id"], "type": data["component"], "props": data["props"]}
                if data["id"] in ids:
                    self.output[ids.index(data["id"])] = shown
                else:
                    self.output.append(shown)
            case "tool_remove":
                del self.output[ids.index(data["id"])]


async def test_workflow_stream_ends_in_the_same_screen(server: Serving) -> None:
    """protocol.md 6: the draft's event names, `run_id` first, `[DONE]` last.

    Each question ends the stream; the run is followed again after its answer.
    """
    body = {"message": "everything", "session_id": "workflow-1"}
    accept = {"accept": "text/event-stream"}
    request: dict[str, Any] = {"method": "POST", "url": "/scripted", "json": body}
    answered: list[str] = []
    is_over = False
    async with asyncio.timeout(WAIT_S), httpx.AsyncClient(base_url=server.http) as client:
        while not is_over:
            screen = DraftScreen()
            async with client.stream(**request, headers=accept) as response:
                assert response.headers["content-type"].startswith("text/event-stream")
                async for name, data in events(response):
                    screen.apply(name, data)
            open_ids = [
                part["id"]
                for part in screen.output
                if isinstance(part, dict) and part["props"].get("state") == "open"
            ]
            is_over = not open_ids
            for name in open_ids:
                await answer(client, "workflow-1", name)
            answered += open_ids
            request = {"method": "GET", "url": "/_api/runs/stream/workflow-1.t1"}
    assert answered == ["sure", "form"]
    assert screen.seen[0] == "run_id"
    assert screen.seen[-1] == "done"
    assert screen.tools == [tool[:4] for tool in EVERYTHING["tools"]]  # the draft knows no more
    assert screen.output == EVERYTHING["output"]


async def test_run_can_be_followed_again_from_its_beginning(server: Serving) -> None:
    """`/_api/runs/stream/{id}` tells a run that is over the same way."""
    async with asyncio.timeout(WAIT_S), httpx.AsyncClient(base_url=server.http) as client:
        done = await client.post("/scripted", json={"message": "fail", "session_id": "again"})
        run = done.json()
        seen = []
        async with client.stream("GET", f"/_api/runs/stream/{run['run_id']}") as response:
            async for name, data in events(response):
                seen.append((name, data))
    assert run["status"] == "failed"
    assert seen[0] == ("run_id", {"run_id": "again.t1"})
    assert ("delta", {"delta": "Before. "}) in seen
    assert [data["code"] for name, data in seen if name == "error"] == [18]
    assert seen[-1] == ("done", "[DONE]")


async def test_without_accept_the_answer_comes_when_the_turn_is_over(server: Serving) -> None:
    """A client that wants JSON gets the whole turn."""
    async with asyncio.timeout(WAIT_S), httpx.AsyncClient(base_url=server.http) as client:
        response = await client.post("/scripted", json={"message": "wait"})
        run = response.json()
    assert run["status"] == "waiting"
    assert run["text"] == "Waiting. "
    assert run["components"][0]["props"]["title"] == "Still there?"


@pytest.mark.parametrize(
    ("path", "kind", "body", "status"),
    [
        ("/nobody", "application/json", b"{}", 404),
        ("/scripted", "text/plain", b"{}", 400),
        ("/scripted", "application/json", b"[1]", 400),
        ("/scripted", "application/json", b"{", 400),
        ("/scripted", "application/json", b"[" * 100_000, 400),
        ("/scripted", "application/json", b'{"message": 1}', 400),
        ("/scripted", "application/json", b'{"session_id": 1}', 400),
        ("/scripted", "application/json", b'{"n": [' + b"0," * 20_000 + b"0]}", 413),
    ],
)
async def test_bad_workflow_request_gets_a_clear_answer(
    server: Serving, path: str, kind: str, body: bytes, status: int
) -> None:
    """Bad input gets an error, and the server lives on."""
    async with asyncio.timeout(WAIT_S), httpx.AsyncClient(base_url=server.http) as client:
        response = await client.post(path, content=body, headers={"content-type": kind})
        health = await client.get("/health")
    assert response.status_code == status
    assert "error" in response.text
    assert health.status_code == 200


async def test_workflow_stream_and_run_tell_what_the_turn_took() -> None:
    """protocol.md 2.1: `commit` has `usage`; the draft's stream tells it before `done`."""
    spending = App()

    @spending.agent("spends")
    async def spends(turn: Turn) -> None:
        turn.usage(input_tokens=7)
        await turn.say("x")

    with serving(spending) as server:
        async with httpx.AsyncClient(base_url=server.http) as client:
            accept = {"accept": "text/event-stream"}
            body = {"message": "go", "session_id": "u"}
            streamed = await client.post("/spends", json=body, headers=accept)
            run = await client.get("/_api/runs/u.t1")
            chat = await client.get("/_api/chats/u")
    assert 'event: usage\ndata: {"input_tokens":7}\n\nevent: done\n' in streamed.text
    assert run.json()["usage"] == {"input_tokens": 7}
    assert chat.json()["messages"][-1]["usage"] == {"input_tokens": 7}
