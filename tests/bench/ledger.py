"""What the ledger costs: appending with read models and without, opening a session of any length.

In this process, over a SQLite ledger on disk. Agents work as fast as the ledger takes their facts:
each waits until what it did is durable, and goes on. With read models *on*, the model of each
session is read once a second, as a page does that watches it, and models are stored behind the log;
*off* nobody asks, and none is stored. What waits for nobody is told in processor time, all threads.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from msgspec import Struct

from arp import Turn
from arp.access.principal import Principal
from arp.hub.delivery import Viewer
from arp.hub.hub import Hub
from arp.hub.models import Models
from arp.hub.runner import Handler, HubApp
from arp.hub.settings import HubSettings
from arp.protocol.catalog import VERSIONS
from arp.protocol.messages import Input, RendererCapabilities, RendererHello
from arp.store.blobs import MemoryBlobs
from arp.store.sqlite import SqliteStore
from tests.bench.figures import Figure, alone, compared, percentile, report, rounds
from tests.bench.long_log import RESULT, written

SESSIONS = 40
STEPS = 300
"""Of each agent; a step is 4 facts: a tool's start, arguments and result, and a text."""

LONG, SHORT = 1_000_000, 1_000
"""Facts of the sessions that are opened."""

NEVER = 10**9
TARGET_OPEN = 1.5
TARGET_ON = 1.3


class Appended(Struct):
    """What one run of the agents took."""

    facts_per_s: float
    used_us: float
    """Processor time for each fact."""
    p99_ms: float
    """From the beginning of a step until its facts are durable and delivered."""


# -- appending -------------------------------------------------------------------------------------


async def appended(path: Path, *, on: bool) -> Appended:
    """Lets the agents work, with read models or without."""
    took: list[float] = []

    async def agent(turn: Turn) -> None:
        live = hub.sessions[turn.session_id]
        for _ in range(STEPS):
            began = time.perf_counter()
            async with turn.tool("query", {"sql": "SELECT 1"}) as tool:
                tool.result(RESULT)
            await turn.say("One row. ")
            await live.written()
            took.append(time.perf_counter() - began)
        if len(took) == SESSIONS * STEPS:
            done.set()

    done = asyncio.Event()
    settings = HubSettings() if on else HubSettings(model_every_facts=NEVER)
    async with started(path, agent, settings) as hub:
        watcher = asyncio.ensure_future(watch(hub)) if on else None
        began, used = time.perf_counter(), time.process_time()
        await submit_all(hub)
        await done.wait()
        seconds, used = time.perf_counter() - began, time.process_time() - used
        if watcher is not None:
            watcher.cancel()
        facts = hub.writer.facts
    return Appended(facts / seconds, used / facts * 1e6, percentile(took, 99) * 1000)


@asynccontextmanager
async def started(path: Path, agent: Handler, settings: HubSettings) -> AsyncIterator[Hub]:
    """Runs a hub over a new ledger."""
    store = SqliteStore(path / "ledger.db")
    await store.open()
    hub = Hub(store, MemoryBlobs(), HubApp({"agent": agent}), settings)
    await hub.start()
    try:
        yield hub
    finally:
        await hub.aclose()


async def submit_all(hub: Hub) -> None:
    """Begins a turn in each session."""
    order = [
        Input(input_type="text", data={"text": "go"}, session_id=f"s{number}")
        for number in range(SESSIONS)
    ]
    await asyncio.gather(*[hub.submit(one, Principal(), "agent") for one in order])


async def watch(hub: Hub) -> None:
    """Reads every session's thread once a second, one after the other."""
    while True:
        for session_id in [f"s{number}" for number in range(SESSIONS)]:
            await asyncio.sleep(1 / SESSIONS)
            (await hub.models.read(session_id)).thread()


# -- opening ---------------------------------------------------------------------------------------


class Heard:
    """An outbox that waits for what comes."""

    def __init__(self) -> None:
        self.buffered = 0
        self._frames: list[bytes] = []
        self._came = asyncio.Event()

    def send(self, frames: list[bytes]) -> None:
        self._frames += frames
        self._came.set()

    def send_first(self, frame: bytes) -> None:
        self.send([frame])

    def waiting(self) -> list[bytes]:
        """Nothing waits."""
        return []

    def close(self, code: int, reason: str) -> None:
        raise SystemExit(f"closed: {code} {reason}")

    async def until(self, sign: bytes) -> None:
        """Waits for a frame that holds a sign."""
        while not any(sign in frame for frame in self._frames):
            self._came.clear()
            await self._came.wait()
        self._frames.clear()


class Opened(Struct):
    """What a session took that was not in memory, in processor time."""

    screen_ms: float
    """Until a renderer that comes has its snapshot."""
    turn_ms: float
    """And until a turn of it is over."""


async def opened(hub: Hub, session_id: str) -> Opened:
    """Opens a session as a renderer does, lets it work, and lets it leave the memory."""
    heard = Heard()
    viewer = Viewer("renderer", heard, "json")
    features = ["streaming", "input", "resume"]
    capabilities = RendererCapabilities(dict(VERSIONS), features)
    hello = RendererHello(session_id=session_id, capabilities=capabilities)
    began = time.process_time()
    await hub.hello(viewer, hello, Principal(), "agent")
    await heard.until(b'"resume":"snapshot"')
    screen = time.process_time()
    said = Input(input_type="text", data={"text": "go"}, session_id=session_id)
    await hub.receive(viewer, said, Principal(), "agent")
    await heard.until(b'"final":true')
    ended = time.process_time()
    live = hub.sessions[session_id]
    hub.detach(viewer)
    await live.written()
    await hub.writer.turnover()
    if not hub.evict(asyncio.get_running_loop().time() + 1):
        raise SystemExit(f"session {session_id} does not leave the memory")
    return Opened((screen - began) * 1000, (ended - began) * 1000)


async def model_ms(store: SqliteStore, session_id: str) -> float:
    """Reads a session's model as a server does that has just been started."""
    models = Models(store, {}, HubSettings())
    began = time.process_time()
    (await models.read(session_id)).thread()
    return (time.process_time() - began) * 1000


async def model_rate(store: SqliteStore, count: int, session_id: str) -> float:
    """Makes a session's model from its first fact, stores it, and tells facts a second."""
    models = Models(store, {}, HubSettings())
    began = time.process_time()
    await models.read(session_id)
    seconds = time.process_time() - began
    models.rest(session_id)
    await models.keep_up()
    return count / seconds


async def session_rate(hub: Hub, count: int, session_id: str) -> float:
    """Makes a session from its first fact, lets it leave and be stored; tells facts a second."""
    began = time.process_time()
    await hub.find(session_id, Principal())
    seconds = time.process_time() - began
    hub.evict(asyncio.get_running_loop().time() + 1)
    await hub.directory.states.keep_up()
    return count / seconds


async def brief(turn: Turn) -> None:
    await turn.say("One row. ")


async def opening(folder: Path, times: int) -> list[Figure]:
    opens: tuple[list[Opened], list[Opened]] = [], []
    models: tuple[list[float], list[float]] = [], []
    async with started(folder, brief, HubSettings()) as hub:
        store = hub.store
        assert isinstance(store, SqliteStore)
        count = await written(store, LONG, "long")
        few = await written(store, SHORT, "short")
        rates = [await model_rate(store, few, "short"), await session_rate(hub, few, "short")]
        rates = [await model_rate(store, count, "long"), await session_rate(hub, count, "long")]
        for _ in range(times * 20):
            for place, session_id in enumerate(("long", "short")):
                models[place].append(await model_ms(store, session_id))
                opens[place].append(await opened(hub, session_id))
    name = f"{LONG:,} facts, against {SHORT:,}"
    long, short = ([one.screen_ms for one in each] for each in opens)
    long_turn, short_turn = ([one.turn_ms for one in each] for each in opens)
    return [
        alone("make a read model anew", "facts/s", rates[:1]),
        alone("make a session anew", "facts/s", rates[1:]),
        compared(f"read model of {name}", "ms", *models, TARGET_OPEN),
        compared(f"session of {name}: a renderer's snapshot", "ms", long, short, TARGET_OPEN),
        compared("… and a turn", "ms", long_turn, short_turn, TARGET_OPEN),
    ]


def appending(folder: Path, times: int) -> list[Figure]:
    on, off = list[Appended](), list[Appended]()
    for number in range(times):
        for runs in (on, off):
            place = folder / f"run{number}"
            runs.append(asyncio.run(appended(place, on=runs is on)))
            shutil.rmtree(place)
    used_on, used_off = [one.used_us for one in on], [one.used_us for one in off]
    p99_on, p99_off = [one.p99_ms for one in on], [one.p99_ms for one in off]
    return [
        alone("append with read models on", "facts/s", [one.facts_per_s for one in on]),
        compared("… processor per fact, against off", "µs", used_on, used_off, TARGET_ON),
        compared("… p99 until durable, against off", "ms", p99_on, p99_off),
    ]


def main() -> None:
    times = rounds(3)
    with tempfile.TemporaryDirectory(prefix="arp-bench-") as folder:
        figures = appending(Path(folder), times)
        figures += asyncio.run(opening(Path(folder), times))
        report("ledger", figures)


if __name__ == "__main__":
    main()
