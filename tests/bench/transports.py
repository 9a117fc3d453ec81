"""Transports: the round trip of a commit on each; the cost of messages on Unix sockets and gRPC.

Round trip: from the agent's `turn.patch` until the hub has the renderer's `frame_ack`, on each
transport and in each dialect, with a ledger in memory, so that the disk does not count. An event
stream has no `frame_ack`: there it is the time until the renderer has the commit. Cost: server CPU
compared with a bare server of the same transport, which sends one message for each token. Ours
joins the tokens of the same write, so it may send fewer messages; therefore the cost of a token for
each renderer is compared. First four sessions, as fast as the agent can send, then one session on
many renderers at two paces: as shipped, with its ledger on disk, and with the ledger in memory,
which is the cost of the transport alone.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

from msgspec import Struct

from arp.client.client import connect
from arp.client.options import FEATURES, Options
from arp.protocol.catalog import VERSIONS
from arp.protocol.codec import Encoding
from arp.protocol.framing.envelope import Dialect
from arp.protocol.messages import Patch, RendererCapabilities
from arp.protocol.patch import Update
from tests.bench.figures import Figure, alone, compared, percentile, report, rounds
from tests.bench.framed import FINAL, Renderers, Way
from tests.bench.plan import END, RECEIPT, Plan
from tests.bench.servers import OURS, Server, running

COMMITS = 500
ENCODINGS: tuple[Encoding, ...] = ("json", "msgpack", "cbor")
DIALECTS: tuple[Dialect, ...] = ("session", "object")
CONNECTIONS, DELTAS = 4, 10_000
RENDERERS = {"Unix socket": 200, "gRPC": 40}
"""On one session: a gRPC client costs this side much more."""
FANNED, PACES = 100, (100, 50)
"""The number of tokens, and how many a second. The ledger commits 60 times a second: at the first
pace some tokens are joined, at the second each is a message."""
TARGET = 1.3
ROUNDS, STREAM_ROUNDS = 9, 3
"""The cost on many renderers varies more: it depends on the disk and the wake-ups of readers."""

ACKED = "tests/bench/acked.py"
SERVE = (sys.executable, "-m", "arp.cli", "serve", ACKED)


# -- the round trip of a commit --------------------------------------------------------------------


def round_trips(folder: str) -> list[Figure]:
    """Measure each transport and dialect in turn."""
    figures: list[Figure] = []
    for dialect in DIALECTS:
        # A Unix socket has one dialect and one encoding, which its server chooses.
        path, port = f"{folder}/{dialect}.sock", free_port()
        framed = ("--unix", path, "--grpc", str(port), "--dialect", dialect)
        command = (*SERVE, "--port", "0", "--ledger", "memory:", *framed)
        # One loop for all: gRPC keeps references to a loop after it is closed.
        with running(command, is_ours=True) as server, asyncio.Runner() as runner:
            for name, (url, options) in _ways(server.port, path, port, dialect).items():
                took = runner.run(_commits(url, options))
                figures += _shown(f"commit to frame_ack, {dialect}, {name}", took)
            if dialect == "session":
                for name, scheme in (("event stream", "http+sse"), ("WebSocket", "ws")):
                    took = runner.run(_receipts(f"{scheme}://127.0.0.1:{server.port}"))
                    figures += _shown(f"commit to receipt, {dialect}, {name}", took)
    return figures


def _ways(port: int, path: str, grpc_port: int, dialect: Dialect) -> dict[str, tuple[str, Options]]:
    """Return an address and options for each transport that acknowledges commits."""
    web, call = f"ws://127.0.0.1:{port}", f"grpc:127.0.0.1:{grpc_port}"
    child = (*SERVE, "--ledger", "memory:", "--stdio", "--dialect", dialect)
    ways: dict[str, tuple[str, Options]] = {
        f"WebSocket, {encoding}": (web, {"encoding": encoding}) for encoding in ENCODINGS
    }
    ways["stdio, json"] = ("stdio:", {"command": child})
    ways["Unix socket, msgpack"] = (f"unix:{path}", {})
    ways["gRPC, json"] = (call, {})
    ways["gRPC, msgpack"] = (call, {"encoding": "msgpack"})
    for _, options in ways.values():
        options["dialect"] = dialect
    return ways


def _shown(name: str, took: list[float]) -> list[Figure]:
    percents = (50, 99)
    return [alone(f"{name}, p{one}", "ms", [percentile(took, one)]) for one in percents]


async def _commits(url: str, options: Options) -> list[float]:
    """Return how long each commit took until it was acknowledged, in milliseconds."""
    options["capabilities"] = RendererCapabilities(dict(VERSIONS), [*FEATURES, "frame-ack"])
    async with asyncio.timeout(120), connect(url, **options) as client:
        turn = await client.ask(str(COMMITS))
        took: list[float] = json.loads(client.screen.text(turn.id))
    assert len(took) == COMMITS
    return took


async def _receipts(url: str) -> list[float]:
    """Return how long each commit took until this process had it, in milliseconds."""
    took: list[float] = []
    async with asyncio.timeout(120), connect(url) as client:
        events = client.events()
        asking = asyncio.create_task(client.ask(f"{RECEIPT} {COMMITS}"))
        async for event in events:
            if isinstance(event, Patch) and isinstance(change := event.ops[-1], Update):
                took.append((time.monotonic_ns() - int(str(change.value))) / 1e6)
                if len(took) == COMMITS:
                    break
        await asking
    return took


# -- what a message costs --------------------------------------------------------------------------


class Cost(Struct):
    """The measurements of one server, one value for each round."""

    per_token_us: list[float] = []
    messages: list[float] = []
    fanned_us: dict[int, list[float]] = {}
    """Pace → the cost of a token for each renderer."""


class Side(Struct):
    """A server, its transports, and their costs."""

    server: Server
    ways: tuple[Way, ...]
    costs: dict[str, Cost] = {}
    """By the name of the transport."""

    def forget(self) -> None:
        """Drop the measurements so far, which were to warm up."""
        self.costs = {way.name: Cost() for way in self.ways}


def stream(server: Server, way: Way, cost: Cost) -> None:
    """Measure connections with a stream each."""
    with Renderers(way, CONNECTIONS) as renderers:
        renderers.expect(FINAL[way.encoding])
        before = server.cpu_s()
        renderers.order(Plan(DELTAS, yields=True), everybody=True)
        renderers.wait()
        cpu_s = server.cpu_s() - before
        messages = renderers.check(DELTAS)
    cost.per_token_us.append(cpu_s / (CONNECTIONS * DELTAS) * 1e6)
    cost.messages.append(messages)


def fan(pace: int, server: Server, way: Way, cost: Cost) -> None:
    """Measure the renderers of one session, with `pace` tokens a second."""
    count = RENDERERS[way.name]
    with Renderers(way, count, f"fan-{time.monotonic_ns()}") as renderers:
        renderers.expect(END.encode())
        before = server.cpu_s()
        plan = Plan(FANNED, 1 / pace, to_all=True, hold_s=0.2)
        renderers.order(plan, everybody=False)
        renderers.wait()
        cpu_s = server.cpu_s() - before
        renderers.check(FANNED)
    cost.fanned_us.setdefault(pace, []).append(cpu_s / (FANNED * count) * 1e6)


def costs(folder: str) -> list[Figure]:
    """Measure ours as shipped, ours without a disk, and bare, round by round."""
    with servers(folder) as (shipped, in_memory, bare):
        for number in range(rounds(ROUNDS) + 1):
            for index in range(len(bare.ways)):
                if number <= rounds(STREAM_ROUNDS):
                    _measure(stream, index, shipped, bare)
                for pace in PACES:
                    _measure(partial(fan, pace), index, shipped, in_memory, bare)
            if not number:
                for side in (shipped, in_memory, bare):
                    side.forget()
    return [figure for name in bare.costs for figure in _compared(name, shipped, in_memory, bare)]


def _measure(run: Callable[[Server, Way, Cost], None], index: int, *sides: Side) -> None:
    for side in sides:
        way = side.ways[index]
        run(side.server, way, side.costs[way.name])


def _compared(name: str, shipped: Side, in_memory: Side, bare: Side) -> list[Figure]:
    ours, alone_, base = (side.costs[name] for side in (shipped, in_memory, bare))
    figures = [
        compared(f"{name}, CPU per token", "µs", ours.per_token_us, base.per_token_us, TARGET),
        compared(f"{name}, messages for them", "", ours.messages, base.messages),
    ]
    for pace in PACES:
        title = f"{name}, CPU per token, {pace} a second on {RENDERERS[name]}"
        bare_us = base.fanned_us[pace]
        in_memory_us = alone_.fanned_us[pace]
        figures += [
            compared(title, "µs", ours.fanned_us[pace], bare_us, TARGET),
            compared(f"{title}, ledger in memory", "µs", in_memory_us, bare_us, TARGET),
        ]
    return figures


@contextmanager
def servers(folder: str) -> Iterator[tuple[Side, Side, Side]]:
    """Run ours as shipped, ours with its ledger in memory, and the bare server."""
    kinds = {"shipped": f"sqlite:{folder}/ledger.db", "in-memory": "memory:", "bare": ""}
    with ExitStack() as stack:
        sides = []
        for name, ledger in kinds.items():
            path, port = f"{folder}/{name}.sock", free_port()
            ways = (Way("Unix socket", unix=path), Way("gRPC", grpc=f"127.0.0.1:{port}"))
            framed = ("--ledger", ledger, "--unix", path, "--grpc", str(port))
            command: tuple[str, ...] = (*OURS, *framed)
            if not ledger:
                command = (sys.executable, "-m", "tests.bench.bare_framed", path, str(port))
            server = stack.enter_context(running(command, is_ours=bool(ledger)))
            sides.append(Side(server, ways))
            sides[-1].forget()
        shipped, in_memory, bare = sides
        yield shipped, in_memory, bare


def free_port() -> int:
    """Return a port that is free now."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="arp-bench-") as folder:
        report("transports", [*round_trips(folder), *costs(folder)])


if __name__ == "__main__":
    main()
