"""Two processes use one ledger: a session belongs to the process that loaded it last.

Two hubs with one storage, in memory or in a database, take the place of the two processes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import TypeAlias

import pytest

from arp import Turn, ui
from arp.access.principal import Principal
from arp.hub.hub import Hub
from arp.hub.runner import Handler
from arp.live.settings import HubSettings
from arp.protocol.errors import RateLimited, SessionNotFound
from arp.protocol.messages import ErrorMessage, Input, InputAck, RendererHello
from arp.server.answers import status_of
from arp.store.errors import SessionMoved
from arp.store.postgres.store import PostgresStore
from arp.store.store import SharedStore, Store
from tests.hub.rig import Renderer, quiet, running, settled
from tests.support.postgres import new_schema
from tests.support.shared_memory import SharedMemoryStore, SharedStorage
from tests.support.waiting import becomes

MOVED = (1012, "another process serves the session now")


TwoHubs: TypeAlias = Callable[..., AbstractAsyncContextManager[tuple[Hub, Hub]]]


@pytest.fixture(params=["memory", "postgres"])
def two_hubs(request: pytest.FixtureRequest, requires: Callable[[str], str]) -> TwoHubs:
    """Return a function that runs two hubs with one storage."""
    if request.param == "postgres":
        requires("postgres")
        make: Callable[[], Store] = partial(PostgresStore, new_schema())
    else:
        make = partial(SharedMemoryStore, SharedStorage())

    @asynccontextmanager
    async def run(one: Handler = quiet, other: Handler = quiet) -> AsyncIterator[tuple[Hub, Hub]]:
        async with running(one, store=make()) as first, running(other, store=make()) as second:
            yield first, second

    return run


async def said(turn: Turn) -> None:
    await turn.say(f"You said {turn.text}.")


async def test_a_session_goes_on_where_it_was_loaded_last(two_hubs: TwoHubs) -> None:
    async with two_hubs(said, said) as (first, second):
        old = await Renderer(first).join()
        await old.say("one")
        await old.ended("t1")
        new = await Renderer(second).join()
        assert new.screen.text("t1") == "You said one."
        await new.say("two")
        await new.ended("t2")
        await old.say("three", id="i3")
        await old.box.until(lambda: old.box.closed is not None)
        assert old.box.closed == MOVED
        assert old.box.of("error") == []
        assert "s" not in first.sessions
        assert "s" in second.sessions
        again = await Renderer(first).join()
        assert list(again.screen.turns) == ["t1", "t2"]
        await again.say("three", id="i3")
        await again.ended("t3")
        assert again.screen.text("t3") == "You said three."


async def test_nothing_of_an_earlier_owner_is_stored_and_its_agent_stops(two_hubs: TwoHubs) -> None:
    ended: list[str] = []

    async def agent(turn: Turn) -> None:
        try:
            await turn.say("before ")
            await asyncio.Event().wait()
        except asyncio.CancelledError as error:
            ended.append(str(error))
            raise

    async with two_hubs(agent) as (first, second):
        old = await Renderer(first).join()
        await old.say("go")
        await becomes(lambda: old.box.said() == "before ")
        new = await Renderer(second).join()
        assert new.screen.turns["t1"].status == "failed"
        await old.say("more")
        await old.box.until(lambda: old.box.closed is not None)
        await becomes(lambda: bool(ended))
        facts = [body for _, body in await second.store.read("s")]
    assert ended == ["another process serves the session now"]
    assert not any(b"more" in fact for fact in facts)


async def test_a_tool_of_an_earlier_owner_does_not_run(two_hubs: TwoHubs) -> None:
    """The store refuses to record the start of the tool."""
    steps: list[str] = []
    may_continue = asyncio.Event()

    async def agent(turn: Turn) -> None:
        await turn.say("before ")
        await may_continue.wait()
        steps.append("agent")
        async with turn.tool("mail"):
            steps.append("tool")

    async with two_hubs(agent) as (first, second):
        old = await Renderer(first).join()
        await old.say("go")
        await becomes(lambda: old.box.said() == "before ")
        await Renderer(second).join()
        may_continue.set()
        await old.box.until(lambda: old.box.closed is not None)
        await becomes(lambda: not first.runner.tasks)
    assert steps == ["agent"]
    assert old.box.closed == MOVED


async def test_an_open_question_is_answered_where_the_session_is_now(two_hubs: TwoHubs) -> None:
    answers: list[bool] = []

    async def asking(turn: Turn) -> None:
        if turn.text == "go":
            answers.append(await turn.ask(ui.confirm("Continue?", id="q")))
            await turn.say("never here")
        else:
            await turn.say(f"Answered: {turn.text}")

    async with two_hubs(asking, asking) as (first, second):
        old = await Renderer(first).join()
        await old.say("go")
        await becomes(lambda: bool(first.sessions["s"].session.questions))
        await first.sessions["s"].written()
        new = await Renderer(second).join()
        assert second.sessions["s"].session.questions
        assert new.screen.surfaces["main"].component("q").props["state"] == "open"
        await old.say("nobody hears this")
        await old.box.until(lambda: old.box.closed is not None)
        assert second.sessions["s"].session.questions
        await new.send("action", {"action": "confirm"}, source_component="q")
        await new.ended("t2")
    assert answers == []


async def test_callers_that_open_one_new_session_share_its_fence(two_hubs: TwoHubs) -> None:
    async with two_hubs(said) as (first, _):
        both = await asyncio.gather(*(Renderer(first).join() for _ in range(5)))
        await both[0].say("hi")
        assert await both[0].ended("t1") == "completed"
        assert all(one.box.closed is None for one in both)


async def test_of_two_processes_that_make_one_session_the_last_one_has_it(
    two_hubs: TwoHubs,
) -> None:
    async with two_hubs(said, said) as (first, second):
        old = await Renderer(first).join()
        new = await Renderer(second).join()
        await new.say("new")
        assert await new.ended("t1") == "completed"
        await old.say("old")
        await old.box.until(lambda: old.box.closed is not None)
        assert old.box.closed == MOVED
        assert new.screen.text("t1") == "You said new."
        assert len(await second.store.sessions()) == 1


async def test_an_input_without_a_connection_is_to_be_sent_again(two_hubs: TwoHubs) -> None:
    """An error with the id of the input would be final for a client."""
    async with two_hubs(said, said) as (first, second):
        old = await Renderer(first).join()
        await old.say("one")
        await old.ended("t1")
        await Renderer(second).join()
        message = Input(input_type="text", data={"text": "two"}, session_id="s", id="i2")
        answer = await first.submit(message, Principal(""), "agent")
        assert isinstance(answer, ErrorMessage)
        assert answer.payload.id is None
        assert answer.payload.retryable
        assert status_of(answer.payload) == 503
        again = await first.submit(message, Principal(""), "agent")
        assert isinstance(again, InputAck)


async def test_a_session_that_is_deleted_elsewhere_does_not_come_back(two_hubs: TwoHubs) -> None:
    async with two_hubs(said, said) as (first, second):
        old = await Renderer(first).join()
        await old.say("one")
        await old.ended("t1")
        await second.delete("s", Principal(""))
        await old.say("two")
        await old.box.until(lambda: old.box.closed is not None)
        assert await second.store.read("s") == []
        with pytest.raises(SessionNotFound):
            await first.find("s", Principal(""))
        assert await second.store.sessions() == []
        fresh = await Renderer(first).join()
        await fresh.say("three")
        assert await fresh.ended("t1") == "completed"


async def test_an_unused_session_that_moved_is_not_deleted(two_hubs: TwoHubs) -> None:
    """The process that created it does not know about renderers of another process."""
    async with two_hubs(said, said) as (first, second):
        old = await Renderer(first, None).join()
        (name,) = first.sessions
        await first.sessions[name].written()
        new = await Renderer(second, name).join()
        old.hello = RendererHello(capabilities=old.hello.capabilities, session_id="other")
        await old.join()
        await becomes(lambda: name not in first.sessions)
        await settled(first)
        await new.say("hi")
        assert await new.ended("t1") == "completed"
        assert new.box.closed is None


async def test_a_session_that_is_only_watched_leaves_nothing_in_the_store(
    two_hubs: TwoHubs,
) -> None:
    """Any id may be watched, so fences of watched ids would grow without bound."""
    nobody = Principal("")
    async with two_hubs(said, said) as (first, second):
        assert isinstance(first.store, SharedStore)
        watched = await first.open("watched", nobody, "agent", provisional=True)
        assert await first.store.fence("watched") == 0
        await first.open("watched", nobody, "agent")
        watched.mark()
        await watched.written()
        assert await first.store.session("watched") is not None
        late = await first.open("elsewhere", nobody, "agent", provisional=True)
        there = await Renderer(second, "elsewhere").join()
        await there.say("hi")
        assert await there.ended("t1") == "completed"
        await first.open("elsewhere", nobody, "agent")
        late.mark()
        await becomes(lambda: late.gone.done())
        assert isinstance(late.gone.result(), SessionMoved)
        again = await Renderer(first, "elsewhere").join()
        assert again.screen.text("t1") == "You said hi."


class SlowFenceStore(SharedMemoryStore):
    """A store that takes a while to raise or read a fence."""

    async def raise_fence(self, session_id: str) -> int:
        await asyncio.sleep(0.01)
        return await super().raise_fence(session_id)

    async def fence(self, session_id: str) -> int:
        fence = await super().fence(session_id)
        await asyncio.sleep(0.05)
        return fence


async def test_more_sessions_than_the_hub_may_have_are_not_created_at_the_same_time() -> None:
    settings = HubSettings(max_sessions=3)
    async with running(store=SlowFenceStore(SharedStorage()), settings=settings) as hub:
        opening = [hub.open(f"s{number}", Principal(""), "agent") for number in range(20)]
        opened = await asyncio.gather(*opening, return_exceptions=True)
        assert len(hub.sessions) == 3
        assert sum(isinstance(one, RateLimited) for one in opened) == 17


async def test_an_unused_session_that_is_opened_while_it_is_dropped_is_not_lost() -> None:
    """Who opens it waits for the end of the removal, and gets a new session."""
    async with running(said, store=SlowFenceStore(SharedStorage())) as hub:
        old = await Renderer(hub, None).join()
        (name,) = hub.sessions
        await hub.sessions[name].written()
        old.hello = RendererHello(capabilities=old.hello.capabilities, session_id="other")
        moving = asyncio.ensure_future(old.join())
        await becomes(lambda: name not in hub.sessions)
        new = await Renderer(hub, name).join()
        await new.say("hi")
        assert await new.ended("t1") == "completed"
        await moving
        await settled(hub)
        assert new.box.closed is None
        assert await hub.store.session(name) is not None
        assert len(await hub.store.read(name)) > 5
