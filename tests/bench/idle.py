"""Memory of the server for each idle connection with its own session.

It measures the growth of resident memory from 1,000 connections to 2,000, after a garbage
collection. Memory that a server needs only once (caches, pools) is already in use at 1,000.
"""

from __future__ import annotations

import resource
import time

from tests.bench.crowd import Crowd
from tests.bench.figures import compared, report, rounds
from tests.bench.plan import END, Plan, order
from tests.bench.servers import Server, both

FIRST = 1000
MORE = 1000
SETTLE_NS = 1_000_000_000
FILES = 4096
"""The limit of open files for this process and each server."""
TARGET = 1.4


def allow_files() -> None:
    """Raise the limit of open files for this process and its child processes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < FILES:
        most = FILES if hard == resource.RLIM_INFINITY else min(FILES, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def settled_bytes(server: Server, crowd: Crowd) -> int:
    """Return the server's memory when it is idle, after a garbage collection."""
    crowd.read_until(time.monotonic_ns() + SETTLE_NS)
    crowd.members[0].send(order(Plan(1, collect=True)))
    crowd.wait_for(END.encode(), crowd.members[:1])
    crowd.read_until(time.monotonic_ns() + SETTLE_NS)
    return server.memory_bytes()


def kib_per_connection(server: Server) -> float:
    """Return the memory of one more connection."""
    with Crowd(server.port, FIRST) as crowd:
        before = settled_bytes(server, crowd)
        crowd.grow(MORE)
        return (settled_bytes(server, crowd) - before) / MORE / 1024


def main() -> None:
    allow_files()
    ours, bare = [], []
    for _ in range(rounds(2)):
        with both() as (our_server, bare_server):
            ours.append(kib_per_connection(our_server))
            bare.append(kib_per_connection(bare_server))
    report("idle", [compared("memory per idle connection", "KiB", ours, bare, TARGET)])


if __name__ == "__main__":
    main()
