"""Read models on demand: as far as the log is durable, from where they were, never in its way."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from arp import Turn
from arp.access.principal import Principal
from arp.audit.models.read_model import ReadModel
from arp.hub.readers.models import Models
from arp.ledger.fact import Fact, decode, encode
from arp.live.cache import SHORT, StoredModel, keep_up
from arp.live.settings import HubSettings
from arp.live.tasks import Service
from arp.store.errors import StoreDamaged, StoreUnwritable
from arp.store.memory import MemoryStore
from arp.store.sqlite import SqliteStore
from arp.store.store import SessionWrite, Store
from tests.hub.rig import Renderer, running, settled
from tests.ledger.histories import long_history
from tests.store.processes import child
from tests.support.waiting import becomes

NAME = Models.name


class SpiedStore(MemoryStore):
    """A memory store that tells from where facts were read, and refuses what a test says."""

    def __init__(self) -> None:
        super().__init__()
        self.reads: list[int] = []
        self.damaged: set[str] = set()
        self.full = False

    async def read(
        self, session_id: str, after: int = 0, limit: int = 1000
    ) -> list[tuple[int, bytes]]:
        """As `Store.read`."""
        self.reads.append(after)
        if session_id in self.damaged:
            raise StoreDamaged(session_id, after)
        return await super().read(session_id, after, limit)

    async def save_model(self, session_id: str, name: str, sequence: int, data: bytes) -> None:
        """As `Store.save_model`."""
        if self.full:
            raise StoreUnwritable("ledger.db", "the disk is full")
        await super().save_model(session_id, name, sequence, data)

    async def sequence_of(self, session_id: str) -> int | None:
        """Return how far the stored model of a session reaches."""
        stored = await self.load_model(session_id, NAME)
        return stored[0] if stored else None


HISTORY: Sequence[Fact] = long_history(700)
"""Of a session `s`."""


def rebuilt(facts: Sequence[Fact]) -> bytes:
    model = ReadModel()
    model.fold_all(facts)
    return model.encode()


@pytest.fixture
async def store() -> SpiedStore:
    store = SpiedStore()
    await store.open()
    return store


async def write(store: MemoryStore, facts: Sequence[Fact]) -> None:
    await store.append([SessionWrite("s", facts[0].sequence - 1, [encode(fact) for fact in facts])])


def models_of(store: Store, **settings: Any) -> Models:
    return Models(store, {}, HubSettings(**settings))


# -- reading ---------------------------------------------------------------------------------------


async def test_a_model_tells_what_is_durable() -> None:
    async def agent(turn: Turn) -> None:
        async with turn.tool("query", {}):
            await turn.say("Hello")

    async with running(agent) as hub:
        user = await Renderer(hub).join()
        await user.say("Hi there")
        await user.ended("t1")
        model = await hub.models.read("s")
        thread = model.thread("main")
    assert thread is not None
    assert thread["status"] == "completed"
    (turn,) = thread["turns"]
    assert turn["input"] == "Hi there"
    assert turn["outputCharacters"] == 5
    (call,) = thread["toolCalls"]
    assert (call["tool"], call["status"], call["turnId"]) == ("query", "completed", "t1")


async def test_a_model_goes_on_from_where_it_was(store: SpiedStore) -> None:
    models = models_of(store)
    await write(store, HISTORY[:100])
    assert (await models.read("s")).encode() == rebuilt(HISTORY[:100])
    store.reads.clear()
    await write(store, HISTORY[100:150])
    assert (await models.read("s")).encode() == rebuilt(HISTORY[:150])
    assert store.reads[0] == 100


async def test_however_many_ask_at_once_each_fact_is_folded_once(store: SpiedStore) -> None:
    models = models_of(store)
    await write(store, HISTORY)
    read = await asyncio.gather(*[models.read("s") for _ in range(3)])
    assert {model.encode() for model in read} == {rebuilt(HISTORY)}
    assert store.reads.count(0) == 1


async def test_no_more_models_are_in_memory_than_allowed(store: SpiedStore) -> None:
    models = models_of(store, models_in_memory=1)
    await write(store, HISTORY[:10])
    await models.read("s")
    await models.read("other")
    store.reads.clear()
    await models.read("s")
    assert store.reads[0] == 0


async def test_a_model_that_could_not_be_read_to_the_end_is_made_anew(store: SpiedStore) -> None:
    models = models_of(store)
    await write(store, HISTORY[:50])
    await models.read("s")
    store.damaged.add("s")
    with pytest.raises(StoreDamaged):
        await models.read("s")
    store.damaged.clear()
    assert (await models.read("s")).encode() == rebuilt(HISTORY[:50])


# -- storing ---------------------------------------------------------------------------------------


async def test_a_stored_model_saves_reading_what_it_covers(store: SpiedStore) -> None:
    models = models_of(store)
    await write(store, HISTORY[:400])
    models.rest("s")
    await models.keep_up()
    assert await store.sequence_of("s") == 400
    await write(store, HISTORY[400:])
    store.reads.clear()
    again = models_of(store)
    assert (await again.read("s")).encode() == rebuilt(HISTORY)
    assert min(store.reads) == 400


async def test_no_model_is_stored_of_a_short_log(store: SpiedStore) -> None:
    models = models_of(store)
    await write(store, HISTORY[: SHORT - 1])
    models.rest("s")
    await models.keep_up()
    assert await store.sequence_of("s") is None


async def test_what_was_read_from_far_behind_is_stored(store: SpiedStore) -> None:
    models = models_of(store, model_every_facts=300)
    await write(store, HISTORY[:300])
    await models.read("s")
    await models.keep_up()
    assert await store.sequence_of("s") == 300
    await write(store, HISTORY[300:310])
    await models.read("s")
    await models.keep_up()
    assert await store.sequence_of("s") == 300


@pytest.mark.parametrize("what", ["nonsense", "another version", "another session", "less"])
async def test_a_stored_model_that_does_not_fit_is_passed_over(
    store: SpiedStore, what: str
) -> None:
    await write(store, HISTORY[:20])
    model = ReadModel()
    model.fold_all(long_history(700)[:20])
    good = model.encode()
    data = {
        "nonsense": b"nonsense",
        "another version": re.sub(rb'"version":\d+', b'"version":0', good),
        "another session": good.replace(b'"sessionId":"s"', b'"sessionId":"z"'),
        "less": rebuilt(HISTORY[:10]),
    }[what]
    assert data != good
    await store.save_model("s", NAME, 20, data)
    assert (await models_of(store).read("s")).encode() == rebuilt(HISTORY[:20])


async def test_a_stored_model_whose_records_take_no_fact_is_made_again(store: SpiedStore) -> None:
    await write(store, HISTORY)
    document = json.loads(rebuilt(HISTORY[:100]))
    for record in document["records"]["windows"]["subagents"]["open"].values():
        record.update({name: [] for name in record})
    data = json.dumps(document).encode()
    ReadModel.decode(data)  # it can be decoded: only a fold finds out
    await store.save_model("s", NAME, 100, data)
    models = models_of(store)
    assert (await models.read("s")).encode() == rebuilt(HISTORY)
    store.reads.clear()
    await models.read("s")
    assert 100 not in store.reads, "the damaged model was read again"


async def test_a_session_in_memory_is_stored_after_so_many_facts() -> None:
    async def agent(turn: Turn) -> None:
        for _ in range(5):
            async with turn.tool("query"):
                pass

    store = SpiedStore()
    settings = HubSettings(model_every_facts=20)
    async with running(agent, store=store, settings=settings) as hub:
        user = await Renderer(hub).join()
        await hub.models.keep_up()
        before = await store.sequence_of("s")
        await user.say("Go")
        await user.ended("t1")
        await hub.models.keep_up()
        after = await store.sequence_of("s")
    assert before is None
    assert after is not None
    assert after >= 20


async def test_a_session_that_leaves_the_memory_is_stored() -> None:
    async def agent(turn: Turn) -> None:
        for _ in range(SHORT // 3):
            async with turn.tool("query"):
                pass

    store = SpiedStore()
    async with running(agent, store=store) as hub:
        user = await Renderer(hub).join()
        await user.say("Go")
        await user.ended("t1")
        user.leave()
        await settled(hub)
        assert hub.lifetimes.evict(asyncio.get_running_loop().time() + 1) == 1
        await hub.models.keep_up()
        stored = await store.sequence_of("s")
        last = len(await store.read("s"))
    assert stored == last


async def test_a_full_disk_costs_nothing_but_the_stored_model(
    store: SpiedStore, caplog: pytest.LogCaptureFixture
) -> None:
    models = models_of(store)
    await write(store, HISTORY)
    store.full = True
    models.rest("s")
    await models.keep_up()
    assert "the model of session s is not stored" in caplog.text
    store.full = False
    models.rest("s")
    await models.keep_up()
    assert await store.sequence_of("s") == len(HISTORY)


async def test_one_damaged_log_does_not_keep_others_from_being_stored(
    store: SpiedStore, caplog: pytest.LogCaptureFixture
) -> None:
    models = models_of(store)
    await write(store, HISTORY)
    store.damaged.add("broken")
    await store.append([SessionWrite("senseless", 0, [b"{}"])])
    for session_id in ("broken", "senseless", "s"):
        models.rest(session_id)
    await models.keep_up()
    assert await store.sequence_of("s") == len(HISTORY)
    assert "the model of session senseless is not stored: session senseless: fact 1" in caplog.text


async def test_reading_a_model_is_in_no_write_s_way() -> None:
    """A log that takes long to read holds up who asks, and nobody else."""

    async def agent(turn: Turn) -> None:
        await turn.say("Hello")

    class SlowStore(SpiedStore):
        free = asyncio.Event()

        async def read(
            self, session_id: str, after: int = 0, limit: int = 1000
        ) -> list[tuple[int, bytes]]:
            await self.free.wait()
            return await super().read(session_id, after, limit)

    store = SlowStore()
    async with running(agent, store=store) as hub:
        user = await Renderer(hub).join()
        reading = asyncio.ensure_future(hub.models.read("s"))
        await user.say("Hi")
        assert await user.ended("t1") == "completed"
        assert not reading.done()
        store.free.set()
        model = await reading
    assert model.thread("main") is not None


@pytest.mark.kill
@pytest.mark.timeout(120)
async def test_kill_leaves_models_that_come_back_equal(tmp_path: Path, kill_rounds: int) -> None:
    """`kill -9` while facts are written and models stored: what is read equals what is rebuilt."""
    path, resumed = tmp_path / "ledger.db", 0
    for round_number in range(min(kill_rounds, 10)):
        with child("store", path, "tests.hub.model_child") as (_, told):
            for _ in range(4 + round_number % 5):
                assert told.readline()
        store = SqliteStore(path)
        await store.open()
        bodies = [body for _, body in await store.read("s", limit=10**6)]
        stored = await store.load_model("s", NAME)
        assert stored is not None
        assert ReadModel.decode(stored[1]).sequence == stored[0] <= len(bodies)
        resumed += stored[0] < len(bodies)
        model = await models_of(store).read("s")
        await store.aclose()
        assert model.encode() == rebuilt([decode(body) for body in bodies])
    assert resumed > 0, "no kill came between a fact and its model; make the child quicker"


async def test_models_are_stored_by_themselves(
    store: SpiedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arp.live.cache.ROUND_S", 0.001)
    models = models_of(store)
    await write(store, HISTORY)
    models.rest("s")
    service = Service("arp-caches", lambda: keep_up([models]))
    service.start()
    stored = store._models
    await becomes(lambda: ("s", NAME) in stored)
    await service.aclose()
    await service.aclose()


async def test_nothing_is_left_of_a_session_that_was_deleted() -> None:
    """A new one under the same id begins anew."""
    async with running() as hub:
        user = await Renderer(hub).join()
        await user.say("First")
        await user.ended("t1")
        assert (await hub.models.read("s")).sequence > 3
        await hub.delete("s", Principal())
        assert (await hub.models.read("s")).sequence == 0
        user = await Renderer(hub).join()
        await user.say("Second")
        await user.ended("t1")
        thread = (await hub.models.read("s")).thread()
    assert thread is not None
    assert [turn["input"] for turn in thread["turns"]] == ["Second"]


# -- what was mended is told -----------------------------------------------------------------------


async def long_talk(store: SpiedStore) -> None:
    """A session whose model is stored."""

    async def agent(turn: Turn) -> None:
        for _ in range(60):
            async with turn.tool("query", {}):
                pass

    async with running(agent, store=store, settings=HubSettings(model_every_facts=100)) as hub:
        user = await Renderer(hub).join()
        await user.say("go")
        await user.ended("t1")
        await hub.models.keep_up()
    await store.open()
    assert await store.sequence_of("s") is not None


@pytest.mark.parametrize("change", ["damaged", "of another session", "of another version"])
async def test_a_model_that_was_made_again_is_told_once(
    store: SpiedStore, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await long_talk(store)
    sequence, data = store._models["s", NAME]
    if change == "of another version":
        monkeypatch.setattr("arp.audit.models.read_model.MODEL_VERSION", 99)
    elif change == "damaged":
        store._models["s", NAME] = sequence, b""
    else:
        store._models["s", NAME] = sequence - 1, data
    before = len(await store.read("s", 0, 10_000))
    stored = store._models["s", NAME]
    async with running(nothing, store=store) as hub:
        await hub.models.read("s")
        await hub.models.keep_up()
        assert hub.sessions == {}, "a session is not loaded to record what a look at it found"
    await store.open()
    assert len(await store.read("s", 0, 10_000)) == before
    assert store._models["s", NAME] == stored, "the evidence is lost"
    for _ in range(3):
        async with running(nothing, store=store) as hub:
            await hub.models.read("s")
            await hub.find("s", Principal())
            await hub.models.keep_up()
            await hub.models.keep_up()
        await store.open()
    log = [decode(body) for _, body in await store.read("s", 0, 10_000)]
    (told,) = [fact.payload for fact in log if fact.type == "snapshot.repaired"]
    assert told["readModel"] == "session"
    assert told["throughSequence"] == log[-1].sequence - 1
    assert told["reason"]
    model = await models_of(store).read("s")
    assert model.encode() == rebuilt(log)


async def test_a_stored_model_is_told_once_while_its_session_is_in_memory(
    store: SpiedStore,
) -> None:
    async def agent(turn: Turn) -> None:
        for _ in range(200):
            async with turn.tool("query", {}):
                pass

    async with running(agent, store=store, settings=HubSettings(model_every_facts=100)) as hub:
        user = await Renderer(hub).join()
        await user.say("go")
        await user.ended("t1")
        await hub.sessions["s"].written()
        stored_through = hub.sessions["s"].stored
        for _ in range(3):  # the fact itself is no reason to store the model again
            await hub.models.keep_up()
            await hub.sessions["s"].written()
        sequence, data = store._models["s", NAME]
        model = (await hub.models.read("s")).snapshot()
    await store.open()
    log = [decode(body) for _, body in await store.read("s", 0, 10_000)]
    (told,) = [fact.payload for fact in log if fact.type == "snapshot.updated"]
    assert told == {
        "readModel": "session",
        "throughSequence": stored_through,
        "bytes": len(data),
    }
    assert sequence == stored_through
    assert model["history"]["storedModels"] == {"session": stored_through}


async def test_a_session_that_left_the_memory_does_not_come_back_to_tell_of_its_model(
    store: SpiedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arp.live.cache.SHORT", 1)
    await long_talk(store)
    del store._models["s", NAME]
    before = len(await store.read("s", 0, 10_000))
    async with running(nothing, store=store) as hub:
        hub.models.rest("s")
        await hub.models.keep_up()
        assert ("s", NAME) in store._models
        assert "s" not in hub.sessions
    await store.open()
    assert len(await store.read("s", 0, 10_000)) == before


async def test_of_a_session_that_is_gone_no_repair_is_told(store: SpiedStore) -> None:
    await long_talk(store)
    store._models["s", NAME] = 1, b""
    async with running(nothing, store=store) as hub:
        await hub.models.read("s")
        await hub.find("s", Principal())
        await hub.delete("s", Principal())
        await hub.models.keep_up()
        await hub.lifetimes.note_model(StoredModel("s", NAME, 1, 2, "it was damaged"))
        assert "s" not in hub.sessions


async def test_of_a_recording_no_repair_of_a_model_is_told(store: SpiedStore) -> None:
    await long_talk(store)
    before = await store.read("s", 0, 10_000)
    store._models["s", NAME] = 1, b""
    async with running(nothing, store=store, settings=HubSettings(takes_input=False)) as hub:
        await hub.models.read("s")
        await hub.find("s", Principal())
        await hub.models.keep_up()
    await store.open()
    assert await store.read("s", 0, 10_000) == before


async def test_a_model_that_cannot_be_stored_is_not_tried_in_each_round(
    store: SpiedStore, caplog: pytest.LogCaptureFixture
) -> None:
    await long_talk(store)
    store._models["s", NAME] = 1, b""
    async with running(nothing, store=store) as hub:
        await hub.models.read("s")
        await hub.find("s", Principal())
        store.full = True
        for _ in range(3):
            await hub.models.keep_up()
        store.full = False
    assert caplog.text.count("the model of session s is not stored") == 1


async def nothing(_: Turn) -> None:
    """Does nothing."""
