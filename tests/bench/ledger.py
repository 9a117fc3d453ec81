"""The costs of the ledger: appending with and without read models, and opening a long session.

All in this process, with a SQLite ledger on disk. Agents work as fast as the ledger stores their
facts: each waits until a step is durable before the next one. With read models *on*, the model of
each session is read once a second, like a page that shows it, and models are stored after the log;
*off*, none is read or stored. Work that does not wait is measured in processor time of all threads.
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
from arp.hub.hub import Hub
from arp.hub.readers.models import Models
from arp.hub.runner import Handler, HubApp
from arp.live.delivery import Viewer
from arp.live.settings import HubSettings
from arp.protocol.catalog import VERSIONS
from arp.protocol.messages import Input, RendererCapabilities, RendererHello
from arp.store.blobs import MemoryBlobs
from arp.store.sqlite import SqliteStore
from tests.bench.figures import Figure, alone, compared, percentile, report, rounds
from tests.bench.long_log import RESULT, written

SESSIONS = 40
STEPS = 300
"""Steps of each agent; a step is 4 facts: a tool's start, arguments and result, and a text."""

LONG, SHORT = 1_000_000, 1_000
"""Facts of the sessions that are opened."""

NEVER = 10**9
TARGET_OPEN = 1.5
TARGET_ON = 1.3


class AppendRun(Struct):
    """The measurements of one run of the agents."""

    facts_per_s: float
    used_us: float
    """Processor time of each fact."""
    p99_ms: float
    """From the beginning of a step until its facts are durable and delivered."""


# -- appending -------------------------------------------------------------------------------------


async def append_run(path: Path, *, on: bool) -> AppendRun:
    """Run the agents, with read models or without; return the measurements."""
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
    return AppendRun(facts / seconds, used / facts * 1e6, percentile(took, 99) * 1000)


@asynccontextmanager
async def started(path: Path, agent: Handler, settings: HubSettings) -> AsyncIterator[Hub]:
    """Run a hub with a new ledger."""
    store = SqliteStore(path / "ledger.db")
    await store.open()
    hub = Hub(store, MemoryBlobs(), HubApp({"agent": agent}), settings)
    await hub.start()
    try:
        yield hub
    finally:
        await hub.aclose()


async def submit_all(hub: Hub) -> None:
    """Start a turn in each session."""
    inputs = [
        Input(input_type="text", data={"text": "go"}, session_id=f"s{number}")
        for number in range(SESSIONS)
    ]
    await asyncio.gather(*[hub.submit(one, Principal(), "agent") for one in inputs])


async def watch(hub: Hub) -> None:
    """Read every session's thread once a second, one after the other."""
    while True:
        for session_id in [f"s{number}" for number in range(SESSIONS)]:
            await asyncio.sleep(1 / SESSIONS)
            (await hub.models.read(session_id)).thread()


# -- opening ---------------------------------------------------------------------------------------


class StoredFrames:
    """An outbox that stores frames, so that a benchmark can wait for them."""

    def __init__(self) -> None:
        self.buffered = 0
        self._frames: list[bytes] = []
        self._received = asyncio.Event()

    def send(self, frames: list[bytes]) -> None:
        self._frames += frames
        self._received.set()

    def send_first(self, frame: bytes) -> None:
        self.send([frame])

    def waiting(self) -> list[bytes]:
        """Return no frames: nothing waits to be sent."""
        return []

    def close(self, code: int, reason: str) -> None:
        raise SystemExit(f"closed: {code} {reason}")

    async def until(self, needle: bytes) -> None:
        """Wait for a frame that contains `needle`, and drop all frames."""
        while not any(needle in frame for frame in self._frames):
            self._received.clear()
            await self._received.wait()
        self._frames.clear()


class OpenedSession(Struct):
    """Processor time of opening a session that is not in memory."""

    screen_ms: float
    """Until a new renderer has its snapshot."""
    turn_ms: float
    """Until a turn of that renderer has ended."""


async def open_session(hub: Hub, session_id: str) -> OpenedSession:
    """Open a session as a renderer does, run a turn, and evict the session."""
    outbox = StoredFrames()
    viewer = Viewer("renderer", outbox, "json")
    features = ["streaming", "input", "resume"]
    capabilities = RendererCapabilities(dict(VERSIONS), features)
    hello = RendererHello(session_id=session_id, capabilities=capabilities)
    began = time.process_time()
    await hub.hello(viewer, hello, Principal(), "agent")
    await outbox.until(b'"resume":"snapshot"')
    has_snapshot = time.process_time()
    message = Input(input_type="text", data={"text": "go"}, session_id=session_id)
    await hub.receive(viewer, message, Principal(), "agent")
    await outbox.until(b'"final":true')
    ended = time.process_time()
    live = hub.sessions[session_id]
    hub.detach(viewer)
    await live.written()
    await hub.writer.turnover()
    if not hub.lifetimes.evict(asyncio.get_running_loop().time() + 1):
        raise SystemExit(f"session {session_id} is not evicted")
    return OpenedSession((has_snapshot - began) * 1000, (ended - began) * 1000)


async def model_ms(store: SqliteStore, session_id: str) -> float:
    """Read a session's model like a server that has just started; return the processor time."""
    models = Models(store, {}, HubSettings())
    began = time.process_time()
    (await models.read(session_id)).thread()
    return (time.process_time() - began) * 1000


async def model_rate(store: SqliteStore, count: int, session_id: str) -> float:
    """Build a session's model from its first fact and store it; return the facts per second."""
    models = Models(store, {}, HubSettings())
    began = time.process_time()
    await models.read(session_id)
    seconds = time.process_time() - began
    models.rest(session_id)
    await models.keep_up()
    return count / seconds


async def session_rate(hub: Hub, count: int, session_id: str) -> float:
    """Build a session from its first fact, evict and store it; return the facts per second."""
    began = time.process_time()
    await hub.find(session_id, Principal())
    seconds = time.process_time() - began
    hub.lifetimes.evict(asyncio.get_running_loop().time() + 1)
    await hub.directory.states.keep_up()
    return count / seconds


async def brief(turn: Turn) -> None:
    """Say one sentence."""
    await turn.say("One row. ")


async def opening(folder: Path, times: int) -> list[Figure]:
    """Measure the opening of a long session and of a short one."""
    opens: tuple[list[OpenedSession], list[OpenedSession]] = [], []
    models: tuple[list[float], list[float]] = [], []
    async with started(folder, brief, HubSettings()) as hub:
        store = hub.store
        assert isinstance(store, SqliteStore)
        count = await written(store, LONG, "long")
        few = await written(store, SHORT, "short")
        rates = [await model_rate(store, few, "short"), await session_rate(hub, few, "short")]
        rates = [await model_rate(store, count, "long"), await session_rate(hub, count, "long")]
        for _ in range(times * 20):
            for index, session_id in enumerate(("long", "short")):
                models[index].append(await model_ms(store, session_id))
                opens[index].append(await open_session(hub, session_id))
    name = f"{LONG:,} facts, against {SHORT:,}"
    long, short = ([one.screen_ms for one in each] for each in opens)
    long_turn, short_turn = ([one.turn_ms for one in each] for each in opens)
    return [
        alone("build a read model from facts", "facts/s", rates[:1]),
        alone("build a session from facts", "facts/s", rates[1:]),
        compared(f"read model of {name}", "ms", *models, TARGET_OPEN),
        compared(f"session of {name}: a renderer's snapshot", "ms", long, short, TARGET_OPEN),
        compared("… and a turn", "ms", long_turn, short_turn, TARGET_OPEN),
    ]


def appending(folder: Path, times: int) -> list[Figure]:
    """Measure appending with read models and without."""
    on, off = list[AppendRun](), list[AppendRun]()
    for number in range(times):
        for runs in (on, off):
            directory = folder / f"run{number}"
            runs.append(asyncio.run(append_run(directory, on=runs is on)))
            shutil.rmtree(directory)
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
