"""A run of the project that produces all facts for the fixtures.

A person asks something and gives permission on a screen; a program runs a trial and exports
evidence over the control plane.
"""

from __future__ import annotations

import asyncio
import io
import json
import zipfile

from msgspec import Struct

from arp.access.principal import Principal
from arp.control.benchmarks import ExportTrial, RecordReward, StartTrial
from arp.control.context import Plane
from arp.control.control import Control
from arp.control.exports import ExportEvidence, ExportState
from arp.control.turns import TurnInput
from arp.hub.hub import Hub
from arp.hub.runner import HubApp
from arp.ledger.fact import Fact, decode
from arp.ledger.payload_fields import Benchmark, BenchmarkRefs
from arp.live.delivery import Viewer
from arp.live.settings import HubSettings
from arp.protocol.catalog import VERSIONS
from arp.protocol.json_value import JsonObject
from arp.protocol.messages import Input, RendererCapabilities, RendererHello
from arp.store.blobs import MemoryBlobs
from arp.store.memory import MemoryStore
from arp.turn.turn import Turn

SESSION = "session-1"

TASK = "count-the-files"

WAIT_S = 10.0

AT = "2026-11-21T08:00:00.000000Z"


class Ran(Struct, frozen=True):
    """Results of the run."""

    facts: list[Fact]
    """All facts of the session."""
    trial: dict[str, bytes]
    """Parts of the trial's pack, by name."""
    zipped: set[str]
    """SHA-256 of the packs. They differ between machines, because zip compression does."""


async def run() -> Ran:
    """Run a turn and a trial, and export both."""
    store = MemoryStore()
    await store.open()
    handlers = {"work": working}
    settings = HubSettings(runtime_id="runtime-1")
    hub = Hub(store, MemoryBlobs(), HubApp(handlers), settings, now=lambda: AT)
    await hub.start()
    try:
        async with asyncio.timeout(WAIT_S):
            await _conversation(hub)
            control = Control(Plane(hub, list(handlers)), Principal())
            scope = ExportEvidence(session_id=SESSION, evidence_id="evidence-1", turn_id="t1")
            evidence = await control.exports.evidence(scope)
            trial = await _trial(control)
            packs = [made.file for made in (evidence, trial) if made.file is not None]
            data = await hub.blobs.of(SESSION).read(packs[-1].sha256)
            with zipfile.ZipFile(io.BytesIO(data)) as pack:
                parts = {name: pack.read(name) for name in pack.namelist()}
            facts = [decode(body) for _, body in await store.read(SESSION, 0)]
            return Ran(facts, parts, {one.sha256 for one in packs})
    finally:
        await hub.aclose()


async def working(turn: Turn) -> None:
    """Run the work that the input requests: a plain request, or a task of a benchmark."""
    if turn.text == "How many files?":
        await work(turn)
    else:
        await solve(turn)


async def work(turn: Turn) -> None:
    """Use the only model, fail once, ask for permission, and complete."""
    turn.record.route(["example-large"])
    request = turn.record.model("example-large")
    request.cost(input_tokens=812, output_tokens=64, amount=0.004, currency="USD")
    request.completed(finish_reason="tool_calls")
    task = turn.record.task("Count the files", task_id=TASK)
    task.record("task.started")
    task.attempt().failed("timeout", retryable=True)
    with task.retry("once more"):
        async with turn.tool("shell", {"command": "ls"}) as tool:
            if await tool.approve("Run ls?", rule="commands-need-leave"):
                process = tool.record.process(["ls"], cwd="docs")
                await process.output("agents.md\nclient.md\nindex.md\n")
                process.completed(0)
                tool.result(["agents.md", "client.md", "index.md"])
    task.completed([3])
    await turn.say("3 files.")


async def solve(turn: Turn) -> None:
    """Count with a tool, by the only model."""
    request = turn.record.model("example-large")
    async with turn.tool("shell", {"command": "ls | wc -l"}) as tool:
        tool.result("4")
    request.cost(input_tokens=640, output_tokens=12, amount=0.002, currency="USD")
    request.completed(finish_reason="stop")
    await turn.say("There are 4 files.")


async def _trial(control: Control) -> ExportState:
    """Start a trial of a benchmark, record its reward and export it, like a job."""
    benchmark = Benchmark(
        "terminal-tasks",
        "1.0",
        "c-2",
        role="candidate",
        changed_variable="model",
        dataset_ref="benchmarks/terminal-tasks",
    )
    named: JsonObject = {"session_id": SESSION, "trial_id": "trial-1"}
    started = await control.benchmarks.start(
        StartTrial(
            **named,
            benchmark=benchmark,
            task_id="count-files",
            run_id="count-files.1",
            input=TurnInput(text="Count the files in /app."),
            turn_id="trial-turn",
            refs=BenchmarkRefs("jobs/7", "jobs/7/trial-1", "count-files/task.toml"),
            configuration={"model": "example-large"},
            attempt=1,
        )
    )
    live = await control.context.live(SESSION)
    while live.session.running == started.trial.turn_id:
        await live.beyond(live.stored)
    refs = BenchmarkRefs(
        reward="jobs/7/trial-1/reward.json",
        reward_details="jobs/7/trial-1/details.json",
        artifact_manifest="jobs/7/trial-1/manifest.json",
        qc_report="jobs/7/trial-1/qc.json",
        harbor_trial_result="jobs/7/trial-1/result.json",
        harbor_verifier_stdout="jobs/7/trial-1/verifier/test-stdout.txt",
    )
    detail = {"passed": 4, "of": 4}
    criteria = ("files-counted", "nothing-written")
    scored = RecordReward(
        **named, reward=1.0, detail=detail, criteria=criteria, refs=refs, p0_regressions=0
    )
    await control.benchmarks.reward(scored)
    return await control.benchmarks.export(ExportTrial(**named, evidence_id="benchmark-1"))


class Screen:
    """An outbox that notifies waiting callers of new messages."""

    buffered = 0

    def __init__(self) -> None:
        self._messages: list[dict[str, object]] = []
        self._came = asyncio.Event()

    def send(self, frames: list[bytes]) -> None:
        """Store the sent frames."""
        for frame in frames:
            message = json.loads(frame)
            self._messages += message if isinstance(message, list) else [message]
        self._came.set()

    def send_first(self, frame: bytes) -> None:
        """Store a frame like any other."""
        self.send([frame])

    def waiting(self) -> list[bytes]:
        """Return no frames, because none waits."""
        return []

    def close(self, code: int, reason: str) -> None:
        """Do nothing, because there is no connection."""

    async def has(self, **fields: object) -> None:
        """Wait for a message with these fields."""
        while not any(fields.items() <= message.items() for message in self._messages):
            self._came.clear()
            await self._came.wait()


async def _conversation(hub: Hub) -> None:
    """Send an input, and answer the permission request that follows."""
    principal, screen = Principal(), Screen()
    viewer = Viewer("renderer-1", screen, "json")
    capabilities = RendererCapabilities(dict(VERSIONS), ["input"])
    hello = RendererHello(capabilities=capabilities, session_id=SESSION)
    await hub.hello(viewer, hello, principal, "work")
    await screen.has(type="session")
    asked = {"text": "How many files?"}
    text = Input(session_id=SESSION, input_type="text", data=asked, id="input-1")
    await hub.receive(viewer, text, principal, "work")
    await screen.has(type="turn", status="waiting")
    yes = {"action": "confirm"}
    leave = Input(session_id=SESSION, input_type="action", data=yes, id="leave-1")
    await hub.receive(viewer, leave, principal, "work")
    await screen.has(type="commit", final=True, turn_id="t1")
