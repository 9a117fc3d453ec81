"""Spans of the author's own code are parts of ours, and of the trace of whoever asks."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Tracer

from arp.control.turns import StartTurn, TurnInput
from arp.turn.turn import Turn
from tests.control.control_rig import controlled, said
from tests.support.waiting import becomes
from tests.telemetry.rig import followed
from tests.telemetry.test_follower import turn_over

TRACEPARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


class Own:
    """The author's own instrumentation."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.tracer: Tracer = provider.get_tracer("own")

    @property
    def spans(self) -> dict[str, ReadableSpan]:
        """By name."""
        return {span.name: span for span in self._exporter.get_finished_spans()}


@pytest.fixture
def own() -> Iterator[Own]:
    yield Own()
    assert not trace.get_current_span().get_span_context().is_valid


def ids(span: ReadableSpan) -> tuple[int, int]:
    """Return what a child names."""
    return span.context.trace_id, span.context.span_id


def parent(span: ReadableSpan) -> tuple[int, int] | None:
    """Return what a span names."""
    return (span.parent.trace_id, span.parent.span_id) if span.parent is not None else None


async def test_own_spans_are_parts_of_the_turn_and_of_the_tool(own: Own) -> None:
    async def agent(turn: Turn) -> None:
        with own.tracer.start_as_current_span("plan"):
            await turn.say("Hello")
        async with turn.tool("query") as tool:
            with own.tracer.start_as_current_span("select"):
                await asyncio.to_thread(lambda: own.tracer.start_span("in a thread").end())
            tool.result("x" * 5_000)
        await asyncio.create_task(in_a_task())

    async def in_a_task() -> None:
        own.tracer.start_span("in a task").end()

    async with followed(agent) as rig:
        await turn_over(rig)
        await rig.follower.round()
        ours = {span.name: span for span in rig.exported.spans}
    turn, tool, mine = ours["invoke_agent agent"], ours["execute_tool query"], own.spans
    assert parent(mine["plan"]) == parent(mine["in a task"]) == ids(turn)
    assert parent(mine["select"]) == ids(tool)
    assert parent(mine["in a thread"]) == ids(mine["select"])
    assert parent(tool) == ids(turn)


async def test_own_spans_of_two_turns_at_once_are_in_their_own_traces(own: Own) -> None:
    both = asyncio.Barrier(2)

    async def agent(turn: Turn) -> None:
        await both.wait()
        own.tracer.start_span(turn.session_id).end()

    async with followed(agent) as rig:
        for session_id in ("one", "two"):
            asked = StartTurn(session_id=session_id, input=TurnInput(text="go"))
            await rig.control.turns.start(asked)
        for session_id in ("one", "two"):
            live = await rig.control.context.live(session_id)
            await becomes(lambda live=live: live.session.running is None)  # type: ignore[misc]
            await live.written()
        await rig.follower.round()
        ours = {ids(span) for span in rig.exported.spans}
    assert {parent(own.spans["one"]), parent(own.spans["two"])} == ours
    assert len(ours) == 2


async def test_what_raises_in_a_tool_leaves_its_span(own: Own) -> None:
    async def agent(turn: Turn) -> None:
        with pytest.raises(KeyError):
            async with turn.tool("query"):
                raise KeyError("x")
        own.tracer.start_span("after").end()

    async with followed(agent) as rig:
        await turn_over(rig)
        await rig.follower.round()
        (turn,) = [span for span in rig.exported.spans if span.name == "invoke_agent agent"]
    assert parent(own.spans["after"]) == ids(turn)


async def test_turn_in_the_callers_trace_has_own_spans_in_it(own: Own) -> None:
    async def agent(turn: Turn) -> None:
        own.tracer.start_span("mine").end()

    async with followed(agent) as rig:
        await turn_over(rig, traceparent=TRACEPARENT)
        await rig.follower.round()
        (turn,) = rig.exported.spans
    assert parent(own.spans["mine"]) == ids(turn)
    assert format(turn.context.trace_id, "032x") == TRACEPARENT.split("-")[1]


@pytest.mark.parametrize(("flags", "kept"), [("01", True), ("00", False)])
async def test_where_telemetry_is_off_the_caller_is_the_parent(
    own: Own, flags: str, kept: bool
) -> None:
    seen: list[Any] = []

    async def agent(turn: Turn) -> None:
        async with turn.tool("query"):
            seen.append(trace.get_current_span().get_span_context())
            own.tracer.start_span("mine").end()

    async with controlled(agent) as control:
        await said(control, traceparent=TRACEPARENT[:-2] + flags)
        live = await control.context.live("s")
        await becomes(lambda: live.session.running is None)
    (context,) = seen
    assert format(context.span_id, "016x") == "00f067aa0ba902b7"
    assert (context.is_remote, bool(context.trace_flags)) == (True, kept)
    assert ("mine" in own.spans) is kept


async def test_where_telemetry_is_off_and_nobody_has_a_trace_own_spans_have_none(own: Own) -> None:
    async def agent(turn: Turn) -> None:
        own.tracer.start_span("mine").end()

    async with controlled(agent) as control:
        await said(control)
        live = await control.context.live("s")
        await becomes(lambda: live.session.running is None)
    assert parent(own.spans["mine"]) is None


async def test_what_is_not_sampled_has_no_own_spans_either(
    own: Own, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "parentbased_traceidratio")
    monkeypatch.setenv("OTEL_TRACES_SAMPLER_ARG", "0")

    async def agent(turn: Turn) -> None:
        async with turn.tool("query"):
            own.tracer.start_span("mine").end()

    async with followed(agent) as rig:
        await turn_over(rig)
        await rig.follower.round()
        assert rig.exported.spans == []
    assert own.spans == {}
