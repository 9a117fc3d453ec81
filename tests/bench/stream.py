"""Four connections, 20,000 tokens each, as fast as the agent can say them.

Measured is the server's processor time from the order until every renderer has the final commit,
over the tokens said; then the same with an agent that lets the loop run after each token, as one
does that reads from a network.
"""

from __future__ import annotations

import time

from msgspec import Struct

from tests.bench.crowd import Crowd
from tests.bench.figures import Figure, alone, compared, percentile, report, rounds
from tests.bench.heard import hear
from tests.bench.plan import Plan, order
from tests.bench.servers import Server, both

CONNECTIONS = 4
DELTAS = 20_000
TARGET = 0.7


class Streamed(Struct):
    """What one server did in each round."""

    cpu_us: list[float] = []
    per_s: list[float] = []
    messages: list[float] = []
    p50_ms: list[float] = []
    p99_ms: list[float] = []


def measure(server: Server, streamed: Streamed, *, yields: bool) -> None:
    """Lets one server stream once."""
    said = CONNECTIONS * DELTAS
    with Crowd(server.port, CONNECTIONS) as crowd:
        crowd.forget()
        text = order(Plan(DELTAS, yields=yields))
        before, began = server.cpu_s(), time.monotonic()
        for member in crowd.members:
            member.tell(text)
        crowd.wait_for(b'"final":true')
        took, cpu_s = time.monotonic() - began, server.cpu_s() - before
        heard = [hear(member.chunks) for member in crowd.members]
    for one in heard:
        one.check_whole(DELTAS)
    streamed.cpu_us.append(cpu_s / said * 1e6)
    streamed.per_s.append(said / took)
    streamed.messages.append(sum(one.messages for one in heard))
    if server.is_ours:
        ages = [age for one in heard for age in one.ages_ms]
        streamed.p50_ms.append(percentile(ages, 50))
        streamed.p99_ms.append(percentile(ages, 99))


def main() -> None:
    plain, yielding = (Streamed(), Streamed()), (Streamed(), Streamed())
    with both() as servers:
        for server in servers:
            measure(server, Streamed(), yields=False)
        for _ in range(rounds(5)):
            for pair, yields in ((plain, False), (yielding, True)):
                for server, streamed in zip(servers, pair, strict=True):
                    measure(server, streamed, yields=yields)
    report("stream", [*figures("", *plain, TARGET), *figures(", loop let run", *yielding)])


def figures(
    which: str, ours: Streamed, bare: Streamed, target: float | None = None
) -> list[Figure]:
    """Return what was found with one kind of agent."""
    return [
        compared(f"server CPU per delta{which}", "µs", ours.cpu_us, bare.cpu_us, target),
        compared(f"deltas per second{which}", "/s", ours.per_s, bare.per_s),
        compared(f"WebSocket messages{which}", "", ours.messages, bare.messages),
        alone(f"say to receipt, p50{which}", "ms", ours.p50_ms),
        alone(f"say to receipt, p99{which}", "ms", ours.p99_ms),
    ]


if __name__ == "__main__":
    main()
