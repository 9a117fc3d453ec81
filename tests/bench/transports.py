"""Transports: the round trip of a commit on each; what a message costs over Unix sockets and gRPC.

Round trip: from the agent's `turn.patch` until the hub has the renderer's `frame_ack`, with a
ledger in memory, so that no disk is in it. Cost: server CPU with the ledger on disk as shipped,
against a bare server of the same transport: per token, four sessions as fast as the agent can say
them (ours joins tokens while it writes, so it sends fewer messages); and per message, one session
on many renderers.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager

from msgspec import Struct

from arp.client.client import connect
from arp.client.options import FEATURES, Options
from arp.protocol.catalog import VERSIONS
from arp.protocol.messages import RendererCapabilities
from tests.bench.figures import Figure, alone, compared, percentile, report, rounds
from tests.bench.framed import FINAL, Renderers, Way
from tests.bench.plan import END, Plan
from tests.bench.servers import OURS, Server, running

COMMITS = 500
CONNECTIONS, DELTAS = 4, 10_000
RENDERERS = {"Unix socket": 200, "gRPC": 40}
"""On one session: a gRPC client costs this side much more."""
FANNED, INTERVAL_S = 200, 0.01
TARGET = 1.3

ACKED = "tests/bench/acked.py"
SERVE = (sys.executable, "-m", "arp.cli", "serve", ACKED)


# -- the round trip of a commit --------------------------------------------------------------------


def round_trips(folder: str) -> list[Figure]:
    """Measure each transport in turn."""
    path, port = f"{folder}/round.sock", free_port()
    command = (*SERVE, "--port", "0", "--ledger", "memory:", "--unix", path, "--grpc", str(port))
    figures: list[Figure] = []
    with running(command, is_ours=True) as server:
        ways: dict[str, tuple[str, Options]] = {
            "WebSocket, JSON": (f"ws://127.0.0.1:{server.port}", {}),
            "WebSocket, MessagePack": (f"ws://127.0.0.1:{server.port}", {"encoding": "msgpack"}),
            "WebSocket, CBOR": (f"ws://127.0.0.1:{server.port}", {"encoding": "cbor"}),
            "stdio": ("stdio:", {"command": (*SERVE, "--ledger", "memory:", "--stdio")}),
            "Unix socket": (f"unix:{path}", {}),
            "gRPC": (f"grpc:127.0.0.1:{port}", {}),
        }
        for name, (url, options) in ways.items():
            took = asyncio.run(_commits(url, options))
            for percent in (50, 99):
                told = f"commit to frame_ack, p{percent}, {name}"
                figures.append(alone(told, "ms", [percentile(took, percent)]))
    return figures


async def _commits(url: str, options: Options) -> list[float]:
    options["capabilities"] = RendererCapabilities(dict(VERSIONS), [*FEATURES, "frame-ack"])
    async with asyncio.timeout(120), connect(url, **options) as client:
        turn = await client.ask(str(COMMITS))
        took: list[float] = json.loads(client.screen.text(turn.id))
    assert len(took) == COMMITS
    return took


# -- what a message costs --------------------------------------------------------------------------


class Cost(Struct):
    """What one server needed in each round."""

    per_token_us: list[float] = []
    messages: list[float] = []
    fanned_us: list[float] = []


def stream(server: Server, way: Way, cost: Cost) -> None:
    """Let each connection have its own stream."""
    with Renderers(way, CONNECTIONS) as renderers:
        renderers.expect(FINAL[way.encoding])
        before = server.cpu_s()
        renderers.order(Plan(DELTAS, yields=True), everybody=True)
        renderers.wait()
        cpu_s = server.cpu_s() - before
        messages = renderers.check(DELTAS)
    cost.per_token_us.append(cpu_s / (CONNECTIONS * DELTAS) * 1e6)
    cost.messages.append(messages)


def fan(server: Server, way: Way, cost: Cost) -> None:
    """Let all renderers of one session have the same tokens."""
    with Renderers(way, RENDERERS[way.name], f"fan-{time.monotonic_ns()}") as renderers:
        renderers.expect(END.encode())
        before = server.cpu_s()
        plan = Plan(FANNED, INTERVAL_S, to_all=True, hold_s=0.2)
        renderers.order(plan, everybody=False)
        renderers.wait()
        cpu_s = server.cpu_s() - before
        messages = renderers.check(FANNED)
    cost.fanned_us.append(cpu_s / messages * 1e6)


def costs(folder: str) -> list[Figure]:
    """Measure ours and bare, round by round."""
    with both(folder) as (ours, bare, ways):
        found = {way.name: (Cost(), Cost()) for way, _ in ways}
        for number in range(rounds(3) + 1):
            for our_way, bare_way in ways:
                pair = found[our_way.name] if number else (Cost(), Cost())  # the first warms up
                for server, way, cost in zip((ours, bare), (our_way, bare_way), pair, strict=True):
                    stream(server, way, cost)
                    fan(server, way, cost)
    figures: list[Figure] = []
    for name, (mine, theirs) in found.items():
        figures += [
            compared(
                f"{name}, CPU per token", "µs", mine.per_token_us, theirs.per_token_us, TARGET
            ),
            compared(f"{name}, messages for them", "", mine.messages, theirs.messages),
            compared(
                f"{name}, CPU per message, {RENDERERS[name]} on one session",
                "µs",
                mine.fanned_us,
                theirs.fanned_us,
                TARGET,
            ),
        ]
    return figures


@contextmanager
def both(folder: str) -> Iterator[tuple[Server, Server, list[tuple[Way, Way]]]]:
    """Run ours, as shipped, and the bare one beside it."""
    port, bare_port = free_port(), free_port()
    path, bare_path = f"{folder}/ours.sock", f"{folder}/bare.sock"
    ledger = ("--ledger", f"sqlite:{folder}/ledger.db")
    command = (*OURS, *ledger, "--unix", path, "--grpc", str(port))
    bare = (sys.executable, "-m", "tests.bench.bare_framed", bare_path, str(bare_port))
    with running(command, is_ours=True) as first, running(bare, is_ours=False) as second:
        ways = [
            (Way("Unix socket", unix=path), Way("Unix socket", unix=bare_path)),
            (Way("gRPC", grpc=f"127.0.0.1:{port}"), Way("gRPC", grpc=f"127.0.0.1:{bare_port}")),
        ]
        yield first, second, ways


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
