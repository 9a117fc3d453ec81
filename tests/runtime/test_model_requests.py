"""`model.requested` is written when the request begins, with its parameters and its tools."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from arp import App, HubSettings, connect
from arp.client.client import ArpClient
from arp.ledger.fact import Fact, decode
from arp.runtime.contract import types as ari
from arp.runtime.turns.run_facts import MAX_MESSAGE_BYTES, newest_within
from arp.store.sqlite import SqliteStore
from arp.testing import FakeRuntime, Says, Tells
from tests.runtime.frameworks_under_test import (
    FrameworkUnderTest,
    LangGraphUnderTest,
    OpenAIAgentsUnderTest,
    PydanticAIUnderTest,
)
from tests.runtime.model_server import ModelServer
from tests.support.serving import serving
from tests.support.waiting import becomes

KINDS = [LangGraphUnderTest, OpenAIAgentsUnderTest, PydanticAIUnderTest]


async def facts(place: Path, *types: str) -> list[Fact]:
    """Return the facts of some types that the ledger has now."""
    store = SqliteStore(place / "ledger.db", read_only=True)
    await store.open()
    try:
        found = [decode(body) for _, body in await store.read("s", 0, 10_000)]
    finally:
        await store.aclose()
    return [fact for fact in found if fact.type in types]


@asynccontextmanager
async def shown(
    kind: type[FrameworkUnderTest], place: Path, settings: HubSettings | None = None
) -> AsyncIterator[ArpClient]:
    """Serve an agent of a framework with a fake model, and connect a renderer to it."""
    with ModelServer() as model:
        app = App(ledger=f"sqlite:{place}/ledger.db", settings=settings or HubSettings())
        app.runtime(kind(place, model).make())
        with serving(app) as server:
            async with asyncio.timeout(60), connect(server.http, session_id="s") as client:
                yield client


@pytest.mark.parametrize("kind", KINDS)
async def test_a_request_is_recorded_before_its_answer(
    kind: type[FrameworkUnderTest], tmp_path: Path
) -> None:
    async with shown(kind, tmp_path) as client:
        await client.ask("hello")
    begun, said = (await facts(tmp_path, "model.requested", "model.delta"))[:2]
    assert [begun.type, said.type] == ["model.requested", "model.delta"]
    assert begun.payload["model"] == "fake-1"
    assert begun.payload["tools"] == ["bash"]
    assert isinstance(begun.payload["parameters"], dict)
    assert "messages" not in begun.payload
    ends = await facts(tmp_path, "model.completed")
    assert [end.model_request_id for end in ends] == [begun.model_request_id]
    costs = await facts(tmp_path, "cost.recorded")
    assert [cost.model_request_id for cost in costs] == [begun.model_request_id]
    assert [cost.payload["inputTokens"] for cost in costs] == [11]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_request_is_in_the_ledger_while_the_model_works(
    kind: type[FrameworkUnderTest], tmp_path: Path
) -> None:
    """The model says three hundred words, ten a second; then it is stopped."""
    async with shown(kind, tmp_path) as client:
        turn_id = await client.turn_of(await client.send_text("slow"))

        async def begun() -> Sequence[Fact]:
            return await facts(tmp_path, "model.requested")

        found: Sequence[Fact] = ()
        async with asyncio.timeout(30):
            while not found:
                found = await begun()
        # The fact is recorded before the client hears that the turn runs.
        await becomes(lambda: client.screen.turns[turn_id].status == "running")
        await client.cancel()
        await client.turn_done(turn_id)
    assert [one.model_request_id for one in await begun()] == [found[0].model_request_id]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_request_that_fails_is_one_request(
    kind: type[FrameworkUnderTest], tmp_path: Path
) -> None:
    async with shown(kind, tmp_path) as client:
        turn = await client.turn_done(await client.turn_of(await client.send_text("fail 500")))
        assert turn.status == "failed"
    (begun,) = await facts(tmp_path, "model.requested")
    (failed,) = await facts(tmp_path, "model.failed")
    assert failed.model_request_id == begun.model_request_id
    assert "500" in str(failed.payload["error"])


@pytest.mark.parametrize("kind", KINDS)
async def test_messages_are_recorded_only_if_the_app_wants_them(
    kind: type[FrameworkUnderTest], tmp_path: Path
) -> None:
    settings = HubSettings(record_model_messages=True)
    async with shown(kind, tmp_path, settings) as client:
        await client.ask("hello there")
        await client.ask("once more, key sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789")
    first, second = await facts(tmp_path, "model.requested")
    assert "hello there" in str(first.payload["messages"])
    assert "hello there" in str(second.payload["messages"])
    assert "once more" in str(second.payload["messages"])
    assert "abcdefghijklmnopqrstuvwxyz0123456789" not in str(second.payload)


def started(request_id: str, **details: Any) -> Tells:
    """Return a step that tells that a request to a model begins."""
    return Tells(
        ari.Lifecycle.MODEL_REQUEST,
        details={"status": "started", "request_id": request_id, **details},
    )


async def told(tmp_path: Path, steps: list[Any]) -> dict[str, list[Fact]]:
    """Return the facts about models of one turn of a fake runtime."""
    app = App(ledger=f"sqlite:{tmp_path}/ledger.db")
    app.runtime(FakeRuntime({"go": steps}, cwd=tmp_path, directory=tmp_path / "runtime"))
    with serving(app) as server:
        async with asyncio.timeout(30), connect(server.http, session_id="s") as client:
            await client.ask("go")
    names = ("model.requested", "model.completed", "model.failed", "cost.recorded")
    return {name: await facts(tmp_path, name) for name in names}


async def test_requests_at_the_same_time_end_by_their_own_ids(tmp_path: Path) -> None:
    usage = {"input_tokens": 1, "output_tokens": 2}
    found = await told(
        tmp_path,
        [
            started("a", model="small"),
            started("b", model="large", provider="acme"),
            started("a", model="again"),
            Tells(ari.Lifecycle.USAGE, details={"request_id": "b", "model": "large", **usage}),
            Tells(
                ari.Lifecycle.MODEL_REQUEST,
                "no answer",
                details={"status": "failed", "request_id": "a"},
            ),
            Tells(
                ari.Lifecycle.MODEL_REQUEST, details={"status": "failed", "request_id": "unknown"}
            ),
            started("c", model="small"),
            Says("Done."),
        ],
    )
    small, large, last = found["model.requested"]
    assert [one.payload["model"] for one in (small, large, last)] == ["small", "large", "small"]
    assert [one.model_request_id for one in found["model.completed"]] == [
        large.model_request_id,
        last.model_request_id,
    ]
    assert [one.model_request_id for one in found["model.failed"]] == [small.model_request_id]
    assert [one.model_request_id for one in found["cost.recorded"]] == [large.model_request_id]


async def test_foreign_details_are_bounded_and_messages_are_not_taken(tmp_path: Path) -> None:
    details: dict[str, Any] = {
        "model": "m",
        "parameters": {"stop": "x" * 20_000},
        "tools": ["", 7, *["t" * 300] * 600],
        "messages": ["told without being asked"],
    }
    (begun,) = (await told(tmp_path, [started("a", **details), Says("Done.")]))["model.requested"]
    assert begun.payload["parameters"] == {"leftOut": "20011 bytes; at most 16384"}
    tools = begun.payload["tools"]
    assert isinstance(tools, list)
    assert tools[:2] == ["7", "t" * 200]
    assert len(tools) == 499
    assert "messages" not in begun.payload


def test_the_newest_messages_stay() -> None:
    large = "x" * (MAX_MESSAGE_BYTES // 2)
    assert newest_within(["a", "b"], 100) == ["a", "b"]
    assert newest_within(["old", large, large], MAX_MESSAGE_BYTES) == [large]
    assert newest_within([large * 3], MAX_MESSAGE_BYTES) == []
