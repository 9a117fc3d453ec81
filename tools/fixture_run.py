"""A run of the project that has everything in it of which there is a fixture."""

from __future__ import annotations

import asyncio
import json

from arp.hub.directory import Principal
from arp.hub.hub import Hub
from arp.hub.live import LiveSession
from arp.hub.turn import Turn
from arp.hub.viewer import Viewer
from arp.ledger.fact import Fact, decode
from arp.ledger.payload_fields import Benchmark, BenchmarkRefs
from arp.protocol.catalog import VERSIONS
from arp.protocol.messages import Input, RendererCapabilities, RendererHello
from arp.record.lasting import Exported
from arp.store.blobs import MemoryBlobs
from arp.store.memory import MemoryStore

SESSION = "session-1"

TASK = "count-the-files"

WAIT_S = 10.0

AT = "2026-11-21T08:00:00.000000Z"


async def run() -> list[Fact]:
    """Runs two turns and an export, and gives the facts of the session."""
    store = MemoryStore()
    await store.open()
    handlers = {"work": working}
    hub = Hub(store, MemoryBlobs(), handlers, now=lambda: AT)
    await hub.start()
    try:
        async with asyncio.timeout(WAIT_S):
            live = await _conversation(hub)
            await live.written()
            return [decode(body) for _, body in await store.read(SESSION, 0)]
    finally:
        await hub.aclose()


async def working(turn: Turn) -> None:
    """Does what it is told: work, or a trial of a benchmark."""
    if turn.text == "trial":
        trial(turn)
    else:
        await work(turn)


async def work(turn: Turn) -> None:
    """Takes the one model that there is, fails once, asks for leave, and is done."""
    turn.runtime.routing.resolved(["example-large"])
    request = turn.runtime.model("example-large")
    request.cost(input_tokens=812, output_tokens=64, amount=0.004, currency="USD")
    request.completed(finish_reason="tool_calls")
    task = turn.runtime.task("Count the files", task_id=TASK)
    task.started()
    task.attempt().failed("timeout", retryable=True)
    with task.retry("once more"):
        async with turn.tool("shell", {"command": "ls"}) as tool:
            if await tool.approve("Run ls?", rule="commands-need-leave"):
                process = tool.runtime.process(["ls"], cwd="docs")
                await process.output("agents.md\nclient.md\nindex.md\n")
                process.completed(0)
                tool.result(["agents.md", "client.md", "index.md"])
    task.completed([3])
    await turn.say("3 files.")


def trial(turn: Turn) -> None:
    """Notes one trial of a benchmark."""
    benchmark = Benchmark("terminal-tasks", "1.0", "c-2", "trial-1", "candidate", "model")
    run = turn.runtime.benchmark(benchmark)
    run.dataset(["count-files"])
    run.configuration(model="example-large")
    refs = BenchmarkRefs("jobs/7", "jobs/7/trial-1", "count-files/task.toml")
    noted = run.trial("count-files", "count-files.1", refs)
    noted.started(1)
    noted.refs = BenchmarkRefs(
        harbor_job="jobs/7",
        harbor_trial="jobs/7/trial-1",
        task_toml="count-files/task.toml",
        trajectory="jobs/7/trial-1/trajectory.json",
        reward="jobs/7/trial-1/reward.json",
        reward_details="jobs/7/trial-1/details.json",
        artifact_manifest="jobs/7/trial-1/manifest.json",
        qc_report="jobs/7/trial-1/qc.json",
    )
    noted.completed(41_000)
    noted.reward(1.0, {"passed": 4, "of": 4})


class Screen:
    """An outbox that tells when a message has come."""

    buffered = 0

    def __init__(self) -> None:
        self._messages: list[dict[str, object]] = []
        self._came = asyncio.Event()

    def send(self, frames: list[bytes]) -> None:
        """Keeps what was sent."""
        for frame in frames:
            message = json.loads(frame)
            self._messages += message if isinstance(message, list) else [message]
        self._came.set()

    def close(self, code: int, reason: str) -> None:
        """There is no connection."""

    async def has(self, **fields: object) -> None:
        """Waits for a message with these fields."""
        while not any(fields.items() <= message.items() for message in self._messages):
            self._came.clear()
            await self._came.wait()


async def _conversation(hub: Hub) -> LiveSession:
    """Lets somebody ask, give leave, and ask for a trial; then notes an export."""
    principal, screen = Principal(), Screen()
    viewer = Viewer("renderer-1", screen, "json")
    capabilities = RendererCapabilities(dict(VERSIONS), ["input"])
    hello = RendererHello(capabilities=capabilities, session_id=SESSION)
    await hub.hello(viewer, hello, principal, "work")
    await screen.has(type="session")
    for turn, said in enumerate(("How many files?", "trial"), 1):
        text = Input(session_id=SESSION, input_type="text", data={"text": said}, id=f"input-{turn}")
        await hub.receive(viewer, text, principal, "work")
        if turn == 1:
            await screen.has(type="turn", status="waiting")
            yes = {"action": "confirm"}
            leave = Input(session_id=SESSION, input_type="action", data=yes, id="leave-1")
            await hub.receive(viewer, leave, principal, "work")
        await screen.has(type="commit", final=True, turn_id=f"t{turn}")
    live = await hub.find(SESSION, principal)
    exported = Exported(
        kind="evidence", state="exported", through_sequence=live.session.sequence, gaps=["no trace"]
    )
    scope = {"thread_id": "main", "turn_id": "t1", "task_id": TASK, "run_id": f"{TASK}.2"}
    hub.runtime(live).within(**scope).lasting.evidence(exported)
    return live
