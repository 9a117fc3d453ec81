"""Usage that is unknown is absent, never 0: for every runtime, and behind every remote."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic_ai.messages import ModelResponse
from pydantic_ai.usage import RequestUsage

from arp.runtime.contract import types as ari
from arp.runtime.contract.services import RuntimeService
from arp.runtime.frameworks.ag_ui import AgUiRuntime
from arp.runtime.frameworks.reporting_model import use_of
from arp.runtime.plain.function import FunctionRuntime, FunctionTurn
from arp.runtime.programs.claude.claude_code import ClaudeCodeRuntime
from arp.runtime.programs.claude.messages import usage_of
from arp.runtime.programs.codex.codex import CodexRuntime
from arp.runtime.remote.grpc_runtime import GrpcRuntime
from arp.runtime.remote.http_runtime import HttpRuntime
from tests.runtime import test_ag_ui, test_codex, test_grpc, test_http
from tests.runtime.caller import Caller
from tests.runtime.test_claude_code import RecordedFeed, created, runtime
from tests.runtime.test_codex_server import runtime as codex

__all__ = ["codex", "runtime"]

PARTLY = ari.Usage(input_tokens=0, output_tokens=5, cost=0.0, currency="EUR")
"""A known 0 is a number like any other."""


def answering(used: ari.Usage | None) -> FunctionRuntime:
    """Return a runtime that says so of each turn."""

    async def reply(turn: FunctionTurn) -> str:
        turn.used = used
        return "Hello"

    return FunctionRuntime(reply)


async def used_by(remote: RuntimeService) -> ari.Usage | None:
    """Return what the runtime tells of a turn."""
    return (await (await Caller.create(remote)).turn("hello"))[-1].usage


@pytest.mark.parametrize(
    ("told", "seen"), [(PARTLY, PARTLY), (ari.Usage(), None), (None, None)], ids=str
)
async def test_what_is_unknown_stays_absent_over_http_and_grpc(
    told: ari.Usage | None, seen: ari.Usage | None
) -> None:
    assert await used_by(answering(told)) == seen
    async with test_http.served(answering(told)) as url:
        remote = HttpRuntime(url)
        assert await used_by(remote) == seen
        await remote.close()
    async with test_grpc.served(answering(told)) as address:
        over_grpc = GrpcRuntime(address)
        assert await used_by(over_grpc) == seen
        await over_grpc.close()


async def test_codex_that_tells_no_tokens(codex: CodexRuntime) -> None:
    session = await test_codex.created(codex)
    assert (await session.turn("two_messages"))[-1].usage is None
    await session.send("agent")
    await session.answer(await session.asked(), "deny")
    assert (await session.end()).usage == ari.Usage(input_tokens=5, output_tokens=2)


@pytest.mark.parametrize(
    ("told", "of_turn"),
    [
        ([{}], None),
        ([{"model": "m", "outputTokens": 2}], ari.Usage(output_tokens=2)),
        (
            [{"inputTokens": 3, "reasoningTokens": 0}, {"outputTokens": 2, "inputTokens": 4}],
            ari.Usage(input_tokens=7, output_tokens=2, reasoning_tokens=0),
        ),
    ],
)
async def test_ag_ui_agent_that_tells_some_of_it(
    told: list[dict[str, Any]], of_turn: ari.Usage | None
) -> None:
    finished = {**test_ag_ui.FINISHED, "usage": told}
    agent = test_ag_ui.Scripted([test_ag_ui.STARTED, finished])
    events = await (await Caller.create(AgUiRuntime(agent))).turn("go")
    assert events[-1].usage == of_turn
    requests = [one for one in events if one.lifecycle is ari.Lifecycle.USAGE]
    assert len(requests) == (len(told) if of_turn else 0)


def test_pydantic_ai_has_0_where_the_provider_told_nothing() -> None:
    told: list[tuple[object, ...]] = []

    class Turn:
        def use(self, *numbers: object, request_id: str) -> None:
            assert not request_id
            told.append(numbers)

    turn: Any = Turn()
    for used in (RequestUsage(), RequestUsage(input_tokens=3, details={"reasoning_tokens": 0})):
        use_of(turn, ModelResponse([], usage=used, model_name="m"))
    assert told == [(None, None, None, None, "m"), (3, None, None, 0, "m")]


async def test_claude_code_whose_turn_is_cancelled_tells_no_0(runtime: ClaudeCodeRuntime) -> None:
    """It writes 0 tokens for such a turn, though the model has read the message."""
    caller = await created(runtime)
    await caller.send("slow")
    await caller.until(lambda event: event.type is ari.EventType.TEXT)
    await caller.cancel()
    end = (await caller.until(lambda event: event.done))[-1]
    assert end.error is not None
    assert end.usage is None or end.usage.input_tokens is None


def test_claude_code_request_has_the_tokens_of_its_beginning_and_of_its_end() -> None:
    """Some providers tell the input at the beginning alone."""
    recorded = RecordedFeed()
    first = {"type": "message_start", "message": {"id": "m", "model": "x"}}
    first["message"]["usage"] = {"input_tokens": 9, "output_tokens": 1}  # type: ignore[index]
    last = {"type": "message_delta", "usage": {"output_tokens": 5, "input_tokens": None}}
    for event in (first, last):
        recorded.reader.read({"type": "stream_event", "event": event})
    told = recorded.events[-1].details
    assert (told["input_tokens"], told["output_tokens"]) == (9, 5)


def test_claude_code_counts_that_are_missing_are_absent() -> None:
    assert usage_of({"output_tokens": 5}) == ari.Usage(output_tokens=5)
    assert usage_of({}) == ari.Usage()
    cached = {"input_tokens": 4, "cache_read_input_tokens": 6}
    assert usage_of(cached) == ari.Usage(input_tokens=10, cached_tokens=6)
