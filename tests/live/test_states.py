"""Long sessions come back from a stored state and the facts behind it; the log stays the truth."""

from __future__ import annotations

import asyncio
import gc
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pytest

from arp import Turn, ui
from arp.access.principal import Principal
from arp.audit.models.read_model import ReadModel
from arp.hub.hub import Hub
from arp.hub.readers.models import Models
from arp.ledger.fact import decode
from arp.live.cache import SHORT
from arp.live.settings import HubSettings
from arp.live.states import States
from arp.protocol.limits import Limits
from arp.session.recording.log import ReadOnly
from arp.session.session import Head, Session
from arp.session.state import STATE_VERSION, encode_state
from arp.store.errors import StoreDamaged, StoreUnwritable
from arp.store.sqlite import SqliteStore
from arp.store.store import Store
from tests.hub.rig import HeldStore, Renderer, running, settled, started
from tests.store.processes import child
from tests.support.restoring import restore
from tests.support.waiting import becomes

NOBODY = Principal()
WHOLE = HubSettings(stop_grace_s=0.05, cancel_grace_s=0.05)
OFTEN = HubSettings(stop_grace_s=0.05, cancel_grace_s=0.05, model_every_facts=20)


NAME = States.name

of_a_model: ContextVar[bool] = ContextVar("of_a_model", default=False)


@pytest.fixture(autouse=True)
def _reads_of_models(monkeypatch: pytest.MonkeyPatch) -> None:
    """Marks what is read to make a read model."""
    read = Models.read

    async def marked(self: Models, session_id: str) -> ReadModel:
        token = of_a_model.set(True)
        try:
            return await read(self, session_id)
        finally:
            of_a_model.reset(token)

    monkeypatch.setattr(Models, "read", marked)


class SpiedStore(HeldStore):
    """A memory store that tells from where facts were read, and whose disk may be full."""

    def __init__(self) -> None:
        super().__init__()
        self.reads: list[int] = []
        self.full = False
        self.saved = asyncio.Event()
        """A state was stored."""

    async def read(
        self, session_id: str, after: int = 0, limit: int = 1000
    ) -> list[tuple[int, bytes]]:
        """As `Store.read`."""
        if not of_a_model.get():  # they are read when the loop likes
            self.reads.append(after)
        return await super().read(session_id, after, limit)

    async def save_model(self, session_id: str, name: str, sequence: int, data: bytes) -> None:
        """As `Store.save_model`."""
        if self.full and name != Models.name:
            raise StoreUnwritable("ledger.db", "the disk is full")
        await super().save_model(session_id, name, sequence, data)
        if name == NAME:
            self.saved.set()

    async def covered(self, session_id: str = "s") -> int | None:
        """Return how far the stored state of a session reaches."""
        stored = await self.load_model(session_id, NAME)
        return stored[0] if stored else None


async def busy(turn: Turn) -> None:
    """Forty facts a turn."""
    for number in range(38):
        await turn.say(f"{number} ")
        turn.show(ui.text(str(number), id=f"shown-{number % 5}"))
        await turn.say("")


async def talked(hub: Hub, turns: int, session_id: str = "s") -> Renderer:
    user = await Renderer(hub, session_id).join()
    begun = hub.sessions[session_id].session.screen.count
    for number in range(begun + 1, begun + turns + 1):
        await user.say("go")
        assert await user.ended(f"t{number}") == "completed"
    return user


async def gone(hub: Hub, user: Renderer) -> None:
    """Lets the session of a renderer leave the memory."""
    user.leave()
    await settled(hub)
    assert hub.lifetimes.evict(asyncio.get_running_loop().time() + 1) == 1


async def from_all_facts(store: Store, session_id: str = "s") -> bytes:
    """What the whole log makes, with nothing stored beside it."""
    meta = await store.session(session_id)
    assert meta is not None
    facts = [decode(body) for _, body in await store.read(session_id, limit=10**6)]
    head = Head(meta.id, meta.epoch, meta.owner, meta.workflow, created_at=meta.created_at)
    return encode_state(restore(head, facts, Limits()))


async def comes_back(hub: Hub, session_id: str = "s") -> bytes:
    live = await hub.find(session_id, NOBODY)
    return encode_state(live.session)


# -- memory ----------------------------------------------------------------------------------------


async def test_session_that_left_the_memory_is_freed_without_a_collection() -> None:
    """A server makes next to no full collections: a circle of references would stay for hours."""
    gc.collect()
    gc.disable()
    before = count_sessions()
    try:
        async with running(busy) as hub:
            user = await talked(hub, 2)
            while_there = count_sessions()
            await gone(hub, user)
            del user
            await hub.models.keep_up()
            await hub.directory.states.keep_up()
            await asyncio.sleep(0)  # callbacks of futures that are done hold it for one round
            after = count_sessions()
    finally:
        gc.enable()
    assert while_there == before + 1
    assert after == before


def count_sessions() -> int:
    return sum(type(one) is Session for one in gc.get_objects())


# -- storing ---------------------------------------------------------------------------------------


async def test_session_that_leaves_is_read_from_where_it_stood() -> None:
    """Not from its first fact, and it is what its log makes of it."""
    store = SpiedStore()
    async with running(busy, store=store) as hub:
        user = await talked(hub, 8)
        await gone(hub, user)
        await hub.directory.states.keep_up()
        last = len(await store.facts())
        assert await store.covered() == last
        store.reads.clear()
        again = await comes_back(hub)
        assert store.reads == [last]
        assert again == await from_all_facts(store)


async def test_short_session_needs_no_state() -> None:
    store = SpiedStore()
    async with running(busy, store=store) as hub:
        user = await talked(hub, 1)
        await gone(hub, user)
        await hub.directory.states.keep_up()
        assert len(await store.facts()) < SHORT
        assert await store.covered() is None


async def test_state_follows_a_session_that_grows() -> None:
    store = SpiedStore()
    async with running(busy, store=store, settings=OFTEN) as hub:
        user = await talked(hub, 1)
        await hub.directory.states.keep_up()
        first = await store.covered()
        assert first is not None
        await hub.directory.states.keep_up()
        assert await store.covered() == first
        await user.say("go")
        assert await user.ended("t2") == "completed"
        await settled(hub)
        await hub.directory.states.keep_up()
        second = await store.covered()
        assert second is not None
        assert second > first


async def test_large_state_is_stored_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """What stands on the screen must not cost more than what happens."""
    monkeypatch.setattr("arp.live.cache.BYTES_PER_FACT", 1)
    store = SpiedStore()
    async with running(busy, store=store, settings=OFTEN) as hub:
        user = await talked(hub, 1)
        await hub.directory.states.keep_up()
        first = await store.covered()
        await user.say("go")
        assert await user.ended("t2") == "completed"
        await hub.directory.states.keep_up()
        assert await store.covered() == first


async def test_states_are_stored_by_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arp.live.cache.ROUND_S", 0.001)
    store = SpiedStore()
    async with running(busy, store=store, settings=OFTEN) as hub:
        await talked(hub, 1)
        async with asyncio.timeout(30):
            await store.saved.wait()


async def test_server_that_stops_stores_what_is_in_memory() -> None:
    store = SpiedStore()
    async with running(busy, store=store) as hub:
        await talked(hub, 8)
    await store.open()
    assert await store.covered() == len(await store.facts())
    async with running(busy, store=store) as hub:
        store.reads.clear()
        assert await comes_back(hub) == await from_all_facts(store)


async def test_state_covers_what_is_durable_alone() -> None:
    """It is made of what is recorded, and stored when the ledger has that."""
    store = SpiedStore()

    async def agent(turn: Turn) -> None:
        await busy(turn)
        await hub.sessions["s"].written()
        store.hold()
        await turn.say("not written yet")
        await asyncio.Event().wait()

    async with running(agent, store=store, settings=OFTEN) as hub:
        user = await Renderer(hub).join()
        await user.say("go")
        await store.waiting.wait()
        await becomes(lambda: hub.sessions["s"].session.screen.text("t1").endswith("yet"))
        before = len(await store.facts())
        keeping = asyncio.ensure_future(hub.directory.states.keep_up())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert await store.covered() is None
        store.release()
        await keeping
        covered, durable = await store.covered(), len(await store.facts())
        assert covered is not None
        assert before < covered <= durable


async def test_disk_that_is_full_costs_only_time(caplog: pytest.LogCaptureFixture) -> None:
    store = SpiedStore()
    store.full = True
    async with running(busy, store=store) as hub:
        user = await talked(hub, 8)
        await gone(hub, user)
        await hub.directory.states.keep_up()
        assert await comes_back(hub) == await from_all_facts(store)
    assert "the state of session s is not stored" in caplog.text


async def test_deleted_session_leaves_no_state() -> None:
    store = SpiedStore()
    async with running(busy, store=store, settings=OFTEN) as hub:
        await talked(hub, 1)
        await hub.directory.states.keep_up()
        await hub.delete("s", NOBODY)
        await hub.directory.states.keep_up()
        assert await store.covered() is None


# -- reading ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [b"", b"{}", b"\x00" * 40])
async def test_state_that_is_damaged_is_passed_over(data: bytes) -> None:
    store = await long_store()
    await store.save_model("s", NAME, await last(store), data)
    async with running(busy, store=store) as hub:
        store.reads.clear()
        again = await comes_back(hub)
        assert store.reads[0] == 0
        assert again == await from_all_facts(store)


async def test_state_of_another_version_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    store = await long_store()
    monkeypatch.setattr("arp.session.state.STATE_VERSION", 99)
    async with running(busy, store=store) as hub:
        store.reads.clear()
        await comes_back(hub)
        assert store.reads[0] == 0


async def test_state_that_says_another_sequence_is_passed_over() -> None:
    store = await long_store()
    stored = await store.load_model("s", NAME)
    assert stored is not None
    store._models["s", NAME] = stored[0] - 1, stored[1]
    async with running(busy, store=store) as hub:
        assert await comes_back(hub) == await from_all_facts(store)


async def test_state_that_does_not_fit_its_facts_is_passed_over(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The facts say that a turn starts of which it knows nothing."""
    store = await long_store()
    async with running(busy, store=store) as hub:
        await talked(hub, 1)
    await store.open()
    facts = await store.facts()
    (place,) = [one.sequence for one in facts if one.type == "turn.started"][-1:]
    wrong = restore(facts_head(facts), facts[: place - 2], Limits())
    wrong.log.sequence = place - 1
    store._models["s", NAME] = place - 1, encode_state(wrong)
    async with running(busy, store=store) as hub:
        assert await comes_back(hub) == await from_all_facts(store)
    assert "session s: its state does not fit its facts" in caplog.text


def facts_head(facts: Any) -> Head:
    return Head("s", facts[0].payload["epoch"])


# -- what was mended is told -----------------------------------------------------------------------


async def repairs(store: SpiedStore) -> list[dict[str, Any]]:
    """What the log says of stored models that were made again."""
    return [fact.payload for fact in await store.facts() if fact.type == "snapshot.repaired"]


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        ((0, b""), "no session state: Input data was truncated"),
        ((0, b"{}"), "no session state: Object missing required field `version`"),
        ((-1, None), "a stored state of something else"),
    ],
)
async def test_a_state_that_was_made_again_is_told_once(
    damage: tuple[int, bytes | None], reason: str
) -> None:
    store = await long_store()
    last_before = await last(store)
    sequence, data = store._models["s", NAME]
    store._models["s", NAME] = sequence + damage[0], data if damage[1] is None else damage[1]
    for _ in range(3):
        async with running(busy, store=store) as hub:
            await comes_back(hub)
            evicted = hub.lifetimes.evict(float("inf"))
            assert evicted == 1
            await comes_back(hub)
            await hub.directory.states.keep_up()
            assert await comes_back(hub) == await from_all_facts(store)
        await store.open()
    (told,) = await repairs(store)
    assert told["readModel"] == NAME
    assert told["throughSequence"] == last_before
    assert reason in told["reason"]


async def test_a_state_of_another_version_is_made_again_and_told_with_what_a_resume_tells_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = await long_store()
    monkeypatch.setattr("arp.session.state.STATE_VERSION", 99)
    async with running(busy, store=store) as hub:
        await comes_back(hub)
        first, through = hub.lifetimes.repairs["s"]
        assert through == first + 1
    async with running(busy, store=store) as hub:
        await comes_back(hub)
        assert "s" not in hub.lifetimes.repairs
    await store.open()
    (told,) = await repairs(store)
    assert f"a session state of ({STATE_VERSION}" in told["reason"]


async def test_of_a_recording_no_repair_is_told() -> None:
    store = await long_store()
    await store.save_model("s", NAME, await last(store), b"")
    before = len(await store.facts())
    async with running(busy, store=store, settings=HubSettings(takes_input=False)) as hub:
        await comes_back(hub)
    await store.open()
    assert len(await store.facts()) == before


async def test_a_disk_that_is_full_lets_a_state_be_made_again_without_a_message_each_round(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = await long_store()
    await store.save_model("s", NAME, await last(store), b"")
    async with running(busy, store=store) as hub:
        await comes_back(hub)
        store.full = True
        for _ in range(3):
            await hub.directory.states.keep_up()
        assert caplog.text.count("the state of session s is not stored") == 1
        store.full = False


async def test_log_that_cannot_be_read_is_no_reason_to_pass_over_a_state() -> None:
    store = await long_store()

    async def damaged(session_id: str, after: int = 0, limit: int = 1000) -> Any:
        raise StoreDamaged(session_id, after)

    store.read = damaged  # type: ignore[method-assign]
    states = States(store, {}, WHOLE)
    meta = await store.session("s")
    assert meta is not None
    with pytest.raises(StoreDamaged):
        await states.read(Head("s", meta.epoch))


MALFORMED = b'{"sessionId":"s","sequence":1,"type":"model.delta","payload":{"text":}}'
NO_FACT = b'{"sequence":1}'
BAD_UTF8 = b'{"sequence":1,"x":"\xff"}'
SENSELESS = (
    b'{"schemaVersion":"x","runtimeId":"arp","sessionId":"s","eventId":"s-1","timestamp":"x",'
    b'"sequence":1,"type":"turn.started","payload":{},"threadId":"main","turnId":"t99"}'
)


@pytest.mark.parametrize("settings", [WHOLE, OFTEN], ids=["all facts", "from a state"])
@pytest.mark.parametrize("bad", [MALFORMED, NO_FACT, BAD_UTF8, SENSELESS])
async def test_session_with_an_unreadable_fact_opens_up_to_it_to_be_read_only(
    bad: bytes, settings: HubSettings, caplog: pytest.LogCaptureFixture
) -> None:
    """It names the fact; what is behind it stays as it is, and is not looked at."""
    store = SpiedStore()
    async with running(busy, store=store, settings=settings) as hub:
        user = await talked(hub, 4)
        await hub.directory.states.keep_up()
        await gone(hub, user)
        whole = await comes_back(hub)
    await store.open()
    at = await last(store) + 1
    store._facts["s"] += [bad, b"and what came behind it"]
    kept = list(store._facts["s"])
    async with running(busy, store=store, settings=settings) as hub:
        assert await comes_back(hub) == whole
        renderer = await Renderer(hub).join()
        told = await renderer.box.has("error")
        await renderer.say("go on", id="i1")
        refused = await renderer.box.has("error", payload=told["payload"] | {"id": "i1"})
        with pytest.raises(ReadOnly, match=f"fact {at} cannot be read"):
            await hub.rename("s", NOBODY, "another", None)
        late = await Renderer(hub).join()
        late.leave()
        await renderer.send("focus", {}, source_component="x")
        await talked(hub, 1, "other")
        assert len(renderer.screen.turns) == 4
        assert late.screen.canonical() == renderer.screen.canonical()
        renderer.leave()
        await settled(hub)
        # The other session has a renderer.
        assert hub.lifetimes.evict(asyncio.get_running_loop().time() + 1) == 1
    assert store._facts["s"] == kept
    assert refused["payload"]["code"] == 15
    assert f"session s: fact {at} cannot be read" in told["payload"]["error"]
    assert caplog.text.count(f"session s: fact {at} cannot be read") >= 1


async def test_turns_that_went_on_before_an_unreadable_fact_are_shown_as_failed() -> None:
    """No agent works in them; who looks at them is told why."""
    store = SpiedStore()
    asked = asyncio.Event()

    async def agent(turn: Turn) -> None:
        asked.set()
        await turn.confirm("Sure?")

    hub = await started(agent, store=store)
    user = await Renderer(hub).join()
    for text in ("one", "two"):
        await user.say(text)
    await asked.wait()
    await settled(hub)
    copy = SpiedStore()
    copy._facts = {"s": [*store._facts["s"], MALFORMED]}
    copy._metas = dict(store._metas)
    await hub.aclose()
    async with running(agent, store=copy) as again:
        renderer = await Renderer(again).join()
        states = {name: turn.status for name, turn in renderer.screen.turns.items()}
        (error,) = renderer.screen.turns["t1"].errors
        await renderer.send("action", {"action": "confirm"}, source_component="t1-1", id="i")
        await renderer.box.until(lambda: len(renderer.box.of("error")) == 4)
        await again.delete("s", NOBODY)
    assert states == {"t1": "failed", "t2": "failed"}
    assert "cannot be read" in str(error)
    assert renderer.box.of("error")[-1]["payload"]["code"] == 15


async def test_ledger_that_was_mended_gives_the_session_back() -> None:
    store = await long_store()
    await store.open()
    facts = list(store._facts["s"])
    store._facts["s"] = [*facts[:20], MALFORMED, *facts[21:]]
    store._models.clear()
    async with running(busy, store=store) as hub:
        short = await hub.find("s", NOBODY)
        assert (short.session.sequence, short.session.log.sealed is None) == (20, False)
        assert hub.lifetimes.evict(asyncio.get_running_loop().time() + 1) == 1
        store._facts["s"] = facts
        live = await hub.find("s", NOBODY)
        assert (live.session.sequence, live.session.log.sealed) == (len(facts), None)


async def last(store: HeldStore) -> int:
    return len(await store.facts())


async def long_store() -> SpiedStore:
    """A store with a session whose state is stored."""
    store = SpiedStore()
    hub = await started(busy, store=store)
    await talked(hub, 8)
    await hub.aclose()
    await store.open()
    assert await store.covered() is not None
    return store


async def test_turn_that_a_crash_interrupted_is_mended_behind_a_state() -> None:
    """The state is of before; the facts behind it tell that a turn ran."""
    store = await long_store()
    forever = asyncio.Event()

    async def agent(_: Turn) -> None:
        await forever.wait()

    hub = await started(agent, store=store)
    user = await Renderer(hub).join()
    await user.say("go")
    await user.box.has("turn", status="running", turn_id="t9")
    copy = SpiedStore()
    copy._facts = {name: list(kept) for name, kept in store._facts.items()}
    copy._metas, copy._models = dict(store._metas), dict(store._models)
    await hub.aclose()
    async with running(busy, store=copy) as again:
        copy.reads.clear()
        user = await Renderer(again).join()
        assert user.screen.turns["t9"].status == "failed"
        await user.say("go on")
        assert await user.ended("t10") == "completed"
        assert 0 not in copy.reads


# -- while it happens ------------------------------------------------------------------------------


async def test_renderer_that_comes_back_to_a_session_of_a_state_sees_what_it_left() -> None:
    store = await long_store()
    async with running(busy, store=store) as hub:
        first = await Renderer(hub).join()
        screen = first.screen.canonical()
        await gone(hub, first)
        await hub.directory.states.keep_up()
        ready = first.box.of("session")[0]
        back = await Renderer(hub).join(ready["epoch"], ready["seq"])
        assert [one["resume"] for one in back.box.of("session")] == ["replay"]
        other = await Renderer(hub).join()
        assert other.screen.canonical() == screen


async def test_session_that_is_opened_while_its_state_is_stored_loses_nothing() -> None:
    store = await long_store()
    async with running(busy, store=store) as hub:
        user = await talked(hub, 8)
        await gone(hub, user)
        keeping = asyncio.ensure_future(hub.directory.states.keep_up())
        user = await talked(hub, 1)
        await keeping
        await gone(hub, user)
        await hub.directory.states.keep_up()
        assert await comes_back(hub) == await from_all_facts(store)


@pytest.mark.kill
@pytest.mark.timeout(120)
async def test_kill_leaves_sessions_that_come_back_equal(tmp_path: Path, kill_rounds: int) -> None:
    """`kill -9` while a session talks and its states are stored."""
    path, resumed = tmp_path / "ledger.db", 0
    for round_number in range(min(kill_rounds, 10)):
        with child("talk", path, "tests.live.state_child") as (_, told):
            for _ in range(3 + round_number % 4):
                assert told.readline()
        store = SqliteStore(path)
        await store.open()
        meta = await store.session("s")
        assert meta is not None
        stored = await store.load_model("s", NAME)
        assert stored is not None
        assert stored[0] <= meta.last_sequence
        resumed += stored[0] < meta.last_sequence
        head = Head("s", meta.epoch, meta.owner, meta.workflow, created_at=meta.created_at)
        again = await States(store, {}, WHOLE).read(head)
        assert encode_state(again) == await from_all_facts(store)
        await store.aclose()
    assert resumed > 0, "no kill came between a fact and its state; make the child quicker"
