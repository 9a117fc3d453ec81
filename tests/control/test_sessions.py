"""Sessions read over the control plane: ledger.md 5, `agentSession/read` and `thread/resume`."""

from __future__ import annotations

import json

import pytest

from arp.control.control import Control
from arp.control.desk import Plane
from arp.control.sessions import ListSessions, ReadEvents, ReadSession, ResumeThread
from arp.hub.directory import Principal
from arp.protocol.errors import SessionNotFound, UnknownObject
from arp.store.memory import MemoryStore
from tests.control.desk_rig import controlled, facts, said, types
from tests.waiting import becomes


async def settled(control: Control) -> None:
    live = await control.desk.live("s")
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
        live = await control.desk.hub.open("hers", Principal("ada"), "agent")
        await live.written()
        for asked in (ReadSession(session_id="hers"), ReadSession(session_id="none")):
            with pytest.raises(SessionNotFound):
                await control.sessions.read(asked)
        with pytest.raises(SessionNotFound):
            await control.sessions.events(ReadEvents(session_id="hers"))
        with pytest.raises(SessionNotFound):
            await control.sessions.resume(ResumeThread(session_id="hers"))
        assert (await control.sessions.page(ListSessions())).sessions == []
        hers = Control(control.desk.plane, Principal("ada"))
        (row,) = (await hers.sessions.page(ListSessions())).sessions
        assert (row.session_id, row.workflow, row.sequence) == ("hers", "agent", 1)


async def test_list_goes_on_where_a_page_ended() -> None:
    async with controlled() as control:
        for name in ("a", "b", "c"):
            await (await control.desk.open(name, None)).written()
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
        assert first.epoch == (await control.desk.live("s")).session.head.epoch


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
            "runtime.error",
            "turn.failed",
        ]
        assert mended[2]["statusReason"] == "interrupted"
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
        other = Control(Plane(control.desk.hub, ["agent"]), Principal())
        await said(control)
        assert (await other.sessions.read(ReadSession(session_id="s")))["sessionId"] == "s"
