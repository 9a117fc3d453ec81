"""Four connections, 20,000 tokens each, as fast as the agent can send them.

It measures the server's processor time per token, from the order until every renderer has the final
commit; then the same with an agent that lets the loop run after each token, like one that reads
from a network.
"""

from __future__ import annotations

import time

from msgspec import Struct

from tests.bench.crowd import Crowd
from tests.bench.figures import Figure, alone, compared, percentile, report, rounds
from tests.bench.plan import Plan, order
from tests.bench.received import decode
from tests.bench.servers import Server, both

CONNECTIONS = 4
DELTAS = 20_000
TARGET = 0.7


class StreamRounds(Struct):
    """The measurements of one server, one value for each round."""

    cpu_us: list[float] = []
    per_s: list[float] = []
    messages: list[float] = []
    p50_ms: list[float] = []
    p99_ms: list[float] = []


def measure(server: Server, measured: StreamRounds, *, yields: bool) -> None:
    """Measure one round on one server."""
    tokens = CONNECTIONS * DELTAS
    with Crowd(server.port, CONNECTIONS) as crowd:
        crowd.forget()
        text = order(Plan(DELTAS, yields=yields))
        before, began = server.cpu_s(), time.monotonic()
        for member in crowd.members:
            member.send(text)
        crowd.wait_for(b'"final":true')
        took, cpu_s = time.monotonic() - began, server.cpu_s() - before
        received = [decode(member.chunks) for member in crowd.members]
    for one in received:
        one.check_complete(DELTAS)
    measured.cpu_us.append(cpu_s / tokens * 1e6)
    measured.per_s.append(tokens / took)
    measured.messages.append(sum(one.messages for one in received))
    if server.is_ours:
        ages = [age for one in received for age in one.ages_ms]
        measured.p50_ms.append(percentile(ages, 50))
        measured.p99_ms.append(percentile(ages, 99))


def main() -> None:
    plain, yielding = (StreamRounds(), StreamRounds()), (StreamRounds(), StreamRounds())
    with both() as servers:
        for server in servers:
            measure(server, StreamRounds(), yields=False)  # warm up
        for _ in range(rounds(5)):
            for pair, yields in ((plain, False), (yielding, True)):
                for server, measured in zip(servers, pair, strict=True):
                    measure(server, measured, yields=yields)
    report("stream", [*figures("", *plain, TARGET), *figures(", loop let run", *yielding)])


def figures(
    which: str, ours: StreamRounds, bare: StreamRounds, target: float | None = None
) -> list[Figure]:
    """Return the figures of one kind of agent; `which` is appended to their names."""
    return [
        compared(f"server CPU per delta{which}", "µs", ours.cpu_us, bare.cpu_us, target),
        compared(f"deltas per second{which}", "/s", ours.per_s, bare.per_s),
        compared(f"WebSocket messages{which}", "", ours.messages, bare.messages),
        alone(f"say to receipt, p50{which}", "ms", ours.p50_ms),
        alone(f"say to receipt, p99{which}", "ms", ours.p99_ms),
    ]


if __name__ == "__main__":
    main()
