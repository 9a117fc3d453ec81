"""Memory of the server for each connection that is attached to a session of its own and silent.

Measured is the growth of resident memory between 100 connections and 1,100, garbage collected before both.
"""

from __future__ import annotations

import time

from tests.bench.crowd import Crowd
from tests.bench.figures import compared, report, rounds
from tests.bench.plan import END, Plan, order
from tests.bench.servers import Server, both

FIRST = 100
MORE = 1000
SETTLE_NS = 1_000_000_000
TARGET = 1.5


def settled_bytes(server: Server, crowd: Crowd) -> int:
    """Gives the server's memory when it has nothing more to do."""
    crowd.read_until(time.monotonic_ns() + SETTLE_NS)
    crowd.members[0].tell(order(Plan(1, collect=True)))
    crowd.wait_for(END.encode(), crowd.members[:1])
    crowd.read_until(time.monotonic_ns() + SETTLE_NS)
    return server.memory_bytes()


def kib_per_connection(server: Server) -> float:
    """Tells what one more connection takes."""
    with Crowd(server.port, FIRST) as crowd:
        before = settled_bytes(server, crowd)
        crowd.grow(MORE)
        return (settled_bytes(server, crowd) - before) / MORE / 1024


def main() -> None:
    ours, bare = [], []
    for _ in range(rounds(2)):
        with both() as (our_server, bare_server):
            ours.append(kib_per_connection(our_server))
            bare.append(kib_per_connection(bare_server))
    report("idle", [compared("memory per idle connection", "KiB", ours, bare, TARGET)])


if __name__ == "__main__":
    main()
