"""Sessions read over the control plane: control-plane.md 3 and 4."""

from __future__ import annotations

import json

import pytest

from arp.access.principal import Principal
from arp.control.context import Plane
from arp.control.control import Control
from arp.control.sessions import (
    ListSessions,
    ReadEvents,
    ReadSession,
    ResumeThread,
    StartThread,
)
from arp.control.turns import CancelTurn
from arp.protocol.errors import SessionNotFound, UnknownObject
from arp.store.memory import MemoryStore
from arp.turn.turn import Turn
from tests.control.control_rig import controlled, facts, said, types
from tests.support.waiting import becomes


async def recalling(turn: Turn) -> None:
    """Says which thread it is in, what it was told, and what was said there before."""
    before = ", ".join(words for who, words in turn.history() if who == "user")
    await turn.say(f"{turn.thread_id}: {turn.text} after {before}")


async def settled(control: Control) -> None:
    live = await control.context.live("s")
    await becomes(lambda: live.session.running is None)
    await live.written()


async def test_snapshot_is_as_new_as_the_ledger() -> None:
    async with controlled() as control:
        await said(control)
        await settled(control)
        snapshot = await control.sessions.read(ReadSession(session_id="s"))
        assert snapshot["sessionId"] == "s"
        assert snapshot["sequence"] == len(await facts(control))
        assert [turn["status"] for turn in snapshot["threads"][0]["turns"]] == ["completed"]


async def test_thread_is_read_by_its_id_or_as_the_only_one() -> None:
    async with controlled() as control:
        await said(control)
        await settled(control)
        asked = ReadSession(session_id="s", view="thread")
        thread = await control.sessions.read(asked)
        assert (thread["threadId"], thread["status"]) == ("main", "completed")
        named = ReadSession(session_id="s", view="thread", thread_id="main")
        assert await control.sessions.read(named) == thread
        with pytest.raises(UnknownObject, match="no thread 'side'"):
            await control.sessions.read(
                ReadSession(session_id="s", view="thread", thread_id="side")
            )


async def test_sessions_of_others_are_not_there() -> None:
    async with controlled() as control:
        live = await control.context.hub.open("hers", Principal("ada"), "agent")
        await live.written()
        for asked in (ReadSession(session_id="hers"), ReadSession(session_id="none")):
            with pytest.raises(SessionNotFound):
                await control.sessions.read(asked)
        with pytest.raises(SessionNotFound):
            await control.sessions.events(ReadEvents(session_id="hers"))
        with pytest.raises(SessionNotFound):
            await control.sessions.resume(ResumeThread(session_id="hers"))
        assert (await control.sessions.page(ListSessions())).sessions == []
        hers = Control(control.context.plane, Principal("ada"))
        (row,) = (await hers.sessions.page(ListSessions())).sessions
        assert (row.session_id, row.workflow, row.sequence) == ("hers", "agent", 1)


async def test_list_goes_on_where_a_page_ended() -> None:
    async with controlled() as control:
        for name in ("a", "b", "c"):
            await (await control.context.open(name, None)).written()
        first = await control.sessions.page(ListSessions(limit=2))
        assert first.next is not None
        rest = await control.sessions.page(ListSessions(limit=2, before=first.next))
        assert rest.next is None
        names = [row.session_id for row in (*first.sessions, *rest.sessions)]
        assert sorted(names) == ["a", "b", "c"]


async def test_facts_come_in_pages_byte_for_byte() -> None:
    async with controlled() as control:
        await said(control)
        await settled(control)
        stored = await facts(control)
        first = await control.sessions.events(ReadEvents(session_id="s", limit=2))
        rest = await control.sessions.events(ReadEvents(session_id="s", after=first.next))
        assert [bytes(fact) for fact in (*first.events, *rest.events)] == [
            fact for _, fact in stored
        ]
        assert (first.next, rest.next) == (2, len(stored))
        assert first.epoch == (await control.context.live("s")).session.head.epoch


async def test_page_of_wanted_types_goes_on_behind_what_it_looked_at() -> None:
    async with controlled() as control:
        await said(control)
        await said(control, "again")
        await settled(control)
        asked = ReadEvents(session_id="s", types=("turn.completed",), limit=1)
        first = await control.sessions.events(asked)
        assert json.loads(bytes(first.events[0]))["turnId"] == "t1"
        then = ReadEvents(session_id="s", types=("turn.completed",), after=first.next)
        second = await control.sessions.events(then)
        assert [json.loads(bytes(fact))["turnId"] for fact in second.events] == ["t2"]
        last = ReadEvents(session_id="s", types=("turn.completed",), after=second.next)
        assert (await control.sessions.events(last)).events == []


async def test_facts_before_another_are_told_and_none_from_there_on() -> None:
    async with controlled() as control:
        await said(control)
        await settled(control)

        async def between(after: int, before: int) -> tuple[list[int], int]:
            asked = ReadEvents(session_id="s", after=after, before=before)
            page = await control.sessions.events(asked)
            return [json.loads(bytes(fact))["sequence"] for fact in page.events], page.next

        assert await between(0, 4) == ([1, 2, 3], 3)
        assert await between(2, 4) == ([3], 3)
        assert await between(3, 4) == ([], 3)
        assert await between(3, 0) == ([], 3)


# -- resume ----------------------------------------------------------------------------------------


async def test_resume_tells_first_what_was_mended() -> None:
    store = MemoryStore()
    async with controlled(store=store) as before:
        await said(before, "wait")
        await facts(before)
        crashed = dict(store._facts), dict(store._metas)
    store._facts, store._metas = {"s": list(crashed[0]["s"][:4])}, crashed[1]
    async with controlled(store=store) as control:
        resumed = await control.sessions.resume(ResumeThread(session_id="s"))
        mended = [json.loads(bytes(fact)) for fact in resumed.recovery]
        assert [fact["type"] for fact in mended] == [
            "history.reconstructed",
            "runtime.warning",
            "runtime.error",
            "turn.failed",
        ]
        assert mended[3]["statusReason"] == "interrupted"
        assert (resumed.thread_id, resumed.resume) == ("main", "snapshot")
        assert resumed.snapshot is not None
        assert resumed.snapshot["sequence"] == resumed.sequence == mended[-1]["sequence"]
        assert resumed.thread["lastOutcome"]["status"] == "failed"


async def test_resume_of_what_went_on_all_the_time_has_nothing_to_mend() -> None:
    async with controlled() as control:
        await said(control)
        await settled(control)
        resumed = await control.sessions.resume(ResumeThread(session_id="s", after=2))
        assert (resumed.recovery, resumed.resume, resumed.snapshot) == ([], "events", None)
        assert "history.reconstructed" not in await types(control)


@pytest.mark.parametrize(("after", "epoch"), [(None, None), (10_000, None), (1, "another log")])
async def test_resume_from_nowhere_in_this_log_has_a_snapshot(
    after: int | None, epoch: str | None
) -> None:
    async with controlled() as control:
        await said(control)
        asked = ResumeThread(session_id="s", after=after, epoch=epoch)
        assert (await control.sessions.resume(asked)).resume == "snapshot"


async def test_resume_of_a_thread_that_there_is_not_is_refused() -> None:
    async with controlled() as control:
        await said(control)
        with pytest.raises(UnknownObject, match="no thread 'side'"):
            await control.sessions.resume(ResumeThread(session_id="s", thread_id="side"))


async def test_planes_of_one_hub_share_nothing_but_the_hub() -> None:
    async with controlled() as control:
        other = Control(Plane(control.context.hub, ["agent"]), Principal())
        await said(control)
        assert (await other.sessions.read(ReadSession(session_id="s")))["sessionId"] == "s"


# -- threads ---------------------------------------------------------------------------------------


async def test_a_thread_is_begun_and_turns_join_it() -> None:
    async with controlled(recalling) as control:
        await said(control, "one")
        await settled(control)
        asked = StartThread(session_id="s", thread_id="side", title="Beside")
        begun = await control.sessions.start_thread(asked)
        assert (begun.session_id, begun.thread_id, begun.repeated) == ("s", "side", False)
        again = await control.sessions.start_thread(asked)
        assert (again.thread_id, again.sequence, again.repeated) == ("side", begun.sequence, True)
        first = await control.sessions.start_thread(StartThread(session_id="s", thread_id="main"))
        assert first.repeated
        for words, thread in (("two", "side"), ("three", "main"), ("four", "side")):
            state = await said(control, words, thread_id=thread)
            assert state.thread_id == thread
            await settled(control)
        log = [json.loads(body) for _, body in await facts(control)]
        assert [fact["threadId"] for fact in log if fact["type"] == "thread.started"] == ["side"]
        spoken = {
            fact["payload"]["text"]: fact["threadId"]
            for fact in log
            if fact["type"] == "model.delta"
        }
        assert spoken == {
            "main: one after ": "main",
            "side: two after ": "side",
            "main: three after one": "main",
            "side: four after two": "side",
        }
        with pytest.raises(UnknownObject, match="no thread 'other'"):
            await said(control, thread_id="other")


async def test_a_snapshot_tells_all_threads_and_each_is_resumed_after_a_restart() -> None:
    store = MemoryStore()
    async with controlled(recalling, store=store) as control:
        await said(control, "one")
        await settled(control)
        await control.sessions.start_thread(StartThread(session_id="s", thread_id="side"))
        await said(control, "two", thread_id="side")
        await settled(control)
    async with controlled(recalling, store=store) as control:
        snapshot = await control.sessions.read(ReadSession(session_id="s"))
        assert [thread["threadId"] for thread in snapshot["threads"]] == ["main", "side"]
        for name, turn in (("main", "t1"), ("side", "t2"), (None, "t2")):
            resumed = await control.sessions.resume(ResumeThread(session_id="s", thread_id=name))
            assert resumed.thread_id == (name or "side")
            assert [one["turnId"] for one in resumed.thread["turns"]] == [turn]
        state = await said(control, "three", thread_id="side")
        await settled(control)
        assert state.thread_id == "side"
        log = [json.loads(body) for _, body in await facts(control)]
        assert log[-1]["threadId"] == "side"
        assert "side: three after two" in {fact["payload"].get("text") for fact in log}


async def test_a_thread_without_a_name_gets_one_and_makes_its_session() -> None:
    async with controlled() as control:
        begun = await control.sessions.start_thread(StartThread())
        assert begun.thread_id == "thread-2"
        asked = ReadSession(session_id=begun.session_id)
        threads = (await control.sessions.read(asked))["threads"]
        assert [(one["threadId"], one["status"]) for one in threads] == [
            ("main", "idle"),
            ("thread-2", "idle"),
        ]


async def test_the_thread_of_a_turn_that_left_the_memory_is_told_while_it_is_known() -> None:
    async with controlled(recalling) as control:
        await said(control, "one", turn_id="first")
        await settled(control)
        await control.sessions.start_thread(StartThread(session_id="s", thread_id="side"))
        for number in range(60):
            await said(control, f"turn {number}", thread_id="side" if number < 3 else None)
            await settled(control)
        left = await said(control, "again", turn_id="t3")
        assert (left.repeated, left.thread_id) == (True, "side")
        stopped = await control.turns.cancel(CancelTurn(session_id="s", turn_id="t3"))
        assert stopped.thread_id == "side"
        long_ago = await said(control, "one", turn_id="first")
        assert (long_ago.repeated, long_ago.thread_id) == (True, "unavailable")


async def test_the_thread_of_a_turn_that_left_a_session_of_one_thread_is_the_first() -> None:
    async with controlled(recalling) as control:
        for number in range(60):
            await said(control, f"turn {number}")
            await settled(control)
        left = await said(control, "again", turn_id="t3")
        assert (left.repeated, left.thread_id) == (True, "main")
