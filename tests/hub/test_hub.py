"""Inputs take effect once, in the order of the policy; an answer closes its question for all."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from arp import Turn, ui
from arp.access.principal import Principal
from arp.hub.hub import Hub
from arp.live.settings import HubSettings
from arp.protocol.errors import SessionNotFound
from arp.protocol.messages import ErrorMessage, Input, InputAck
from arp.session.turn_states import Policy
from arp.store.errors import BlobNotFound
from tests.hub.rig import BROKEN, HeldStore, Renderer, running, settled, started

ME = Principal()


class Gate:
    """An agent that says what it is asked, and ends when a test lets it."""

    def __init__(self) -> None:
        self.released = asyncio.Event()

    async def __call__(self, turn: Turn) -> None:
        await turn.say(f"re {turn.text}")
        await self.released.wait()


async def stream(*chunks: bytes) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


def text(said: str, session_id: str | None = "s", input_id: str | None = None) -> Input:
    return Input(input_type="text", data={"text": said}, session_id=session_id, id=input_id)


def policy(name: Policy) -> HubSettings:
    return HubSettings(policy=name, stop_grace_s=0.05, cancel_grace_s=0.05)


def turns(hub: Hub, session_id: str = "s") -> dict[str, Any]:
    return {
        name: turn.status for name, turn in hub.sessions[session_id].session.screen.turns.items()
    }


# -- the same id twice ---------------------------------------------------------------------------


async def test_same_id_twice_is_one_input() -> None:
    """protocol.md 2.2, architecture.md, invariant 3; the answer is the same again."""
    async with running() as hub:
        renderer = await Renderer(hub).join()
        await renderer.say("go", id="i1")
        await renderer.say("something else", id="i1")
        await renderer.ended("t1")
        await settled(hub)
        acks = [(one["id"], one["turn_id"]) for one in renderer.box.of("ack")]
        assert turns(hub) == {"t1": "completed"}
    assert acks == [("i1", "t1"), ("i1", "t1")]


async def test_same_id_from_another_renderer_or_by_post_is_still_one_input() -> None:
    """The id belongs to the session, not to a connection."""
    async with running() as hub:
        one, two = await Renderer(hub).join(), await Renderer(hub).join()
        await one.say("go", id="i1")
        await two.say("go", id="i1")
        answer = await hub.submit(text("go", input_id="i1"), ME, "agent")
        await one.ended("t1")
        count = len(turns(hub))
    assert isinstance(answer, InputAck)
    assert answer.turn_id == "t1"
    assert count == 1


async def test_same_id_after_a_restart_is_still_one_input() -> None:
    """G4: for the whole life of the session."""
    store = HeldStore()
    hub = await started(store=store)
    renderer = await Renderer(hub).join()
    await renderer.say("go", id="i1")
    await renderer.ended("t1")
    await hub.aclose()
    async with running(store=store) as again:
        back = await Renderer(again).join()
        await back.say("go", id="i1")
        ack = await back.box.has("ack")
        count = len(turns(again))
    assert ack["turn_id"] == "t1"
    assert count == 1


async def test_answer_with_an_id_is_taken_once() -> None:
    """Also over a restart: the second is acknowledged, not refused as late."""
    store = HeldStore()

    async def agent(turn: Turn) -> None:
        await turn.say(str(await turn.confirm("Sure?", id="q")))

    hub = await started(agent, store=store)
    renderer = await Renderer(hub).join()
    await renderer.say("go")
    await renderer.box.has("turn", status="waiting")
    for _ in range(2):
        await renderer.send("action", {"action": "confirm"}, source_component="q", id="a1")
    await renderer.ended("t1")
    await hub.aclose()
    async with running(agent, store=store) as again:
        back = await Renderer(again).join()
        await back.send("action", {"action": "confirm"}, source_component="q", id="a1")
        late = await back.box.has("ack")
    assert [one["turn_id"] for one in renderer.box.of("ack")] == ["t1", "t1"]
    assert late["turn_id"] == "t1"
    assert renderer.box.said() == "True"


async def test_refused_input_may_come_again_with_the_same_id() -> None:
    """What was refused has had no effect, so its id is free."""
    async with running() as hub:
        renderer = await Renderer(hub).join()
        await renderer.send("text", {"text": 1}, id="i1")
        error = await renderer.box.has("error")
        await renderer.say("go", id="i1")
        ack = await renderer.box.has("ack")
    assert error["payload"]["id"] == "i1"
    assert ack["turn_id"] == "t1"


# -- policies ------------------------------------------------------------------------------------


async def test_queue_takes_turns_in_the_order_in_which_they_came() -> None:
    """The default policy; positions are told."""
    gate = Gate()
    async with running(gate) as hub:
        renderer = await Renderer(hub).join()
        for said in ("a", "b", "c"):
            await renderer.say(said)
        await renderer.box.has("turn", turn_id="t3", status="queued", position=2)
        gate.released.set()
        await renderer.ended("t3")
    assert renderer.box.said() == "re are bre c"
    ends = [one["turn_id"] for one in renderer.box.of("commit") if one["final"]]
    assert ends == ["t1", "t2", "t3"]


async def test_reject_refuses_while_a_turn_runs() -> None:
    """BUSY, retryable; afterwards the next is taken."""
    gate = Gate()
    async with running(gate, settings=policy("reject")) as hub:
        renderer = await Renderer(hub).join()
        await renderer.say("a")
        await renderer.box.has("turn", status="running")
        await renderer.say("b", id="i2")
        error = (await renderer.box.has("error"))["payload"]
        gate.released.set()
        await renderer.ended("t1")
        await renderer.say("c")
        await renderer.ended("t2")
    assert (error["code"], error["id"], error["retryable"]) == (17, "i2", True)
    assert renderer.box.said() == "re are c"


async def test_who_takes_no_input_says_that_it_is_a_recording() -> None:
    """PERMISSION_DENIED for all that would change something; what a renderer is may change."""
    async with running(Gate(), settings=HubSettings(takes_input=False)) as hub:
        renderer = await Renderer(hub).join()
        await renderer.say("a", id="i1")
        await renderer.cancel()
        await renderer.send("resize", {"width": 80, "height": 24}, id="i2")
        await renderer.box.has("ack", id="i2")
        errors = [one["payload"] for one in renderer.box.of("error")]
        assert [(one["code"], "recording" in one["error"]) for one in errors] == [(15, True)] * 2
        assert not renderer.screen.turns


async def test_interrupt_cancels_what_runs_and_begins_the_new() -> None:
    """The user speaks, the agent listens."""
    gate = Gate()
    async with running(gate, settings=policy("interrupt")) as hub:
        renderer = await Renderer(hub).join()
        await renderer.say("a")
        await renderer.box.has("delta")
        await renderer.say("b")
        first = await renderer.ended("t1")
        gate.released.set()
        second = await renderer.ended("t2")
    assert (first, second) == ("cancelled", "completed")


async def test_interrupt_in_one_breath_leaves_only_the_last() -> None:
    """Three inputs before the first agent takes a step."""
    gate = Gate()
    gate.released.set()
    async with running(gate, settings=policy("interrupt")) as hub:
        renderer = await Renderer(hub).join()
        for said in ("a", "b", "c"):
            await renderer.say(said)
        await renderer.ended("t3")
        states = turns(hub)
    assert states["t1"] == "cancelled"
    assert states["t3"] == "completed"


# -- posting -------------------------------------------------------------------------------------


async def test_posted_input_is_answered_when_it_is_durable() -> None:
    """Without an id it gets one, so that the answer can name it."""
    store = HeldStore()
    async with running(store=store) as hub:
        store.hold()
        asking = asyncio.ensure_future(hub.submit(text("go", None), ME, "agent"))
        await store.waiting.wait()
        await asyncio.sleep(0)
        early = asking.done()
        store.release()
        answer = await asking
    assert early is False
    assert isinstance(answer, InputAck)
    assert answer.turn_id == "t1"
    assert answer.session_id
    assert answer.id


async def test_posted_input_that_is_refused_says_why() -> None:
    """The answer is an `error` with the id of the input."""
    async with running() as hub:
        bad = Input(input_type="text", data={"text": 1}, session_id="s", id="i1")
        answer = await hub.submit(bad, ME, "agent")
    assert isinstance(answer, ErrorMessage)
    assert (answer.payload.code, answer.payload.id) == (11, "i1")


@pytest.mark.parametrize("how", ["disk", "delete"])
async def test_posted_input_of_a_session_that_is_let_go_is_answered(how: str) -> None:
    """Nobody waits for ever for an acknowledgement that will not come."""
    store = HeldStore()
    async with running(store=store) as hub:
        await hub.open("s", ME, "agent")
        await settled(hub)
        store.hold()
        asking = asyncio.ensure_future(hub.submit(text("go", input_id="i1"), ME, "agent"))
        await store.waiting.wait()
        if how == "disk":
            store.error = BROKEN
            store.release()
        else:
            deleting = asyncio.ensure_future(hub.delete("s", ME))
            await asyncio.sleep(0)
            store.release()
            await deleting
        async with asyncio.timeout(30):
            answer = await asking
        store.error = None
    assert isinstance(answer, ErrorMessage)
    assert answer.payload.id == "i1"
    assert answer.payload.code == (19 if how == "disk" else 8)
    assert answer.payload.retryable is (how == "disk")


async def test_poster_that_gave_up_does_not_disturb_what_waits_with_it() -> None:
    """The turn begins though nobody takes the acknowledgement any more."""
    store = HeldStore()
    async with running(store=store) as hub:
        renderer = await Renderer(hub).join()
        store.hold()
        asking = asyncio.ensure_future(hub.submit(text("go"), ME, "agent"))
        await store.waiting.wait()
        asking.cancel()
        await asyncio.sleep(0)
        store.release()
        status = await renderer.ended("t1")
    assert asking.cancelled()
    assert status == "completed"


# -- several renderers ---------------------------------------------------------------------------


async def test_every_renderer_sees_what_any_of_them_said() -> None:
    """protocol.md 2.1: an accepted input is told to all that said hello, not to the draft's."""
    async with running() as hub:
        one, two = await Renderer(hub).join(), await Renderer(hub).join()
        draft = Renderer(hub)
        await draft.say("from the draft", id="i1")
        await draft.box.has("commit", final=True)
        for renderer in (one, two):
            await renderer.ended("t1")
        await two.say("from two")
        for renderer in (one, two):
            await renderer.ended("t2")
        await draft.box.has("commit", final=True, turn_id="t2")
    echoes = [[echo["data"]["text"] for echo in who.box.of("input")] for who in (one, two, draft)]
    assert echoes == [["from the draft", "from two"], ["from the draft", "from two"], []]
    assert one.box.of("input")[0]["id"] == "i1"
    assert [len(who.box.of("ack")) for who in (one, two, draft)] == [0, 0, 1]


async def test_answer_on_one_renderer_closes_the_question_on_all() -> None:
    """protocol.md 2.2: `props.state` and `props.answer`."""

    async def agent(turn: Turn) -> None:
        await turn.say(str(await turn.confirm("Sure?", id="q")))

    async with running(agent) as hub:
        one, two = await Renderer(hub).join(), await Renderer(hub).join()
        plain = await Renderer(hub, components=["text"]).join()
        await one.say("go")
        await two.box.has("turn", status="waiting")
        await two.send("action", {"action": "deny"}, source_component="q")
        for renderer in (one, two, plain):
            await renderer.ended("t1")
    for renderer in (one, two):
        props = renderer.screen.output("t1")[0].props
        assert (props["state"], props["answer"]) == ("answered", False)
    assert one.box.said() == "False"
    assert plain.screen.output("t1")[0].type == "text"


async def test_first_of_two_answers_wins_and_the_other_is_told() -> None:
    """architecture.md, invariant 8: an answer fits the one question, once."""

    async def agent(turn: Turn) -> None:
        await turn.say(str(await turn.ask(ui.choices(["a", "b"], id="q"))))

    async with running(agent) as hub:
        one, two = await Renderer(hub).join(), await Renderer(hub).join()
        await one.say("go")
        for renderer in (one, two):
            await renderer.box.has("turn", status="waiting")
        await one.send("selection", {"selected": ["a"]}, source_component="q", id="a1")
        await two.send("selection", {"selected": ["b"]}, source_component="q", id="a2")
        error = (await two.box.has("error"))["payload"]
        await one.ended("t1")
    assert one.box.said() == "a"
    assert error["id"] == "a2"
    assert "answered" in error["error"]
    assert one.box.of("error") == []


async def test_question_is_open_for_who_comes_back() -> None:
    """It stays open over reconnects, and the same id answers it."""

    async def agent(turn: Turn) -> None:
        await turn.say(str(await turn.confirm("Sure?", id="q")))

    async with running(agent) as hub:
        first = await Renderer(hub).join()
        await first.say("go")
        await first.box.has("turn", status="waiting")
        first.leave()
        second = await Renderer(hub).join()
        shown = second.screen
        await second.send("action", {"action": "confirm"}, source_component="q")
        await second.ended("t1")
    assert shown.turns["t1"].status == "waiting"
    assert shown.output("t1")[0].props == {"title": "Sure?", "state": "open"}
    assert second.box.said() == "True"


async def test_answer_as_text_counts_where_the_question_is_text() -> None:
    """protocol.md 3: the answer as text is understood; elsewhere text is a turn of its own."""

    async def agent(turn: Turn) -> None:
        if turn.text == "go":
            await turn.say(str(await turn.confirm("Sure?", id="q")))

    async with running(agent) as hub:
        whole = await Renderer(hub).join()
        plain = await Renderer(hub, components=["text"]).join()
        await whole.say("go")
        await plain.box.has("turn", status="waiting")
        await whole.say("yes")
        await whole.box.has("turn", turn_id="t2", status="queued")
        await plain.say("yes")
        await plain.ended("t1")
        await plain.ended("t2")
    assert whole.box.said() == "True"


# -- renderers and sessions ----------------------------------------------------------------------


async def test_renderer_may_change_its_session_by_another_hello() -> None:
    """From then on it hears nothing of the first."""
    async with running() as hub:
        moving, staying = await Renderer(hub, "a").join(), await Renderer(hub, "a").join()
        moving.hello = Renderer(hub, "b").hello
        await moving.join()
        await staying.say("in a")
        await staying.ended("t1")
        await moving.say("in b")
        await moving.ended("t1")
        watching = {name: len(live.viewers) for name, live in hub.sessions.items()}
    assert [echo["data"]["text"] for echo in moving.box.of("input")] == ["in b"]
    assert watching == {"a": 1, "b": 1}


async def test_session_that_nobody_used_goes_with_the_next_hello() -> None:
    """Neither the memory nor the ledger keeps it, and nobody sees it in a list."""

    class Noting(HeldStore):
        def __init__(self) -> None:
            super().__init__()
            self.deleted: list[str] = []

        async def delete(self, session_id: str) -> bool:
            self.deleted.append(session_id)
            return await super().delete(session_id)

    store = Noting()
    async with running(store=store, settings=HubSettings(max_sessions=2)) as hub:
        renderer = Renderer(hub, None)
        made: set[str] = set()
        for _ in range(20):
            await renderer.join()
            made |= set(hub.sessions)
        deleted = len(store.deleted)
        for number in range(20):
            await hub.hello(renderer.viewer, Renderer(hub, f"n{number}").hello, ME, "agent")
        await settled(hub)
        listed = [meta.id for meta in await hub.metas(ME)]
        kept = [await store.facts(name) for name in sorted(made)]
        assert list(hub.sessions) == listed == ["n19"]
    assert (len(made), kept) == (20, [[]] * 20)
    written = {write.session_id for batch in store.appends for write in batch}
    assert deleted == 19
    assert set(store.deleted) <= written, "what was never written is not deleted"


@pytest.mark.parametrize("use", ["said", "renamed", "joined", "followed", "named again"])
async def test_session_that_was_used_stays_when_its_renderer_goes_on(use: str) -> None:
    """Whatever happened in it; and a hello that names it does not begin it anew."""
    async with running() as hub:
        renderer = await Renderer(hub, "s").join()
        epoch = hub.sessions["s"].session.head.epoch
        match use:
            case "said":
                await renderer.say("hello")
            case "renamed":
                await hub.rename("s", ME, "Mine", None)
            case "joined":
                (await Renderer(hub, "s").join()).leave()
            case "followed":
                hub.sessions["s"].followers += 1
            case _:
                await renderer.join()
                assert hub.unused(renderer.viewer) is not None
        again = Renderer(hub, "s" if use == "named again" else "t").hello
        await hub.hello(renderer.viewer, again, ME, "agent")
        await settled(hub)
        assert hub.sessions["s"].session.head.epoch == epoch
        assert "s" in [meta.id for meta in await hub.metas(ME)]


async def test_session_that_a_renderer_did_not_make_stays_when_it_goes_on() -> None:
    """It may be somebody's who comes back."""
    async with running() as hub:
        await hub.open("s", ME, "agent")
        renderer = await Renderer(hub, "s").join()
        renderer.hello = Renderer(hub, "t").hello
        await renderer.join()
        assert sorted(hub.sessions) == ["s", "t"]


async def test_draft_clients_refused_inputs_leave_no_trail_of_sessions() -> None:
    """They name the session in each input, which makes it."""
    async with running() as hub:
        renderer = Renderer(hub, None)
        for number in range(20):
            await renderer.send("text", {}, session_id=f"s{number}")
        await settled(hub)
        listed = [meta.id for meta in await hub.metas(ME)]
        assert list(hub.sessions) == listed == ["s19"]
    assert len(renderer.box.of("error")) == 20


async def test_unused_session_stays_if_the_ledger_cannot_remove_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The renderer is on its next one all the same."""

    class Stuck(HeldStore):
        async def delete(self, session_id: str) -> bool:
            raise BROKEN

    async with running(store=Stuck()) as hub:
        renderer = await Renderer(hub, "s").join()
        renderer.hello = Renderer(hub, "t").hello
        await renderer.join()
        assert list(hub.sessions) == ["t"]
    assert "unused session s is not removed from the ledger" in caplog.text


async def test_input_to_another_session_than_that_of_the_hello_is_refused() -> None:
    """A renderer that said hello is on one session; the draft's name it in each input."""
    async with running() as hub:
        renderer = await Renderer(hub, "a").join()
        await renderer.say("there", session_id="b")
        error = (await renderer.box.has("error"))["payload"]
        names = sorted(hub.sessions)
    assert error["code"] == 1
    assert names == ["a"]


async def test_refused_hello_leaves_the_renderer_where_it_was() -> None:
    """A refused message changes nothing, and nobody sees what is not their own."""
    async with running() as hub:
        await hub.open("hers", Principal("ada"), "agent")
        renderer = await Renderer(hub, "mine", owner="bob").join()
        other = Renderer(hub, "hers", owner="bob")
        with pytest.raises(SessionNotFound):
            await hub.hello(renderer.viewer, other.hello, renderer.principal, "agent")
        watching = {live.id: len(live.viewers) for live in hub.sessions.values()}
    assert watching == {"hers": 0, "mine": 1}


async def test_renderer_that_goes_away_stops_nothing() -> None:
    """protocol.md 2.2: only `arp.cancel` does."""
    gate = Gate()
    async with running(gate) as hub:
        renderer = await Renderer(hub).join()
        await renderer.say("go")
        await renderer.box.has("delta")
        renderer.leave()
        await settled(hub)
        gate.released.set()
        back = await Renderer(hub).join()
        await back.box.until(lambda: back.screen.turns["t1"].final)
    assert back.screen.turns["t1"].status == "completed"


async def test_deleted_session_is_gone_for_everyone() -> None:
    """Its agent stops, its renderers are told, nothing is left; the name is free again."""
    store = HeldStore()
    gate = Gate()
    async with running(gate, store=store) as hub:
        renderer = await Renderer(hub).join()
        await renderer.say("go")
        await renderer.box.has("delta")
        await hub.delete("s", ME)
        async with asyncio.timeout(30):
            while hub.runner.tasks:
                await asyncio.wait(hub.runner.tasks)
        left = await store.facts()
        with pytest.raises(SessionNotFound):
            await hub.find("s", ME)
        with pytest.raises(SessionNotFound):
            await hub.delete("s", ME)
        again = await Renderer(hub).join()
    assert renderer.box.closed == (1000, "the session was deleted")
    assert left == []
    assert again.box.of("session")[0]["resume"] == "new"


async def test_renderer_of_a_session_that_was_deleted_reaches_no_other_of_that_name() -> None:
    """Its connection is being closed; what it still says is refused, until it says hello."""
    async with running() as hub:
        renderer = await Renderer(hub).join()
        await renderer.say("one")
        await renderer.ended("t1")
        await hub.delete("s", ME)
        other = await Renderer(hub).join()
        for session_id in ("s", None):
            await renderer.say("two", session_id=session_id)
        refused = [one["payload"]["error"] for one in renderer.box.of("error")]
        assert refused == ["session 's' left memory; send hello again"] * 2
        assert hub.sessions["s"].session.turn_count == 0
        await renderer.join()
        await renderer.say("three")
        await other.ended("t1")
        assert list(hub.sessions) == ["s"]


async def test_deletion_goes_on_though_who_asked_for_it_is_gone() -> None:
    """Otherwise facts or files of it could stay."""
    store = HeldStore()
    async with running(store=store) as hub:
        await hub.open("s", ME, "agent")
        await settled(hub)
        files = hub.blobs.of("s")
        blob = await files.put(stream(b"hello"), max_bytes=5)
        deleting = asyncio.ensure_future(hub.delete("s", ME))
        await asyncio.sleep(0)
        deleting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await deleting
        await hub.directory.settled()
        assert await store.facts() == []
        with pytest.raises(BlobNotFound):
            await files.read(blob.id)


async def test_who_asks_for_a_session_that_is_being_deleted_waits_until_it_is_gone() -> None:
    """Then there is none, or a new one; never the old one, half of which is gone."""
    store = HeldStore()
    async with running(store=store) as hub:
        epoch = (await hub.open("s", ME, "agent")).session.head.epoch
        await settled(hub)
        deleting = asyncio.ensure_future(hub.delete("s", ME))
        await asyncio.sleep(0)
        finding = asyncio.ensure_future(hub.find("s", ME))
        opening = asyncio.ensure_future(hub.open("s", ME, "agent"))
        await deleting
        with pytest.raises(SessionNotFound):
            await finding
        again = await opening
        await settled(hub)
        assert again.session.head.epoch != epoch
        assert [fact.sequence for fact in await store.facts()] == [1]


async def test_server_that_stops_ends_a_deletion_first() -> None:
    """What was acknowledged to nobody is whole all the same."""
    store = HeldStore()
    async with running(store=store) as hub:
        await hub.open("s", ME, "agent")
        blob = await hub.blobs.of("s").put(stream(b"hello"), max_bytes=5)
        await settled(hub)
        deleting = asyncio.ensure_future(hub.delete("s", ME))
        await asyncio.sleep(0)
        deleting.cancel()
    with pytest.raises(BlobNotFound):
        await hub.blobs.of("s").read(blob.id)


async def test_session_of_somebody_else_cannot_be_deleted() -> None:
    """The same error as for none."""
    async with running() as hub:
        await hub.open("hers", Principal("ada"), "agent")
        with pytest.raises(SessionNotFound):
            await hub.delete("hers", Principal("bob"))
        assert "hers" in hub.sessions


async def test_list_shows_only_what_is_ones_own() -> None:
    """Newest first, by workflow, page by page."""
    async with running(other=Gate()) as hub:
        for number in range(5):
            await hub.open(f"a{number}", Principal("ada"), "agent")
        await hub.open("w", Principal("ada"), "other")
        await hub.open("b", Principal("bob"), "agent")
        await settled(hub)
        ada = [meta.id for meta in await hub.metas(Principal("ada"))]
        other = [meta.id for meta in await hub.metas(Principal("ada"), workflow="other")]
        page = await hub.metas(Principal("ada"), limit=4)
        rest = await hub.metas(Principal("ada"), before=page[-1].cursor)
    assert sorted(ada) == ["a0", "a1", "a2", "a3", "a4", "w"]
    assert other == ["w"]
    assert [meta.id for meta in [*page, *rest]] == ada


async def test_start_mends_what_a_crash_left() -> None:
    """A turn that ran is closed as interrupted; what waited in line goes on."""
    store = HeldStore()
    gate = Gate()
    hub = await started(gate, store=store)
    renderer = await Renderer(hub).join()
    await renderer.say("go")
    await renderer.box.has("delta")
    await settled(hub)
    crashed = HeldStore()
    await crashed.open()
    for batch in store.appends:
        await crashed.append(batch)
    await hub.aclose()
    async with running(gate, store=crashed) as again:
        back = await Renderer(again).join()
        turn = back.screen.turns["t1"]
        facts = await crashed.facts()
    assert (turn.status, turn.final) == ("failed", True)
    assert back.screen.text("t1") == "re go"
    assert turn.errors[0].retryable is True
    assert [fact.status_reason for fact in facts if fact.type == "turn.failed"] == ["interrupted"]
