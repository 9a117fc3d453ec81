"""Facts from a sequence on: none missing, none twice, and a slow reader keeps nothing up."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing

import pytest

from arp.access.principal import Principal
from arp.control.facts import FactFilter, follow
from arp.protocol.errors import SessionNotFound
from tests.control.control_rig import controlled, facts, gate, said, types
from tests.hub.rig import WAIT_S, HeldStore
from tests.support.waiting import becomes


async def test_stored_facts_come_first_and_then_each_new_one() -> None:
    async with controlled() as control, asyncio.timeout(WAIT_S):
        await said(control, "one")
        seen: list[int] = []
        async with aclosing(control.sessions.follow("s")) as stream:
            async for sequence, fact in stream:
                seen.append(sequence)
                told = json.loads(fact)
                assert told["sequence"] == sequence
                if told["type"] == "turn.completed":
                    if told["turnId"] == "t2":
                        break
                    await said(control, "two")
        assert seen == list(range(1, len(await facts(control)) + 1))


async def test_reader_that_stops_reading_for_a_while_misses_nothing() -> None:
    async with controlled() as control, asyncio.timeout(WAIT_S):
        await said(control, "first")
        seen: list[int] = []
        async with aclosing(control.sessions.follow("s", after=2)) as stream:
            seen.append((await anext(stream))[0])
            for number in range(20):
                await said(control, f"turn {number}")
            last = len(await facts(control))
            while seen[-1] < last:
                seen.append((await anext(stream))[0])
        assert seen == list(range(3, last + 1))


async def test_nothing_is_told_that_is_not_durable() -> None:
    store = HeldStore()
    async with controlled(store=store) as control, asyncio.timeout(WAIT_S):
        await said(control, "wait")
        after = len(await facts(control))
        async with aclosing(control.sessions.follow("s", after=after)) as stream:
            coming = asyncio.ensure_future(anext(stream))
            store.hold()
            gate(control.context.hub).set()
            await store.waiting.wait()
            assert not coming.done()
            store.release()
            assert json.loads((await coming)[1])["type"] == "turn.completed"


async def test_only_facts_of_the_wanted_types_come() -> None:
    async with controlled() as control, asyncio.timeout(WAIT_S):
        await said(control, "hello")
        async with aclosing(control.sessions.follow("s", types=["turn.*"])) as stream:
            told = [json.loads((await anext(stream))[1])["type"] for _ in range(3)]
        assert told == ["turn.submitted", "turn.started", "turn.completed"]


def test_family_is_a_whole_word() -> None:
    choice = FactFilter.of(["turn", "tool.failed", "task.attempt."])
    assert choice == FactFilter(("turn", "tool.failed", "task.attempt"))
    taken = {
        name: choice.matches(json.dumps({"type": name}).encode())
        for name in (
            "turn.started",
            "turning.x",
            "tool.failed",
            "tool.result",
            "task.attempt.failed",
        )
    }
    assert taken == {
        "turn.started": True,
        "turning.x": False,
        "tool.failed": True,
        "tool.result": False,
        "task.attempt.failed": True,
    }


async def test_session_that_is_followed_stays_in_memory() -> None:
    async with controlled() as control, asyncio.timeout(WAIT_S):
        await said(control)
        live = await control.context.live("s")
        await becomes(lambda: live.idle)
        async with aclosing(control.sessions.follow("s")) as stream:
            await anext(stream)
            assert not live.idle
        assert live.idle


async def test_following_ends_when_the_session_is_deleted() -> None:
    async with controlled() as control, asyncio.timeout(WAIT_S):
        await said(control)
        live = await control.context.live("s")
        await becomes(lambda: live.idle)
        after = len(await types(control))
        stream = follow(control.context.hub.store, live, after, FactFilter())
        coming = asyncio.ensure_future(anext(stream))
        await becomes(lambda: live.followers == 1)
        await control.context.hub.delete("s", Principal())
        with pytest.raises(SessionNotFound, match="the session was deleted"):
            await coming


async def test_following_what_is_somebody_elses_is_refused() -> None:
    async with controlled() as control:
        await control.context.hub.open("hers", Principal("ada"), "agent")
        with pytest.raises(SessionNotFound):
            await anext(control.sessions.follow("hers"))
