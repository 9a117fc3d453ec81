"""The log of every session is followed behind its commits, and each thing told once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from typing import Any

import pytest

from arp.control.turns import StartTurn, TurnInput
from arp.ledger.tracing import Trace
from arp.live.settings import HubSettings
from arp.store.memory import MemoryStore
from arp.telemetry import follower as module
from arp.telemetry.fold import Measured, MeasuredSpan
from arp.telemetry.follower import Follower
from arp.turn.turn import Turn
from tests.control.control_rig import controlled, facts, gate, said
from tests.hub.rig import HeldStore
from tests.support.waiting import becomes
from tests.telemetry.rig import WANTED, Exported, Followed, followed


async def turn_over(rig: Followed, text: str = "hello", **more: Any) -> None:
    """Runs a turn to its end."""
    await said(rig.control, text, **more)
    live = await rig.control.context.live("s")
    await becomes(lambda: live.session.running is None)
    await live.written()


async def test_turn_is_told_with_the_ids_that_its_first_fact_has() -> None:
    async with followed() as rig:
        await turn_over(rig)
        first = json.loads((await facts(rig.control))[1][1])
        await rig.follower.round()
    (span,) = rig.exported.spans
    assert (first["type"], first["turnId"]) == ("turn.submitted", "t1")
    assert span.name == "invoke_agent agent"
    assert format(span.context.trace_id, "032x") == first["traceId"]
    assert format(span.context.span_id, "016x") == first["spanId"]
    assert "telemetry" not in first


async def test_the_callers_trace_is_joined() -> None:
    async with followed() as rig:
        traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
        await turn_over(rig, traceparent=traceparent)
        first = json.loads((await facts(rig.control))[1][1])
        await rig.follower.round()
    (span,) = rig.exported.spans
    assert span.parent is not None
    assert format(span.parent.span_id, "016x") == "00f067aa0ba902b7"
    assert format(span.context.trace_id, "032x") == "4bf92f3577b34da6a3ce929d0e0e4736"
    assert first["telemetry"] == {"traceparent": traceparent}


async def test_facts_have_no_trace_ids_where_nobody_wants_telemetry_or_has_a_trace() -> None:
    async with controlled() as control:
        await said(control)
        told = [json.loads(body) for _, body in await facts(control)]
    assert not any("traceId" in fact or "telemetry" in fact for fact in told)


async def test_a_callers_trace_is_kept_where_telemetry_is_off() -> None:
    async with controlled() as control:
        await said(control, traceparent="00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
        told = [json.loads(body) for _, body in await facts(control)]
    assert told[1]["traceId"] == "4bf92f3577b34da6a3ce929d0e0e4736"


async def test_each_thing_is_told_once_however_often_it_is_looked_at() -> None:
    async with followed() as rig:
        for text in ("one", "two"):
            await turn_over(rig, text)
            await rig.follower.round()
            await rig.follower.round()
        rig.control.context.hub.lifetimes.evict(float("inf"))
        await rig.follower.round()
        await turn_over(rig, "three")
        await rig.follower.round()
    assert [span.attributes["arp.turn.id"] for span in rig.exported.spans if span.attributes] == [
        *("t1", "t2", "t3"),
    ]
    (point,) = rig.exported.metrics()["gen_ai.invoke_agent.duration"]
    assert point.count == 3


async def test_what_was_over_before_the_process_began_is_not_told() -> None:
    store = MemoryStore()
    async with controlled(store=store) as control:
        await said(control)
        await facts(control)
    exported = Exported()
    later = 1_900_000_000 * 10**9
    async with followed(store=store, exported=exported, began_ns=later) as rig:
        await rig.control.context.live("s")
        await rig.follower.round()
    assert exported.spans == []
    assert exported.metrics() == {}


async def test_turn_that_a_crash_cut_off_is_told_whole_by_the_next_process() -> None:
    store = MemoryStore()

    async def works(turn: Turn) -> None:
        async with turn.tool("query"):
            await asyncio.Event().wait()

    async with controlled(works, store=store) as before:
        await said(before)
        live = await before.context.live("s")
        await becomes(lambda: live.stored >= 5)
        crashed = dict(store._facts), dict(store._metas)
    store._facts, store._metas = {"s": list(crashed[0]["s"][:5])}, crashed[1]
    async with followed(store=store) as rig:
        await rig.control.context.live("s")
        await facts(rig.control)
        await rig.follower.round()
    tool, turn = rig.exported.spans
    assert (tool.name, turn.name) == ("execute_tool query", "invoke_agent agent")
    assert tool.parent is not None
    assert tool.parent.span_id == turn.context.span_id
    assert [span.status.description for span in (tool, turn)] == ["interrupted", "interrupted"]


async def test_a_long_session_is_read_from_near_its_end() -> None:
    store = MemoryStore()

    async def talks(turn: Turn) -> None:
        for number in range(30):
            turn.think(str(number))
            await turn.say(str(number))

    async with controlled(talks, store=store) as control:
        for _ in range(3):
            await said(control)
        live = await control.context.live("s")
        await becomes(lambda: live.session.running is None and not live.session.queue)
        await live.written()
    length = module.LOOK_BACK
    try:
        module.LOOK_BACK = 20
        async with followed(talks, store=store) as rig:
            live = await rig.control.context.live("s")
            await rig.follower.round()
            assert rig.exported.spans == []
            await turn_over(rig)
            await rig.follower.round()
    finally:
        module.LOOK_BACK = length
    assert [span.attributes["arp.turn.id"] for span in rig.exported.spans if span.attributes] == [
        "t4"
    ]


async def test_no_write_waits_and_what_is_not_durable_is_not_told() -> None:
    store = HeldStore()
    async with followed(store=store) as rig:
        await turn_over(rig)
        await rig.follower.round()
        store.hold()
        asked = StartTurn(session_id="s", input=TurnInput(text="two"))
        start = asyncio.ensure_future(rig.control.turns.start(asked))
        await store.waiting.wait()
        await rig.follower.round()
        assert len(rig.exported.spans) == 1
        store.release()
        await start
        await turn_over(rig, "three")
        await rig.follower.round()
    assert len(rig.exported.spans) == 3


async def test_what_the_end_of_the_server_wrote_is_told_before_the_store_closes() -> None:
    exported = Exported()
    async with followed(settings=HubSettings(telemetry=True, stop_grace_s=0.01)) as rig:
        hub = rig.control.context.hub
        follower = Follower(hub, exported.sink(), 0)
        follower.start()
        await said(rig.control, "wait")
        await becomes(lambda: hub.sessions["s"].stored >= 4)
        assert not gate(hub).is_set()
        await hub.aclose(follower.aclose)
    (span,) = exported.spans
    assert span.status.description == "interrupted"


async def test_a_deleted_session_is_forgotten() -> None:
    async with followed() as rig:
        await turn_over(rig)
        await rig.follower.round()
        hub = rig.control.context.hub
        await hub.delete("s", rig.control.context.principal)
        await rig.follower.round()
        await turn_over(rig)
        await rig.follower.round()
    assert len(rig.exported.spans) == 2


async def test_a_round_that_failed_is_logged_and_the_next_goes_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    taken: list[str] = []

    class Fragile:
        def receive(self, measured: Iterable[Measured]) -> None:
            for one in measured:
                taken.append(one.name if isinstance(one, MeasuredSpan) else one.metric)
                if len(taken) == 1:
                    raise RuntimeError("once")

        def is_sampled(self, _: Trace) -> bool:
            return True

        def close(self) -> None:
            taken.append("closed")

    monkeypatch.setattr(module, "ROUND_S", 0.01)
    async with controlled(settings=WANTED) as control:
        follower = Follower(control.context.hub, Fragile(), 0)
        follower.start()
        await said(control)
        await becomes(lambda: "invoke_agent agent" in taken)
        await follower.aclose()
    assert "telemetry missed a round" in caplog.text
    assert taken[0] == "arp.turn.queue_wait"
    assert taken.count("invoke_agent agent") == 1
    assert taken[-1] == "closed"
